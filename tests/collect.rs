//! What nothing holds can go, what evidence rests on cannot, and what went is said to have gone.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use avow_testkit::{Run, Sandbox};

const SPEC: &str = "\
avow: 1
experiment: keep
axes: {seed: [1, 2, 3]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.model}']
    outputs: {model: model.txt}
  score:
    run: [sh, score.sh, '${inputs.model}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str = "echo \"1.$1\" > \"$2\"\necho \"made $1\"\n";
const SCORE: &str = "printf '{\"value\": %s}\\n' \"$(cat \"$1\")\" > \"$2\"\n";

/// A project with three generations of one stage: `1.x`, then `2.x`, then `3.x`.
fn generations() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", MAKE).file("score.sh", SCORE);
    assert_eq!(sandbox.executes(&["run"]).len(), 6);
    for (old, new) in [("1.$1", "2.$1"), ("2.$1", "3.$1")] {
        sandbox.replace("make.sh", old, new);
        assert_eq!(sandbox.executes(&["run"]).len(), 6);
    }
    sandbox
}

fn back_to(sandbox: &Sandbox, generation: u32) {
    sandbox.file("make.sh", MAKE.replace("1.$1", &format!("{generation}.$1")));
}

fn collect(sandbox: &Sandbox, args: &[&str]) -> Run {
    sandbox.avow(&[&["store", "collect"], args].concat()).with_code(0)
}

/// All files below the blobs, with their sizes.
fn blobs(sandbox: &Sandbox) -> (usize, u64) {
    let folders = sandbox.list(".avow/blobs");
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(sandbox.path(".avow/blobs").join(folder)).unwrap());
    let sizes: Vec<u64> = files.map(|file| file.unwrap().metadata().unwrap().len()).collect();
    (sizes.len(), sizes.iter().sum())
}

#[test]
fn what_is_young_stays() {
    let sandbox = generations();
    let proposal = collect(&sandbox, &["--json"]);
    assert_eq!(proposal.json()["attempts"], serde_json::json!([]));
    assert_eq!(proposal.json()["blobs"], 0);
}

#[test]
fn what_no_latest_run_rests_on_goes_and_nothing_else() {
    let sandbox = generations();
    let verdict = sandbox.avow(&["verdict", "--json"]).with_code(0).stdout;
    let before = blobs(&sandbox);
    let proposal = collect(&sandbox, &["--keep", "0d", "--dry-run", "--json"]).json();
    assert_eq!(proposal["attempts"].as_array().unwrap().len(), 12, "two generations of six");
    assert_eq!(proposal["kept"], 6);
    assert_eq!(blobs(&sandbox), before, "nothing went");
    let said = collect(&sandbox, &["--keep", "0d", "--dry-run"]).stdout;
    assert!(said.contains("keep/make[seed=1]: 2 attempts"), "{said}");
    assert!(said.contains("12 attempts could then not be shown again"), "{said}");

    let done = collect(&sandbox, &["--keep", "0d", "--json"]).json();
    assert_eq!((&done["attempts"], &done["blobs"]), (&proposal["attempts"], &proposal["blobs"]));
    let after = blobs(&sandbox);
    assert_eq!(before.0 - after.0, done["blobs"].as_u64().unwrap() as usize);
    assert_eq!(before.1 - after.1, done["bytes"].as_u64().unwrap());

    // Nothing of the latest run went: all is reused, and says what it said.
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    assert_eq!(sandbox.avow(&["verdict", "--json"]).with_code(0).stdout, verdict);
    let check = sandbox.avow(&["store", "check"]).with_code(0);
    assert!(check.stdout.contains("all sound"), "{}", check.stdout);
    assert_eq!(collect(&sandbox, &["--keep", "0d", "--json"]).json()["blobs"], 0, "once is enough");
}

#[test]
fn what_went_is_a_miss_that_says_so() {
    let sandbox = generations();
    collect(&sandbox, &["--keep", "0d"]);
    back_to(&sandbox, 1);
    let explained = sandbox.avow(&["explain", "make[seed=2]"]).with_code(0).stdout;
    assert!(explained.contains("was collected on"), "{explained}");
    // The old plan is judged as not carried out, never as damaged.
    let verdict = sandbox.avow(&["verdict"]);
    assert_eq!(verdict.code, 0, "{verdict:?}");
    assert!(!verdict.stderr.contains("damaged"), "{verdict:?}");
    // Its records can still be read.
    let logs = sandbox.avow(&["log", "make[seed=2]", "--json"]).with_code(0).json();
    let logs = logs.as_array().unwrap();
    assert_eq!(logs.len(), 3);
    assert_eq!(logs.iter().filter(|row| row["collected"].is_i64()).count(), 2);
    assert!(logs.iter().filter(|row| row["collected"].is_i64()).all(|row| row["stdout"].is_null()));
    // It is made again, and then it is whole.
    assert_eq!(sandbox.executes(&["run"]).len(), 6);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
    // A new index says the same.
    sandbox.avow(&["store", "rebuild"]).expect_code(0);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    back_to(&sandbox, 2);
    let explained = sandbox.avow(&["explain", "make[seed=2]"]).with_code(0).stdout;
    assert!(explained.contains("was collected on"), "{explained}");
}

