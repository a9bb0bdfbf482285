//! What can go wrong with the store's own files, and whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

use avow_model::canonical::RecordError;
use avow_model::digest::BlobDigest;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted act, e.g. `read`.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A blob that is not in the store.
    #[error("the blob `{digest}` is not in the store")]
    Missing {
        /// Its name.
        digest: BlobDigest,
    },
    /// A blob whose bytes are not the ones its name promises.
    #[error("the blob `{digest}` is damaged: its bytes have the digest `{found}`")]
    Corrupt {
        /// Its name.
        digest: BlobDigest,
        /// The digest of what is there.
        found: BlobDigest,
    },
    /// Something that is not a regular file stands where one must.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file was written to while it was being read.
    #[error("`{}` was changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Data kept by reference that is no longer what was recorded.
    #[error("`{}`, which is kept by reference, {how}", path.display())]
    Origin {
        /// Where it lies.
        path: PathBuf,
        /// What it held.
        digest: BlobDigest,
        /// `is gone` or `was changed since it was recorded`.
        how: &'static str,
    },
    /// A blob that should hold a record does not.
    #[error("the blob `{digest}` does not hold the record it should")]
    Record {
        /// The blob.
        digest: BlobDigest,
        /// Why.
        source: RecordError,
    },
    /// A run's or an experiment's name that cannot name a file.
    #[error("`{name}` cannot name a file")]
    Name {
        /// The name.
        name: String,
    },
    /// A store written by a version of this program that knows more.
    #[error("the store `{}` has format `{found}`, and this program knows formats up to `{known}`", path.display())]
    Format {
        /// The store folder.
        path: PathBuf,
        /// Its format.
        found: String,
        /// The newest format known here.
        known: u32,
    },
    /// The index failed; it can be deleted and is rebuilt by the next command.
    #[error("the index failed")]
    Index {
        /// What it said.
        source: Box<sled::Error>,
    },
    /// The index holds a value that is none of ours.
    #[error("the index holds an unreadable {what}")]
    IndexValue {
        /// Which kind of value.
        what: &'static str,
    },
    /// The process that has the index open answered with a failure.
    #[error("the run that has the index open reports: {reason}")]
    Owner {
        /// Its words.
        reason: String,
    },
    /// The process that has the index open does not answer. Such a call is made again, to its successor.
    #[error("the run that has the index open does not answer")]
    OwnerGone {
        /// What the connection said.
        source: io::Error,
    },
    /// A journal that is damaged where no crash can have damaged it; nothing may be appended.
    #[error("the journal `{}` is damaged at line {line}: {reason}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A writer that could not take back a write that failed half-way, and takes no more.
    #[error("`{}` takes no more lines after a write that failed half-way", path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
    },
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The machine: disk full, too many open files, permission, a failing device.
    Machine,
    /// The evidence: something in the store is missing or damaged.
    Evidence,
    /// What was asked for: a name that cannot be, a file changed under our hands, a store that is too new.
    Request,
}

impl StoreError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            StoreError::Io { .. }
            | StoreError::Index { .. }
            | StoreError::Owner { .. }
            | StoreError::OwnerGone { .. }
            | StoreError::Poisoned { .. } => Fault::Machine,
            StoreError::Missing { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Origin { .. }
            | StoreError::NotAFile { .. }
            | StoreError::Record { .. }
            | StoreError::IndexValue { .. }
            | StoreError::Journal { .. } => Fault::Evidence,
            StoreError::Changed { .. } | StoreError::Name { .. } | StoreError::Format { .. } => {
                Fault::Request
            }
        }
    }

    /// Whether a blob is missing or damaged: what the engine treats as a miss.
    pub fn is_unusable_blob(&self) -> bool {
        matches!(
            self,
            StoreError::Missing { .. }
                | StoreError::Corrupt { .. }
                | StoreError::Origin { .. }
                | StoreError::NotAFile { .. }
                | StoreError::Record { .. }
        )
    }

    /// The kind of the operating system's refusal, if that is what it is.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            StoreError::Io { source, .. } => Some(source.kind()),
            StoreError::Index { source } => match &**source {
                sled::Error::Io(error) => Some(error.kind()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this process, or the system, has no file descriptor left.
    pub fn is_out_of_files(&self) -> bool {
        let source = match self {
            StoreError::Io { source, .. } => source,
            StoreError::Index { source } => match &**source {
                sled::Error::Io(error) => error,
                _ => return false,
            },
            _ => return false,
        };
        let known = rustix::io::Errno::from_io_error(source);
        matches!(known, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
    }

    /// Whether the disk, or the quota on it, is full.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self.io_kind(), Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

impl From<sled::Error> for StoreError {
    fn from(source: sled::Error) -> Self {
        StoreError::Index { source: Box::new(source) }
    }
}

/// Adds the act and the path to a refusal of the operating system.
pub(crate) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::Io { action, path: path.to_owned(), source: error.into() })
    }
}
