//! Bytes under the names that their digests give them.
//!
//! [`BlobStore`] is the contract; [`FileBlobs`] keeps plain read-only files, [`MemoryBlobs`] a map for tests and
//! dry runs. One suite (`tests/blobs.rs`) holds both to it. A blob enters once and never changes; nothing here
//! deletes one. There is no way to read bytes that were not compared with their name in this very call.

mod copy;
mod file;
mod memory;
mod temporary;

use std::path::{Path, PathBuf};

use avow_model::canonical::Record;
use avow_model::digest::BlobDigest;

pub use file::FileBlobs;
pub use memory::MemoryBlobs;

use crate::error::StoreError;

/// How a file comes into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// The file stays where it is and shares nothing with the store but, where the file system can, its blocks.
    /// For users' files.
    Copy,
    /// The file is gone afterwards, renamed where that is possible. For outputs in a folder that we made.
    Move,
}

/// A store of bytes.
pub trait BlobStore: Send + Sync {
    /// Whether a blob is here and sound. Its bytes are compared with its name unless that was done before and
    /// its metadata have not changed since. A damaged blob is an error that names it.
    fn contains(&self, digest: BlobDigest) -> Result<bool, StoreError>;

    /// The bytes, compared with the name on every call. `Missing` where they are not here.
    fn read(&self, digest: BlobDigest) -> Result<Vec<u8>, StoreError>;

    /// A plain file that holds a sound blob, to copy from or link to, verified as in
    /// [`BlobStore::contains`]; `None` where this store keeps no files. `Missing` where the blob is not here.
    fn open_path(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError>;

    /// Stores bytes. A sound blob of the same name is left alone; a damaged one is moved aside and replaced.
    fn put(&self, bytes: &[u8]) -> Result<BlobDigest, StoreError>;

    /// Stores a regular file (a link is refused) and returns its digest and size in bytes. `Changed` where
    /// somebody wrote to it meanwhile.
    fn put_file(&self, path: &Path, how: Intake) -> Result<(BlobDigest, u64), StoreError>;

    /// When this returns, everything that was put or verified so far survives a power cut.
    fn sync(&self) -> Result<(), StoreError>;

    /// The size in bytes, without a look at the content; `None` where the blob is not here.
    fn size(&self, digest: BlobDigest) -> Result<Option<u64>, StoreError>;

    /// All names, sorted.
    fn list(&self) -> Result<Vec<BlobDigest>, StoreError>;

    /// Moves a blob aside, so that it is missing, and says where it went; `None` where it was not here, or where
    /// this store keeps no files.
    fn quarantine(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError>;
}

/// Reads a record, compared with its digest.
pub fn read_record<R: Record>(blobs: &dyn BlobStore, digest: R::Digest) -> Result<R, StoreError>
where
    R::Digest: Into<BlobDigest>,
{
    let digest = digest.into();
    R::from_bytes(&blobs.read(digest)?).map_err(|source| StoreError::Record { digest, source })
}

/// Stores a record as a blob.
pub fn put_record<R: Record>(blobs: &dyn BlobStore, record: &R) -> Result<R::Digest, StoreError> {
    let blob = blobs.put(&record.to_bytes())?;
    Ok(R::wrap(*blob.as_bytes()))
}
