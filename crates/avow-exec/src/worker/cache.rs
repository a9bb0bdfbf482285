//! The blobs that a worker keeps, and how it stays within its quota.
//!
//! A cache, not evidence: nothing is synced, and after a restart every blob is compared with its name before it
//! is used again. When the quota is exceeded the blobs that were not used for longest go first; those that a
//! running or an unfetched attempt needs stay, even if the quota is exceeded then.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, FileBlobs, StoreError};

/// Blobs with an upper bound.
pub(crate) struct Cache {
    blobs: Arc<FileBlobs>,
    quota: u64,
    uses: Mutex<Uses>,
}

#[derive(Default)]
struct Uses {
    of: HashMap<BlobDigest, Use>,
    total: u64,
    clock: u64,
}

#[derive(Clone, Copy, Default)]
struct Use {
    size: u64,
    last: u64,
    pins: u32,
}

/// Blobs that stay while this lives.
pub(crate) struct Pins {
    cache: Arc<Cache>,
    blobs: Vec<BlobDigest>,
}

impl Cache {
    /// The blobs of a store, at most `quota` bytes of them. What is there already counts as used when it came in.
    pub(crate) fn open(blobs: Arc<FileBlobs>, quota: u64) -> Result<Arc<Cache>, StoreError> {
        let mut found = Vec::new();
        for digest in blobs.list()? {
            // A file that goes meanwhile is not there.
            if let Ok(about) = fs::metadata(blobs.path(digest)) {
                found.push(((about.mtime(), about.mtime_nsec()), digest, about.size()));
            }
        }
        found.sort_unstable();
        let cache = Cache { blobs, quota, uses: Mutex::default() };
        for (_, digest, size) in found {
            cache.uses().add(digest, size);
        }
        cache.shrink();
        Ok(Arc::new(cache))
    }

    /// The store below.
    pub(crate) fn blobs(&self) -> &Arc<FileBlobs> {
        &self.blobs
    }

    /// Whether a sound blob is here; that counts as a use. A damaged one is not here.
    pub(crate) fn has(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        match self.blobs.contains(digest) {
            Ok(true) => {
                self.uses().touch(digest);
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(error) if error.is_unusable_blob() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes a blob that has come in, and makes room.
    pub(crate) fn came(&self, digest: BlobDigest, size: u64) {
        let over = {
            let mut uses = self.uses();
            uses.add(digest, size);
            uses.total > self.quota
        };
        if over {
            self.shrink();
        }
    }

    /// Notes blobs that attempts have put into the store, and keeps them until the pins go.
    pub(crate) fn pin(self: &Arc<Self>, blobs: Vec<BlobDigest>) -> Pins {
        let mut uses = self.uses();
        for digest in &blobs {
            if !uses.of.contains_key(digest) {
                let size = self.blobs.size(*digest).ok().flatten().unwrap_or(0);
                uses.add(*digest, size);
            }
            uses.touch(*digest);
            if let Some(found) = uses.of.get_mut(digest) {
                found.pins += 1;
            }
        }
        drop(uses);
        Pins { cache: Arc::clone(self), blobs }
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what was not used for longest, down to nine tenths of the quota.
    fn shrink(&self) {
        let mut uses = self.uses();
        if uses.total <= self.quota {
            return;
        }
        let enough = self.quota / 10 * 9;
        let mut idle: Vec<(u64, BlobDigest)> = uses
            .of
            .iter()
            .filter(|(_, used)| used.pins == 0)
            .map(|(digest, used)| (used.last, *digest))
            .collect();
        idle.sort_unstable();
        for (_, digest) in idle {
            if uses.total <= enough {
                break;
            }
            match fs::remove_file(self.blobs.path(digest)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(%digest, %error, "a blob of the cache cannot be removed");
                }
                _ => uses.remove(digest),
            }
        }
    }
}

impl Uses {
    fn add(&mut self, digest: BlobDigest, size: u64) {
        self.clock += 1;
        let last = self.clock;
        let entry = self.of.entry(digest).or_default();
        self.total = self.total - entry.size + size;
        (entry.size, entry.last) = (size, last);
    }

    fn touch(&mut self, digest: BlobDigest) {
        self.clock += 1;
        let last = self.clock;
        if let Some(entry) = self.of.get_mut(&digest) {
            entry.last = last;
        }
    }

    fn remove(&mut self, digest: BlobDigest) {
        if let Some(entry) = self.of.remove(&digest) {
            self.total -= entry.size;
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let mut uses = self.cache.uses();
        for digest in &self.blobs {
            if let Some(entry) = uses.of.get_mut(digest) {
                entry.pins = entry.pins.saturating_sub(1);
            }
        }
        let over = uses.total > self.cache.quota;
        drop(uses);
        if over {
            self.cache.shrink();
        }
    }
}

#[cfg(test)]
mod tests {
    use avow_store::{MemoryStamps, Project};

    use super::*;

    fn cache(folder: &tempfile::TempDir, quota: u64) -> Arc<Cache> {
        let project = Project::at(folder.path());
        project.create().unwrap();
        Cache::open(Arc::new(FileBlobs::new(project, Arc::new(MemoryStamps::default()))), quota).unwrap()
    }

    fn put(cache: &Cache, byte: u8) -> BlobDigest {
        let digest = cache.blobs().put(&[byte; 100]).unwrap();
        cache.came(digest, 100);
        digest
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_what_is_pinned_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder, 400);
        let [a, b, c, d] = [1, 2, 3, 4].map(|byte| put(&cache, byte));
        let pins = cache.pin(vec![b]);
        assert!(cache.has(a).unwrap(), "and is used by that");
        let e = put(&cache, 5);
        let here = |digest| cache.has(digest).unwrap();
        assert_eq!([a, b, c, d, e].map(here), [true, true, false, false, true]);
        drop(pins);
        let [f, g] = [6, 7].map(|byte| put(&cache, byte));
        assert_eq!([b, f, g].map(here), [false, true, true]);
    }

    #[test]
    fn a_restart_counts_what_is_there_and_a_damaged_blob_is_not_here() {
        let folder = tempfile::tempdir().unwrap();
        let first = cache(&folder, 1000);
        let [a, b] = [1, 2].map(|byte| put(&first, byte));
        drop(first);
        let path = Project::at(folder.path()).blob(a);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other bytes").unwrap();
        let again = cache(&folder, 1000);
        assert!(!again.has(a).unwrap() && again.has(b).unwrap());
        assert_eq!(cache(&folder, 50).blobs().list().unwrap(), []);
    }
}
