//! Every blob that an artifact or an action rests on.

use std::collections::HashSet;

use avow_model::action::Action;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::{BlobStore, StoreError};

/// The most trees inside one another.
const DEPTH: usize = 32;

/// What an artifact rests on, as far as it can be seen from here.
#[derive(Debug, Default)]
pub(crate) struct Closure {
    /// Every blob, each once; records of folders stand before what they name.
    pub(crate) blobs: Vec<BlobDigest>,
    /// Those that are not here. What a missing record names cannot be seen.
    pub(crate) missing: Vec<BlobDigest>,
    seen: HashSet<BlobDigest>,
}

impl Closure {
    /// Of everything that an action lays out, and what says whether it can be carried out.
    ///
    /// # Errors
    /// Those of the store; a blob that is missing or damaged is no error but [`Closure::missing`].
    pub(crate) fn of_action(blobs: &dyn BlobStore, action: &Action) -> Result<Closure, StoreError> {
        let mut closure = Closure::default();
        for artifact in artifacts(action) {
            closure.add(blobs, artifact, 0)?;
        }
        Ok(closure)
    }

    /// Of one artifact.
    ///
    /// # Errors
    /// As [`Closure::of_action`].
    pub(crate) fn of_artifact(blobs: &dyn BlobStore, artifact: Artifact) -> Result<Closure, StoreError> {
        let mut closure = Closure::default();
        closure.add(blobs, artifact, 0)?;
        Ok(closure)
    }

    fn add(&mut self, blobs: &dyn BlobStore, artifact: Artifact, depth: usize) -> Result<(), StoreError> {
        let digest = artifact.blob();
        if depth > DEPTH || !self.seen.insert(digest) {
            return Ok(());
        }
        self.blobs.push(digest);
        let here = match (artifact, blobs.contains(digest)) {
            (_, Err(error)) => Err(error),
            (Artifact::Tree(tree), Ok(true)) => {
                self.entries(blobs, &read_record(blobs, tree)?, depth).map(|()| true)
            }
            (_, Ok(here)) => Ok(here),
        };
        match here {
            Ok(true) => {}
            Ok(false) => self.missing.push(digest),
            // A damaged one is moved aside when sound bytes arrive under its name.
            Err(error) if error.is_unusable_blob() => self.missing.push(digest),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn entries(&mut self, blobs: &dyn BlobStore, tree: &Tree, depth: usize) -> Result<(), StoreError> {
        for entry in tree.entries.values() {
            match entry {
                Entry::File { digest, .. } => self.add(blobs, Artifact::Blob(*digest), depth + 1)?,
                Entry::Tree { digest } => self.add(blobs, Artifact::Tree(*digest), depth + 1)?,
                Entry::Link { .. } | Entry::Empty => {}
            }
        }
        Ok(())
    }
}

/// Code and inputs of an action, and the record of what its programs load.
pub(crate) fn artifacts(action: &Action) -> impl Iterator<Item = Artifact> {
    let loads = action.loads.map(Artifact::Blob);
    action.code.map(Artifact::Tree).into_iter().chain(loads).chain(action.inputs.values().copied())
}
