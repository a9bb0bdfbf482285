//! Whatever ends the tool, the same command goes on where it stopped and comes to the same end.
//!
//! Moments of death are drawn from a fixed seed, so that a failure can be looked at again; how far a run has
//! come by then differs from machine to machine, which only makes more moments of them.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use avow_model::attempt::Outcome;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::journal::{Closing, Event};
use avow_testkit::Sandbox;

/// Twenty-four members that take a tenth of a second each and write their output in two halves, and one that reads them all.
const SPEC: &str = "\
avow: 1
experiment: mortal
axes: {seed: {range: [1, 25]}}
stages:
  slow:
    run: [sh, slow.sh, '${axes.seed}', '${outputs.result}', '${outputs.trace}']
    outputs: {trace: trace/}
    measurements: {result: result.json}
  total:
    run: sh total.sh ${inputs.all} ${outputs.sum}
    inputs: {all: {from: slow.result, gather: seed}}
    outputs: {sum: sum.txt}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const SLOW: &str = "\
mkdir \"$3\"
printf '{\"value\": ' > \"$2\"
echo \"half of $1\" > \"$3/half.txt\"
sleep 0.1
printf '1.%d}\\n' \"$1\" >> \"$2\"
echo \"all of $1\" > \"$3/all.txt\"
";

const TOTAL: &str = "find -L \"$1\" -name '*.json' | grep -v index.json | sort | xargs cat > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("slow.sh", SLOW).file("total.sh", TOTAL);
    sandbox
}

type Artifacts = BTreeMap<(String, String), Artifact>;

/// What an undisturbed run gives.
fn undisturbed() -> (Artifacts, serde_json::Value) {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    (sandbox.history().artifacts(), verdicts(&sandbox))
}

/// The verdicts without the names of attempts, and without the lost ones, which are told beside them.
fn verdicts(sandbox: &Sandbox) -> serde_json::Value {
    let mut report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    for deviation in report["deviations"].as_array().unwrap() {
        assert_eq!(deviation["what"], "failed-attempts");
    }
    assert_eq!(report["findings"], serde_json::json!([]));
    let mut verdicts = report["verdicts"].take();
    for verdict in verdicts.as_array_mut().unwrap() {
        verdict.as_object_mut().unwrap().remove("deviations");
        let evidence = verdict["evidence"].as_array_mut().unwrap();
        for evidence in &mut *evidence {
            evidence.as_object_mut().unwrap().remove("attempt");
        }
        evidence.sort_by_key(|evidence| evidence["artifact"].to_string());
    }
    verdicts
}

/// A number from 0 to `below`, the same sequence for the same seed (a multiplicative congruence).
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Nothing that was executed with success is executed again, and what it wrote is there, byte by byte.
fn check(sandbox: &Sandbox) {
    let history = sandbox.history();
    for (member, count) in history.successes() {
        assert!(count <= 1, "{member} was executed {count} times");
    }
    for artifact in history.artifacts().into_values() {
        let bytes = fs::read(sandbox.blob(artifact.blob())).unwrap();
        assert_eq!(blake3::hash(&bytes).to_string(), artifact.blob().to_string());
    }
}

