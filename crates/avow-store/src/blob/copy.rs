//! Copying a large file and hashing the copy.
//!
//! Where the file system can share blocks, the copy is a clone, and the clone is hashed on all cores. Elsewhere
//! each piece is read, written, and hashed beside that while it is in the processor's cache, and the disk begins at
//! once; that takes about as long as a plain copy. Either way the digest is that of the copy, whatever happens to the original meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use avow_model::digest::BlobDigest;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::kernel;

/// Small enough for a processor's cache, large enough to make system calls cheap.
const PIECE: usize = 256 << 10;
/// Pieces on their way at once.
const BUFFERS: usize = 4;
/// After so many bytes the disk is asked to begin: who syncs afterwards then waits for little.
const WRITTEN_BACK: u64 = 16 << 20;

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

/// Copies piece by piece; another thread hashes each while the next is on its way.
fn copy_pieces(source: &File, target: &File, path: &Path) -> io::Result<(BlobDigest, u64)> {
    let (filled, to_hash) = mpsc::sync_channel::<(Vec<u8>, usize)>(BUFFERS);
    let (emptied, spare) = mpsc::channel();
    thread::scope(|scope| {
        let hashing = thread::Builder::new().name("hash".to_owned()).spawn_scoped(scope, move || {
            let mut hasher = blake3::Hasher::new();
            for (buffer, length) in to_hash {
                hasher.update(&buffer[..length]);
                // The copy may have failed meanwhile, and wants no more buffers.
                let _ = emptied.send(buffer);
            }
            BlobDigest::from_bytes(*hasher.finalize().as_bytes())
        })?;
        let copied = pump(source, target, path, &filled, &spare);
        drop(filled);
        let digest = hashing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        copied.map(|size| (digest, size))
    })
}

/// Reads and writes until the end, and hands on what was written; how many bytes.
fn pump(
    source: &File,
    target: &File,
    path: &Path,
    filled: &SyncSender<(Vec<u8>, usize)>,
    spare: &Receiver<Vec<u8>>,
) -> io::Result<u64> {
    let (mut at, mut begun) = (0, 0);
    for made in 0.. {
        let new = || if made < BUFFERS { Ok(vec![0; PIECE]) } else { spare.recv() };
        let gone = |_| io::Error::other("the thread that hashes has ended");
        let mut buffer = spare.try_recv().or_else(|_| new()).map_err(gone)?;
        let length = read_piece(source, &mut buffer, at)?;
        if length == 0 {
            break;
        }
        disk::write_at(target, path, &buffer[..length], at)?;
        at += length as u64;
        if at - begun >= WRITTEN_BACK {
            kernel::begin_writing_back(target, begun, at - begun);
            begun = at;
        }
        filled.send((buffer, length)).map_err(|_| io::Error::other("the thread that hashes has ended"))?;
    }
    Ok(at)
}

fn read_piece(source: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match source.read_at(buffer, at) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
