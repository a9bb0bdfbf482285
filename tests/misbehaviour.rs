//! Programs that misbehave get the outcome they earned, the run goes on, and nothing is left of them.

use std::fs;

use avow_model::attempt::{Failure, Outcome};
use avow_testkit::Sandbox;

/// One stage for each way to go wrong, and some that do not.
const SPEC: &str = r#"
avow: 1
experiment: misbehaviour
stages:
  good:
    run: [sh, -c, "echo fine > out.txt"]
    outputs: {out: out.txt}
  fails:
    run: [sh, -c, "echo some words; echo some troubles >&2; exit 3"]
    outputs: {out: out.txt}
  behind-failure:
    run: [cp, "${inputs.in}", out.txt]
    inputs: {in: fails.out}
    outputs: {out: out.txt}
  behind-success:
    run: [cp, "${inputs.in}", out.txt]
    inputs: {in: good.out}
    outputs: {out: out.txt}
  crashes:
    run: [sh, -c, "kill -s SEGV $$"]
    outputs: {out: out.txt}
  hangs:
    run: [sh, -c, "echo begun; sleep 300"]
    outputs: {out: out.txt}
    timeout: 1s
  ignores-signals:
    run: [sh, -c, "trap '' TERM INT HUP; while :; do sleep 300; done"]
    outputs: {out: out.txt}
    timeout: 1s
  writes-nothing:
    run: ["true"]
    outputs: {out: out.txt, more: more.txt}
  writes-half:
    run: [sh, -c, "echo one > out.txt"]
    outputs: {out: out.txt, more: more.txt}
  folder-for-a-file:
    run: [mkdir, out.txt]
    outputs: {out: out.txt}
  points-outside:
    run: [ln, -s, /etc, out]
    outputs: {out: out/}
  fills-disk:
    run: [sh, -c, "head -c 300000000 /dev/zero > big; sleep 300"]
    outputs: {out: out.txt}
    resources: {disk: 1MiB}
  prints-much:
    run: [sh, -c, "yes 'ten bytes' | head -c 50000000; echo done > out.txt"]
    outputs: {out: out.txt}
  leaves-a-child:
    run: [sh, -c, "(setsid sleep 300 &) ; sleep 300 & echo done > out.txt"]
    outputs: {out: out.txt}
  overwrites-a-file:
    run: [sh, -c, "echo changed > data/precious.txt; echo changed > ${inputs.in}; rm -f ${inputs.in}; echo done > out.txt"]
    inputs: {in: data/precious.txt}
    outputs: {out: out.txt}
  overwrites-an-artifact:
    run: [sh, -c, "chmod u+w ${inputs.in}; echo changed > ${inputs.in}; : > ${inputs.in}; echo done > out.txt"]
    inputs: {in: good.out}
    outputs: {out: out.txt}
  takes-memory:
    run: [python3, -c, "import time; data = b'x' * 400_000_000; time.sleep(300)"]
    outputs: {out: out.txt}
    resources: {memory: 100MiB}
"#;