/// Kills a run ten times, each time within so many milliseconds, and lets it end; everything is as if nothing
/// had happened.
fn ten_deaths(jobs: &str, seed: u64, longest: u64) {
    let sandbox = project();
    let mut state = seed;
    for _ in 0..10 {
        let life = Duration::from_millis(draw(&mut state, longest));
        let before = sandbox.survivors();
        let run = sandbox.kill_after(life, &["run", "-j", jobs]);
        // All lives together are shorter than the members take, so none of them sees the end.
        assert_eq!(run.code, 137, "{run:?}");
        if run.stderr.contains("had died") {
            let alive = sandbox.survivors();
            assert!(
                before.iter().all(|pid| !alive.contains(pid)),
                "the next run ends what the last one left"
            );
        }
        check(&sandbox);
    }
    let done = |sandbox: &Sandbox| sandbox.history().successes().values().any(|count| *count > 0);
    // On a slow machine all ten lives may have been too short for anything to be recorded.
    if !done(&sandbox) {
        assert_eq!(sandbox.kill_when(done, &["run", "-j", jobs]).code, 137);
        check(&sandbox);
    }
    // And most of them too short for a journal.
    while let runs @ ..5 = sandbox.history().runs.len() {
        let began = move |sandbox: &Sandbox| sandbox.history().runs.len() > runs;
        assert_eq!(sandbox.kill_when(began, &["run", "-j", jobs]).code, 137);
        check(&sandbox);
    }
    sandbox.avow(&["run", "-j", jobs]).expect_code(0);
    check(&sandbox);
    assert_eq!(sandbox.survivors(), [0; 0]);
    let (artifacts, expected) = undisturbed();
    assert_eq!(sandbox.history().artifacts(), artifacts);
    assert_eq!(verdicts(&sandbox), expected);
    sandbox.avow(&["store", "check"]).expect_code(0);

    let history = sandbox.history();
    assert!(history.attempts().any(|(_, attempt)| attempt.outcome == Outcome::Lost), "some were under way");
    let (last, died) = history.runs.split_last().unwrap();
    assert!(died.iter().any(|run| run.state.counts().succeeded > 0), "some were done");
    assert_eq!(last.state.closed, Some(Closing::Complete));
    // One that was killed before its journal had a line left none; the others were closed by their successor.
    assert!(died.len() >= 5, "{}", died.len());
    assert!(died.iter().all(|run| run.state.closed == Some(Closing::Abandoned)));
}

#[test]
fn ten_deaths_with_one_slot() {
    ten_deaths("1", 19, 400);
}

#[test]
fn ten_deaths_with_two_slots() {
    ten_deaths("2", 31, 240);
}

#[test]
fn a_killed_run_is_closed_and_its_processes_are_ended_by_the_next() {
    let sandbox = project();
    // It ignores polite signals and outlives its runner, until there is a file that the test makes.
    let calm = sandbox.root().with_file_name("calm");
    sandbox.file(
        "slow.sh",
        format!("if ! [ -e {} ]; then trap '' TERM; touch ready; sleep 300; fi\n{SLOW}", calm.display()),
    );
    sandbox.kill_when(|sandbox| working(sandbox, "ready"), &["run", "-j", "1"]);
    assert!(!sandbox.survivors().is_empty(), "the stage outlived its runner");
    fs::write(&calm, "").unwrap();
    let run = sandbox.avow(&["run", "-j", "1"]).with_code(0);
    assert!(run.stderr.contains("had died; 1 attempt lost"), "{}", run.stderr);
    assert_eq!(sandbox.survivors(), [0; 0]);
    let history = sandbox.history();
    assert_eq!(history.runs[0].state.closed, Some(Closing::Abandoned));
    assert_eq!(history.runs[0].state.counts().lost, 1);
    // The ledger knows where its journal ends, as of any run.
    let ledger = fs::read_dir(sandbox.path(".avow/ledger")).unwrap().flatten();
    let ledger =
        ledger.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let text = fs::read_to_string(ledger.expect("the run was announced")).unwrap();
    let ends =
        text.lines().filter(|line| line.contains("\"run-closed\"") && line.contains(&history.runs[0].name));
    assert_eq!(ends.count(), 1, "{text}");
}

/// Whether the folder of some attempt holds a file of this name.
fn working(sandbox: &Sandbox, name: &str) -> bool {
    let mut pending = vec![sandbox.path(".avow/work")];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            } else if entry.file_name() == name {
                return true;
            }
        }
    }
    false
}

#[test]
fn a_torn_output_is_never_believed() {
    let sandbox = project();
    // At the first death an output lies half written in the attempt's folder.
    assert_eq!(sandbox.kill_when(|sandbox| working(sandbox, "half.txt"), &["run", "-j", "1"]).code, 137);
    // A death in mid-write of a blob leaves a piece under a temporary name.
    sandbox.file(".avow/work/tmp/left-behind/blob", "{\"value\": ");
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(sandbox.list(".avow/work"), ["tmp"], "folders of dead attempts are cleared away");
    assert_eq!(sandbox.list(".avow/work/tmp"), [""; 0], "pieces of blobs too");
    assert_eq!(sandbox.history().artifacts(), undisturbed().0);
    let torn = BlobDigest::from_bytes(*blake3::hash(b"{\"value\": ").as_bytes());
    assert!(!sandbox.blob(torn).exists(), "no half is in the store");
    check(&sandbox);
}

