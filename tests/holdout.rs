//! Sealed outputs: who read them is counted from the first, and rows that were trained on are named.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::Sandbox;
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: sealed
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  split:
    run: [sh, split.sh, '${inputs.all}', '${outputs.train}', '${outputs.test}']
    inputs: {all: all.csv}
    outputs: {train: train.csv, test: {path: test.csv, holdout: true}}
  train:
    kind: train
    run: [sh, train.sh, '${inputs.data}', '${axes.seed}', '${outputs.model}']
    inputs: {data: split.train}
    outputs: {model: model.txt}
  score:
    kind: measure
    run: [sh, score.sh, '${inputs.model}', '${inputs.test}', '${outputs.result}']
    inputs: {model: train.model, test: split.test}
    measurements: {result: result.json}
claims:
  good: {says: It is good., select: score.yield, rule: {kind: threshold, above: 0}}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("all.csv", "x,y\n1,10\n2,20\n3,30\n4,40\n5,50\n6,60\n");
    sandbox.file("split.sh", "head -5 \"$1\" > \"$2\"; { head -1 \"$1\"; tail -2 \"$1\"; } > \"$3\"\n");
    sandbox.file("train.sh", "cat \"$1\" > \"$3\"; echo \"seed $2\" >> \"$3\"\n");
    sandbox.file("score.sh", "printf '{\"yield\": 1.%s}\\n' \"$(tail -1 \"$1\" | cut -c6-)\" > \"$3\"\n");
    sandbox
}

fn report(sandbox: &Sandbox) -> Value {
    sandbox.avow(&["verdict", "spec.yaml", "--json"]).with_code(0).json()
}

fn of_class(report: &Value, class: &str) -> Vec<Value> {
    report["deviations"].as_array().unwrap().iter().filter(|d| d["class"] == class).cloned().collect()
}

#[test]
fn whoever_reads_a_sealed_output_is_counted_before_and_after_the_registration() {
    let sandbox = project();
    // Another experiment over the same data, before anything is registered.
    let other = SPEC.replace("experiment: sealed", "experiment: earlier").replace("above: 0", "above: 1");
    sandbox.file("other.yaml", other);
    sandbox.avow(&["run", "-q", "other.yaml", "--only", "score[seed=1]"]).expect_code(0);
    sandbox.avow(&["run", "-q", "spec.yaml", "--only", "split"]).expect_code(0);
    sandbox.avow(&["get", "split.test", "--spec", "spec.yaml", "-o", "looked.csv"]).expect_code(0);
    sandbox.avow(&["get", "split.train", "--spec", "spec.yaml", "-o", "mine.csv"]).expect_code(0);
    sandbox.avow(&["register", "spec.yaml", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q", "spec.yaml"]).expect_code(0);
    let report = report(&sandbox);
    let sealed = &report["sealed"];
    assert_eq!(sealed.as_array().unwrap().len(), 1, "what is not sealed is not counted: {sealed}");
    assert_eq!(sealed[0]["output"], "split.test");
    assert_eq!(sealed[0]["before"], json!({"attempts": {"earlier: score": 1}, "commands": {"get": 1}}));
    assert_eq!(sealed[0]["after"], json!({"attempts": {"score": 7}, "commands": {}}), "one was reused");
    let copied = of_class(&report, "exposure");
    assert_eq!((copied.len(), &copied[0]["when"]), (1, &json!("before-registration")), "{report}");
    let told = sandbox.avow(&["verdict", "spec.yaml", "--check"]).with_code(7).stdout;
    let line = "The sealed `split.test` was read before the registration by 1 attempt of earlier: score and \
                get (1 time), under it by 7 attempts of score.";
    assert!(told.contains(line), "{told}");
    assert!(told.contains("the sealed `split.test` was copied out by get (once)"), "{told}");
    // A look once all is in is counted, and is nobody's fault.
    sandbox.avow(&["get", "split.test", "--spec", "spec.yaml", "-o", "again.csv"]).expect_code(0);
    let after = self::report(&sandbox);
    assert_eq!(after["sealed"][0]["after"]["commands"], json!({"get": 1}));
    assert_eq!(of_class(&after, "exposure").len(), 1);
}

#[test]
fn rows_of_a_holdout_that_were_trained_on_are_counted_and_named() {
    let sandbox = project();
    // One row too many on either side of the cut.
    sandbox.replace("split.sh", "head -5", "head -6");
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let report = report(&sandbox);
    let found = of_class(&report, "leakage");
    assert_eq!(found.len(), 1, "{report}");
    let leak = &found[0];
    assert_eq!((&leak["holdout"], &leak["training"]), (&json!("split.test"), &json!("split.train")));
    assert_eq!((&leak["shared"], &leak["rows"]), (&json!(1), &json!(2)), "the header is no row: {leak}");
    assert_eq!(leak["first"], json!([{"holdout": "line 2", "training": "line 6"}]));
    assert!(report["verdicts"][0]["deviations"].as_array().unwrap().contains(&json!(0)), "{report}");
    let told = sandbox.avow(&["verdict", "--check"]).with_code(7).stdout;
    let line = "leakage, after the first attempt: 1 of 2 rows of the sealed `split.test` are rows of \
                `split.train` too (line 2 = line 6)";
    assert!(told.contains(line), "{told}");
    sandbox.avow(&["amend", "--reason", "the row is a constant", "--explain", "leakage"]).expect_code(0);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn folds_that_are_never_judged_together_leak_nothing() {
    let sandbox = project();
    let folds = SPEC
        .replace("axes: {", "axes: {fold: [2, 4, 6], ")
        .replace("'${outputs.test}']", "'${outputs.test}', '${axes.fold}']")
        .replace(
            "claims:\n",
            "  summary:
    run: [sh, summary.sh, '${inputs.all}', '${outputs.mean}']
    inputs: {all: {from: score.result, gather: fold}}
    measurements: {mean: mean.json}
claims:
",
        )
        .replace("score.yield", "summary.yield");
    sandbox.file("spec.yaml", folds);
    sandbox.file(
        "split.sh",
        "awk -v f=\"$4\" 'NR == 1 || NR != f && NR != f + 1' \"$1\" > \"$2\"\n\
         awk -v f=\"$4\" 'NR == 1 || NR == f || NR == f + 1' \"$1\" > \"$3\"\n",
    );
    sandbox.file("summary.sh", "cat \"$1\"/0000.json > \"$2\"\n");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let clean = report(&sandbox);
    assert_eq!(of_class(&clean, "leakage"), [] as [Value; 0]);
    assert_eq!(clean["sealed"][0]["before"]["attempts"], json!({"score": 24}));
    // Once a fold trains on its own test rows it is found, through the stages between.
    sandbox.file("split.sh", sandbox.read("split.sh").replace("NR != f && NR != f + 1", "NR != f"));
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let found = of_class(&report(&sandbox), "leakage");
    assert_eq!((found.len(), &found[0]["shared"]), (1, &json!(1)), "{found:?}");
}

#[test]
fn a_sealed_file_without_rows_is_not_passed_over_in_silence() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "path: test.csv", "path: test.bin");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let report = report(&sandbox);
    assert_eq!(report["uncompared"].as_array().unwrap().len(), 1, "{report}");
    let told = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(told.contains("Not searched for shared rows: split.test (test.bin)"), "{told}");
}
