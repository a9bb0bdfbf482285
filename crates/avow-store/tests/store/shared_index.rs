//! One index for several processes. Here they are several values in one process, which locks keep apart as well.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use avow_store::index::Opening;
use avow_store::lock::{IndexLock, LockError};
use avow_store::presence::{self, Presence, PresenceFile};
use avow_store::{BlobStore, FileBlobs, JournalWriter, Project, RecordStore, RunLock, SharedIndex};

use crate::fixture::{Fixture, carry_out, opened, recorded};
use crate::records::{stamp_suite, suite};

fn open(project: &Project) -> SharedIndex {
    let runner = RunLock::try_share(project).unwrap();
    SharedIndex::open(project, runner, || ControlFlow::Continue(())).unwrap()
}

#[test]
fn owner_and_client_keep_the_same_contract() {
    for asks in [0, 1] {
        let fixture = Fixture::new();
        let both = [open(&fixture.project), open(&fixture.project)];
        assert_eq!([both[0].is_owner(), both[1].is_owner()], [true, false]);
        stamp_suite(&both[asks]);
        if asks == 0 {
            suite(&both[0]);
        }
        let record = recorded("x-run", 1, 2, "other[seed=1]", "x");
        let digest = both[asks].insert(&record).unwrap();
        for index in &both {
            assert_eq!(index.attempt(digest).unwrap().as_ref(), Some(&record));
            assert_eq!(index.trace(record.attempt.action).unwrap(), [digest]);
            assert_eq!(index.history("exp", "other[seed=1]").unwrap(), [digest]);
            assert_eq!(index.stage_history("exp", "other").unwrap(), [(record.member.clone(), digest)]);
            index.flush().unwrap();
        }
    }
}

#[test]
fn a_path_longer_than_a_sockets_name_is_no_obstacle() {
    let fixture = Fixture::new();
    let long = fixture.project.root().join("x".repeat(120)).join("y".repeat(120));
    fs::create_dir_all(&long).unwrap();
    let project = Project::at(long);
    project.create().unwrap();
    let (owner, client) = (open(&project), open(&project));
    assert!(owner.is_owner() && !client.is_owner());
    client.insert(&recorded("run", 1, 2, "m", "a")).unwrap();
    assert_eq!(owner.entries().unwrap().len(), 1);
}

#[test]
fn when_the_owner_ends_a_client_takes_over_with_everything_there_is() {
    let fixture = Fixture::new();
    let owner = open(&fixture.project);
    let (one, other) = (open(&fixture.project), open(&fixture.project));
    // What stands in a journal and was never told to any index.
    let mut journal = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    let untold = carry_out(&fixture.blobs(), &mut journal, "m", "a");
    let told = recorded("another", 2, 2, "n", "b");
    one.insert(&told).unwrap();
    assert_eq!(other.attempt(untold.digest()).unwrap(), None);
    drop(owner);
    for index in [&one, &other] {
        assert_eq!(index.attempt(untold.digest()).unwrap(), Some(untold.clone()));
        assert_eq!(index.attempt(told.digest()).unwrap(), Some(told.clone()));
    }
    assert_eq!([one.is_owner(), other.is_owner()], [true, false]);
    assert_eq!(one.opening(), Opening::CaughtUp { runs: vec!["run".to_owned()] });
}

#[test]
fn a_journal_is_read_again_where_it_holds_more_than_was_told() {
    let fixture = Fixture::new();
    let (owner, client) = (open(&fixture.project), open(&fixture.project));
    let mut journal = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    let first = carry_out(&fixture.blobs(), &mut journal, "m", "a");
    client.catch_up("run").unwrap();
    assert_eq!(owner.attempt(first.digest()).unwrap(), Some(first));
    let second = carry_out(&fixture.blobs(), &mut journal, "n", "b");
    assert_eq!(owner.attempt(second.digest()).unwrap(), None);
    client.catch_up("run").unwrap();
    assert_eq!(owner.attempt(second.digest()).unwrap(), Some(second));
    client.catch_up("no-such-run").unwrap();
}

