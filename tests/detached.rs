//! Runs whose terminal goes away, and what one sees of a run from elsewhere.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use avow_model::attempt::Outcome;
use avow_model::journal::Closing;
use avow_testkit::Sandbox;

/// Two members that print, wait for a file that the test makes, and print again.
const SPEC: &str = "\
avow: 1
experiment: patient
axes: {seed: {range: [1, 3]}}
stages:
  slow:
    run: [sh, slow.sh, '${axes.seed}', '${outputs.result}']
    env: {GO: 'PLACE'}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const SLOW: &str = "\
echo \"first words of $1\"
echo \"aside of $1\" >&2
touch begun
while ! [ -e \"$GO$1\" ]; do sleep 0.02; done
echo \"last words of $1\"
printf '{\"value\": 1.%d}\\n' \"$1\" > \"$2\"
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let go = sandbox.root().with_file_name("go-");
    let spec = SPEC.replace("PLACE", go.to_str().unwrap());
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("slow.sh", SLOW);
    sandbox
}

/// Lets the members with these seeds go on.
fn go(sandbox: &Sandbox, seeds: &[u32]) {
    for seed in seeds {
        fs::write(sandbox.root().with_file_name(format!("go-{seed}")), "").unwrap();
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn started(sandbox: &Sandbox) -> usize {
    sandbox.history().runs.iter().map(|run| run.started().len()).sum()
}

fn closed(sandbox: &Sandbox) -> Option<Closing> {
    sandbox.history().latest().state.closed
}

/// The name that `run --detach` prints.
fn detached(sandbox: &Sandbox) -> (String, u64, String) {
    let said = sandbox.avow(&["run", "-j", "2", "--detach", "--json"]).with_code(0).json();
    let text = |key: &str| said[key].as_str().unwrap().to_owned();
    (text("run"), said["pid"].as_u64().unwrap(), text("output"))
}

#[test]
fn a_run_in_the_background_outlives_its_terminal() {
    let sandbox = project();
    let (run, pid, output) = detached(&sandbox);
    assert_eq!(sandbox.history().latest().name, run);
    until("it starts its members", || started(&sandbox) == 2);
    let status = sandbox.avow(&["status", "--json"]).with_code(0).json();
    assert_eq!((&status["runner"], &status["opened"]["run"]), (&pid.into(), &run.clone().into()));
    // It is the leader of a session without a terminal, and deaf to the end of one.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[3], fields[4]), (pid.to_string().as_str(), "0"), "session and terminal: {stat}");
    let hangup = sandbox.command("kill").args(["-s", "HUP", &pid.to_string()]).status().unwrap();
    assert!(hangup.success());
    go(&sandbox, &[1, 2]);
    until("it ends", || closed(&sandbox).is_some());
    assert_eq!(closed(&sandbox), Some(Closing::Complete));
    until("it judges", || sandbox.read(&output).contains("Supported"));
    assert!(output.starts_with(".avow/log/"), "{output}");
    until("it is gone", || sandbox.list(".avow/live").is_empty());
}

#[test]
fn words_of_a_run_in_the_background_say_how_to_go_on() {
    let sandbox = project();
    let said = sandbox.avow(&["run", "--detach"]).with_code(0);
    let run = sandbox.history().latest().name.clone();
    assert!(said.stdout.contains(&format!("run {run} goes on in the background")), "{said:?}");
    for command in ["avow status", "avow log --follow MEMBER", &format!("avow cancel {run}")] {
        assert!(said.stderr.contains(command), "{said:?}");
    }
    go(&sandbox, &[1, 2]);
    until("it ends", || closed(&sandbox).is_some() && sandbox.list(".avow/live").is_empty());
}

#[test]
fn a_spec_with_problems_is_told_before_anything_is_started() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "    env: {", "    envy: {");
    let said = sandbox.avow(&["run", "--detach"]).with_code(3);
    assert!(said.stderr.contains("envy"), "{said:?}");
    assert!(sandbox.history().runs.is_empty());
}

#[test]
fn a_run_in_the_background_that_is_over_at_once_is_shown_whole() {
    let sandbox = project();
    go(&sandbox, &[1, 2]);
    sandbox.avow(&["run"]).expect_code(0);
    let said = sandbox.avow(&["run", "--detach"]);
    // Either it was seen alive, or it was over before; both are right.
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("in the background") || said.stderr.contains("Supported"), "{said:?}");
    until("it ends", || closed(&sandbox).is_some());
}

