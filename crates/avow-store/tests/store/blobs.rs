//! One suite for every blob store, then what only files can suffer.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use avow_model::digest::BlobDigest;
use avow_store::stamp::{FileStamp, MemoryStamps, StampCache};
use avow_store::{BlobStore, Fault, FileBlobs, Intake, MemoryBlobs, StoreError};

use crate::fixture::{Fixture, overwrite};

/// Sizes with the reason each is there: nothing, one byte, one BLAKE3 chunk and its neighbours, the limit up to
/// which files are copied in memory and its neighbours, more than one copied piece.
const SIZES: [usize; 9] = [0, 1, 1023, 1024, 1025, 256 << 10, (256 << 10) + 1, 1 << 20, (4 << 20) + 7];

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 31 % 251) as u8).collect()
}

fn suite(blobs: &dyn BlobStore, fixture: &Fixture) {
    let absent = BlobDigest::of(b"nobody put this");
    assert!(!blobs.contains(absent).unwrap());
    assert!(matches!(blobs.read(absent), Err(StoreError::Missing { digest }) if digest == absent));
    assert!(matches!(blobs.open_path(absent), Err(StoreError::Missing { .. })));
    assert_eq!(blobs.size(absent).unwrap(), None);
    assert_eq!(blobs.quarantine(absent).unwrap(), None);
    blobs.sync().unwrap();

    let mut all = Vec::new();
    for size in SIZES {
        let bytes = content(size);
        let expected = BlobDigest::of(&bytes);
        let file = fixture.write("in", &bytes);
        match size % 3 {
            0 => assert_eq!(blobs.put(&bytes).unwrap(), expected),
            1 => {
                let stored = blobs.put_file(&file, Intake::Copy).unwrap();
                assert_eq!(stored, (expected, size as u64));
                assert!(file.exists());
            }
            _ => {
                let stored = blobs.put_file(&file, Intake::Move).unwrap();
                assert_eq!(stored, (expected, size as u64));
                assert!(!file.exists());
            }
        }
        assert!(blobs.contains(expected).unwrap());
        assert_eq!(blobs.read(expected).unwrap(), bytes);
        assert_eq!(blobs.size(expected).unwrap(), Some(size as u64));
        if let Some(path) = blobs.open_path(expected).unwrap() {
            assert_eq!(fs::read(path).unwrap(), bytes);
        }
        assert_eq!(blobs.put(&bytes).unwrap(), expected, "a second put changes nothing");
        all.push(expected);
    }
    blobs.sync().unwrap();
    all.sort();
    assert_eq!(blobs.list().unwrap(), all);

    blobs.quarantine(all[0]).unwrap();
    assert!(!blobs.contains(all[0]).unwrap());
    assert_eq!(blobs.list().unwrap(), all[1..]);

    let link = fixture.project.root().join("link");
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    assert!(matches!(blobs.put_file(&link, Intake::Copy), Err(StoreError::NotAFile { .. })));
    let missing = fixture.project.root().join("missing");
    let error = blobs.put_file(&missing, Intake::Copy).unwrap_err();
    assert_eq!((error.fault(), error.io_kind()), (Fault::Machine, Some(std::io::ErrorKind::NotFound)));
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn file_blobs_keep_the_contract() {
    let fixture = Fixture::new();
    suite(&fixture.blobs(), &fixture);
}

#[test]
fn memory_blobs_keep_the_contract() {
    suite(&MemoryBlobs::new(), &Fixture::new());
}

#[test]
fn memory_blobs_notice_damage() {
    let blobs = MemoryBlobs::new();
    let digest = blobs.put(b"right").unwrap();
    blobs.damage(digest, b"wrong");
    assert!(matches!(blobs.read(digest), Err(StoreError::Corrupt { .. })));
    assert!(blobs.contains(digest).is_err());
}

#[test]
fn blobs_are_read_only_files_named_by_their_digest() {
    let fixture = Fixture::new();
    for size in [10, 1 << 20] {
        let bytes = content(size);
        let (digest, _) = fixture.blobs().put_file(&fixture.write("in", &bytes), Intake::Move).unwrap();
        let hex = digest.to_string();
        let path = fixture.project.root().join(".avow/blobs").join(&hex[..2]).join(&hex[2..]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
        assert_eq!(fs::read(path).unwrap(), bytes);
    }
}

#[test]
fn a_flipped_byte_is_noticed_named_and_healed() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let digest = blobs.put(b"evidence").unwrap();
    blobs.sync().unwrap();
    overwrite(&blobs.path(digest), b"evidencE");

    let error = blobs.read(digest).unwrap_err();
    assert!(error.to_string().contains(&digest.to_string()), "{error}");
    assert_eq!(error.fault(), Fault::Evidence);
    assert!(blobs.contains(digest).unwrap_err().is_unusable_blob());
    assert!(blobs.open_path(digest).unwrap_err().is_unusable_blob());

    assert_eq!(blobs.put(b"evidence").unwrap(), digest);
    assert_eq!(blobs.read(digest).unwrap(), b"evidence");
    let aside: Vec<_> = fs::read_dir(fixture.project.quarantine()).unwrap().collect();
    assert_eq!(aside.len(), 1, "the damaged bytes are kept");
    assert_eq!(fs::read(aside[0].as_ref().unwrap().path()).unwrap(), b"evidencE");
}

#[test]
fn what_a_power_cut_leaves_is_not_believed() {
    // The name survived, the content did not: short, or empty.
    for rest in [&b""[..], b"evid", b"\0\0\0\0\0\0\0\0"] {
        let fixture = Fixture::new();
        let digest = fixture.blobs().put(b"evidence").unwrap();
        overwrite(&fixture.project.blob(digest), rest);
        let next = fixture.blobs();
        assert!(next.contains(digest).unwrap_err().is_unusable_blob());
        let file = fixture.write("again", b"evidence");
        assert_eq!(next.put_file(&file, Intake::Move).unwrap().0, digest);
        assert!(next.contains(digest).unwrap());
    }
}

#[test]
fn a_crash_before_the_rename_leaves_no_blob_and_is_cleared() {
    let fixture = Fixture::new();
    let dead = fixture.project.temporary().join("dead");
    fs::create_dir_all(&dead).unwrap();
    fs::write(dead.join("0"), b"half of some").unwrap();
    let blobs = fixture.blobs();
    let digest = blobs.put(b"by a living process").unwrap();
    assert_eq!(blobs.list().unwrap(), [digest]);

    assert_eq!(fixture.project.clear_temporary().unwrap(), 1);
    assert!(!dead.exists());
    blobs.put(b"its folder is still there").unwrap();
}

#[test]
fn a_foreign_thing_under_a_blobs_name_is_refused() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let digest = BlobDigest::of(b"bytes");
    let path = blobs.path(digest);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert!(blobs.read(digest).unwrap_err().is_unusable_blob());
    assert!(blobs.contains(digest).is_err());
    assert_eq!(blobs.put(b"bytes").unwrap(), digest);
    assert!(!path.is_symlink());
    assert_eq!(blobs.read(digest).unwrap(), b"bytes");
}

