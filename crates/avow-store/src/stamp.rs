//! What a file's metadata says about whether its content can have changed.
//!
//! A digest may be remembered for a file and trusted as long as device, inode, size, modification time and
//! change time stay the same. That is sound only where a later write must change one of them. Time stamps have
//! a granularity, so a write within the same tick as the last one leaves no trace: a stamp is therefore
//! *settled* only when it was already older than the granularity at the moment the look began, and only settled
//! stamps are remembered. A file that was modified just before it was looked at is hashed again next time.
//!
//! Two limits remain, and are why everything that is signed, verified or bundled is hashed anew: a program that
//! keeps a shared writable map can write without touching the times, and a network file system whose clock runs
//! behind ours can make a fresh stamp look old.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use avow_model::digest::BlobDigest;
use serde::{Deserialize, Serialize};

use crate::error::{Context, StoreError};

const SECOND: i64 = 1_000_000_000;

/// Identity and times of a file, at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    /// The device it lies on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content was modified, in nanoseconds since 1970.
    pub modified: i64,
    /// When its inode was changed, in nanoseconds since 1970; programs cannot set it.
    pub changed: i64,
}

impl FileStamp {
    /// The stamp in a file's metadata.
    pub fn of(metadata: &Metadata) -> FileStamp {
        let nanoseconds = |s: i64, ns: i64| s.saturating_mul(SECOND).saturating_add(ns);
        FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The stamp of a folder: it changes when a name in it does.
    pub fn of_folder(folder: &Path) -> Result<FileStamp, StoreError> {
        Ok(FileStamp::of(&std::fs::metadata(folder).context("look at", folder)?))
    }

    /// Whether every write after `look` (nanoseconds since 1970) must leave another stamp.
    pub fn settled(&self, look: i64) -> bool {
        // Kernels stamp with a clock that ticks every 1 to 10 ms; whole seconds betray a file system that keeps
        // no more than seconds (or, FAT, every second one).
        let coarse = self.modified % SECOND == 0 && self.changed % SECOND == 0;
        let granularity = if coarse { 2 * SECOND } else { 20_000_000 };
        self.modified.max(self.changed) < look.saturating_sub(granularity)
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.device.to_be_bytes());
        key[8..].copy_from_slice(&self.inode.to_be_bytes());
        key
    }

    /// Identity and state, for caches.
    pub(crate) fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        bytes[..16].copy_from_slice(&self.identity());
        bytes[16..].copy_from_slice(&self.state());
        bytes
    }

    /// The stamp that gave these bytes.
    pub(crate) fn from_bytes(bytes: [u8; 40]) -> FileStamp {
        let mut numbers = bytes.chunks_exact(8).map(|part| {
            let mut number = [0; 8];
            number.copy_from_slice(part);
            u64::from_be_bytes(number)
        });
        let mut next = || numbers.next().unwrap_or_default();
        FileStamp {
            device: next(),
            inode: next(),
            size: next(),
            modified: next().cast_signed(),
            changed: next().cast_signed(),
        }
    }

    /// Whether a file in such a state had the size that it has now.
    pub(crate) fn is_as_large(&self, state: &[u8]) -> bool {
        state.starts_with(&self.size.to_be_bytes())
    }

    /// In which state it was.
    pub(crate) fn state(&self) -> [u8; 24] {
        let mut value = [0; 24];
        value[..8].copy_from_slice(&self.size.to_be_bytes());
        value[8..16].copy_from_slice(&self.modified.to_be_bytes());
        value[16..].copy_from_slice(&self.changed.to_be_bytes());
        value
    }
}

/// The present, in nanoseconds since 1970: when a look begins.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Digests by stamp. Holds one state per file; a newer one replaces it. Never evidence: it may be emptied.
pub trait StampCache: Send + Sync {
    /// The digest remembered for exactly this stamp.
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError>;

    /// The digest last remembered for this file when it was as large as now, in whatever state: a guess at what it
    /// holds, for whoever compares. A cache may answer that it knows none.
    fn earlier_digest(&self, _stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        Ok(None)
    }

    /// Remembers digests. The caller gives settled stamps only.
    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError>;
}

/// By which file it is: in which state it was, and what it held then.
type States = HashMap<[u8; 16], ([u8; 24], BlobDigest)>;

/// A cache that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryStamps(Mutex<States>);

impl StampCache for MemoryStamps {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known
            .get(&stamp.identity())
            .filter(|(state, _)| *state == stamp.state())
            .map(|(_, digest)| *digest))
    }

    fn earlier_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.get(&stamp.identity()).filter(|(state, _)| stamp.is_as_large(state));
        Ok(earlier.map(|(_, digest)| *digest))
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(entries.iter().map(|(stamp, digest)| (stamp.identity(), (stamp.state(), *digest))));
        Ok(())
    }
}
