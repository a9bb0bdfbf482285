//! What runs again after an edit, and what does not.
//!
//! Counted from the journals: a member was executed if its attempt was started.

use avow_testkit::Sandbox;

/// Two stages: `train` per seed, and `score` of its model with a parameter.
const SPEC: &str = "\
avow: 1
experiment: reuse
params: {scale: 2}
axes: {seed: [1, 2, 3]}
stages:
  train:
    run: python3 train.py ${axes.seed} ${inputs.data} ${outputs.model}
    inputs: {data: data.txt}
    outputs: {model: model.txt}
  score:
    kind: measure
    run: sh score.sh ${inputs.model} ${params.scale} ${outputs.result}
    inputs: {model: train.model}
    measurements: {result: result.json}
claims:
  big: {says: Scores exceed 1, select: score, rule: {kind: threshold, statistic: mean, above: 1}}
";

const TRAIN: &str = "\
import sys
from lib import noise
seed, data, out = int(sys.argv[1]), open(sys.argv[2]).read(), sys.argv[3]
open(out, 'w').write(str(seed % 2 + len(data) + noise.LEVEL))
";

const SCORE: &str = "\
read value < \"$1\"
printf '{\"score\": %d}\\n' \"$((value * $2))\" > \"$3\"
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("train.py", TRAIN).file("score.sh", SCORE);
    sandbox.file("lib/__init__.py", "").file("lib/noise.py", "LEVEL = 3\n").file("data.txt", "four");
    sandbox
}

/// A project whose plan was carried out once.
fn done() -> Sandbox {
    let sandbox = project();
    sandbox.executes(&["run"]);
    sandbox
}

#[track_caller]
fn reruns(sandbox: &Sandbox, expected: &[&str]) {
    assert_eq!(sandbox.executes(&["run"]), expected);
}

const TRAINS: [&str; 3] = ["train[seed=1]", "train[seed=2]", "train[seed=3]"];
/// Seeds 1 and 3 give the same model, so their scores are one action, executed once.
const SCORES: [&str; 2] = ["score[seed=1]", "score[seed=2]"];

#[test]
fn only_what_an_edit_touches_runs_again() {
    let sandbox = project();
    assert_eq!(sandbox.executes(&["run"]), [&SCORES[..], &TRAINS[..]].concat());
    reruns(&sandbox, &[]);

    // One parameter of the measure stage.
    sandbox.replace("spec.yaml", "scale: 2", "scale: 5");
    reruns(&sandbox, &SCORES);

    // New times, same bytes.
    for path in ["train.py", "score.sh", "data.txt", "spec.yaml", "lib/noise.py"] {
        sandbox.touch(path);
    }
    reruns(&sandbox, &[]);

    // Two seeds more: one of them needs a score that exists.
    sandbox.replace("spec.yaml", "[1, 2, 3]", "[1, 2, 3, 4, 5]");
    reruns(&sandbox, &["train[seed=4]", "train[seed=5]"]);

    // Another order and comments.
    let (head, claims) = SPEC.split_once("claims:").unwrap();
    let (top, stages) = head.split_once("stages:\n").unwrap();
    let (train, score) = stages.split_once("  score:").unwrap();
    let top = top
        .replace("scale: 2", "scale: 5")
        .replace("{seed: [1, 2, 3]}", "{seed: [5, 3, 1, 2, 4]}  # any order");
    let text = format!("# Why: a note.\nclaims:{claims}\nstages:\n  score:{score}\n{train}\n{top}");
    sandbox.file("spec.yaml", text);
    reruns(&sandbox, &[]);

    // A change of the code, with the same result: the scores are not made again.
    sandbox.replace("train.py", "noise.LEVEL", "noise.LEVEL + 0");
    let trains: Vec<String> = (1..6).map(|seed| format!("train[seed={seed}]")).collect();
    assert_eq!(sandbox.executes(&["run"]), trains);

    // Back to an earlier state: it is known.
    sandbox.replace("train.py", "noise.LEVEL + 0", "noise.LEVEL");
    reruns(&sandbox, &[]);
}

#[test]
fn an_input_with_other_bytes_runs_what_reads_it() {
    let sandbox = done();
    sandbox.file("data.txt", "seven..");
    reruns(&sandbox, &[&SCORES[..], &TRAINS[..]].concat());
    // The same number of bytes gives the same models: the change ends there.
    sandbox.file("data.txt", "SEVEN..");
    reruns(&sandbox, &TRAINS);
}

#[test]
fn an_imported_module_is_part_of_the_code() {
    let sandbox = done();
    sandbox.replace("lib/noise.py", "3", "40");
    reruns(&sandbox, &[&SCORES[..], &TRAINS[..]].concat());
    // One that nothing imports is not.
    sandbox.file("lib/other.py", "LEVEL = 5\n").file("notes.txt", "a note");
    reruns(&sandbox, &[]);
}

