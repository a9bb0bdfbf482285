//! Which attempts were collected: their blobs are gone on purpose, their records stay.
//!
//! `.avow/collected.jsonl` has one line a collection. It is written and synced before the first blob goes, so
//! that a crash in between leaves blobs that nothing names, never an attempt whose blobs are gone unsaid.
//! Journals are not touched: an attempt that was collected can still be read, and is never found again.

use std::collections::HashMap;
use std::path::PathBuf;

use avow_model::attempt::Timestamp;
use avow_model::digest::AttemptDigest;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::lines;
use crate::lock::RunLock;
use crate::project::Project;

/// One collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// When it was.
    pub at: Timestamp,
    /// The attempts that lost blobs.
    pub attempts: Vec<AttemptDigest>,
    /// How many blobs went.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where the list of collections lies.
pub fn file(project: &Project) -> PathBuf {
    project.store().join("collected.jsonl")
}

/// All collections, in order; none where nothing was ever collected. A torn last line is none: its collection
/// removed nothing.
pub fn read(project: &Project) -> Result<Vec<Collection>, StoreError> {
    lines::read(&file(project))
}

/// When each collected attempt was collected.
pub fn dates(project: &Project) -> Result<HashMap<AttemptDigest, Timestamp>, StoreError> {
    let mut dates = HashMap::new();
    for collection in read(project)? {
        dates.extend(collection.attempts.into_iter().map(|attempt| (attempt, collection.at)));
    }
    Ok(dates)
}

/// Notes a collection; it survives a power cut when this returns.
pub(crate) fn append(
    project: &Project,
    _runner: &RunLock,
    collection: &Collection,
) -> Result<(), StoreError> {
    lines::append(&file(project), std::slice::from_ref(collection))
}
