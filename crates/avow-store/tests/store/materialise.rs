//! Trees on disk again, and trees that try to get out.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::put_record;
use avow_store::materialise::{How, MaterialiseError, materialise, place, publish};
use avow_store::stamp::MemoryStamps;
use avow_store::{BlobStore, Ingest, Intake, MemoryBlobs};

use crate::fixture::Fixture;

fn entry(blobs: &dyn BlobStore, bytes: &[u8], executable: bool) -> Entry {
    Entry::File { digest: blobs.put(bytes).unwrap(), executable }
}

fn sample(blobs: &dyn BlobStore) -> Tree {
    let mut tree = Tree::default();
    tree.insert("a.txt", entry(blobs, b"a", false)).unwrap();
    tree.insert("sub/deep/b", entry(blobs, b"b", false)).unwrap();
    tree.insert("tool", entry(blobs, b"#!/bin/sh", true)).unwrap();
    tree.insert("empty", Entry::Empty).unwrap();
    tree.insert("sub/link", Entry::Link { target: "../a.txt".to_owned() }).unwrap();
    tree
}

#[test]
fn a_tree_comes_back_as_it_went() {
    let fixture = Fixture::new();
    let (files, memory) = (fixture.blobs(), MemoryBlobs::new());
    let stamps = MemoryStamps::default();
    for (name, blobs, how) in [
        ("copy", &files as &dyn BlobStore, How::Copy),
        ("memory", &memory, How::Copy),
        ("no-files", &memory, How::Link),
    ] {
        let tree = sample(blobs);
        let folder = fixture.project.root().join(name);
        materialise(blobs, &tree, &folder, how).unwrap();
        assert_eq!(Ingest::new(blobs, &stamps).hash_folder(&folder).unwrap().tree, tree);
        fs::write(folder.join("a.txt"), b"a copy can be written to").unwrap();
        assert_eq!(blobs.read(BlobDigest::of(b"a")).unwrap(), b"a");
    }
}

#[test]
fn links_lead_to_blobs_and_executables_are_copied() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let folder = fixture.project.root().join("linked");
    materialise(&blobs, &sample(&blobs), &folder, How::Link).unwrap();
    assert_eq!(fs::read_link(folder.join("a.txt")).unwrap(), blobs.path(BlobDigest::of(b"a")));
    assert_eq!(fs::read(folder.join("sub/link")).unwrap(), b"a");
    let tool = fs::symlink_metadata(folder.join("tool")).unwrap();
    assert!(tool.is_file() && tool.permissions().mode() & 0o100 != 0);
}

#[test]
fn a_damaged_blob_is_never_written_out() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let tree = sample(&blobs);
    crate::fixture::overwrite(&blobs.path(BlobDigest::of(b"a")), b"A");
    for how in [How::Copy, How::Link] {
        let folder = fixture.project.root().join(format!("{how:?}"));
        let error = materialise(&blobs, &tree, &folder, how).unwrap_err();
        assert!(matches!(error, MaterialiseError::Store(e) if e.is_unusable_blob()));
        assert!(!folder.join("a.txt").exists());
    }
}

#[test]
fn a_tree_that_would_get_out_is_refused_before_anything_is_written() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let evil = entry(&blobs, b"evil", false);
    let link = |target: &str| Entry::Link { target: target.to_owned() };
    let trees: [&[(&str, Entry)]; 8] = [
        &[("../x", evil.clone())],
        &[("/x", evil.clone())],
        &[("a/../../x", evil.clone())],
        &[("l", link("/etc"))],
        &[("l", link("../../x"))],
        &[("d", link("e")), ("d/x", evil.clone())],
        &[("a/b", link("..")), ("c", link("a/b/../x"))],
        &[("a/b", link("..")), ("c", link("a/b")), ("d", link("c/.."))],
    ];
    for (i, entries) in trees.iter().enumerate() {
        // Straight into the map: such a tree does not come from `insert`.
        let tree = Tree { entries: entries.iter().map(|(p, e)| ((*p).to_owned(), e.clone())).collect() };
        let folder = fixture.project.root().join(format!("t{i}"));
        let error = materialise(&blobs, &tree, &folder, How::Copy).unwrap_err();
        assert!(matches!(error, MaterialiseError::Path(_)), "{i}: {error:?}");
        assert!(!folder.exists(), "{i}");
    }
}

