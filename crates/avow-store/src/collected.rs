//! Which attempts were collected: their blobs are gone on purpose, their records stay.
//!
//! `.avow/collected.jsonl` has one line a collection. It is written and synced before the first blob goes, so
//! that a crash in between leaves blobs that nothing names, never an attempt whose blobs are gone unsaid.
//! Journals are not touched: an attempt that was collected can still be read, and is never found again.

use std::collections::HashMap;
use std::fs;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;

use avow_model::attempt::Timestamp;
use avow_model::digest::AttemptDigest;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
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

fn path(project: &Project) -> PathBuf {
    project.store().join("collected.jsonl")
}

/// All collections, in order; none where nothing was ever collected. A torn last line is none: its collection
/// removed nothing.
pub fn read(project: &Project) -> Result<Vec<Collection>, StoreError> {
    let path = path(project);
    let text = match fs::read_to_string(&path) {
        Err(e) if files::absent(&e) => return Ok(Vec::new()),
        other => other.context("read", &path)?,
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let lines = whole.lines().enumerate();
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| StoreError::Journal {
                path: path.clone(),
                line: number + 1,
                reason: error.to_string(),
            })
        })
        .collect()
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
    let path = path(project);
    let before = match fs::read(&path) {
        Err(e) if files::absent(&e) => Vec::new(),
        other => other.context("read", &path)?,
    };
    let intact = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) as u64;
    let line = serde_json::to_string(collection).expect("a collection holds only JSON values") + "\n";
    let mut file = disk::open_or_create(&path).context("open", &path)?;
    disk::shorten(&file, &path, intact).context("shorten", &path)?;
    file.seek(SeekFrom::Start(intact)).context("write", &path)?;
    disk::write(&file, &path, line.as_bytes())
        .and_then(|()| disk::sync(&file, &path, true))
        .context("append to", &path)?;
    files::sync_folder(&project.store())
}
