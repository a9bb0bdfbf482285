//! Damage to the store is named, what can be made again is made again, and reading never waits for a run.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use avow_model::digest::BlobDigest;
use avow_model::journal::{Closing, Damage};
use avow_testkit::{Run, Running, Sandbox};

const SPEC: &str = "\
avow: 1
experiment: keep
axes: {seed: [1, 2, 3, 4]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.model}']
    outputs: {model: model.txt}
  score:
    run: [sh, score.sh, '${inputs.model}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str = "echo \"1.$1\" > \"$2\"\necho \"made $1\"\n";
const SCORE: &str = "printf '{\"value\": %s}\\n' \"$(cat \"$1\")\" > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", MAKE).file("score.sh", SCORE);
    sandbox
}

/// A project whose plan was carried out once.
fn done() -> Sandbox {
    let sandbox = project();
    assert_eq!(sandbox.executes(&["run"]).len(), 8);
    sandbox
}

/// What the reading commands say.
fn answers(sandbox: &Sandbox) -> Vec<Run> {
    let commands: [&[&str]; 6] = [
        &["verdict", "--json"],
        &["table", "--json"],
        &["lineage", "big", "--json"],
        &["plan", "--json"],
        &["log", "make", "--json"],
        &["explain", "score", "--json"],
    ];
    commands.iter().map(|args| sandbox.avow(args).with_code(0)).collect()
}

/// The blob of an output of a member.
fn blob(sandbox: &Sandbox, member: &str, output: &str) -> BlobDigest {
    sandbox.history().artifacts()[&(member.to_owned(), output.to_owned())].blob()
}

/// The file of a blob, as a person sees it from the project.
fn file(sandbox: &Sandbox, digest: BlobDigest) -> String {
    sandbox.blob(digest).strip_prefix(sandbox.root()).unwrap().display().to_string()
}

