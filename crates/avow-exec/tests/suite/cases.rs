//! The cases that do not need processes.

use std::collections::BTreeMap;

use avow_exec::fake::Act;
use avow_exec::{Cancel, Executor, Watch};
use avow_model::action::Slot;
use avow_model::attempt::{Failure, Outcome};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Keep, Terms};

use super::Subject;
use crate::support::{attempt, reads, sh, slot, words, writes};

const MIB: u64 = 1 << 20;

fn succeed(outputs: &[(&str, &[u8])]) -> Act {
    Act::Succeed(outputs.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect())
}

pub async fn success_publishes_what_was_declared(subject: &impl Subject) {
    let action = reads(sh("cat data/in.txt > result.txt"), "data/in.txt", subject.put(b"seven\n"));
    let action = writes(action, "result", slot("result.txt"));
    subject.teach(&action, succeed(&[("result", b"seven\n")]));
    let done = subject.run(&action).await;
    assert_eq!(done.outcome, Outcome::Succeeded, "{}", subject.text(done.stderr));
    assert_eq!(subject.output(&done, "result"), "seven\n");
    assert_eq!(done.outputs["result"].size, 6);
    assert!(done.finished >= done.started && !done.host.name.is_empty());
}

pub async fn an_exit_code_is_a_failure_that_publishes_nothing(subject: &impl Subject) {
    let action = writes(sh("echo partial > out; exit 3"), "out", slot("out"));
    subject.teach(&action, Act::End(Outcome::Failed(Failure::Exit(3))));
    let done = subject.run(&action).await;
    assert_eq!(done.outcome, Outcome::Failed(Failure::Exit(3)));
    assert_eq!(done.outputs, BTreeMap::new());
    assert!(!subject.blobs().contains(BlobDigest::of(b"partial\n")).unwrap());
}

pub async fn a_signal_from_elsewhere_is_named(subject: &impl Subject) {
    let action = sh("kill -SEGV $$");
    subject.teach(&action, Act::End(Outcome::Failed(Failure::Signal(11))));
    assert_eq!(subject.run(&action).await.outcome, Outcome::Failed(Failure::Signal(11)));
}

pub async fn a_timeout_is_not_a_failure_of_its_own_making(subject: &impl Subject) {
    let action = sh("sleep 60");
    subject.teach(&action, Act::End(Outcome::TimedOut));
    let terms = Terms { timeout: Some(50), ..Terms::default() };
    assert_eq!(subject.under(&action, &terms).await.outcome, Outcome::TimedOut);
}

pub async fn too_much_memory_is_ended_and_proved(subject: &impl Subject) {
    let hog = "import time\nx = bytearray(b'1') * (300 << 20)\ntime.sleep(60)";
    let action = words(&["python3", "-c", hog]);
    subject.teach(&action, Act::End(Outcome::OutOfMemory));
    let terms = Terms { memory: Some(100 * MIB), timeout: Some(60_000), ..Terms::default() };
    assert_eq!(subject.under(&action, &terms).await.outcome, Outcome::OutOfMemory);
}

pub async fn every_missing_output_is_named(subject: &impl Subject) {
    let action = writes(sh("echo x > b"), "a", slot("a"));
    let action = writes(writes(action, "b", slot("b")), "c", slot("deep/c/"));
    let missing = Outcome::MissingOutput(vec!["a".to_owned(), "c".to_owned()]);
    subject.teach(&action, Act::End(missing.clone()));
    let done = subject.run(&action).await;
    assert_eq!((done.outcome, done.outputs), (missing, BTreeMap::new()));
}

pub async fn an_optional_output_may_be_absent_and_others_are_ignored(subject: &impl Subject) {
    let action = writes(sh("echo r > r; echo undeclared > undeclared"), "r", slot("r"));
    subject.teach(&action, succeed(&[("r", b"r\n")]));
    let done = subject.run(&action).await;
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!(done.outputs.keys().collect::<Vec<_>>(), ["r"]);
    assert!(!subject.blobs().contains(BlobDigest::of(b"undeclared\n")).unwrap());
    let optional = writes(sh("true"), "log", Slot { optional: true, ..slot("log.txt") });
    subject.teach(&optional, Act::Succeed(BTreeMap::new()));
    assert_eq!(subject.run(&optional).await.outcome, Outcome::Succeeded);
}

pub async fn only_the_digest_of_an_output_is_kept_where_that_was_asked_for(subject: &impl Subject) {
    let action = writes(sh("echo big > big"), "big", Slot { keep: Keep::Digest, ..slot("big") });
    subject.teach(&action, succeed(&[("big", b"big\n")]));
    let done = subject.run(&action).await;
    assert_eq!(done.outputs["big"].artifact, Artifact::Blob(BlobDigest::of(b"big\n")));
    assert!(!subject.blobs().contains(BlobDigest::of(b"big\n")).unwrap());
}

pub async fn a_cancelled_attempt_ends(subject: &impl Subject) {
    let action = sh("sleep 60");
    subject.teach(&action, Act::Hang);
    let cancel = Cancel::new().unwrap();
    let (executor, watch) = (subject.executor(), Watch::new(cancel.clone()));
    let running =
        tokio::spawn(async move { executor.run(&attempt(), &action, &Terms::default(), watch).await });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    cancel.stop();
    assert_eq!(running.await.unwrap().unwrap().outcome, Outcome::Cancelled);
}

pub async fn what_was_cancelled_before_it_began_is_never_started(subject: &impl Subject) {
    let action = writes(sh("echo started > out"), "out", slot("out"));
    subject.teach(&action, succeed(&[("out", b"started\n")]));
    let cancel = Cancel::new().unwrap();
    cancel.stop();
    let watch = Watch::new(cancel).on_spawn(|_, _| panic!("it was started"));
    let done = subject.executor().run(&attempt(), &action, &Terms::default(), watch).await.unwrap();
    assert_eq!((done.outcome, done.outputs), (Outcome::Cancelled, BTreeMap::new()));
    assert!(!subject.blobs().contains(BlobDigest::of(b"started\n")).unwrap());
}

pub async fn many_attempts_at_once_do_not_mix(subject: &impl Subject) {
    let mut tasks = Vec::new();
    for number in 0..24 {
        let action = writes(sh(&format!("echo {number} > out")), "out", slot("out"));
        subject.teach(&action, succeed(&[("out", format!("{number}\n").as_bytes())]));
        let executor = subject.executor();
        tasks.push(tokio::spawn(async move {
            let watch = Watch::new(Cancel::new().unwrap());
            executor.run(&attempt(), &action, &Terms::default(), watch).await.unwrap()
        }));
    }
    for (number, task) in tasks.into_iter().enumerate() {
        let done = task.await.unwrap();
        assert_eq!(done.outcome, Outcome::Succeeded);
        assert_eq!(subject.output(&done, "out"), format!("{number}\n"));
    }
}
