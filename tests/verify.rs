//! `avow run --verify`: some of what is reused is carried out again, compared, and never takes a place.

use std::collections::BTreeSet;

use avow_model::digest::{ActionDigest, LineDigest};
use avow_model::journal::{Event, Sample, rank};
use avow_testkit::{Run, Sandbox};
use serde_json::Value;

/// Eight members of one stage, whose program is `make.sh SEED FILE`.
const SPEC: &str = "\
avow: 1
experiment: again
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  make:
    run: sh make.sh ${axes.seed} ${outputs.result}
    environment: none
    measurements: {result: result.json}
claims:
  positive: {says: It is positive., select: score, rule: {kind: threshold, statistic: mean, above: 0}}
";

const SAME: &str = "echo \"{\\\"score\\\": $1.5}\" > $2\n";
/// Another last digit in each attempt.
const NEARLY: &str = "awk -v seed=$1 -v id=$AVOW_ATTEMPT 'BEGIN {
  for (i = 1; i <= length(id); i++) sum = sum * 31 % 99991 + index(\"0123456789abcdef\", substr(id, i, 1))
  printf \"{\\\"score\\\": %.12f}\\n\", seed + sum * 1e-10 }' > $2\n";

fn project(script: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", script);
    sandbox
}

fn declares(sandbox: &Sandbox, line: &str) {
    sandbox.replace("spec.yaml", "    environment: none\n", &format!("    environment: none\n    {line}\n"));
}

fn verify(sandbox: &Sandbox, share: &str, code: i32) -> Run {
    sandbox.avow(&["run", "--verify", share]).with_code(code)
}

/// The sample of the latest run, as its journal has it, with the digest of the journal's first line.
fn sample(sandbox: &Sandbox) -> (Sample, LineDigest) {
    let history = sandbox.history();
    let run = history.latest();
    let found = run.journal.lines.iter().find_map(|line| match &line.event {
        Event::Verifying { sample } => Some(sample.clone()),
        _ => None,
    });
    let first = run.journal.lines[1].previous.expect("a second line follows the first");
    (found.expect("the run verified"), first)
}

fn actions(sandbox: &Sandbox) -> BTreeSet<ActionDigest> {
    let history = sandbox.history();
    let runs = history.runs.iter();
    runs.flat_map(|run| run.state.attempts.iter().map(|(_, attempt)| attempt.action)).collect()
}

fn report(run: &Run) -> Value {
    run.json()["verification"].clone()
}

#[test]
fn a_share_of_what_is_reused_is_executed_again_and_nothing_else_changes() {
    let sandbox = project(SAME);
    let first = sandbox.avow(&["run"]).with_code(0);
    let all = actions(&sandbox);
    let second = verify(&sandbox, "25%", 0);
    assert!(second.stderr.contains("verified 2 of 8 reused actions: 2 the same bytes"), "{}", second.stderr);
    assert_eq!(second.stdout, first.stdout, "the verdicts are the same");

    // The sample can be drawn again from the journal.
    let (sample, line) = sample(&sandbox);
    let mut ranked: Vec<ActionDigest> = all.into_iter().collect();
    ranked.sort_by_key(|action| rank(line, *action));
    assert_eq!((sample.share, sample.of, &*sample.chosen), (0.25, 8, &ranked[..2]));
    let history = sandbox.history();
    let state = &history.latest().state;
    assert_eq!(state.attempts.len(), 2);
    assert!(state.attempts.iter().all(|(_, attempt)| attempt.verification && attempt.outcome.succeeded()));
    // A member that was verified is still a member that was reused.
    assert_eq!((state.counts().reused, state.counts().succeeded), (8, 0));
    let status = sandbox.avow(&["status"]).with_code(0).stdout;
    assert!(
        status.contains("8 (8 reused)") && status.contains("2 reused actions executed again"),
        "{status}"
    );
    sandbox.avow(&["store", "check"]).expect_code(0);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn at_least_one_is_verified_and_nothing_where_nothing_is_reused() {
    let sandbox = project(SAME);
    let first = verify(&sandbox, "0.001", 0);
    assert!(first.stderr.contains("nothing was verified"), "{}", first.stderr);
    assert_eq!(sandbox.executes(&["run", "--verify", "0.001"]).len(), 1);
    assert_eq!(sandbox.executes(&["run", "--verify", "1"]).len(), 8);
    for share in ["0", "1.5", "-0.1", "x"] {
        sandbox.avow(&["run", &format!("--verify={share}")]).expect_code(2);
    }
}

#[test]
fn members_of_one_action_are_one_action() {
    let sandbox = project(SAME);
    sandbox.replace("spec.yaml", "stages:\n", "stages:\n  twin:\n    run: sh make.sh ${axes.seed} ${outputs.result}\n    environment: none\n    outputs: {result: result.json}\n");
    sandbox.avow(&["run"]).expect_code(0);
    let run = verify(&sandbox, "1", 0);
    assert!(run.stderr.contains("verified 8 of 8"), "{}", run.stderr);
}

#[test]
fn what_does_not_come_out_the_same_is_named_and_the_first_stays_the_evidence() {
    let sandbox = project(NEARLY);
    let first = sandbox.avow(&["run", "--json"]).with_code(0).json();
    let run = sandbox.avow(&["run", "--verify", "0.2", "--json"]).with_code(6);
    let report = report(&run);
    assert_eq!((&report["of"], &report["drawn"]), (&8.into(), &2.into()));
    let result = &report["results"][0];
    assert_eq!((&result["result"], &result["class"]), (&"differs".into(), &"bytes".into()));
    let how = &result["outputs"]["result"][0];
    assert_eq!(
        (&how["differs"], &how["compared"], &how["unequal"]),
        (&"numbers".into(), &1.into(), &1.into())
    );
    let relative = how["relative"].as_f64().expect("it is finite");
    assert!(relative > 0.0 && relative < 1e-4, "{relative}");
    assert!(run.stderr.contains("1 of 1 numbers differs, largest relative difference"), "{}", run.stderr);
    assert!(
        run.stderr.contains("stays the evidence") && run.stderr.contains("determinism:"),
        "{}",
        run.stderr
    );

    // The number is the one of the first attempt, and the divergence stands beside it.
    let after = run.json();
    assert_eq!(after["verdicts"][0]["estimate"], first["verdicts"][0]["estimate"]);
    let members: Vec<&str> =
        report["results"].as_array().unwrap().iter().map(|r| r["member"].as_str().unwrap()).collect();
    assert_eq!(after["verdicts"][0]["diverged"], serde_json::json!(members));
    let classes: Vec<&str> =
        after["deviations"].as_array().unwrap().iter().map(|d| d["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["divergence", "divergence"], "it is no trying again");
    let verdict = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(
        verdict.contains("did not give the same bytes when executed again; the first counts"),
        "{verdict}"
    );

    // Where it is explained and where it is traced.
    let member = members[0];
    let explained = sandbox.avow(&["explain", member]).with_code(0).stdout;
    assert!(explained.contains("is reused") || explained.contains("reused"), "{explained}");
    assert!(explained.contains("diverged: attempt") && explained.contains("made to verify"), "{explained}");
    assert!(explained.contains("largest relative difference"), "{explained}");
    let lineage = sandbox.avow(&["lineage", member]).with_code(0).stdout;
    assert!(lineage.contains("diverged, does not stand: attempt"), "{lineage}");
    let log = sandbox.avow(&["log", member]).with_code(0).stderr;
    assert!(log.contains("made to verify"), "{log}");
}

#[test]
fn what_a_stage_declares_about_a_second_execution_is_the_measure() {
    for (line, code, says) in [
        ("determinism: {class: tolerance, relative: 1e-3}", 0, "8 different as declared"),
        ("determinism: {class: tolerance, relative: 1e-15}", 6, "8 different"),
        ("determinism: distribution", 0, "8 different as declared"),
        ("reuse: never", 0, "8 executed, 0 reused"),
    ] {
        let sandbox = project(NEARLY);
        declares(&sandbox, line);
        sandbox.avow(&["run"]).expect_code(0);
        let run = verify(&sandbox, "1", code);
        assert!(run.stderr.contains(says), "{line}: {}", run.stderr);
    }
}

#[test]
fn what_is_never_the_same_is_left_out_and_said() {
    let sandbox = project(NEARLY);
    declares(&sandbox, "kind: capture\n    determinism: unrepeatable");
    sandbox.avow(&["run"]).expect_code(0);
    let run = verify(&sandbox, "1", 0);
    assert!(
        run.stderr.contains("8 members of `make` left out: it declares that it is unrepeatable"),
        "{}",
        run.stderr
    );
    assert_eq!(sandbox.history().latest().state.attempts.len(), 0);
}

#[test]
fn a_verification_under_a_registration_stands_for_nothing() {
    let sandbox = project(NEARLY);
    let first = sandbox.avow(&["run", "--json"]).with_code(0).json();
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    // It is under the registration, and the first attempts are not.
    sandbox.avow(&["run", "--verify", "1"]).expect_code(6);
    let after = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(after["verdicts"][0]["estimate"], first["verdicts"][0]["estimate"]);
    assert_eq!(after["verdicts"][0]["standing"], "exploratory", "what it rests on is older");
    let older =
        after["deviations"].as_array().unwrap().iter().any(|d| d["class"] == "older-than-registration");
    assert!(older, "{after}");
}

#[test]
fn a_verification_does_not_replace_what_is_gone() {
    let sandbox = project(NEARLY);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["run", "--verify", "1"]).expect_code(6);
    let history = sandbox.history();
    let gone = history.runs[0].attempt("make[seed=3]").outputs["result"].artifact.blob();
    std::fs::remove_file(sandbox.blob(gone)).expect("it is there");
    // Neither drawn again from the verification nor taken for it: the member runs as ever.
    // That the first one's bytes are gone is told for ever.
    let run = sandbox.avow(&["run"]).with_code(6);
    assert!(run.stderr.contains("is missing"), "{}", run.stderr);
    assert_eq!(sandbox.history().latest().started(), ["make[seed=3]"]);
}

#[test]
fn a_program_that_fails_the_second_time_is_evidence_that_cannot_be_made_again() {
    let script = format!("mark=$AVOW_TEST/$1; test ! -e $mark || exit 3; touch $mark\n{SAME}");
    let sandbox = project(&script);
    sandbox.file("marks/.keep", "");
    let marks = sandbox.path("marks").display().to_string();
    declares(&sandbox, &format!("env: {{AVOW_TEST: {marks}}}"));
    sandbox.avow(&["run", "--confine", "none"]).expect_code(0);
    let run = sandbox.avow(&["run", "--confine", "none", "--verify", "0.1"]).with_code(6);
    assert!(run.stderr.contains("not made again:") && run.stderr.contains("exit code 3"), "{}", run.stderr);
    // It is no failed try of the member, also under a registration.
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(report["deviations"], serde_json::json!([]));
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn a_run_killed_while_it_verifies_loses_nothing() {
    let sandbox = project(&format!("sleep 0.2\n{SAME}"));
    sandbox.avow(&["run"]).expect_code(0);
    let verifying = |sandbox: &Sandbox| {
        let history = sandbox.history();
        history.runs.len() == 2 && history.latest().state.orphans().any(|orphan| orphan.verification)
    };
    sandbox.kill_when(verifying, &["run", "--verify", "1"]);
    let next = sandbox.avow(&["run"]).with_code(0);
    assert!(next.stderr.contains("had died") && next.stderr.contains("8 reused"), "{}", next.stderr);
    let history = sandbox.history();
    let lost: Vec<_> =
        history.runs[1].state.attempts.iter().filter(|(_, a)| !a.outcome.succeeded()).collect();
    assert!(!lost.is_empty() && lost.iter().all(|(_, attempt)| attempt.verification), "{lost:?}");
    assert_eq!(history.runs[1].state.counts().reused, 8);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn a_divergence_outlives_what_is_collected() {
    let sandbox = project(NEARLY);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["run", "--verify", "1"]).expect_code(6);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["store", "collect", "--keep", "0d"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(report["verdicts"][0]["diverged"].as_array().map(Vec::len), Some(8), "{report}");
}

/// Two machines execute the same action; journals and blobs of one are brought to the other.
#[test]
fn the_first_success_is_the_one_whose_journal_says_so_wherever_it_was_brought_from() {
    let (here, there) = (project(SAME), project(SAME));
    here.avow(&["run"]).expect_code(0);
    there.copy(here.path(".avow"), ".avow").remove(".avow/index").remove(".avow/cache");
    here.file("make.sh", NEARLY).avow(&["run"]).expect_code(0);
    // The other machine's clock is a day behind, so what it makes there comes first.
    there.file("make.sh", NEARLY).avow_with("AVOW_CLOCK", "-86400000", &["run"]).expect_code(0);
    let estimate = |sandbox: &Sandbox| -> Value {
        sandbox.avow(&["verdict", "--json"]).with_code(0).json()["verdicts"][0]["estimate"].clone()
    };
    let (own, other) = (estimate(&here), estimate(&there));
    assert_ne!(own, other);
    // As a version control system merges the lines of both ledgers.
    let ledger = ".avow/ledger/again.jsonl";
    let mut merged = here.read(ledger);
    let new: Vec<String> =
        there.read(ledger).lines().filter(|l| !merged.contains(l)).map(|l| format!("{l}\n")).collect();
    merged.extend(new);
    here.file(ledger, merged);
    here.copy(there.path(".avow/blobs"), ".avow/blobs").copy(there.path(".avow/journal"), ".avow/journal");
    // With and without index and cache, for the run and for the reader.
    for _ in 0..2 {
        assert_eq!(estimate(&here), other);
        assert_eq!(here.executes(&["run"]), [""; 0]);
        let history = here.history();
        let stands = there.history().latest().attempt("make[seed=1]").clone();
        let reused = &history.latest().state.members["make[seed=1]"];
        let avow_model::journal::MemberState::Reused(hit) = reused else { panic!("{reused:?}") };
        assert_eq!(hit.attempt, avow_model::canonical::Record::digest(&stands));
        here.remove(".avow/index").remove(".avow/cache");
    }
    // A clock that was set back later changes nothing.
    here.avow_with("AVOW_CLOCK", "-172800000", &["run", "--verify", "1"]).expect_code(6);
    assert_eq!(estimate(&here), other);
}
