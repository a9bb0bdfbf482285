//! How an attempt ends, with real processes: each outcome, and what is published with it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use avow_exec::{Cancel, Config, Executor, LocalExecutor, Watch};
use avow_model::action::{Command, Slot};
use avow_model::attempt::{Failure, Outcome};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Keep, Terms};
use avow_model::tree::{Entry, Tree};
use avow_model::value::Value;
use avow_store::BlobStore;
use support::{Bench, action, attempt, reads, sh, slot, words, writes};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn success_publishes_outputs_and_logs() {
    for bench in Bench::each() {
        let action = sh("echo said; echo warned >&2; cat data/in.txt > result.txt");
        let action =
            reads(writes(action, "result", slot("result.txt")), "data/in.txt", bench.put(b"seven\n"));
        let done = bench.run(&action).await;
        assert_eq!(done.outcome, Outcome::Succeeded);
        assert_eq!(bench.output(&done, "result"), "seven\n");
        assert_eq!(done.outputs["result"].size, 6);
        assert_eq!((bench.text(done.stdout), bench.text(done.stderr)), ("said\n".into(), "warned\n".into()));
        assert!(done.usage.wall > 0 && done.finished >= done.started);
        assert!(!done.host.name.is_empty());
    }
}

#[tokio::test]
async fn silence_leaves_no_logs() {
    let bench = Bench::new();
    let done = bench.run(&words(&["true"])).await;
    assert_eq!((done.outcome, done.stdout, done.stderr), (Outcome::Succeeded, None, None));
}

#[tokio::test]
async fn an_exit_code_is_a_failure_that_publishes_logs_only() {
    let bench = Bench::new();
    let done = bench.run(&writes(sh("echo partial > out; echo why >&2; exit 3"), "out", slot("out"))).await;
    assert_eq!(done.outcome, Outcome::Failed(Failure::Exit(3)));
    assert_eq!(done.outputs, BTreeMap::new());
    assert_eq!(bench.text(done.stderr), "why\n");
    assert!(!bench.blobs.list().unwrap().contains(&BlobDigest::of(b"partial\n")));
}

#[tokio::test]
async fn a_signal_from_elsewhere_is_named() {
    let bench = Bench::new();
    assert_eq!(bench.run(&sh("kill -SEGV $$")).await.outcome, Outcome::Failed(Failure::Signal(11)));
}

#[tokio::test]
async fn the_shell_stops_at_the_first_error_and_at_an_undefined_variable() {
    let bench = Bench::new();
    for text in ["false\ntrue", "echo $undefined", "false | cat"] {
        let done = bench.run(&sh(text)).await;
        assert!(matches!(done.outcome, Outcome::Failed(Failure::Exit(_))), "{text}: {:?}", done.outcome);
    }
}

#[tokio::test]
async fn a_timeout_is_not_a_failure_of_its_own_making() {
    let bench = Bench::new();
    let terms = Terms { timeout: Some(50), ..Terms::default() };
    let done = bench.under(&sh("echo before; sleep 60"), &terms).await;
    assert_eq!(done.outcome, Outcome::TimedOut);
    assert_eq!(bench.text(done.stdout), "before\n");
}

#[tokio::test]
async fn too_much_memory_is_ended_and_proved() {
    let bench = Bench::new();
    let terms = Terms { memory: Some(100 * MIB), timeout: Some(60_000), ..Terms::default() };
    let hog = "import time\nx = bytearray(b'1') * (300 << 20)\ntime.sleep(60)";
    let done = bench.under(&words(&["python3", "-c", hog]), &terms).await;
    assert_eq!(done.outcome, Outcome::OutOfMemory, "{}", bench.text(done.stderr));
    assert!(done.usage.peak_memory > 100 * MIB);
}

#[tokio::test]
async fn time_and_memory_of_children_are_counted() {
    let bench = Bench::new();
    let work = "python3 -c 'import time\nx = bytearray(b\"1\") * (400 << 20)\nt = time.process_time()\n\
        while time.process_time() - t < 0.2: pass'";
    let usage = bench.run(&sh(&format!("{work}; true"))).await.usage;
    assert!(usage.peak_memory > 400 * MIB && usage.peak_memory < 600 * MIB, "{usage:?}");
    assert!(usage.cpu >= 200_000 && usage.wall >= 200_000, "{usage:?}");
}

