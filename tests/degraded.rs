//! Machines that lack something: each failure is told as what it is, loses nothing and heals.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]
#![cfg(debug_assertions)]

use std::path::{Path, PathBuf};
use std::process::Command;

use avow_testkit::{Run, Sandbox};

const SPEC: &str = "\
avow: 1
experiment: poor
axes: {seed: [1, 2, 3, 4]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.model}']
    outputs: {model: model.bin}
  score:
    run: [sh, score.sh, '${inputs.model}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str = "head -c 700000 /dev/zero | tr '\\0' \"$1\" > \"$2\"\n";
const SCORE: &str = "printf '{\"value\": 1.%s}\\n' \"$(head -c 1 \"$1\")\" > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", MAKE).file("score.sh", SCORE);
    sandbox
}

/// A small disk in a project, which goes with the value.
struct Disk(PathBuf);

impl Disk {
    /// Mounts one; `None` where this user may not, and then the test says so.
    fn mount(at: &Path, size: &str) -> Option<Disk> {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|done| done.status.success()) {
            return Some(Disk(at.to_owned()));
        }
        eprintln!("not tested here: this user may not mount a file system");
        None
    }

    fn remount(&self, options: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).status();
        assert!(done.unwrap().success(), "remount,{options}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a process of the test may just be ending.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// What is the machine's fault is told as such, with what to do; what was recorded stays.
fn told(run: &Run, words: &[&str]) {
    assert_eq!(run.code, 8, "{run:?}");
    for word in words {
        assert!(run.stderr.contains(word), "`{word}` is not told\n{}", run.stderr);
    }
}

/// The next run executes what the others did not, and the end is sound.
fn heals(sandbox: &Sandbox) {
    let done: usize = sandbox.history().successes().values().sum();
    let executed = sandbox.executes(&["run"]);
    assert_eq!(executed.len(), 8 - done, "{executed:?}");
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    let check = sandbox.avow(&["store", "check"]).with_code(0);
    assert!(check.stdout.contains("all sound"), "{}", check.stdout);
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let sandbox = project();
    let Some(disk) = Disk::mount(&sandbox.path(".avow"), "2m") else { return };
    let run = sandbox.avow(&["run", "-j", "1"]);
    told(&run, &["is full", "free some disk space", "error:"]);
    assert!(sandbox.history().successes().values().sum::<usize>() > 0, "some was recorded\n{}", run.stderr);
    // Reading works on a full disk.
    sandbox.avow(&["status"]).expect_code(0);
    sandbox.avow(&["verdict"]).expect_code(0);
    disk.remount("size=64m");
    heals(&sandbox);
}

#[test]
fn a_full_disk_under_the_index_is_told() {
    let sandbox = project();
    let Some(disk) = Disk::mount(&sandbox.path(".avow/index"), "4k") else { return };
    told(&sandbox.avow(&["run"]), &["free some disk space", "error:"]);
    disk.remount("size=64m");
    heals(&sandbox);
}

#[test]
fn a_read_only_project_is_told_and_can_be_read() {
    let sandbox = project();
    let Some(disk) = Disk::mount(&sandbox.path(".avow"), "64m") else { return };
    disk.remount("bind,ro");
    told(&sandbox.avow(&["run"]), &["Read-only file system", "must be writable", "avow doctor"]);
    disk.remount("bind,rw");
    sandbox.avow(&["run"]).expect_code(0);
    disk.remount("bind,ro");
    for args in [&["verdict", "--check"][..], &["table"], &["status"], &["log", "make"], &["lineage", "big"]]
    {
        sandbox.avow(args).expect_code(0);
    }
    told(&sandbox.avow(&["run"]), &["Read-only file system", "must be writable"]);
    let doctor = sandbox.avow(&["doctor"]).with_code(0);
    assert!(doctor.stdout.contains("cannot be written"), "{}", doctor.stdout);
}

#[test]
fn too_few_open_files_are_told_and_lose_nothing() {
    let mut told_some = 0;
    for limit in [10, 14, 18, 22, 26, 30] {
        let sandbox = project();
        let program = env!("CARGO_BIN_EXE_avow");
        let script = format!("ulimit -n {limit}; exec {program} run -j 1");
        let run = sandbox.command("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&run.stderr);
        if !run.status.success() {
            assert_eq!(run.status.code(), Some(8), "with {limit} files\n{text}");
            assert!(text.contains("error:") && text.contains("hint:"), "with {limit} files\n{text}");
            assert!(text.contains("ulimit -n"), "with {limit} files\n{text}");
            told_some += 1;
        }
        heals(&sandbox);
    }
    assert!(told_some > 0, "some of these limits are too low");
}

#[test]
fn a_clock_that_goes_back_changes_no_order() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    // What it is out of grows with every plan that is tried; what was judged does not change.
    let verdicts = || sandbox.avow(&["verdict", "--json"]).with_code(0).json()["verdicts"].to_string();
    let before = verdicts();
    let day = -86_400_000;
    sandbox.file("make.sh", format!("# again\n{MAKE}"));
    let run = sandbox.avow_with("AVOW_CLOCK", &day.to_string(), &["run"]).with_code(0);
    assert!(run.stderr.contains("the clock is") && run.stderr.contains("was set back"), "{}", run.stderr);
    let history = sandbox.history();
    let times =
        |index: usize| history.runs[index].journal.lines.iter().map(|line| line.at).collect::<Vec<_>>();
    assert!(times(0).last() <= times(1).first(), "the later run is dated later");
    for times in [times(0), times(1)] {
        assert!(times.is_sorted(), "{times:?}");
    }
    assert_eq!(history.latest().started().len(), 4, "the scores are reused");
    let status = sandbox.avow(&["status"]).with_code(0).stdout;
    assert!(status.contains(&history.latest().name), "the latest run is the one that came last: {status}");
    // The old plan's evidence is what it was.
    sandbox.file("make.sh", MAKE);
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(verdicts(), before);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn whatever_is_lost_of_the_index_is_made_again() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    for (path, bytes) in [("conf", "x"), ("db", ""), ("db", "garbage"), ("snap", "x")] {
        let file = format!(".avow/index/{path}");
        if sandbox.path(&file).is_dir() {
            continue;
        }
        sandbox.file(&file, bytes);
        let run = sandbox.avow(&["run"]).with_code(0);
        assert_eq!(sandbox.history().latest().started(), [""; 0], "{path}: {}", run.stderr);
        sandbox.avow(&["store", "check"]).expect_code(0);
    }
    sandbox.remove(".avow/index").file(".avow/index", "a file where a folder was");
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(sandbox.history().latest().started(), [""; 0]);
}
