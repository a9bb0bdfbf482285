//! Blobs in a map: for tests and for looking at a plan without a store.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use avow_model::digest::BlobDigest;

use super::{BlobStore, Intake};
use crate::error::{Context, StoreError};
use crate::files;

/// A store that is gone with its value.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<BlobDigest, Vec<u8>>>);

impl MemoryBlobs {
    /// An empty store.
    pub fn new() -> MemoryBlobs {
        MemoryBlobs::default()
    }

    /// Puts bytes under a name that may not be theirs, for tests of damage.
    pub fn damage(&self, digest: BlobDigest, bytes: &[u8]) {
        self.map().insert(digest, bytes.to_vec());
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<BlobDigest, Vec<u8>>> {
        // Every change is one call on the map, so a panic elsewhere cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sound(digest: BlobDigest, bytes: &[u8]) -> Result<(), StoreError> {
    let found = BlobDigest::of(bytes);
    if found == digest { Ok(()) } else { Err(StoreError::Corrupt { digest, found }) }
}

impl BlobStore for MemoryBlobs {
    fn contains(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        self.map().get(&digest).map_or(Ok(false), |bytes| sound(digest, bytes).map(|()| true))
    }

    fn read(&self, digest: BlobDigest) -> Result<Vec<u8>, StoreError> {
        let bytes = self.map().get(&digest).cloned().ok_or(StoreError::Missing { digest })?;
        sound(digest, &bytes).map(|()| bytes)
    }

    fn open_path(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        if self.contains(digest)? { Ok(None) } else { Err(StoreError::Missing { digest }) }
    }

    fn put(&self, bytes: &[u8]) -> Result<BlobDigest, StoreError> {
        let digest = BlobDigest::of(bytes);
        self.map().insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn put_file(&self, path: &Path, how: Intake) -> Result<(BlobDigest, u64), StoreError> {
        let mut bytes = Vec::new();
        files::open_plain(path)?.read_to_end(&mut bytes).context("read", path)?;
        let digest = self.put(&bytes)?;
        if how == Intake::Move {
            fs::remove_file(path).context("remove", path)?;
        }
        Ok((digest, bytes.len() as u64))
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn size(&self, digest: BlobDigest) -> Result<Option<u64>, StoreError> {
        Ok(self.map().get(&digest).map(|bytes| bytes.len() as u64))
    }

    fn list(&self) -> Result<Vec<BlobDigest>, StoreError> {
        Ok(self.map().keys().copied().collect())
    }

    fn quarantine(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        self.map().remove(&digest);
        Ok(None)
    }
}
