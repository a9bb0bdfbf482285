//! One suite for every index, then what only the one on disk can suffer.

use std::fs;

use avow_model::journal::{Closing, Event};
use avow_store::index::{Opening, mark_damaged, memory_index, open_index, rebuild};
use avow_store::stamp::{FileStamp, MemoryStamps, StampCache};
use avow_store::{JournalWriter, MemoryIndex, RecordStore, RunLock, SledIndex};

use crate::fixture::{Fixture, carry_out, opened, recorded};

pub fn suite(index: &dyn RecordStore) {
    let first = recorded("b-run", 10, 3, "train[seed=1]", "a");
    let second = recorded("a-run", 20, 2, "train[seed=1]", "a");
    let third = recorded("a-run", 20, 11, "train[seed=10]", "b");
    let other = recorded("a-run", 20, 12, "train-more", "b");
    let early = recorded("z-run", -5, 2, "train[seed=1]", "c");
    // Not in their order.
    for record in [&third, &second, &other, &first, &early] {
        assert_eq!(index.insert(record).unwrap(), record.digest());
    }
    index.insert(&second).unwrap();

    assert_eq!(index.attempt(first.digest()).unwrap(), Some(first.clone()));
    let unknown = recorded("c-run", 1, 1, "m", "a").digest();
    assert_eq!(index.attempt(unknown).unwrap(), None);
    assert_eq!(index.trace(first.attempt.action).unwrap(), [first.digest(), second.digest()]);
    assert_eq!(index.trace(third.attempt.action).unwrap(), [third.digest(), other.digest()]);
    let history = index.history("exp", "train[seed=1]").unwrap();
    assert_eq!(history, [early.digest(), first.digest(), second.digest()]);
    assert!(index.history("another", "train[seed=1]").unwrap().is_empty());
    assert!(index.history("exp", "train[seed=").unwrap().is_empty());
    let stage: Vec<_> = index.stage_history("exp", "train").unwrap();
    let expected = [&early, &first, &second, &third].map(|r| (r.member.clone(), r.digest()));
    assert_eq!(stage, expected);
    assert_eq!(index.entries().unwrap(), [early, first, second, third, other]);
}

pub fn stamp_suite(cache: &dyn StampCache) {
    let stamp = FileStamp { device: 1, inode: 2, size: 3, modified: 4, changed: 5 };
    let digest = avow_model::digest::BlobDigest::of(b"x");
    let newer = avow_model::digest::BlobDigest::of(b"y");
    assert_eq!(cache.cached_digest(stamp).unwrap(), None);
    cache.remember_digests(&[(stamp, digest)]).unwrap();
    assert_eq!(cache.cached_digest(stamp).unwrap(), Some(digest));
    let changed = [
        FileStamp { device: 9, ..stamp },
        FileStamp { inode: 9, ..stamp },
        FileStamp { size: 9, ..stamp },
        FileStamp { modified: 9, ..stamp },
        FileStamp { changed: 9, ..stamp },
    ];
    for other in changed {
        assert_eq!(cache.cached_digest(other).unwrap(), None, "{other:?}");
    }
    cache.remember_digests(&[(changed[4], newer)]).unwrap();
    assert_eq!(cache.cached_digest(changed[4]).unwrap(), Some(newer));
    assert_eq!(cache.cached_digest(stamp).unwrap(), None, "one state per file");
}

#[test]
fn memory_index_keeps_the_contract() {
    suite(&MemoryIndex::new());
    stamp_suite(&MemoryStamps::default());
}

#[test]
fn sled_index_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let index = SledIndex::open(folder.path()).unwrap();
    suite(&index);
    stamp_suite(&index);
}

#[test]
fn sled_index_keeps_everything_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    suite(&SledIndex::open(folder.path()).unwrap());
    suite(&SledIndex::open(folder.path()).unwrap());
}

/// Two runs; the index learns of everything as the engine tells it.
fn two_runs(fixture: &Fixture, index: &SledIndex) {
    let blobs = fixture.blobs();
    for (at, run) in [(100, "z-first"), (200, "a-second")] {
        let mut journal = JournalWriter::create(&fixture.project, at, opened(run)).unwrap();
        for member in ["m[x=1]", "m[x=2]"] {
            let recorded = carry_out(&blobs, &mut journal, member, member);
            index.insert(&recorded).unwrap();
        }
        journal.append(300, Event::Closed { how: Closing::Complete }).unwrap();
        journal.sync().unwrap();
        index.caught_up(run, journal.length()).unwrap();
    }
}

