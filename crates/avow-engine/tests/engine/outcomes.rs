//! What follows a failure, and what does not.

use avow_engine::{EngineError, Notice};
use avow_exec::fake::{Act, Call, FakeExecutor};
use avow_exec::{Cancel, ExecError, Execution, Executor, Watch};
use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::journal::Closing;
use avow_model::plan::Terms;
use avow_planner::Target;
use avow_store::journal::journals;

use crate::bench::{Bench, echoes, succeed};

const EXIT: Outcome = Outcome::Failed(Failure::Exit(3));

#[test]
fn a_failure_stops_the_run_unless_it_is_to_keep_going() {
    let mut bench = Bench::new("a[seed:3] -> b");
    bench.settings.cpus = 1;
    let script = |call: &Call| match echoes(call, "a 1") {
        true => Act::End(EXIT),
        false => succeed(),
    };
    let report = bench.scripted(script);
    assert_eq!(report.closing, Closing::Failed);
    assert_eq!(report.failures, [("a[seed=1]".to_owned(), EXIT)]);
    assert_eq!((report.tally.failed, report.tally.blocked), (1, 1));
    assert!(report.tally.waiting > 0, "the rest was not reached");

    bench.settings.keep_going = true;
    let report = bench.scripted(script);
    assert_eq!(report.closing, Closing::Failed);
    assert_eq!((report.tally.failed, report.tally.blocked, report.tally.waiting), (1, 1, 0));
    assert_eq!(report.tally.reused + report.tally.succeeded, 4);

    // A new run executes failed members again, and only them and what they blocked.
    assert_eq!(bench.executes(), ["a[seed=1]", "b[seed=1]"]);
}

#[test]
fn a_failure_is_retried_as_often_as_declared() {
    let bench = Bench::new("a").terms("a", Terms { cpus: 1, retries: 2, ..Terms::default() });
    let session = bench.open();
    let executor = FakeExecutor::new(session.blobs.clone(), |call| match call.number {
        0 => Act::End(EXIT),
        1 => Act::End(Outcome::TimedOut),
        _ => succeed(),
    });
    let mut again = Vec::new();
    let mut notify = |notice: Notice| {
        if let Notice::Finished { again: tried, .. } = notice {
            again.push(tried);
        }
    };
    let report = bench.drive(&session, executor, Cancel::new().unwrap(), &mut notify).unwrap();
    assert_eq!(again, [true, true, false]);
    assert_eq!((report.closing, report.failures.len()), (Closing::Complete, 0));
    let outcomes = [(1, EXIT), (2, Outcome::TimedOut), (3, Outcome::Succeeded)];
    assert_eq!(bench.past(&report.run).outcomes("a"), outcomes);
}

#[test]
fn nothing_but_a_lost_attempt_is_retried_without_being_declared() {
    let bench = Bench::new("a");
    let report = bench.scripted(|call| match call.number {
        0 => Act::End(Outcome::Lost),
        _ => Act::End(EXIT),
    });
    assert_eq!(bench.past(&report.run).outcomes("a"), [(1, Outcome::Lost), (2, EXIT)]);
    assert_eq!((report.closing, report.failures), (Closing::Failed, vec![("a".to_owned(), EXIT)]));
}

#[test]
fn a_failure_that_is_not_tried_again_is_reported_though_it_could_have_been() {
    let bench = Bench::new("a; b").terms("b", Terms { cpus: 1, retries: 1, ..Terms::default() });
    let report = bench.scripted(|_| Act::End(EXIT));
    let failed: Vec<&str> = report.failures.iter().map(|(member, _)| member.as_str()).collect();
    assert_eq!(failed, ["a", "b"]);
}

#[test]
fn members_of_one_action_are_executed_once() {
    let mut plan = avow_testkit::plan("a; b");
    plan.stages[1].program = plan.stages[0].program.clone();
    let bench = Bench::of(plan);
    let report = bench.run();
    assert_eq!((report.tally.succeeded, report.tally.reused), (1, 1));
    assert_eq!(bench.past(&report.run).waves(), [["b"]]);
}

#[test]
fn only_what_was_asked_for_is_done_and_the_run_is_called_partial() {
    let mut bench = Bench::new("a -> b -> c");
    bench.settings.only = vec![Target::parse(&bench.plan, "b").unwrap()];
    let report = bench.run();
    assert_eq!((report.closing, report.tally.members), (Closing::Partial, 2));
    bench.settings.only.clear();
    assert_eq!(bench.executes(), ["c"]);
}

#[test]
fn slots_bound_what_runs_together() {
    let mut bench = Bench::new("a[seed:9]");
    bench.settings.cpus = 5;
    let bench = bench.terms("a", Terms { cpus: 2, ..Terms::default() });
    let session = bench.open();
    let executor = FakeExecutor::succeeding(session.blobs.clone());
    bench.drive(&session, executor.clone(), Cancel::new().unwrap(), &mut |_| {}).unwrap();
    assert_eq!((executor.most_at_once(), executor.calls().len()), (2, 9));
}

#[test]
fn a_stage_that_needs_more_than_there_is_is_refused_before_anything_is_written() {
    let bench = Bench::new("a -> b").terms("b", Terms { cpus: 64, ..Terms::default() });
    let session = bench.open();
    let executor = FakeExecutor::succeeding(session.blobs.clone());
    let error = bench.drive(&session, executor, Cancel::new().unwrap(), &mut |_| {}).unwrap_err();
    let EngineError::TooLarge { stage, source } = error else { panic!("{error:?}") };
    assert_eq!((stage.as_str(), source.asked, source.available), ("b", 64, 2));
    assert_eq!(journals(&bench.project).unwrap(), []);
}

#[test]
fn a_fault_of_the_executor_ends_the_run_and_the_next_goes_on() {
    let mut bench = Bench::new("a[seed:3] => b");
    bench.settings.cpus = 3;
    let session = bench.open();
    let executor = Faulty(FakeExecutor::succeeding(session.blobs.clone()));
    let error = bench.drive(&session, executor, Cancel::new().unwrap(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, EngineError::Exec(_)), "{error:?}");
    drop(session);
    let died = bench.history().remove(0);
    let beside: Vec<String> = died.succeeded().into_iter().collect();
    assert_eq!(beside, ["a[seed=0]", "a[seed=2]"], "what went well beside the fault is written down");
    assert_eq!(died.state.closed, None);
    assert_eq!(bench.open().recovered[0].lost, ["a[seed=1]"]);
    assert_eq!(bench.executes(), ["a[seed=1]", "b"]);
}

/// Cannot do the second attempt.
struct Faulty(FakeExecutor);

impl Executor for Faulty {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        let execution = self.0.run(attempt, action, terms, watch).await;
        match self.0.calls().iter().position(|call| call.attempt == *attempt) {
            Some(1) => Err(ExecError::Action { reason: "it is the second".to_owned() }),
            _ => execution,
        }
    }
}
