//! Runs on workers: the same results as here, whatever dies on the way.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use avow_model::attempt::Outcome;
use avow_model::journal::Closing;
use avow_testkit::{Machine, Running, Sandbox};

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

fn gallery(files: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for file in files {
        sandbox.copy(from.join(file), file);
    }
    sandbox
}

/// Eight members that wait for a file to appear, so that a test decides how long they run, and say so.
fn slow() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let go = sandbox.root().with_file_name("go");
    sandbox.file("avow.toml", "").file(
        "spec.yaml",
        "avow: 1\nexperiment: slow\naxes: {seed: {range: [1, 8]}}\nstages:\n  wait:\n    \
         run: sh wait.sh ${axes.seed} ${outputs.out}\n    outputs: {out: out.txt}\n    retries: 0\n",
    );
    let script =
        format!("echo \"began $1\"\nwhile ! [ -e {} ]; do sleep 0.02; done\necho $1 > $2\n", go.display());
    sandbox.file("wait.sh", script);
    sandbox
}

fn go(sandbox: &Sandbox) {
    fs::write(sandbox.root().with_file_name("go"), "").unwrap();
}

/// How many attempts have said that they began, as their logs show here while they run.
fn begun(sandbox: &Sandbox) -> usize {
    let folders = sandbox.list(".avow/work");
    let log = |name: &String| fs::read_to_string(sandbox.path(".avow/work").join(name).join("stdout"));
    folders.iter().filter(|name| log(name).is_ok_and(|text| text.starts_with("began"))).count()
}

fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn run_on<'a>(urls: &[&'a str], token: &'a str) -> Vec<String> {
    let mut args = vec!["run".to_owned(), "--token-file".to_owned(), token.to_owned()];
    for url in urls {
        args.extend([
            "--on".to_owned(),
            if *url == "local" { "local".to_owned() } else { format!("worker:{url}") },
        ]);
    }
    args
}

