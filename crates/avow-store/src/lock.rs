//! Who may run: a lock that the kernel holds for a living file descriptor.
//!
//! The file `.avow/lock` may exist for ever; only the lock on it means something, and the kernel releases it
//! with the process. What is written in the file (the holder's process id) is for the message to a person who
//! waits. A file system that grants the lock to everybody is worse than one that refuses, so the lock is tried
//! once more through a second descriptor, which must be turned away.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::project::Project;

/// How often a waiter looks again.
const POLL: Duration = Duration::from_millis(50);

/// The right to run in a project, as long as the value lives.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
    path: PathBuf,
}

/// Why the lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process runs here.
    #[error("another run holds `{}`", path.display())]
    Held {
        /// The lock's file.
        path: PathBuf,
        /// The process that holds it, where it could be read.
        holder: Option<u32>,
    },
    /// The file system does not really lock; the project must lie on another one.
    #[error("the file system of `{}` has no file locks, so two runs could not be kept apart", path.display())]
    Unsupported {
        /// The lock's file.
        path: PathBuf,
    },
    /// The waiter gave up.
    #[error("gave up waiting for `{}`", path.display())]
    GaveUp {
        /// The lock's file.
        path: PathBuf,
    },
    /// The lock's file cannot be used at all.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunLock {
    /// Takes the lock if it is free. The store folder must exist.
    pub fn try_acquire(project: &Project) -> Result<RunLock, LockError> {
        let path = project.lock();
        let file = open(&path)?;
        if !lock(&file, &path)? {
            return Err(LockError::Held { holder: holder(&path), path });
        }
        if lock(&open(&path)?, &path)? {
            return Err(LockError::Unsupported { path });
        }
        let text = format!("{}\n", std::process::id());
        disk::shorten(&file, &path, 0)
            .and_then(|()| disk::write(&file, &path, text.as_bytes()))
            .context("write", &path)?;
        Ok(RunLock { _file: file, path })
    }

    /// Takes the lock as soon as it is free. `waiting` hears who holds it (process id, if known) at the first
    /// refusal and about every 50 ms after it, and may break off.
    pub fn acquire(
        project: &Project,
        mut waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<RunLock, LockError> {
        loop {
            match RunLock::try_acquire(project) {
                Err(LockError::Held { holder, path }) => {
                    if waiting(holder).is_break() {
                        return Err(LockError::GaveUp { path });
                    }
                    std::thread::sleep(POLL);
                }
                other => return other,
            }
        }
    }

    /// The process that runs in a project, for reading commands: `None` where nobody does, the id 0 where its
    /// id cannot be read. Takes nothing and creates nothing.
    pub fn runner(project: &Project) -> Result<Option<u32>, LockError> {
        let path = project.lock();
        let file = match File::open(&path) {
            Err(e) if crate::files::absent(&e) => return Ok(None),
            other => other.context("open", &path)?,
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(Errno::WOULDBLOCK) => Ok(Some(holder(&path).unwrap_or(0))),
            Err(e) => Err(refused(e, &path)),
        }
    }

    /// The lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    disk::open_or_create(path).context("open", path)
}

/// Whether the lock could be had through this descriptor.
fn lock(file: &File, path: &Path) -> Result<bool, LockError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(e) => Err(refused(e, path)),
    }
}

fn refused(error: Errno, path: &Path) -> LockError {
    match error {
        Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => {
            LockError::Unsupported { path: path.to_owned() }
        }
        other => {
            LockError::Store(StoreError::Io { action: "lock", path: path.to_owned(), source: other.into() })
        }
    }
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(32).read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
