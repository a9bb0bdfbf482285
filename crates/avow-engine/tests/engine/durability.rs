//! The order of durability: blobs, journal line, index, and only then is anything told.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use avow_engine::Notice;
use avow_exec::fake::FakeExecutor;
use avow_exec::{Cancel, ExecError, Execution, Executor, Watch};
use avow_model::action::Action;
use avow_model::attempt::{Attempt, AttemptId};
use avow_model::canonical::Record;
use avow_model::journal::{self, Event};
use avow_model::plan::Terms;
use avow_store::{FileStamp, Project, RecordStore, SharedIndex, StampCache};

use crate::bench::Bench;

/// Looks at the disk as somebody would who finds it after a power cut.
#[derive(Clone)]
struct Witness {
    project: Project,
    index: Arc<SharedIndex>,
    /// How many ends of attempts were seen in journals.
    seen: Arc<Mutex<usize>>,
}

impl Witness {
    /// Every attempt that a journal calls successful has its blobs, and they were flushed: the store remembers a
    /// blob's digest only after that.
    fn look(&self) {
        let Ok(folder) = fs::read_dir(self.project.journals()) else { return };
        for entry in folder {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            let lines = journal::read(&bytes).lines;
            let ends = lines.iter().filter_map(|line| match &line.event {
                Event::Finished { attempt, .. } => Some(attempt),
                _ => None,
            });
            for attempt in ends {
                self.check(attempt);
            }
        }
    }

    fn check(&self, attempt: &Attempt) {
        for produced in attempt.outputs.values() {
            let path = self.project.blob(produced.artifact.blob());
            let stamp = FileStamp::of(&stat(&path));
            let durable = self.index.cached_digest(stamp).unwrap();
            assert_eq!(durable, Some(produced.artifact.blob()), "journalled before it was durable");
        }
        *self.seen.lock().unwrap() += 1;
    }

    fn notified(&self, notice: &Notice) {
        if let Notice::Finished { attempt, .. } = notice {
            let journal = fs::read(self.project.journal(&attempt.run)).unwrap();
            let journalled = journal::read(&journal).lines.into_iter().any(
                |line| matches!(line.event, Event::Finished { attempt: written, .. } if written == *attempt),
            );
            assert!(journalled, "told before it was written down");
            assert!(self.index.attempt(attempt.digest()).unwrap().is_some(), "told before it was indexed");
        }
        self.look();
    }
}

fn stat(path: &Path) -> fs::Metadata {
    fs::symlink_metadata(path).unwrap_or_else(|e| panic!("a journal names an absent blob: {e}"))
}

/// Looks around at the start and the end of each attempt.
struct Recording(FakeExecutor, Witness);

impl Executor for Recording {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        self.1.look();
        let execution = self.0.run(attempt, action, terms, watch).await;
        self.1.look();
        execution
    }
}

#[test]
fn nothing_is_believed_before_what_it_rests_on_is_durable() {
    let bench = Bench::new("a[seed:12] -> b; b => c");
    let session = bench.open();
    let witness =
        Witness { project: bench.project.clone(), index: session.index.clone(), seen: Arc::default() };
    let done = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                witness.look();
            }
        });
        let executor = Recording(FakeExecutor::succeeding(session.blobs.clone()), witness.clone());
        let mut notify = |notice: Notice| witness.notified(&notice);
        let report = bench.drive(&session, executor, Cancel::new().unwrap(), &mut notify);
        done.store(true, Ordering::Relaxed);
        bystander.join().unwrap();
        report.unwrap()
    });
    assert_eq!(report.tally.succeeded, 25);
    assert!(*witness.seen.lock().unwrap() > 25);
}

#[test]
fn a_process_stands_in_the_journal_before_the_end_of_its_attempt() {
    let bench = Bench::new("a[seed:5]");
    let session = bench.open();
    let executor = Spawning(FakeExecutor::succeeding(session.blobs.clone()));
    let report = bench.drive(&session, executor, Cancel::new().unwrap(), &mut |_| {}).unwrap();
    let lines = bench.past(&report.run).lines;
    let position = |test: &dyn Fn(&Event) -> bool| lines.iter().position(test).unwrap();
    for (_, attempt) in bench.attempts() {
        let started = position(&|e| matches!(e, Event::Started { attempt: id, .. } if *id == attempt.id));
        let spawned = position(&|e| matches!(e, Event::Spawned { attempt: id, .. } if *id == attempt.id));
        let finished =
            position(&|e| matches!(e, Event::Finished { attempt: end, .. } if end.id == attempt.id));
        assert!(started < spawned && spawned < finished);
    }
}

/// Says that there is a process.
struct Spawning(FakeExecutor);

impl Executor for Spawning {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        mut watch: Watch,
    ) -> Result<Execution, ExecError> {
        watch.on_spawn.take().unwrap()(7, 42);
        self.0.run(attempt, action, terms, watch).await
    }
}
