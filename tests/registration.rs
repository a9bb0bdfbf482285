//! What was registered before is told apart from what was not, and values stay hidden until all are in.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::{Run, Sandbox};
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: promise
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  prepare:
    run: [sh, prepare.sh, '${outputs.base}']
    outputs: {base: base.txt}
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${inputs.base}', '${outputs.result}']
    inputs: {base: prepare.base}
    measurements: {result: result.json}
claims:
  helps:
    says: The dose raises the yield.
    select: measure.yield
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

/// The yield rises by 1 and a little.
const MEASURE: &str =
    "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2 + $(cat \"$3\")))\" \"$(($1 * $2))\" > \"$4\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("prepare.sh", "echo 10 > \"$1\"\n").file("measure.sh", MEASURE);
    sandbox
}

const LEDGER: &str = "registrations/promise.jsonl";

fn ledger(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.read(LEDGER).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(sandbox: &Sandbox) -> Vec<String> {
    ledger(sandbox).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect()
}

fn report(sandbox: &Sandbox) -> Value {
    sandbox.avow(&["verdict", "--json"]).with_code(0).json()
}

/// The classes of the deviations.
fn deviations(sandbox: &Sandbox) -> Vec<String> {
    let report = report(sandbox);
    report["deviations"].as_array().unwrap().iter().map(|d| d["class"].as_str().unwrap().to_owned()).collect()
}

fn registered(sandbox: &Sandbox) -> Run {
    sandbox.avow(&["register"]).with_code(0)
}

#[test]
fn what_is_registered_and_then_carried_out_is_confirmatory() {
    let sandbox = project();
    let run = sandbox.avow(&["register", "--json"]).with_code(0).json();
    assert_eq!(kinds(&sandbox), ["register"]);
    assert_eq!(ledger(&sandbox)[0]["plan"], run["plan"]);
    assert_eq!(run["registration"], run["chain"], "the first line names the chain");

    let again = sandbox.avow(&["register"]).with_code(2);
    assert!(
        again.stderr.contains("registered already") && again.stderr.contains("avow run"),
        "{}",
        again.stderr
    );
    assert_eq!(kinds(&sandbox), ["register"]);

    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(kinds(&sandbox), ["register", "run-opened", "run-closed"]);
    assert!(sandbox.history().latest().state.opened.as_ref().unwrap().confirmatory);
    let status = sandbox.avow(&["status", "--json"]).json();
    assert_eq!(status["opened"]["confirmatory"], true);

    let report = report(&sandbox);
    assert_eq!(report["standing"], "confirmatory");
    assert_eq!(report["registration"]["leaf"], run["registration"]);
    let verdict = &report["verdicts"][0];
    assert_eq!((&verdict["word"], &verdict["standing"]), (&"supported".into(), &"confirmatory".into()));
    assert_eq!(report["deviations"], serde_json::json!([]));
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn without_a_registration_results_are_exploratory() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(report(&sandbox)["standing"], "exploratory");
    assert!(!sandbox.has("registrations"), "the working tree is left alone");
    // The chain is kept all the same, and moves into the project.
    assert_eq!(sandbox.list(".avow/ledger").iter().filter(|name| name.ends_with(".jsonl")).count(), 1);
    registered(&sandbox);
    assert_eq!(kinds(&sandbox), ["run-opened", "run-closed", "register"]);
}

#[test]
fn an_attempt_older_than_its_registration_is_a_deviation() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    registered(&sandbox);
    assert_eq!(sandbox.executes(&["run"]), [""; 0], "it is reused, and told");
    let report = report(&sandbox);
    let deviations = report["deviations"].as_array().unwrap();
    assert_eq!(deviations.len(), 1, "preparation that reads no measurement may be older: {deviations:?}");
    assert_eq!(deviations[0]["class"], "older-than-registration");
    assert_eq!(deviations[0]["members"].as_array().unwrap().len(), 16);
    assert_eq!(report["verdicts"][0]["deviations"], serde_json::json!([0]), "it concerns the claim");
    sandbox.avow(&["verdict", "--check"]).expect_code(7);
    let text = sandbox.avow(&["verdict"]).with_code(0);
    assert!(text.stdout.contains("older-than-registration"), "{}", text.stdout);
}

