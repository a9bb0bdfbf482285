//! One suite for every executor: fake, local, and a worker over the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests")]

mod suite;
mod support;

mod fake {
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    use avow_exec::fake::{Act, FakeExecutor};
    use avow_model::action::Action;
    use avow_model::canonical::Record;
    use avow_model::digest::ActionDigest;
    use avow_store::{BlobStore, MemoryBlobs};

    use crate::suite::Subject;

    struct Fake {
        executor: FakeExecutor,
        blobs: Arc<MemoryBlobs>,
        taught: Arc<Mutex<HashMap<ActionDigest, Act>>>,
    }

    impl Subject for Fake {
        type Executor = FakeExecutor;

        async fn new() -> Self {
            let blobs = Arc::new(MemoryBlobs::new());
            let taught = Arc::new(Mutex::new(HashMap::new()));
            let known: Arc<Mutex<HashMap<ActionDigest, Act>>> = Arc::clone(&taught);
            let executor = FakeExecutor::new(blobs.clone(), move |call| {
                known.lock().unwrap().get(&call.action.digest()).cloned().expect("it was taught")
            });
            Fake { executor, blobs, taught }
        }

        fn executor(&self) -> FakeExecutor {
            self.executor.clone()
        }

        fn blobs(&self) -> Arc<dyn BlobStore> {
            self.blobs.clone()
        }

        fn work(&self) -> PathBuf {
            unreachable!("it has no logs")
        }

        fn teach(&self, action: &Action, act: Act) {
            self.taught.lock().unwrap().insert(action.digest(), act);
        }
    }

    crate::suite::conformance!(Fake);
}

mod local {
    crate::suite::conformance!(crate::suite::Local);
    crate::suite::real_conformance!(crate::suite::Local);
}

mod worker {
    crate::suite::conformance!(crate::suite::Worker);
    crate::suite::real_conformance!(crate::suite::Worker);
}
