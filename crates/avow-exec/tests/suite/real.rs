//! The cases that need processes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use avow_exec::{Cancel, ExecError, Execution, Executor, Watch};
use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::Terms;
use avow_model::tree::{Entry, Tree};
use tokio::task::JoinHandle;

use super::Subject;
use crate::support::{alive, attempt, reads, sh, slot, words, writes};

const MIB: u64 = 1 << 20;

/// Ignores every polite request.
const STUBBORN: &str = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
    print('ready', flush=True)\ntime.sleep(60)";

/// An attempt under way.
struct Under {
    id: AttemptId,
    cancel: Cancel,
    task: JoinHandle<Result<Execution, ExecError>>,
    log: PathBuf,
}

impl Under {
    fn start(subject: &impl Subject, action: Action) -> Under {
        let (id, cancel) = (attempt(), Cancel::new().unwrap());
        let (executor, name, watch) = (subject.executor(), id.clone(), Watch::new(cancel.clone()));
        let task = tokio::spawn(async move { executor.run(&name, &action, &Terms::default(), watch).await });
        let log = subject.work().join(&id.0).join("stdout");
        Under { id, cancel, task, log }
    }

    /// Waits until its standard output holds a line, and gives all of it.
    async fn says_something(&self) -> String {
        for _ in 0..2000 {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            if text.ends_with('\n') {
                return text;
            }
            assert!(!self.task.is_finished(), "{} ended in silence", self.id);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} says nothing", self.id)
    }

    async fn end(self) -> Execution {
        self.task.await.unwrap().unwrap()
    }
}

