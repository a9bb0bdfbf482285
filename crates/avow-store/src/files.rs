//! The few acts on files that must be right everywhere: durable, atomic, without following a last link.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use avow_model::digest::BlobDigest;
use rustix::fs::OFlags;

use crate::disk;
use crate::error::{Context, StoreError};

/// Files from this size on are hashed through a memory map by all cores; below, one read is faster.
const MAPPED: u64 = 1 << 20;

/// Whether an error only says that nothing is there.
pub(crate) fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens a regular file for reading, without following a link in the last place. A fifo does not block.
pub(crate) fn open_plain(path: &Path) -> Result<File, StoreError> {
    open_looked_at(path).map(|(file, _)| file)
}

/// The same, with the metadata it had when it was opened.
pub(crate) fn open_looked_at(path: &Path) -> Result<(File, Metadata), StoreError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(StoreError::NotAFile { path: path.to_owned() });
        }
        other => other.context("open", path)?,
    };
    let metadata = file.metadata().context("look at", path)?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(StoreError::NotAFile { path: path.to_owned() })
    }
}

/// The bytes of an open file, which lies at `path`, from where it stands. `size` is how many there should be: no
/// more is asked of the system than it takes to find out.
pub(crate) fn read_open(mut file: &File, path: &Path, size: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; size as usize + 1];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e).context("read", path),
        }
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// The digest of a file's bytes. Large files are mapped: if another program shortens one meanwhile, the system
/// ends this process with `SIGBUS`, which the store survives like any other sudden end.
pub(crate) fn hash(path: &Path, size: u64) -> Result<BlobDigest, StoreError> {
    if size < MAPPED {
        return Ok(BlobDigest::of(&fs::read(path).context("read", path)?));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_mmap_rayon(path).context("read", path)?;
    Ok(BlobDigest::from_bytes(*hasher.finalize().as_bytes()))
}

/// The digest of an open file's bytes, which lies at `path`.
pub(crate) fn hash_open(file: &File, path: &Path, size: u64) -> Result<BlobDigest, StoreError> {
    if size >= MAPPED {
        return hash(path, size);
    }
    let bytes = read_open(file, path, size)?;
    if bytes.len() as u64 == size {
        Ok(BlobDigest::of(&bytes))
    } else {
        Err(StoreError::Changed { path: path.to_owned() })
    }
}

/// Makes a folder's entries survive a power cut.
pub(crate) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|folder| disk::sync(&folder, path, true)).context("sync", path)
}

/// Replaces a small file as a whole and durably.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = beside(path);
    let written = disk::create_new(&temporary)
        .and_then(|file| {
            disk::write(&file, &temporary, bytes)?;
            disk::sync(&file, &temporary, true)
        })
        .and_then(|()| disk::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell; a leftover temporary name does no harm.
        let _ = disk::remove_file(&temporary);
    }
    written.context("write", path)?;
    sync_folder(folder_of(path))
}

/// Replaces a file as a whole, but not durably: for caches, which are checked when they are read.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = beside(path);
    let written = disk::create_new(&temporary)
        .and_then(|file| disk::write(&file, &temporary, bytes))
        .and_then(|()| disk::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to tell; a leftover temporary name does no harm.
        let _ = disk::remove_file(&temporary);
    }
    written.context("write", path)
}

/// A name in the same folder that nobody else uses.
pub(crate) fn beside(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()))
}

/// Whether a name is one of [`beside`] whose process is gone.
pub(crate) fn left_behind(name: &OsStr) -> bool {
    let parts = || {
        let inner = name.to_str()?.strip_prefix('.')?.strip_suffix(".tmp")?;
        let (pid, number) = inner.rsplit_once('.')?.1.split_once('-')?;
        number.parse::<u64>().ok()?;
        pid.parse::<u32>().ok()
    };
    parts().is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// The folder a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that a name can be a file's name as it stands, in every file system we know.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    let bad = name.is_empty()
        || name.len() > 200
        || name.starts_with('.')
        || name.chars().any(|c| c == '/' || c == '\\' || c.is_control());
    if bad { Err(StoreError::Name { name: name.to_owned() }) } else { Ok(()) }
}

/// 32 bytes from the operating system's generator, as 64 hexadecimal digits: for journals' and ledgers' first
/// lines.
pub fn nonce() -> Result<String, StoreError> {
    let mut bytes = [0u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .context("draw random bytes from", Path::new("the operating system"))?;
    }
    Ok(BlobDigest::from_bytes(bytes).to_string())
}
