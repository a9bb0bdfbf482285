//! Who may do what in a store while others are there: locks that the kernel holds for living file descriptors.
//!
//! The files may exist for ever; only the locks on them mean something, and the kernel releases those with the
//! process, so that nobody ever has to remove one by hand.
//!
//! | lock | held by |
//! |---|---|
//! | [`RunLock`], shared | every command that runs or registers, as long as it lives |
//! | [`RunLock`], exclusive | a command that must be alone: rebuild, collect |
//! | [`IndexLock`] | whoever has the index open ([`crate::shared_index`]) |
//! | [`RecoveryLock`] | whoever puts dead runs in order |
//! | a journal's own | the run that writes it ([`crate::journal`]) |
//! | [`crate::ActionLocks`] | the run that executes an action |
//!
//! A file system that grants a lock to everybody is worse than one that refuses, so locks are tried on a file
//! of their own first, once through each of two descriptors.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::action_lock;
use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::mount;
use crate::project::Project;

/// How often a waiter looks again.
const POLL: Duration = Duration::from_millis(50);

/// The right to be in a project beside others, or alone, as long as the value lives.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
    path: PathBuf,
}

/// Why the lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process is there, and one of the two needs to be alone.
    #[error("another command holds `{}`", path.display())]
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
    /// Takes the lock for itself alone, if nobody else is there. The store folder must exist.
    pub fn try_acquire(project: &Project) -> Result<RunLock, LockError> {
        probe(project)?;
        let path = project.lock();
        let file = open(&path)?;
        if !lock(&file, &path, FlockOperation::NonBlockingLockExclusive)? {
            return Err(LockError::Held { holder: holder(&path), path });
        }
        sign(&file, &path)?;
        Ok(RunLock { _file: file, path })
    }

    /// Takes the lock beside others who share it. Refused while somebody needs to be alone.
    pub fn try_share(project: &Project) -> Result<RunLock, LockError> {
        probe(project)?;
        let path = project.lock();
        let file = open(&path)?;
        if lock(&file, &path, FlockOperation::NonBlockingLockShared)? {
            Ok(RunLock { _file: file, path })
        } else {
            Err(LockError::Held { holder: holder(&path), path })
        }
    }

    /// Takes the lock for itself alone as soon as nobody else is there. `waiting` hears who holds it (process
    /// id, if known) at the first refusal and about every 50 ms after it, and may break off.
    pub fn acquire(
        project: &Project,
        waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<RunLock, LockError> {
        patiently(|| RunLock::try_acquire(project), waiting)
    }

    /// Shares the lock as soon as nobody needs to be alone; `waiting` as in [`RunLock::acquire`].
    pub fn share(
        project: &Project,
        waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
    ) -> Result<RunLock, LockError> {
        patiently(|| RunLock::try_share(project), waiting)
    }

    /// The lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn patiently(
    once: impl Fn() -> Result<RunLock, LockError>,
    mut waiting: impl FnMut(Option<u32>) -> ControlFlow<()>,
) -> Result<RunLock, LockError> {
    loop {
        match once() {
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

/// The right to have the index open.
#[derive(Debug)]
pub struct IndexLock {
    _file: File,
}

impl IndexLock {
    /// Takes it where nobody has it.
    pub fn try_acquire(project: &Project) -> Result<Option<IndexLock>, LockError> {
        let path = IndexLock::path(project);
        let file = open(&path)?;
        if !lock(&file, &path, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(None);
        }
        sign(&file, &path)?;
        Ok(Some(IndexLock { _file: file }))
    }

    /// The process that took it last, which has it as long as it lives.
    pub fn holder(project: &Project) -> Option<u32> {
        holder(&IndexLock::path(project))
    }

    fn path(project: &Project) -> PathBuf {
        project.store().join("index.lock")
    }
}

/// The right to close the journals of dead runs. Others wait for it, because until then they cannot know whether
/// a process of the dead run is still at work.
#[derive(Debug)]
pub struct RecoveryLock {
    _file: File,
}

impl RecoveryLock {
    /// Takes it, after whoever has it.
    pub fn acquire(project: &Project) -> Result<RecoveryLock, LockError> {
        let path = project.store().join("recovery.lock");
        let file = open(&path)?;
        lock(&file, &path, FlockOperation::LockExclusive)?;
        Ok(RecoveryLock { _file: file })
    }
}

/// Tries whether locks keep two descriptors of one file apart here, and two hosts as far as the mount tells.
fn probe(project: &Project) -> Result<(), LockError> {
    let path = project.store().join(format!("lock-probe.{}", &files::nonce()?[..16]));
    let apart = keeps_apart(&path);
    let removed = disk::remove_file(&path).context("remove", &path);
    let apart = apart?;
    removed?;
    if apart && !mount::locks_are_local(project.root()) {
        Ok(())
    } else {
        Err(LockError::Unsupported { path: project.store() })
    }
}

fn keeps_apart(path: &Path) -> Result<bool, LockError> {
    let (one, other) = (open(path)?, open(path)?);
    let whole = |file| lock(file, path, FlockOperation::NonBlockingLockExclusive);
    let byte = |file| action_lock::set(file, 0, true).map_err(|error| refused(error, path));
    Ok(whole(&one)? && !whole(&other)? && byte(&one)? && !byte(&other)?)
}

fn open(path: &Path) -> Result<File, StoreError> {
    disk::open_or_create(path).context("open", path)
}

/// Whether the lock could be had through this descriptor.
pub(crate) fn lock(file: &File, path: &Path, how: FlockOperation) -> Result<bool, LockError> {
    loop {
        match rustix::fs::flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(e) => return Err(refused(e.into(), path)),
        }
    }
}

pub(crate) fn refused(error: std::io::Error, path: &Path) -> LockError {
    match Errno::from_io_error(&error) {
        Some(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            LockError::Unsupported { path: path.to_owned() }
        }
        _ => LockError::Store(StoreError::Io { action: "lock", path: path.to_owned(), source: error }),
    }
}

/// Writes down which process has a lock, for people.
fn sign(file: &File, path: &Path) -> Result<(), StoreError> {
    let text = format!("{}\n", std::process::id());
    disk::shorten(file, path, 0)
        .and_then(|()| disk::write(file, path, text.as_bytes()))
        .context("write", path)
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(32).read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
