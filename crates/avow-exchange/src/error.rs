//! Why something cannot be exported.

use std::io;
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use avow_store::StoreError;
use avow_store::materialise::MaterialiseError;

use crate::bundle::BundleError;

/// A failure to write evidence in a foreign form.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The operating system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted act.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something lies where the export should go.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// A blob whose bytes are not what its name says.
    #[error("the blob {digest} holds other bytes than its name says")]
    Changed {
        /// The blob.
        digest: BlobDigest,
    },
    /// Two files that want the same place.
    #[error("`{0}` is wanted twice with different content")]
    Twice(String),
    /// An entity that names one that is not there: a fault of the writer, found before anything is published.
    #[error("the entity `{from}` names `{to}`, which is not described")]
    Dangling {
        /// Where it is named.
        from: String,
        /// What is named.
        to: String,
    },
    /// A citation file that cannot be read.
    #[error("`CITATION.cff` is not understood: {0}")]
    Citation(String),
    /// The project's files could not be gathered.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tree could not be written out.
    #[error("files cannot be laid out")]
    Materialise(#[from] MaterialiseError),
}

/// Adds to an error of the system what was attempted.
pub(crate) trait Context<T> {
    /// On `path`.
    fn context(self, action: &'static str, path: &Path) -> Result<T, ExchangeError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, ExchangeError> {
        self.map_err(|source| ExchangeError::Io { action, path: path.to_owned(), source })
    }
}
