//! Watching what the processes of an attempt read.
//!
//! A thread beside the attempt's answers the kernel ([`crate::notify`]): before a file is opened or executed it
//! is looked at and, where that is asked for, hashed, so the digest is of the content that the program is about to
//! read. The first look at a path counts. Nothing is decided here about reuse; what comes out is a [`Reads`]
//! record, or the list of denied files.
//!
//! Not recorded: what the attempt was given or wrote itself, blobs, what the kernel says (`/proc`, `/sys`, `/dev`,
//! `/run`), and a few files that say which machine it is ([`MACHINE`]). Python's compiled modules stand for their
//! source, which is what a person edits. Of installed software only the content of files counts: which names there
//! are is for its lock file to say.

mod calls;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use avow_model::canonical::Record;
use avow_model::digest::ReadsDigest;
use avow_model::reads::{Reads, Seen, names_digest, spell};
use avow_store::{BlobStore, Ingest, MemoryStamps, StampCache, StoreError};
use rustix::event::{EventfdFlags, eventfd};

use crate::confine::grants::Grants;
use crate::notify::{self, Call, Listener};
use calls::{Access, Kind};

/// Files that say which machine it is, or are remade whenever software is installed.
const MACHINE: [&str; 14] = [
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/machine-id",
    "/etc/mtab",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/timezone",
];
/// Folders whose files are not kept anywhere.
const PASSING: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// What all attempts of an executor share in being observed.
pub(crate) struct Observer {
    project: PathBuf,
    home: PathBuf,
    work: PathBuf,
    blob_folder: PathBuf,
    blobs: Arc<dyn BlobStore>,
    stamps: Arc<dyn StampCache>,
}

/// What the watching of one attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To record what is read.
    Record,
    /// To name what is denied.
    Explain,
}

/// An attempt under observation.
#[derive(Debug)]
pub(crate) struct Observation {
    listeners: Sender<Listener>,
    stop: OwnedFd,
    /// A program that cannot be observed and was therefore not started.
    refused: Arc<OnceLock<PathBuf>>,
    thread: JoinHandle<Sightings>,
}

/// What was seen of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    ordinary: BTreeMap<PathBuf, Seen>,
    installed: BTreeMap<PathBuf, Seen>,
    /// Files that were there and could not be read.
    pub(crate) denied: Vec<PathBuf>,
}

/// Whether programs of this machine can be observed; why not.
pub(crate) fn available() -> Result<(), io::Error> {
    let tried = thread::spawn(|| {
        rustix::thread::set_no_new_privs(true)?;
        notify::listen(&calls::stops()).map(drop)
    });
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the test of tracing panicked")))
}

impl Observer {
    /// For a project and a home, with what belongs to attempts themselves: the folder of attempts and the blobs.
    pub(crate) fn new(
        project: Option<&Path>,
        home: &OsStr,
        work: &Path,
        blob_folder: &Path,
        blobs: Arc<dyn BlobStore>,
    ) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self {
            project: project.map_or_else(|| PathBuf::from("/nonexistent"), real),
            home: real(Path::new(home)),
            work: work.to_owned(),
            blob_folder: blob_folder.to_owned(),
            blobs,
            stamps: Arc::new(MemoryStamps::default()),
        }
    }

    /// Begins to watch an attempt; `grants` say what is installed, and what is denied.
    pub(crate) fn begin(self: &Arc<Self>, grants: Arc<Grants>, purpose: Purpose) -> io::Result<Observation> {
        let (listeners, incoming) = channel();
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let refused = Arc::<OnceLock<PathBuf>>::default();
        let watcher = Watcher {
            observer: Arc::clone(self),
            grants,
            purpose,
            refused: Arc::clone(&refused),
            known: HashSet::new(),
            written: HashSet::new(),
            sightings: Sightings::default(),
        };
        let stopped = stop.try_clone()?;
        let thread = thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || watcher.work(&incoming, &stopped))?;
        Ok(Observation { listeners, stop, refused, thread })
    }

    /// Puts what was seen into the store; the record's digest.
    pub(crate) fn store(&self, sightings: Sightings) -> Result<ReadsDigest, StoreError> {
        let installed = match sightings.installed.is_empty() {
            true => None,
            false => Some(self.put(sightings.installed, None)?),
        };
        self.put(sightings.ordinary, installed)
    }

    fn put(
        &self,
        seen: BTreeMap<PathBuf, Seen>,
        installed: Option<ReadsDigest>,
    ) -> Result<ReadsDigest, StoreError> {
        let (project, home) = (self.project.to_string_lossy(), self.home.to_string_lossy());
        let spelled = seen.into_iter().map(|(path, seen)| match path.to_str() {
            Some(path) => (spell(path, &project, &home), seen),
            // A name that cannot be written down cannot be looked at again.
            None => (spell(&path.to_string_lossy(), &project, &home), Seen::Unknown),
        });
        let reads = Reads { seen: spelled.collect(), installed };
        self.blobs.put(&reads.to_bytes())?;
        Ok(reads.digest())
    }

    /// Whether a path belongs to attempts, or to nobody.
    fn is_passing(&self, path: &Path) -> bool {
        path.starts_with(&self.work)
            || path.starts_with(&self.blob_folder)
            || PASSING.iter().any(|folder| path.starts_with(folder))
            || MACHINE.iter().any(|file| path == Path::new(file))
    }

    /// Whether it would matter if something were there later: in the project and in the home.
    fn may_be_missed(&self, path: &Path) -> bool {
        let store = self.work.parent().is_some_and(|store| path.starts_with(store));
        !store && (path.starts_with(&self.project) || path.starts_with(&self.home))
    }

    fn content(&self, file: &Path) -> Seen {
        match Ingest::new(self.blobs.as_ref(), self.stamps.as_ref()).hash_file(file) {
            Ok(file) => Seen::File(file.digest),
            Err(error) => {
                tracing::debug!(file = %file.display(), %error, "a file that is read cannot be hashed");
                Seen::Unknown
            }
        }
    }
}

