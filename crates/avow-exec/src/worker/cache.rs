//! The blobs that a worker keeps, and how it stays within its quota.
//!
//! A cache, not evidence: nothing is synced, and after a restart every blob is compared with its name before it
//! is used again. When the quota is exceeded the blobs that were not used for longest go first. Those that a running
//! attempt needs, or that are waiting to be fetched, stay, even if the quota is exceeded then. What has just come in
//! is likely to be needed by the next submission and stays as long as the quota is exceeded by a quarter only.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, FileBlobs, StoreError};

/// Blobs with an upper bound.
pub(crate) struct Cache {
    blobs: Arc<FileBlobs>,
    quota: u64,
    fresh: Duration,
    uses: Mutex<Uses>,
}

/// For how long a blob counts as just come in.
const FRESH: Duration = Duration::from_secs(30);

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
    at: Option<Instant>,
    pins: u32,
}

impl Use {
    fn is_fresh(&self, span: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < span)
    }
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
        let cache = Cache { blobs, quota, fresh: FRESH, uses: Mutex::default() };
        for (_, digest, size) in found {
            cache.uses().add(digest, size, None);
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
            uses.add(digest, size, Some(Instant::now()));
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
                uses.add(*digest, size, Some(Instant::now()));
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

    /// Removes what was not used for longest, down to nine tenths of the quota; what is fresh only where it must.
    fn shrink(&self) {
        let mut uses = self.uses();
        if uses.total <= self.quota {
            return;
        }
        let idle = |uses: &Uses, fresh: bool| {
            let of_kind = |used: &Use| used.pins == 0 && used.is_fresh(self.fresh) == fresh;
            let mut idle: Vec<(u64, BlobDigest)> = uses
                .of
                .iter()
                .filter(|(_, used)| of_kind(used))
                .map(|(digest, used)| (used.last, *digest))
                .collect();
            idle.sort_unstable();
            idle
        };
        let old = idle(&uses, false);
        self.remove(&mut uses, old, self.quota / 10 * 9);
        let most = self.quota.saturating_add(self.quota / 4);
        if uses.total > most {
            let fresh = idle(&uses, true);
            self.remove(&mut uses, fresh, most);
        }
    }

    /// Removes these, in order, until no more than `enough` bytes are left.
    fn remove(&self, uses: &mut Uses, idle: Vec<(u64, BlobDigest)>, enough: u64) {
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
    fn add(&mut self, digest: BlobDigest, size: u64, at: Option<Instant>) {
        self.clock += 1;
        let last = self.clock;
        let entry = self.of.entry(digest).or_default();
        self.total = self.total - entry.size + size;
        (entry.size, entry.last, entry.at) = (size, last, at);
    }

    fn touch(&mut self, digest: BlobDigest) {
        self.clock += 1;
        let last = self.clock;
        if let Some(entry) = self.of.get_mut(&digest) {
            (entry.last, entry.at) = (last, Some(Instant::now()));
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
        let blobs = Arc::new(FileBlobs::new(project, Arc::new(MemoryStamps::default())));
        let cache = Cache::open(blobs, quota).unwrap();
        // Nothing counts as fresh in these tests but where they say so.
        let mut cache = Arc::into_inner(cache).unwrap();
        cache.fresh = Duration::ZERO;
        Arc::new(cache)
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
    fn what_has_just_come_in_stays_as_long_as_it_is_not_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = Arc::into_inner(cache(&folder, 400)).unwrap();
        cache.fresh = FRESH;
        let cache = Arc::new(cache);
        let all = [1, 2, 3, 4, 5, 6, 7].map(|byte| put(&cache, byte));
        let kept = |digest| cache.blobs().contains(digest).unwrap();
        assert_eq!(all.map(kept), [false, false, true, true, true, true, true]);
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
        assert_eq!(cache(&folder, 50).blobs().list().unwrap(), [a], "the one that came in last fits");
    }
}