#[test]
fn a_hard_linked_file_is_copied_even_when_moved() {
    let fixture = Fixture::new();
    let file = fixture.write("out", &content(1 << 20));
    let other = fixture.project.root().join("other-name");
    fs::hard_link(&file, &other).unwrap();
    let blobs = fixture.blobs();
    let (digest, _) = blobs.put_file(&file, Intake::Move).unwrap();
    assert_ne!(fs::metadata(blobs.path(digest)).unwrap().ino(), fs::metadata(&other).unwrap().ino());
    fs::write(&other, b"written through the other name").unwrap();
    assert!(blobs.contains(digest).unwrap());
    assert_eq!(blobs.read(digest).unwrap(), content(1 << 20));
}

#[test]
fn a_file_is_moved_without_a_copy_and_remembered_where_nobody_writes_it() {
    for size in [1, 5000, 1 << 20] {
        let fixture = Fixture::new();
        let file = fixture.write("out", &content(size));
        let inode = fs::metadata(&file).unwrap().ino();
        let stamps = Arc::new(MemoryStamps::default());
        let blobs = FileBlobs::new(fixture.project.clone(), Arc::clone(&stamps) as Arc<dyn StampCache>);
        let (digest, _) = blobs.put_file(&file, Intake::Move).unwrap();
        let about = fs::metadata(blobs.path(digest)).unwrap();
        assert_eq!(about.ino(), inode);
        blobs.sync().unwrap();
        assert_eq!(stamps.cached_digest(FileStamp::of(&about)).unwrap(), Some(digest), "{size}");
        assert_eq!(fs::read_dir(fixture.project.temporary()).unwrap().count(), 1);
    }
}

