//! A folder of half-written files that only this process uses.
//!
//! It holds a lock on its own folder. Whoever clears up after a crash removes only folders whose lock is free.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FlockOperation;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;

#[derive(Debug)]
pub(super) struct TemporaryFolder {
    path: PathBuf,
    counter: AtomicU64,
    /// The folder itself. Its lock says that the owner lives; and because it is open from before the first
    /// write, a sync through it reports every failed write since.
    folder: File,
}

impl TemporaryFolder {
    /// Makes a folder of our own below `parent`.
    pub(super) fn create(parent: &Path) -> Result<TemporaryFolder, StoreError> {
        disk::create_folders(parent).context("create", parent)?;
        loop {
            let path = parent.join(&files::nonce()?[..16]);
            disk::create_folder(&path).context("create", &path)?;
            // Somebody who clears up may have come between the two calls; then the folder is gone or going.
            let folder = match File::open(&path) {
                Err(e) if files::absent(&e) => continue,
                Err(e) => {
                    // Too few descriptors, say: nothing that another attempt would change.
                    let _ = disk::remove_folder(&path);
                    return Err(e).context("open", &path);
                }
                Ok(folder) => folder,
            };
            if rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() && path.is_dir() {
                return Ok(TemporaryFolder { path, counter: AtomicU64::new(0), folder });
            }
        }
    }

    /// Makes everything on its file system, which is that of the blobs, survive a power cut.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        disk::sync_file_system(&self.folder, &self.path).context("sync", &self.path)
    }

    /// A name that is not in use.
    pub(super) fn name(&self) -> PathBuf {
        self.path.join(self.counter.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// A new file that nobody else can open for writing.
    pub(super) fn file(&self) -> Result<(File, PathBuf), StoreError> {
        let path = self.name();
        Ok((disk::create_protected(&path).context("create", &path)?, path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A leftover is cleared by the next run.
        let _ = disk::remove_folder(&self.path);
    }
}
