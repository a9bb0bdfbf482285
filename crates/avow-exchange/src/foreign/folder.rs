//! The files of somebody's folder, opened one component after the other and never through a link.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::ForeignError;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// A pipe would make whoever opens it wait.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// A folder that is open.
pub(super) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder; the last name of its own path may be a link, since the reader chose it.
    pub fn open(path: &Path) -> Result<Folder, ForeignError> {
        let descriptor = rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        let descriptor = descriptor.map_err(|error| unreadable("open", path, error))?;
        Ok(Folder { descriptor, path: path.to_owned() })
    }

    /// Opens a regular file below it, by a path of plain segments; `None` where there is nothing.
    pub fn file(&self, path: &str) -> Result<Option<(File, u64)>, ForeignError> {
        let refused = |reason: &str| ForeignError::Entity { id: path.to_owned(), reason: reason.to_owned() };
        let whole = self.path.join(path);
        let mut at = self.descriptor.try_clone().map_err(|error| io("open", &whole, error))?;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
            at = match rustix::fs::openat(&at, segment, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    return Err(refused("its path leads through a link or a file"));
                }
                other => other.map_err(|error| unreadable("open", &whole, error))?,
            };
        }
        let file = match rustix::fs::openat(&at, name, FILE, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused("it is a link")),
            Err(Errno::NXIO) => return Err(refused("it is no regular file")),
            other => File::from(other.map_err(|error| unreadable("open", &whole, error))?),
        };
        let about = file.metadata().map_err(|error| io("look at", &whole, error))?;
        if about.is_file() { Ok(Some((file, about.len()))) } else { Err(refused("it is no regular file")) }
    }

    /// The bytes of a file that must not be larger than this.
    pub fn small(&self, path: &str, what: &'static str, limit: u64) -> Result<Option<Vec<u8>>, ForeignError> {
        let Some((file, size)) = self.file(path)? else { return Ok(None) };
        if size > limit {
            return Err(ForeignError::Limit { what, found: size, limit });
        }
        let mut bytes = Vec::new();
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| io("read", &self.path.join(path), error))?;
        if bytes.len() as u64 > limit {
            return Err(ForeignError::Limit { what, found: bytes.len() as u64, limit });
        }
        Ok(Some(bytes))
    }
}

pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> ForeignError {
    ForeignError::Io { action, path: path.to_owned(), source }
}

fn unreadable(action: &'static str, path: &Path, error: Errno) -> ForeignError {
    io(action, path, error.into())
}
