//! Whose fault it is, decided where it happens.
//!
//! A step of an attempt can end the attempt in two ways: with an [`Outcome`], which is a value that is recorded
//! (the user's program, or the machine), or with an [`ExecError`], which is a fault of Avow or of its evidence
//! and stops the run.

use std::io;
use std::path::Path;

use avow_model::attempt::{Failure, Outcome};
use avow_model::digest::BlobDigest;
use avow_store::materialise::MaterialiseError;
use avow_store::{Fault as StoreFault, StoreError};

use crate::confine::Confinement;

/// A fault of our own; a stage that fails is an [`Outcome`] instead.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// A blob that the action names is missing or damaged.
    #[error("an attempt could not be given its files")]
    Store(#[source] StoreError),
    /// An action that no correct plan produces.
    #[error("the action cannot be laid out: {reason}")]
    Action {
        /// What is wrong with it.
        reason: String,
    },
    /// A blob that was linked into a working folder has other bytes now.
    #[error("`{}` was changed while a stage could read it at `{mount}`; it held the blob `{digest}`", file.display())]
    InputChanged {
        /// The blob.
        digest: BlobDigest,
        /// Where it was mounted.
        mount: String,
        /// The file: the store's own, or where data lie that are kept by reference.
        file: std::path::PathBuf,
    },
    /// The level of confinement that was asked for is not to be had.
    #[error("stages cannot be confined at level `{level}` on this machine")]
    Confinement {
        /// The level.
        level: Confinement,
        /// What is missing.
        source: io::Error,
    },
    /// The executor could not be set up.
    #[error("cannot prepare the folder of attempts `{}`", path.display())]
    Work {
        /// The folder.
        path: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process could not be waited for.
    #[error("lost sight of the process of attempt `{attempt}`")]
    Wait {
        /// The attempt.
        attempt: String,
        /// What the system said.
        source: io::Error,
    },
    /// A worker refuses, and would refuse again.
    #[error("{reason}")]
    Worker {
        /// Which, and why.
        reason: String,
    },
    /// No worker answers.
    #[error("no worker answers: {reasons}")]
    NoWorker {
        /// What became of each.
        reasons: String,
    },
    /// No place of the pool can carry an action out.
    #[error("no place can carry an action out: {0}")]
    Unplaceable(crate::pool::Unplaceable),
    /// The thread of an attempt ended without a result.
    #[error("the thread of an attempt ended without a result")]
    Thread(#[source] tokio::task::JoinError),
}

/// How a step ends an attempt early.
#[derive(Debug)]
pub(crate) enum Fault {
    /// With a value that is recorded.
    Outcome(Outcome),
    /// With an error of ours.
    Ours(ExecError),
}

impl From<ExecError> for Fault {
    fn from(error: ExecError) -> Self {
        Fault::Ours(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Io { source, .. } => machine(&error.to_string(), source),
            _ if error.fault() == StoreFault::Machine => {
                Fault::Outcome(Outcome::Failed(Failure::Machine(error.to_string())))
            }
            _ => Fault::Ours(ExecError::Store(error)),
        }
    }
}

impl From<MaterialiseError> for Fault {
    fn from(error: MaterialiseError) -> Self {
        match error {
            MaterialiseError::Store(error) => error.into(),
            other => {
                let mut reason = other.to_string();
                if let Some(cause) = std::error::Error::source(&other) {
                    reason = format!("{reason}: {cause}");
                }
                Fault::Ours(ExecError::Action { reason })
            }
        }
    }
}

/// A failure of the machine: what could not be done, and what the system said.
pub(crate) fn machine(what: &str, error: &io::Error) -> Fault {
    Fault::Outcome(Outcome::Failed(Failure::Machine(format!("{what}: {error}"))))
}

/// [`machine`] for an act on a path.
pub(crate) fn at<'a>(action: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Fault + 'a {
    move |error| machine(&format!("cannot {action} `{}`", path.display()), &error)
}