#[test]
fn calls_under_way_survive_any_number_of_owners() {
    let fixture = Fixture::new();
    let indexes: Vec<Arc<SharedIndex>> = (0..4).map(|_| Arc::new(open(&fixture.project))).collect();
    let last = Arc::clone(&indexes[3]);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let last = &last;
            scope.spawn(move || {
                for line in 0..100 {
                    let record =
                        recorded("run", 1, 2 + thread * 100 + line, "m", &format!("{thread}-{line}"));
                    let digest = last.insert(&record).unwrap();
                    assert_eq!(last.attempt(digest).unwrap(), Some(record));
                }
            });
        }
        scope.spawn(move || indexes.into_iter().take(3).for_each(drop));
    });
    assert!(last.is_owner());
    assert_eq!(last.entries().unwrap().len(), 400);
}

#[test]
fn an_owner_that_does_not_answer_is_waited_for_and_the_waiter_may_give_up() {
    let fixture = Fixture::new();
    let held = IndexLock::try_acquire(&fixture.project).unwrap().unwrap();
    let give_up = || {
        let runner = RunLock::try_share(&fixture.project).unwrap();
        SharedIndex::open(&fixture.project, runner, || ControlFlow::Break(()))
    };
    assert!(matches!(give_up().map(drop), Err(LockError::GaveUp { .. })), "no socket");
    // A socket on which something answers that is no index.
    let listener = UnixListener::bind(fixture.project.store().join("index.sock")).unwrap();
    let stranger = thread::spawn(move || drop(listener.accept().unwrap()));
    assert!(matches!(give_up().map(drop), Err(LockError::GaveUp { .. })));
    stranger.join().unwrap();
    drop(held);
    assert!(open(&fixture.project).is_owner(), "the dead socket is nobody's");
}

#[test]
fn one_blob_put_by_many_at_once_is_one_blob() {
    let fixture = Fixture::new();
    let bytes: Vec<Vec<u8>> = (0..20_u8).map(|i| vec![i; 300_000 * usize::from(i % 2) + 10]).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (fixture, bytes) = (&fixture, &bytes);
            scope.spawn(move || {
                // Each has its own index, as a process would.
                let index = Arc::new(open(&fixture.project));
                let blobs = FileBlobs::new(fixture.project.clone(), index);
                for content in bytes {
                    blobs.put(content).unwrap();
                }
                blobs.sync().unwrap();
                for content in bytes {
                    assert_eq!(&blobs.read(blobs.put(content).unwrap()).unwrap(), content);
                }
            });
        }
    });
    assert_eq!(fixture.blobs().list().unwrap().len(), bytes.len());
    assert!(!fixture.project.quarantine().exists());
}

#[test]
fn only_what_a_living_run_says_is_passed_on() {
    let fixture = Fixture::new();
    let said = |run: &str| Presence {
        run: run.to_owned(),
        experiment: "exp".to_owned(),
        spec: "exp.yaml".to_owned(),
        pid: 1,
        start_ticks: 2,
        output: None,
        waits: Vec::new(),
    };
    assert_eq!(presence::living(&fixture.project).unwrap(), []);
    let _one = JournalWriter::create(&fixture.project, 1, opened("one")).unwrap();
    let dead = JournalWriter::create(&fixture.project, 1, opened("dead")).unwrap();
    let file = PresenceFile::create(&fixture.project, &said("one")).unwrap();
    let stays = PresenceFile::create(&fixture.project, &said("dead")).unwrap();
    assert_eq!(presence::living(&fixture.project).unwrap(), [said("dead"), said("one")]);
    drop(dead);
    std::mem::forget(stays);
    assert_eq!(presence::living(&fixture.project).unwrap(), [said("one")]);
    presence::forget(&fixture.project, "dead").unwrap();
    drop(file);
    assert_eq!(fs::read_dir(fixture.project.live()).unwrap().count(), 0);
}
