//! The logs of an attempt elsewhere, while they grow here.
//!
//! They lie where those of an attempt on this machine would, so whoever follows a log need not know where the
//! attempt runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_model::attempt::AttemptId;
use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, Intake};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::folder;

/// Standard output and standard error as far as they have arrived.
pub(super) struct Logs {
    folder: PathBuf,
    streams: [Stream; 2],
}

struct Stream {
    path: PathBuf,
    file: Option<File>,
    hasher: blake3::Hasher,
    have: u64,
}

impl Logs {
    pub(super) fn new(work: &Path, attempt: &AttemptId) -> Logs {
        let stream = |path| Stream { path, file: None, hasher: blake3::Hasher::new(), have: 0 };
        Logs { folder: work.join(&attempt.0), streams: folder::logs(work, attempt).map(stream) }
    }

    /// How many bytes of each have arrived.
    pub(super) fn have(&self) -> [u64; 2] {
        [self.streams[0].have, self.streams[1].have]
    }

    pub(super) async fn write(&mut self, stream: u8, bytes: &[u8]) -> std::io::Result<()> {
        let stream = &mut self.streams[usize::from(stream.min(1))];
        if stream.file.is_none() {
            tokio::fs::create_dir_all(&self.folder).await?;
            stream.file = Some(File::create(&stream.path).await?);
        }
        if let Some(file) = &mut stream.file {
            file.write_all(bytes).await?;
            // Whoever follows the log wants to see it now.
            file.flush().await?;
        }
        stream.hasher.update(bytes);
        stream.have += bytes.len() as u64;
        Ok(())
    }

    /// What arrived of a log is void.
    pub(super) async fn reset(&mut self, stream: u8) -> std::io::Result<()> {
        let stream = &mut self.streams[usize::from(stream.min(1))];
        if stream.file.is_some() {
            stream.file = Some(File::create(&stream.path).await?);
        }
        stream.hasher.reset();
        stream.have = 0;
        Ok(())
    }

    /// Takes a log into the store, if it is the one with this digest; whether it was.
    pub(super) async fn keep(
        &mut self,
        stream: u8,
        digest: BlobDigest,
        blobs: &Arc<dyn BlobStore>,
    ) -> Result<bool, avow_store::StoreError> {
        let stream = &mut self.streams[usize::from(stream.min(1))];
        let found = BlobDigest::from_bytes(*stream.hasher.finalize().as_bytes());
        if stream.file.take().is_none() || found != digest {
            return Ok(false);
        }
        let (blobs, path) = (Arc::clone(blobs), stream.path.clone());
        match tokio::task::spawn_blocking(move || blobs.put_file(&path, Intake::Move)).await {
            Ok(stored) => Ok(stored?.0 == digest),
            // The thread ended without a result; the log is asked for as a blob then.
            Err(_) => Ok(false),
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        match folder::remove(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(folder = %self.folder.display(), %error, "the logs of an attempt stay behind");
            }
            _ => {}
        }
    }
}
