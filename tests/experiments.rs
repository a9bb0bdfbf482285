//! The gallery: each spec of `experiments/` is run by the real binary and comes to the verdicts it is known
//! for, whatever the number of slots, and a second run executes nothing.
//!
//! The networks of `canonical-alignment` are trained for real here, so this is the slowest file of the tests.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use avow_model::attempt::Outcome;
use avow_model::digest::{ActionDigest, Artifact};
use avow_testkit::Sandbox;

/// A project that holds this part of the gallery.
fn gallery(files: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for file in files {
        sandbox.copy(from.join(file), file);
    }
    sandbox
}

/// How many verdicts each claim has of each kind: a claim with `per:` has one for each value.
fn verdicts(sandbox: &Sandbox, spec: &str) -> BTreeMap<String, BTreeMap<String, usize>> {
    let report = sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json();
    assert_eq!(report["completeness"]["open"], 0);
    assert_eq!(report["findings"], serde_json::json!([]));
    let mut counts: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for verdict in report["verdicts"].as_array().unwrap() {
        let claim = verdict["claim"].as_str().unwrap();
        let claim = claim.split('[').next().unwrap().to_owned();
        let word = verdict["word"].as_str().unwrap_or("none").to_owned();
        *counts.entry(claim).or_default().entry(word).or_default() += 1;
    }
    counts
}

fn table(rows: &[(&str, &[(&str, usize)])]) -> BTreeMap<String, BTreeMap<String, usize>> {
    let words = |words: &[(&str, usize)]| words.iter().map(|(word, n)| ((*word).to_owned(), *n)).collect();
    rows.iter().map(|(claim, counts)| ((*claim).to_owned(), words(counts))).collect()
}

const SUPPORTED: &[(&str, usize)] = &[("supported", 1)];
const REFUTED: &[(&str, usize)] = &[("refuted", 1)];

/// Runs a spec, then again with nothing left to execute.
fn run_twice(sandbox: &Sandbox, spec: &str, jobs: &str) -> usize {
    let first = sandbox.executes(&["run", spec, "-j", jobs]).len();
    assert_eq!(sandbox.executes(&["run", spec]), [""; 0]);
    first
}

#[test]
fn smallest() {
    let files = ["avow.toml", "smallest", "smallest.yaml"];
    let sandbox = gallery(&files);
    assert_eq!(run_twice(&sandbox, "smallest.yaml", "2"), 16);
    assert_eq!(verdicts(&sandbox, "smallest.yaml"), table(&[("helps", SUPPORTED)]));
    sandbox.avow(&["verdict", "smallest.yaml", "--check"]).expect_code(0);
    let other = gallery(&files);
    other.avow(&["run", "smallest.yaml", "-j", "1"]).expect_code(0);
    assert_eq!(other.history().artifacts(), sandbox.history().artifacts());
}