impl Observation {
    /// Observes this thread, which has given up new privileges, and everything it starts from now on.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let listener = notify::listen(&calls::stops())?;
        self.listeners.send(listener).map_err(|_| io::Error::other("nobody observes any more"))
    }

    /// A program that was not started because it cannot be observed.
    pub(crate) fn refused(&self) -> Option<&Path> {
        self.refused.get().map(PathBuf::as_path)
    }

    /// What was seen. The processes of the attempt are over.
    pub(crate) fn end(self) -> io::Result<Sightings> {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes())?;
        drop(self.listeners);
        self.thread.join().map_err(|_| io::Error::other("the observer of an attempt panicked"))
    }
}

/// The thread that answers the kernel.
struct Watcher {
    observer: Arc<Observer>,
    grants: Arc<Grants>,
    purpose: Purpose,
    refused: Arc<OnceLock<PathBuf>>,
    known: HashSet<(PathBuf, Kind)>,
    written: HashSet<PathBuf>,
    sightings: Sightings,
}

impl Watcher {
    /// A program that is busy is started again, each time from a new thread with a new listener.
    fn work(mut self, incoming: &Receiver<Listener>, stop: &OwnedFd) -> Sightings {
        while let Ok(listener) = incoming.recv() {
            loop {
                match listener.next(stop) {
                    Ok(Some(call)) => self.answer(&listener, &call),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "an attempt is observed no longer");
                        self.saw(PathBuf::from("/"), Seen::Unknown);
                        break;
                    }
                }
            }
        }
        self.sightings
    }

    fn answer(&mut self, listener: &Listener, call: &Call) {
        let Some(access) = calls::access(call).filter(|_| listener.waits(call)) else {
            return listener.go_on(call);
        };
        if access.kind == Kind::Execute && is_foreign(&access.path) {
            // Its calls could not be observed. It was never there, for all that the program knows.
            let _first = self.refused.set(access.path);
            return listener.refuse(call, libc::ENOEXEC);
        }
        self.consider(access);
        listener.go_on(call);
    }

    fn consider(&mut self, access: Access) {
        let Access { path, kind } = access;
        if kind == Kind::Write {
            self.written.insert(path);
            return;
        }
        // A path that goes up may lead out of where it begins.
        let straight = !path.components().any(|part| part == Component::ParentDir);
        if straight && self.observer.is_passing(&path) || self.written.contains(&path) {
            return;
        }
        // Most looks are at what is there, which says nothing; that costs one call.
        if self.known.contains(&(path.clone(), kind)) {
            return;
        }
        match path.canonicalize() {
            Ok(real) if kind != Kind::Look => self.found(&real, kind),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                self.missed(&path);
            }
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "a path that is read cannot be followed");
            }
        }
        self.known.insert((path, kind));
    }

    /// Something is there and about to be read.
    fn found(&mut self, real: &Path, kind: Kind) {
        if self.observer.is_passing(real) || self.written.contains(real) {
            return;
        }
        let Ok(about) = fs::metadata(real) else { return };
        let kind_of_file = about.file_type();
        if kind_of_file.is_fifo() || kind_of_file.is_socket() || kind_of_file.is_char_device() {
            return;
        }
        if self.purpose == Purpose::Explain {
            if !self.grants.allows(real) {
                self.sightings.denied.push(real.to_owned());
            }
            return;
        }
        if about.is_dir() {
            if !self.grants.is_installed(real) {
                self.saw(real.to_owned(), names(real));
            }
            return;
        }
        let file = source_of(real).unwrap_or_else(|| real.to_owned());
        if !self.is_seen(&file) {
            let content = self.observer.content(&file);
            self.saw(file, content);
        }
        if kind == Kind::Execute
            && let Some(interpreter) = interpreter(real).and_then(|path| path.canonicalize().ok())
        {
            self.found(&interpreter, Kind::Read);
        }
    }

    /// Nothing is there.
    fn missed(&mut self, path: &Path) {
        let place = nearest(path);
        let passing = self.observer.is_passing(&place) || self.grants.is_installed(&place);
        if self.purpose == Purpose::Record && !passing && self.observer.may_be_missed(&place) {
            self.saw(place, Seen::Absent);
        }
    }

    fn is_seen(&self, path: &Path) -> bool {
        self.sightings.ordinary.contains_key(path) || self.sightings.installed.contains_key(path)
    }

    fn saw(&mut self, path: PathBuf, seen: Seen) {
        let installed = self.grants.is_installed(&path);
        let Sightings { ordinary, installed: software, .. } = &mut self.sightings;
        (if installed { software } else { ordinary }).entry(path).or_insert(seen);
    }
}

