//! Who executes an action: one lock a digest, all on one file.
//!
//! A run holds the lock of an action from before its attempt starts until the attempt is in the index, so that
//! no two runs execute the same action at the same time. The lock is one byte of `.avow/actions.lock` at an
//! offset made from the digest. It belongs to an open file description, hence to this value and not to the
//! process, and the kernel releases it with the process: nothing is left to clear. Two digests that share 62
//! bits would merely wait for each other.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use avow_model::digest::ActionDigest;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, flock};

use crate::disk;
use crate::error::{Context, StoreError};
use crate::lock::{LockError, refused};
use crate::project::Project;

/// The locks on actions that one run holds.
#[derive(Debug)]
pub struct ActionLocks {
    file: File,
    path: PathBuf,
}

impl ActionLocks {
    /// Opens the file of the locks. The store folder must exist; [`crate::RunLock`] has tried whether locks work.
    pub fn open(project: &Project) -> Result<ActionLocks, StoreError> {
        let path = project.store().join("actions.lock");
        Ok(ActionLocks { file: disk::open_or_create(&path).context("open", &path)?, path })
    }

    /// Takes the lock of an action; false where another run has it. One that we have is ours again.
    pub fn try_take(&self, action: ActionDigest) -> Result<bool, LockError> {
        set(&self.file, offset(action), true).map_err(|error| refused(error, &self.path))
    }

    /// Gives the lock of an action back.
    pub fn release(&self, action: ActionDigest) -> Result<(), LockError> {
        set(&self.file, offset(action), false).map(drop).map_err(|error| refused(error, &self.path))
    }

    /// Whether another run has the lock of an action now.
    pub fn is_taken(&self, action: ActionDigest) -> Result<bool, LockError> {
        let mut range = range(offset(action), F_WRLCK);
        let asked = fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut range));
        asked.map_err(|error| refused(error.into(), &self.path))?;
        Ok(i32::from(range.l_type) != F_UNLCK)
    }
}

/// Takes or gives back the lock on one byte; false where another description holds it.
pub(crate) fn set(file: &File, offset: i64, take: bool) -> io::Result<bool> {
    let range = range(offset, if take { F_WRLCK } else { F_UNLCK });
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
            Ok(_) => return Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn range(offset: i64, kind: i32) -> flock {
    debug_assert!(kind != F_RDLCK, "locks on actions are never shared");
    flock {
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(SEEK_SET).unwrap_or_default(),
        l_start: offset,
        l_len: 1,
        l_pid: 0,
    }
}

/// Below 2^62, so that the end of the range is a file offset too.
fn offset(action: ActionDigest) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&action.as_bytes()[..8]);
    i64::from_le_bytes(bytes) & (i64::MAX >> 1)
}
