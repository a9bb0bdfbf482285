//! The executor that follows a script.

use std::collections::BTreeMap;
use std::sync::Arc;

use avow_exec::fake::{Act, FakeExecutor};
use avow_exec::{Cancel, Executor, Watch};
use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::digest::Artifact;
use avow_model::plan::{Keep, Terms};
use avow_store::{BlobStore, MemoryBlobs};

fn action(text: &str) -> Action {
    let slot = |path: &str| Slot {
        path: path.to_owned(),
        folder: path.ends_with('/'),
        optional: false,
        keep: Keep::Content,
    };
    Action {
        command: Command::Shell(text.to_owned()),
        env: BTreeMap::new(),
        inputs: BTreeMap::new(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: BTreeMap::new(),
        loads: None,
        outputs: [("f".to_owned(), slot("f/")), ("o".to_owned(), slot("o"))].into(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    }
}

#[tokio::test]
async fn outputs_depend_on_the_action_and_on_nothing_else() {
    let blobs = Arc::new(MemoryBlobs::new());
    let fake = FakeExecutor::succeeding(Arc::clone(&blobs) as Arc<dyn BlobStore>);
    let mut made = Vec::new();
    for (id, text) in [("1", "a"), ("2", "a"), ("3", "b")] {
        let watch = Watch::new(Cancel::new().unwrap());
        let done =
            fake.run(&AttemptId(id.to_owned()), &action(text), &Terms::default(), watch).await.unwrap();
        assert_eq!(done.outcome, Outcome::Succeeded);
        for produced in done.outputs.values() {
            assert!(blobs.contains(produced.artifact.blob()).unwrap());
        }
        made.push(done.outputs);
    }
    assert_eq!(made[0], made[1]);
    assert_ne!(made[0], made[2]);
    assert!(matches!(made[0]["f"].artifact, Artifact::Tree(_)));
    let ids: Vec<String> = fake.calls().into_iter().map(|call| call.attempt.0).collect();
    assert_eq!(ids, ["1", "2", "3"]);
}

#[tokio::test]
async fn the_script_decides_and_a_hanging_attempt_ends_with_its_token() {
    let fake = FakeExecutor::new(Arc::new(MemoryBlobs::new()), |call| match call.number {
        0 => Act::End(Outcome::Failed(Failure::Exit(7))),
        _ => Act::Hang,
    });
    let cancel = Cancel::new().unwrap();
    let run = |id: &str| {
        let (fake, id, watch) = (fake.clone(), AttemptId(id.to_owned()), Watch::new(cancel.clone()));
        tokio::spawn(
            async move { fake.run(&id, &action(""), &Terms::default(), watch).await.unwrap().outcome },
        )
    };
    assert_eq!(run("1").await.unwrap(), Outcome::Failed(Failure::Exit(7)));
    let hanging = [run("2"), run("3")];
    while fake.most_at_once() < 2 {
        tokio::task::yield_now().await;
    }
    cancel.stop();
    for task in hanging {
        assert_eq!(task.await.unwrap(), Outcome::Cancelled);
    }
}
