//! Users' files and folders become blobs and trees.
//!
//! Hashing and storing are one walk with two endings: `hash_*` only names, `store_*` also puts the bytes into
//! the store. Both trust the stamp cache ([`crate::stamp`]), so unchanged files cost one look each, and both use
//! all cores. A user's file is copied (blocks are shared where the file system can) and never linked.
//!
//! A tree keeps files, their executable bit, empty folders and links that stay inside. A link that leads out, a
//! device, socket or fifo, a control character and a name that is not UTF-8 are errors that name the path. Names
//! that some other file system would take for one are warnings, returned as values.

mod code;
mod collision;
mod folder;

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::tree::{PathError, Tree};

pub use collision::{Collision, collisions};

use crate::blob::{BlobStore, Intake};
use crate::error::{Context, StoreError};
use crate::files;
use crate::stamp::{self, FileStamp, StampCache};

/// Why a file or folder cannot become an artifact.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Nothing is there.
    #[error("`{}` does not exist", path.display())]
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// A folder where a file is wanted, or the other way round.
    #[error("`{}` is not a {wanted}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// `file` or `folder`.
        wanted: &'static str,
    },
    /// A device, socket or fifo.
    #[error("`{}` is a {kind}, which cannot be stored", path.display())]
    Special {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A name that is not UTF-8.
    #[error("the name of `{}` is not UTF-8", path.display())]
    NotUtf8 {
        /// The path, with the foreign bytes replaced.
        path: PathBuf,
    },
    /// A name that a tree cannot hold, or a link that leads out of it.
    #[error("`{}` cannot be stored", folder.display())]
    Path {
        /// The folder.
        folder: PathBuf,
        /// What is wrong inside.
        source: PathError,
    },
    /// The folder contains the store itself.
    #[error("`{}` is the store's own folder", path.display())]
    Store {
        /// The store folder.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] StoreError),
}

impl IngestError {
    /// Whether the content is to blame (for an output: the program that wrote it), not the machine.
    pub fn is_about_content(&self) -> bool {
        !matches!(self, IngestError::Failed(e) if !matches!(e, StoreError::Changed { .. } | StoreError::NotAFile { .. }))
    }
}

/// A file as an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Its content.
    pub digest: BlobDigest,
    /// Its size in bytes.
    pub size: u64,
    /// Whether its owner may execute it.
    pub executable: bool,
}

/// A folder as an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFolder {
    /// What is in it.
    pub tree: Tree,
    /// The tree's name.
    pub digest: TreeDigest,
    /// The sizes of its files added up, in bytes.
    pub size: u64,
    /// Names that some file systems cannot tell apart.
    pub collisions: Vec<Collision>,
}

impl StoredFile {
    /// The artifact.
    pub fn artifact(&self) -> Artifact {
        Artifact::Blob(self.digest)
    }
}

impl StoredFolder {
    /// The artifact.
    pub fn artifact(&self) -> Artifact {
        Artifact::Tree(self.digest)
    }
}

/// The way in: a blob store and a memory of stamps.
#[derive(Clone, Copy)]
pub struct Ingest<'a> {
    blobs: &'a dyn BlobStore,
    stamps: &'a dyn StampCache,
}

/// From this size on, in bytes, a copy costs more than finding out whether it is needed.
const LARGE: u64 = 1 << 20;

/// A stamp with the digest that may be remembered for it.
type Learnt = (FileStamp, BlobDigest);

