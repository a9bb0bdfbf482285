//! A folder as a record: sorted paths with what is at each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::{BlobDigest, TreeDigest};

/// What is at one path of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A file.
    File {
        /// Its content.
        digest: BlobDigest,
        /// Whether its owner may execute it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
    },
    /// A symbolic link that stays inside the tree.
    Link {
        /// The text of the link, relative to the link's own folder.
        target: String,
    },
    /// A folder that holds nothing.
    Empty,
    /// A folder by its own record (used where folders are gathered).
    Tree {
        /// The record.
        digest: TreeDigest,
    },
}

/// Why a path or link cannot be part of a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Empty, absolute, with `.`, `..` or an empty segment.
    #[error("`{0}` is not a plain relative path")]
    NotRelative(String),
    /// A control character in a name.
    #[error("`{}` holds a control character", .0.escape_debug())]
    Control(String),
    /// A link that leads out of the tree.
    #[error("the link `{path}` leads outside its folder, to `{target}`")]
    Escapes {
        /// The link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A link that climbs after a name. The name may itself be a link, and then nobody can tell from the
    /// text where `..` leads.
    #[error("the link `{path}` goes up after a name, to `{target}`")]
    Winding {
        /// The link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A path below something that is no folder with its own entries here: writing it out would go through a
    /// link, or need a file to be a folder.
    #[error("`{path}` lies below `{above}`, which is an entry of its own")]
    Below {
        /// The path.
        path: String,
        /// The entry above it.
        above: String,
    },
}

/// Sorted `(path, entry)` pairs; paths are relative, with `/` between plain segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree {
    /// The entries.
    pub entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// Adds an entry after checking its path, its place among the others, and a link's target. An entry at
    /// the same path is replaced.
    pub fn insert(&mut self, path: &str, entry: Entry) -> Result<(), PathError> {
        self.check_entry(path, &entry)?;
        self.entries.insert(path.to_owned(), entry);
        Ok(())
    }

    /// Checks every entry again, for a tree that came from elsewhere. What passes can be written out below a
    /// folder without leaving it.
    pub fn check(&self) -> Result<(), PathError> {
        self.entries.iter().try_for_each(|(path, entry)| self.check_entry(path, entry))
    }

    fn check_entry(&self, path: &str, entry: &Entry) -> Result<(), PathError> {
        check_path(path)?;
        if let Entry::Link { target } = entry {
            check_link(path, target)?;
        }
        let below =
            |path: &str, above: &str| PathError::Below { path: path.to_owned(), above: above.to_owned() };
        let mut prefixes = path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(above) = prefixes.find(|prefix| self.entries.contains_key(*prefix)) {
            return Err(below(path, above));
        }
        let folder = format!("{path}/");
        match self.entries.range(folder.clone()..).next() {
            Some((inner, _)) if inner.starts_with(&folder) => Err(below(inner, path)),
            _ => Ok(()),
        }
    }
}

/// Whether `path` is relative, plain and free of control characters.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if path.chars().any(char::is_control) {
        return Err(PathError::Control(path.to_owned()));
    }
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(PathError::NotRelative(path.to_owned()));
    }
    Ok(())
}

fn check_link(path: &str, target: &str) -> Result<(), PathError> {
    let escapes = || PathError::Escapes { path: path.to_owned(), target: target.to_owned() };
    if target.chars().any(char::is_control) {
        return Err(PathError::Control(target.to_owned()));
    }
    if target.is_empty() || target.starts_with('/') {
        return Err(escapes());
    }
    // The folders above a link are folders, so leading `..` lead where the text says; a name after them may
    // be a link, but then that link stays inside too. So no order of links can lead out.
    let mut depth = path.split('/').count() - 1;
    let mut descends = false;
    for segment in target.split('/') {
        match segment {
            "" | "." => {}
            ".." if descends => {
                return Err(PathError::Winding { path: path.to_owned(), target: target.to_owned() });
            }
            ".." => depth = depth.checked_sub(1).ok_or_else(escapes)?,
            _ => descends = true,
        }
    }
    Ok(())
}
