//! Data by reference: files that are hashed and recorded and stay where they are.
//!
//! `.avow/references.jsonl` has a line for every file or folder that a spec named with `keep: reference`, and what it
//! held then. A blob that the store does not hold itself is looked for among them: it is then the file outside, as
//! long as its bytes still have the digest, which is checked like a blob's own file, by stamp and else by hashing.
//! A folder's tree is stored as a record; only its files stay outside.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use avow_model::attempt::Timestamp;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, Tree};
use serde::{Deserialize, Serialize};

use crate::blob::{BlobStore, put_record};
use crate::error::{Context, StoreError};
use crate::ingest::{Ingest, IngestError};
use crate::lines;
use crate::project::Project;
use crate::stamp::{self, StampCache};

/// One file or folder outside, as it was when it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Where it lies: absolute.
    pub path: PathBuf,
    /// What it held.
    pub artifact: Artifact,
    /// When it was first recorded so.
    pub at: Timestamp,
}

fn file(project: &Project) -> PathBuf {
    project.store().join("references.jsonl")
}

/// Every reference, in the order in which they were recorded; none where there are none. A torn last line is none.
pub fn read(project: &Project) -> Result<Vec<Reference>, StoreError> {
    lines::read(&file(project))
}

/// The last that is known of every path.
pub fn latest(project: &Project) -> Result<Vec<Reference>, StoreError> {
    let last: BTreeMap<PathBuf, Reference> =
        read(project)?.into_iter().map(|reference| (reference.path.clone(), reference)).collect();
    Ok(last.into_values().collect())
}

/// Names a file or folder by its content and records where it lies. Its files are not copied; a folder's record is
/// stored. Costs one look a file where nothing changed.
pub fn record(
    project: &Project,
    path: &Path,
    blobs: &dyn BlobStore,
    stamps: &dyn StampCache,
) -> Result<Artifact, IngestError> {
    let ingest = Ingest::new(blobs, stamps);
    let path = fs::canonicalize(path).context("find", path)?;
    let artifact = if path.is_dir() {
        let folder = ingest.hash_folder(&path)?;
        put_record(blobs, &folder.tree)?;
        folder.artifact()
    } else {
        ingest.hash_file(&path)?.artifact()
    };
    let known = read(project)?.into_iter().rev().find(|reference| reference.path == path);
    if known.is_none_or(|reference| reference.artifact != artifact) {
        lines::append(&file(project), &[Reference { path, artifact, at: stamp::now() / 1_000_000 }])?;
    }
    Ok(artifact)
}

/// Where the files of all references lie, by digest: read when a blob is first missed, and again when a reference
/// was added.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<(u64, HashMap<BlobDigest, PathBuf>)>);

impl Places {
    /// The file outside that held this when it was recorded. The latest recorded one wins.
    pub(crate) fn find(&self, project: &Project, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        let Ok(about) = fs::metadata(file(project)) else { return Ok(None) };
        if let (length, known) = &*self.lock()
            && *length == about.len()
        {
            return Ok(known.get(&digest).cloned());
        }
        let mut places = HashMap::new();
        for reference in read(project)? {
            place(project, &reference, &mut places);
        }
        let found = places.get(&digest).cloned();
        *self.lock() = (about.len(), places);
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, HashMap<BlobDigest, PathBuf>)> {
        // Both are replaced at once, so a panic elsewhere cannot leave them half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(project: &Project, reference: &Reference, places: &mut HashMap<BlobDigest, PathBuf>) {
    match reference.artifact {
        Artifact::Blob(digest) => {
            places.insert(digest, reference.path.clone());
        }
        // Read from its own file: the store itself would look for a lost one among these places. One that is lost or
        // damaged is told by whoever needs it.
        Artifact::Tree(digest) => {
            let Ok(bytes) = fs::read(project.blob(digest.into())) else { return };
            if BlobDigest::of(&bytes) != digest.into() {
                return;
            }
            let Ok(tree) = Tree::from_bytes(&bytes) else { return };
            for (path, entry) in tree.entries {
                if let Entry::File { digest, .. } = entry {
                    places.insert(digest, reference.path.join(path));
                }
            }
        }
    }
}
