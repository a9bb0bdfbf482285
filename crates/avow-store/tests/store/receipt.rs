//! Receipts: read back whole or not at all, and standing only while no promised blob was touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, Receipt, RunLock, index};
use tempfile::TempDir;

fn project(folder: &TempDir) -> (Project, FileBlobs) {
    let project = Project::at(folder.path());
    project.create().unwrap();
    let blobs = FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default()));
    (project, blobs)
}

fn receipt(blobs: &FileBlobs, contents: &[Vec<u8>]) -> Receipt {
    let digests: Vec<BlobDigest> = contents.iter().map(|bytes| blobs.put(bytes).unwrap()).collect();
    blobs.sync().unwrap();
    let blobs = blobs.vouch(&digests).unwrap().unwrap();
    Receipt { members: 2, hits: b"{}\n{}\n".to_vec(), blobs }
}

fn name() -> BlobDigest {
    BlobDigest::of(b"name")
}

fn file(project: &Project) -> PathBuf {
    project.cache().join(format!("settled-{}", name()))
}

#[test]
fn what_is_kept_is_read_back_and_damage_makes_it_absent() {
    let folder = tempfile::tempdir().unwrap();
    let (project, blobs) = project(&folder);
    let receipt = receipt(&blobs, &[b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(Receipt::open(&project, name()), None);
    receipt.keep(&project, name());
    assert_eq!(Receipt::open(&project, name()), Some(receipt));
    let whole = fs::read(file(&project)).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(file(&project), &damaged).unwrap();
        assert_eq!(Receipt::open(&project, name()), None, "byte {at}");
        fs::write(file(&project), &whole[..at]).unwrap();
        assert_eq!(Receipt::open(&project, name()), None, "{at} bytes");
    }
}

#[test]
fn it_stands_until_a_blob_is_touched_or_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (_, blobs) = project(&folder);
    // So many that the looks are shared by threads.
    let contents: Vec<Vec<u8>> = (0..2_500u32).map(|i| i.to_string().into_bytes()).collect();
    let receipt = receipt(&blobs, &contents);
    assert!(receipt.stands(&blobs));
    let last = blobs.path(receipt.blobs[receipt.blobs.len() - 1].0);
    fs::set_permissions(&last, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(!receipt.stands(&blobs), "its change time is another");
    fs::remove_file(&last).unwrap();
    assert!(!receipt.stands(&blobs));
}

#[test]
fn only_what_is_known_to_be_sound_and_durable_is_vouched_for() {
    let folder = tempfile::tempdir().unwrap();
    let (_, blobs) = project(&folder);
    let there = blobs.put(b"there").unwrap();
    assert_eq!(blobs.vouch(&[there]).unwrap(), None, "not durable yet");
    blobs.sync().unwrap();
    assert_eq!(blobs.vouch(&[there, there]).unwrap().map(|all| all.len()), Some(1));
    assert_eq!(blobs.vouch(&[there, BlobDigest::of(b"absent")]).unwrap(), None);
}

#[test]
fn an_index_that_is_built_anew_has_no_receipts() {
    let folder = tempfile::tempdir().unwrap();
    let (project, blobs) = project(&folder);
    receipt(&blobs, &[b"a".to_vec()]).keep(&project, name());
    let lock = RunLock::acquire(&project, |_| std::ops::ControlFlow::Break(())).unwrap();
    drop(index::open_index(&project, &lock).unwrap());
    assert_eq!(Receipt::open(&project, name()), None);
}
