//! The texts that are taken out, and finding them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::super::error::{BundleError, Context};
use super::salted;

/// Shorter texts stand in everything.
const SHORTEST: usize = 3;
/// A file is gone through in pieces of so many bytes.
const PIECE: usize = 1 << 20;

/// Names, hosts, paths and addresses, the longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(Vec<String>);

impl Texts {
    /// Of these; those that are too short to be told from other words are left out.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Texts {
        let mut all: Vec<String> = texts.into_iter().map(|text| text.trim().to_owned()).collect();
        all.retain(|text| text.chars().count() >= SHORTEST);
        all.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        Texts(all)
    }

    /// All, sorted.
    pub fn all(&self) -> Vec<String> {
        let mut all = self.0.clone();
        all.sort();
        all
    }

    /// Where the first of them stands in some bytes, and which.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        let places = self.0.iter().filter_map(|text| Some((place(bytes, text)?, text.as_str())));
        places.min_by_key(|(at, text)| (*at, usize::MAX - text.len()))
    }

    /// Whether one of them stands in a file.
    pub(super) fn stands_in(&self, path: &Path) -> Result<bool, BundleError> {
        // What is cut in two between pieces is whole in the next: each begins with the end of the one before.
        let overlap = self.0.first().map_or(0, |longest| longest.len() + 2);
        let mut file = File::open(path).context("open", path)?;
        let (mut piece, mut kept) = (vec![0; PIECE + overlap], 0);
        loop {
            let read = file.read(&mut piece[kept..]).context("read", path)?;
            let filled = kept + read;
            if self.find(&piece[..filled]).is_some() {
                return Ok(true);
            }
            if read == 0 {
                return Ok(false);
            }
            let from = filled.saturating_sub(overlap);
            piece.copy_within(from..filled, 0);
            kept = filled - from;
        }
    }

    /// A text with each of them replaced by a name that says nothing and is the same for the same text.
    pub(super) fn replaced(&self, text: &str, nonce: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((at, found)) = self.find(rest.as_bytes()) {
            out.push_str(&rest[..at]);
            out.push_str(&stand_in("name", found, nonce));
            rest = &rest[at + found.len()..];
        }
        out.push_str(rest);
        out
    }
}

/// What stands for a text.
pub(super) fn stand_in(kind: &str, text: &str, nonce: &str) -> String {
    format!("{kind}-{}", &salted(nonce, kind, text.as_bytes())[..8])
}

/// Where a text stands as a word of its own: `ada` is not in `canada`.
fn place(bytes: &[u8], text: &str) -> Option<usize> {
    let wanted = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80;
    let edge = |inner: Option<&u8>, outer: Option<&u8>| match (inner, outer) {
        (Some(inner), Some(outer)) => !(is_word(*inner) && is_word(*outer)),
        _ => true,
    };
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&bytes[from..], wanted).map(|at| at + from) {
        let end = at + wanted.len();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        if edge(wanted.first(), before) && edge(wanted.last(), bytes.get(end)) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Texts;

    fn texts() -> Texts {
        Texts::new(["ada", "/home/ada", "ada@example.org", "Ada Lovelace", "x", " "].map(str::to_owned))
    }

    #[test]
    fn whole_words_are_found_and_parts_of_words_are_not() {
        let found = |text: &str| texts().find(text.as_bytes()).map(|(at, text)| (at, text.to_owned()));
        assert_eq!(found("by ada."), Some((3, "ada".to_owned())));
        assert_eq!(found("in Canada, adas"), None);
        assert_eq!(found("cd /home/ada/x"), Some((3, "/home/ada".to_owned())));
        assert_eq!(found("to ada@example.org"), Some((3, "ada@example.org".to_owned())));
        assert_eq!(found("the letter x"), None);
    }

    #[test]
    fn every_place_is_replaced_and_by_the_same() {
        let replaced = texts().replaced("ada, /home/ada/data, ada; Ada Lovelace", "salt");
        assert!(!replaced.contains("ada") && !replaced.contains("Lovelace"), "{replaced}");
        let first = replaced.split(',').next().map(str::to_owned).unwrap_or_default();
        assert!(replaced.contains(&format!("/data, {first};")), "{replaced}");
        assert_ne!(replaced, texts().replaced("ada, /home/ada/data, ada; Ada Lovelace", "pepper"));
    }

    #[test]
    fn a_text_across_two_pieces_of_a_file_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        for before in [super::PIECE - 2, super::PIECE, super::PIECE + 11, 0] {
            std::fs::write(&path, [vec![b'.'; before], b"ada@example.org".to_vec(), vec![b'.'; 9]].concat())
                .expect("written");
            assert!(texts().stands_in(&path).expect("read"), "{before}");
        }
        std::fs::write(&path, vec![b'a'; 3 * super::PIECE]).expect("written");
        assert!(!texts().stands_in(&path).expect("read"));
    }
}