#[test]
fn a_change_after_the_registration_stands_beside_the_verdict() {
    let sandbox = project();
    registered(&sandbox);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.replace("spec.yaml", "above: 0}", "above: 0.5}");
    let report = report(&sandbox);
    let deviations = report["deviations"].as_array().unwrap();
    assert!(!deviations.is_empty());
    for deviation in deviations {
        assert_eq!((&deviation["class"], &deviation["when"]), (&"amendment".into(), &"after".into()));
        assert_eq!((&deviation["name"], &deviation["new"]), (&"helps".into(), &0.5.into()));
    }
    assert_eq!(report["standing"], "exploratory");
    sandbox.avow(&["verdict", "--check"]).expect_code(7);
    // A run of it says the same, and is not what was registered.
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stdout.contains("amendment"), "{}", run.stdout);
    assert!(!sandbox.history().latest().state.opened.as_ref().unwrap().confirmatory);

    // Back to the plan as registered: everything stands.
    sandbox.replace("spec.yaml", "above: 0.5}", "above: 0}");
    assert_eq!(self::deviations(&sandbox), [""; 0]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn words_and_additions_are_no_misconduct() {
    let sandbox = project();
    registered(&sandbox);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.replace("spec.yaml", "raises the yield.", "raises the yield of a plant.");
    assert_eq!(deviations(&sandbox), ["clarification"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    let more = "  level: {tier: secondary, select: measure.yield, where: {dose: 1}, rule: {kind: threshold, above: 1}}\n";
    let text = sandbox.read("spec.yaml");
    sandbox.file("spec.yaml", text + more);
    let found = deviations(&sandbox);
    assert!(found.contains(&"addition".to_owned()) && !found.contains(&"amendment".to_owned()), "{found:?}");
}

/// Carries out two of the sixteen measurements of a registered plan.
fn begun() -> Sandbox {
    let sandbox = project();
    registered(&sandbox);
    sandbox.avow(&["run", "--only", "measure[seed=3]"]).expect_code(0);
    sandbox
}

#[test]
fn values_stay_hidden_until_the_plan_is_complete() {
    let sandbox = begun();
    // The yields of seed 3, as they lie in the store.
    let numbers = ["13.0", "14.3"];
    let hidden: [(&[&str], i32); 9] = [
        (&["verdict"], 0),
        (&["verdict", "--json"], 0),
        (&["verdict", "--explain", "helps"], 0),
        (&["verdict", "--check"], 5),
        (&["table"], 5),
        (&["table", "--json"], 5),
        (&["get", "measure.result[dose=1,seed=3]", "-o", "stolen.json"], 5),
        (&["lineage", "helps"], 5),
        (&["lineage", "helps", "--json"], 5),
    ];
    let before = ledger(&sandbox);
    for (args, code) in hidden {
        let run = sandbox.avow(args).with_code(code);
        let said = run.stdout + &run.stderr;
        assert!(numbers.iter().all(|number| !said.contains(number)), "{args:?} says {said}");
        assert!(said.contains("3 of 17") || args.contains(&"--json"), "{args:?} says how far it is: {said}");
    }
    assert!(!sandbox.has("stolen.json"));
    assert_eq!(ledger(&sandbox), before, "nothing was read");
    // Counts and times are no values.
    let status = sandbox.avow(&["status"]).with_code(0);
    assert!(status.stdout.contains("confirmatory"), "{}", status.stdout);

    sandbox.avow(&["run"]).expect_code(0);
    let table = sandbox.avow(&["table"]).with_code(0);
    assert!(
        numbers.iter().all(|number| table.stdout.contains(number.trim_end_matches(".0"))),
        "{}",
        table.stdout
    );
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn whoever_peeks_is_written_down() {
    let sandbox = begun();
    let peeks: [&[&str]; 4] = [
        &["table", "--peek"],
        &["verdict", "--peek"],
        &["get", "measure.result[dose=1,seed=3]", "-o", "seen.json", "--peek"],
        &["lineage", "measure.result[dose=1,seed=3]", "--peek"],
    ];
    for (count, args) in peeks.iter().enumerate() {
        sandbox.avow(args).expect_code(0);
        let exposures: Vec<Value> =
            ledger(&sandbox).into_iter().filter(|line| line["kind"] == "exposure").collect();
        assert_eq!(exposures.len(), count + 1, "{args:?}");
        assert_eq!(exposures[count]["command"], args[0]);
    }
    assert_eq!(sandbox.read("seen.json"), "{\"yield\": 14.3}\n");
    // A complete plan hides nothing, so nothing is written down.
    sandbox.avow(&["run"]).expect_code(0);
    let before = ledger(&sandbox).len();
    sandbox.avow(&["table", "--peek"]).expect_code(0);
    assert_eq!(ledger(&sandbox).len(), before);
}

#[test]
fn cancelled_members_do_not_complete_a_plan() {
    let sandbox = project();
    // A measurement that ends when it is told to, so that the run can be interrupted in the middle.
    sandbox.file("measure.sh", format!("[ $2 != 5 ] || {{ touch waiting; sleep 60; }}\n{MEASURE}"));
    registered(&sandbox);
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(|sandbox| sandbox.history().successes().values().sum::<usize>() >= 5);
    running.signal("INT");
    running.wait().expect_code(130);
    sandbox.avow(&["table"]).expect_code(5);
    sandbox.avow(&["verdict", "--check"]).expect_code(5);
}

/// The check of `sha256sum`, as anyone can make it: a leaf is the digest of a zero byte and the line.
#[test]
fn the_ledger_is_checked_with_public_tools() {
    let sandbox = project();
    let leaf = sandbox.avow(&["register", "--json"]).with_code(0).json()["registration"].clone();
    sandbox.avow(&["run"]).expect_code(0);
    let public = |line: usize| {
        let script = format!("printf '\\0%s' \"$(sed -n {line}p {LEDGER})\" | sha256sum");
        let output = sandbox.command("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()[..64].to_owned()
    };
    assert_eq!(leaf, public(1));
    let lines = ledger(&sandbox);
    for (i, line) in lines.iter().enumerate() {
        let parents = if i == 0 { Vec::new() } else { vec![public(i)] };
        assert_eq!(line["parents"], serde_json::json!(parents), "line {} follows the one before", i + 1);
        assert_eq!(line["tree"]["size"], i);
    }
    // Every attempt names a head of the ledger at its start.
    let heads: Vec<String> = (1..=lines.len()).map(public).collect();
    for (member, attempt) in sandbox.history().attempts() {
        assert!(!attempt.ledger_heads.is_empty(), "{member}");
        assert!(attempt.ledger_heads.iter().all(|head| heads.contains(&head.to_string())), "{member}");
    }
}

#[test]
fn a_ledger_that_was_edited_is_damaged_evidence() {
    let sandbox = project();
    registered(&sandbox);
    sandbox.avow(&["run"]).expect_code(0);
    let text = sandbox.read(LEDGER);
    for (what, edited) in [
        ("a value", text.replacen("\"claims\":1", "\"claims\":2", 1)),
        ("a space", text.replacen("\"claims\":1", "\"claims\": 1", 1)),
        ("a line gone", text.split_inclusive('\n').skip(1).collect()),
    ] {
        assert_ne!(text, edited);
        sandbox.file(LEDGER, &edited);
        let check = sandbox.avow(&["store", "check"]).with_code(6);
        assert!(check.stdout.contains(LEDGER), "{what}: {}", check.stdout);
        sandbox.avow(&["verdict"]).expect_code(6);
        // Nothing is built on it.
        sandbox.replace("spec.yaml", "raises", "lifts");
        sandbox.avow(&["register"]).expect_code(6);
        sandbox.replace("spec.yaml", "lifts", "raises");
        assert_eq!(sandbox.read(LEDGER), edited, "{what}: it is left as it is");
    }
    sandbox.file(LEDGER, &text);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    // Whole lines cut from the end are cited by attempts or journals.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    sandbox.file(LEDGER, lines[..1].concat());
    sandbox.avow(&["store", "check"]).expect_code(6);
    sandbox.avow(&["verdict"]).expect_code(6);
}

#[test]
fn warnings_must_be_accepted() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "seed: [1, 2, 3, 4, 5, 6, 7, 8]", "seed: [1, 2, 3]");
    let run = sandbox.avow(&["register"]).with_code(3);
    assert!(run.stderr.contains("--accept-warnings"), "{}", run.stderr);
    assert!(!sandbox.has("registrations"));
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
}

#[test]
fn a_copy_under_another_name_opens_nothing() {
    let sandbox = project();
    registered(&sandbox);
    sandbox.avow(&["run", "--only", "measure[dose=1,seed=1]"]).expect_code(0);
    sandbox.file(
        "apart.yaml",
        SPEC.replace("experiment: promise", "experiment: apart").replace("seed: [1,", "seed: [9,"),
    );
    sandbox.avow(&["register", "apart.yaml"]).expect_code(0);
    sandbox.file("copy.yaml", SPEC.replace("experiment: promise", "experiment: other"));
    for command in
        [&["table", "copy.yaml"][..], &["verdict", "copy.yaml"], &["verdict", "copy.yaml", "--json"]]
    {
        let run = sandbox.avow(command).with_code(5);
        assert!(run.stdout.is_empty() && run.stderr.contains("stay hidden"), "{command:?}: {}", run.stdout);
    }
    sandbox.avow(&["table", "copy.yaml", "--peek"]).expect_code(0);
    assert!(kinds(&sandbox).contains(&"exposure".to_owned()), "and looking all the same is recorded");
    let apart = sandbox.read("registrations/apart.jsonl");
    assert_eq!(apart.lines().count(), 1, "only where it concerns something: {apart}");
}

#[test]
fn deleting_a_blob_does_not_draw_the_number_again() {
    let sandbox = project();
    sandbox.file("measure.sh", "printf '{\"yield\": %d}\\n' \"$(od -An -N2 -tu2 /dev/urandom)\" > \"$4\"\n");
    registered(&sandbox);
    sandbox.avow(&["run"]).expect_code(0);
    let report = report(&sandbox);
    let blob = report["verdicts"][0]["evidence"][0]["artifact"].as_str().unwrap().to_owned();
    sandbox.remove(&format!(".avow/blobs/{}/{}", &blob[..2], &blob[2..]));
    sandbox.avow(&["run"]).expect_code(6);
    let run = sandbox.avow(&["verdict", "--json"]).with_code(6);
    let verdict = &run.json()["verdicts"][0];
    assert_eq!((&verdict["word"], &verdict["reason"]["code"]), (&"void".into(), &"damaged-evidence".into()));
}

#[test]
fn trying_until_it_works_is_answered_with_its_own_code() {
    let sandbox = project();
    // Fails the first time that it is tried for each cell, and leaves a trace where nothing is declared: /dev/shm.
    let trace = format!("/dev/shm/avow-test-{}", std::process::id());
    let flaky = format!("f={trace}-$1-$2; if [ ! -e \"$f\" ]; then : > \"$f\"; exit 1; fi\n{MEASURE}");
    sandbox.file("measure.sh", flaky);
    registered(&sandbox);
    sandbox.avow(&["run", "-k"]).expect_code(1);
    sandbox.avow(&["run"]).expect_code(0);
    for dose in 0..2 {
        (1..9).for_each(|seed| std::fs::remove_file(format!("{trace}-{dose}-{seed}")).unwrap());
    }
    assert_eq!(deviations(&sandbox), ["incident"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(7);
    // Nothing that was printed is lost.
    let log = sandbox.avow(&["log", "measure[dose=1,seed=1]", "--spec", "spec.yaml", "--json"]).json();
    assert_eq!(log.as_array().unwrap().len(), 2, "every attempt has its log");
}

#[test]
fn a_ledger_that_is_gone_is_missed_and_nothing_is_registered_in_its_place() {
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let name = sandbox.avow(&["verdict", "--json"]).json()["experiment"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(sandbox.path("registrations")).unwrap();
    for call in [
        &["ledger", "verify"][..],
        &["ledger", "verify", &name],
        &["ledger", "log"],
        &["ledger", "heads"],
        &["register"],
    ] {
        let run = sandbox.avow(call).with_code(6);
        assert!(run.stderr.contains("the ledger lacks the line"), "{call:?}: {}", run.stderr);
        assert!(!sandbox.path("registrations").exists(), "{call:?}");
    }
    let told = sandbox.avow(&["register"]).with_code(6).stderr;
    assert!(told.contains("is gone") && told.contains("restore `registrations/`"), "{told}");
}
