//! A run in which nothing changed: one look at every promised blob, and one line that cites the same hits.

use std::fs;

use avow_engine::{Freeze, Report, register};
use avow_exec::Cancel;
use avow_exec::fake::FakeExecutor;
use avow_model::journal::{Closing, MemberState};
use avow_model::plan::Reuse;
use avow_planner::Target;

use crate::bench::{Bench, echoes, succeed};

const DRAWING: &str = "data -> train[seed:2] -> score; score => table";

/// A run that must execute nothing; whether it went by what the run before had settled.
fn again(bench: &Bench) -> Report {
    let session = bench.open();
    let executor = FakeExecutor::succeeding(session.blobs.clone());
    let report = bench.drive(&session, executor.clone(), Cancel::new().unwrap(), &mut |_| {}).unwrap();
    assert_eq!(executor.calls().len(), 0);
    report
}

#[test]
fn it_journals_the_same_hits_as_a_run_that_looks_each_of_them_up() {
    let bench = Bench::new(DRAWING);
    let first = bench.run();
    assert!(!first.unchanged);
    let second = again(&bench);
    assert!(second.unchanged);
    assert_eq!((second.closing, second.tally.reused, second.tally.members), (Closing::Complete, 6, 6));
    let third = again(&bench);
    bench.forget_settled();
    let fourth = again(&bench);
    assert!(third.unchanged && !fourth.unchanged);

    let hits = |report: &Report| {
        let past = bench.past(&report.run);
        assert_eq!(past.state.closed, Some(Closing::Complete));
        past.state.members
    };
    assert!(hits(&fourth).values().all(|state| matches!(state, MemberState::Reused(_))));
    assert_eq!(hits(&second), hits(&fourth));
    assert_eq!(hits(&third), hits(&fourth));
    assert_eq!(bench.artifacts(&second.run), bench.artifacts(&first.run));
    assert_eq!(bench.past(&third.run).lines.len(), 3, "opened, reused, closed");
}

#[test]
fn a_blob_that_is_gone_or_damaged_is_noticed_and_made_again() {
    for damage in [true, false] {
        let bench = Bench::new(DRAWING);
        bench.run();
        let path = bench.project.blob(bench.blob("data"));
        if damage {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "another").unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(bench.executes(), ["data"]);
        assert!(again(&bench).unchanged);
    }
}

#[test]
fn another_plan_settles_for_itself() {
    let mut bench = Bench::new("a[seed:2] => b");
    bench.run();
    bench.plan = avow_testkit::plan("a[seed:3] => b");
    assert_eq!(bench.executes(), ["a[seed=2]", "b"]);
    assert!(again(&bench).unchanged);
    bench.plan = avow_testkit::plan("a[seed:2] => b");
    assert!(again(&bench).unchanged, "what the first run settled still stands");
}

#[test]
fn what_was_asked_for_is_settled_apart() {
    let mut bench = Bench::new(DRAWING);
    bench.settings.only = vec![Target::parse(&bench.plan, "train[seed=1]").unwrap()];
    assert_eq!(bench.executes(), ["data", "train[seed=1]"]);
    let report = again(&bench);
    assert_eq!((report.unchanged, report.closing, report.tally.members), (true, Closing::Partial, 2));
    bench.settings.only.clear();
    assert_eq!(bench.executes(), ["score[seed=0]", "score[seed=1]", "table", "train[seed=0]"]);
}

#[test]
fn a_registration_is_looked_up_anew() {
    let bench = Bench::new(DRAWING);
    bench.run();
    assert!(again(&bench).unchanged);
    let freeze = Freeze { plan: &bench.plan, spec: b"spec", circumstances: Default::default() };
    register(&bench.open(), freeze).unwrap();
    assert!(!again(&bench).unchanged);
    assert!(again(&bench).unchanged);
}

#[test]
fn a_failed_run_and_a_volatile_stage_settle_nothing() {
    let mut bench = Bench::new("a -> b");
    bench.scripted(|call| match echoes(call, "b") {
        true => avow_exec::fake::Act::End(avow_model::attempt::Outcome::TimedOut),
        false => succeed(),
    });
    assert_eq!(bench.executes(), ["b"]);
    bench.plan.stages[1].reuse = Reuse::Never;
    assert_eq!(bench.executes(), ["b"]);
    assert_eq!(bench.executes(), ["b"]);
}

#[test]
fn a_journal_that_was_brought_in_is_looked_at() {
    let bench = Bench::new(DRAWING);
    let other = bench.copy();
    let foreign = other.run().run;
    bench.run();
    fs::copy(other.project.journal(&foreign), bench.project.journal(&foreign)).unwrap();
    assert!(!again(&bench).unchanged, "an earlier attempt may stand now");
}