#[tokio::test]
async fn memory_that_workers_share_is_counted_once() {
    let bench = Bench::new();
    let terms = Terms { memory: Some(260 * MIB), timeout: Some(60_000), ..Terms::default() };
    let shared = "import os, time\nx = bytearray(b'1') * (150 << 20)\n\
        for _ in range(3):\n    if os.fork() == 0:\n        time.sleep(1); os._exit(0)\n\
        for _ in range(3): os.wait()";
    let done = bench.under(&words(&["python3", "-c", shared]), &terms).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", bench.text(done.stderr));
}

#[tokio::test]
async fn one_large_file_and_many_small_ones_fill_the_disk_limit() {
    let bench = Bench::new();
    let terms = Terms { disk: Some(8 * MIB), timeout: Some(60_000), ..Terms::default() };
    let many = "i=0; while true; do i=$((i+1)); head -c 100000 /dev/zero > f$i; done";
    let caught = "import time\ntry:\n    open('f','wb').write(b'1' * (20 << 20))\nexcept OSError:\n    raise SystemExit(1)";
    for action in [sh("exec head -c 20000000 /dev/zero > one"), sh(many), words(&["python3", "-c", caught])] {
        let done = bench.under(&action, &terms).await;
        assert_eq!(done.outcome, Outcome::Failed(Failure::Disk), "{:?}", action.command);
    }
    let small = bench.under(&sh("head -c 100000 /dev/zero > one"), &terms).await;
    assert_eq!(small.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn what_it_was_given_does_not_count_against_the_disk_limit() {
    let bench = Bench::with(|config| config.confinement = Some(avow_exec::Confinement::None));
    let terms = Terms { disk: Some(MIB), ..Terms::default() };
    let action = reads(sh("sleep 0.1; wc -c < in"), "in", bench.put(&vec![7; 4 << 20]));
    assert_eq!(bench.under(&action, &terms).await.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn every_missing_output_is_named() {
    let bench = Bench::new();
    let action = writes(sh("echo x > b"), "a", slot("a"));
    let action = writes(writes(action, "b", slot("b")), "c", slot("deep/c/"));
    let done = bench.run(&action).await;
    assert_eq!(done.outcome, Outcome::MissingOutput(vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(done.outputs, BTreeMap::new());
}

#[tokio::test]
async fn an_optional_output_may_be_absent_and_others_are_ignored() {
    let bench = Bench::new();
    let optional = Slot { optional: true, ..slot("log.txt") };
    let action = writes(sh("echo r > r; echo x > undeclared"), "log", optional);
    let done = bench.run(&writes(action, "r", slot("r"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!(done.outputs.keys().collect::<Vec<_>>(), ["r"]);
    assert!(!bench.blobs.list().unwrap().contains(&BlobDigest::of(b"x\n")));
}

#[tokio::test]
async fn a_folder_keeps_files_modes_links_and_empty_folders() {
    let bench = Bench::new();
    let text = "mkdir -p f/deep f/empty; echo 1 > f/deep/a; echo 2 > f/run; chmod +x f/run; ln -s deep/a f/link; ln f/run f/twin";
    let done = bench.run(&writes(sh(text), "f", slot("f/"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let produced = &done.outputs["f"];
    let tree = Tree::from_bytes(&bench.blobs.read(produced.artifact.blob()).unwrap()).unwrap();
    let file = |text: &str, executable| Entry::File { digest: BlobDigest::of(text.as_bytes()), executable };
    let expected = [
        ("deep/a", file("1\n", false)),
        ("empty", Entry::Empty),
        ("link", Entry::Link { target: "deep/a".to_owned() }),
        ("run", file("2\n", true)),
        ("twin", file("2\n", true)),
    ];
    assert_eq!(tree.entries, expected.map(|(path, entry)| (path.to_owned(), entry)).into());
    assert_eq!(produced.size, 6);
    assert_eq!(bench.blobs.read(BlobDigest::of(b"2\n")).unwrap(), b"2\n");
}

#[tokio::test]
async fn an_output_inside_another_and_a_link_to_an_output_are_both_kept() {
    let bench = Bench::new();
    let action = sh("echo 1 > f/a; echo 2 > m.3; ln -s m.3 m");
    let action = writes(writes(action, "folder", slot("f/")), "inner", slot("f/a"));
    let done = bench.run(&writes(writes(action, "m", slot("m")), "m3", slot("m.3"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!((bench.output(&done, "inner"), bench.output(&done, "m")), ("1\n".into(), "2\n".into()));
    assert_eq!(bench.output(&done, "m3"), "2\n");
    assert!(bench.blobs.contains(done.outputs["folder"].artifact.blob()).unwrap());
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_and_nothing_of_it_is_published() {
    let bench = Bench::new();
    let refused: &[(&str, &str, &str)] = &[
        ("mkdir out", "out", "is a folder, and a file was declared"),
        ("echo > out", "out/", "is a file, and a folder was declared"),
        ("ln -s /etc/passwd out", "out", "leads outside"),
        ("ln -s nowhere out", "out", "link to nothing"),
        ("mkfifo out", "out", "neither a file nor a folder"),
        ("mkdir out; mkfifo out/p", "out/", "neither file, folder nor link"),
        ("mkdir out; ln -s ../../x out/l", "out/", "leads outside"),
        ("mkdir out; ln -s /etc out/l", "out/", "leads outside"),
        ("rmdir sub; ln -s /etc sub", "sub/passwd", "leads outside"),
        ("mkdir out; touch \"out/$(printf '\\377')\"", "out/", "not UTF-8"),
        ("mkdir out; touch \"out/$(printf 'a\\001b')\"", "out/", "control character"),
    ];
    for (text, path, reason) in refused {
        let action = writes(sh(&format!("echo secret > fine; {text}")), "x", slot(path));
        let done = bench.run(&writes(action, "fine", slot("fine"))).await;
        match &done.outcome {
            Outcome::Failed(Failure::BadOutput(said)) => assert!(said.contains(reason), "{text}: {said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(!bench.blobs.list().unwrap().contains(&BlobDigest::of(b"secret\n")));
}

#[tokio::test]
async fn only_the_digest_of_an_output_is_kept_where_that_was_asked_for() {
    let bench = Bench::new();
    let digest = |path| Slot { keep: Keep::Digest, ..slot(path) };
    let action = writes(sh("echo big > big; mkdir f; echo b > f/b"), "big", digest("big"));
    let done = bench.run(&writes(action, "f", digest("f/"))).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!(done.outputs["big"].artifact, Artifact::Blob(BlobDigest::of(b"big\n")));
    assert_eq!(done.outputs["big"].size, 4);
    assert!(matches!(done.outputs["f"].artifact, Artifact::Tree(_)));
    assert_eq!(bench.blobs.list().unwrap(), []);
}

#[tokio::test]
async fn a_log_of_200_mib_is_kept_whole_without_holding_it() {
    let bench = Bench::new();
    let before = resident_peak();
    let done = bench.run(&sh("exec head -c 209715200 /dev/zero")).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    let log = done.stdout.unwrap();
    assert_eq!(bench.blobs.size(log).unwrap(), Some(200 * MIB));
    // Other tests of this process run at the same time: the bound is far below the log, not close to zero.
    let anonymous = resident_peak().saturating_sub(before);
    assert!(anonymous < 100 * MIB, "{anonymous} bytes more");
}

/// Anonymous memory now; pages of mapped files are the kernel's to take back.
fn resident_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_huge_argument_is_refused_in_words() {
    let bench = Bench::new();
    let long = "x".repeat(3 << 20);
    match bench.run(&words(&["echo", &long])).await.outcome {
        Outcome::Failed(Failure::Start(reason)) => assert!(reason.contains("too long"), "{reason}"),
        other => panic!("{other:?}"),
    }
    let fits = "x".repeat(100_000);
    let done = bench.run(&words(&["echo", &fits])).await;
    assert_eq!(bench.text(done.stdout).len(), 100_001);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_with_the_reason() {
    let bench = Bench::new();
    let code = bench.tree(&[
        ("plain", bench.file(b"#!/bin/sh\n", false)),
        ("headless", bench.file(b"echo no header\n", true)),
        ("stranger", bench.file(b"#!/no/such/interpreter\n", true)),
        ("folder", Entry::Empty),
    ]);
    let cases = [
        ("no-such-program", "was not found on PATH"),
        ("./absent", "not in the working folder"),
        ("./plain", "not executable"),
        ("./folder", "is not a file"),
        ("./headless", "`#!` line"),
        ("./stranger", "does not exist"),
    ];
    for (name, reason) in cases {
        let mut action = words(&[name]);
        action.code = Some(code);
        match bench.run(&action).await.outcome {
            Outcome::Failed(Failure::Start(said)) => {
                assert!(said.contains(reason) && said.contains(name.trim_start_matches("./")), "{said}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let nul = bench.run(&words(&["echo", "a\0b"])).await;
    assert!(matches!(nul.outcome, Outcome::Failed(Failure::Start(_))));
    assert!(matches!(bench.run(&words(&[])).await.outcome, Outcome::Failed(Failure::Start(_))));
}

#[tokio::test]
async fn an_operation_is_told_values_and_file_names_only() {
    let bench = Bench::new();
    let mut action = action(Command::Op {
        name: "a/b".to_owned(),
        identity: "00".to_owned(),
        with: [("n".to_owned(), Value::Int(3))].into(),
        inputs: [("x".to_owned(), "inputs/x.csv".to_owned())].into(),
    });
    action = writes(writes(action, "y", slot("y.bin")), "measurements", slot("measurements.jsonl"));
    action.outputs.values_mut().for_each(|slot| slot.optional = true);
    let done = bench.run(&writes(action, "told", slot("told"))).await;
    assert_eq!(
        bench.output(&done, "told"),
        "op\na/b\n--call\n{\"with\":{\"n\":3},\"inputs\":{\"x\":\"inputs/x.csv\"},\
         \"outputs\":{\"told\":\"told\",\"y\":\"y.bin\"},\"measurements\":\"measurements.jsonl\"}\n"
    );
}

#[tokio::test]
async fn a_missing_blob_is_our_fault_and_leaves_nothing() {
    let bench = Bench::new();
    let action = reads(sh("true"), "in", Artifact::Blob(BlobDigest::of(b"never stored")));
    let watch = Watch::new(bench.cancel.clone());
    let error = bench.executor.run(&attempt(), &action, &Terms::default(), watch).await.unwrap_err();
    assert!(matches!(error, avow_exec::ExecError::Store(_)), "{error:?}");
    assert_eq!(bench.leftovers().len(), 0);
}

#[tokio::test]
async fn an_action_that_reaches_out_of_its_folder_is_refused() {
    let bench = Bench::new();
    for action in [reads(sh("true"), "../x", bench.put(b"")), writes(sh("true"), "x", slot("/etc/x"))] {
        let watch = Watch::new(Cancel::new().unwrap());
        let error = bench.executor.run(&attempt(), &action, &Terms::default(), watch).await.unwrap_err();
        assert!(matches!(error, avow_exec::ExecError::Action { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_work_folder_that_cannot_be_written_is_the_machines_failure() {
    let bench = Bench::new();
    fs::remove_dir_all(bench.project.work()).unwrap();
    let watch = Watch::new(bench.cancel.clone());
    let done = bench.executor.run(&attempt(), &sh("true"), &Terms::default(), watch).await.unwrap();
    assert!(matches!(done.outcome, Outcome::Failed(Failure::Machine(_))), "{:?}", done.outcome);
}

#[tokio::test]
async fn the_folder_of_a_failed_attempt_is_kept_on_request() {
    let bench = Bench::with(|config| config.keep_failed = true);
    let attempt = attempt();
    let watch = Watch::new(bench.cancel.clone());
    let action = sh("echo evidence > found; exit 1");
    let done = bench.executor.run(&attempt, &action, &Terms::default(), watch).await.unwrap();
    assert_eq!(done.outcome, Outcome::Failed(Failure::Exit(1)));
    let kept = bench.project.work().join(format!("kept-{attempt}"));
    assert_eq!(fs::read_to_string(kept.join("run/found")).unwrap(), "evidence\n");
}

#[tokio::test]
async fn a_folder_without_permissions_is_removed_too() {
    let bench = Bench::new();
    let done = bench.run(&sh("mkdir -p a/b; touch a/b/c; chmod 000 a/b; chmod 500 a")).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_scripts_written_and_started_at_once_are_never_busy() {
    let bench = std::sync::Arc::new(Bench::new());
    let code = bench.tree(&[("go", bench.file(b"#!/bin/sh\necho went\n", true))]);
    let mut tasks = Vec::new();
    for _ in 0..40 {
        let bench = std::sync::Arc::clone(&bench);
        tasks.push(tokio::spawn(async move {
            let mut action = words(&["./go"]);
            action.code = Some(code);
            let watch = Watch::new(bench.cancel.clone());
            let done = bench.executor.run(&attempt(), &action, &Terms::default(), watch).await.unwrap();
            assert_eq!(done.outcome, Outcome::Succeeded);
            assert_eq!(bench.text(done.stdout), "went\n");
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(bench.leftovers().len(), 0);
}

#[test]
fn confinement_that_was_demanded_is_never_silently_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(folder.path().join("work"), "avow");
    config.confinement = Some(avow_exec::Confinement::Deny);
    let made = LocalExecutor::new(config, std::sync::Arc::new(avow_store::MemoryBlobs::new()));
    assert_eq!(made.is_ok(), avow_exec::probe().write_protection);
    let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o700);
}