#[test]
fn a_rebuilt_index_equals_the_one_built_on_the_way() {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert!(matches!(opening, Opening::Rebuilt { .. }));
    two_runs(&fixture, &index);
    let built = index.entries().unwrap();
    assert_eq!(built.len(), 4);
    assert_eq!(built[0].position.run, "z-first", "the order is that of opening, not of names");
    let trace = index.trace(built[0].attempt.action).unwrap();
    drop(index);

    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert_eq!(opening, Opening::Complete);
    drop(index);
    let rebuilt = rebuild(&fixture.project, &lock).unwrap();
    assert_eq!(rebuilt.entries().unwrap(), built);
    assert_eq!(rebuilt.trace(built[0].attempt.action).unwrap(), trace);
    assert_eq!(memory_index(&fixture.project).unwrap().entries().unwrap(), built);
}

#[test]
fn an_index_that_is_gone_damaged_or_behind_heals_by_itself() {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, _) = open_index(&fixture.project, &lock).unwrap();
    two_runs(&fixture, &index);
    let built = index.entries().unwrap();
    drop(index);
    let open = || {
        let (index, opening) = open_index(&fixture.project, &lock).unwrap();
        assert_eq!(index.entries().unwrap(), built);
        opening
    };

    fs::remove_dir_all(fixture.project.index()).unwrap();
    assert!(matches!(open(), Opening::Rebuilt { .. }));
    assert_eq!(open(), Opening::Complete);

    mark_damaged(&fixture.project).unwrap();
    assert!(matches!(open(), Opening::Rebuilt { .. }));
    assert_eq!(open(), Opening::Complete);

    for entry in fs::read_dir(fixture.project.index()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let garbage = vec![0xa5; fs::metadata(&path).unwrap().len() as usize];
            fs::write(&path, garbage).unwrap();
        }
    }
    assert!(matches!(open(), Opening::Rebuilt { .. }));
    assert_eq!(open(), Opening::Complete);
}

#[test]
fn an_index_behind_a_killed_run_catches_up() {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, _) = open_index(&fixture.project, &lock).unwrap();
    drop(index);
    // The run dies after its journal line and before the index hears of it.
    let mut journal = JournalWriter::create(&fixture.project, 1, opened("killed")).unwrap();
    let recorded = carry_out(&fixture.blobs(), &mut journal, "m", "m");
    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert_eq!(opening, Opening::CaughtUp { runs: vec!["killed".to_owned()] });
    assert_eq!(index.entries().unwrap(), [recorded]);
}

/// Something else than a run wrote to a journal and left it as long as it was: what the index knows of it is no
/// longer what it says.
#[test]
fn a_journal_that_was_edited_in_place_is_read_again() {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, _) = open_index(&fixture.project, &lock).unwrap();
    two_runs(&fixture, &index);
    let built = index.entries().unwrap();
    drop(index);
    let path = fixture.project.journal(&built[0].position.run);
    let text = fs::read_to_string(&path).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&path, text.replacen("\"succeeded\"", "\"Succeeded\"", 1)).unwrap();
    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert!(
        matches!(&opening, Opening::Rebuilt { reason } if reason.contains("written to by something else")),
        "{opening:?}"
    );
    assert_ne!(index.entries().unwrap(), built);
    assert_eq!(index.entries().unwrap(), memory_index(&fixture.project).unwrap().entries().unwrap());
    drop(index);
    assert_eq!(open_index(&fixture.project, &lock).unwrap().1, Opening::Complete);
}

#[test]
fn a_deleted_or_shortened_journal_takes_its_attempts_along() {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, _) = open_index(&fixture.project, &lock).unwrap();
    two_runs(&fixture, &index);
    drop(index);
    fs::remove_file(fixture.project.journal("z-first")).unwrap();
    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert!(matches!(opening, Opening::Rebuilt { reason } if reason.contains("z-first")));
    assert_eq!(index.entries().unwrap().len(), 2);
    drop(index);

    let path = fixture.project.journal("a-second");
    let text = fs::read_to_string(&path).unwrap();
    let first_lines: String = text.split_inclusive('\n').take(3).collect();
    fs::write(&path, first_lines).unwrap();
    let (index, opening) = open_index(&fixture.project, &lock).unwrap();
    assert!(matches!(opening, Opening::Rebuilt { .. }));
    assert_eq!(index.entries().unwrap().len(), 1);
}
