//! Size and digests of bytes in one pass.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, FileBlobs};
use sha2::{Digest, Sha256};

use crate::error::{Context, ExchangeError};

/// The size and digests of what is written to it.
#[derive(Default)]
pub(crate) struct Digests {
    size: u64,
    blake3: blake3::Hasher,
    sha256: Sha256,
}

/// What some bytes are known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// How many there are.
    pub size: u64,
    /// Their BLAKE3 digest.
    pub blake3: BlobDigest,
    /// Their SHA-256 digest in hexadecimal, for readers that have no BLAKE3.
    pub sha256: String,
}

impl Digests {
    /// The digests of what was written.
    pub fn known(self) -> Known {
        let blake3 = BlobDigest::from_bytes(*self.blake3.finalize().as_bytes());
        Known { size: self.size, blake3, sha256: hex(&self.sha256.finalize()) }
    }
}

impl Known {
    /// Of bytes in memory.
    pub fn of(bytes: &[u8]) -> Known {
        let mut digests = Digests::default();
        digests.update(bytes);
        digests.known()
    }

    /// Of a blob, whose bytes are compared with its name on the way.
    pub fn of_blob(blobs: &FileBlobs, digest: BlobDigest) -> Result<Known, ExchangeError> {
        let path = blobs.open_path(digest)?.unwrap_or_else(|| blobs.path(digest));
        let known = Known::of_file(&path)?;
        if known.blake3 == digest { Ok(known) } else { Err(ExchangeError::Changed { digest }) }
    }

    fn of_file(path: &Path) -> Result<Known, ExchangeError> {
        let mut file = File::open(path).context("open", path)?;
        let mut digests = Digests::default();
        std::io::copy(&mut file, &mut digests).context("read", path)?;
        Ok(digests.known())
    }
}

impl Digests {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.blake3.update(bytes);
        self.sha256.update(bytes);
    }
}

impl Write for Digests {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
