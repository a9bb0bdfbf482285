//! A sweep of a million cells is checked, planned and run in part without its cells ever being listed.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::process::Command;

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: cells
axes: {a: {range: [0, 100]}, b: {range: [0, 100]}, c: {seeds: 100}}
stages:
  one: {run: 'echo ${axes.a} ${axes.b} ${axes.c} > ${outputs.out}', outputs: {out: out.txt}}
  two:
    run: |
      cat ${inputs.x}
      echo '{\"score\": 1}' > ${outputs.m}
    inputs: {x: one.out}
    measurements: {m: m.json}
claims:
  c: {select: score, reduce: {a: mean, b: mean}, replicate: c, rule: {kind: threshold, above: 0}}
";

/// The most memory, in KiB: a state for every member of this plan would need several times as much.
const MEMORY: &str = "1048576";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox
}

/// Runs a command with a limit of address space; what it printed.
fn limited(sandbox: &Sandbox, command: &str) -> String {
    let script = format!("ulimit -v {MEMORY}; exec \"$0\" {command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_avow")]).current_dir(sandbox.root());
    let run = shell.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{command}: {printed}\n{said}");
    printed.into_owned()
}

#[test]
fn a_million_cells_are_checked_and_planned_symbolically() {
    let sandbox = project();
    let check = limited(&sandbox, "check");
    assert!(check.starts_with("spec.yaml: good. 2 stages, 2000000 members, 1 claim"), "{check}");
    let plan = limited(&sandbox, "plan");
    let expected = "cells: 2000000 members, 0 reused, 2000000 to run";
    assert!(plan.starts_with(expected), "{plan}");
    assert!(plan.contains("and 999999 more: will run: exactly this was never executed"), "{plan}");
    assert!(plan.contains("and 999999 more: waits for one input"), "{plan}");
    assert!(plan.lines().count() < 10, "{plan}");
    sandbox.avow(&["plan", "--all"]).expect_code(2);
    sandbox.avow(&["explain", "two"]).expect_code(2);
}

#[test]
fn running_some_cells_does_not_cost_the_rest() {
    let sandbox = project();
    let some = "one[a=3,b=4]";
    let file = sandbox.root().with_file_name("counts");
    let plan = sandbox.avow(&["plan", "--only", some]).with_code(0).stdout;
    assert!(plan.starts_with("cells: 100 members, 0 reused, 100 to run"), "{plan}");
    let run = sandbox.avow_with("AVOW_COUNTS", &file.display().to_string(), &["run", "--only", some]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("100 executed"), "{}", run.stderr);
    let counts: HashMap<String, u64> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(counts["members"] <= 200 && counts["lines"] < 1_000, "{counts:?}");
    let status = sandbox.avow(&["status", "--json"]).with_code(0).json();
    assert_eq!(status["counts"]["succeeded"], 100);
    let member = sandbox.avow(&["plan", "--only", some]).with_code(0).stdout;
    assert!(member.starts_with("cells: 100 members, 100 reused, 0 to run"), "{member}");
}
