//! Names that another file system would take for one.
//!
//! Some file systems normalise names (NFC), some ignore case, some do both. Two siblings whose names become
//! equal that way cannot both be written there.

use std::collections::HashMap;

use avow_model::tree::Tree;
use unicode_normalization::UnicodeNormalization;

/// Two paths of one tree that differ only in case or in Unicode normalisation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collision {
    /// The one that sorts first.
    pub first: String,
    /// The other.
    pub second: String,
}

/// All collisions among the paths of a tree and the folders that they imply.
pub fn collisions(tree: &Tree) -> Vec<Collision> {
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(tree.entries.len());
    let mut found = Vec::new();
    let mut folder = "";
    for path in tree.entries.keys() {
        let parent = path.rfind('/').map_or("", |end| &path[..end]);
        // Paths come sorted, so most share the folder of the one before, whose parts have been seen.
        let known = if parent == folder { parent.len() + 1 } else { 0 };
        folder = parent;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for part in ends.filter(|end| *end >= known).map(|end| &path[..end]) {
            let other = *seen.entry(folded(part)).or_insert(part);
            if other != part {
                found.push(Collision { first: other.to_owned(), second: part.to_owned() });
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// One spelling for all names that are equal without case and normalisation. Upper case before lower case
/// brings letters with several small forms together (`ß` and `ss`, `ς` and `σ`).
fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    path.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}
