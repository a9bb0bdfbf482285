//! What a stage may read, what it is told when it may not, and that a result is reused only while what it read
//! is as it was.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use avow_testkit::Sandbox;
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: reading
axes: {seed: [1, 2]}
stages:
  train:
    run: [sh, train.sh, '${axes.seed}', '${outputs.result}']
    environment: none
    measurements: {result: result.json}
  after:
    run: [sh, after.sh, '${inputs.result}', '${outputs.sum}']
    environment: none
    inputs: {result: train.result}
    measurements: {sum: sum.json}
claims:
  positive:
    says: The value is above zero.
    select: train.value
    rule: {kind: threshold, above: 0, statistic: every}
";

/// From an attempt's folder to the project.
const UP: &str = "../../../..";

fn project(script: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("train.sh", script);
    sandbox.file("after.sh", "sed s/value/sum/ \"$1\" > \"$2\"\n").file("data/extra.csv", "40\n");
    sandbox
}

/// Whether this machine denies reads; without, most of this page says nothing.
fn denies(sandbox: &Sandbox) -> bool {
    let rows = sandbox.avow(&["doctor", "--json"]).with_code(0).json();
    let line = rows.as_array().unwrap().iter().find(|row| row["name"] == "confinement").unwrap();
    line["text"].as_str().unwrap().contains("`deny`")
}

fn reading(path: &str) -> String {
    format!("set -e\nv=$(cat {path})\nprintf '{{\"value\": %d}}\\n' $((v + $1)) > \"$2\"\n")
}

