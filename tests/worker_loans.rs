//! What a worker is lent besides an action: data by reference, checkpoints, secrets; and what it tells of while it works.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use avow_model::attempt::{Attempt, Outcome};
use avow_model::digest::BlobDigest;
use avow_testkit::{Machine, Sandbox};

fn machine() -> Machine {
    Machine::new(env!("CARGO_BIN_EXE_avow"))
}

fn project(stage: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", format!("avow: 1\nexperiment: lent\nstages:\n{stage}"));
    sandbox
}

fn on(url: &str) -> String {
    format!("worker:{url}")
}

/// All attempts, in order.
fn attempts(sandbox: &Sandbox) -> Vec<Attempt> {
    sandbox.history().attempts().map(|(_, attempt)| attempt.clone()).collect()
}

// --- Data by reference -------------------------------------------------------------------------------------------

/// A stage that counts the lines of a folder outside of the project.
fn counting() -> (Sandbox, PathBuf) {
    let sandbox = project("");
    let data = sandbox.root().with_file_name("data set");
    fs::create_dir_all(data.join("deep")).unwrap();
    fs::write(data.join("a.txt"), "1\n2\n").unwrap();
    fs::write(data.join("deep/b.txt"), "3\n".repeat(100_000)).unwrap();
    let stage = format!(
        "avow: 1\nexperiment: lent\nstages:\n  count:\n    run: [sh, count.sh, '${{inputs.data}}', '${{outputs.n}}']\n    \
         inputs: {{data: {{path: '{}', keep: reference}}}}\n    outputs: {{n: n.txt}}\n",
        data.display()
    );
    sandbox.file("spec.yaml", stage);
    sandbox.file("count.sh", "find -L \"$1\" -type f -exec cat {} + | wc -l > \"$2\"\n");
    (sandbox, data)
}

fn counted(sandbox: &Sandbox) -> String {
    sandbox.remove("n.txt").avow(&["get", "count.n", "-o", "n.txt"]).expect_code(0);
    sandbox.read("n.txt").trim().to_owned()
}