#[test]
fn own_script_with_a_failure_and_a_resume() {
    let sandbox = gallery(&["avow.toml", "own-script", "own-script.yaml"]);
    let spec = "own-script.yaml";
    // A mistake that shows in one cell only: both repetitions of it fail, and what needs them is not reached.
    let good = sandbox.read("own-script/estimate.py");
    let unlucky = seeds(&sandbox, spec)[2];
    let mistake = format!(
        "    if options.seed == {unlucky} and options.source == 'seeded':\n        raise SystemExit('a mistake')\n"
    );
    let bad = good.replace("    generator = random", &format!("{mistake}    generator = random"));
    assert_ne!(good, bad);
    sandbox.file("own-script/estimate.py", &bad);
    sandbox.avow(&["run", spec, "-k", "-j", "2"]).expect_code(1);
    let history = sandbox.history();
    let failed: Vec<&String> = history
        .attempts()
        .filter(|(_, attempt)| !attempt.outcome.succeeded())
        .map(|(member, _)| member)
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|member| member.contains(&format!("seed={unlucky}"))), "{failed:?}");
    assert!(!history.latest().started().iter().any(|member| member.starts_with("spread")));
    let log = sandbox.avow(&["log", failed[0], "--spec", spec, "-q"]).with_code(0);
    assert!(log.stdout.contains("a mistake"), "{}", log.stdout);

    // Mended: the code of every estimate is another, so all are made, as they never are reused.
    sandbox.file("own-script/estimate.py", &good);
    let executed = sandbox.executes(&["run", spec, "-j", "2"]);
    assert_eq!(executed.len(), 2 * 8 * 2 + 1);
    let known = table(&[
        ("near-pi", SUPPORTED),
        ("same-seed-same-number", SUPPORTED),
        ("system-source-repeats", REFUTED),
    ]);
    assert_eq!(verdicts(&sandbox, spec), known);

    // Again: estimates are measured anew, the spread of the seeded ones is what it was.
    let again = sandbox.executes(&["run", spec, "-j", "1"]);
    assert_eq!(again.len(), 2 * 8 * 2);
    assert!(again.iter().all(|member| member.starts_with("estimate")));
    assert_eq!(verdicts(&sandbox, spec), known);
    // Two slots or one, and however often: what has a seed writes the same bytes, folders included.
    let mut wrote: BTreeMap<(String, &String), BTreeSet<Artifact>> = BTreeMap::new();
    let history = sandbox.history();
    for (member, attempt) in history.attempts().filter(|(member, _)| member.contains("source=seeded")) {
        let member = member.replace("repeat=1", "repeat=0");
        for (output, produced) in &attempt.outputs {
            wrote.entry((member.clone(), output)).or_default().insert(produced.artifact);
        }
    }
    assert_eq!(wrote.len(), 2 * 8);
    for (name, artifacts) in wrote {
        assert_eq!(artifacts.len(), 1, "{name:?}");
    }
}

/// The values of the axis `seed`.
fn seeds(sandbox: &Sandbox, spec: &str) -> Vec<u64> {
    let members = sandbox.avow(&["plan", spec, "--json"]).with_code(0).json();
    let labels =
        members.as_array().unwrap().iter().map(|member| member["member"].as_str().unwrap().to_owned());
    let seed = |label: String| label.split("seed=").nth(1)?.split([',', ']']).next()?.parse().ok();
    let mut seeds: Vec<u64> = labels.filter_map(seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 8);
    seeds
}

#[test]
fn own_script_resumes_where_it_stopped() {
    let sandbox = gallery(&["avow.toml", "own-script", "own-script.yaml"]);
    let spec = "own-script.yaml";
    // Far too little time for the last stage. Time is no part of the plan, so this is still the same experiment.
    sandbox.replace(spec, "env: {DIGITS: 6}", "env: {DIGITS: 6}\n    timeout: 1ms");
    sandbox.avow(&["run", spec]).expect_code(1);
    assert_eq!(*sandbox.history().latest().outcome("spread"), Outcome::TimedOut);
    let estimates = sandbox.history().latest().started().len() - 1;
    sandbox.replace(spec, "timeout: 1ms", "timeout: 1m");
    // The estimates are never reused by another run, but this one goes on with the one that failed.
    let executed = sandbox.executes(&["run", spec]);
    assert_eq!(executed.len(), 2 * 8 * 2 + 1 - estimates);
    assert!(executed.contains(&"spread".to_owned()));
    assert_eq!(verdicts(&sandbox, spec)["near-pi"], table(&[("c", SUPPORTED)])["c"]);
}

