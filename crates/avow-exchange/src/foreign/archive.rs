//! A Run Crate that somebody packed into a zip archive.
//!
//! It is unpacked into a folder of our own, and read there as any crate is. Nothing is repaired: an entry that is no plain
//! file or folder at a plain relative path, that shares a name or bytes with another, or that needs a password makes the
//! archive refused, and so does more than is allowed. What the sizes in its headers say is not believed.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use avow_model::tree::{Entry, Tree};
use zip::ZipArchive;
use zip::result::ZipError;

use super::error::ForeignError;
use super::folder::io;
use super::run_crate::{Limits, put};
use crate::bundle::MANIFEST;
use crate::ro_crate::METADATA;

/// Unpacks an archive into a folder that is empty, and gives the folder of the crate in it; `None` where the archive is no
/// crate: a bundle, or something else.
pub fn unpack(path: &Path, limits: Limits, folder: &Path) -> Result<Option<PathBuf>, ForeignError> {
    let file = File::open(path).map_err(|error| io("open", path, error))?;
    // What is no archive is nothing of ours to complain of.
    let Ok(mut archive) = ZipArchive::new(BufReader::new(file)) else { return Ok(None) };
    let Some(prefix) = prefix(&archive, path)? else { return Ok(None) };
    if archive.offset() != 0 || archive.has_duplicate_names() {
        return Err(wrong("it has bytes before its first entry, or two entries of one name"));
    }
    let count = archive.len() as u64;
    if count > limits.entries {
        return Err(ForeignError::Limit { what: "entries", found: count, limit: limits.entries });
    }
    if archive.has_overlapping_entries().map_err(|error| refused(path, error))? {
        return Err(wrong("entries of it lie upon one another"));
    }
    let mut unpacking = Unpacking { folder, tree: Tree::default(), left: limits.total, limit: limits.total };
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| refused(path, error))?;
        let name = entry.name().map_err(|error| refused(path, error))?.into_owned();
        // What lies beside the crate's own folder is none of it.
        let Some(inner) = name.strip_prefix(&prefix).map(str::to_owned) else { continue };
        if entry.is_symlink() {
            return Err(ForeignError::Entity { id: name, reason: "it is a link".to_owned() });
        }
        if !entry.is_dir() {
            unpacking.file(&inner, &mut entry)?;
        }
    }
    Ok(Some(folder.to_owned()))
}

/// The folder in the archive that holds the metadata, with a slash at its end: its root, or the one folder that programs
/// pack together with what is in it.
fn prefix(archive: &ZipArchive<BufReader<File>>, path: &Path) -> Result<Option<String>, ForeignError> {
    let names: Result<Vec<String>, ZipError> =
        archive.file_names().map(|name| name.map(|name| name.into_owned())).collect();
    let names = names.map_err(|error| refused(path, error))?;
    if names.iter().any(|name| name == MANIFEST) && !names.iter().any(|name| name == METADATA) {
        return Ok(None);
    }
    let below = |name: &String| name.strip_suffix(METADATA).map(str::to_owned);
    let mut found: Vec<String> =
        names.iter().filter_map(below).filter(|p| p.matches('/').count() < 2).collect();
    found.retain(|prefix| prefix.is_empty() || prefix.ends_with('/'));
    found.sort_by_key(String::len);
    Ok(found.into_iter().next())
}

struct Unpacking<'a> {
    folder: &'a Path,
    /// What was unpacked, for the rules that a tree has for its paths.
    tree: Tree,
    left: u64,
    limit: u64,
}

impl Unpacking<'_> {
    fn file(&mut self, path: &str, from: &mut dyn Read) -> Result<(), ForeignError> {
        let unfit = |reason: String| ForeignError::Entity { id: path.to_owned(), reason };
        let entry = Entry::File { digest: BlobDigest::of(b""), executable: false };
        if path.contains('\\') {
            return Err(unfit("its name is a path of another system".to_owned()));
        }
        if self.tree.entries.contains_key(path) {
            return Err(unfit("two entries want its place".to_owned()));
        }
        self.tree.insert(path, entry).map_err(|error| unfit(error.to_string()))?;
        let mut target = put(self.folder, path)?;
        let mut from = from.take(self.left + 1);
        let mut buffer = vec![0; 128 << 10];
        loop {
            let read =
                from.read(&mut buffer).map_err(|error| unfit(format!("it does not unpack: {error}")))?;
            if read == 0 {
                return Ok(());
            }
            let over = || ForeignError::Limit { what: "bytes", found: self.limit + 1, limit: self.limit };
            self.left = self.left.checked_sub(read as u64).ok_or_else(over)?;
            target.write_all(&buffer[..read]).map_err(|error| io("write", self.folder, error))?;
        }
    }
}

fn wrong(reason: &str) -> ForeignError {
    ForeignError::Archive(reason.to_owned())
}

fn refused(path: &Path, error: ZipError) -> ForeignError {
    match error {
        ZipError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => io("read", path, error),
        error => ForeignError::Archive(error.to_string()),
    }
}
