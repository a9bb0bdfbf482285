//! Several runs at once in one project, of the same spec and of specs that share a stage; some are killed.
//!
//! Whatever happens, each run that is left comes to its end, no action is executed by two at the same time, none
//! that succeeded is executed again, and nothing has to be removed by hand.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use avow_model::attempt::{Outcome, Timestamp};
use avow_model::digest::{ActionDigest, Artifact};
use avow_model::journal::{Closing, Event};
use avow_testkit::{Running, Sandbox};

/// Twelve members that take a moment and leave a trace of it, and one that reads them all.
const SPEC: &str = "\
avow: 1
experiment: shared
axes: {seed: {range: [1, 13]}}
stages:
  slow:
    run: [sh, slow.sh, '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  total:
    run: sh total.sh ${inputs.all} ${outputs.sum}
    inputs: {all: {from: slow.result, gather: seed}}
    outputs: {sum: sum.txt}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const SLOW: &str = "\
touch begun
sleep 0.1
printf '{\"value\": 1.%d}\\n' \"$1\" > \"$2\"
";

const TOTAL: &str = "find -L \"$1\" -name '*.json' | grep -v index.json | sort | xargs cat > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("slow.sh", SLOW).file("total.sh", TOTAL);
    sandbox
}

/// Another experiment, in which the stage `slow` is exactly the same, and what follows is not.
fn with_another_spec(sandbox: &Sandbox) {
    let spec = SPEC.replace("experiment: shared", "experiment: another").replace("total.sh", "sum.sh");
    sandbox.file("another.yaml", spec).file("sum.sh", format!("# another\n{TOTAL}"));
}

type Artifacts = BTreeMap<(String, String), Artifact>;

/// What an undisturbed run gives.
fn undisturbed() -> Artifacts {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.history().artifacts()
}

/// When each attempt at an action began and ended, and how.
type Attempts = Vec<(Timestamp, Timestamp, Outcome)>;

fn attempts(sandbox: &Sandbox) -> BTreeMap<ActionDigest, Attempts> {
    let mut all: BTreeMap<ActionDigest, Attempts> = BTreeMap::new();
    for run in sandbox.history().runs {
        let mut begun = BTreeMap::new();
        for line in &run.journal.lines {
            match &line.event {
                Event::Started { attempt, .. } => drop(begun.insert(attempt.clone(), line.at)),
                Event::Finished { attempt, .. } => {
                    let since = begun.remove(&attempt.id).expect("it was started");
                    let entry = (since, line.at, attempt.outcome.clone());
                    all.entry(attempt.action).or_default().push(entry);
                }
                _ => {}
            }
        }
        assert!(begun.is_empty(), "every attempt has an end");
    }
    for attempts in all.values_mut() {
        attempts.sort_by_key(|(since, until, _)| (*since, *until));
    }
    all
}

/// Each action succeeded once; besides that there are only attempts of runs that were killed; none overlap.
#[track_caller]
fn check(sandbox: &Sandbox, actions: usize) {
    let all = attempts(sandbox);
    assert_eq!(all.len(), actions);
    for (action, attempts) in &all {
        let made = attempts.iter().filter(|(_, _, outcome)| outcome.succeeded()).count();
        assert_eq!(made, 1, "{action}: {attempts:?}");
        let others = attempts.iter().filter(|(_, _, outcome)| !outcome.succeeded());
        assert!(others.clone().all(|(_, _, outcome)| *outcome == Outcome::Lost), "{action}: {attempts:?}");
        for pair in attempts.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{action} was executed twice at the same time: {attempts:?}");
        }
    }
    assert_eq!(sandbox.survivors(), [0; 0]);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[track_caller]
fn all_complete(sandbox: &Sandbox, runs: usize) {
    let closed: Vec<_> = sandbox.history().runs.iter().map(|run| run.state.closed).collect();
    assert_eq!(closed, vec![Some(Closing::Complete); runs]);
}

/// Starts a run and waits until it has begun with something.
fn begun<'a>(sandbox: &'a Sandbox, args: &[&str]) -> Running<'a> {
    let before = sandbox.history().runs.len();
    let mut running = sandbox.start(args);
    running.wait_until(|sandbox| sandbox.history().runs.len() > before);
    running
}