impl<'a> Ingest<'a> {
    /// The way into these blobs.
    pub fn new(blobs: &'a dyn BlobStore, stamps: &'a dyn StampCache) -> Ingest<'a> {
        Ingest { blobs, stamps }
    }

    /// Names a file by its content. A link in the last place is followed.
    pub fn hash_file(&self, path: &Path) -> Result<StoredFile, IngestError> {
        self.file(path, None)
    }

    /// Stores a file. A link in the last place is followed when copying and refused when moving.
    pub fn store_file(&self, path: &Path, how: Intake) -> Result<StoredFile, IngestError> {
        self.file(path, Some(how))
    }

    /// Names a folder by its content; nothing is stored, its record included.
    pub fn hash_folder(&self, path: &Path) -> Result<StoredFolder, IngestError> {
        self.folder(path, None)
    }

    /// Stores a folder: its files and its record. A link in the last place is followed when copying and refused
    /// when moving. After moving, the files are gone and the folders are left.
    pub fn store_folder(&self, path: &Path, how: Intake) -> Result<StoredFolder, IngestError> {
        self.folder(path, Some(how))
    }

    /// Names a file or a folder, whichever is there.
    pub fn hash(&self, path: &Path) -> Result<Artifact, IngestError> {
        let folder = look(path, true)?.is_dir();
        if folder { Ok(self.hash_folder(path)?.artifact()) } else { Ok(self.hash_file(path)?.artifact()) }
    }

    fn file(&self, path: &Path, how: Option<Intake>) -> Result<StoredFile, IngestError> {
        let path = &resolved(path, how)?;
        let metadata = look(path, false)?;
        let (file, learnt) = self.one(path, &metadata, how)?;
        self.stamps.remember_digests(learnt.as_slice())?;
        Ok(file)
    }

    /// One file by its metadata, and what may be remembered about it.
    fn one(
        &self,
        path: &Path,
        metadata: &Metadata,
        how: Option<Intake>,
    ) -> Result<(StoredFile, Option<Learnt>), IngestError> {
        if !metadata.is_file() {
            return Err(wrong_kind(path, metadata, "file"));
        }
        let executable = metadata.mode() & 0o100 != 0;
        let file = |digest, size| StoredFile { digest, size, executable };
        let before = FileStamp::of(metadata);
        if let Some(digest) = self.stamps.cached_digest(before)?
            && self.satisfied(digest, how)
        {
            return Ok((file(digest, before.size), None));
        }
        let begun = stamp::now();
        let (digest, size) = match how {
            None => (files::hash(path, before.size)?, before.size),
            Some(how) => match self.held_already(path, before, how)? {
                Some(digest) => (digest, before.size),
                None => self.blobs.put_file(path, how)?,
            },
        };
        if how == Some(Intake::Move) {
            return Ok((file(digest, size), None));
        }
        if FileStamp::of(&look(path, false)?) != before {
            return Err(StoreError::Changed { path: path.to_owned() }.into());
        }
        Ok((file(digest, size), before.settled(begun).then_some((before, digest))))
    }

    /// The digest of a large file that turns out to hold what it held when it was last stored: one that was only
    /// touched is hashed on all cores, and not copied to learn that the copy is not needed.
    fn held_already(
        &self,
        path: &Path,
        before: FileStamp,
        how: Intake,
    ) -> Result<Option<BlobDigest>, IngestError> {
        if how == Intake::Move || before.size < LARGE {
            return Ok(None);
        }
        let Some(earlier) = self.stamps.earlier_digest(before)? else { return Ok(None) };
        let held = self.satisfied(earlier, Some(how)) && files::hash(path, before.size)? == earlier;
        Ok(held.then_some(earlier))
    }

    /// Whether a remembered digest is all that is wanted. A blob that is missing or damaged is stored again.
    fn satisfied(&self, digest: BlobDigest, how: Option<Intake>) -> bool {
        match how {
            None => true,
            Some(Intake::Copy) => matches!(self.blobs.contains(digest), Ok(true)),
            Some(Intake::Move) => false,
        }
    }
}

/// The path itself, or where a link in its last place leads, if that is to be followed.
fn resolved(path: &Path, how: Option<Intake>) -> Result<PathBuf, IngestError> {
    if how == Some(Intake::Move) || !look(path, false)?.is_symlink() {
        return Ok(path.to_owned());
    }
    look(path, true)?;
    Ok(fs::canonicalize(path).context("find", path)?)
}

fn look(path: &Path, follow: bool) -> Result<Metadata, IngestError> {
    let found = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    match found {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(IngestError::Absent { path: path.to_owned() }),
        other => Ok(other.context("look at", path)?),
    }
}

fn wrong_kind(path: &Path, metadata: &Metadata, wanted: &'static str) -> IngestError {
    let path = path.to_owned();
    match special(metadata) {
        Some(kind) => IngestError::Special { path, kind },
        None => IngestError::Kind { path, wanted },
    }
}

/// What a thing is that is neither file nor folder nor link.
fn special(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    let table = [
        (kind.is_fifo(), "fifo"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device(), "character device"),
        (kind.is_block_device(), "block device"),
    ];
    table.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}