fn start<'s>(sandbox: &'s Sandbox, args: &[String]) -> Running<'s> {
    sandbox.start(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Every member is done once, its artifact is here, and nothing runs any more.
fn check_slow(sandbox: &Sandbox) {
    let history = sandbox.history();
    assert_eq!(history.successes().len(), 7);
    assert!(history.successes().values().all(|count| *count == 1), "{:?}", history.successes());
    for ((member, _), artifact) in history.artifacts() {
        let seed = member.trim_start_matches("wait[seed=").trim_end_matches(']').to_owned();
        assert_eq!(fs::read_to_string(sandbox.blob(artifact.blob())).unwrap(), format!("{seed}\n"));
    }
    assert_eq!(sandbox.survivors(), [0; 0]);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn the_gallery_gives_the_same_bytes_on_a_worker_as_here() {
    for (spec, files) in [
        ("smallest.yaml", &["avow.toml", "smallest", "smallest.yaml"][..]),
        ("relu-rank-formula.yaml", &["avow.toml", "relu-rank-formula.yaml"]),
    ] {
        let machine = Machine::new(env!("CARGO_BIN_EXE_avow"));
        let (_worker, url) = machine.worker("w", "127.0.0.1:0");
        let (here, there) = (gallery(files), gallery(files));
        here.avow(&["run", spec]).expect_code(0);
        let on = format!("worker:{url}");
        let run = there.avow(&["run", spec, "--on", &on, "--token-file", machine.token()]).with_code(0);
        assert!(run.stderr.contains(&format!("worker {url} on ")), "{}", run.stderr);
        assert_eq!(there.history().artifacts(), here.history().artifacts());
        let verdicts = |sandbox: &Sandbox| {
            let report = sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json();
            let all = report["verdicts"].as_array().unwrap().iter();
            all.map(|verdict| (verdict["claim"].clone(), verdict["word"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&there), verdicts(&here));
        // Where it was made does not matter for reuse.
        assert_eq!(there.executes(&["run", spec]), [""; 0]);
        there.avow(&["store", "check"]).expect_code(0);
        assert_eq!(there.list(".avow/work"), ["tmp"], "nothing of the attempts stays here");
    }
}

/// The verdicts, word for word and number for number. Attempts have names of their own; what they wrote has not.
fn verdicts(sandbox: &Sandbox, spec: &str) -> Vec<serde_json::Value> {
    let report = sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json();
    let mut verdicts = report["verdicts"].as_array().unwrap().clone();
    assert!(!verdicts.is_empty());
    for verdict in &mut verdicts {
        let evidence = verdict["evidence"].as_array().unwrap();
        let mut artifacts: Vec<String> = evidence.iter().map(|one| one["artifact"].to_string()).collect();
        assert!(!artifacts.is_empty());
        artifacts.sort();
        verdict["evidence"] = artifacts.into();
    }
    verdicts
}

#[test]
fn two_workers_of_which_one_dies_give_the_same_bytes_and_verdicts_as_this_machine() {
    let files = ["avow.toml", "smallest", "smallest.yaml"];
    let (here, there) = (gallery(&files), gallery(&files));
    here.avow(&["run", "smallest.yaml"]).expect_code(0);
    let machine = Machine::new(env!("CARGO_BIN_EXE_avow"));
    let (first, one) = machine.worker("one", "127.0.0.1:0");
    let (_second, two) = machine.worker("two", "127.0.0.1:0");
    let args = run_on(&[&one, &two], machine.token());
    let mut running = start(&there, &[&args[..], &["smallest.yaml".to_owned()]].concat());
    // In the middle: something is done, and the one that dies has work in its hands.
    running.wait_until(|sandbox| {
        sandbox.history().attempts().count() >= 2 && machine.sandbox.list("one/.avow/work").len() > 1
    });
    first.kill();
    running.wait().expect_code(0);
    let history = there.history();
    assert!(history.successes().values().all(|count| *count == 1), "{:?}", history.successes());
    assert_eq!(history.artifacts(), here.history().artifacts());
    assert_eq!(verdicts(&there, "smallest.yaml"), verdicts(&here, "smallest.yaml"));
    eventually("no orphan is left", || there.survivors().is_empty());
    there.avow(&["store", "check"]).expect_code(0);
    // Whoever made it: here everything is reused.
    assert_eq!(there.executes(&["run", "smallest.yaml"]), [""; 0]);
}

#[test]
fn a_worker_that_is_killed_and_started_again_costs_its_attempts_only() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut running = start(&sandbox, &run_on(&[&url], machine.token()));
    running.wait_until(|sandbox| begun(sandbox) == 2);
    worker.kill();
    let orphans = sandbox.survivors();
    assert!(!orphans.is_empty(), "its stages outlive a killed worker");
    let (_worker, again) = machine.worker("w", address(&url));
    assert_eq!(again, url);
    let alive = sandbox.survivors();
    assert!(orphans.iter().all(|pid| !alive.contains(pid)), "the next worker ends them");
    go(&sandbox);
    running.wait().expect_code(0);
    let history = sandbox.history();
    let lost = history.attempts().filter(|(_, attempt)| attempt.outcome == Outcome::Lost).count();
    assert_eq!(lost, 2);
    assert_eq!(history.latest().state.closed, Some(Closing::Complete));
    check_slow(&sandbox);
}

#[test]
fn when_one_of_two_workers_dies_the_other_goes_on() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (first, one) = machine.worker("one", "127.0.0.1:0");
    let (_second, two) = machine.worker("two", "127.0.0.1:0");
    let mut running = start(&sandbox, &run_on(&[&one, &two], machine.token()));
    running.wait_until(|sandbox| begun(sandbox) == 4);
    first.kill();
    let orphans = sandbox.survivors();
    go(&sandbox);
    running.wait().expect_code(0);
    let history = sandbox.history();
    let lost = history.attempts().filter(|(_, attempt)| attempt.outcome == Outcome::Lost).count();
    assert_eq!(lost, 2, "{orphans:?}");
    // They ended by themselves, since the file they waited for is there.
    eventually("no orphan is left", || sandbox.survivors().is_empty());
    check_slow(&sandbox);
}

#[test]
fn this_machine_and_a_worker_share_the_work() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    sandbox.file(
        "avow.toml",
        format!(
            "on = ['local', 'worker:near']\n[workers.near]\nurl = '{url}'\ntoken-file = '{}'\n",
            machine.token()
        ),
    );
    let mut running = sandbox.start(&["run", "-j", "2"]);
    // Two slots here, whose logs lie in the same folder, and two there.
    running.wait_until(|sandbox| begun(sandbox) == 4);
    assert_eq!(sandbox.list(".avow/work").len(), 5);
    assert_eq!(machine.sandbox.list("w/.avow/work").len(), 3);
    go(&sandbox);
    running.wait().expect_code(0);
    check_slow(&sandbox);
}

#[test]
fn an_interrupt_ends_the_processes_on_the_worker() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut running = start(&sandbox, &run_on(&[&url], machine.token()));
    running.wait_until(|sandbox| begun(sandbox) == 2);
    assert!(!sandbox.survivors().is_empty());
    running.signal("INT");
    running.wait().expect_code(130);
    assert_eq!(sandbox.survivors(), [0; 0]);
    let history = sandbox.history();
    let outcomes: Vec<&Outcome> = history.attempts().map(|(_, attempt)| &attempt.outcome).collect();
    assert_eq!(outcomes, [&Outcome::Cancelled, &Outcome::Cancelled]);
    let (_, attempt) = history.attempts().next().unwrap();
    assert!(fs::read_to_string(sandbox.blob(attempt.stdout.unwrap())).unwrap().starts_with("began"));
    // The same command goes on.
    go(&sandbox);
    start(&sandbox, &run_on(&[&url], machine.token())).wait().expect_code(0);
    check_slow(&sandbox);
}

