//! What one process needs to act in a project.

use std::ops::ControlFlow;
use std::sync::Arc;

use avow_store::index::{self, Opening};
use avow_store::{FileBlobs, Project, RunLock, SledIndex};

use crate::error::EngineError;
use crate::recover::{self, Recovered};

/// The right to run in a project, with its store opened and its past in order.
pub struct Session {
    /// The project.
    pub project: Project,
    /// Its blobs.
    pub blobs: Arc<FileBlobs>,
    /// Its index.
    pub index: Arc<SledIndex>,
    /// What opening the index took.
    pub opening: Opening,
    /// Runs that had died and were put in order.
    pub recovered: Vec<Recovered>,
    pub(crate) lock: RunLock,
}

impl Session {
    /// Waits for the run lock and opens the store. `waiting` hears the process id of whoever holds the lock,
    /// and may break off.
    pub fn open(
        project: Project,
        waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<Session, EngineError> {
        project.create()?;
        let lock = RunLock::acquire(&project, waiting)?;
        project.clear_temporary(&lock)?;
        let recovered = recover::recover(&project, &lock)?;
        let (index, opening) = index::open_index(&project, &lock)?;
        let index = Arc::new(index);
        let blobs = Arc::new(FileBlobs::new(project.clone(), index.clone()));
        Ok(Session { project, blobs, index, opening, recovered, lock })
    }

    /// Throws the index away and builds it from the journals.
    pub fn rebuild_index(self) -> Result<Session, EngineError> {
        let Session { project, blobs, index, lock, recovered, .. } = self;
        // sled holds its own lock on the folder until the last handle on the database is dropped.
        drop((blobs, index));
        let index = Arc::new(index::rebuild(&project, &lock)?);
        let blobs = Arc::new(FileBlobs::new(project.clone(), index.clone()));
        let opening = Opening::Rebuilt { reason: "it was asked for".to_owned() };
        Ok(Session { project, blobs, index, opening, recovered, lock })
    }
}