/// Changes the bytes of a file in place.
fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    // Blobs are read-only, which the super-user would not notice.
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_index_can_be_deleted() {
    let sandbox = done();
    let before = answers(&sandbox);
    sandbox.remove(".avow/index");
    assert_eq!(answers(&sandbox), before);
    assert_eq!(sandbox.executes(&["run"]), [""; 0], "the next run builds it by itself");
    sandbox.avow(&["store", "check"]).expect_code(0);

    // A lineage tells of the run that reused what the first one made.
    let before = answers(&sandbox);
    sandbox.remove(".avow/index");
    let rebuilt = sandbox.avow(&["store", "rebuild", "--json"]).with_code(0).json();
    assert_eq!(rebuilt["attempts"], 8);
    assert_eq!(answers(&sandbox), before);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn a_broken_index_is_built_anew() {
    let sandbox = done();
    let before = answers(&sandbox);
    let garbage = |sandbox: &Sandbox| {
        let mut pending = vec![sandbox.path(".avow/index")];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                } else {
                    damage(&entry.path(), |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 0x5a));
                }
            }
        }
    };
    garbage(&sandbox);
    assert_eq!(answers(&sandbox), before);
    sandbox.avow(&["store", "check"]).expect_code(0);
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stderr.contains("built anew from the journals"), "{}", run.stderr);
    assert_eq!(sandbox.history().latest().started(), [""; 0]);
    garbage(&sandbox);
    sandbox.avow(&["store", "rebuild"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn a_changed_blob_is_named_and_made_again() {
    let sandbox = done();
    let before = answers(&sandbox);
    let digest = blob(&sandbox, "score[seed=2]", "result");
    let name = digest.to_string();
    // A digit of the number, so that it stays a measurement.
    damage(&sandbox.blob(digest), |bytes| bytes[10] ^= 1);

    for args in [&["verdict"][..], &["table"], &["verdict", "--check"], &["verdict", "--json"]] {
        let verdict = sandbox.avow(args).with_code(6);
        assert!(verdict.stderr.contains(&name[..8]), "{args:?} names it: {}", verdict.stderr);
    }
    let check = sandbox.avow(&["store", "check"]).with_code(6);
    assert!(check.stdout.contains(&file(&sandbox, digest)), "{}", check.stdout);
    sandbox.avow(&["get", "score.result[seed=2]", "-o", "copy.json"]).expect_code(6);
    assert!(!sandbox.has("copy.json"), "damage is not handed out");

    assert_eq!(sandbox.executes(&["run"]), ["score[seed=2]"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
    let again = sandbox.avow(&["table", "--json"]).stdout;
    assert_eq!(again, before[1].stdout);
}

#[test]
fn damage_under_an_old_time_is_noticed() {
    let sandbox = done();
    let digest = blob(&sandbox, "make[seed=3]", "model");
    let path = sandbox.blob(digest);
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    damage(&path, |bytes| bytes[0] ^= 1);
    fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(sandbox.executes(&["run"]), ["make[seed=3]"], "the same bytes: the score stands");
    assert_eq!(fs::read_to_string(&path).unwrap(), "1.3\n");
}

#[test]
fn a_missing_blob_is_made_again() {
    let sandbox = done();
    let digest = blob(&sandbox, "make[seed=4]", "model");
    fs::remove_file(sandbox.blob(digest)).unwrap();
    let check = sandbox.avow(&["store", "check"]).with_code(6);
    assert!(check.stdout.contains(&file(&sandbox, digest)), "{}", check.stdout);
    assert_eq!(sandbox.executes(&["run"]), ["make[seed=4]"]);
    sandbox.avow(&["store", "check"]).expect_code(0);

    let result = blob(&sandbox, "score[seed=1]", "result");
    fs::remove_file(sandbox.blob(result)).unwrap();
    sandbox.avow(&["verdict"]).expect_code(6);
    assert_eq!(sandbox.executes(&["run"]), ["score[seed=1]"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn a_journal_that_lost_its_end_is_put_in_order() {
    let sandbox = project();
    let five = |sandbox: &Sandbox| sandbox.history().successes().values().sum::<usize>() >= 5;
    sandbox.kill_when(five, &["run", "-j", "1"]);
    let path = format!(".avow/journal/{}.jsonl", sandbox.history().latest().name);
    // As after a loss of power that took what was written last, in the middle of a line. The index, which has
    // seen more than is left, is not believed.
    let text = sandbox.read(&path);
    let end = text.rfind("\"kind\":\"finished\"").unwrap();
    sandbox.file(&path, &text[..end]);
    let before = sandbox.history();
    assert!(matches!(before.latest().journal.damage, Some(Damage::Torn { .. })));
    let finished = before.successes().values().sum::<usize>();
    let check = sandbox.avow(&["store", "check"]).with_code(0);
    assert!(check.stdout.contains(&path), "it is told, and heals: {}", check.stdout);
    assert_eq!(sandbox.executes(&["run"]).len(), 8 - finished);
    let history = sandbox.history();
    assert_eq!(history.runs[0].journal.damage, None);
    assert_eq!(history.runs[0].state.closed, Some(Closing::Abandoned));
    sandbox.avow(&["store", "rebuild"]).expect_code(0);
    let check = sandbox.avow(&["store", "check"]).with_code(0);
    assert!(check.stdout.contains("all sound"), "{}", check.stdout);
}

#[test]
fn a_finished_journal_cannot_be_cut_unseen() {
    let sandbox = done();
    let name = sandbox.history().latest().name.clone();
    let path = format!(".avow/journal/{name}.jsonl");
    let text = sandbox.read(&path);
    let last = text[..text.len() - 1].rfind('\n').unwrap() + 1;
    sandbox.file(&path, &text[..last]);
    // The ledger has seen the line that is gone.
    let check = sandbox.avow(&["store", "check"]).with_code(6);
    assert!(check.stdout.contains(&name), "{}", check.stdout);
    sandbox.avow(&["verdict"]).expect_code(6);
    sandbox.remove(&path);
    sandbox.avow(&["store", "check"]).expect_code(6);
    sandbox.avow(&["verdict"]).expect_code(6);
}

#[test]
fn a_journal_that_was_edited_is_damaged_evidence() {
    let sandbox = done();
    let path = format!(".avow/journal/{}.jsonl", sandbox.history().latest().name);
    let text = sandbox.read(&path);
    let better = text.replacen("\"wall\":", "\"wall\":1", 1);
    assert_ne!(text, better);
    sandbox.file(&path, &better);
    let check = sandbox.avow(&["store", "check"]).with_code(6);
    assert!(check.stdout.contains(&sandbox.history().latest().name), "{}", check.stdout);
    sandbox.avow(&["verdict"]).expect_code(6);
    // A run leaves it as it is and makes again what it no longer vouches for.
    sandbox.avow(&["run"]).expect_code(6);
    assert_eq!(sandbox.read(&path), better);
}

/// Makes the scores wait until the test creates a file.
fn hold(sandbox: &Sandbox) -> std::path::PathBuf {
    let go = sandbox.root().with_file_name("go");
    sandbox.file(
        "score.sh",
        format!("touch held\nwhile ! [ -e {} ]; do sleep 0.02; done\n{SCORE}", go.display()),
    );
    go
}

#[test]
fn reading_works_during_a_run() {
    let sandbox = project();
    let go = hold(&sandbox);
    let mut running = sandbox.start(&["run", "-j", "2"]);
    let scores = |sandbox: &Sandbox| {
        let history = sandbox.history();
        history
            .runs
            .last()
            .is_some_and(|run| run.started().iter().filter(|m| m.starts_with("score")).count() == 2)
            // An end is written beside the work that it let begin.
            && history.successes().into_iter().any(|(member, _)| member == "make[seed=1]")
    };
    running.wait_until(scores);
    assert!(running.is_running());

    let status = sandbox.avow(&["status"]).with_code(0);
    assert!(status.stdout.contains(&format!("running (process {})", running.id())), "{}", status.stdout);
    assert_eq!(sandbox.avow(&["status", "--json"]).json()["runner"], running.id());
    assert_eq!(sandbox.avow(&["log", "make[seed=1]", "-q"]).with_code(0).stdout, "made 1\n");
    sandbox.avow(&["get", "make.model[seed=1]", "-o", "model.txt"]).expect_code(0);
    assert_eq!(sandbox.read("model.txt"), "1.1\n");
    for args in [
        &["table"][..],
        &["verdict"],
        &["verdict", "--json"],
        &["plan"],
        &["explain", "make"],
        &["lineage", "make.model[seed=1]"],
        &["store", "check"],
        &["check"],
        &["doctor"],
    ] {
        sandbox.avow(args).expect_code(0);
    }
    sandbox.avow(&["verdict", "--check"]).expect_code(5);
    assert!(running.is_running(), "nothing of that disturbed it");
    fs::write(go, "").unwrap();
    running.wait().expect_code(0);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

/// Starts a run that holds a score, and a second one that comes to need it; both, and the name of the first.
fn two_runs(sandbox: &Sandbox) -> (Running<'_>, Running<'_>, String) {
    let mut first = sandbox.start(&["run", "-j", "1"]);
    let holds = |sandbox: &Sandbox| {
        let runs = sandbox.history().runs;
        runs.iter().any(|run| run.started().iter().any(|member| member.starts_with("score")))
    };
    first.wait_until(holds);
    let name = sandbox.history().latest().name.clone();
    let mut second = sandbox.start(&["run", "-j", "1"]);
    let told = |sandbox: &Sandbox| {
        let status = sandbox.avow(&["status"]).with_code(0).stdout;
        status.contains(&format!("waits for run {name}"))
    };
    second.wait_until(told);
    (first, second, name)
}

#[test]
fn a_second_run_waits_for_what_the_first_makes_and_then_finishes() {
    let sandbox = project();
    let go = hold(&sandbox);
    let (first, second, name) = two_runs(&sandbox);
    fs::write(go, "").unwrap();
    first.wait().expect_code(0);
    let second = second.wait().with_code(0);
    assert!(second.stderr.contains(&format!("waits for run {name}")), "{second:?}");
    assert!(sandbox.history().successes().values().all(|count| *count == 1));
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn one_that_waits_can_be_interrupted() {
    let sandbox = project();
    let go = hold(&sandbox);
    let (first, second, _) = two_runs(&sandbox);
    second.signal("INT");
    second.wait().expect_code(130);
    fs::write(go, "").unwrap();
    first.wait().expect_code(0);
    assert!(sandbox.history().successes().values().all(|count| *count == 1));
}

#[test]
fn a_pipe_in_a_blobs_or_journals_place_is_named_and_nobody_waits_for_it() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).json();
    let digest = report["verdicts"][0]["evidence"][0]["artifact"].as_str().unwrap().to_owned();
    let blob = sandbox.path(&format!(".avow/blobs/{}/{}", &digest[..2], &digest[2..]));
    fs::remove_file(&blob).unwrap();
    let pipe = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&blob);
    sandbox.avow(&["store", "check"]).expect_code(6);
    sandbox.avow(&["verdict"]).expect_code(6);
    fs::remove_file(&blob).unwrap();
    pipe(&sandbox.path(".avow/journal/20200101-000000-aaaa.jsonl"));
    for command in [&["status"][..], &["verdict"], &["run"]] {
        let run = sandbox.avow(command).with_code(6);
        assert!(run.stderr.contains("not a regular file"), "{command:?}: {}", run.stderr);
    }
}
