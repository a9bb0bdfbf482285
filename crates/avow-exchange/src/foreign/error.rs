//! Why a crate is refused.

use std::io;
use std::path::PathBuf;

/// A failure to read a crate.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
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
    /// The folder is no crate.
    #[error("it has no `ro-crate-metadata.json`")]
    NoCrate,
    /// An archive that is not read.
    #[error("the archive is refused: {0}")]
    Archive(String),
    /// The metadata are not what a crate has.
    #[error("its metadata are not valid: {0}")]
    Metadata(String),
    /// An entity that cannot be believed or read.
    #[error("`{}` is refused: {reason}", id.escape_debug())]
    Entity {
        /// Its id.
        id: String,
        /// Why.
        reason: String,
    },
    /// More than this program is willing to read.
    #[error("it has more {what} than is allowed here: {found}, and the limit is {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much is allowed.
        limit: u64,
    },
    /// A crate that says of nothing how it was made.
    #[error("it describes no run: no action says what was made of what")]
    NoRun,
}

impl ForeignError {
    /// Whether the crate, not this machine, is at fault.
    pub fn is_of_the_crate(&self) -> bool {
        !matches!(self, ForeignError::Io { .. })
    }
}