#[test]
fn a_writer_that_outlives_the_move_is_noticed() {
    use std::io::{Seek, Write};
    let fixture = Fixture::new();
    let path = fixture.write("out", &content(1 << 20));
    let mut survivor = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let blobs = fixture.blobs();
    let (digest, _) = blobs.put_file(&path, Intake::Move).unwrap();
    survivor.seek(std::io::SeekFrom::Start(100)).unwrap();
    survivor.write_all(b"late").unwrap();
    assert!(blobs.contains(digest).unwrap_err().is_unusable_blob());

    // A small file is not worth that risk: it is copied as soon as anybody can still write it.
    let path = fixture.write("small", b"evidence");
    let mut survivor = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let (digest, _) = blobs.put_file(&path, Intake::Move).unwrap();
    assert!(!path.exists());
    survivor.write_all(b"late").unwrap();
    assert_eq!(blobs.read(digest).unwrap(), b"evidence");
    assert!(blobs.contains(digest).unwrap());
}

#[test]
fn a_verified_blob_is_trusted_until_its_metadata_change() {
    // A memory that claims a wrong digest for the file's stamp: only if it is asked, the damage goes unseen.
    let fixture = Fixture::new();
    let digest = fixture.blobs().put(b"evidence").unwrap();
    let path = fixture.project.blob(digest);
    overwrite(&path, b"EVIDENCE");
    let stamps = Arc::new(MemoryStamps::default());
    let stamp = FileStamp::of(&fs::metadata(&path).unwrap());
    stamps.remember_digests(&[(stamp, digest)]).unwrap();
    let blobs = FileBlobs::new(fixture.project.clone(), stamps);
    assert!(blobs.contains(digest).unwrap(), "trusted by its stamp");
    assert!(blobs.read(digest).is_err(), "reading never trusts");
    assert!(blobs.verify(digest).is_err(), "verifying never trusts");
    overwrite(&path, b"eVIDENCE");
    assert!(blobs.contains(digest).is_err(), "another stamp, so it was hashed");
}

#[test]
fn a_blob_is_remembered_only_after_the_sync() {
    let fixture = Fixture::new();
    let stamps = Arc::new(MemoryStamps::default());
    let blobs = FileBlobs::new(fixture.project.clone(), Arc::clone(&stamps) as Arc<dyn StampCache>);
    let digest = blobs.put(b"evidence").unwrap();
    let stamp = FileStamp::of(&fs::metadata(blobs.path(digest)).unwrap());
    assert_eq!(stamps.cached_digest(stamp).unwrap(), None);
    blobs.sync().unwrap();
    assert_eq!(stamps.cached_digest(stamp).unwrap(), Some(digest));
}

#[test]
fn many_threads_put_the_same_blobs() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..100u32 {
                    blobs.put(&i.to_le_bytes()).unwrap();
                }
                blobs.sync().unwrap();
            });
        }
    });
    let list = blobs.list().unwrap();
    assert_eq!(list.len(), 100);
    assert!(list.iter().all(|digest| blobs.contains(*digest).unwrap()));
}
