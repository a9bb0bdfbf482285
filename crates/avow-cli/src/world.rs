//! The world as a spec sees it: the project's files, and the programs on `PATH`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use avow_exec::identity::Identified;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::loads::Loads;
use avow_model::plan::{Plan, Stage};
use avow_model::tree::Tree;
use avow_spec::{Answered, Asked, Found, World};
use avow_store::{BlobStore, Fault, Ingest, IngestError, Intake, StampCache, StoreError};

use serde::{Deserialize, Serialize};

use crate::context::Spec;

/// The largest text file that is read for code closures and lock files, in bytes.
const TEXT_LIMIT: u64 = 4 << 20;

/// Most names of one folder that are given.
const MAX_NAMES: usize = 20_000;

/// What programs were, and what they loaded, in a plan that was carried out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AsRun {
    programs: BTreeMap<String, BlobDigest>,
    /// By stage, then by what a stage does, for one that was renamed.
    stages: BTreeMap<String, BlobDigest>,
    work: BTreeMap<String, BlobDigest>,
}

impl AsRun {
    /// Of a plan.
    pub fn of(plan: &Plan) -> AsRun {
        let mut all = AsRun::default();
        for stage in &plan.stages {
            all.programs.extend(stage.toolchain.iter().map(|(word, digest)| (word.clone(), *digest)));
            if let Some(loads) = stage.loads {
                all.stages.insert(stage.name.clone(), loads);
                all.work.insert(work_of(stage), loads);
            }
        }
        all
    }

    fn loads_of(&self, stage: &Stage) -> Option<BlobDigest> {
        self.stages.get(&stage.name).or_else(|| self.work.get(&work_of(stage))).copied()
    }
}

/// A name for what a stage does, whatever it is called.
fn work_of(stage: &Stage) -> String {
    BlobDigest::of(format!("{:?} {:?}", stage.program, stage.toolchain).as_bytes()).to_string()
}

/// How deeply to look.
#[derive(Clone, Copy)]
pub enum Depth<'a> {
    /// Existence only; digests are zeros.
    Look,
    /// Content, nothing stored.
    Hash {
        /// A store, for its file access.
        blobs: &'a dyn BlobStore,
        /// Remembered digests.
        stamps: &'a dyn StampCache,
    },
    /// Content, stored.
    Store {
        /// The store.
        blobs: &'a dyn BlobStore,
        /// Remembered digests.
        stamps: &'a dyn StampCache,
    },
}

/// A project's files at some depth.
pub struct ProjectWorld<'a> {
    root: PathBuf,
    beside: String,
    depth: Depth<'a>,
    programs: RefCell<HashMap<String, Option<BlobDigest>>>,
    recorded: Option<AsRun>,
    trees: RefCell<BTreeMap<TreeDigest, Tree>>,
    /// The first failure of the store or the machine: whatever else is told about the spec follows from it.
    failed: RefCell<Option<StoreError>>,
    loads: RefCell<BTreeMap<BlobDigest, Loads>>,
    libraries: RefCell<BTreeSet<PathBuf>>,
    spec: &'a Spec,
}

