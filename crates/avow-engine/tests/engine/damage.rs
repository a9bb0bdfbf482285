//! Blobs that went away or went bad under an attempt that could have been reused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use avow_model::canonical::Record;
use avow_model::digest::BlobDigest;
use avow_model::tree::{Entry, Tree};
use avow_store::BlobStore;

use crate::bench::Bench;

fn remove(bench: &Bench, blob: BlobDigest) {
    fs::remove_file(bench.project.blob(blob)).unwrap();
}

fn spoil(bench: &Bench, blob: BlobDigest) {
    let path = bench.project.blob(blob);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    fs::write(&path, "something else").unwrap();
}

fn quarantined(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.project.quarantine()).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_blob_that_is_gone_is_made_again() {
    let bench = Bench::new("a -> b -> c");
    bench.run();
    let blob = bench.blob("b");
    remove(&bench, blob);
    assert_eq!(bench.executes(), ["b"], "`c` still stands: its input has the same bytes");
    assert!(bench.open().blobs.contains(blob).unwrap());
    assert_eq!(bench.executes(), [""; 0]);
}

#[test]
fn a_damaged_blob_is_moved_aside_and_made_again() {
    let bench = Bench::new("a -> b");
    bench.run();
    let blob = bench.blob("a");
    spoil(&bench, blob);
    assert_eq!(bench.executes(), ["a"]);
    assert!(bench.open().blobs.contains(blob).unwrap());
    let aside = quarantined(&bench);
    assert!(matches!(aside.as_slice(), [name] if name.starts_with(&blob.to_string())), "{aside:?}");
    let kept = fs::read_to_string(bench.project.quarantine().join(&aside[0])).unwrap();
    assert_eq!(kept, "something else", "it is evidence");
}

#[test]
fn a_folder_stands_only_with_everything_in_it() {
    let mut plan = avow_testkit::plan("a");
    plan.stages[0].outputs.get_mut("out").unwrap().folder = true;
    let bench = Bench::of(plan);
    bench.run();
    let tree = bench.blob("a");
    let record = Tree::from_bytes(&bench.open().blobs.read(tree).unwrap()).unwrap();
    let Entry::File { digest: file, .. } = record.entries["file"] else { panic!("{record:?}") };
    assert_eq!(bench.executes(), [""; 0]);
    for blob in [tree, file] {
        remove(&bench, blob);
        assert_eq!(bench.executes(), ["a"]);
        spoil(&bench, blob);
        assert_eq!(bench.executes(), ["a"]);
    }
    assert_eq!(quarantined(&bench).len(), 2);
    assert_eq!(bench.executes(), [""; 0]);
}
