//! Digests of files that earlier commands remembered, read only where one is asked for.

use std::sync::OnceLock;

use avow_model::digest::BlobDigest;
use avow_store::{FileStamp, FileStamps, Project, StampCache, StoreError};

/// Remembered digests of a project, for commands that mostly need none. What is learnt is kept at the end.
pub struct Remembered {
    project: Project,
    opened: OnceLock<FileStamps>,
}

impl Remembered {
    /// Of a project; nothing is read yet.
    pub fn of(project: &Project) -> Remembered {
        Remembered { project: project.clone(), opened: OnceLock::new() }
    }

    fn opened(&self) -> &FileStamps {
        self.opened.get_or_init(|| FileStamps::open(&self.project))
    }
}

impl StampCache for Remembered {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        self.opened().cached_digest(stamp)
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.opened().remember_digests(entries)
    }
}

impl Drop for Remembered {
    fn drop(&mut self) {
        if let Some(stamps) = self.opened.get() {
            stamps.save();
        }
    }
}
