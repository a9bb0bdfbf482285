//! Failures that users of other tools report, each as a test that it cannot happen here. What other tests of this folder
//! show already is not repeated: cost by what changed in `counting.rs`, what is stale in `closure.rs` and `locks.rs`,
//! upgrades in `upgrade.rs`, crashes in `kill.rs` and `faults.rs`, many runs at once in `many.rs`, what is kept in `collect.rs`.

use std::fs;

use avow_model::canonical::Record;
use avow_model::digest::BlobDigest;
use avow_testkit::Sandbox;

/// Three members, each with a copy of its input.
const SPEC: &str = "\
avow: 1
experiment: lessons
axes: {n: [1, 2, 3]}
stages:
  copy:
    run: cat ${inputs.first} ${inputs.second} > ${outputs.out}; echo ${axes.n} >> ${outputs.out}
    inputs: {first: data/a.json, second: data/b.json}
    outputs: {out: out.txt}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("data/a.json", "{\"a\": 1}\n").file("data/b.json", "{\"b\": 2}\n");
    sandbox
}

#[track_caller]
fn executes(sandbox: &Sandbox, expected: &[&str]) {
    assert_eq!(sandbox.executes(&["run"]), expected);
}

const ALL: [&str; 3] = ["copy[n=1]", "copy[n=2]", "copy[n=3]"];

/// The same bytes written anew, other times, another order in the spec, comments, a description.
#[test]
fn what_says_the_same_is_not_made_again() {
    let sandbox = project();
    executes(&sandbox, &ALL);
    let text = sandbox.read("data/a.json");
    sandbox.remove("data/a.json").file("data/a.json", text).touch("data/b.json");
    executes(&sandbox, &[]);
    sandbox.replace(
        "spec.yaml",
        "inputs: {first: data/a.json, second: data/b.json}",
        "inputs: {second: data/b.json, first: data/a.json}  # a comment",
    );
    sandbox.replace("spec.yaml", "n: [1, 2, 3]", "n: [3, 1, 2]");
    sandbox.replace("spec.yaml", "  copy:\n", "  copy:\n    description: copies\n    timeout: 10m\n");
    executes(&sandbox, &[]);
}

/// Nothing that can be lost without loss of evidence is needed to find a result again.
#[test]
fn what_is_only_remembered_is_not_what_makes_a_hit() {
    let sandbox = project();
    executes(&sandbox, &ALL);
    sandbox.remove(".avow/index").remove(".avow/cache").remove(".avow/log").remove(".avow/work");
    executes(&sandbox, &[]);
}

/// A success at the second try is a success like any other.
#[test]
fn what_succeeded_at_a_second_try_is_reused() {
    let sandbox = project();
    // A trace that no declared file is: whether it was tried before.
    let trace = format!("/dev/shm/avow-lessons-{}", std::process::id());
    let run = format!("run: test -e {trace}-${{axes.n}} || {{ echo > {trace}-${{axes.n}}; exit 1; }}; ");
    sandbox.replace("spec.yaml", "run: ", &run);
    sandbox.replace("spec.yaml", "    inputs:", "    retries: 1\n    inputs:");
    sandbox.avow(&["run"]).expect_code(0);
    let numbers: Vec<u32> = sandbox.history().attempts().map(|(_, attempt)| attempt.number).collect();
    for n in 1..=3 {
        fs::remove_file(format!("{trace}-{n}")).expect("the first try left it");
    }
    assert_eq!(numbers.len(), 6, "{numbers:?}");
    executes(&sandbox, &[]);
}

/// A failure ends a run, and the next goes on with what is left: nothing is done twice, nothing is forgotten.
#[test]
fn a_run_that_ended_at_a_failure_goes_on_with_what_is_left() {
    let sandbox = project();
    // What fails is the machine's state, not the action.
    let mended = format!("/dev/shm/avow-lessons-mended-{}", std::process::id());
    sandbox.replace("spec.yaml", "run: ", &format!("run: test ${{axes.n}} != 2 || test -e {mended}; "));
    sandbox.avow(&["run", "-j", "1"]).expect_code(1);
    let before = sandbox.history().latest().started();
    assert_eq!(before.last().map(String::as_str), Some("copy[n=2]"), "{before:?}");
    fs::write(&mended, "").expect("shared memory is there");
    let rest = sandbox.executes(&["run"]);
    fs::remove_file(&mended).expect("it was made");
    assert!(rest.contains(&"copy[n=2]".to_owned()), "{rest:?}");
    executes(&sandbox, &[]);
    assert!(sandbox.history().successes().values().all(|count| *count == 1), "{before:?} {rest:?}");
}

