//! Processes of this machine.

use std::path::PathBuf;
use std::sync::Arc;

use avow_exec::LocalExecutor;
use avow_store::BlobStore;

use super::Subject;
use crate::support::Bench;

/// The local executor.
pub struct Local(Bench);

impl Subject for Local {
    type Executor = LocalExecutor;

    async fn new() -> Self {
        Self(Bench::new())
    }

    fn executor(&self) -> LocalExecutor {
        self.0.executor.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.0.blobs.clone()
    }

    fn work(&self) -> PathBuf {
        self.0.project.work()
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        self.0.leftovers()
    }
}
