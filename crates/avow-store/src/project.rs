//! The project's root and where everything lies in the store folder.
//!
//! ```text
//! .avow/format                     the number of the layout
//! .avow/.gitignore                 `*`: the store is not for version control
//! .avow/blobs/ab/<62 hex>          bytes by digest, read-only
//! .avow/journal/RUN.jsonl          what each run did
//! .avow/ledger/EXPERIMENT.jsonl    chains of experiments never registered (then registrations/EXPERIMENT.jsonl)
//! .avow/aliases/N.jsonl            names that actions had under encoding N
//! .avow/index/                     sled; may be deleted
//! .avow/cache/                     what reading commands need not work out again; may be deleted
//! .avow/work/                      attempts' folders; work/tmp holds half-written blobs
//! .avow/log/                       what the program says about itself
//! .avow/quarantine/                blobs that did not verify
//! .avow/live/RUN.json              what a living run says about itself
//! .avow/*.lock, .avow/lock         files to hold locks on (`lock.rs`); index.sock is the index's owner's
//! ```
//!
//! Discovery only looks; nothing is created before [`Project::create`].

use std::fs;
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use rustix::fs::FlockOperation;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;

/// The folder of the journals in the store, beside that of the index.
pub(crate) const JOURNALS: &str = "journal";

/// The newest layout this program knows.
pub const FORMAT: u32 = 1;

/// The name of the store folder.
pub const STORE: &str = ".avow";

/// A project: its root, and paths below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// The project with this root.
    pub fn at(root: impl Into<PathBuf>) -> Project {
        Project { root: root.into() }
    }

    /// The project that a folder belongs to: the nearest folder upwards with an `avow.toml`, else the nearest
    /// with a `.git`, else the folder itself. The root is an absolute path without links.
    pub fn discover(folder: &Path) -> Result<Project, StoreError> {
        let start = fs::canonicalize(folder).context("find", folder)?;
        let nearest = |name: &str| start.ancestors().find(|f| f.join(name).symlink_metadata().is_ok());
        let root = nearest("avow.toml").or_else(|| nearest(".git")).unwrap_or(&start);
        Ok(Project::at(root))
    }

    /// Creates what is missing of the store folder and checks its format. Does nothing to an existing store.
    pub fn create(&self) -> Result<(), StoreError> {
        let store = self.store();
        for folder in [self.blobs(), self.journals(), self.ledgers(), self.temporary(), self.logs()] {
            disk::create_folders(&folder).context("create", &folder)?;
        }
        let ignore = store.join(".gitignore");
        if !ignore.exists() {
            files::write_whole(&ignore, b"*\n")?;
        }
        if !self.check_format()? {
            files::write_whole(&self.format_file(), format!("{FORMAT}\n").as_bytes())?;
            files::sync_folder(&self.root)?;
        }
        Ok(())
    }

    /// Whether there is a store whose format is known; an error where its format is newer than this program.
    pub fn check_format(&self) -> Result<bool, StoreError> {
        let path = self.format_file();
        let text = match fs::read_to_string(&path) {
            Err(e) if files::absent(&e) => return Ok(false),
            other => other.context("read", &path)?,
        };
        match text.trim().parse::<u32>() {
            Ok(1..=FORMAT) => Ok(true),
            _ => Err(StoreError::Format { path: self.store(), found: text.trim().to_owned(), known: FORMAT }),
        }
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The store folder.
    pub fn store(&self) -> PathBuf {
        self.root.join(STORE)
    }

    fn format_file(&self) -> PathBuf {
        self.store().join("format")
    }

    /// The folder of the blobs.
    pub fn blobs(&self) -> PathBuf {
        self.store().join("blobs")
    }

    /// Where a blob lies.
    pub fn blob(&self, digest: BlobDigest) -> PathBuf {
        let hex = digest.to_string();
        self.blobs().join(&hex[..2]).join(&hex[2..])
    }

    /// The folder of the names that actions had under earlier encodings.
    pub fn aliases(&self) -> PathBuf {
        self.store().join("aliases")
    }

    /// The folder of the journals.
    pub fn journals(&self) -> PathBuf {
        self.store().join(JOURNALS)
    }

    /// Where a run's journal lies.
    pub fn journal(&self, run: &str) -> PathBuf {
        self.journals().join(format!("{run}.jsonl"))
    }

    /// The folder of the ledgers that are not yet in the project.
    pub fn ledgers(&self) -> PathBuf {
        self.store().join("ledger")
    }

    /// The folder of the ledgers that are in the project.
    pub fn registrations(&self) -> PathBuf {
        self.root.join("registrations")
    }

    /// The folder of the sled index.
    pub fn index(&self) -> PathBuf {
        self.store().join("index")
    }

    /// The folder of what commands need not work out again. Nothing in it is evidence.
    pub fn cache(&self) -> PathBuf {
        self.store().join("cache")
    }

    /// The folder of the attempts' working folders, on the same file system as the blobs.
    pub fn work(&self) -> PathBuf {
        self.store().join("work")
    }

    /// The folder of checkpoints: what attempts that did not succeed left for the next one of the same action.
    pub fn checkpoints(&self) -> PathBuf {
        self.store().join("checkpoints")
    }

    /// The folder of half-written blobs.
    pub fn temporary(&self) -> PathBuf {
        self.work().join("tmp")
    }

    /// The folder of the program's own logs.
    pub fn logs(&self) -> PathBuf {
        self.store().join("log")
    }

    /// The folder of what did not verify.
    pub fn quarantine(&self) -> PathBuf {
        self.store().join("quarantine")
    }

    /// The folder of what living runs say about themselves.
    pub fn live(&self) -> PathBuf {
        self.store().join("live")
    }

    /// The file whose lock makes a process the runner.
    pub fn lock(&self) -> PathBuf {
        self.store().join("lock")
    }

    /// Removes half-written blobs whose writers are gone. A living writer holds a lock on its own folder, so
    /// this is safe at any time. Returns how many folders went.
    pub fn clear_temporary(&self) -> Result<usize, StoreError> {
        let folder = self.temporary();
        let mut cleared = 0;
        for entry in fs::read_dir(&folder).context("list", &folder)? {
            let path = entry.context("list", &folder)?.path();
            let opened = match fs::File::open(&path) {
                Err(e) if files::absent(&e) => continue,
                other => other.context("open", &path)?,
            };
            match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => continue,
                Err(e) => return Err(e).context("lock", &path),
            }
            if path.is_dir() {
                disk::remove_folder(&path).context("remove", &path)?;
                cleared += 1;
            }
        }
        self.clear_halves()?;
        Ok(cleared)
    }

    /// Removes what [`files::write_whole`] left under a temporary name when its process died. They are few and
    /// small, but some lie where people look.
    fn clear_halves(&self) -> Result<(), StoreError> {
        for folder in [self.store(), self.live(), self.cache(), self.registrations(), self.root.clone()] {
            let list = match fs::read_dir(&folder) {
                Err(e) if files::absent(&e) => continue,
                other => other.context("list", &folder)?,
            };
            for entry in list {
                let entry = entry.context("list", &folder)?;
                if files::left_behind(&entry.file_name()) {
                    let path = entry.path();
                    match disk::remove_file(&path) {
                        // Another run clears up as well.
                        Err(e) if !files::absent(&e) => return Err(e).context("remove", &path),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}
