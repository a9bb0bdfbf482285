//! What the checker asks of the world outside the text.
//!
//! The crate does no I/O: the command line answers these questions, with digests of zeros for `check` and
//! real ones for `plan`, `run` and `register`.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use serde::{Deserialize, Serialize};

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// A folder, else a file.
    pub folder: bool,
    /// Whether its owner may execute it (files).
    pub executable: bool,
}

/// What is asked about what a stage's programs load.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// The text that a shell is given, where one is.
    pub shell: Option<String>,
    /// Programs found by a word, which are identified already.
    pub programs: BTreeSet<String>,
    /// Programs that scripts start, which are not.
    pub called: BTreeSet<String>,
    /// Files of the project that may be programs.
    pub files: BTreeSet<String>,
    /// Modules that are not in the project.
    pub modules: BTreeSet<String>,
    /// The words of the interpreters that import them.
    pub interpreters: BTreeSet<String>,
}

/// What a stage's programs load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The digest of the record; `None` where they load nothing.
    pub loads: Option<BlobDigest>,
    /// Modules that nothing installed provides. Many imports are optional, so that is no fault by itself.
    pub missing: BTreeSet<String>,
    /// What could not be identified, in words.
    pub doubts: Vec<String>,
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

    /// The digest of the manifest (`sha256:…`) of an image in the project, an OCI layout or archive; or why it is none.
    fn image(&self, path: &str) -> Result<String, String> {
        Err(format!("nobody can read `{path}`"))
    }

    /// Keeps a text that no file of the project has, where content is kept; its digest.
    fn keep(&self, text: &str) -> BlobDigest {
        BlobDigest::of(text.as_bytes())
    }

    /// The content of a file or folder that stays where it is, in the project (relative) or elsewhere (absolute).
    fn reference(&self, path: &str) -> Result<Artifact, String> {
        self.artifact(path)
    }

    /// The tree of these project files and folders at their paths, or why it cannot be had.
    fn code(&self, paths: &[String]) -> Result<TreeDigest, String>;

    /// What a stage's programs load besides project files. Nothing where nobody looks.
    fn loads(&self, asked: &Asked) -> Answered {
        let _ = asked;
        Answered::default()
    }

    /// The shared libraries of the project that a compiled program of the project loads.
    fn libraries(&self, program: &str) -> Vec<String> {
        let _ = program;
        Vec::new()
    }

    /// Versions of the packages that are installed for an interpreter, by normalised name; `None` where that is
    /// not known.
    fn installed(&self, interpreter: &str) -> Option<BTreeMap<String, String>> {
        let _ = interpreter;
        None
    }

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