async fn gone(pid: &str) {
    for _ in 0..2000 {
        if !alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process {pid} lives on");
}

pub async fn both_logs_are_kept_apart_and_silence_leaves_none(subject: &impl Subject) {
    let done = subject.run(&sh("echo said; echo warned >&2; exit 4")).await;
    assert_eq!(done.outcome, Outcome::Failed(Failure::Exit(4)));
    assert_eq!((subject.text(done.stdout), subject.text(done.stderr)), ("said\n".into(), "warned\n".into()));
    let done = subject.run(&words(&["true"])).await;
    assert_eq!((done.outcome, done.stdout, done.stderr), (Outcome::Succeeded, None, None));
}

pub async fn a_huge_log_is_kept_whole(subject: &impl Subject) {
    let done = subject.run(&sh("exec head -c 67108864 /dev/zero")).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let log = done.stdout.unwrap();
    assert_eq!(subject.blobs().size(log).unwrap(), Some(64 * MIB));
    assert!(subject.blobs().contains(log).unwrap());
}

pub async fn a_log_is_seen_while_it_grows(subject: &impl Subject) {
    let running = Under::start(subject, sh("echo one; while [ ! -e go ]; do sleep 0.02; done"));
    assert_eq!(running.says_something().await, "one\n");
    running.cancel.stop();
    let done = running.end().await;
    assert_eq!((done.outcome, subject.text(done.stdout)), (Outcome::Cancelled, "one\n".into()));
}

pub async fn a_log_that_the_program_cuts_short_is_what_it_left(subject: &impl Subject) {
    let done = subject
        .run(&sh("echo a long line at first; sleep 0.5; echo short > /dev/stdout; sleep 0.5; echo more"))
        .await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!(subject.text(done.stdout), "short\nmore\n");
}

pub async fn the_shell_stops_at_the_first_error(subject: &impl Subject) {
    for text in ["false\ntrue", "echo $undefined", "false | cat"] {
        let done = subject.run(&sh(text)).await;
        assert!(matches!(done.outcome, Outcome::Failed(Failure::Exit(_))), "{text}: {:?}", done.outcome);
    }
}

pub async fn the_environment_holds_what_was_declared_and_nothing_of_the_callers(subject: &impl Subject) {
    let mut action = words(&["env", "-0"]);
    action.env = [("OMP_NUM_THREADS", "2"), ("SPACED", "a b\nc")].map(|(n, v)| (n.into(), v.into())).into();
    let done = subject.run(&action).await;
    let text = subject.text(done.stdout);
    let names: Vec<&str> = text.split_terminator('\0').filter_map(|line| line.split('=').next()).collect();
    for expected in ["OMP_NUM_THREADS=2", "SPACED=a b\nc", "LANG=C.UTF-8", "TZ=UTC", "MKL_NUM_THREADS=1"] {
        assert!(text.split('\0').any(|line| line == expected), "{expected} is missing in {text:?}");
    }
    assert!(!names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
}

pub async fn inputs_keep_folders_modes_links_and_empty_folders(subject: &impl Subject) {
    let inner = subject.tree(&[("c", subject.file(b"inner\n", false))]);
    let code = subject.tree(&[("lib/run.sh", subject.file(b"#!/bin/sh\necho code\n", true))]);
    let data = subject.tree(&[
        ("a/b", subject.file(b"deep\n", false)),
        ("nested", Entry::Tree { digest: inner }),
        ("tool", subject.file(b"#!/bin/sh\necho tool\n", true)),
        ("void", Entry::Empty),
        ("link", Entry::Link { target: "a/b".to_owned() }),
    ]);
    let mut action =
        sh("lib/run.sh; in/d/tool; cat in/d/link in/d/nested/c; test -d in/d/void; readlink in/d/link");
    action.code = Some(code);
    let done = subject.run(&reads(action, "in/d", Artifact::Tree(data))).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", subject.text(done.stderr));
    assert_eq!(subject.text(done.stdout), "code\ntool\ndeep\ninner\na/b\n");
}

pub async fn a_folder_keeps_files_modes_links_and_empty_folders(subject: &impl Subject) {
    let text = "mkdir -p f/deep f/empty; echo 1 > f/deep/a; echo 2 > f/run; chmod +x f/run; ln -s deep/a f/link; ln f/run f/twin";
    let done = subject.run(&writes(sh(text), "f", slot("f/"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let produced = &done.outputs["f"];
    let tree = Tree::from_bytes(&subject.blobs().read(produced.artifact.blob()).unwrap()).unwrap();
    let file = |text: &str, executable| Entry::File { digest: BlobDigest::of(text.as_bytes()), executable };
    let expected = [
        ("deep/a", file("1\n", false)),
        ("empty", Entry::Empty),
        ("link", Entry::Link { target: "deep/a".to_owned() }),
        ("run", file("2\n", true)),
        ("twin", file("2\n", true)),
    ];
    assert_eq!(tree.entries, expected.map(|(path, entry)| (path.to_owned(), entry)).into());
    assert_eq!(subject.blobs().read(BlobDigest::of(b"2\n")).unwrap(), b"2\n");
}

pub async fn thousands_of_small_files_go_in_and_out(subject: &impl Subject) {
    let names: Vec<String> = (0..3000).map(|number| format!("{}/{number}", number % 7)).collect();
    let entries: Vec<(&str, Entry)> = names
        .iter()
        .map(|name| (name.as_str(), subject.file(format!("file {name}\n").as_bytes(), false)))
        .collect();
    let folder = subject.tree(&entries);
    // The same files with one more byte each.
    let text = "mkdir out; for d in in/*; do mkdir out/${d#in/}; done; cd in; find . -type f -o -type l | \
        while read f; do { cat $f; echo; } > ../out/$f; done";
    let action = writes(reads(sh(text), "in", Artifact::Tree(folder)), "out", slot("out/"));
    let done = subject.run(&action).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", subject.text(done.stderr));
    let tree = Tree::from_bytes(&subject.blobs().read(done.outputs["out"].artifact.blob()).unwrap()).unwrap();
    assert_eq!(tree.entries.len(), 3000);
    for (name, entry) in &tree.entries {
        let digest = BlobDigest::of(format!("file {name}\n\n").as_bytes());
        assert_eq!(*entry, Entry::File { digest, executable: false });
        assert!(subject.blobs().contains(digest).unwrap());
    }
}

pub async fn a_large_file_goes_in_and_out(subject: &impl Subject) {
    let bytes: Vec<u8> =
        (0..9_000_001_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let action = reads(sh("cat in in > out"), "in", subject.put(&bytes));
    let done = subject.run(&writes(action, "out", slot("out"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let out = subject.blobs().read(done.outputs["out"].artifact.blob()).unwrap();
    assert!(out.len() == 18_000_002 && out[..9_000_001] == bytes && out[9_000_001..] == bytes);
}

pub async fn an_output_inside_another_is_kept_too(subject: &impl Subject) {
    let action = writes(sh("echo 1 > f/a; echo 2 > m.3; ln -s m.3 m"), "folder", slot("f/"));
    let action = writes(writes(action, "inner", slot("f/a")), "m", slot("m"));
    let done = subject.run(&action).await;
    assert_eq!((subject.output(&done, "inner"), subject.output(&done, "m")), ("1\n".into(), "2\n".into()));
    assert!(subject.blobs().contains(done.outputs["folder"].artifact.blob()).unwrap());
}

pub async fn what_cannot_be_stored_is_refused(subject: &impl Subject) {
    for (text, path, reason) in [
        ("mkdir out", "out", "is a folder, and a file was declared"),
        ("ln -s /etc/passwd out", "out", "leads outside"),
        ("mkfifo out", "out", "neither a file nor a folder"),
    ] {
        match subject.run(&writes(sh(text), "x", slot(path))).await.outcome {
            Outcome::Failed(Failure::BadOutput(said)) => assert!(said.contains(reason), "{text}: {said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

pub async fn the_disk_limit_is_kept(subject: &impl Subject) {
    let terms = Terms { disk: Some(8 * MIB), timeout: Some(60_000), ..Terms::default() };
    let done = subject.under(&sh("exec head -c 20000000 /dev/zero > one"), &terms).await;
    assert_eq!(done.outcome, Outcome::Failed(Failure::Disk));
    let small = subject.under(&sh("head -c 100000 /dev/zero > one"), &terms).await;
    assert_eq!(small.outcome, Outcome::Succeeded);
}

pub async fn a_program_that_cannot_be_started_is_named(subject: &impl Subject) {
    let long = "x".repeat(3 << 20);
    for (action, reason) in [
        (words(&["no-such-program"]), "was not found on PATH"),
        (words(&["echo", &long]), "too long"),
        (words(&[]), "empty list"),
    ] {
        match subject.run(&action).await.outcome {
            Outcome::Failed(Failure::Start(said)) => assert!(said.contains(reason), "{said}"),
            other => panic!("{reason}: {other:?}"),
        }
    }
}

pub async fn a_missing_blob_is_our_fault(subject: &impl Subject) {
    let action = reads(sh("true"), "in", Artifact::Blob(BlobDigest::of(b"never stored")));
    let watch = Watch::new(Cancel::new().unwrap());
    let error = subject.executor().run(&attempt(), &action, &Terms::default(), watch).await.unwrap_err();
    assert!(matches!(error, ExecError::Store(_)), "{error:?}");
    assert_eq!(subject.leftovers().len(), 0);
}

pub async fn an_action_that_reaches_out_of_its_folder_is_refused(subject: &impl Subject) {
    for action in [reads(sh("true"), "../x", subject.put(b"")), writes(sh("true"), "x", slot("/etc/x"))] {
        let watch = Watch::new(Cancel::new().unwrap());
        let error = subject.executor().run(&attempt(), &action, &Terms::default(), watch).await.unwrap_err();
        assert!(matches!(error, ExecError::Action { .. }), "{error:?}");
    }
}

pub async fn a_polite_program_may_end_itself_when_it_is_stopped(subject: &impl Subject) {
    let polite = "import signal, sys, time\ndef bye(*_):\n    time.sleep(0.1)\n    print('saved', flush=True)\n    sys.exit(0)\n\
        signal.signal(signal.SIGTERM, bye)\nprint('ready', flush=True)\ntime.sleep(60)";
    // The shell itself dies of the signal at once.
    let running = Under::start(subject, sh(&format!("python3 -c \"{polite}\"; echo never")));
    running.says_something().await;
    running.cancel.stop();
    let done = running.end().await;
    assert_eq!(done.outcome, Outcome::Cancelled);
    assert_eq!(subject.text(done.stdout), "ready\nsaved\n");
}

pub async fn a_program_that_ignores_the_request_is_killed_after_the_grace(subject: &impl Subject) {
    let running = Under::start(subject, words(&["python3", "-c", STUBBORN]));
    running.says_something().await;
    running.cancel.stop();
    assert_eq!(running.end().await.outcome, Outcome::Cancelled);
}

pub async fn a_second_request_kills_at_once(subject: &impl Subject) {
    let running = Under::start(subject, words(&["python3", "-c", STUBBORN]));
    running.says_something().await;
    running.cancel.stop();
    running.cancel.kill();
    assert_eq!(running.end().await.outcome, Outcome::Cancelled);
}

pub async fn dropping_the_future_ends_the_process(subject: &impl Subject) {
    let running = Under::start(subject, sh("echo $$; exec sleep 65"));
    let pid = running.says_something().await;
    running.task.abort();
    assert!(running.task.await.unwrap_err().is_cancelled());
    gone(&pid).await;
    for _ in 0..2000 {
        if subject.leftovers().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("its folder stayed behind: {:?}", subject.leftovers());
}

pub async fn a_child_left_behind_is_ended(subject: &impl Subject) {
    let daemon = "(setsid sh -c 'echo $$ > pid; exec sleep 62' &) ; while [ ! -s pid ]; do sleep 0.01; done";
    let done = subject.run(&writes(sh(daemon), "pid", slot("pid"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    gone(&subject.output(&done, "pid")).await;
}

pub async fn usage_and_host_are_told(subject: &impl Subject) {
    let work = "python3 -c 'import time\nx = bytearray(b\"1\") * (400 << 20)\nt = time.process_time()\n\
        while time.process_time() - t < 0.2: pass'";
    let done = subject.run(&sh(&format!("{work}; true"))).await;
    assert!(done.usage.peak_memory > 400 * MIB && done.usage.cpu >= 200_000, "{:?}", done.usage);
    assert!(done.usage.wall >= 200_000 && done.finished - done.started >= 200, "{done:?}");
    assert!(done.host.system.contains("Linux") && !done.host.confinement.is_empty());
}
