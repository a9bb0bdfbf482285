//! Trees and files back on disk.
//!
//! A tree may come from anywhere, so it is checked as a whole first, and then nothing is written through a
//! link: each folder on the way is opened relative to the one before, without following, and files must be new.
//! Links of the tree come last.
//!
//! With [`How::Link`] a file becomes a symbolic link to the blob, which costs nothing, and is only for places
//! where whoever reads cannot write. Programs see a link's real path, so code is always copied (Python, for one,
//! looks for modules beside the real file), and so is every file with the executable bit.

mod flatten;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, PathError, Tree, check_path};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use flatten::flatten;

use crate::blob::{BlobStore, read_record};
use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;

/// How a file comes to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A copy of its own, writable by its owner.
    Copy,
    /// A symbolic link to the blob; a copy where it is executable or the store keeps no files.
    Link,
}

/// Why something cannot be written out.
#[derive(Debug, thiserror::Error)]
pub enum MaterialiseError {
    /// A path or link that no tree of ours has.
    #[error("the tree cannot be written to a disk")]
    Path(#[from] PathError),
    /// More entries, or deeper nesting, than anything real.
    #[error("the tree is too large or too deep to be written out")]
    TooLarge,
    /// Something is there already.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes a tree into a folder, which is created where it is missing and may hold other things.
pub fn materialise(
    blobs: &dyn BlobStore,
    tree: &Tree,
    folder: &Path,
    how: How,
) -> Result<(), MaterialiseError> {
    let flat = flatten(blobs, tree)?;
    disk::create_folders(folder).context("create", folder)?;
    let root = Root::open(folder)?;
    let (links, rest): (Vec<_>, Vec<_>) =
        flat.entries.iter().partition(|(_, entry)| matches!(entry, Entry::Link { .. }));
    let mut parent = Parent::default();
    for (path, entry) in rest {
        match entry {
            Entry::File { digest, executable } => {
                root.file(&mut parent, path, blobs, (*digest, *executable), how)?
            }
            _ => drop(root.folder(path)?),
        }
    }
    for (path, entry) in links {
        if let Entry::Link { target } = entry {
            root.link(&mut parent, path, Path::new(target))?;
        }
    }
    Ok(())
}

/// Writes an artifact to a relative path inside a folder: how the executor lays out inputs.
pub fn place(
    blobs: &dyn BlobStore,
    artifact: Artifact,
    folder: &Path,
    path: &str,
    how: How,
) -> Result<(), MaterialiseError> {
    check_path(path)?;
    let root = Root::open(folder)?;
    match artifact {
        Artifact::Blob(digest) => root.file(&mut Parent::default(), path, blobs, (digest, false), how),
        Artifact::Tree(digest) => {
            let tree = read_record(blobs, digest)?;
            root.folder(path)?;
            materialise(blobs, &tree, &folder.join(path), how)
        }
    }
}

/// Writes an artifact to a path as a copy that appears at once, for `avow get`. An existing file is replaced
/// only if `replace` is set; an existing folder never is.
pub fn publish(
    blobs: &dyn BlobStore,
    artifact: Artifact,
    target: &Path,
    replace: bool,
) -> Result<(), MaterialiseError> {
    let exists = || MaterialiseError::Exists { path: target.to_owned() };
    match fs::symlink_metadata(target) {
        Ok(found) if !replace || found.is_dir() || matches!(artifact, Artifact::Tree(_)) => {
            return Err(exists());
        }
        Err(e) if !files::absent(&e) => return Err(e).context("look at", target)?,
        _ => {}
    }
    let folder = files::folder_of(target);
    disk::create_folders(folder).context("create", folder)?;
    let temporary = files::beside(target);
    let name = temporary.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let placed = place(blobs, artifact, folder, &name, How::Copy)
        .and_then(|()| Ok(disk::rename(&temporary, target).context("name", target)?));
    if placed.is_err() {
        // The first error is the one to tell.
        let _ =
            if temporary.is_dir() { disk::remove_folder(&temporary) } else { disk::remove_file(&temporary) };
    }
    placed
}

/// The folder that files were last written to, kept open: neighbours come in a row.
#[derive(Default)]
struct Parent(Option<(String, OwnedFd)>);

/// The folder that everything is written below.
struct Root<'a> {
    descriptor: OwnedFd,
    path: &'a Path,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl<'a> Root<'a> {
    fn open(path: &'a Path) -> Result<Root<'a>, StoreError> {
        let descriptor = rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        Ok(Root { descriptor: descriptor.context("open", path)?, path })
    }

    /// Opens a folder below the root, creating what is missing, following nothing.
    fn folder(&self, path: &str) -> Result<OwnedFd, MaterialiseError> {
        let full = self.path.join(path);
        let mut at = self.descriptor.try_clone().context("open", self.path)?;
        for segment in path.split('/').filter(|s| !s.is_empty()) {
            match disk::create_folder_in(&at, segment, &full) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e).context("create", &full)?,
            }
            at = match rustix::fs::openat(&at, segment, FOLDER, Mode::empty()) {
                Err(Errno::LOOP | Errno::NOTDIR) => return Err(MaterialiseError::Exists { path: full }),
                other => other.context("open", &full)?,
            };
        }
        Ok(at)
    }

    fn within<'p, 's>(
        &self,
        parent: &'p mut Parent,
        path: &'s str,
    ) -> Result<(&'p OwnedFd, &'s str), MaterialiseError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if parent.0.as_ref().is_none_or(|(known, _)| known != folder) {
            parent.0 = Some((folder.to_owned(), self.folder(folder)?));
        }
        let (_, descriptor) = parent.0.as_ref().expect("it was set just now");
        Ok((descriptor, name))
    }

    fn file(
        &self,
        parent: &mut Parent,
        path: &str,
        blobs: &dyn BlobStore,
        (digest, executable): (BlobDigest, bool),
        how: How,
    ) -> Result<(), MaterialiseError> {
        let blob = blobs.open_path(digest)?;
        if how == How::Link
            && !executable
            && let Some(blob) = &blob
        {
            let blob = std::path::absolute(blob).context("find", blob)?;
            return self.link(parent, path, &blob);
        }
        let (folder, name) = self.within(parent, path)?;
        let full = self.path.join(path);
        let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = match disk::create_in(folder, name, (flags, mode), &full) {
            Err(Errno::EXIST) => return Err(MaterialiseError::Exists { path: full }),
            other => other.context("create", &full)?,
        };
        match blob {
            // The standard library lets the kernel copy, which shares blocks where the file system can.
            Some(blob) => {
                let mut source = files::open_plain(&blob)?;
                disk::copy(&mut source, &mut file, &full).context("write", &full).map(drop)?;
            }
            None => disk::write(&file, &full, &blobs.read(digest)?).context("write", &full)?,
        }
        Ok(())
    }

    fn link(&self, parent: &mut Parent, path: &str, target: &Path) -> Result<(), MaterialiseError> {
        let (folder, name) = self.within(parent, path)?;
        match disk::link(target, folder, name, &self.path.join(path)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // An equal link is what was asked for, e.g. from two inputs that share a folder.
                let there = rustix::fs::readlinkat(folder, name, Vec::new());
                let equal = there.is_ok_and(|text| Path::new(&text.to_string_lossy().into_owned()) == target);
                if equal { Ok(()) } else { Err(MaterialiseError::Exists { path: self.path.join(path) }) }
            }
            other => Ok(other.context("link", &self.path.join(path))?),
        }
    }
}
