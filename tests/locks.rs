//! Lock files: what they say is part of what an action is called, how they are written is not; and a plan is not
//! registered in an environment that nothing pins, unless that is accepted.

use avow_testkit::{Sandbox, Venv};

/// A stage that imports `upper`, of which 1.0 is installed, with this lock file.
fn project(manager: &str, file: &str, lock: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1\nexperiment: locked\naxes: {{seed: [1]}}\nstages:\n  make:\n    run: python3 main.py ${{axes.seed}} ${{outputs.out}}\n    \
         environment: {{{manager}: {file}}}\n    outputs: {{out: {{path: out.txt, optional: true}}}}\n"
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file(file, lock);
    sandbox.file("main.py", "import sys, upper\nopen(sys.argv[2], 'w').write(str(upper.VALUE))\n");
    let venv = Venv::new(&sandbox, "venv");
    let sandbox = sandbox.env("PATH", &venv.path);
    venv.install("upper", "1.0", "VALUE = 1\n", "");
    sandbox
}

#[track_caller]
fn runs_again(sandbox: &Sandbox) {
    assert_eq!(sandbox.executes(&["run"]), ["make[seed=1]"]);
}

#[track_caller]
fn is_reused(sandbox: &Sandbox) {
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn how_requirements_are_written_changes_nothing_and_what_they_say_does() {
    let sandbox = project("pip", "requirements.txt", "upper==1.0\n");
    runs_again(&sandbox);
    sandbox.file("requirements.txt", "# made by a tool\n\nUpper == 1.0  # via nothing\r\n");
    is_reused(&sandbox);
    sandbox.avow(&["store", "check"]).expect_code(0);
    sandbox.file("requirements.txt", "upper==1.0 --hash=sha256:aa\n");
    let explained = sandbox.avow(&["explain", "make[seed=1]"]).with_code(0);
    assert!(explained.stdout.contains("environment lock changed"), "{}", explained.stdout);
    runs_again(&sandbox);
}

#[test]
fn how_a_uv_lock_is_written_changes_nothing_and_what_it_says_does() {
    let lock = "version = 1\nrevision = 1\n\n[[package]]\nname = \"upper\"\nversion = \"1.0\"\nsource = { registry = \"https://packages.example.org/simple\" }\n";
    let sandbox = project("uv", "uv.lock", lock);
    runs_again(&sandbox);
    sandbox.file("uv.lock", format!("# of a newer tool\n{}", lock.replace("revision = 1", "revision = 3")));
    is_reused(&sandbox);
    sandbox.replace("uv.lock", "https://packages.example.org", "https://mirror.example.org");
    runs_again(&sandbox);
}

#[test]
fn how_a_conda_file_is_written_changes_nothing_and_what_it_says_does() {
    let sandbox = project("conda", "environment.yml", "name: a\ndependencies:\n- python\n- upper=1.0\n");
    runs_again(&sandbox);
    sandbox.file("environment.yml", "# mine\nname: b\nprefix: /home/b\ndependencies: [upper=1.0, python]\n");
    is_reused(&sandbox);
    sandbox.file("environment.yml", "name: b\nchannels: [conda-forge]\ndependencies: [upper=1.0, python]\n");
    runs_again(&sandbox);
}

#[test]
fn a_comment_in_a_lock_is_no_deviation_from_what_was_registered() {
    let sandbox = project("pip", "requirements.txt", "upper==1.0\n");
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.file("requirements.txt", "upper==1.0  # a second look\n");
    sandbox.avow(&["run"]).expect_code(0);
    let status = sandbox.avow(&["status"]).with_code(0);
    assert!(status.stdout.contains("standing   confirmatory"), "{}", status.stdout);
    sandbox.file("requirements.txt", "upper==1\nupper==1.0.0\n");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(
        run.stderr.contains("not the one that is registered") || run.stderr.contains("exploratory"),
        "{}",
        run.stderr
    );
}

/// The same bytes of a lock file give the same plan whether the spec is read anew or was kept from before.
#[test]
fn what_was_made_under_a_lock_files_bytes_is_found_after_an_upgrade_also_from_a_kept_spec() {
    let sandbox = project("pip", "requirements.txt", "upper==1.0 # as it was\n");
    // Large enough to be kept.
    let spec = sandbox.read("spec.yaml") + &format!("# {}\n", "x".repeat(9000));
    sandbox.file("spec.yaml", spec);
    let first = sandbox.avow(&["plan", "--json"]).with_code(0).json();
    let second = sandbox.avow(&["plan", "--json"]).with_code(0).json();
    assert_eq!(first["plan"], second["plan"], "{first}");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

#[test]
fn an_environment_that_nothing_pins_is_registered_only_where_that_is_accepted() {
    for lock in ["upper>=1\n", "upper==1.0\n-r more.txt\n", "upper==1.*\n"] {
        let sandbox = project("pip", "requirements.txt", lock);
        let refused = sandbox.avow(&["register"]).with_code(3);
        for part in ["nothing pins the environment", "--accept-unpinned", "requirements.txt"] {
            assert!(refused.stderr.contains(part), "no `{part}` in: {}", refused.stderr);
        }
        assert!(!sandbox.has("registrations"));
        sandbox.avow(&["register", "--accept-unpinned"]).expect_code(0);
        assert!(sandbox.read("registrations/locked.jsonl").contains("\"accepted\":[\"unpinned\"]"));
    }
}

#[test]
fn no_lock_file_at_all_is_an_environment_that_nothing_pins_and_says_nothing_of_other_warnings() {
    let sandbox = project("pip", "requirements.txt", "upper==1.0\n");
    sandbox.remove("requirements.txt").replace("spec.yaml", "    environment: {pip: requirements.txt}\n", "");
    let refused = sandbox.avow(&["register"]).with_code(3);
    assert!(refused.stderr.contains("no lock file says which version"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--accept-unpinned"), "{}", refused.stderr);
    // Another warning beside it: that one is not accepted with it.
    sandbox.replace("spec.yaml", "    outputs:", "    kind: train\n    outputs:");
    sandbox.replace("spec.yaml", "${axes.seed} ", "1 ");
    sandbox.replace("spec.yaml", "axes: {seed: [1]}\n", "");
    let refused = sandbox.avow(&["register", "--accept-unpinned"]).with_code(3);
    assert!(refused.stderr.contains("names no seed"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("no lock file says"), "{}", refused.stderr);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    let line = sandbox.read("registrations/locked.jsonl");
    assert!(line.contains("\"accepted\":[\"seed\",\"unpinned\"]"), "{line}");
}
