//! Why a bundle cannot be written or is refused.

use std::io;
use std::path::PathBuf;

use avow_store::StoreError;
use avow_store::materialise::MaterialiseError;

/// A failure to write or to read a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
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
    /// The archive is not in the form in which bundles are written.
    #[error("the archive is not in the form of a bundle: {0}")]
    Structure(String),
    /// The manifest cannot be read.
    #[error("the manifest of the bundle is not valid: {0}")]
    Manifest(String),
    /// An entry is not what the manifest says.
    #[error("the entry `{name}` is not what the manifest says: {reason}")]
    Entry {
        /// The entry.
        name: String,
        /// What differs.
        reason: String,
    },
    /// More than this program is willing to read.
    #[error("the bundle has more {what} than is allowed here: {found}, and the limit is {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// Two files of the project that want the same place.
    #[error("`{0}` is wanted twice with different content")]
    Twice(String),
    /// Something that has no place in a bundle.
    #[error("`{0}` cannot be the name of an entry of a bundle")]
    Name(String),
    /// Places that name somebody and that cannot be changed without changing the evidence.
    #[error("names stand in what claims rest on: {}", .0.join(", "))]
    Identifying(Vec<String>),
    /// A history that cannot be written anew.
    #[error("the history of `{0}` is damaged, so it cannot be written without names")]
    History(String),
    /// An opening, or what it opens, is not what it should be.
    #[error("the opening does not open this bundle: {0}")]
    Opening(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tree could not be written out.
    #[error("the project's files cannot be laid out")]
    Materialise(#[from] MaterialiseError),
}

impl BundleError {
    /// Whether the bundle, not this machine, is at fault.
    pub fn is_of_the_bundle(&self) -> bool {
        match self {
            BundleError::Io { .. } | BundleError::Identifying(_) => false,
            BundleError::Store(error) => error.fault() == avow_store::Fault::Evidence,
            BundleError::Materialise(MaterialiseError::Store(error)) => {
                error.fault() == avow_store::Fault::Evidence
            }
            _ => true,
        }
    }
}

/// Adds to an error of the system what was attempted.
pub(super) trait Context<T> {
    /// On `path`.
    fn context(self, action: &'static str, path: &std::path::Path) -> Result<T, BundleError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &std::path::Path) -> Result<T, BundleError> {
        self.map_err(|source| BundleError::Io { action, path: path.to_owned(), source })
    }
}

impl<T> Context<T> for zip::result::ZipResult<T> {
    fn context(self, action: &'static str, path: &std::path::Path) -> Result<T, BundleError> {
        self.map_err(io::Error::from).context(action, path)
    }
}
