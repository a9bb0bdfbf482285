//! Pins: what a person wants kept, whatever the policy says.
//!
//! One small file a pin, `.avow/pins/NAME`, so that two commands cannot lose each other's, and so that a pin can be
//! read and removed with ordinary tools.

use std::fs;
use std::path::PathBuf;

use avow_model::attempt::Timestamp;
use avow_model::digest::{AttemptDigest, BlobDigest};
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;

/// What is kept under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// When it was pinned.
    pub at: Timestamp,
    /// What the person wrote: a member or a digest.
    pub what: String,
    /// Attempts, with everything they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptDigest>,
    /// Blobs; a folder's record stands for the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<BlobDigest>,
}

fn folder(project: &Project) -> PathBuf {
    project.store().join("pins")
}

/// All pins by name.
pub fn read(project: &Project) -> Result<Vec<(String, Pin)>, StoreError> {
    let folder = folder(project);
    let list = match fs::read_dir(&folder) {
        Err(e) if files::absent(&e) => return Ok(Vec::new()),
        other => other.context("list", &folder)?,
    };
    let mut pins = Vec::new();
    for entry in list {
        let path = entry.context("list", &folder)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if name.starts_with('.') {
            continue;
        }
        let text = fs::read(&path).context("read", &path)?;
        let pin = serde_json::from_slice(&text).map_err(|error| StoreError::Journal {
            path: path.clone(),
            line: error.line(),
            reason: error.to_string(),
        })?;
        pins.push((name, pin));
    }
    pins.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(pins)
}

/// Sets a pin, replacing one of the same name.
pub fn set(project: &Project, name: &str, pin: &Pin) -> Result<(), StoreError> {
    files::check_name(name)?;
    let folder = folder(project);
    disk::create_folders(&folder).context("create", &folder)?;
    let text = serde_json::to_vec(pin).expect("a pin holds only JSON values");
    files::write_whole(&folder.join(name), &text)
}

/// Removes a pin; whether there was one.
pub fn remove(project: &Project, name: &str) -> Result<bool, StoreError> {
    files::check_name(name)?;
    let path = folder(project).join(name);
    match disk::remove_file(&path) {
        Err(e) if files::absent(&e) => Ok(false),
        other => other.map(|()| true).context("remove", &path),
    }
}
