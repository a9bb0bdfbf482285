//! Death at any moment: what is on disk then is a prefix of what an undisturbed run leaves.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

use avow_engine::{EngineError, rebuild_index};
use avow_exec::fake::Act;
use avow_model::attempt::Outcome;
use avow_model::digest::Artifact;
use avow_model::journal::{Closing, Damage, Event};
use avow_store::index::{Opening, open_index};
use avow_store::lock::LockError;
use avow_store::{RecordStore, RunLock};

use crate::bench::{Bench, Past, cut, damage, line_ends, succeed};

const DRAWING: &str = "data -> train[seed:2] -> score; score => table";

/// A finished run, its journal, and what it gave.
struct Whole {
    bench: Bench,
    run: String,
    bytes: Vec<u8>,
    artifacts: BTreeMap<(String, String), Artifact>,
}

impl Whole {
    fn new(drawing: &str) -> Whole {
        let bench = Bench::new(drawing);
        let run = bench.run().run;
        let bytes = fs::read(bench.project.journal(&run)).unwrap();
        let artifacts = bench.artifacts(&run);
        Whole { bench, run, bytes, artifacts }
    }

    /// The project as it was when the journal had this length.
    fn at(&self, length: usize, with_index: bool) -> Bench {
        let bench = self.bench.copy();
        cut(&bench.project.journal(&self.run), length);
        if !with_index {
            bench.delete_index();
        }
        bench
    }

    /// Whatever was lost, the next run does the rest and nothing else, and comes to the same end.
    fn check(&self, bench: &Bench, died: &Past) {
        let report = bench.run();
        assert_eq!(report.closing, Closing::Complete);
        assert_eq!(bench.artifacts(&report.run), self.artifacts);
        let all: Vec<String> = self.artifacts.keys().map(|(member, _)| member.clone()).collect();
        let finished = died.succeeded();
        let owed: Vec<String> = all.iter().filter(|member| !finished.contains(*member)).cloned().collect();
        assert_eq!(bench.past(&report.run).started(), owed);

        let attempts = bench.attempts();
        let (made, extra): (Vec<_>, Vec<_>) = attempts.iter().partition(|(_, a)| a.outcome.succeeded());
        let mut made: Vec<&String> = made.iter().map(|(member, _)| member).collect();
        made.sort();
        assert_eq!(made, all.iter().collect::<Vec<_>>(), "each member succeeded once");
        assert!(extra.iter().all(|(_, a)| a.outcome == Outcome::Lost), "{extra:?}");
        let mut lost: Vec<&str> = extra.iter().map(|(member, _)| member.as_str()).collect();
        lost.sort_unstable();
        assert_eq!(lost, died.orphans(), "whatever was under way is lost, once");
        assert!(bench.history().iter().all(|past| past.path.exists() && damage(&past.path).is_none()));
        assert_eq!(bench.executes(), [""; 0], "then everything is there");
    }
}

impl Past {
    fn orphans(&self) -> Vec<String> {
        self.state.orphans().map(|orphan| orphan.member).collect()
    }
}

#[test]
fn a_run_that_died_after_any_line_is_finished_by_the_next() {
    let whole = Whole::new(DRAWING);
    let ends = line_ends(&whole.bytes);
    assert_eq!(ends.len(), 14, "one line at each end, two an attempt");
    for end in &ends {
        for with_index in [true, false] {
            let bench = whole.at(*end, with_index);
            let died = bench.past(&whole.run);
            whole.check(&bench, &died);
            let how = if *end == whole.bytes.len() { Closing::Complete } else { Closing::Abandoned };
            assert_eq!(bench.past(&whole.run).state.closed, Some(how));
        }
    }
}

#[test]
fn a_torn_tail_is_cut_wherever_the_write_stopped() {
    let whole = Whole::new("data -> train[seed:2]");
    let mut begin = 0;
    for end in line_ends(&whole.bytes) {
        for torn in [begin + 1, usize::midpoint(begin, end), end - 1] {
            let bench = whole.at(torn, torn % 2 == 0);
            let died = bench.past(&whole.run);
            if begin > 0 {
                whole.check(&bench, &died);
                assert_eq!(bench.past(&whole.run).state.closed, Some(Closing::Abandoned));
                continue;
            }
            // Not even the first line is whole: nothing was recorded, and the next session discards it.
            assert_eq!(bench.open().recovered, []);
            assert!(!bench.project.journal(&whole.run).exists());
            assert_eq!(bench.run().closing, Closing::Complete);
            assert!(!bench.project.journal(&whole.run).exists());
        }
        begin = end;
    }
}

#[test]
fn a_recovery_that_died_itself_is_finished_by_the_next() {
    let whole = Whole::new("a[seed:4]");
    let under_way = line_ends(&whole.bytes)[2];
    let bench = whole.at(under_way, true);
    assert_eq!(bench.open().recovered[0].lost, ["a[seed=0]", "a[seed=1]"]);
    let recovered = fs::read(bench.project.journal(&whole.run)).unwrap();
    let (_, appended) = recovered.split_at(under_way);
    assert_eq!(line_ends(appended).len(), 3, "two attempts and the end");
    for end in line_ends(appended) {
        let again = bench.copy();
        cut(&again.project.journal(&whole.run), under_way + end);
        again.open();
        let state = again.past(&whole.run).state;
        assert_eq!(state.closed, Some(Closing::Abandoned));
        let lost: Vec<&str> = state.attempts.iter().map(|(member, _)| member.as_str()).collect();
        assert_eq!(lost, ["a[seed=0]", "a[seed=1]"]);
        assert_eq!(again.executes(), ["a[seed=0]", "a[seed=1]", "a[seed=2]", "a[seed=3]"]);
    }
}

