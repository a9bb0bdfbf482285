//! A spec is compiled once: what is kept of it is used while nothing it rests on has changed, and never after.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use avow_testkit::{Run, Sandbox};

type Change = fn(&Sandbox);

/// Long enough to be worth keeping.
fn spec() -> String {
    let padding = "# a line that makes the spec long enough to be worth keeping\n".repeat(200);
    format!(
        "{padding}avow: 1
experiment: kept
params: {{unused: 1}}
axes: {{seed: [1, 2], width: [0.5, 1.0, 1e-9]}}
stages:
  train:
    run: python3 train.py ${{axes.seed}} ${{axes.width}} extra/notes ${{inputs.data}} ${{outputs.model}}
    inputs: {{data: data.txt}}
    outputs: {{model: model.txt}}
  measure:
    run: ./measure.sh ${{inputs.model}} ${{outputs.score}}
    inputs: {{model: train.model}}
    measurements: {{score: score.json}}
claims:
  positive: {{select: value, per: width, replicate: seed, rule: {{kind: threshold, above: 0}}}}
"
    )
}

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox
        .file("avow.toml", "")
        .file("spec.yaml", spec())
        .file("data.txt", "1\n")
        .file("helper.py", "VALUE = 1\n")
        .file("train.py", "import sys, helper\nopen(sys.argv[5], 'w').write(sys.argv[1] + sys.argv[2])\n")
        .file("measure.sh", "#!/bin/sh\nprintf '{\"value\": 1}' > \"$2\"\n");
    fs::set_permissions(sandbox.path("measure.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    sandbox
}

fn kept(sandbox: &Sandbox) -> Vec<String> {
    sandbox.list(".avow/cache").into_iter().filter(|name| name.starts_with("plan-")).collect()
}

fn forget(sandbox: &Sandbox) {
    fs::remove_dir_all(sandbox.path(".avow/cache")).unwrap();
}

fn holds(run: &Run) -> bool {
    run.stderr.contains("the compiled spec holds")
}

/// What people read, without the log.
fn words(run: &Run) -> (i32, String, String) {
    let talk = run.stderr.lines().filter(|line| !line.contains("DEBUG") && !line.contains("INFO"));
    (run.code, run.stdout.clone(), talk.collect::<Vec<_>>().join("\n"))
}

/// Each command says with what is kept what it says without.
fn same_either_way(sandbox: &Sandbox, what: &str) {
    for command in [["check", "--full"], ["check", "--json"], ["plan", "--all"], ["explain", "train"]] {
        let command: Vec<&str> = std::iter::once("-vv").chain(command).collect();
        let first = sandbox.avow(&command);
        let again = sandbox.avow(&command);
        assert!(holds(&again) || again.code > 2, "{what}: {command:?} was compiled again\n{}", again.stderr);
        forget(sandbox);
        let anew = sandbox.avow(&command);
        assert!(!holds(&anew));
        assert_eq!(words(&first), words(&anew), "{what}: {command:?}");
        assert_eq!(words(&again), words(&anew), "{what}: {command:?}");
    }
}

#[test]
fn nothing_is_created_before_there_is_a_store() {
    let sandbox = project();
    sandbox.avow(&["check"]).expect_code(0);
    sandbox.avow(&["plan"]).expect_code(0);
    assert!(!sandbox.has(".avow"));
}

#[test]
fn a_compiled_spec_holds_until_something_it_rests_on_changes() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    assert!(!kept(&sandbox).is_empty(), "{:?}", kept(&sandbox));
    same_either_way(&sandbox, "nothing changed");

    let plan = |sandbox: &Sandbox| {
        let run = sandbox.avow(&["-vv", "plan", "--all"]).with_code(0);
        (holds(&run), run.stdout)
    };
    plan(&sandbox);
    let (held, mut before) = plan(&sandbox);
    assert!(held && before.contains("0 to run"), "{before}");
    // Each is something that the plan rests on, and that a kept plan must not survive.
    let changes: [(&str, Change); 5] = [
        ("the imported module", |s| {
            s.file("helper.py", "VALUE = 2\n");
        }),
        ("the data", |s| {
            s.file("data.txt", "2\n");
        }),
        ("a file that the command names appears", |s| {
            s.file("extra/notes", "now here\n");
        }),
        ("a module beside the script appears", |s| {
            s.file("train.py", "import sys, helper, other\nopen(sys.argv[5], 'w').write('x')\n");
            s.file("other.py", "pass\n");
        }),
        ("the spec", |s| {
            s.replace("spec.yaml", "seed: [1, 2]", "seed: [1, 2, 3]");
        }),
    ];
    for (what, change) in changes {
        std::thread::sleep(Duration::from_millis(30));
        change(&sandbox);
        let (held, after) = plan(&sandbox);
        assert!(!held, "{what} changed, and the kept plan was used");
        assert_ne!(after, before, "{what}");
        same_either_way(&sandbox, what);
        sandbox.avow(&["run", "-q"]).expect_code(0);
        before = plan(&sandbox).1;
    }
    let mode =
        |mode| fs::set_permissions(sandbox.path("measure.sh"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let refused = sandbox.avow(&["check"]).with_code(3);
    assert!(refused.stderr.contains("not executable"), "{}", refused.stderr);
    mode(0o755);
    sandbox.avow(&["check"]).expect_code(0);
}

#[test]
fn a_kept_plan_is_the_same_plan() {
    let digest = |sandbox: &Sandbox| {
        sandbox.avow(&["run", "-q"]).expect_code(0);
        sandbox.avow(&["status", "--json"]).with_code(0).json()["opened"]["plan"].clone()
    };
    let sandbox = project();
    let first = digest(&sandbox);
    assert_eq!(digest(&sandbox), first);
    forget(&sandbox);
    assert_eq!(digest(&sandbox), first);
}

#[test]
fn what_is_kept_is_bounded_and_damage_is_a_miss() {
    let sandbox = project();
    sandbox.avow(&["run", "-q"]).expect_code(0);
    for round in 0..20 {
        sandbox.file("spec.yaml", format!("{}# {round}\n", spec()));
        sandbox.avow(&["check", "-q"]).expect_code(0);
    }
    assert!(kept(&sandbox).len() <= 12, "{:?}", kept(&sandbox));
    let good = sandbox.avow(&["check"]).with_code(0);
    for name in kept(&sandbox) {
        let path = sandbox.path(&format!(".avow/cache/{name}"));
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(words(&sandbox.avow(&["check"])), words(&good));
    for name in kept(&sandbox) {
        fs::write(sandbox.path(&format!(".avow/cache/{name}")), "torn").unwrap();
    }
    assert_eq!(words(&sandbox.avow(&["check"])), words(&good));
}