impl<'a> ProjectWorld<'a> {
    /// The world of a spec.
    pub fn new(spec: &'a Spec, depth: Depth<'a>) -> ProjectWorld<'a> {
        ProjectWorld {
            root: spec.project.root().to_owned(),
            beside: spec.folder.clone(),
            depth,
            programs: RefCell::default(),
            recorded: None,
            trees: RefCell::default(),
            failed: RefCell::default(),
            loads: RefCell::default(),
            libraries: RefCell::default(),
            spec,
        }
    }

    /// The same, with the identities that programs had in a plan that was carried out. Reading results needs none of
    /// the programs that made them, and must not depend on what the reader has installed.
    pub fn recorded(self, recorded: Option<AsRun>) -> ProjectWorld<'a> {
        ProjectWorld { recorded, ..self }
    }

    /// Gives the stages of a plan what their programs loaded in the plan that was carried out, where there is one.
    pub fn as_run(&self, plan: &mut Arc<Plan>) {
        let Some(recorded) = &self.recorded else { return };
        for stage in &mut Arc::make_mut(plan).stages {
            stage.loads = recorded.loads_of(stage);
        }
    }

    /// What programs load, as far as it was asked for.
    pub fn loads_asked(&self) -> BTreeMap<BlobDigest, Loads> {
        self.loads.borrow().clone()
    }

    /// The files of shared libraries outside the project and the system's folders, which a confined stage must be
    /// able to read.
    pub fn library_files(&self) -> Vec<PathBuf> {
        let open = |file: &&PathBuf| {
            ["/usr", "/lib", "/lib64"].iter().any(|folder| file.starts_with(folder))
                || file.starts_with(&self.root)
        };
        self.libraries.borrow().iter().filter(|file| !open(file)).cloned().collect()
    }

    /// Everything that a stage's programs load.
    fn identified(&self, asked: &Asked) -> (Loads, BTreeSet<String>, Vec<String>) {
        let mut all = Identified::default();
        let mut add = |found: Identified| {
            all.loads.extend(found.loads);
            all.doubts.extend(found.doubts);
            self.libraries.borrow_mut().extend(found.paths);
        };
        if let Some(text) = &asked.shell {
            add(self.spec.identities().shell(text));
        }
        for word in asked.called.iter().filter(|word| !is_python(word)) {
            add(self.spec.identities().content(word));
        }
        for word in asked.programs.iter().chain(&asked.called).filter(|word| !is_python(word)) {
            add(self.spec.identities().program(word));
        }
        for file in &asked.files {
            add(self.spec.identities().loaded_by(&self.root.join(file)));
        }
        let mut missing = BTreeSet::new();
        for word in &asked.interpreters {
            add(self.spec.identities().python(word));
            let packages = self.spec.identities().packages(word, &asked.modules);
            add(Identified { loads: packages.found, doubts: packages.doubts, ..Identified::default() });
            missing.extend(packages.missing);
        }
        (Loads(all.loads), missing, all.doubts)
    }

    /// The code trees that were asked for, for comparing them with earlier ones although they are not stored.
    pub fn trees(&self) -> BTreeMap<TreeDigest, Tree> {
        self.trees.borrow().clone()
    }

    /// What decides which answers it gives, besides the files themselves: whether it digests content, and the
    /// programs it takes as recorded.
    pub fn kind(&self) -> (bool, Option<&BTreeMap<String, BlobDigest>>) {
        (!matches!(self.depth, Depth::Look), self.recorded.as_ref().map(|recorded| &recorded.programs))
    }

    /// The digest of a file that [`World::text`] would read; `None` where it would read none.
    pub fn text_digest(&self, path: &str) -> Option<BlobDigest> {
        let path = self.root.join(path);
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > TEXT_LIMIT {
            return None;
        }
        match self.depth {
            Depth::Look => std::fs::read(path).ok().map(|bytes| BlobDigest::of(&bytes)),
            Depth::Hash { blobs, stamps } | Depth::Store { blobs, stamps } => {
                Ingest::new(blobs, stamps).hash_file(&path).ok().map(|file| file.digest)
            }
        }
    }

    /// Whether some question could not be answered.
    pub fn has_failed(&self) -> bool {
        self.failed.borrow().is_some()
    }

    /// The failure of store or machine that kept a question from being answered, if there was one. It is not the
    /// spec's fault, and is told instead of what the spec seemed to lack.
    pub fn failure(&self) -> Option<StoreError> {
        self.failed.take()
    }

    /// The words for an error of the store; the machine's are kept for [`ProjectWorld::failure`].
    fn told(&self, error: IngestError) -> String {
        let text = chain(&error);
        if let IngestError::Failed(error) = error
            && error.fault() == Fault::Machine
            && !of_users_files(&error, &self.root)
        {
            self.failed.borrow_mut().get_or_insert(error);
        }
        text
    }

    fn file(&self, path: &Path) -> Result<BlobDigest, IngestError> {
        match self.depth {
            Depth::Look => Ok(BlobDigest::from_bytes([0; 32])),
            Depth::Hash { blobs, stamps } => Ok(Ingest::new(blobs, stamps).hash_file(path)?.digest),
            Depth::Store { blobs, stamps } => {
                Ok(Ingest::new(blobs, stamps).store_file(path, Intake::Copy)?.digest)
            }
        }
    }

    /// Whether a path of the project is a link to something outside of it, or lies below one.
    fn leads_out(&self, path: &str) -> bool {
        let (root, full) = (self.root.canonicalize(), self.root.join(path).canonicalize());
        matches!((root, full), (Ok(root), Ok(full)) if !full.starts_with(&root))
    }

    fn identify(&self, word: &str) -> Option<BlobDigest> {
        let (blobs, stamps) = match self.depth {
            Depth::Look => return on_path(word).map(|_| BlobDigest::from_bytes([0; 32])),
            Depth::Hash { blobs, stamps } | Depth::Store { blobs, stamps } => (blobs, stamps),
        };
        identify(word, blobs, stamps).unwrap_or_else(|error| {
            let error = self.told(error);
            tracing::warn!(program = word, error, "a program cannot be read");
            None
        })
    }
}

