//! A person who stops a run, and the run that goes on.

use avow_engine::Notice;
use avow_exec::Cancel;
use avow_exec::fake::{Act, FakeExecutor};
use avow_model::attempt::Outcome;
use avow_model::journal::Closing;

use crate::bench::{Bench, echoes, succeed};

#[test]
fn a_stopped_run_is_closed_and_the_next_goes_on() {
    let bench = Bench::new("a[seed:4] => b");
    let cancel = Cancel::new().unwrap();
    let stop = cancel.clone();
    // The first ends well, the second hangs until the stop, which comes with the third.
    let report = bench.scripted_until(cancel, move |call| {
        if echoes(call, "a 1") {
            return Act::Hang;
        }
        if echoes(call, "a 2") {
            stop.stop();
            return Act::Hang;
        }
        succeed()
    });
    assert_eq!(report.closing, Closing::Interrupted);
    let past = bench.past(&report.run);
    assert_eq!(past.state.closed, Some(Closing::Interrupted));
    assert_eq!(past.started(), ["a[seed=0]", "a[seed=1]", "a[seed=2]"]);
    assert_eq!(past.outcomes("a[seed=1]"), [(1, Outcome::Cancelled)]);
    assert_eq!(past.outcomes("a[seed=2]"), [(1, Outcome::Cancelled)]);
    assert_eq!(bench.open().recovered, [], "nothing to put in order");
    assert_eq!(bench.executes(), ["a[seed=1]", "a[seed=2]", "a[seed=3]", "b"]);
}

#[test]
fn a_stop_before_the_start_starts_nothing() {
    let bench = Bench::new("a -> b");
    let cancel = Cancel::new().unwrap();
    cancel.stop();
    let session = bench.open();
    let executor = FakeExecutor::succeeding(session.blobs.clone());
    let mut stopping = 0;
    let mut notify = |notice: Notice| stopping += usize::from(matches!(notice, Notice::Stopping));
    let report = bench.drive(&session, executor.clone(), cancel, &mut notify).unwrap();
    assert_eq!((report.closing, stopping, executor.calls().len()), (Closing::Interrupted, 1, 0));
    assert!(!bench.ledger().path().exists(), "a run that executed nothing is not announced");
}

#[test]
fn a_stop_that_comes_when_everything_is_done_changes_nothing() {
    let bench = Bench::new("a");
    let cancel = Cancel::new().unwrap();
    let stop = cancel.clone();
    let report = bench.scripted_until(cancel, move |_| {
        stop.stop();
        succeed()
    });
    assert_eq!((report.closing, report.tally.succeeded), (Closing::Complete, 1));
}
