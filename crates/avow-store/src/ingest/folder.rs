//! The walk over a folder, on all cores.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use avow_model::canonical::Record;
use avow_model::tree::{Entry, Tree};
use rayon::prelude::*;

use super::{Ingest, IngestError, Learnt, StoredFolder, collisions, look, resolved, special, wrong_kind};
use crate::blob::{Intake, put_record};
use crate::error::Context;
use crate::project::STORE;

/// What a walk gathers, in no order.
#[derive(Default)]
struct Found {
    entries: Vec<(String, Entry)>,
    size: u64,
    learnt: Vec<Learnt>,
}

impl Found {
    fn and(mut self, mut other: Found) -> Found {
        // Append to the larger, so that deep folders do not copy their content at every level.
        if self.entries.len() < other.entries.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.entries.append(&mut other.entries);
        self.learnt.append(&mut other.learnt);
        self.size += other.size;
        self
    }

    fn entry(path: &str, entry: Entry) -> Found {
        Found { entries: vec![(path.to_owned(), entry)], ..Found::default() }
    }
}

impl Ingest<'_> {
    pub(super) fn folder(&self, path: &Path, how: Option<Intake>) -> Result<StoredFolder, IngestError> {
        let root = resolved(path, how)?;
        let metadata = look(&root, false)?;
        if !metadata.is_dir() {
            return Err(wrong_kind(&root, &metadata, "folder"));
        }
        let mut found = self.walk(&root, "", how)?;
        found.entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut tree = Tree::default();
        for (name, entry) in found.entries {
            tree.insert(&name, entry).map_err(|source| IngestError::Path { folder: root.clone(), source })?;
        }
        self.stamps.remember_digests(&found.learnt)?;
        self.finish(tree, found.size, how)
    }

    /// Names, and if wanted stores, the record of a tree.
    pub(super) fn finish(
        &self,
        tree: Tree,
        size: u64,
        how: Option<Intake>,
    ) -> Result<StoredFolder, IngestError> {
        let record = || if how.is_some() { put_record(self.blobs, &tree) } else { Ok(tree.digest()) };
        let (digest, collisions) = rayon::join(record, || collisions(&tree));
        Ok(StoredFolder { digest: digest?, size, collisions, tree })
    }

    fn walk(&self, folder: &Path, prefix: &str, how: Option<Intake>) -> Result<Found, IngestError> {
        let list = fs::read_dir(folder).context("list", folder)?;
        let children = list.collect::<Result<Vec<DirEntry>, _>>().context("list", folder)?;
        if children.is_empty() && !prefix.is_empty() {
            return Ok(Found::entry(prefix, Entry::Empty));
        }
        let visited = children.par_iter().map(|child| self.visit(child, prefix, how));
        visited.try_reduce(Found::default, |a, b| Ok(a.and(b)))
    }

    fn visit(&self, child: &DirEntry, prefix: &str, how: Option<Intake>) -> Result<Found, IngestError> {
        let path = &child.path();
        let name = name(path)?;
        let inner = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        // Looks from the open folder, which spares the way down the path, and follows no link.
        let metadata = child.metadata().context("look at", path)?;
        if metadata.is_dir() {
            if name == STORE {
                return Err(IngestError::Store { path: path.to_owned() });
            }
            return self.walk(path, &inner, how);
        }
        if metadata.is_symlink() {
            let target = fs::read_link(path).context("read", path)?;
            let target = target.to_str().ok_or_else(|| not_utf8(path))?.to_owned();
            return Ok(Found::entry(&inner, Entry::Link { target }));
        }
        if let Some(kind) = special(&metadata) {
            return Err(IngestError::Special { path: path.to_owned(), kind });
        }
        let (file, learnt) = self.one(path, &metadata, how)?;
        let entry = Entry::File { digest: file.digest, executable: file.executable };
        Ok(Found { entries: vec![(inner, entry)], size: file.size, learnt: learnt.into_iter().collect() })
    }
}

fn name(path: &Path) -> Result<&str, IngestError> {
    path.file_name().and_then(|name| name.to_str()).ok_or_else(|| not_utf8(path))
}

fn not_utf8(path: &Path) -> IngestError {
    IngestError::NotUtf8 { path: PathBuf::from(path.to_string_lossy().into_owned()) }
}