/// The identity of a program: the bytes of the file that is started. A Python found through a launcher
/// script (a version manager's shim) is asked which interpreter it stands for.
///
/// # Errors
/// Where the file cannot be read.
pub fn identify(
    word: &str,
    blobs: &dyn BlobStore,
    stamps: &dyn StampCache,
) -> Result<Option<BlobDigest>, IngestError> {
    let Some(path) = on_path(word) else { return Ok(None) };
    let real = if is_python(word) && is_script(&path) { interpreter(&path).unwrap_or(path) } else { path };
    Ingest::new(blobs, stamps).hash_file(&real).map(|file| Some(file.digest))
}

impl World for ProjectWorld<'_> {
    fn look(&self, path: &str) -> Option<Found> {
        let metadata = self.root.join(path).metadata().ok()?;
        let executable = metadata.is_file() && metadata.permissions().mode() & 0o100 != 0;
        Some(Found { folder: metadata.is_dir(), executable })
    }

    fn text(&self, path: &str) -> Option<String> {
        let path = self.root.join(path);
        let metadata = path.metadata().ok()?;
        (metadata.is_file() && metadata.len() <= TEXT_LIMIT).then(|| std::fs::read_to_string(path).ok())?
    }

    fn program(&self, word: &str) -> Option<BlobDigest> {
        let recorded = self.recorded.as_ref().and_then(|recorded| recorded.programs.get(word));
        if let Some(recorded) = recorded {
            return Some(*recorded);
        }
        if let Some(known) = self.programs.borrow().get(word) {
            return *known;
        }
        let found = self.identify(word);
        self.programs.borrow_mut().insert(word.to_owned(), found);
        found
    }

    fn artifact(&self, path: &str) -> Result<Artifact, String> {
        let full = self.root.join(path);
        let folder = full.metadata().map_err(|error| error.to_string())?.is_dir();
        let said = |error: IngestError| self.told(error);
        match (self.depth, folder) {
            (Depth::Look, true) => Ok(Artifact::Tree(TreeDigest::from_bytes([0; 32]))),
            (_, false) => self.file(&full).map(Artifact::Blob).map_err(said),
            (Depth::Hash { blobs, stamps }, true) => {
                Ok(Ingest::new(blobs, stamps).hash_folder(&full).map_err(said)?.artifact())
            }
            (Depth::Store { blobs, stamps }, true) => {
                Ok(Ingest::new(blobs, stamps).store_folder(&full, Intake::Copy).map_err(said)?.artifact())
            }
        }
    }

    fn image(&self, path: &str) -> Result<String, String> {
        avow_exec::image::identity(&self.root.join(path)).map_err(|error| chain(&error))
    }

    fn keep(&self, text: &str) -> BlobDigest {
        if let Depth::Store { blobs, .. } = self.depth
            && let Err(error) = blobs.put(text.as_bytes())
        {
            self.failed.borrow_mut().get_or_insert(error);
        }
        BlobDigest::of(text.as_bytes())
    }

    fn reference(&self, path: &str) -> Result<Artifact, String> {
        let full = self.root.join(path);
        match self.depth {
            Depth::Look | Depth::Hash { .. } => self.artifact(path),
            Depth::Store { blobs, stamps } => {
                let project = avow_store::Project::at(&self.root);
                avow_store::reference::record(&project, &full, blobs, stamps)
                    .map_err(|error| self.told(error))
            }
        }
    }

    fn code(&self, paths: &[String]) -> Result<TreeDigest, String> {
        if let Some(path) = paths.iter().find(|path| self.leads_out(path)) {
            return Err(format!("`{path}` is a link that leads out of the project"));
        }
        let folder = match self.depth {
            Depth::Look => return Ok(TreeDigest::from_bytes([0; 32])),
            Depth::Hash { blobs, stamps } => Ingest::new(blobs, stamps).code_tree(&self.root, paths),
            Depth::Store { blobs, stamps } => Ingest::new(blobs, stamps).store_code(&self.root, paths),
        };
        let folder = folder.map_err(|error| self.told(error))?;
        self.trees.borrow_mut().insert(folder.digest, folder.tree);
        Ok(folder.digest)
    }

    fn loads(&self, asked: &Asked) -> Answered {
        if self.recorded.is_some() {
            return Answered::default();
        }
        let (loads, missing, doubts) = self.identified(asked);
        if loads.0.is_empty() {
            return Answered { loads: None, missing, doubts };
        }
        let digest = loads.digest();
        if let Depth::Store { blobs, .. } = self.depth
            && let Err(error) = blobs.put(&loads.to_bytes())
        {
            self.failed.borrow_mut().get_or_insert(error);
        }
        self.loads.borrow_mut().insert(digest, loads);
        Answered { loads: Some(digest), missing, doubts }
    }

    fn libraries(&self, program: &str) -> Vec<String> {
        self.spec.identities().inside(&self.root.join(program))
    }

    fn installed(&self, interpreter: &str) -> Option<BTreeMap<String, String>> {
        match self.recorded {
            None => self.spec.identities().installed(interpreter),
            Some(_) => None,
        }
    }

    fn beside(&self) -> String {
        self.beside.clone()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.join(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).take(MAX_NAMES).collect();
        names.sort();
        names
    }
}

/// Whether an error says something about a file outside the store that is not there or not ours to read.
fn of_users_files(error: &StoreError, root: &Path) -> bool {
    let inside = root.join(avow_store::project::STORE);
    match error {
        StoreError::Io { path, source, .. } => {
            !path.starts_with(inside)
                && matches!(source.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
        }
        _ => false,
    }
}

/// An error and its sources in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// The first executable file of this name on `PATH`, or the path itself where it has a slash.
fn on_path(word: &str) -> Option<PathBuf> {
    let runs =
        |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if word.contains('/') {
        let path = PathBuf::from(word);
        return (path.is_absolute() && runs(&path)).then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(word)).find(|candidate| runs(candidate))
}

/// Whether a word starts a Python interpreter.
pub fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_script(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 2];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"#!"
}

fn interpreter(shim: &Path) -> Option<PathBuf> {
    let asked = Command::new(shim)
        .args(["-I", "-S", "-c", "import os, sys; print(os.path.realpath(sys.executable))"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    (asked.status.success() && path.is_file()).then_some(path)
}
