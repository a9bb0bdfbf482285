//! How much room the store takes, and how much there is.

use std::fs;

use crate::blob::FileBlobs;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;
use crate::stamp::MemoryStamps;

/// Bytes of all blobs. Looks at every one.
pub fn used(project: &Project) -> Result<u64, StoreError> {
    let blobs = FileBlobs::new(project.clone(), std::sync::Arc::new(MemoryStamps::default()));
    let mut bytes = 0;
    for digest in blobs.survey()?.0 {
        let path = project.blob(digest);
        match fs::symlink_metadata(&path) {
            Ok(about) => bytes += about.len(),
            Err(e) if files::absent(&e) => {}
            Err(e) => return Err(e).context("look at", &path),
        }
    }
    Ok(bytes)
}

/// Bytes that are free for us on the file system of the store, or of the project where there is no store yet.
pub fn free(project: &Project) -> Result<u64, StoreError> {
    let store = project.store();
    let path = if store.is_dir() { store } else { project.root().to_owned() };
    let about = rustix::fs::statvfs(&path).context("look at", &path)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}