#[test]
fn a_run_that_vanishes_leaves_nothing_on_the_worker() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut running = start(&sandbox, &run_on(&[&url], machine.token()));
    running.wait_until(|sandbox| begun(sandbox) == 2);
    running.kill();
    eventually("its lease runs out", || sandbox.survivors().is_empty());
    go(&sandbox);
    let run = start(&sandbox, &run_on(&[&url], machine.token())).wait().with_code(0);
    assert!(run.stderr.contains("had died; 2 attempts lost"), "{}", run.stderr);
    check_slow(&sandbox);
}

#[test]
fn without_the_right_token_nothing_is_done() {
    let (sandbox, machine) = (slow(), Machine::new(env!("CARGO_BIN_EXE_avow")));
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = format!("worker:{url}");
    sandbox.file("other", "0123456789abcdef0123456789abcdef\n");
    let run = sandbox.avow(&["run", "--on", &on, "--token-file", "other"]).with_code(8);
    assert!(
        run.stderr.contains("does not accept the token") && run.stderr.contains("hint:"),
        "{}",
        run.stderr
    );
    let run = sandbox.avow(&["run", "--on", &on]).with_code(2);
    assert!(run.stderr.contains("--token-file FILE"), "{}", run.stderr);
    assert!(sandbox.history().attempts().next().is_none());
    assert_eq!(machine.sandbox.list("w/.avow/work"), ["tmp"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(machine.token()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "the token is its owner's alone");
}

#[test]
fn a_worker_with_another_program_is_refused_before_anything_starts() {
    let machine = {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
        let programs = sandbox.path("bin");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let sandbox = sandbox.env("PATH", &path);
        sandbox.file("bin/python3", "#!/bin/sh\necho another\n");
        std::process::Command::new("chmod").arg("+x").arg(sandbox.path("bin/python3")).status().unwrap();
        Machine::of(sandbox)
    };
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let sandbox = gallery(&["avow.toml", "smallest", "smallest.yaml"]);
    let on = format!("worker:{url}");
    let args = ["run", "smallest.yaml", "--on", &on, "--token-file", machine.token()];
    let run = sandbox.avow(&args).with_code(8);
    assert!(run.stderr.contains("`train`") && run.stderr.contains("program `python3`"), "{}", run.stderr);
    assert!(run.stderr.contains("install the same programs"), "{}", run.stderr);
    assert!(sandbox.history().attempts().next().is_none());
    // Where there is another place it goes there, and that is said.
    let args = [&args[..], &["--on", "local"]].concat();
    let run = sandbox.avow(&args).with_code(0);
    assert!(run.stderr.contains("it gets no attempts of train"), "{}", run.stderr);
}

#[test]
fn a_worker_is_careful_with_addresses_and_folders() {
    let machine = Machine::new(env!("CARGO_BIN_EXE_avow"));
    let run =
        machine.sandbox.avow(&["worker", "--listen", "0.0.0.0:0", "--token-file", "token"]).with_code(2);
    assert!(run.stderr.contains("plain HTTP") && run.stderr.contains("SSH tunnel"), "{}", run.stderr);
    let (worker, _) = machine.worker("w", "127.0.0.1:0");
    let args = ["worker", "--listen", "127.0.0.1:0", "--token-file", "token", "--folder", "w"];
    let run = machine.sandbox.avow(&args).with_code(8);
    assert!(run.stderr.contains("another worker uses"), "{}", run.stderr);
    machine.sandbox.file("open", "0123456789abcdef0123456789abcdef\n");
    let args = ["worker", "--listen", "127.0.0.1:0", "--token-file", "open", "--folder", "w"];
    assert!(machine.sandbox.avow(&args).with_code(8).stderr.contains("chmod 600 open"));
    worker.signal("TERM");
    worker.wait().expect_code(0);
}

#[test]
fn places_that_make_no_sense_are_told() {
    let sandbox = slow();
    for (args, said) in [
        (&["--on", "elsewhere"][..], "`elsewhere` is no place"),
        (&["--on", "local", "--on", "local"], "named twice"),
        (&["--on", "worker:far"], "[workers.far]"),
    ] {
        let run = sandbox.avow(&[&["run"][..], args].concat()).with_code(2);
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
    sandbox.file("t", "0123456789abcdef0123456789abcdef\n");
    let run = sandbox.avow(&["run", "--on", "worker:http://127.0.0.1:9", "--token-file", "t"]).with_code(8);
    assert!(run.stderr.contains("does not answer"), "{}", run.stderr);
}
