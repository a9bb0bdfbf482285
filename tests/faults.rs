//! Every single act of a run on the disk goes wrong once; what was recorded stays, and the next run comes to the
//! same end.
//!
//! Debug builds of the program take a fault from the variable `AVOW_FAULTS` (`avow-store/src/faults.rs`): the
//! k-th act of the store fails, is torn, or is the last of the process. The suites go through all k of a small
//! run, each in a project of its own.
#![expect(clippy::unwrap_used, reason = "tests")]
#![cfg(debug_assertions)]

use std::collections::BTreeMap;

use avow_model::attempt::{Blame, Outcome};
use avow_model::digest::Artifact;
use avow_testkit::{Run, Sandbox};
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: mortal
axes: {seed: {range: [1, 3]}}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.result}', '${outputs.trace}']
    outputs: {trace: trace/}
    measurements: {result: result.json}
  total:
    run: sh total.sh ${inputs.all} ${outputs.sum}
    inputs: {all: {from: make.result, gather: seed}}
    outputs: {sum: sum.txt}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str =
    "mkdir \"$3\"\nprintf '{\"value\": 1.%d}\\n' \"$1\" > \"$2\"\necho \"all of $1\" > \"$3/all.txt\"\n";

const TOTAL: &str = "find -L \"$1\" -name '*.json' | grep -v index.json | sort | xargs cat > \"$2\"\n";

const RUN: [&str; 3] = ["run", "-j", "1"];

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", MAKE).file("total.sh", TOTAL);
    sandbox
}

/// What a run has to come to, whatever happened on the way.
#[derive(Debug, PartialEq)]
struct End {
    artifacts: BTreeMap<(String, String), Artifact>,
    verdicts: Value,
}

fn end(sandbox: &Sandbox) -> End {
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(report["findings"], json!([]));
    let fields = ["claim", "verdict", "reason", "estimate", "interval", "q", "n"];
    let brief = |verdict: &Value| fields.map(|field| verdict[field].clone());
    let verdicts = report["verdicts"].as_array().unwrap().iter().map(brief).collect();
    End { artifacts: sandbox.history().artifacts(), verdicts }
}

/// How many acts an undisturbed run has, which of them write, and what it comes to.
fn undisturbed() -> (usize, Vec<usize>, End) {
    let sandbox = project();
    let list = sandbox.root().with_file_name("acts");
    sandbox.avow_with("AVOW_FAULTS", &format!("trace@0={}", list.display()), &RUN).expect_code(0);
    let acts = std::fs::read_to_string(list).unwrap();
    let writes = acts.lines().filter(|line| line.contains(" Write "));
    let writes = writes.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    (acts.lines().count(), writes, end(&sandbox))
}

/// After a fault the same command, undisturbed, comes to the expected end, and says so.
fn heals(sandbox: &Sandbox, fault: &str, expected: &End) {
    let context = |what: &str| format!("after {fault}: {what}");
    let run = sandbox.avow(&RUN);
    assert_eq!(run.code, 0, "{}\n{}", context("the next run"), run.stderr);
    assert_eq!(&end(sandbox), expected, "{}", context("the end"));
    let history = sandbox.history();
    for (member, count) in history.successes() {
        assert!(count <= 1, "{}", context(&format!("{member} was executed {count} times")));
    }
    for (member, attempt) in history.attempts().filter(|(_, attempt)| !attempt.outcome.succeeded()) {
        let lost = attempt.outcome == Outcome::Lost;
        let refused = !fault.contains("crash") && attempt.outcome.blame() == Some(Blame::Machine);
        assert!(lost || refused, "{}", context(&format!("{member} {}", attempt.outcome)));
    }
    let check = sandbox.avow(&["store", "check"]);
    assert!(check.code == 0 && check.stdout.contains("all sound"), "{}\n{check:?}", context("the store"));
    let left: Vec<String> = sandbox.list(".avow").into_iter().filter(|name| name.ends_with(".tmp")).collect();
    assert_eq!((left, sandbox.list(".avow/work/tmp")), (Vec::new(), Vec::new()), "{}", context("litter"));
}

/// Lets each of these acts go wrong, each in a project of its own.
fn each(
    acts: impl Iterator<Item = usize>,
    mode: impl Fn(usize) -> String,
    expected: &End,
    told: impl Fn(&Run, &str, usize),
) {
    for act in acts {
        let fault = mode(act);
        let sandbox = project();
        let list = sandbox.root().with_file_name("acts");
        let run = sandbox.avow_with("AVOW_FAULTS", &format!("trace@0={};{fault}", list.display()), &RUN);
        let came = std::fs::read_to_string(list).unwrap_or_default().lines().count();
        told(&run, &fault, came);
        // What was recorded before the fault is not executed again.
        let recorded = sandbox.history().successes();
        heals(&sandbox, &fault, expected);
        let executed = sandbox.history().latest().started();
        for member in recorded.into_iter().filter(|(_, count)| *count > 0).map(|(member, _)| member) {
            assert!(
                !executed.contains(&member),
                "after {fault}: {member} was recorded and is executed again"
            );
        }
    }
}

/// Ends that come together share acts on the disk, so one run may have a few acts fewer than another: only a fault
/// behind the last act that came may leave the run alone.
fn killed(run: &Run, fault: &str, came: usize) {
    let at: usize = fault.rsplit('@').next().unwrap().parse().unwrap();
    let expected = if came < at { 0 } else { 137 };
    assert_eq!(run.code, expected, "{fault}, {came} acts came: {run:?}");
}

/// A fault that is not survived in silence is the machine's, and a person is told what to do.
fn told(run: &Run, fault: &str, word: &str) {
    if run.code == 0 {
        return;
    }
    assert_eq!(run.code, 8, "{fault}: {run:?}");
    for part in ["error", word, "hint:"] {
        assert!(run.stderr.contains(part), "{fault}: `{part}` is not told\n{}", run.stderr);
    }
}

#[test]
fn a_run_may_die_before_any_act() {
    let (count, _, expected) = undisturbed();
    assert!(count > 100, "{count}");
    each(1..=count, |act| format!("crash@{act}"), &expected, killed);
}

#[test]
fn a_run_may_die_in_the_middle_of_any_write() {
    let (_, writes, expected) = undisturbed();
    assert!(writes.len() > 30, "{writes:?}");
    each(writes.into_iter(), |act| format!("tear@{act}"), &expected, killed);
}

#[test]
fn any_act_may_fail() {
    let (count, _, expected) = undisturbed();
    let mode = |act| format!("fail@{act}=EIO");
    each(1..=count, mode, &expected, |run, fault, _| told(run, fault, "Input/output error"));
}

#[test]
fn the_disk_may_be_full_from_any_act_on() {
    let (count, writes, expected) = undisturbed();
    let mode = |act| format!("full@{act}=ENOSPC");
    each(1..=count, mode, &expected, |run, fault, _| told(run, fault, "disk space"));
    let mode = |act| format!("short@{act}=ENOSPC");
    each(writes.into_iter(), mode, &expected, |run, fault, _| told(run, fault, "disk space"));
}