#[test]
fn the_journals_last_line_may_be_torn() {
    let sandbox = project();
    let three = |sandbox: &Sandbox| sandbox.history().successes().values().sum::<usize>() >= 3;
    sandbox.kill_when(three, &["run", "-j", "1"]);
    let path = format!(".avow/journal/{}.jsonl", sandbox.history().latest().name);
    // What a death in mid-write leaves behind the last line.
    let torn = sandbox.read(&path) + "{\"previous\":\"1e5d";
    sandbox.file(&path, &torn);
    let status = sandbox.avow(&["status"]).with_code(0);
    assert!(status.stdout.contains("died"), "{}", status.stdout);
    assert_eq!(sandbox.read(&path), torn, "readers change nothing");
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(sandbox.history().runs[0].journal.damage, None, "the writer cut it");
    assert_eq!(sandbox.history().artifacts(), undisturbed().0);
    check(&sandbox);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

/// Asked to stop, it takes its leave, which takes a moment.
const POLITE: &str = "trap 'touch asked; sleep 1; echo goodbye; exit 3' TERM\ntouch ready\nsleep 60 & wait\n";

#[test]
fn one_interrupt_lets_stages_end_themselves() {
    let sandbox = project();
    sandbox.file("slow.sh", POLITE);
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(|sandbox| working(sandbox, "ready"));
    running.signal("INT");
    let run = running.wait().with_code(130);
    assert!(run.stderr.contains("stopping"), "{}", run.stderr);
    let history = sandbox.history();
    assert_eq!(history.latest().state.closed, Some(Closing::Interrupted));
    assert_eq!(history.latest().started(), ["slow[seed=1]"], "nothing new is started");
    let attempt = history.latest().attempt("slow[seed=1]");
    assert_eq!(attempt.outcome, Outcome::Cancelled);
    assert_eq!(fs::read_to_string(sandbox.blob(attempt.stdout.unwrap())).unwrap(), "goodbye\n");
    assert_eq!(sandbox.survivors(), [0; 0]);
    // The same command goes on.
    sandbox.file("slow.sh", SLOW);
    sandbox.avow(&["run"]).expect_code(0);
}

#[test]
fn two_interrupts_kill() {
    let sandbox = project();
    sandbox.file("slow.sh", POLITE);
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(|sandbox| working(sandbox, "ready"));
    running.signal("INT");
    running.wait_until(|sandbox| working(sandbox, "asked"));
    running.signal("INT");
    running.wait().expect_code(130);
    let history = sandbox.history();
    let attempt = history.latest().attempt("slow[seed=1]");
    assert_eq!((&attempt.outcome, attempt.stdout), (&Outcome::Cancelled, None), "no time for a farewell");
    assert_eq!(history.latest().state.closed, Some(Closing::Interrupted));
    assert_eq!(sandbox.survivors(), [0; 0]);
}

#[test]
fn what_is_never_reused_is_yet_not_repeated_by_a_resumed_run() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "    outputs: {trace", "    reuse: never\n    outputs: {trace");
    let four = |sandbox: &Sandbox| sandbox.history().successes().len() >= 4;
    sandbox.kill_when(four, &["run", "-j", "1"]);
    let finished = sandbox.history().successes().len();
    let executed = sandbox.executes(&["run"]);
    assert_eq!(executed.len(), 25 - finished, "{executed:?}");
    check(&sandbox);
    let again = sandbox.executes(&["run"]);
    assert_eq!(
        again.iter().filter(|member| member.starts_with("slow")).count(),
        24,
        "a new run measures anew"
    );
}

#[test]
fn an_interrupted_run_keeps_what_was_finished() {
    let sandbox = project();
    let mut running = sandbox.start(&["run", "-j", "2"]);
    running.wait_until(|sandbox| sandbox.history().successes().len() >= 4);
    running.signal("TERM");
    running.wait().expect_code(130);
    let finished = sandbox.history().successes().values().sum::<usize>();
    let executed = sandbox.executes(&["run"]);
    assert_eq!(executed.len(), 25 - finished);
    check(&sandbox);
    // Each attempt was announced before it was made.
    for run in sandbox.history().runs {
        let started = |line: &avow_model::journal::Line| matches!(line.event, Event::Started { .. });
        assert!(run.journal.lines.iter().filter(|line| started(line)).count() >= run.state.attempts.len());
    }
}