/// A number from 0 to `below`, the same sequence for the same seed (a multiplicative congruence).
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn at_once(count: usize) {
    let sandbox = project();
    let runs: Vec<Running> = (0..count).map(|_| sandbox.start(&["run", "-j", "2"])).collect();
    for run in runs {
        let run = run.wait().with_code(0);
        assert!(run.stdout.contains("Supported"), "{run:?}");
    }
    all_complete(&sandbox, count);
    check(&sandbox, 13);
    assert_eq!(sandbox.history().artifacts(), undisturbed());
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn two_at_once() {
    at_once(2);
}

#[test]
fn four_at_once() {
    at_once(4);
}

#[test]
fn eight_at_once() {
    at_once(8);
}

#[test]
fn different_specs_share_a_stage() {
    let sandbox = project();
    with_another_spec(&sandbox);
    let specs = ["spec.yaml", "another.yaml", "spec.yaml", "another.yaml"];
    let runs: Vec<Running> = specs.iter().map(|spec| sandbox.start(&["run", spec, "-j", "2"])).collect();
    runs.into_iter().for_each(|run| run.wait().expect_code(0));
    all_complete(&sandbox, 4);
    check(&sandbox, 14);
}

#[test]
fn a_run_that_only_waits_keeps_no_slot() {
    let sandbox = project();
    sandbox.file("other.sh", "touch begun; while ! [ -e \"$GO\" ]; do sleep 0.02; done; echo 1 > \"$1\"\n");
    let go = sandbox.root().with_file_name("go");
    let gated = format!(
        "avow: 1\nexperiment: EXPERIMENT\nstages:\n  gated: {{run: [sh, other.sh, '${{outputs.o}}'], env: {{GO: '{}'}}, outputs: {{o: o}}}}\n",
        go.display()
    );
    sandbox.file("first.yaml", gated.replace("EXPERIMENT", "first"));
    sandbox.file(
        "second.yaml",
        format!(
            "{}  free: {{run: 'echo 2 > o', outputs: {{o: o}}}}\n",
            gated.replace("EXPERIMENT", "second")
        ),
    );
    let mut first = begun(&sandbox, &["run", "first.yaml"]);
    first.wait_until(|sandbox| !sandbox.history().runs[0].started().is_empty());
    let holder = sandbox.history().runs[0].name.clone();
    let mut second = sandbox.start(&["run", "second.yaml", "-j", "1"]);
    // With its only slot it does what it can, while the other action is made elsewhere.
    second.wait_until(|sandbox| sandbox.history().successes().contains_key("free"));
    second.wait_until(|sandbox| {
        let status = sandbox.avow(&["status", "second.yaml"]).with_code(0).stdout;
        status.contains(&format!("waiting  gated, waits for run {holder}"))
    });
    let status = sandbox.avow(&["status", "second.yaml"]).with_code(0).stdout;
    assert!(status.contains(&format!("beside it  run {holder} of first (first.yaml), running")), "{status}");
    let explained = sandbox.avow(&["explain", "gated", "--spec", "second.yaml"]).with_code(0).stdout;
    assert!(explained.contains(&format!("waits for run {holder}")), "{explained}");
    std::fs::write(&go, "").unwrap();
    let second = second.wait().with_code(0);
    assert!(second.stderr.contains(&format!("gated waits for run {holder}")), "{second:?}");
    first.wait().expect_code(0);
    check(&sandbox, 2);
    assert!(sandbox.list(".avow/live").is_empty());
}

#[test]
fn what_fails_in_one_run_is_tried_by_the_one_that_waited() {
    let sandbox = project();
    let go = sandbox.root().with_file_name("go");
    sandbox.file("fail.sh", "while ! [ -e \"$GO\" ]; do sleep 0.02; done; exit 1\n");
    let spec = format!(
        "avow: 1\nexperiment: fails\nstages:\n  gated: {{run: sh fail.sh, env: {{GO: '{}'}}, outputs: {{o: o}}}}\n",
        go.display()
    );
    sandbox.file("spec.yaml", spec);
    let mut first = begun(&sandbox, &["run"]);
    first.wait_until(|sandbox| !sandbox.history().runs[0].started().is_empty());
    let mut second = begun(&sandbox, &["run"]);
    second.wait_until(|sandbox| sandbox.avow(&["status"]).stdout.contains("waiting  gated"));
    std::fs::write(&go, "").unwrap();
    first.wait().expect_code(1);
    second.wait().expect_code(1);
    let attempts: Vec<_> = attempts(&sandbox).into_values().flatten().collect();
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0].1 <= attempts[1].0, "one after the other: {attempts:?}");
}

#[test]
fn the_first_may_end_first() {
    let sandbox = project();
    let first = begun(&sandbox, &["run", "--only", "slow[seed=1]"]);
    let second = begun(&sandbox, &["run", "-j", "1"]);
    let third = begun(&sandbox, &["run", "-j", "1"]);
    first.wait().expect_code(0);
    second.wait().expect_code(0);
    third.wait().expect_code(0);
    check(&sandbox, 13);
    assert_eq!(sandbox.history().artifacts(), undisturbed());
}

#[test]
fn a_run_that_is_killed_disturbs_nobody() {
    let sandbox = project();
    let first = begun(&sandbox, &["run", "-j", "1"]);
    let mut second = begun(&sandbox, &["run", "-j", "1"]);
    second.wait_until(|sandbox| !sandbox.history().runs[1].started().is_empty());
    assert_eq!(second.kill().code, 137);
    first.wait().expect_code(0);
    check(&sandbox, 13);
    assert_eq!(sandbox.history().artifacts(), undisturbed());
}