#[test]
fn a_lost_attempt_is_numbered_after_those_before_it() {
    let bench = Bench::new("a");
    bench.scripted(|call| match call.number {
        0 => Act::End(Outcome::Lost),
        _ => succeed(),
    });
    let run = bench.history().remove(0);
    let bytes = fs::read(&run.path).unwrap();
    // Opened, started, lost, started again.
    cut(&run.path, line_ends(&bytes)[3]);
    bench.open();
    assert_eq!(bench.past(&run.run).outcomes("a"), [(1, Outcome::Lost), (2, Outcome::Lost)]);
}

#[test]
fn an_index_that_knows_more_than_the_journals_is_built_anew() {
    let whole = Whole::new("a[seed:4]");
    let mut bench = whole.bench.copy();
    // A run with four attempts under way of which one has ended, all of it indexed.
    fs::remove_file(bench.project.journal(&whole.run)).unwrap();
    bench.settings.cpus = 4;
    let run = bench.run().run;
    let path = bench.project.journal(&run);
    let ends = line_ends(&fs::read(&path).unwrap());
    bench.delete_index();
    cut(&path, ends[5]);
    drop(open_index(&bench.project, &RunLock::try_acquire(&bench.project).unwrap()).unwrap());
    // Then the end of that one is gone, and recovery appends more than was lost.
    cut(&path, ends[4]);
    let session = bench.open();
    let lost = &session.recovered[0].lost;
    assert_eq!(lost.len(), 4);
    assert!(fs::metadata(&path).unwrap().len() > ends[5] as u64);
    assert!(matches!(&session.opening, Opening::Rebuilt { .. }), "{:?}", session.opening);
    drop(session);
    assert_eq!(&bench.executes(), &["a[seed=0]", "a[seed=1]", "a[seed=2]", "a[seed=3]"]);
}

#[test]
fn what_a_recovered_run_lost_is_in_the_index() {
    let whole = Whole::new("a[seed:2]");
    let bench = whole.at(line_ends(&whole.bytes)[1], true);
    let session = bench.open();
    let lost = bench.past(&whole.run).state.attempts;
    assert_eq!(session.index.trace(lost[0].1.action).unwrap().len(), lost.len());
    drop(session);
    assert_eq!(bench.open().opening, Opening::Complete, "nothing is left to catch up with");
}

#[test]
fn processes_of_a_dead_run_are_ended_and_its_folders_removed() {
    for broken in [false, true] {
        let whole = Whole::new("a -> b");
        let ends = line_ends(&whole.bytes);
        let bench = whole.at(ends[1], true);
        let path = bench.project.journal(&whole.run);
        let Event::Started { attempt, .. } = &bench.past(&whole.run).lines[1] else { panic!("not started") };
        if broken {
            fs::write(&path, [&whole.bytes[..ends[1]], b"{}\n"].concat()).unwrap();
        }
        let mut survivor = Command::new("sleep");
        survivor.arg("600").env("AVOW_ATTEMPT", attempt.to_string()).stdin(Stdio::null());
        let mut survivor = survivor.spawn().unwrap();
        let work = bench.project.work();
        let kept = format!("{}{attempt}", avow_exec::KEPT);
        for folder in [&attempt.to_string(), &kept] {
            fs::create_dir_all(work.join(folder).join("run")).unwrap();
        }

        let session = bench.open();
        assert!(!survivor.wait().unwrap().success(), "it was ended");
        let survivors: usize = session.recovered.iter().map(|recovered| recovered.survivors).sum();
        assert_eq!(survivors, usize::from(!broken));
        assert!(!work.join(attempt.to_string()).exists());
        assert!(work.join(&kept).exists(), "kept on request");
        assert!(bench.project.temporary().is_dir(), "the store's own folder stays");
    }
}

#[test]
fn a_journal_that_is_broken_in_the_middle_is_left_and_blocks_nobody() {
    let whole = Whole::new(DRAWING);
    let ends = line_ends(&whole.bytes);
    // One byte of the line after the first end changed, and the last lines missing.
    let lines = whole.bench.past(&whole.run).lines;
    let first = lines.iter().position(|event| matches!(event, Event::Finished { .. })).unwrap();
    let mut bytes = whole.bytes[..ends[10]].to_vec();
    bytes[ends[first + 1] - 20] ^= 1;
    let bench = whole.at(0, false);
    let path = bench.project.journal(&whole.run);
    fs::write(&path, &bytes).unwrap();
    let intact = bench.past(&whole.run);
    assert!(intact.succeeded().contains("data"), "its end is before the damage");

    assert_eq!(bench.open().recovered, []);
    let report = bench.run();
    assert_eq!(report.closing, Closing::Complete);
    assert_eq!(bench.artifacts(&report.run), whole.artifacts);
    assert_eq!(bench.past(&report.run).waves()[0], ["data"], "what is intact still counts");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let Some(Damage::Broken { line, .. }) = damage(&path) else { panic!("{:?}", damage(&path)) };
    assert!(line == first + 2 || line == first + 3, "{line}");
}

#[test]
fn the_index_can_be_thrown_away_where_nobody_is() {
    let bench = Bench::new(DRAWING);
    bench.run();
    let attempts = bench.attempts().len();
    let alone = || rebuild_index(&bench.project, |_| ControlFlow::Break(()));
    assert_eq!(alone().unwrap().entries().unwrap().len(), attempts);
    let session = bench.open();
    assert!(matches!(alone(), Err(EngineError::Lock(LockError::GaveUp { .. }))), "somebody is there");
    drop(session);
    assert_eq!(bench.executes(), [""; 0]);
}
