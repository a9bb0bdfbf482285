//! Tree rules, and when a file is hashed again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, PathError, Tree};
use avow_store::blob::read_record;
use avow_store::ingest::{Collision, IngestError, collisions};
use avow_store::stamp::{FileStamp, MemoryStamps, StampCache, now};
use avow_store::{BlobStore, Ingest, Intake, MemoryBlobs, StoreError};

use crate::fixture::Fixture;

/// A cache that counts what it did not know: how often something had to be hashed.
#[derive(Default)]
struct Counting {
    stamps: MemoryStamps,
    misses: Mutex<usize>,
}

impl StampCache for Counting {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let found = self.stamps.cached_digest(stamp)?;
        *self.misses.lock().unwrap() += usize::from(found.is_none());
        Ok(found)
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.stamps.remember_digests(entries)
    }
}

impl Counting {
    fn misses(&self) -> usize {
        std::mem::take(&mut *self.misses.lock().unwrap())
    }
}

/// Waits until a file's stamp is settled, so that what follows does not depend on how fast the test runs.
fn settle(path: &Path) {
    while !FileStamp::of(&fs::metadata(path).unwrap()).settled(now()) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn file(bytes: &[u8]) -> Entry {
    Entry::File { digest: BlobDigest::of(bytes), executable: false }
}

#[test]
fn a_folder_becomes_the_tree_of_what_is_in_it() {
    let fixture = Fixture::new();
    fixture.write("data/a.txt", b"a");
    fixture.write("data/sub/b.txt", b"bb");
    let tool = fixture.write("data/tool", b"#!/bin/sh");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(fixture.project.root().join("data/empty/inner")).unwrap();
    symlink("sub/b.txt", fixture.project.root().join("data/inside")).unwrap();
    symlink("../a.txt", fixture.project.root().join("data/sub/up")).unwrap();

    let blobs = MemoryBlobs::new();
    let stamps = MemoryStamps::default();
    let ingest = Ingest::new(&blobs, &stamps);
    let hashed = ingest.hash_folder(&fixture.project.root().join("data")).unwrap();
    assert!(blobs.list().unwrap().is_empty(), "hashing stores nothing");
    let stored = ingest.store_folder(&fixture.project.root().join("data"), Intake::Copy).unwrap();
    assert_eq!(hashed, stored);

    let mut expected = Tree::default();
    expected.insert("a.txt", file(b"a")).unwrap();
    expected.insert("sub/b.txt", file(b"bb")).unwrap();
    let executable = Entry::File { digest: BlobDigest::of(b"#!/bin/sh"), executable: true };
    expected.insert("tool", executable).unwrap();
    expected.insert("empty/inner", Entry::Empty).unwrap();
    expected.insert("inside", Entry::Link { target: "sub/b.txt".to_owned() }).unwrap();
    expected.insert("sub/up", Entry::Link { target: "../a.txt".to_owned() }).unwrap();
    assert_eq!(stored.tree, expected);
    assert_eq!((stored.size, stored.digest), (12, expected.digest()));
    assert_eq!(read_record::<Tree>(&blobs, stored.digest).unwrap(), expected);
    assert!(blobs.contains(BlobDigest::of(b"bb")).unwrap());
    assert_eq!(ingest.hash(&tool).unwrap(), Artifact::Blob(BlobDigest::of(b"#!/bin/sh")));
}

#[test]
fn what_no_tree_can_hold_is_an_error_that_names_it() {
    let fixture = Fixture::new();
    let blobs = MemoryBlobs::new();
    let stamps = MemoryStamps::default();
    let ingest = Ingest::new(&blobs, &stamps);
    let root = fixture.project.root();
    let folder = |name: &str| {
        let path = root.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let escape = |result: Result<_, IngestError>| match result.unwrap_err() {
        IngestError::Path {
            source: PathError::Escapes { path, .. } | PathError::Winding { path, .. },
            ..
        } => path,
        other => panic!("{other:?}"),
    };

    symlink("../secret", folder("up").join("l")).unwrap();
    assert_eq!(escape(ingest.hash_folder(&root.join("up"))), "l");
    symlink("/etc/passwd", folder("absolute").join("l")).unwrap();
    assert_eq!(escape(ingest.hash_folder(&root.join("absolute"))), "l");
    // Each text stays inside; the way through both does not.
    fs::create_dir_all(root.join("chain/a")).unwrap();
    symlink("..", root.join("chain/a/b")).unwrap();
    symlink("a/b/../secret", root.join("chain/c")).unwrap();
    assert_eq!(escape(ingest.hash_folder(&root.join("chain"))), "c");

    let mode = rustix_mode();
    rustix::fs::mknodat(rustix::fs::CWD, folder("fifo").join("pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    let error = ingest.hash_folder(&root.join("fifo")).unwrap_err();
    assert!(matches!(&error, IngestError::Special { path, kind: "fifo" } if path.ends_with("pipe")));
    assert!(error.is_about_content());

    fs::write(folder("control").join("a\nb"), b"").unwrap();
    let error = ingest.hash_folder(&root.join("control")).unwrap_err();
    assert!(matches!(error, IngestError::Path { source: PathError::Control(_), .. }));

    fs::write(folder("bytes").join(OsStr::from_bytes(b"\xff")), b"").unwrap();
    assert!(matches!(ingest.hash_folder(&root.join("bytes")), Err(IngestError::NotUtf8 { .. })));

    let whole = Fixture::new();
    assert!(matches!(ingest.hash_folder(whole.project.root()), Err(IngestError::Store { .. })));
    assert!(matches!(ingest.hash_file(&root.join("nothing")), Err(IngestError::Absent { .. })));
    assert!(matches!(ingest.hash_file(&root.join("up")), Err(IngestError::Kind { wanted: "file", .. })));
}

fn rustix_mode() -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode(0o600)
}

#[test]
fn names_that_elsewhere_are_one_are_warnings() {
    let fixture = Fixture::new();
    for name in
        ["d/README", "d/readme", "d/e\u{301}", "d/\u{e9}", "d/straße", "d/STRASSE", "d/A/x", "d/a/y", "d/b"]
    {
        fixture.write(name, b"");
    }
    let blobs = MemoryBlobs::new();
    let stamps = MemoryStamps::default();
    let folder = Ingest::new(&blobs, &stamps).hash_folder(&fixture.project.root().join("d")).unwrap();
    let pair = |first: &str, second: &str| Collision { first: first.to_owned(), second: second.to_owned() };
    let expected =
        [pair("A", "a"), pair("README", "readme"), pair("STRASSE", "straße"), pair("e\u{301}", "\u{e9}")];
    assert_eq!(folder.collisions, expected);
    assert!(collisions(&Tree::default()).is_empty());
}

#[test]
fn a_touched_file_is_hashed_again_and_has_the_same_name() {
    let fixture = Fixture::new();
    let path = fixture.write("f", b"content");
    let (blobs, stamps) = (MemoryBlobs::new(), Counting::default());
    let ingest = Ingest::new(&blobs, &stamps);
    settle(&path);
    let first = ingest.hash_file(&path).unwrap();
    assert_eq!(stamps.misses(), 1);
    assert_eq!(ingest.hash_file(&path).unwrap(), first);
    assert_eq!(stamps.misses(), 0, "unchanged: one look");

    File::open(&path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
    settle(&path);
    assert_eq!(ingest.hash_file(&path).unwrap(), first);
    assert_eq!(stamps.misses(), 1, "touched: hashed once more");
    ingest.hash_file(&path).unwrap();
    assert_eq!(stamps.misses(), 0);
}

#[test]
fn an_edit_of_equal_size_in_the_same_moment_is_seen() {
    // As fast as the machine can: many of these edits share a tick of the clock with the hash before.
    let fixture = Fixture::new();
    let (blobs, stamps) = (MemoryBlobs::new(), MemoryStamps::default());
    let ingest = Ingest::new(&blobs, &stamps);
    for i in 0..200u32 {
        let bytes = i.to_le_bytes();
        let path = fixture.write("f", &bytes);
        assert_eq!(ingest.hash_file(&path).unwrap().digest, BlobDigest::of(&bytes), "edit {i}");
    }
}

#[test]
fn a_fresh_stamp_is_not_settled() {
    const SECOND: i64 = 1_000_000_000;
    let at = |modified: i64, changed: i64| FileStamp { device: 1, inode: 1, size: 1, modified, changed };
    let fine = 1000 * SECOND + 123_456_789;
    assert!(!at(fine, fine).settled(fine));
    assert!(!at(fine, fine).settled(fine + 10_000_000), "within a slow kernel's tick");
    assert!(at(fine, fine).settled(fine + 50_000_000));
    // A modification time set back does not hide a change, nor one ahead of the clock.
    assert!(!at(fine - 500 * SECOND, fine).settled(fine));
    assert!(!at(fine + 500 * SECOND, fine).settled(fine + SECOND));
    // Whole seconds: the file system may not know better.
    assert!(!at(1000 * SECOND, 1000 * SECOND).settled(1001 * SECOND));
    assert!(at(1000 * SECOND, 1000 * SECOND).settled(1003 * SECOND));
}

#[test]
fn a_remembered_file_whose_blob_is_gone_is_stored_again() {
    let fixture = Fixture::new();
    let path = fixture.write("f", b"content");
    settle(&path);
    let (blobs, stamps) = (fixture.blobs(), MemoryStamps::default());
    let ingest = Ingest::new(&blobs, &stamps);
    let stored = ingest.store_file(&path, Intake::Copy).unwrap();
    blobs.quarantine(stored.digest).unwrap();
    assert_eq!(ingest.store_file(&path, Intake::Copy).unwrap(), stored);
    assert_eq!(blobs.read(stored.digest).unwrap(), b"content");
}

#[test]
fn links_at_the_top_are_followed_for_users_and_refused_for_outputs() {
    let fixture = Fixture::new();
    let root = fixture.project.root();
    fixture.write("real/f", b"content");
    symlink("real", root.join("folder")).unwrap();
    symlink("real/f", root.join("file")).unwrap();
    let (blobs, stamps) = (MemoryBlobs::new(), MemoryStamps::default());
    let ingest = Ingest::new(&blobs, &stamps);
    assert_eq!(
        ingest.store_file(&root.join("file"), Intake::Copy).unwrap().digest,
        BlobDigest::of(b"content")
    );
    assert_eq!(ingest.hash_folder(&root.join("folder")).unwrap().tree.entries.len(), 1);
    assert!(ingest.store_file(&root.join("file"), Intake::Move).unwrap_err().is_about_content());
    assert!(ingest.store_folder(&root.join("folder"), Intake::Move).unwrap_err().is_about_content());
}

#[test]
fn moving_a_folder_takes_its_files() {
    let fixture = Fixture::new();
    fixture.write("out/a", b"a");
    fixture.write("out/sub/b", &vec![1; 1 << 20]);
    let (blobs, stamps) = (fixture.blobs(), MemoryStamps::default());
    let out = fixture.project.root().join("out");
    let stored = Ingest::new(&blobs, &stamps).store_folder(&out, Intake::Move).unwrap();
    assert!(!out.join("a").exists() && !out.join("sub/b").exists());
    assert_eq!(blobs.read(BlobDigest::of(b"a")).unwrap(), b"a");
    assert_eq!(stored.size, 1 + (1 << 20));
}

#[test]
fn code_lies_at_its_project_paths() {
    let fixture = Fixture::new();
    fixture.write("train.py", b"import nets");
    fixture.write("nets/__init__.py", b"");
    fixture.write("nets/mlp.py", b"mlp");
    fixture.write("notes.txt", b"not code");
    let (blobs, stamps) = (fixture.blobs(), MemoryStamps::default());
    let ingest = Ingest::new(&blobs, &stamps);
    let listed = ["train.py".to_owned(), "nets/".to_owned()];
    let hashed = ingest.code_tree(fixture.project.root(), &listed).unwrap();
    let stored = ingest.store_code(fixture.project.root(), &listed).unwrap();
    assert_eq!(hashed, stored);
    let names: Vec<_> = stored.tree.entries.keys().cloned().collect();
    assert_eq!(names, ["nets/__init__.py", "nets/mlp.py", "train.py"]);
    assert_eq!(read_record::<Tree>(&blobs, stored.digest).unwrap(), stored.tree);
    for bad in ["../x.py", "/etc/passwd", ""] {
        assert!(ingest.code_tree(fixture.project.root(), &[bad.to_owned()]).is_err(), "{bad:?}");
    }
}

#[test]
fn a_large_file_that_was_touched_is_what_it_was_and_one_that_changed_is_not() {
    let fixture = Fixture::new();
    let blobs = fixture.blobs();
    let stamps = MemoryStamps::default();
    let ingest = Ingest::new(&blobs, &stamps);
    let path = fixture.write("large", &vec![1; 2 << 20]);
    settle(&path);
    let first = ingest.store_file(&path, Intake::Copy).unwrap();
    let touch = |at: u64| {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at)).unwrap();
        settle(&path);
    };
    touch(1_000_000);
    assert_eq!(stamps.cached_digest(FileStamp::of(&fs::metadata(&path).unwrap())).unwrap(), None);
    assert_eq!(ingest.store_file(&path, Intake::Copy).unwrap(), first);
    let known = stamps.cached_digest(FileStamp::of(&fs::metadata(&path).unwrap())).unwrap();
    assert_eq!(known, Some(first.digest));

    fs::write(&path, vec![2; 2 << 20]).unwrap();
    touch(2_000_000);
    let second = ingest.store_file(&path, Intake::Copy).unwrap();
    assert_eq!(second.digest, BlobDigest::of(&vec![2; 2 << 20]));
    assert!(blobs.contains(second.digest).unwrap());

    // It is what it was, and the blob is gone: it is stored again.
    fs::remove_file(blobs.path(second.digest)).unwrap();
    touch(3_000_000);
    assert_eq!(ingest.store_file(&path, Intake::Copy).unwrap(), second);
    assert!(blobs.contains(second.digest).unwrap());
}