#[test]
fn relu_rank_formula_is_refuted() {
    let sandbox = gallery(&["avow.toml", "relu-rank-formula.yaml"]);
    let spec = "relu-rank-formula.yaml";
    run_twice(&sandbox, spec, "2");
    let found = verdicts(&sandbox, spec);
    for claim in ["exact-rank", "rank-at-one-percent", "entropy-rank", "participation-ratio"] {
        assert_eq!(found[claim], table(&[("c", REFUTED)])["c"], "{claim}");
    }
    assert_eq!(found["full-rank-when-wide"], table(&[("c", &[("supported", 2)])])["c"]);
    assert_eq!(found["rank-falls"], table(&[("c", SUPPORTED)])["c"]);
    sandbox.avow(&["verdict", spec, "--check"]).expect_code(4);
    let why = sandbox.avow(&["verdict", spec]).with_code(0);
    assert!(why.stdout.contains("the exact rank starts at m and falls"), "{}", why.stdout);
}

#[test]
fn null_calibrated_similarity() {
    let sandbox = gallery(&["avow.toml", "null-calibrated-similarity.yaml"]);
    let spec = "null-calibrated-similarity.yaml";
    run_twice(&sandbox, spec, "2");
    let known = [
        ("inflation-width", SUPPORTED),
        ("closed-form", SUPPORTED),
        ("calibrated-flat", SUPPORTED),
        ("inflation-selection", SUPPORTED),
        ("inflation-depth-stack", REFUTED),
        ("false-positives", SUPPORTED),
        ("power", SUPPORTED),
    ];
    assert_eq!(verdicts(&sandbox, spec), table(&known));
    sandbox.avow(&["verdict", spec, "--check"]).expect_code(4);
}

#[test]
fn canonical_alignment() {
    let files = ["avow.toml", "data", "canonical-alignment.yaml"];
    let sandbox = gallery(&files);
    let spec = "canonical-alignment.yaml";
    run_twice(&sandbox, spec, "2");
    let known: [(&str, &[(&str, usize)]); 7] = [
        ("trained", SUPPORTED),
        ("above-null", &[("supported", 18)]),
        ("grown", &[("supported", 18)]),
        ("decay-raises", &[("supported", 18)]),
        ("strong", &[("refuted", 2), ("supported", 16)]),
        ("needs-decay", &[("refuted", 18)]),
        ("shuffled-control", &[("supported", 18)]),
    ];
    assert_eq!(verdicts(&sandbox, spec), table(&known));
    let report = sandbox.avow(&["verdict", spec, "--json"]).json();
    let weak = report["verdicts"].as_array().unwrap().iter().filter(|verdict| {
        verdict["claim"].as_str().unwrap().starts_with("strong") && verdict["word"] == "refuted"
    });
    let weak: Vec<String> = weak.map(|verdict| verdict.to_string()).collect();
    for (verdict, relation) in weak.iter().zip(["ha-ga", "ha-za"]) {
        assert!(verdict.contains(relation), "{verdict}");
    }

    // The number of slots is no part of the result: a network, its captures and their numbers again, one at a time.
    let other = gallery(&files);
    let seed = sandbox.history().latest().state.members.keys().find_map(|member| {
        member
            .strip_prefix("alignment[")?
            .split(',')
            .find(|pair| pair.trim_end_matches(']').starts_with("seed="))
            .map(|pair| pair.trim_end_matches(']').to_owned())
    });
    let only = format!("alignment[{},decay=0.003]", seed.unwrap());
    other.avow(&["run", spec, "-j", "1", "--only", &only]).expect_code(0);
    let (all, some) = (made(&sandbox), made(&other));
    assert!(some.len() >= 5, "{some:?}");
    for (action, artifact) in &some {
        assert_eq!(all[action], *artifact, "{action:?}");
    }
}

/// What each action wrote. The same action may belong to another member: without training there is no decay.
fn made(sandbox: &Sandbox) -> BTreeMap<(ActionDigest, String), Artifact> {
    let history = sandbox.history();
    let outputs = |attempt: &avow_model::attempt::Attempt| {
        let action = attempt.action;
        let made = attempt.outputs.iter().map(|(name, produced)| ((action, name.clone()), produced.artifact));
        made.collect::<Vec<_>>()
    };
    history.attempts().flat_map(|(_, attempt)| outputs(attempt)).collect()
}
