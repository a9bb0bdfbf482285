//! What one process needs to act in a project.

use std::ops::ControlFlow;
use std::sync::Arc;

use avow_exec::ExecError;
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
    ///
    /// The index is opened before runs that had died are put in order: it notices a journal that became shorter
    /// than what it has indexed, and recovery makes journals longer.
    ///
    /// # Errors
    /// [`EngineError::Lock`] where the lock cannot be had or the waiter broke off, [`EngineError::Store`] where
    /// the store folder, a journal or the index cannot be read or written, [`EngineError::Exec`] where the folder
    /// of attempts cannot be read. A damaged index or journal is none: the one is built anew, the other left.
    pub fn open(
        project: Project,
        waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<Session, EngineError> {
        project.create()?;
        let lock = RunLock::acquire(&project, waiting)?;
        project.clear_temporary(&lock)?;
        let (index, opening) = index::open_index(&project, &lock)?;
        let recovered = recover::recover(&project, &lock, &index)?;
        // Nobody writes into them any more: what a dead run left alive has just been ended.
        let work = project.work();
        let checkpoints = project.checkpoints();
        avow_exec::rescue_checkpoints(&checkpoints, &work)
            .map_err(|source| ExecError::Work { path: checkpoints, source })?;
        avow_exec::clear_leftovers(&work).map_err(|source| ExecError::Work { path: work, source })?;
        let index = Arc::new(index);
        let blobs = Arc::new(FileBlobs::new(project.clone(), index.clone()));
        Ok(Session { project, blobs, index, opening, recovered, lock })
    }

    /// Throws the index away and builds it from the journals.
    ///
    /// # Errors
    /// [`EngineError::Store`] where the index or a journal cannot be read or written, also where somebody still
    /// holds the old index or blobs of this session.
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
