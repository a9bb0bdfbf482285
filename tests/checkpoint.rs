//! A stage finds what an earlier attempt of the same action left in its checkpoint folder, however that ended.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_model::attempt::{Attempt, Outcome};
use avow_testkit::Sandbox;

/// Counts to five, a number at a time. The first attempt at it does at three what its parameter says.
const COUNT: &str = "\
n=$(cat \"$1/n\" 2>/dev/null || echo 0)
from=$n
while [ \"$n\" -lt 5 ]; do
  n=$((n + 1))
  echo \"$n\" > \"$1/n\"
  if [ \"$n\" = 3 ] && [ \"$from\" = 0 ]; then
    case \"$3\" in
      fail) exit 3 ;;
      hang) exec sleep 600 ;;
      half) printf 3 > \"$1/half\"; kill -9 $$ ;;
    esac
  fi
done
[ \"$AVOW_CHECKPOINT/n\" -ef \"$1/n\" ]
echo \"{\\\"from\\\": $from}\" > \"$2\"
";

fn project(what: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1\nexperiment: counted\nparams: {{first: {what}}}\nstages:\n  count:\n    run: sh count.sh ${{checkpoint}} \
         ${{outputs.result}} ${{params.first}}\n    checkpoint: state/\n    measurements: {{result: result.json}}\n{more}"
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("count.sh", COUNT);
    sandbox
}

/// All attempts, in order.
fn attempts(sandbox: &Sandbox) -> Vec<Attempt> {
    sandbox.history().attempts().map(|(_, attempt)| attempt.clone()).collect()
}

#[track_caller]
fn counted_from(sandbox: &Sandbox, from: u64) {
    let table = sandbox.avow(&["table", "--json"]).with_code(0);
    let row: serde_json::Value = serde_json::from_str(table.stdout.trim()).unwrap();
    assert_eq!(row["value"], from as f64, "{row}");
}

#[test]
fn a_failed_attempt_is_gone_on_from_and_the_record_says_so() {
    let sandbox = project("fail", "");
    sandbox.avow(&["run"]).expect_code(1);
    let waiting = sandbox.avow(&["explain", "count"]).with_code(0).stdout;
    assert!(waiting.contains("the next attempt runs, going on from the checkpoint of attempt"), "{waiting}");
    assert!(waiting.contains(".avow/checkpoints/"), "{waiting}");
    sandbox.avow(&["run"]).expect_code(0);
    counted_from(&sandbox, 3);
    let [first, second] = attempts(&sandbox).try_into().unwrap();
    assert!(first.continues.is_empty());
    assert_eq!(second.continues, std::slice::from_ref(&first.id));
    assert_eq!(first.action, second.action);
    assert!(sandbox.list(".avow/checkpoints").is_empty(), "nothing is kept after a success");
    let begin = &first.id.0[..8];
    for args in [["explain", "count"], ["lineage", "count.from"]] {
        let told = sandbox.avow(&args).with_code(0).stdout;
        assert!(told.contains(&format!("going on from the checkpoint of attempt {begin}")), "{told}");
    }
    assert_eq!(sandbox.executes(&["run"]), [""; 0], "the result is reused like any other");
}

#[test]
fn retries_within_a_run_go_on_too() {
    let sandbox = project("half", "    retries: 1\n");
    sandbox.avow(&["run"]).expect_code(0);
    counted_from(&sandbox, 3);
    assert_eq!(attempts(&sandbox).len(), 2);
}

#[test]
fn a_timeout_is_gone_on_from() {
    let sandbox = project("hang", "    timeout: 2s\n");
    sandbox.avow(&["run"]).expect_code(1);
    sandbox.avow(&["run"]).expect_code(0);
    counted_from(&sandbox, 3);
    assert_eq!(attempts(&sandbox)[0].outcome, Outcome::TimedOut);
}

#[test]
fn what_the_stage_of_a_killed_run_left_is_found() {
    let sandbox = project("hang", "");
    let at_three = |sandbox: &Sandbox| {
        let work = sandbox.list(".avow/work");
        let paths = work.iter().map(|attempt| sandbox.path(&format!(".avow/work/{attempt}/run/state/n")));
        paths.into_iter().any(|path| std::fs::read_to_string(path).is_ok_and(|n| n.trim() == "3"))
    };
    sandbox.kill_when(at_three, &["run"]);
    sandbox.avow(&["run"]).expect_code(0);
    counted_from(&sandbox, 3);
    let [lost, done] = attempts(&sandbox).try_into().unwrap();
    assert_eq!(lost.outcome, Outcome::Lost);
    assert_eq!(done.continues, [lost.id]);
}

#[test]
fn another_action_begins_from_nothing() {
    let sandbox = project("fail", "");
    sandbox.avow(&["run"]).expect_code(1);
    sandbox.file("count.sh", format!("# another program\n{COUNT}"));
    sandbox.avow(&["run"]).expect_code(1);
    assert!(attempts(&sandbox).iter().all(|attempt| attempt.continues.is_empty()));
    assert_eq!(sandbox.list(".avow/checkpoints").len(), 2);
}

#[test]
fn what_is_put_aside_counts_as_disk_space_of_the_next_attempt() {
    let sandbox = project("fail", "    resources: {disk: 64KiB}\n");
    sandbox.file("count.sh", "head -c 49152 /dev/zero >> \"$1/all\"\nexit 3\n");
    sandbox.avow(&["run"]).expect_code(1);
    sandbox.avow(&["run"]).expect_code(1);
    let outcomes: Vec<String> = attempts(&sandbox).iter().map(|a| a.outcome.to_string()).collect();
    assert_eq!(outcomes, ["failed: exit code 3", "failed: filled its declared disk space"]);
}

#[test]
fn work_begun_before_a_registration_is_not_done_under_it() {
    let claim = "claims: {c: {says: It counts., select: from, rule: {kind: threshold, statistic: every, above: -1}}}\n";
    let sandbox = project("fail", claim);
    sandbox.avow(&["run"]).expect_code(1);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let classes: Vec<&str> =
        report["deviations"].as_array().unwrap().iter().filter_map(|d| d["class"].as_str()).collect();
    assert!(classes.contains(&"older-than-registration"), "{report:#}");
}
