//! The project's own files, as a plan names them: code, inputs and lock files, each at its path.

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Plan, Source};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::materialise::flatten;
use avow_store::{BlobStore, FileBlobs, StoreError};

use crate::bundle::BundleError;

/// Files gathered into one tree.
pub(crate) struct Files<'a> {
    blobs: &'a FileBlobs,
    /// Whether data that the store knows by reference only are left where they are.
    own_only: bool,
    /// What was gathered.
    pub tree: Tree,
    /// Paths whose blobs are not there.
    pub without: Vec<String>,
}

impl<'a> Files<'a> {
    /// Everything that is there.
    pub fn new(blobs: &'a FileBlobs) -> Files<'a> {
        Files { blobs, own_only: false, tree: Tree::default(), without: Vec::new() }
    }

    /// Only what the store holds itself.
    pub fn own(blobs: &'a FileBlobs) -> Files<'a> {
        Files { own_only: true, ..Files::new(blobs) }
    }

    /// The files of a plan.
    pub fn plan(&mut self, plan: &Plan) -> Result<(), BundleError> {
        for stage in &plan.stages {
            if let Some(code) = stage.code {
                self.folder("", Artifact::Tree(code))?;
            }
            if let Some(environment) = &stage.environment {
                self.artifact(&environment.path, Artifact::Blob(environment.lock))?;
            }
            for input in stage.inputs.values() {
                if let Source::Path { path, artifact } = &input.from
                    && !path.starts_with('/')
                {
                    self.artifact(path, *artifact)?;
                }
            }
        }
        Ok(())
    }

    /// A file or folder at a path.
    pub fn artifact(&mut self, path: &str, artifact: Artifact) -> Result<(), BundleError> {
        match artifact {
            Artifact::Tree(_) => self.folder(path, artifact),
            Artifact::Blob(digest) => self.entry(path, Entry::File { digest, executable: false }),
        }
    }

    fn folder(&mut self, path: &str, artifact: Artifact) -> Result<(), BundleError> {
        let Artifact::Tree(digest) = artifact else { return self.artifact(path, artifact) };
        let tree: Tree = match read_record(self.blobs, digest) {
            Err(StoreError::Missing { .. }) => {
                self.without.push(path.to_owned());
                return Ok(());
            }
            other => other?,
        };
        let flat = flatten(self.blobs, &tree)?.entries;
        if flat.is_empty() && !path.is_empty() {
            self.entry(path, Entry::Empty)?;
        }
        for (inner, entry) in flat {
            let inner = if path.is_empty() { inner } else { format!("{path}/{inner}") };
            self.entry(&inner, entry)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &str, entry: Entry) -> Result<(), BundleError> {
        if let Entry::File { digest, .. } = entry
            && !self.has(digest)?
        {
            self.without.push(path.to_owned());
            return Ok(());
        }
        match (self.tree.entries.get(path), &entry) {
            // As code a file may be executable, as an input it is not: the same bytes are one file.
            (Some(Entry::File { digest: a, executable: true }), Entry::File { digest: b, .. }) if a == b => {
                return Ok(());
            }
            (Some(Entry::File { digest: a, .. }), Entry::File { digest: b, .. }) if a == b => {}
            (Some(before), _) if *before != entry => return Err(BundleError::Twice(path.to_owned())),
            _ => {}
        }
        self.tree.insert(path, entry).map_err(|error| BundleError::Materialise(error.into()))
    }

    fn has(&self, digest: BlobDigest) -> Result<bool, BundleError> {
        let there = self.blobs.size(digest)?.is_some();
        Ok(there && (!self.own_only || self.blobs.path(digest).is_file()))
    }
}