#[test]
fn data_by_reference_are_sent_and_stay_where_they_are() {
    let ((sandbox, data), machine) = (counting(), machine());
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = on(&url);
    let args = ["run", "--on", &on, "--token-file", machine.token()];
    sandbox.avow(&args).expect_code(0);
    assert_eq!(counted(&sandbox), "100002");
    assert!(!sandbox.blob(BlobDigest::of(b"1\n2\n")).exists(), "the project holds no copy");
    // Changed data are another input, also for the worker that has the old ones.
    fs::write(data.join("a.txt"), "1\n2\n3\n").unwrap();
    sandbox.avow(&args).expect_code(0);
    assert_eq!(counted(&sandbox), "100003");
    assert_eq!(sandbox.history().latest().started(), ["count"]);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn data_that_the_workers_cache_cannot_hold_are_refused_before_the_run() {
    let ((sandbox, _), machine) = (counting(), machine());
    let (_worker, url) = machine.worker_with("w", "127.0.0.1:0", &["-j", "2", "--cache", "100KB"]);
    let on = on(&url);
    let args = ["run", "--on", &on, "--token-file", machine.token()];
    let run = sandbox.avow(&args).with_code(8);
    assert!(run.stderr.contains("its cache holds 100000 bytes, and code and inputs have"), "{}", run.stderr);
    assert!(run.stderr.contains("avow worker --cache SIZE"), "{}", run.stderr);
    assert!(sandbox.history().attempts().next().is_none());
    sandbox.avow(&[&args[..], &["--on", "local"]].concat()).expect_code(0);
    assert_eq!(counted(&sandbox), "100002");
}

// --- Checkpoints -------------------------------------------------------------------------------------------------

/// Counts to five and fails once at three, or waits there.
const COUNT: &str = "\
n=$(cat \"$1/n\" 2>/dev/null || echo 0)
from=$n
while [ \"$n\" -lt 5 ]; do
  n=$((n + 1))
  echo \"$n\" > \"$1/n\"
  if [ \"$n\" = 3 ] && [ \"$from\" = 0 ]; then
    case \"$3\" in fail) exit 3 ;; hang) echo began; exec sleep 600 ;; esac
  fi
done
echo $from > \"$2\"
";

fn checkpointed(what: &str) -> Sandbox {
    let sandbox = project(&format!(
        "  count:\n    run: sh count.sh ${{checkpoint}} ${{outputs.n}} {what}\n    checkpoint: state/\n    \
         outputs: {{n: n.txt}}\n"
    ));
    sandbox.file("count.sh", COUNT);
    sandbox
}

#[test]
fn an_attempt_goes_on_from_the_checkpoint_on_the_worker_that_has_it() {
    let (sandbox, machine) = (checkpointed("fail"), machine());
    let (_one, first) = machine.worker("one", "127.0.0.1:0");
    let on_first = on(&first);
    sandbox.avow(&["run", "--on", &on_first, "--token-file", machine.token()]).expect_code(1);
    assert!(sandbox.list(".avow/checkpoints").is_empty(), "it stays on the worker");
    // A larger worker is free, and this machine is; the checkpoint decides.
    let (_two, second) = machine.worker_with("two", "127.0.0.1:0", &["-j", "8"]);
    let on_second = on(&second);
    let args =
        ["run", "--on", "local", "--on", &on_second, "--on", &on_first, "--token-file", machine.token()];
    sandbox.avow(&args).expect_code(0);
    assert_eq!(counted(&sandbox), "3");
    let [failed, done] = attempts(&sandbox).try_into().unwrap();
    assert_eq!(done.continues, [failed.id]);
}

#[test]
fn a_checkpoint_survives_the_death_of_its_worker() {
    let (sandbox, machine) = (checkpointed("hang"), machine());
    let (worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = on(&url);
    let mut running = sandbox.start(&["run", "--on", &on, "--token-file", machine.token()]);
    running.wait_until(|sandbox| says(sandbox, "began\n"));
    worker.kill();
    let (_worker, again) = machine.worker("w", url.strip_prefix("http://").unwrap());
    assert_eq!(again, url);
    running.wait().expect_code(0);
    assert_eq!(counted(&sandbox), "3");
    let [lost, done] = attempts(&sandbox).try_into().unwrap();
    assert_eq!(lost.outcome, Outcome::Lost);
    assert_eq!(done.continues, [lost.id]);
}

#[test]
fn without_the_worker_that_has_the_checkpoint_it_begins_from_nothing() {
    let (sandbox, machine) = (checkpointed("hang"), machine());
    let (worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = on(&url);
    let mut running = sandbox.start(&["run", "--on", &on, "--token-file", machine.token()]);
    running.wait_until(|sandbox| says(sandbox, "began\n"));
    running.signal("INT");
    running.wait().expect_code(130);
    worker.signal("TERM");
    worker.wait().expect_code(0);
    sandbox.replace("count.sh", "hang) echo began; exec sleep 600 ;;", "");
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(counted(&sandbox), "0");
}

fn says(sandbox: &Sandbox, text: &str) -> bool {
    let logs = sandbox.list(".avow/work");
    let log = |name: &String| fs::read_to_string(sandbox.path(&format!(".avow/work/{name}/stdout")));
    logs.iter().any(|name| log(name).is_ok_and(|said| said == text))
}

// --- Logs --------------------------------------------------------------------------------------------------------

#[test]
fn a_log_is_followed_while_it_grows_on_a_worker() {
    let machine = machine();
    let sandbox = project("  slow:\n    run: sh slow.sh ${outputs.out}\n    outputs: {out: out.txt}\n");
    let go = sandbox.root().with_file_name("go");
    let wait = |name: &str| format!("while ! [ -e {}.{name} ]; do sleep 0.02; done\n", go.display());
    sandbox.file(
        "slow.sh",
        format!("echo one\n{}echo two\n{}echo last words >&2\necho 1 > $1\n", wait("1"), wait("2")),
    );
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = on(&url);
    let mut running = sandbox.start(&["run", "--on", &on, "--token-file", machine.token()]);
    running.wait_until(|sandbox| says(sandbox, "one\n"));
    let mut follower = sandbox.start(&["log", "--follow", "slow"]);
    let step = |name: &str| fs::write(go.with_extension(name), "").unwrap();
    let waits_for = |follower: &mut avow_testkit::Running<'_>, text: &str| {
        let text = text.to_owned();
        let mut printed = String::new();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !printed.contains(&text) {
            assert!(follower.is_running() && std::time::Instant::now() < until, "{printed}");
            std::thread::sleep(std::time::Duration::from_millis(10));
            printed = follower.printed().0;
        }
        printed
    };
    let printed = waits_for(&mut follower, "one\n");
    assert!(!printed.contains("two"), "{printed}");
    step("1");
    let printed = waits_for(&mut follower, "two\n");
    assert!(!printed.contains("last words"), "{printed}");
    step("2");
    let said = follower.wait().with_code(0);
    assert!(said.stdout.contains("last words"), "{said:?}");
    running.wait().expect_code(0);
}

// --- Secrets -----------------------------------------------------------------------------------------------------

const VALUE: &str = "hunter2-Q9/zz==key";

/// Says its token in several ways, in pieces too, and writes its length.
const FETCH: &str = "\
echo \"token: $API_TOKEN\"
printf 'user:%s' \"$API_TOKEN\" | base64 >&2
printf '%s' \"${API_TOKEN%????}\"; sleep 0.2; printf '%s\\n' \"${API_TOKEN#??????????????}\"
printf '%d' \"${#API_TOKEN}\" > \"$1\"
";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[track_caller]
fn nowhere(folder: &Path) {
    for path in files(folder) {
        let Ok(bytes) = fs::read(&path) else { continue };
        for form in [VALUE.as_bytes(), b"h1bnRlcjItUTkv", b"hunter2-Q9/z"] {
            let found = bytes.windows(form.len()).any(|window| window == form);
            assert!(!found, "{} holds {}", path.display(), String::from_utf8_lossy(form));
        }
    }
}

#[test]
fn a_secret_reaches_its_stage_on_a_worker_and_no_file_of_either_side() {
    let machine = machine();
    let sandbox = project(
        "  fetch:\n    kind: capture\n    run: sh fetch.sh ${outputs.n}\n    secrets: [API_TOKEN]\n    outputs: {n: n.txt}\n",
    );
    sandbox.file("fetch.sh", FETCH);
    let sandbox = sandbox.env("API_TOKEN", VALUE);
    let (worker, url) = machine.worker("w", "127.0.0.1:0");
    let on = on(&url);
    let run = sandbox.avow(&["run", "-v", "--on", &on, "--token-file", machine.token()]).with_code(0);
    assert!(!run.stderr.contains(VALUE) && !run.stdout.contains(VALUE));
    let log = sandbox.avow(&["log", "fetch"]).with_code(0).stdout;
    assert_eq!(log.matches("[secret API_TOKEN]").count(), 3, "{log}");
    assert_eq!(attempts(&sandbox)[0].terms.secrets, ["API_TOKEN"], "the record names it");
    nowhere(&sandbox.path(".avow"));
    nowhere(&machine.sandbox.path("w"));
    worker.signal("TERM");
    let said = worker.wait().with_code(0);
    assert!(!said.stderr.contains(VALUE));

    // An output that holds it is refused, and neither side keeps it.
    sandbox.file("fetch.sh", "printf '%s' \"$API_TOKEN\" > \"$1\"\n");
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let run = sandbox
        .avow(&["run", "--on", &format!("worker:{url}"), "--token-file", machine.token()])
        .with_code(1);
    assert!(run.stderr.contains("API_TOKEN"), "{}", run.stderr);
    nowhere(&sandbox.path(".avow"));
    nowhere(&machine.sandbox.path("w"));
}
