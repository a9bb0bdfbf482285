//! Which earlier attempts stand for a member.

use std::collections::BTreeMap;

use avow_exec::Cancel;
use avow_exec::fake::Act;
use avow_model::attempt::Outcome;
use avow_model::journal::Closing;
use avow_model::plan::{Keep, Plan, Reuse};
use avow_model::template::Template;
use avow_model::value::Value;

use crate::bench::{Bench, echoes, succeed};

fn with_reuse(drawing: &str, stage: &str, reuse: Reuse) -> Plan {
    let mut plan = avow_testkit::plan(drawing);
    plan.stages.iter_mut().find(|s| s.name == stage).unwrap().reuse = reuse;
    plan
}

#[test]
fn hits_of_one_wave_are_one_line() {
    let bench = Bench::new("data -> train[seed:2] -> score; score => table");
    bench.run();
    bench.forget_settled();
    let report = bench.run();
    assert_eq!((report.closing, report.tally.reused), (Closing::Complete, 6));
    let past = bench.past(&report.run);
    let waves: [&[&str]; 4] =
        [&["data"], &["train[seed=0]", "train[seed=1]"], &["score[seed=0]", "score[seed=1]"], &["table"]];
    assert_eq!(past.waves(), waves);
    assert_eq!(past.lines.len(), 2 + waves.len());
}

#[test]
fn a_plan_that_grew_executes_only_what_is_new() {
    let mut bench = Bench::new("a[seed:2] => b");
    bench.run();
    bench.plan = avow_testkit::plan("a[seed:4] => b");
    assert_eq!(bench.executes(), ["a[seed=2]", "a[seed=3]", "b"]);
    bench.plan = avow_testkit::plan("a[seed:2] => b");
    assert_eq!(bench.executes(), [""; 0]);
}

#[test]
fn what_is_reused_is_decided_by_bytes_and_not_by_what_ran_before_it() {
    let bench = Bench::new("a -> b");
    let same = || Act::Succeed(BTreeMap::from([("out".to_owned(), b"same".to_vec())]));
    bench.scripted(move |_| same());
    let mut other = bench.copy();
    other.plan.stages[0].env.insert("X".to_owned(), Template::parse("1").unwrap());
    let report = other.scripted(move |_| same());
    assert_eq!(other.past(&report.run).started(), ["a"], "`b` reads the bytes that it read before");
}

#[test]
fn an_output_of_which_only_the_digest_is_kept_is_no_reason_to_run_again() {
    let mut plan = avow_testkit::plan("a");
    plan.stages[0].outputs.get_mut("out").unwrap().keep = Keep::Digest;
    let bench = Bench::of(plan);
    bench.run();
    assert!(!bench.project.blob(bench.blob("a")).exists());
    assert_eq!(bench.executes(), [""; 0]);
}

#[test]
fn a_volatile_stage_is_executed_by_every_run_that_follows_a_complete_one() {
    let bench = Bench::of(with_reuse("data -> time[seed:2] => table", "time", Reuse::Never));
    bench.run();
    for _ in 0..2 {
        let report = bench.run();
        let past = bench.past(&report.run);
        assert_eq!(past.started(), ["time[seed=0]", "time[seed=1]"], "same times, so `table` stands");
        assert_eq!(past.state.opened.unwrap().continues, None);
    }
}

#[test]
fn a_volatile_attempt_counts_while_its_plan_is_unfinished() {
    let mut bench = Bench::of(with_reuse("time[seed:3] -> b", "time", Reuse::Never));
    bench.settings.cpus = 1;
    let mut before = None;
    for stop_at in ["time 1", "time 2"] {
        let cancel = Cancel::new().unwrap();
        let stop = cancel.clone();
        let report = bench.scripted_until(cancel, move |call| {
            if echoes(call, stop_at) {
                stop.stop();
                return Act::Hang;
            }
            succeed()
        });
        assert_eq!(report.closing, Closing::Interrupted);
        assert_eq!(bench.past(&report.run).state.opened.unwrap().continues, before);
        before = Some(report.run);
    }
    let report = bench.run();
    let past = bench.past(&report.run);
    assert!(
        !past.started().iter().any(|m| m == "time[seed=0]" || m == "time[seed=1]"),
        "{:?}",
        past.started()
    );
    assert_eq!(past.state.opened.unwrap().continues, before);
    assert_eq!(report.closing, Closing::Complete);
    assert_eq!(bench.executes(), ["time[seed=0]", "time[seed=1]", "time[seed=2]"]);
}

#[test]
fn a_volatile_attempt_of_another_plan_does_not_count() {
    let mut bench = Bench::of(with_reuse("time -> b", "time", Reuse::Never));
    bench.scripted(|call| match echoes(call, "b") {
        true => Act::End(Outcome::TimedOut),
        false => succeed(),
    });
    bench.plan.params.insert("note".to_owned(), Value::Int(1));
    let report = bench.run();
    assert_eq!(bench.past(&report.run).started(), ["b", "time"]);
}

#[test]
fn same_host_is_reused_only_where_it_was_made() {
    let mut bench = Bench::of(with_reuse("a -> b", "a", Reuse::SameHost));
    bench.run();
    assert_eq!(bench.executes(), [""; 0]);
    bench.host = "elsewhere";
    assert_eq!(bench.executes(), ["a"]);
}
