//! Which files and folders a stage may read although it did not declare them.
//!
//! Readable are the system's own folders, the installations of the programs that the stage starts
//! ([`super::installed`]), blobs by name, and what the project's settings allow. Everything else is closed: the
//! project, the home, `/tmp`, and any other place where people keep data. Where the home or the project lie in a
//! system folder, that folder is opened around them.
//!
//! Blobs can be read and not listed. Whoever names one names its content, so no such read can be stale.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use avow_model::action::Action;

use super::installed::{find, installed};
use super::protection::Opened;

/// Folders of the system: programs, libraries, settings, devices and what the kernel says.
pub(crate) const SYSTEM: [&str; 19] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/var/cache",
    "/var/lib",
];

/// The folders that are never opened as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    home: Option<PathBuf>,
    project: Option<PathBuf>,
}

impl Closed {
    /// Real paths. A home that is the root of everything, as some services have it, closes nothing.
    pub(crate) fn new(home: &Path, project: Option<&Path>) -> Self {
        let real = |path: &Path| path.canonicalize().ok().filter(|real| real.parent().is_some());
        Self { home: real(home), project: project.and_then(real) }
    }

    /// The project's root.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.home.iter().chain(&self.project)
    }

    /// Whether everything in one of them could be read if this were opened.
    pub(crate) fn would_open(&self, path: &Path) -> bool {
        self.all().any(|closed| closed.starts_with(path))
    }

    /// A folder, or what is in it but for the closed ones.
    fn around(&self, folder: PathBuf, out: &mut BTreeSet<PathBuf>) {
        if self.all().any(|closed| *closed == folder) {
            return;
        }
        if !self.would_open(&folder) {
            out.insert(folder);
            return;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.around(entry.path(), out);
            }
        }
    }
}

/// What may be read, opened.
#[derive(Debug)]
pub(crate) struct Grants {
    opened: Vec<Opened>,
    paths: BTreeSet<PathBuf>,
    asked: Arc<BTreeSet<PathBuf>>,
}

impl Grants {
    /// For rule sets.
    pub(crate) fn opened(&self) -> &[Opened] {
        &self.opened
    }

    /// Whether a real path may be read.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        real.ancestors().any(|part| self.paths.contains(part))
    }

    /// Whether it may be read as a part of installed software, not because the person allowed it.
    pub(crate) fn is_installed(&self, real: &Path) -> bool {
        self.allows(real) && !real.ancestors().any(|part| self.asked.contains(part))
    }
}

/// What tells one set of grants from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    path: OsString,
    libraries: Option<String>,
    programs: Vec<String>,
    file: Option<PathBuf>,
}

/// Finds and remembers the grants of actions.
#[derive(Debug)]
pub(crate) struct Book {
    home: PathBuf,
    closed: Closed,
    always: BTreeSet<PathBuf>,
    asked: Arc<BTreeSet<PathBuf>>,
    blobs: PathBuf,
    known: Mutex<HashMap<Key, Arc<Grants>>>,
}

impl Book {
    /// For a home, a project, the file of this program, and what is allowed besides.
    pub(crate) fn new(home: &Path, bounds: &super::Bounds, avow: &Path, blobs: PathBuf) -> Self {
        let closed = Closed::new(home, bounds.project.as_deref());
        let mut always = BTreeSet::new();
        for folder in SYSTEM {
            if let Ok(real) = Path::new(folder).canonicalize() {
                closed.around(real, &mut always);
            }
        }
        // What is allowed by name is opened even if it is the whole home: the person said so.
        let asked: BTreeSet<PathBuf> =
            bounds.allow.iter().filter_map(|path| path.canonicalize().ok()).collect();
        always.extend(asked.iter().cloned());
        always.extend(avow.canonicalize().ok());
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Self { home, closed, always, asked: Arc::new(asked), blobs, known: Mutex::default() }
    }

    /// Where linked inputs lie that need no rule of their own.
    pub(crate) fn blobs(&self) -> &Path {
        &self.blobs
    }

    /// What the stage of an action may read: `file` is started, and programs are found on `path`.
    pub(crate) fn grants(&self, action: &Action, file: &Path, work: &Path, path: &OsStr) -> Arc<Grants> {
        let key = Key {
            path: path.to_owned(),
            libraries: action.env.get("LD_LIBRARY_PATH").cloned(),
            programs: action.toolchain.keys().cloned().collect(),
            file: (!file.starts_with(work)).then(|| file.to_owned()),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key).or_insert_with_key(|key| Arc::new(self.make(key))))
    }

    fn make(&self, key: &Key) -> Grants {
        let mut programs: BTreeSet<PathBuf> =
            key.programs.iter().filter_map(|word| find(&key.path, word)).collect();
        let absolute = key.programs.iter().map(PathBuf::from).filter(|path| path.is_absolute());
        programs.extend(absolute.chain(key.file.clone()));
        let mut wanted = installed(&programs, &key.path, &self.home, &self.closed);
        let libraries = key.libraries.iter().flat_map(std::env::split_paths);
        wanted.extend(libraries.filter(|folder| folder.is_absolute() && !self.closed.would_open(folder)));
        let mut paths = self.always.clone();
        paths.extend(wanted.iter().filter_map(|path| path.canonicalize().ok()));
        // What lies in an opened folder needs no rule of its own.
        let outer: Vec<&PathBuf> =
            paths.iter().filter(|path| !path.ancestors().skip(1).any(|a| paths.contains(a))).collect();
        let mut opened: Vec<Opened> = outer.iter().filter_map(|path| Opened::for_reading(path)).collect();
        opened.extend(Opened::for_known_names(&self.blobs));
        Grants { opened, paths: outer.into_iter().cloned().collect(), asked: Arc::clone(&self.asked) }
    }
}