/// The values of `train`, then of `after`, by seed.
fn values(sandbox: &Sandbox) -> Vec<(String, f64)> {
    let text = sandbox.avow(&["table", "--json"]).with_code(0).stdout;
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all: Vec<(String, f64)> = rows
        .map(|row| {
            let name = format!("{}.{}", row["stage"].as_str().unwrap(), row["name"].as_str().unwrap());
            (name, row["value"].as_f64().unwrap())
        })
        .collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

fn confinements(sandbox: &Sandbox) -> Vec<String> {
    let history = sandbox.history();
    let mut all: Vec<String> = history.attempts().map(|(_, a)| a.host.confinement.clone()).collect();
    all.dedup();
    all
}

#[test]
fn a_denied_read_names_file_and_member_and_how_to_declare_it() {
    let sandbox = project(&reading(&format!("{UP}/data/extra.csv")));
    if !denies(&sandbox) {
        return;
    }
    let run = sandbox.avow(&["run", "--only", "train[seed=2]"]).with_code(1);
    let told = "train[seed=2] was denied reading data/extra.csv: it is not among its inputs";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert!(run.stderr.contains("`inputs: {extra: data/extra.csv}`"), "{}", run.stderr);
    let explained = sandbox.avow(&["explain", "train[seed=2]"]).with_code(0);
    assert!(explained.stdout.contains(told), "{}", explained.stdout);
    assert!(explained.stdout.contains("executed under deny"), "{}", explained.stdout);
    // As the hint says.
    sandbox.replace(
        "spec.yaml",
        "measurements: {result:",
        "inputs: {extra: data/extra.csv}\n    measurements: {result:",
    );
    sandbox.file("train.sh", reading("data/extra.csv"));
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(values(&sandbox)[2].1, 41.0);
}

#[test]
fn a_file_of_the_home_is_denied_until_it_is_allowed() {
    let sandbox = project(&reading("\"$HOME/shared/value\""));
    if !denies(&sandbox) {
        return;
    }
    let home = sandbox.root().with_file_name("home");
    fs::create_dir(home.join("shared")).unwrap();
    fs::write(home.join("shared/value"), "7\n").unwrap();
    let run = sandbox.avow(&["run"]).with_code(1);
    assert!(run.stderr.contains("was denied reading ~/shared/value"), "{}", run.stderr);
    assert!(run.stderr.contains("allow = [\"~/shared/value\"]"), "{}", run.stderr);
    sandbox.file("avow.toml", "[confine]\nallow = [\"~/shared\"]\n");
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(values(&sandbox)[2], ("train.value".to_owned(), 8.0));
}

#[test]
fn a_file_that_only_the_project_has_is_named() {
    // A name that stands in the script is part of its code; this one is put together while it runs.
    let sandbox = project(&reading("data/$(printf extra).csv"));
    let run = sandbox.avow(&["run", "--confine", "none"]).with_code(1);
    let told =
        "train[seed=1] did not find data/extra.csv: the project has it, but it is not among its inputs";
    assert!(run.stderr.contains(told), "{}", run.stderr);
}

#[test]
fn the_option_wins_over_the_file_and_both_over_the_default() {
    let sandbox = project(&reading(&format!("{UP}/data/extra.csv")));
    sandbox.file("avow.toml", "[confine]\nlevel = \"declared\"\n");
    sandbox.avow(&["run", "--only", "train[seed=1]"]).expect_code(0);
    sandbox.avow(&["run", "--only", "train[seed=2]", "--confine", "none"]).expect_code(0);
    let [first, second] = confinements(&sandbox).try_into().unwrap();
    assert!(first.starts_with("declared") && second == "none", "{first} {second}");
    let lineage = sandbox.avow(&["lineage", "train.value[seed=2]"]).with_code(0);
    assert!(lineage.stdout.contains("(none)"), "{}", lineage.stdout);

    sandbox.file("avow.toml", "[confine]\nlevel = \"jail\"\n");
    let refused = sandbox.avow(&["run"]).with_code(2);
    assert!(refused.stderr.contains("`jail` is no level"), "{}", refused.stderr);
    sandbox.file("avow.toml", "[confine]\nalow = []\n");
    sandbox.avow(&["run"]).expect_code(2);
    sandbox.file("avow.toml", "");
    sandbox.avow(&["run", "--confine", "jail"]).expect_code(2);
}

#[test]
fn a_denial_that_the_log_does_not_name_is_found_by_running_once_more() {
    let hides = format!(
        "cat {UP}/data/extra.csv 2> /dev/null || {{ echo 'Permission denied somewhere' >&2; exit 4; }}\n"
    );
    let sandbox = project(&hides);
    if !denies(&sandbox) {
        return;
    }
    let run = sandbox.avow(&["run"]).with_code(1);
    assert!(run.stderr.contains("avow explain 'train[seed=1]' --trace"), "{}", run.stderr);
    let before = sandbox.history().attempts().count();
    let traced = sandbox.avow(&["explain", "train[seed=1]", "--trace"]).with_code(0);
    assert!(traced.stdout.contains("train[seed=1] was denied reading data/extra.csv"), "{}", traced.stdout);
    assert_eq!(sandbox.history().attempts().count(), before, "it is no attempt");
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn an_observed_result_is_reused_only_while_what_it_read_is_as_it_was() {
    let sandbox = project(&reading(&format!("{UP}/data/extra.csv")));
    let run = sandbox.avow(&["run", "--confine", "observe"]).with_code(0);
    assert!(
        run.stderr.contains("train reads data/extra.csv, which the spec does not declare"),
        "{}",
        run.stderr
    );
    let of = |value: f64| {
        let pairs = [("after.sum", 1.0), ("after.sum", 2.0), ("train.value", 1.0), ("train.value", 2.0)];
        pairs.map(|(name, seed)| (name.to_owned(), value + seed)).to_vec()
    };
    assert_eq!(values(&sandbox), of(40.0));
    let explained = sandbox.avow(&["explain", "train"]).with_code(0);
    assert!(explained.stdout.contains("reads data/extra.csv"), "{}", explained.stdout);

    let executed = || {
        sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
        sandbox.history().latest().started().len()
    };
    assert_eq!(executed(), 0);
    sandbox.touch("data/extra.csv");
    assert_eq!(executed(), 0, "a touched file is the same file");

    sandbox.file("data/extra.csv", "50\n");
    let planned = sandbox.avow(&["plan"]).with_code(0);
    assert!(planned.stdout.contains("it read data/extra.csv, which has changed"), "{}", planned.stdout);
    let explained = sandbox.avow(&["explain", "train[seed=1]"]).with_code(0);
    assert!(explained.stdout.contains("it read data/extra.csv, which has changed"), "{}", explained.stdout);
    assert_eq!(executed(), 4);
    assert_eq!(values(&sandbox), of(50.0), "what was made from the file as it is now stands");

    sandbox.file("data/extra.csv", "40\n");
    assert_eq!(executed(), 0, "as it was is as good as never changed");
    assert_eq!(values(&sandbox), of(40.0));

    sandbox.remove("data/extra.csv");
    let planned = sandbox.avow(&["plan"]).with_code(0);
    assert!(planned.stdout.contains("it read data/extra.csv, which is gone"), "{}", planned.stdout);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn a_file_that_appears_where_one_was_looked_for_makes_the_stage_run_again() {
    let script = format!(
        "v=1; if test -e {UP}/override; then v=$(cat {UP}/override); fi\nprintf '{{\"value\": %d}}\\n' $v > \"$2\"\n"
    );
    let sandbox = project(&script);
    sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
    sandbox.file("override", "9\n");
    let planned = sandbox.avow(&["plan"]).with_code(0);
    assert!(
        planned.stdout.contains("it looked for override, which was not there and is now"),
        "{}",
        planned.stdout
    );
    sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
    assert_eq!(values(&sandbox)[2].1, 9.0);
}

#[test]
fn a_lost_record_of_what_was_read_is_a_miss_and_is_named() {
    let sandbox = project(&reading(&format!("{UP}/data/extra.csv")));
    sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
    let history = sandbox.history();
    let reads = history.latest().attempt("train[seed=1]").reads.unwrap().to_string();
    sandbox.remove(&format!(".avow/blobs/{}/{}", &reads[..2], &reads[2..]));
    let check = sandbox.avow(&["store", "check"]).with_code(6);
    assert!(
        check.stdout.contains("what it was seen to read")
            || check.stderr.contains("what it was seen to read")
    );
    sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
    assert!(sandbox.history().latest().started().contains(&"train[seed=1]".to_owned()));
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn what_is_first_observed_after_a_registration_is_an_addition_and_no_breach() {
    let sandbox = project(&reading(&format!("{UP}/data/extra.csv")));
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "--confine", "observe"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let added = report["deviations"].as_array().unwrap().iter().find(|d| d["class"] == "addition").unwrap();
    assert_eq!(added["files"][0], "data/extra.csv", "{added}");
    let told = sandbox.avow(&["verdict", "--check"]).with_code(0);
    assert!(told.stdout.contains("was seen to read data/extra.csv"), "{}", told.stdout);
}

#[test]
fn observed_stages_end_as_others_do() {
    let sandbox = project("kill -s KILL $$\n");
    sandbox.avow(&["run", "-k", "--confine", "observe"]).expect_code(1);
    let history = sandbox.history();
    assert_eq!(history.latest().outcome("train[seed=1]").to_string(), "failed: ended by signal 9");
    sandbox.file("train.sh", "(setsid sleep 300 &); sleep 300\n");
    sandbox.replace("spec.yaml", "run: [sh, train.sh", "timeout: 1s\n    run: [sh, train.sh");
    sandbox.avow(&["run", "-k", "--confine", "observe"]).expect_code(1);
    assert_eq!(sandbox.history().latest().outcome("train[seed=2]").to_string(), "timed out");
    assert_eq!(sandbox.survivors(), [0; 0]);
}
