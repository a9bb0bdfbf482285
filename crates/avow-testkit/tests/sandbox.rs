//! The sandbox, with `sh` as the program under test.

use std::time::Duration;

use avow_testkit::{Run, Sandbox};

fn sandbox() -> Sandbox {
    Sandbox::new("sh")
}

fn sh(sandbox: &Sandbox, text: &str) -> Run {
    sandbox.avow(&["-c", text])
}

#[test]
fn a_run_has_code_and_both_outputs() {
    let run = sh(&sandbox(), "echo out; echo err >&2; exit 3");
    assert_eq!(run, Run { code: 3, stdout: "out\n".to_owned(), stderr: "err\n".to_owned() });
}

#[test]
fn a_signal_is_a_code_above_128() {
    assert_eq!(sh(&sandbox(), "kill -s TERM $$").code, 143);
}

#[test]
fn the_environment_is_its_own() {
    let sandbox = sandbox().env("EXTRA", "1");
    let run = sh(
        &sandbox,
        "env | cut -d= -f1 | grep -v '^_$' | grep -v '^SHLVL$' | grep -v '^PWD$' | grep -v '^OLDPWD$'",
    );
    let mut names: Vec<&str> = run.stdout.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["COLUMNS", "EXTRA", "HOME", "LANG", "NO_COLOR", "PATH", "TERM", "TZ"]);
}

#[test]
fn files_are_written_edited_listed_and_removed() {
    let sandbox = sandbox();
    sandbox.file("a/b.txt", "one").file("c.txt", "two").replace("a/b.txt", "one", "three");
    assert_eq!(sh(&sandbox, "cat a/b.txt c.txt").stdout, "threetwo");
    assert_eq!(sandbox.list("."), ["a", "c.txt"]);
    sandbox.copy(sandbox.path("a"), "d/e").touch("c.txt");
    assert_eq!(sandbox.read("d/e/b.txt"), "three");
    assert_eq!(sandbox.read("c.txt"), "two");
    sandbox.remove("a").remove("c.txt").remove("never");
    assert_eq!(sandbox.list("."), ["d"]);
    assert_eq!(sandbox.list("never"), [""; 0]);
}

#[test]
fn its_own_folders_have_names_in_snapshots() {
    let sandbox = sandbox();
    let run = sh(&sandbox, "pwd; echo $HOME; echo took 3.2s >&2; printf end; exit 1");
    let expected = "exit code 1\n--- stdout\n[PROJECT]\n[HOME]\nend\n--- stderr\ntook [DURATION]\n";
    assert_eq!(sandbox.snapshot(&run), expected);
}

#[test]
fn killing_does_not_wait_for_what_is_left_behind() {
    let sandbox = sandbox();
    // The child holds the outputs open for longer than a test may take.
    let run = sandbox
        .kill_when(|s| s.has("ready"), &["-c", "echo begun; sleep 600 & echo $! > child; touch ready; wait"]);
    assert_eq!((run.code, run.stdout.as_str()), (137, "begun\n"));
    let child = sandbox.read("child");
    // It is still alive: only the program itself was ended.
    let alive = sandbox.command("kill").args(["-s", "KILL", child.trim()]).status().unwrap();
    assert!(alive.success());
}

#[test]
fn killing_after_a_time_leaves_a_quicker_end_alone() {
    assert_eq!(sandbox().kill_after(Duration::from_secs(60), &["-c", "exit 5"]).code, 5);
    assert_eq!(sandbox().kill_after(Duration::ZERO, &["-c", "exec sleep 600"]).code, 137);
}

#[test]
fn a_program_under_way_can_be_read_and_interrupted() {
    let sandbox = sandbox();
    let mut running = sandbox
        .start(&["-c", "trap 'echo stopped; exit 130' INT; touch ready; while :; do sleep 0.01; done"]);
    running.wait_until(|s| s.has("ready"));
    assert!(running.is_running());
    running.signal("INT");
    assert_eq!(running.wait(), Run { code: 130, stdout: "stopped\n".to_owned(), stderr: String::new() });
}

#[test]
fn json_is_read_from_standard_output() {
    assert_eq!(sh(&sandbox(), "echo '{\"a\": [1]}'").with_code(0).json()["a"][0], 1);
}
