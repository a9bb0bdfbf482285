//! Whether what an attempt was seen to read is still so.
//!
//! A file costs one look where the stamp cache knows it. Records are shared by many attempts, so what was found
//! for one is believed for a moment (`FRESH`): long enough for a wave of look-ups, too short for a person's
//! edit between two of them to matter.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use avow_model::digest::ReadsDigest;
use avow_model::reads::{Drift, Reads, Seen, names_digest, resolve};

use crate::blob::{BlobStore, read_record};
use crate::error::StoreError;
use crate::ingest::{Ingest, IngestError};
use crate::project::Project;
use crate::stamp::StampCache;

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(1);

/// Answers for one project and home.
#[derive(Debug)]
pub struct Observed {
    project: String,
    home: String,
    known: Mutex<HashMap<ReadsDigest, (Instant, Option<Drift>)>>,
}

impl Observed {
    /// For a project and the home of whoever runs in it.
    pub fn new(project: &Project, home: &Path) -> Observed {
        let text = |path: &Path| {
            path.canonicalize().unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
        };
        Observed { project: text(project.root()), home: text(home), known: Mutex::default() }
    }

    /// For a project and the caller's `HOME`.
    pub fn here(project: &Project) -> Observed {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Observed::new(project, &home)
    }

    /// The first thing that is not as it was when it was read; `None` where everything is.
    ///
    /// # Errors
    /// Where the record is missing or damaged, or the machine fails. A file that cannot be read is an answer.
    pub fn drift(
        &self,
        reads: ReadsDigest,
        blobs: &dyn BlobStore,
        stamps: &dyn StampCache,
    ) -> Result<Option<Drift>, StoreError> {
        if let Some((at, known)) = self.known().get(&reads)
            && at.elapsed() < FRESH
        {
            return Ok(known.clone());
        }
        let record: Reads = read_record(blobs, reads)?;
        let mut found = None;
        for (path, then) in &record.seen {
            let now = self.now(path, *then, blobs, stamps)?;
            if let Some(how) = then.drifted(now) {
                found = Some(Drift { path: path.clone(), how });
                break;
            }
        }
        if let (None, Some(installed)) = (&found, record.installed) {
            found = self.drift(installed, blobs, stamps)?;
        }
        self.known().insert(reads, (Instant::now(), found.clone()));
        Ok(found)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<ReadsDigest, (Instant, Option<Drift>)>> {
        // Each entry is whole at every point at which a thread could panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there now, looked at as it was looked at then.
    fn now(
        &self,
        spelling: &str,
        then: Seen,
        blobs: &dyn BlobStore,
        stamps: &dyn StampCache,
    ) -> Result<Seen, StoreError> {
        let path = PathBuf::from(resolve(spelling, &self.project, &self.home));
        let about = match fs::metadata(&path) {
            Ok(about) => about,
            Err(error) if absent(&error) => return Ok(Seen::Absent),
            Err(_) => return Ok(Seen::Unknown),
        };
        match then {
            // For what was not there it is enough that something is; it is not read for that.
            Seen::Absent => Ok(Seen::Names(names_digest(Vec::new()))),
            Seen::Unknown => Ok(Seen::Unknown),
            Seen::File(_) if about.is_file() => match Ingest::new(blobs, stamps).hash_file(&path) {
                Ok(file) => Ok(Seen::File(file.digest)),
                Err(IngestError::Failed(error)) if error.io_kind().is_none() => Err(error),
                Err(_) => Ok(Seen::Unknown),
            },
            Seen::File(_) => Ok(Seen::Names(names_digest(Vec::new()))),
            Seen::Names(_) => {
                Ok(names(&path).map_or(Seen::Unknown, |names| Seen::Names(names_digest(names))))
            }
        }
    }
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn names(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name().into_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::{MemoryBlobs, put_record};
    use crate::stamp::MemoryStamps;
    use avow_model::digest::BlobDigest;
    use avow_model::reads::Drifted;

    fn drift(root: &Path, home: &Path, record: &Reads) -> Option<(String, Drifted)> {
        let (blobs, stamps) = (MemoryBlobs::new(), MemoryStamps::default());
        let digest = put_record(&blobs, record).unwrap();
        let found = Observed::new(&Project::at(root), home).drift(digest, &blobs, &stamps).unwrap();
        found.map(|drift| (drift.path, drift.how))
    }

    #[test]
    fn every_kind_of_drift_is_told_apart() {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = project.path();
        fs::write(root.join("file"), "one").unwrap();
        fs::create_dir(root.join("folder")).unwrap();
        fs::write(home.path().join("notes"), "n").unwrap();
        let seen = [
            ("file", Seen::File(BlobDigest::of(b"one"))),
            ("folder", Seen::Names(names_digest(Vec::new()))),
            ("nothing", Seen::Absent),
            ("~/notes", Seen::File(BlobDigest::of(b"n"))),
        ];
        let record = Reads { seen: seen.map(|(p, s)| (p.to_owned(), s)).into(), installed: None };
        let now = || drift(root, home.path(), &record);
        assert_eq!(now(), None);
        let changed = |path: &str, how| Some((path.to_owned(), how));
        fs::write(root.join("file"), "two").unwrap();
        assert_eq!(now(), changed("file", Drifted::Changed));
        fs::remove_file(root.join("file")).unwrap();
        assert_eq!(now(), changed("file", Drifted::Gone));
        fs::create_dir(root.join("file")).unwrap();
        assert_eq!(now(), changed("file", Drifted::Changed));
        fs::remove_dir(root.join("file")).unwrap();
        fs::write(root.join("file"), "one").unwrap();
        fs::write(root.join("folder/new"), "").unwrap();
        assert_eq!(now(), changed("folder", Drifted::Changed));
        fs::remove_file(root.join("folder/new")).unwrap();
        fs::write(root.join("nothing"), "").unwrap();
        assert_eq!(now(), changed("nothing", Drifted::Appeared));
        fs::remove_file(root.join("nothing")).unwrap();
        assert_eq!(now(), None, "as it was is as good as never changed");
    }

    #[test]
    fn installed_software_counts_and_what_could_not_be_recorded_never_matches() {
        let folder = tempfile::tempdir().unwrap();
        let (blobs, stamps) = (MemoryBlobs::new(), MemoryStamps::default());
        let tool = folder.path().join("tool").display().to_string();
        fs::write(&tool, "1").unwrap();
        let installed =
            Reads { seen: [(tool.clone(), Seen::File(BlobDigest::of(b"1")))].into(), installed: None };
        let installed = put_record(&blobs, &installed).unwrap();
        let record = Reads { installed: Some(installed), ..Reads::default() };
        let record = put_record(&blobs, &record).unwrap();
        let answer = || {
            let observed = Observed::new(&Project::at("/nonexistent"), Path::new("/"));
            observed.drift(record, &blobs, &stamps).unwrap().map(|drift| drift.how)
        };
        assert_eq!(answer(), None);
        fs::write(&tool, "2").unwrap();
        assert_eq!(answer(), Some(Drifted::Changed));
        let unknown = Reads { seen: [("x".to_owned(), Seen::Unknown)].into(), installed: None };
        assert_eq!(drift(folder.path(), folder.path(), &unknown).unwrap().1, Drifted::Unknown);
    }
}
