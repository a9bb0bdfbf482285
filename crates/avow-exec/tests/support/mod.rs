//! A project in a temporary folder with an executor on it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use avow_exec::{Cancel, Config, Confinement, Execution, Executor, LocalExecutor, Watch};
use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::AttemptId;
use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::plan::{Keep, Terms};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::put_record;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project};

/// Everything a test needs; gone when dropped.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub project: Project,
    pub blobs: Arc<FileBlobs>,
    pub executor: LocalExecutor,
    pub cancel: Cancel,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        project.create().unwrap();
        let blobs = Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
        let avow = folder.path().join("avow");
        fs::write(&avow, "#!/bin/sh\nprintf '%s\\n' \"$@\" > told\n").unwrap();
        fs::set_permissions(&avow, fs::Permissions::from_mode(0o755)).unwrap();
        let mut config = Config::new(project.work(), avow);
        config.grace = Duration::from_millis(300);
        change(&mut config);
        let executor = LocalExecutor::new(config, Arc::clone(&blobs) as Arc<dyn BlobStore>).unwrap();
        Self { folder, project, blobs, executor, cancel: Cancel::new().unwrap() }
    }

    /// Both ways of giving inputs: links under Landlock where there is one, and copies.
    pub fn each() -> Vec<Self> {
        vec![Self::new(), Self::with(|config| config.confinement = Some(Confinement::None))]
    }

    pub fn protected(&self) -> bool {
        self.executor.host().confinement != "none" && self.executor.host().confinement != "declared"
    }

    pub fn put(&self, bytes: &[u8]) -> Artifact {
        Artifact::Blob(self.blobs.put(bytes).unwrap())
    }

    pub fn tree(&self, entries: &[(&str, Entry)]) -> TreeDigest {
        let mut tree = Tree::default();
        for (path, entry) in entries {
            tree.insert(path, entry.clone()).unwrap();
        }
        put_record(self.blobs.as_ref(), &tree).unwrap()
    }

    pub fn file(&self, bytes: &[u8], executable: bool) -> Entry {
        Entry::File { digest: self.blobs.put(bytes).unwrap(), executable }
    }

    pub fn text(&self, digest: Option<BlobDigest>) -> String {
        digest.map_or(String::new(), |digest| String::from_utf8(self.blobs.read(digest).unwrap()).unwrap())
    }

    pub fn output(&self, execution: &Execution, name: &str) -> String {
        match execution.outputs.get(name) {
            Some(produced) => self.text(Some(produced.artifact.blob())),
            None => panic!("no output `{name}`: {execution:?}"),
        }
    }

    pub async fn run(&self, action: &Action) -> Execution {
        self.under(action, &Terms::default()).await
    }

    pub async fn under(&self, action: &Action, terms: &Terms) -> Execution {
        let watch = Watch::new(self.cancel.clone());
        let done = self.executor.run(&attempt(), action, terms, watch).await.unwrap();
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "something of an attempt stayed behind");
        done
    }

    /// Folders of attempts that hold anything. Empty ones are kept to be used again, with an empty folder for inputs
    /// where the attempt had any.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.project.work()).unwrap().map(|entry| entry.unwrap().path());
        let attempts = entries.filter(|path| path.file_name().unwrap().len() == 32);
        let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut list| list.next().is_none());
        let used = |folder: &PathBuf| {
            let inside =
                ["run", "tmp"].iter().filter_map(|name| fs::read_dir(folder.join(name)).ok()).flatten();
            let inputs = folder.join("run/inputs");
            inside.map(|entry| entry.unwrap().path()).any(|path| path != inputs || !is_empty(&path))
        };
        attempts.filter(used).collect()
    }
}

/// A name that no other attempt has.
pub fn attempt() -> AttemptId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    AttemptId(format!("{:016x}{number:016x}", std::process::id()))
}

pub fn action(command: Command) -> Action {
    Action {
        command,
        env: BTreeMap::new(),
        inputs: BTreeMap::new(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: BTreeMap::new(),
        loads: None,
        outputs: BTreeMap::new(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    }
}

pub fn sh(text: &str) -> Action {
    action(Command::Shell(text.to_owned()))
}

pub fn words(words: &[&str]) -> Action {
    action(Command::Arguments(words.iter().map(|word| (*word).to_owned()).collect()))
}

pub fn slot(path: &str) -> Slot {
    Slot { path: path.to_owned(), folder: path.ends_with('/'), optional: false, keep: Keep::Content }
}

/// The same action with one more output.
pub fn writes(mut action: Action, name: &str, slot: Slot) -> Action {
    action.outputs.insert(name.to_owned(), slot);
    action
}

pub fn reads(mut action: Action, mount: &str, artifact: Artifact) -> Action {
    action.inputs.insert(mount.to_owned(), artifact);
    action
}

/// Waits until something becomes true; the limit only bounds a failure.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !check() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process exists and has not ended.
pub fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}
