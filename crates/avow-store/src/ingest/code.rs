//! The code of a stage: listed files and folders at their paths in the project.

use std::path::Path;

use avow_model::tree::{Entry, PathError, Tree, check_path};
use rayon::prelude::*;

use super::{Ingest, IngestError, StoredFolder, look};
use crate::blob::Intake;

/// What one listed path contributes: entries, and their bytes.
type Part = (Vec<(String, Entry)>, u64);

impl Ingest<'_> {
    /// Names the tree of the listed project paths (files, or folders with all that is in them).
    pub fn code_tree(&self, root: &Path, paths: &[String]) -> Result<StoredFolder, IngestError> {
        self.code(root, paths, None)
    }

    /// Stores the tree of the listed project paths, files and record.
    pub fn store_code(&self, root: &Path, paths: &[String]) -> Result<StoredFolder, IngestError> {
        self.code(root, paths, Some(Intake::Copy))
    }

    fn code(&self, root: &Path, paths: &[String], how: Option<Intake>) -> Result<StoredFolder, IngestError> {
        let wrong = |source: PathError| IngestError::Path { folder: root.to_owned(), source };
        let parts = paths.par_iter().map(|path| {
            let path = path.trim_end_matches('/');
            check_path(path).map_err(wrong)?;
            self.listed(root, path, how)
        });
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        let mut tree = Tree::default();
        let mut size = 0;
        for (entries, bytes) in parts {
            size += bytes;
            for (name, entry) in entries {
                tree.insert(&name, entry).map_err(wrong)?;
            }
        }
        self.finish(tree, size, how)
    }

    fn listed(&self, root: &Path, path: &str, how: Option<Intake>) -> Result<Part, IngestError> {
        let full = root.join(path);
        // A linked program file is its content here: the link's target need not be part of the code.
        if look(&full, true)?.is_dir() {
            let folder = self.folder(&full, how)?;
            let inner = folder.tree.entries.into_iter();
            let entries: Vec<_> = inner.map(|(name, entry)| (format!("{path}/{name}"), entry)).collect();
            let empty = vec![(path.to_owned(), Entry::Empty)];
            return Ok((if entries.is_empty() { empty } else { entries }, folder.size));
        }
        let file = self.file(&full, how)?;
        let entry = Entry::File { digest: file.digest, executable: file.executable };
        Ok((vec![(path.to_owned(), entry)], file.size))
    }
}