/// The names in a folder.
fn names(folder: &Path) -> Seen {
    let read = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name().into_vec())).collect::<io::Result<Vec<_>>>()
    });
    read.map_or(Seen::Unknown, |names| Seen::Names(names_digest(names)))
}

/// The path with links followed as far as there is something.
fn nearest(path: &Path) -> PathBuf {
    for (part, rest) in path.ancestors().skip(1).map(|part| (part, path.strip_prefix(part))) {
        if let (Ok(real), Ok(rest)) = (part.canonicalize(), rest) {
            let mut place = real;
            for component in rest.components() {
                match component {
                    Component::ParentDir => drop(place.pop()),
                    other => place.push(other),
                }
            }
            return place;
        }
    }
    path.to_owned()
}

/// `pkg/module.py` of `pkg/__pycache__/module.cpython-311.pyc`, where that exists.
fn source_of(file: &Path) -> Option<PathBuf> {
    let folder =
        file.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "__pycache__"))?;
    let name = file.file_name()?.to_str()?.strip_suffix(".pyc")?;
    let module = name.split_once('.').map_or(name, |(module, _)| module);
    let source = folder.parent()?.join(format!("{module}.py"));
    source.is_file().then_some(source)
}

fn start_of(file: &Path) -> Option<[u8; 256]> {
    use std::io::Read;
    let mut start = [0; 256];
    let read = fs::File::open(file).and_then(|mut file| file.read(&mut start)).ok()?;
    (read > 4).then_some(start)
}

/// Whether a program is of another size of pointer than this one.
fn is_foreign(file: &Path) -> bool {
    const THIS: u8 = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    start_of(file).is_some_and(|start| start.starts_with(b"\x7fELF") && start[4] != THIS)
}

/// What the first line of a script names; the kernel opens it without a call.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let start = start_of(file)?;
    let line = start.strip_prefix(b"#!")?.split(|b| matches!(*b, b'\n' | 0)).next()?;
    let first = std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?;
    Some(PathBuf::from(first)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiled_module_stands_for_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join("module.py");
        let compiled = folder.path().join("__pycache__/module.cpython-311.opt-1.pyc");
        assert_eq!(source_of(&compiled), None, "a module without its source stands for itself");
        fs::write(&module, "x = 1\n").unwrap();
        assert_eq!(source_of(&compiled), Some(module));
        assert_eq!(source_of(Path::new("/a/module.pyc")), None);
    }

    #[test]
    fn a_path_to_nothing_is_followed_as_far_as_there_is_something() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(nearest(&root.join("link/no/../where")), root.join("real/where"));
    }
}
