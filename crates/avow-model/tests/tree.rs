//! Trees: which paths and links can be part of one, so that writing it out cannot leave its folder.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_model::tree::{Entry, PathError, Tree, check_path};
use common::blob;

fn file() -> Entry {
    Entry::File { digest: blob("content"), executable: false }
}

fn link(path: &str, target: &str) -> Result<(), PathError> {
    Tree::default().insert(path, Entry::Link { target: target.to_owned() })
}

#[test]
fn plain_relative_paths_are_accepted() {
    for path in ["a", "a/b", "a b", "ü/é.txt", "...", ".hidden", "a..b", "-", "~", "a\\b"] {
        assert_eq!(check_path(path), Ok(()), "{path}");
    }
    for path in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a"] {
        assert_eq!(check_path(path), Err(PathError::NotRelative(path.to_owned())), "{path}");
    }
    for path in ["a\0", "a\nb", "\u{1b}[31m", "\u{85}"] {
        assert_eq!(check_path(path), Err(PathError::Control(path.to_owned())), "{path:?}");
    }
}

#[test]
fn links_stay_inside() {
    for (path, target) in
        [("l", "a"), ("l", "./a/b"), ("d/l", "../a"), ("d/e/l", "../../a/b"), ("d/l", ".."), ("l", ".")]
    {
        assert_eq!(link(path, target), Ok(()), "{path} -> {target}");
    }
    for (path, target) in
        [("l", ".."), ("l", "../a"), ("d/l", "../../a"), ("l", "/a"), ("l", ""), ("d/l", ".././../a")]
    {
        assert!(matches!(link(path, target), Err(PathError::Escapes { .. })), "{path} -> {target}");
    }
}

#[test]
fn links_cannot_lead_out_through_one_another() {
    // `d/up` is the folder itself, so `d/up/..` would be what is above it, though the text climbs no higher
    // than it descends.
    let mut tree = Tree::default();
    tree.insert("d/up", Entry::Link { target: "..".to_owned() }).unwrap();
    let out = tree.insert("out", Entry::Link { target: "d/up/..".to_owned() });
    assert!(matches!(out, Err(PathError::Winding { .. })));
    // The order of insertion makes no difference: the second link is refused for itself.
    assert!(matches!(link("out", "d/up/../etc"), Err(PathError::Winding { .. })));
    assert!(matches!(link("d/l", "../a/../.."), Err(PathError::Winding { .. })));
}

#[test]
fn nothing_lies_below_an_entry() {
    for above in [file(), Entry::Empty, Entry::Link { target: "elsewhere".to_owned() }] {
        let mut down = Tree::default();
        down.insert("a/b", above.clone()).unwrap();
        let below = PathError::Below { path: "a/b/c/d".to_owned(), above: "a/b".to_owned() };
        assert_eq!(down.insert("a/b/c/d", file()), Err(below.clone()));

        let mut up = Tree::default();
        up.insert("a/b/c/d", file()).unwrap();
        assert_eq!(up.insert("a/b", above.clone()), Err(below.clone()));

        up.entries.insert("a/b".to_owned(), above);
        assert_eq!(up.check(), Err(below));
    }
    // Names that only begin alike are neighbours.
    let mut tree = Tree::default();
    for path in ["a-b", "a", "a.b", "ab/c", "ab-c"] {
        tree.insert(path, file()).unwrap();
    }
    assert_eq!(tree.check(), Ok(()));
}

#[test]
fn an_entry_at_the_same_path_is_replaced() {
    let mut tree = Tree::default();
    tree.insert("a", file()).unwrap();
    tree.insert("a", Entry::Empty).unwrap();
    assert_eq!(tree.entries["a"], Entry::Empty);
}