#[test]
fn nothing_is_written_through_links_that_lie_there() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let root = fixture.project.root();
    let outside = root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(root.join("work")).unwrap();
    symlink(&outside, root.join("work/sub")).unwrap();
    symlink(outside.join("file"), root.join("work/a.txt")).unwrap();
    let mut below = Tree::default();
    below.insert("sub/x", entry(&blobs, b"x", false)).unwrap();
    let mut at = Tree::default();
    at.insert("a.txt", entry(&blobs, b"x", false)).unwrap();
    for tree in [below, at] {
        let error = materialise(&blobs, &tree, &root.join("work"), How::Copy).unwrap_err();
        assert!(matches!(error, MaterialiseError::Exists { .. }), "{error:?}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(place(&blobs, Artifact::Blob(BlobDigest::of(b"x")), root, "../x", How::Copy).is_err());
}

#[test]
fn trees_inside_trees_are_laid_out_and_bombs_are_not() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let inner = put_record(&blobs, &sample(&blobs)).unwrap();
    let mut outer = Tree::default();
    outer.insert("0000", Entry::Tree { digest: inner }).unwrap();
    outer.insert("0001", Entry::Tree { digest: put_record(&blobs, &Tree::default()).unwrap() }).unwrap();
    outer.insert("index.json", entry(&blobs, b"[]", false)).unwrap();
    let gathered = Artifact::Tree(put_record(&blobs, &outer).unwrap());
    let root = fixture.project.root();
    fs::create_dir(root.join("work")).unwrap();
    place(&blobs, gathered, &root.join("work"), "inputs/all", How::Link).unwrap();
    assert_eq!(fs::read(root.join("work/inputs/all/0000/sub/link")).unwrap(), b"a");
    assert!(root.join("work/inputs/all/0001").is_dir());

    // Ten thousand million files in eleven records.
    let mut bomb = sample(&blobs);
    for _ in 0..40 {
        let digest = put_record(&blobs, &bomb).unwrap();
        bomb = Tree::default();
        bomb.insert("x", Entry::Tree { digest }).unwrap();
    }
    let error = materialise(&blobs, &bomb, &root.join("bomb"), How::Copy).unwrap_err();
    assert!(matches!(error, MaterialiseError::TooLarge));

    // A link may not lead from one gathered tree into its neighbour.
    let nosy =
        Tree { entries: [("l".to_owned(), Entry::Link { target: "../0000/a.txt".to_owned() })].into() };
    let digest = put_record(&blobs, &nosy).unwrap();
    outer.insert("0002", Entry::Tree { digest }).unwrap();
    assert!(materialise(&blobs, &outer, &root.join("nosy"), How::Copy).is_err());
}

#[test]
fn publishing_appears_at_once_and_overwrites_only_on_request() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let root = fixture.project.root();
    let file = fixture.write("in", b"model");
    let (digest, _) = blobs.put_file(&file, Intake::Copy).unwrap();
    let target = root.join("out/model.bin");
    publish(&blobs, Artifact::Blob(digest), &target, false).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"model");
    fs::write(&target, b"mine").unwrap();
    let again = publish(&blobs, Artifact::Blob(digest), &target, false);
    assert!(matches!(again, Err(MaterialiseError::Exists { .. })));
    assert_eq!(fs::read(&target).unwrap(), b"mine");
    publish(&blobs, Artifact::Blob(digest), &target, true).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"model");

    let tree = Artifact::Tree(put_record(&blobs, &sample(&blobs)).unwrap());
    publish(&blobs, tree, &root.join("out/tree"), false).unwrap();
    assert!(matches!(
        publish(&blobs, tree, &root.join("out/tree"), true),
        Err(MaterialiseError::Exists { .. })
    ));
    let missing = Artifact::Blob(BlobDigest::of(b"nowhere"));
    assert!(publish(&blobs, missing, &root.join("out/none"), false).is_err());
    let names: Vec<_> = fs::read_dir(root.join("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "no leftovers: {names:?}");
}
