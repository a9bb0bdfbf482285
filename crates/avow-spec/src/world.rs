//! What the checker asks of the world outside the text.
//!
//! The crate does no I/O: the command line answers these questions, with digests of zeros for `check` and
//! real ones for `plan`, `run` and `register`.

use avow_model::digest::{Artifact, BlobDigest, TreeDigest};

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// A folder, else a file.
    pub folder: bool,
    /// Whether its owner may execute it (files).
    pub executable: bool,
}

/// The project, as far as a spec is about it. Paths are relative to the project's root, with `/`.
pub trait World {
    /// What is at a path; `None` where there is nothing.
    fn look(&self, path: &str) -> Option<Found>;

    /// The text of a small file: Python sources for the import closure, lock files, scripts.
    fn text(&self, path: &str) -> Option<String>;

    /// The identity of a program that a command starts by a bare word; `None` where there is none.
    fn program(&self, word: &str) -> Option<BlobDigest>;

    /// The content of an input file or folder, or why it cannot be had.
    fn artifact(&self, path: &str) -> Result<Artifact, String>;

    /// The tree of these project files and folders at their paths, or why it cannot be had.
    fn code(&self, paths: &[String]) -> Result<TreeDigest, String>;

    /// The folder the spec stands in, for lock files beside it; the root where nothing is said.
    fn beside(&self) -> String {
        String::new()
    }

    /// Names in a folder, for hints only.
    fn names(&self, folder: &str) -> Vec<String> {
        let _ = folder;
        Vec::new()
    }
}