#[test]
fn each_gets_the_outcome_it_earned_and_the_run_goes_on() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/precious.txt", "precious\n");
    sandbox.avow(&["run", "-k", "-j", "2"]).expect_code(1);

    let history = sandbox.history();
    let run = history.latest();
    let outcome = |stage: &str| run.outcome(stage).clone();
    for stage in ["good", "behind-success", "prints-much", "leaves-a-child"] {
        assert_eq!(outcome(stage), Outcome::Succeeded, "{stage}");
    }
    assert_eq!(outcome("fails"), Outcome::Failed(Failure::Exit(3)));
    assert_eq!(outcome("crashes"), Outcome::Failed(Failure::Signal(11)));
    assert_eq!(outcome("hangs"), Outcome::TimedOut);
    assert_eq!(outcome("ignores-signals"), Outcome::TimedOut);
    assert_eq!(outcome("writes-nothing"), Outcome::MissingOutput(vec!["more".to_owned(), "out".to_owned()]));
    assert_eq!(outcome("writes-half"), Outcome::MissingOutput(vec!["more".to_owned()]));
    for stage in ["folder-for-a-file", "points-outside"] {
        let found = outcome(stage);
        assert!(matches!(found, Outcome::Failed(Failure::BadOutput(_))), "{stage}: {found}");
    }
    assert_eq!(outcome("fills-disk"), Outcome::Failed(Failure::Disk));
    assert_eq!(outcome("takes-memory"), Outcome::OutOfMemory);
    assert!(!run.started().contains(&"behind-failure".to_owned()));

    // An input is protected, or what the stage changed was a copy.
    for stage in ["overwrites-a-file", "overwrites-an-artifact"] {
        let found = outcome(stage);
        assert!(matches!(found, Outcome::Succeeded | Outcome::Failed(Failure::Exit(_))), "{stage}: {found}");
    }
    assert_eq!(sandbox.read("data/precious.txt"), "precious\n");
    let good = history.artifacts()[&("good".to_owned(), "out".to_owned())].blob();
    assert_eq!(fs::read_to_string(sandbox.blob(good)).unwrap(), "fine\n");
    sandbox.avow(&["store", "check"]).expect_code(0);

    // The command line tells the same.
    let status = sandbox.avow(&["status", "--json"]).with_code(0).json();
    assert_eq!(status["closed"], "failed");
    assert_eq!((&status["counts"]["waiting"], &status["counts"]["running"]), (&1.into(), &0.into()));
    let failed = status["failed"].as_array().unwrap();
    let told = |stage: &str| &failed.iter().find(|row| row["member"] == stage).unwrap()["outcome"];
    assert_eq!(told("hangs"), "timed-out");
    assert_eq!(told("takes-memory"), "out-of-memory");
    assert_eq!(told("fails"), &serde_json::json!({"failed": {"exit": 3}}));

    // Nothing leaks.
    assert_eq!(sandbox.survivors(), [0; 0]);
    assert_eq!(sandbox.list(".avow/work"), ["tmp"]);
    assert_eq!(sandbox.list(".avow/work/tmp"), [""; 0]);
    assert_eq!(sandbox.list("."), [".avow", "avow.toml", "data", "spec.yaml"], "nor into the project");

    logs_are_whole(&sandbox);
}

fn logs_are_whole(sandbox: &Sandbox) {
    assert_eq!(sandbox.avow(&["log", "fails", "-q"]).with_code(0).stdout, "some words\nsome troubles\n");
    assert_eq!(sandbox.avow(&["log", "hangs", "-q"]).with_code(0).stdout, "begun\n");
    let much = sandbox.avow(&["log", "prints-much", "-q"]).with_code(0).stdout;
    assert_eq!(much.len(), 50_000_000);
    assert!(much.lines().all(|line| line == "ten bytes"));
    let rows = sandbox.avow(&["log", "fails", "--json"]).with_code(0).json();
    assert_eq!((&rows[0]["stdout"], &rows[0]["stderr"]), (&"some words\n".into(), &"some troubles\n".into()));
}

#[test]
fn without_the_flag_a_failure_ends_the_run() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = "avow: 1\nexperiment: stop\naxes: {n: [1, 2, 3, 4, 5, 6]}\nstages:\n  s:\n    \
                run: [sh, -c, \"echo ${axes.n} > out.txt; [ ${axes.n} != 2 ]\"]\n    outputs: {out: out.txt}\n";
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    let run = sandbox.avow(&["run", "-j", "1"]).with_code(1);
    assert!(run.stderr.contains("s[n=2]") && run.stderr.contains("exit code 1"), "{}", run.stderr);
    assert!(run.stderr.contains("avow log"), "it says where to look: {}", run.stderr);
    assert_eq!(sandbox.history().latest().started(), ["s[n=1]", "s[n=2]"]);
}

#[test]
fn a_failure_is_tried_again_as_often_as_declared() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = "avow: 1\nexperiment: again\nstages:\n  s:\n    run: [sh, -c, \"exit 1\"]\n    \
                outputs: {out: out.txt}\n    retries: 2\n";
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    sandbox.avow(&["run"]).expect_code(1);
    let numbers: Vec<u32> = sandbox.history().attempts().map(|(_, attempt)| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
