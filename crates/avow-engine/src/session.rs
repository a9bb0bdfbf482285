//! What one process needs to act in a project.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avow_store::index::{self, Opening};
use avow_store::{FileBlobs, Project, RunLock, SharedIndex, SledIndex};

use crate::error::EngineError;
use crate::recover::{self, Census, Recovered};

/// How long a session looks for whoever has the index before it says that it waits.
const QUIET: Duration = Duration::from_secs(1);

/// A place among the runs of a project, with its store opened and its past in order.
pub struct Session {
    /// The project.
    pub project: Project,
    /// Its blobs.
    pub blobs: Arc<FileBlobs>,
    /// Its index, which all sessions share.
    pub index: Arc<SharedIndex>,
    /// What opening the index took.
    pub opening: Opening,
    /// Runs that had died and were put in order.
    pub recovered: Vec<Recovered>,
    /// The runs there were when it was opened.
    pub(crate) census: Census,
}

impl Session {
    /// Opens the store, beside other runs. Where a command needs to be alone in the store, `waiting` hears its
    /// process id and may break off.
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
        mut waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<Session, EngineError> {
        project.create()?;
        let lock = RunLock::share(&project, &mut waiting)?;
        let quiet = Instant::now() + QUIET;
        let index = SharedIndex::open(&project, lock, || {
            if Instant::now() < quiet { ControlFlow::Continue(()) } else { waiting(None) }
        })?;
        let (recovered, census) = recover::recover(&project, &index)?;
        recover::clear_folders(&project)?;
        // Last, because what a dead run left running may still have held its folder.
        project.clear_temporary()?;
        let opening = index.opening();
        let index = Arc::new(index);
        let blobs = Arc::new(FileBlobs::new(project.clone(), index.clone()));
        Ok(Session { project, blobs, index, opening, recovered, census })
    }
}

/// Waits until nobody else is in the project, throws its index away and builds it from the journals. `waiting`
/// as in [`Session::open`].
///
/// # Errors
/// [`EngineError::Lock`] where the waiter broke off, [`EngineError::Store`] where the index or a journal cannot be
/// read or written.
pub fn rebuild_index(
    project: &Project,
    waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
) -> Result<SledIndex, EngineError> {
    let lock = RunLock::acquire(project, waiting)?;
    Ok(index::rebuild(project, &lock)?)
}
