//! Copying a large file and hashing the copy.
//!
//! Where the file system can share blocks, the copy is a clone, and the clone is hashed on all cores. Elsewhere
//! each piece is read, hashed while it is in the processor's cache, and written; that takes about as long as a
//! plain copy. Either way the digest is that of the copy, whatever happens to the original meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use avow_model::digest::BlobDigest;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;

/// Small enough for a processor's cache, large enough to make system calls cheap.
const PIECE: usize = 256 << 10;

/// Copies `source` into the empty file `target`, which lies at `path`; returns digest and size of the copy.
pub(super) fn copy_and_hash(
    source: &File,
    target: &File,
    path: &Path,
) -> Result<(BlobDigest, u64), StoreError> {
    if disk::clone_blocks(source, target, path).is_ok() {
        let size = target.metadata().context("look at", path)?.len();
        return Ok((files::hash(path, size)?, size));
    }
    copy_pieces(source, target, path).context("copy to", path)
}

fn copy_pieces(source: &File, target: &File, path: &Path) -> io::Result<(BlobDigest, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    loop {
        match source.read_at(&mut buffer, at) {
            Ok(0) => return Ok((BlobDigest::from_bytes(*hasher.finalize().as_bytes()), at)),
            Ok(length) => {
                hasher.update(&buffer[..length]);
                disk::write_at(target, path, &buffer[..length], at)?;
                at += length as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
