//! What an attempt was seen to read beyond what it was given.
//!
//! Under the confinement `observe` every read is recorded: the attempt may be reused only while each of them
//! still gives the same. Paths are spelled so that a record holds on another machine and for another person:
//! from the project's root, from the home as `~/…`, otherwise whole. A path of the project that begins with `~`
//! is spelled `./~…`.
//!
//! Files of installed software (the system, an interpreter, its packages) are a record of their own: it is large,
//! the same for most attempts of a run, and so stored once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::{BlobDigest, ReadsDigest};

/// Everything that was read, by the spelling of its path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// What was found.
    pub seen: BTreeMap<String, Seen>,
    /// The same for installed software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<ReadsDigest>,
}

/// What was found at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// A file with this content.
    File(BlobDigest),
    /// A folder whose names were listed; the digest is of the sorted names, a line each.
    Names(BlobDigest),
    /// Nothing, though it was looked for.
    Absent,
    /// Something that could not be read again for the record, so no later look can match it.
    Unknown,
}

/// What has become of something that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its spelling.
    pub path: String,
    /// How it is not as it was.
    pub how: Drifted,
}

/// How something that was read is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drifted {
    /// It holds something else.
    Changed,
    /// It is not there any more.
    Gone,
    /// It was not there, and is now.
    Appeared,
    /// Nobody can say: it could not be recorded then, or cannot be read now.
    Unknown,
}

impl Seen {
    /// How what is there `now` differs; `None` where it does not.
    pub fn drifted(self, now: Seen) -> Option<Drifted> {
        match (self, now) {
            (Seen::Unknown, _) | (_, Seen::Unknown) => Some(Drifted::Unknown),
            (then, now) if then == now => None,
            (_, Seen::Absent) => Some(Drifted::Gone),
            (Seen::Absent, _) => Some(Drifted::Appeared),
            _ => Some(Drifted::Changed),
        }
    }
}

/// The digest of a folder's names, in any order.
pub fn names_digest(mut names: Vec<Vec<u8>>) -> BlobDigest {
    names.sort_unstable();
    let lines: Vec<u8> = names.into_iter().flat_map(|name| name.into_iter().chain([0])).collect();
    BlobDigest::of(&lines)
}

/// How an absolute path is spelled in a record, `project` and `home` being absolute without a slash at the end.
pub fn spell(path: &str, project: &str, home: &str) -> String {
    let inside = |root: &str| {
        let rest = path.strip_prefix(root)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    };
    match (inside(project), inside(home)) {
        (Some(""), _) => ".".to_owned(),
        (Some(rest), _) if rest.starts_with('~') => format!("./{rest}"),
        (Some(rest), _) => rest.to_owned(),
        (None, Some("")) => "~".to_owned(),
        (None, Some(rest)) if !home.is_empty() => format!("~/{rest}"),
        _ => path.to_owned(),
    }
}

/// The absolute path of a spelling.
pub fn resolve(spelling: &str, project: &str, home: &str) -> String {
    match spelling {
        "." => project.to_owned(),
        "~" => home.to_owned(),
        _ if spelling.starts_with('/') => spelling.to_owned(),
        _ => match spelling.strip_prefix("~/") {
            Some(rest) => format!("{home}/{rest}"),
            None => format!("{project}/{}", spelling.strip_prefix("./").unwrap_or(spelling)),
        },
    }
}

/// Whether a spelling names something of the project.
pub fn is_of_project(spelling: &str) -> bool {
    !spelling.starts_with('/') && spelling != "~" && !spelling.starts_with("~/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spelling_leads_back_to_its_path() {
        let pairs = [
            ("/home/a/p/data/x.csv", "data/x.csv"),
            ("/home/a/p", "."),
            ("/home/a/p/~odd", "./~odd"),
            ("/home/a/notes", "~/notes"),
            ("/home/a", "~"),
            ("/home/ab/c", "/home/ab/c"),
            ("/data/x", "/data/x"),
        ];
        for (path, spelling) in pairs {
            assert_eq!(spell(path, "/home/a/p", "/home/a"), spelling);
            assert_eq!(resolve(spelling, "/home/a/p", "/home/a"), path);
        }
        assert!(
            is_of_project("./~odd") && is_of_project("x") && !is_of_project("~/x") && !is_of_project("/x")
        );
    }

    #[test]
    fn names_are_told_apart_and_their_order_is_not() {
        let names = |names: &[&str]| names_digest(names.iter().map(|n| n.as_bytes().to_vec()).collect());
        assert_eq!(names(&["a", "b"]), names(&["b", "a"]));
        assert_ne!(names(&["a", "b"]), names(&["ab"]));
    }
}