#[test]
fn names_are_only_names() {
    let sandbox = done();
    let spec =
        SPEC.replace("train:", "fit:").replace("train.model", "fit.model").replace("score:", "assess:");
    sandbox.file("spec.yaml", spec.replace("big:", "large:"));
    reruns(&sandbox, &[]);
    // The file's name and the folder of the project are names as well.
    let elsewhere = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    elsewhere.copy(sandbox.root(), ".");
    elsewhere.remove("spec.yaml").file("renamed.yaml", SPEC);
    assert_eq!(elsewhere.executes(&["run", "renamed.yaml"]), [""; 0]);
}

#[test]
fn one_action_of_two_stages_runs_once() {
    let sandbox = project();
    let twin = "  twin:\n    run: python3 train.py ${axes.seed} ${inputs.data} ${outputs.model}\n    \
                inputs: {data: data.txt}\n    outputs: {model: model.txt}\n  score:";
    sandbox.replace("spec.yaml", "  score:", twin);
    let executed = sandbox.executes(&["run", "-j", "2"]);
    assert_eq!(executed.iter().filter(|member| !member.starts_with("score")).count(), 3, "{executed:?}");
    let counts = &sandbox.avow(&["status", "--json"]).json()["counts"];
    assert_eq!((&counts["succeeded"], &counts["reused"]), (&5.into(), &4.into()));
}

#[test]
fn a_failed_member_runs_again() {
    let sandbox = project();
    sandbox.replace("train.py", "seed %", "1 // (seed - 2) + seed %");
    sandbox.avow(&["run", "-k"]).expect_code(1);
    let first = sandbox.history();
    assert_eq!(first.latest().started().len(), 5, "the other seeds went their way");
    sandbox.avow(&["run", "-k"]).expect_code(1);
    assert_eq!(sandbox.history().latest().started(), ["train[seed=2]"]);
}

#[test]
fn only_some_stages_or_members_are_carried_out() {
    let sandbox = project();
    assert_eq!(sandbox.executes(&["run", "--only", "train"]), TRAINS);
    // A member and what it needs.
    sandbox.replace("spec.yaml", "[1, 2, 3]", "[1, 2, 3, 4]");
    assert_eq!(sandbox.executes(&["run", "--only", "score[seed=4]"]), ["score[seed=4]", "train[seed=4]"]);
    let status = sandbox.avow(&["status", "--json"]).json();
    assert_eq!(status["closed"], "partial");
    let run = sandbox.avow(&["run", "--only", "scores"]).with_code(2);
    assert!(run.stderr.contains("hint:") && run.stderr.contains("score"), "{}", run.stderr);
}

#[test]
fn a_dry_run_says_what_a_run_would_do_and_does_nothing() {
    let sandbox = project();
    let forecast = |args: &[&str]| -> Vec<String> {
        let members = sandbox.avow(args).with_code(0).json();
        let runs = members.as_array().unwrap().iter().filter(|member| member["runs"] == true);
        runs.map(|member| member["member"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(forecast(&["run", "-n", "--json"]).len(), 6);
    assert!(!sandbox.has(".avow"), "a dry run makes no store");
    sandbox.executes(&["run"]);
    assert_eq!(forecast(&["plan", "--json"]), [""; 0]);
    sandbox.replace("spec.yaml", "scale: 2", "scale: 3");
    assert_eq!(forecast(&["run", "-n", "--json"]), ["score[seed=1]", "score[seed=2]", "score[seed=3]"]);
    assert_eq!(forecast(&["run", "-n", "--json", "--only", "train"]), [""; 0]);
    assert_eq!(sandbox.history().runs.len(), 1);
}

#[test]
fn explain_gives_the_exact_difference() {
    let sandbox = done();
    let explain = |member: &str| {
        let rows = sandbox.avow(&["explain", member, "--json"]).with_code(0).json();
        assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
        rows[0].clone()
    };
    assert_eq!(explain("train[seed=2]")["changes"], serde_json::json!([]));

    // A module of the code: its name and both digests, before anything was run with it.
    sandbox.replace("lib/noise.py", "3", "4");
    let change = explain("train[seed=2]")["changes"].clone();
    assert_eq!(change.as_array().unwrap().len(), 1, "{change}");
    let short = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..8].to_owned();
    assert_eq!((&change[0]["part"], &change[0]["name"]), (&"code".into(), &"lib/noise.py".into()));
    assert!(change[0]["old"].as_str().unwrap().contains(&short("LEVEL = 3\n")), "{change}");
    assert!(change[0]["new"].as_str().unwrap().contains(&short("LEVEL = 4\n")), "{change}");
    let text = sandbox.avow(&["explain", "train[seed=2]"]).stdout;
    assert!(text.contains("`lib/noise.py` changed:") && text.contains("compared with attempt"), "{text}");

    // An input and a parameter.
    sandbox.replace("lib/noise.py", "4", "3").file("data.txt", "five5");
    let change = explain("train[seed=3]")["changes"].clone();
    assert_eq!(change.as_array().unwrap().len(), 1, "{change}");
    assert!(change[0]["old"].as_str().unwrap().contains(&short("four")), "{change}");
    assert!(change[0]["new"].as_str().unwrap().contains(&short("five5")), "{change}");
    sandbox.file("data.txt", "four").replace("spec.yaml", "scale: 2", "scale: 7");
    let change = explain("score[seed=2]")["changes"].clone();
    assert!(change.to_string().contains('7'), "{change}");
}
