//! Every act by which this crate changes what is on a disk, so that a test can make any one of them go wrong.
//!
//! In release builds each function is the system call behind its name and nothing else. Debug builds first ask
//! [`crate::faults`], which is how the suite in `tests/faults.rs` ends a run at every single act. New code that
//! changes a file goes through here; `tests/seam.rs` of this crate finds code that does not.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
#[cfg(debug_assertions)]
use rustix::io::Errno;

#[cfg(debug_assertions)]
use crate::faults::{Act, Go, before};

/// Carries an act out unless a fault was asked for in its place.
macro_rules! act {
    ($act:ident, $path:expr, $call:expr) => {{
        // A release build has no use for the name.
        let _ = $path;
        #[cfg(debug_assertions)]
        if let Go::Half(after) = before(Act::$act, $path)? {
            // Only writes have halves: anything else is carried out, well or not, and then this happens.
            drop($call);
            after.result()?;
        }
        $call
    }};
}

/// Creates a file that must not exist.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    act!(Create, path, File::create_new(path))
}

/// Creates a read-only file that must not exist, open for reading and writing here.
pub(crate) fn create_protected(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o444);
    act!(Create, path, options.open(path))
}

/// Creates a file that must not exist and that its owner alone may read.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    act!(Create, path, options.open(path))
}

/// Opens a file for writing, creating it where it is not there, and leaves what it holds.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    act!(Create, path, options.open(path))
}

/// Creates a file in an open folder; `path` is its name for people.
pub(crate) fn create_in(
    folder: impl AsFd,
    name: &str,
    (flags, mode): (OFlags, Mode),
    path: &Path,
) -> rustix::io::Result<File> {
    #[cfg(debug_assertions)]
    if let Go::Half(after) = before(Act::Create, path).map_err(errno)? {
        drop(rustix::fs::openat(&folder, name, flags, mode));
        after.result().map_err(errno)?;
    }
    let _ = path;
    rustix::fs::openat(&folder, name, flags, mode).map(File::from)
}

/// Creates a folder in an open folder; `path` is its name for people.
pub(crate) fn create_folder_in(folder: impl AsFd, name: &str, path: &Path) -> rustix::io::Result<()> {
    #[cfg(debug_assertions)]
    if let Go::Half(after) = before(Act::Create, path).map_err(errno)? {
        let _ = rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777));
        after.result().map_err(errno)?;
    }
    let _ = path;
    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777))
}

#[cfg(debug_assertions)]
fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Creates a folder that must not exist.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    act!(Create, path, fs::create_dir(path))
}

/// Creates a folder and what is missing above it.
pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    act!(Create, path, fs::create_dir_all(path))
}

/// Writes all bytes at a file's own position.
pub(crate) fn write(mut file: &File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    #[cfg(debug_assertions)]
    if let Go::Half(after) = before(Act::Write, path)? {
        drop(file.write_all(&bytes[..bytes.len() / 2]));
        return after.result();
    }
    let _ = path;
    file.write_all(bytes)
}

/// Writes all bytes at an offset.
pub(crate) fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(debug_assertions)]
    if let Go::Half(after) = before(Act::Write, path)? {
        drop(file.write_all_at(&bytes[..bytes.len() / 2], offset));
        return after.result();
    }
    let _ = path;
    file.write_all_at(bytes, offset)
}

/// Lets the operating system copy from one file to another.
pub(crate) fn copy(source: &mut File, target: &mut File, path: &Path) -> io::Result<u64> {
    act!(Write, path, io::copy(source, target))
}

/// Shares the blocks of one file with another, where the file system can.
pub(crate) fn clone_blocks(source: &File, target: &File, path: &Path) -> io::Result<()> {
    act!(Write, path, rustix::fs::ioctl_ficlone(target, source).map_err(io::Error::from))
}

/// Makes a file's bytes survive a power cut, and with `all` its metadata too.
pub(crate) fn sync(file: &File, path: &Path, all: bool) -> io::Result<()> {
    act!(Sync, path, if all { file.sync_all() } else { file.sync_data() })
}

/// Makes everything on a file system survive a power cut.
pub(crate) fn sync_file_system(file: &File, path: &Path) -> io::Result<()> {
    act!(Sync, path, rustix::fs::syncfs(file).map_err(io::Error::from))
}

/// Gives a file another name on the same file system, replacing what has it.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    act!(Rename, to, fs::rename(from, to))
}

/// Makes a symbolic link in an open folder.
pub(crate) fn link(target: &Path, folder: impl AsFd, name: &str, path: &Path) -> io::Result<()> {
    act!(Link, path, rustix::fs::symlinkat(target, &folder, name).map_err(io::Error::from))
}

/// Removes a file.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    act!(Remove, path, fs::remove_file(path))
}

/// Removes a folder with everything in it.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    act!(Remove, path, fs::remove_dir_all(path))
}

/// Cuts a file to a length in bytes.
pub(crate) fn shorten(file: &File, path: &Path, length: u64) -> io::Result<()> {
    act!(Shorten, path, file.set_len(length))
}

/// Makes a file read-only.
pub(crate) fn protect(file: &File, path: &Path) -> io::Result<()> {
    act!(Protect, path, file.set_permissions(Permissions::from_mode(0o444)))
}

/// Stands before a change of the index, whose own files belong to sled.
pub(crate) fn index(path: &Path) -> io::Result<()> {
    act!(Index, path, Ok::<(), io::Error>(()))
}