/// Several runs, of which those are killed at drawn moments, the first and owner of the index among them.
fn deaths(seed: u64, runs: usize, killed: usize) {
    let sandbox = project();
    with_another_spec(&sandbox);
    let mut state = seed;
    let first = begun(&sandbox, &["run", "-j", "1"]);
    let specs = ["another.yaml", "spec.yaml"];
    let mut running: Vec<Running> =
        (1..runs).map(|number| sandbox.start(&["run", specs[number % 2], "-j", "2"])).collect();
    running.insert(0, first);
    for number in 0..killed {
        sleep(Duration::from_millis(draw(&mut state, 300)));
        let victim = if number == 0 { 0 } else { draw(&mut state, running.len() as u64 - 1) as usize };
        running.remove(victim).kill();
    }
    running.into_iter().for_each(|run| run.wait().expect_code(0));
    for spec in ["spec.yaml", "another.yaml"] {
        sandbox.avow(&["run", spec]).expect_code(0);
    }
    check(&sandbox, 14);
    let history = sandbox.history();
    let artifacts = undisturbed();
    let slow = |artifacts: &Artifacts| -> Artifacts {
        artifacts.clone().into_iter().filter(|((member, _), _)| member.starts_with("slow")).collect()
    };
    assert_eq!(slow(&history.artifacts()), slow(&artifacts));
    assert!(history.runs.iter().all(|run| run.state.closed.is_some()), "nothing is left open");
}

#[test]
fn the_owner_is_killed() {
    deaths(3, 2, 1);
    deaths(4, 3, 1);
}

#[test]
fn one_owner_after_another_is_killed() {
    deaths(5, 5, 3);
}

#[test]
fn of_eight_only_two_are_left() {
    deaths(6, 8, 6);
}

// --- Beside a run that goes on, and beside one that is stopped ------------------------------------------------------

#[test]
fn a_check_of_the_store_beside_a_run_names_nothing() {
    let sandbox = project();
    sandbox.replace("slow.sh", "sleep 0.1", "sleep 0.05");
    let mut running = sandbox.start(&["run", "-j", "2"]);
    running.wait_until(|sandbox| !sandbox.list(".avow/journal").is_empty());
    let mut checks = 0;
    while running.is_running() {
        let check = sandbox.avow(&["store", "check"]);
        assert!(check.code == 0 && check.stdout.contains("all sound"), "{check:?}");
        checks += 1;
    }
    running.wait().expect_code(0);
    assert!(checks > 0);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

/// A stage that waits for a file of its experiment's name.
fn waiting(sandbox: &Sandbox, name: &str) {
    let spec = format!(
        "avow: 1\nexperiment: {name}\nstages:\n  wait:\n    run: [sh, wait.sh, {name}, '${{outputs.out}}']\n    \
         outputs: {{out: out.txt}}\n"
    );
    sandbox.file(&format!("{name}.yaml"), spec);
}

#[test]
fn who_waits_for_a_stopped_run_is_told_how_to_let_it_go_on() {
    let sandbox = project();
    let folder = sandbox.root().with_file_name("go");
    std::fs::create_dir(&folder).expect("it is ours");
    sandbox.file(
        "wait.sh",
        format!(
            "echo began\nwhile ! [ -e {}/\"$1\" ]; do sleep 0.02; done\necho 1 > \"$2\"\n",
            folder.display()
        ),
    );
    let names = ["owner", "client", "late"];
    names.iter().for_each(|name| waiting(&sandbox, name));
    let begun = |sandbox: &Sandbox| {
        let logs = sandbox.list(".avow/work");
        logs.iter().filter(|log| sandbox.has(&format!(".avow/work/{log}/stdout"))).count()
    };
    let mut owner = sandbox.start(&["run", "owner.yaml"]);
    owner.wait_until(|sandbox| begun(sandbox) == 1);
    let mut client = sandbox.start(&["run", "client.yaml"]);
    client.wait_until(|sandbox| begun(sandbox) == 2);
    owner.signal("STOP");
    let said =
        format!("(process {0}) holds the index and is stopped; `kill -CONT {0}` lets it go on", owner.id());
    let tells = |running: &mut Running<'_>| {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !running.printed().1.contains(&said) {
            assert!(running.is_running() && std::time::Instant::now() < until, "{:?}", running.printed());
            sleep(Duration::from_millis(20));
        }
    };
    // One that has asked it before, and one that comes only now.
    std::fs::write(folder.join("client"), "").expect("it is ours");
    tells(&mut client);
    std::fs::write(folder.join("late"), "").expect("it is ours");
    let mut late = sandbox.start(&["run", "late.yaml"]);
    tells(&mut late);
    let status = sandbox.avow(&["status", "owner.yaml"]).with_code(0).stdout;
    assert!(status.contains(&format!("stopped (process {})", owner.id())), "{status}");
    // Nothing was taken from it: it goes on, and so do all.
    owner.signal("CONT");
    std::fs::write(folder.join("owner"), "").expect("it is ours");
    for running in [owner, client, late] {
        running.wait().expect_code(0);
    }
    for name in names {
        assert_eq!(sandbox.executes(&["run", &format!("{name}.yaml")]), [""; 0]);
    }
    sandbox.avow(&["store", "check"]).expect_code(0);
}