#[test]
fn what_a_registered_plan_rests_on_stays_for_ever() {
    let sandbox = generations();
    back_to(&sandbox, 1);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    back_to(&sandbox, 3);
    sandbox.avow(&["run"]).expect_code(0);
    let proposal = collect(&sandbox, &["--keep", "0d", "--json"]).json();
    assert_eq!(proposal["attempts"].as_array().unwrap().len(), 6, "the second generation alone");
    back_to(&sandbox, 1);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn a_pin_holds_a_member_with_all_it_rests_on() {
    let sandbox = generations();
    back_to(&sandbox, 1);
    sandbox.avow(&["run"]).expect_code(0);
    let old = sandbox.history().runs[0].attempt("score[seed=2]").outputs["result"].artifact.blob();
    back_to(&sandbox, 3);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["store", "pin", "best", &old.to_string()]).expect_code(0);
    sandbox.avow(&["store", "pin", "nothing", "make[seed=9]"]).expect_code(2);
    sandbox.avow(&["store", "pin", "newest", "make[seed=1]"]).expect_code(0);
    let pins = sandbox.avow(&["store", "pin"]).with_code(0).stdout;
    assert!(pins.contains("best: ") && pins.contains("newest: make[seed=1]"), "{pins}");
    collect(&sandbox, &["--keep", "0d"]);
    assert!(sandbox.blob(old).exists());
    sandbox.avow(&["store", "unpin", "best"]).expect_code(0);
    sandbox.avow(&["store", "unpin", "best"]).expect_code(2);
    collect(&sandbox, &["--keep", "0d"]);
    assert!(!sandbox.blob(old).exists());
}

#[test]
fn nothing_is_collected_from_a_run() {
    let sandbox = generations();
    sandbox.file("make.sh", format!("touch ready\nsleep 60\n{MAKE}"));
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(|sandbox| {
        sandbox.history().runs.len() == 4 && !sandbox.history().latest().started().is_empty()
    });
    let refused = sandbox.avow(&["store", "collect", "--keep", "0d"]).with_code(8);
    assert!(refused.stderr.contains("another command is running"), "{}", refused.stderr);
    running.kill();
    // The run that died can still go on: what it started keeps its inputs.
    back_to(&sandbox, 3);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn the_policy_stands_in_the_projects_file() {
    let sandbox = generations();
    sandbox.file("avow.toml", "[store]\nkeep = \"0d\"\nquota = \"1kB\"\nfree = \"1B\"\n");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(
        run.stderr.contains("more than the quota of") && run.stderr.contains("store collect"),
        "{}",
        run.stderr
    );
    assert_eq!(collect(&sandbox, &["-n", "--json"]).json()["attempts"].as_array().unwrap().len(), 12);
    sandbox.file("avow.toml", "[store]\nfree = \"8000TB\"\n");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stderr.contains("are free on the disk"), "{}", run.stderr);
    sandbox.file("avow.toml", "[store]\nquota = \"much\"\n");
    let run = sandbox.avow(&["run"]).with_code(2);
    assert!(run.stderr.contains("`much` is no size"), "{}", run.stderr);
}

#[test]
fn a_sample_hashes_some_and_compares_the_rest() {
    let sandbox = generations();
    let whole = sandbox.avow(&["store", "check", "--json"]).with_code(0).json();
    let none = sandbox.avow(&["store", "check", "--sample", "0%", "--json"]).with_code(0).json();
    let all = sandbox.avow(&["store", "check", "--sample", "100%", "--json"]).with_code(0).json();
    assert_eq!((&none["blobs"], &all["blobs"]), (&0.into(), &whole["blobs"]));
    let blob = sandbox.history().latest().attempt("make[seed=1]").outputs["model"].artifact.blob();
    fs::remove_file(sandbox.blob(blob)).unwrap();
    sandbox.avow(&["store", "check", "--sample", "0%"]).expect_code(6);
    sandbox.avow(&["store", "check", "--sample", "much"]).expect_code(2);
}