/// What a person does with a copy that was handed out does not reach the store.
#[test]
fn what_is_handed_out_is_a_copy() {
    let sandbox = project();
    executes(&sandbox, &ALL);
    sandbox.avow(&["get", "copy.out[n=1]", "-o", "mine.txt"]).expect_code(0);
    fs::write(sandbox.path("mine.txt"), "edited").expect("a copy can be written");
    fs::write(sandbox.path("data/a.json"), "edited").expect("an input is the user's own");
    sandbox.avow(&["store", "check"]).expect_code(0);
    sandbox.file("data/a.json", "{\"a\": 1}\n");
    executes(&sandbox, &[]);
}

/// A program that says that all is well and left nothing has not succeeded, and stands for nothing later.
#[test]
fn success_without_the_outputs_is_none() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "run: ", "run: exit 0; ");
    let run = sandbox.avow(&["run", "-k"]).with_code(1);
    assert!(run.stderr.contains("out"), "{}", run.stderr);
    executes_with_code(&sandbox, 1, &ALL);
}

#[track_caller]
fn executes_with_code(sandbox: &Sandbox, code: i32, expected: &[&str]) {
    sandbox.avow(&["run", "-k"]).expect_code(code);
    let mut started = sandbox.history().latest().started();
    started.sort();
    assert_eq!(started, expected);
}

/// Another name of an output is another output: a reader that chooses by the suffix gets what it asked for.
#[test]
fn another_suffix_is_another_output() {
    let sandbox = project();
    executes(&sandbox, &ALL);
    sandbox.replace("spec.yaml", "out.txt", "out.csv");
    executes(&sandbox, &ALL);
}

/// Looking takes no lock that a run holds, and a look while a run waits for its stage comes back at once.
#[test]
fn looking_waits_for_no_run() {
    let sandbox = project();
    let calm = sandbox.root().with_file_name("calm");
    sandbox.replace(
        "spec.yaml",
        "run: ",
        &format!("run: until test -e {}; do sleep 0.05; done; ", calm.display()),
    );
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(|sandbox| sandbox.has(".avow/live") && !sandbox.list(".avow/live").is_empty());
    let looks: [&[&str]; 7] = [
        &["check"],
        &["plan"],
        &["run", "-n"],
        &["status"],
        &["explain", "copy[n=3]"],
        &["table"],
        &["store", "check"],
    ];
    for look in looks {
        let seen = sandbox.avow(look);
        assert!(running.is_running(), "{look:?} came back only after the run: {}", seen.stderr);
    }
    fs::write(&calm, "").expect("it is ours");
    running.wait().expect_code(0);
}

/// Every reuse is an event that names what stands for whom, and what made a byte is told without running anything.
#[test]
fn a_hit_is_recorded_and_answers_where_a_byte_came_from() {
    let sandbox = project();
    executes(&sandbox, &ALL);
    let made = sandbox.history().latest().attempt("copy[n=2]").digest().to_string();
    sandbox.replace("spec.yaml", "n: [1, 2, 3]", "n: [2, 4]");
    executes(&sandbox, &["copy[n=4]"]);
    // Both runs may have begun in one second, and their names say no more.
    let journals = sandbox.list(".avow/journal");
    let lines = journals.iter().map(|name| sandbox.read(&format!(".avow/journal/{name}")));
    let lines: Vec<String> =
        lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let hit = lines.iter().find(|line| line.contains("\"reused\"")).expect("the hit is an event");
    assert!(hit.contains("copy[n=2]") && hit.contains("action") && hit.contains("attempt"), "{hit}");
    sandbox.remove(".avow/index").remove(".avow/cache");
    let lineage = sandbox.avow(&["lineage", "copy.out[n=2]"]).with_code(0);
    assert!(lineage.stdout.contains(&made[..8]), "{made} is not in {}", lineage.stdout);
    // And of bytes that somebody was handed, by what they are.
    sandbox.avow(&["get", "copy.out[n=2]", "-o", "two.txt"]).expect_code(0);
    let digest = BlobDigest::of(sandbox.read("two.txt").as_bytes()).to_string();
    let lineage = sandbox.avow(&["lineage", &digest]).with_code(0);
    assert!(lineage.stdout.contains("data/a.json"), "{}", lineage.stdout);
}
