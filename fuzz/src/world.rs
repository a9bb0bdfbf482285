//! A small project in memory: every path is a file, every word a program.

use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_spec::{Found, World};

pub(crate) struct Project;

impl World for Project {
    fn look(&self, path: &str) -> Option<Found> {
        Some(Found { folder: path.ends_with("dir"), executable: path.ends_with(".sh") })
    }

    fn text(&self, path: &str) -> Option<String> {
        // The path is the text: a fuzzer can then write Python as well.
        path.ends_with(".py").then(|| path.trim_end_matches(".py").replace(';', "\n"))
    }

    fn program(&self, word: &str) -> Option<BlobDigest> {
        Some(BlobDigest::of(word.as_bytes()))
    }

    fn artifact(&self, path: &str) -> Result<Artifact, String> {
        Ok(Artifact::Blob(BlobDigest::of(path.as_bytes())))
    }

    fn code(&self, paths: &[String]) -> Result<TreeDigest, String> {
        Ok(TreeDigest::from_bytes(*BlobDigest::of(paths.join("\n").as_bytes()).as_bytes()))
    }
}