#[test]
fn a_log_is_followed_while_it_grows() {
    let sandbox = project();
    let (run, ..) = detached(&sandbox);
    until("it starts its members", || started(&sandbox) == 2);
    let two = sandbox.avow(&["log", "--follow", "slow"]).with_code(2);
    assert!(two.stderr.contains("slow[seed=1], slow[seed=2]"), "{two:?}");
    let mut follower = sandbox.start(&["log", "--follow", "slow[seed=1]"]);
    let mut printed = String::new();
    until("it shows what there is", || {
        printed = follower.printed().0;
        printed.contains("first words of 1")
    });
    assert!(follower.is_running() && !printed.contains("last words"), "{printed}");
    go(&sandbox, &[1]);
    let said = follower.wait().with_code(0);
    assert_eq!(said.stdout, "first words of 1\nlast words of 1\n");
    assert!(
        said.stderr.contains("aside of 1") && said.stderr.contains("slow[seed=1]: succeeded"),
        "{said:?}"
    );
    // The stage alone names the only member that is left.
    let follower = sandbox.start(&["log", "-f", "slow"]);
    go(&sandbox, &[2]);
    let said = follower.wait().with_code(0);
    assert!(said.stdout.contains("last words of 2"), "{said:?}");
    until("it ends", || closed(&sandbox).is_some() && sandbox.list(".avow/live").is_empty());
    // Where nothing runs any more, what was recorded is shown.
    let said = sandbox.avow(&["log", "--follow", "slow[seed=1]"]).with_code(0);
    assert!(said.stdout.contains("last words of 1") && said.stderr.contains(&run), "{said:?}");
}

#[test]
fn a_log_of_a_run_that_dies_ends_with_it() {
    let sandbox = project();
    let mut run = sandbox.start(&["run", "-j", "1"]);
    run.wait_until(|sandbox| started(sandbox) == 1);
    let follower = sandbox.start(&["log", "--follow", "slow"]);
    until("it shows what there is", || follower.printed().0.contains("first words of 1"));
    run.kill();
    let said = follower.wait().with_code(0);
    assert!(said.stderr.contains("died"), "{said:?}");
    go(&sandbox, &[1, 2]);
    sandbox.avow(&["run"]).expect_code(0);
}

#[test]
fn a_closed_terminal_stops_a_run_in_good_order() {
    let sandbox = project();
    sandbox.file(
        "slow.sh",
        "trap 'sleep 0.3; echo goodbye; exit 1' TERM\necho ready\ntouch begun\nsleep 300 & wait\n",
    );
    let mut running = sandbox.start(&["run", "-j", "1"]);
    running.wait_until(has_begun);
    // The terminal and the shell may both say so.
    running.signal("HUP");
    running.signal("HUP");
    running.wait().expect_code(130);
    let history = sandbox.history();
    let attempt = history.latest().attempt("slow[seed=1]");
    assert_eq!(attempt.outcome, Outcome::Cancelled);
    let log = fs::read_to_string(sandbox.blob(attempt.stdout.unwrap())).unwrap();
    assert_eq!(log, "ready\ngoodbye\n", "it had the time it needed");
    assert_eq!(history.latest().state.closed, Some(Closing::Interrupted));
    assert_eq!(sandbox.survivors(), [0; 0]);
}

/// Whether some attempt has made its file `begun`.
fn has_begun(sandbox: &Sandbox) -> bool {
    let begun = |name: &String| sandbox.has(&format!(".avow/work/{name}/run/begun"));
    sandbox.list(".avow/work").iter().any(begun)
}

#[test]
fn a_run_that_was_made_deaf_to_the_terminal_stays_so() {
    let sandbox = project();
    let mut shell = sandbox.command("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run", env!("CARGO_BIN_EXE_avow")]);
    let mut child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it starts a member", || has_begun(&sandbox));
    let hangup = sandbox.command("kill").args(["-s", "HUP", &child.id().to_string()]).status().unwrap();
    assert!(hangup.success());
    go(&sandbox, &[1, 2]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(closed(&sandbox), Some(Closing::Complete));
}

#[test]
fn a_run_is_cancelled_by_its_name() {
    let sandbox = project();
    assert!(sandbox.avow(&["cancel"]).with_code(2).stderr.contains("no run lives"));
    let (run, ..) = detached(&sandbox);
    until("it starts its members", || started(&sandbox) == 2);
    let wrong = sandbox.avow(&["cancel", "20200101-000000-0000"]).with_code(2);
    assert!(wrong.stderr.contains(&run), "{wrong:?}");
    let said = sandbox.avow(&["cancel", &run]).with_code(0);
    assert!(said.stdout.contains("has stopped"), "{said:?}");
    assert_eq!(closed(&sandbox), Some(Closing::Interrupted));
    assert_eq!(sandbox.survivors(), [0; 0]);
    // The only one that lives need not be named, and may be stopped at once.
    let (second, ..) = detached(&sandbox);
    assert!(sandbox.avow(&["cancel", "--kill"]).with_code(0).stdout.contains(&second));
    go(&sandbox, &[1, 2]);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
}
