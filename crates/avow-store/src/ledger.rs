//! The ledger file of an experiment: where it lies, and appending to it.
//!
//! Lines, digests and verification are [`avow_model::ledger`]'s. Here is what files add. Until an experiment is
//! first registered its chain lies in the store folder, so that exploratory runs are counted without touching
//! the working tree; [`LedgerFile::append`] of a `register` line moves it to `registrations/` in the project,
//! where it is meant for git, and tells git to keep its bytes and to merge it by union.
//!
//! Writers hold a lock in the store folder, whichever of the two places the chain is at. A torn tail is cut
//! before a line is appended; a complete line that does not verify is never cut, and nothing is appended to it.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use avow_model::digest::{LineDigest, PlanDigest, RegistrationDigest};
use avow_model::ledger::embargo::{Mismatch, Opening};
use avow_model::ledger::invalid::Invalids;
use avow_model::ledger::{Ledger, LedgerError, leaf};
use rustix::fs::FlockOperation;
use serde_json::{Map, Value, json};

use crate::disk;
use crate::embargo;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;

/// The line that tells git how to treat ledgers.
pub const GIT_ATTRIBUTES: &str = "registrations/*.jsonl -text merge=union";

/// Why a line was not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The line cannot be, or the ledger is damaged.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The file could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A chain that shows already what an embargo would hide.
    #[error("the chain has lines already, which name its plans")]
    Begun,
    /// Nothing is under embargo.
    #[error("the ledger has no commitment that is not opened")]
    NoCommitment,
    /// Commitments that are closed, and of whose openings none is kept here.
    #[error("{0} of its commitments are not opened, and the private files that open them are not here")]
    Lost(usize),
    /// An opening that does not open what was committed to.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A chain that would be moved to where another one is.
    #[error("there is another ledger of `{0}` in the project")]
    Taken(String),
}

/// The ledger file of one experiment.
#[derive(Clone, Debug)]
pub struct LedgerFile {
    project: Project,
    experiment: String,
    /// The name of its file in the project.
    name: String,
}

impl LedgerFile {
    /// The ledger of an experiment, whether or not it exists.
    pub fn of(project: &Project, experiment: &str) -> Result<LedgerFile, StoreError> {
        files::check_name(experiment)?;
        let name = embargo::chain(project, experiment)?.unwrap_or_else(|| experiment.to_owned());
        Ok(LedgerFile { project: project.clone(), experiment: experiment.to_owned(), name })
    }

    /// Where the chain lies, or would lie: in the project once it is registered.
    pub fn path(&self) -> PathBuf {
        let registered = self.registered_path();
        if registered.exists() { registered } else { self.unregistered_path() }
    }

    /// Whether the chain lies in the project.
    pub fn is_registered(&self) -> bool {
        self.registered_path().exists()
    }

    fn registered_path(&self) -> PathBuf {
        self.project.registrations().join(format!("{}.jsonl", self.name))
    }

    /// What the chain's file is called in the project: the experiment's name, or nothing that tells it while the chain
    /// is under embargo.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the chain is under embargo here.
    pub fn is_embargoed(&self) -> bool {
        self.name != self.experiment
    }

    fn unregistered_path(&self) -> PathBuf {
        self.project.ledgers().join(format!("{}.jsonl", self.experiment))
    }

    /// Reads and verifies the chain, changing nothing; empty where there is none. Commitments whose openings are kept
    /// here are read as what they stand for.
    pub fn read(&self) -> Result<Ledger, StoreError> {
        let mut ledger = Ledger::read(&bytes(&self.path())?);
        embargo::attach(&self.project, &self.experiment, &mut ledger)?;
        ledger.also_wrong(self.wrong_elsewhere()?);
        Ok(ledger)
    }

    /// What the project's other ledgers declare wrong. A ledger is read for it only where it may say anything.
    fn wrong_elsewhere(&self) -> Result<Invalids, StoreError> {
        const SAID: &[u8] = b"\"kind\":\"invalidate\"";
        let mut wrong = Invalids::default();
        for experiment in experiments(&self.project)? {
            if experiment == self.experiment {
                continue;
            }
            // A file whose name is no experiment's is none of ours.
            let Ok(other) = LedgerFile::of(&self.project, &experiment) else { continue };
            let content = bytes(&other.path())?;
            if other.is_embargoed() || content.windows(SAID.len()).any(|window| window == SAID) {
                let mut ledger = Ledger::read(&content);
                embargo::attach(&self.project, &experiment, &mut ledger)?;
                wrong.0.extend(ledger.invalids().0);
            }
        }
        Ok(wrong)
    }

    /// A second chain in the store folder beside the one in the project: runs made here before the project's
    /// came from elsewhere. `None` where there is none, or where the project's contains it.
    pub fn stray(&self) -> Result<Option<Ledger>, StoreError> {
        if !self.is_registered() {
            return Ok(None);
        }
        let (here, there) = (bytes(&self.unregistered_path())?, bytes(&self.registered_path())?);
        Ok((!there.starts_with(&here)).then(|| Ledger::read(&here)))
    }

    /// Appends a line and returns its digest; it survives a power cut. Kind, parents, tree, version and, in a
    /// first line, the nonce are added. A `register` line moves the chain into the project. Under embargo a line shows
    /// nothing but a commitment to what it says, and lines about runs show a digest of their journal alone.
    pub fn append(&self, kind: &str, fields: Map<String, Value>) -> Result<RegistrationDigest, AppendError> {
        if !self.is_embargoed() {
            return self.write(kind, fields);
        }
        match kind {
            "run-opened" | "run-head" | "run-closed" => {
                let journal = fields.into_iter().filter(|(key, _)| key == "journal").collect();
                self.write(kind, journal)
            }
            "open" | "witness" | "merge" => self.write(kind, fields),
            _ => {
                let opening = self.committed(kind, fields)?;
                self.write("commit", object(json!({"commitment": opening.commitment()})))
            }
        }
    }

    /// Makes what opens a commitment to a line, and keeps it before anything is written.
    fn committed(&self, kind: &str, fields: Map<String, Value>) -> Result<Opening, AppendError> {
        let opening = Opening::of(kind, fields, &files::nonce()?)?;
        embargo::keep(&self.project, &self.experiment, &opening)?;
        Ok(opening)
    }

    /// Begins the chain in the project with a commitment to a registration. The file does not tell the experiment.
    ///
    /// # Errors
    /// [`AppendError::Begun`] where the chain has lines.
    pub fn embargo(&mut self, fields: Map<String, Value>) -> Result<RegistrationDigest, AppendError> {
        let _lock = self.lock()?;
        if Ledger::read(&bytes(&self.path())?).chain().is_some() {
            return Err(AppendError::Begun);
        }
        let opening = self.committed("register", fields)?;
        let first = object(json!({"commitment": opening.commitment(), "nonce": files::nonce()?}));
        let line = Ledger::default().line("commit", first)?;
        let leaf = leaf(line.as_bytes());
        let name = embargo::name_of(&leaf.to_string());
        embargo::set_chain(&self.project, &self.experiment, Some(&name))?;
        self.name = name;
        self.move_into_project(format!("{line}\n").as_bytes())?;
        Ok(leaf)
    }

    /// Opens every commitment whose opening is kept here, or the one that is given, and gives the chain its experiment's
    /// name. Returns the lines that were opened.
    ///
    /// # Errors
    /// [`AppendError::NoCommitment`] where none is closed, [`AppendError::Lost`] where some are and nothing here opens
    /// them, [`AppendError::Mismatch`] where what is given does not open
    /// one, [`AppendError::Taken`] where the project has another chain of that name.
    pub fn open(&mut self, given: Option<Opening>) -> Result<Vec<RegistrationDigest>, AppendError> {
        let openings = match given {
            Some(opening) => vec![opening],
            None => embargo::kept(&self.project, &self.experiment)?,
        };
        let ledger = Ledger::read(&bytes(&self.path())?);
        let closed: Vec<(RegistrationDigest, String)> =
            ledger.unopened().into_iter().map(|(leaf, commitment)| (leaf, commitment.to_owned())).collect();
        let (mut lines, mut experiment) = (Vec::new(), self.experiment.clone());
        for (leaf, commitment) in &closed {
            let Some(opening) = openings.iter().find(|o| o.commitment() == *commitment) else { continue };
            let body = opening.check(commitment)?;
            if let Some(name) = body.get("experiment").and_then(Value::as_str) {
                experiment = name.to_owned();
            }
            lines.push((*leaf, opening.fields(*leaf, commitment)?));
        }
        match (closed.is_empty(), lines.is_empty(), openings.first()) {
            (true, ..) => return Err(AppendError::NoCommitment),
            (_, true, None) => return Err(AppendError::Lost(closed.len())),
            (_, true, Some(opening)) => return Err(Mismatch::Opening(opening.commitment()).into()),
            _ => {}
        }
        let renamed = LedgerFile { name: experiment.clone(), experiment, ..self.clone() };
        if renamed.name != self.name && renamed.registered_path().exists() {
            return Err(AppendError::Taken(renamed.name));
        }
        let mut opened = Vec::new();
        for (leaf, fields) in lines {
            self.write("open", fields)?;
            opened.push(leaf);
        }
        if renamed.name != self.name && embargo::is_name(&self.name) {
            self.rename(&renamed)?;
            *self = renamed;
        }
        Ok(opened)
    }

    /// Gives the chain and its proofs their experiment's name.
    fn rename(&self, renamed: &LedgerFile) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let folder = self.project.registrations();
        let proofs = |name: &str| folder.join(format!("{name}.proofs"));
        let (from, to) = (proofs(&self.name), proofs(&renamed.name));
        if from.exists() {
            disk::rename(&from, &to).context("rename", &from)?;
        }
        let (from, to) = (self.registered_path(), renamed.registered_path());
        disk::rename(&from, &to).context("rename", &from)?;
        files::sync_folder(&folder)?;
        embargo::set_chain(&self.project, &renamed.experiment, None)
    }

    fn write(&self, kind: &str, fields: Map<String, Value>) -> Result<RegistrationDigest, AppendError> {
        let _lock = self.lock()?;
        let path = self.path();
        let before = bytes(&path)?;
        let ledger = Ledger::read(&before);
        let mut fields = fields;
        if ledger.chain().is_none() && !fields.contains_key("nonce") {
            fields.insert("nonce".to_owned(), json!(files::nonce()?));
        }
        let line = ledger.line(kind, fields)?;
        let intact = &before[..ledger.intact()];
        if kind == "register" && !self.is_registered() {
            self.move_into_project(&[intact, line.as_bytes(), b"\n"].concat())?;
        } else {
            append_durably(&path, intact.len() as u64, &format!("{line}\n"))?;
        }
        Ok(leaf(line.as_bytes()))
    }

    /// Cuts the torn line that a writer who died left at the end, as the next entry would; whether there was one.
    /// Costs one look where there was none.
    pub fn mend(&self) -> Result<bool, StoreError> {
        if ends_whole(&self.path())? {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let path = self.path();
        let content = bytes(&path)?;
        let intact = Ledger::read(&content).intact();
        if intact == content.len() {
            return Ok(false);
        }
        let file = disk::open_or_create(&path).context("open", &path)?;
        disk::shorten(&file, &path, intact as u64).context("shorten", &path)?;
        disk::sync(&file, &path, true).context("sync", &path)?;
        Ok(true)
    }

    /// Notes that a run began, so that a journal deleted later is missed.
    pub fn run_opened(
        &self,
        run: &str,
        plan: PlanDigest,
        first_line: LineDigest,
    ) -> Result<RegistrationDigest, AppendError> {
        let fields = json!({"run": run, "plan": plan, "journal": first_line});
        self.append("run-opened", object(fields))
    }

    /// Notes how far a run's journal has come.
    pub fn run_head(&self, run: &str, head: LineDigest) -> Result<RegistrationDigest, AppendError> {
        self.append("run-head", object(json!({"run": run, "journal": head})))
    }

    /// Notes the last line of a run's journal.
    pub fn run_closed(&self, run: &str, head: LineDigest) -> Result<RegistrationDigest, AppendError> {
        self.append("run-closed", object(json!({"run": run, "journal": head})))
    }

    fn lock(&self) -> Result<File, StoreError> {
        let path = self.project.ledgers().join(format!("{}.lock", self.experiment));
        let file = disk::open_or_create(&path).context("open", &path)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                locked => return locked.map(|()| file).context("lock", &path),
            }
        }
    }

    /// The whole chain appears in the project at once; a crash before the old one is removed leaves two, of
    /// which the project's contains the other.
    fn move_into_project(&self, content: &[u8]) -> Result<(), StoreError> {
        let folder = self.project.registrations();
        disk::create_folders(&folder).context("create", &folder)?;
        files::sync_folder(self.project.root())?;
        tell_git(&self.project, GIT_ATTRIBUTES)?;
        files::write_whole(&self.registered_path(), content)?;
        let old = self.unregistered_path();
        match disk::remove_file(&old) {
            Err(e) if !files::absent(&e) => Err(e).context("remove", &old),
            _ => Ok(()),
        }
    }
}

/// The experiments that have a ledger, by name.
pub fn experiments(project: &Project) -> Result<Vec<String>, StoreError> {
    let mut names = std::collections::BTreeSet::new();
    // A chain under embargo is its experiment's to whoever has the openings, and to others a name of its own.
    let embargoed = embargo::all(project)?;
    for folder in [project.registrations(), project.ledgers()] {
        let list = match fs::read_dir(&folder) {
            Err(e) if files::absent(&e) => continue,
            other => other.context("list", &folder)?,
        };
        for entry in list {
            let path = entry.context("list", &folder)?.path();
            if path.extension().is_some_and(|e| e == "jsonl")
                && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            {
                let own = embargoed.iter().find(|(_, file)| file == name);
                names.insert(own.map_or(name, |(experiment, _)| experiment).to_owned());
            }
        }
    }
    Ok(names.into_iter().collect())
}

fn object(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(map) => map,
        _ => unreachable!("callers pass objects"),
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    match fs::read(path) {
        Err(e) if files::absent(&e) => Ok(Vec::new()),
        other => other.context("read", path),
    }
}

/// Whether a file ends with a line's end, or is empty or absent.
fn ends_whole(path: &Path) -> Result<bool, StoreError> {
    let mut file = match File::open(path) {
        Err(e) if files::absent(&e) => return Ok(true),
        other => other.context("open", path)?,
    };
    if file.seek(SeekFrom::End(0)).context("read", path)? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).context("read", path)?;
    Ok(last == *b"\n")
}

fn append_durably(path: &Path, intact: u64, line: &str) -> Result<(), StoreError> {
    let mut file = disk::open_or_create(path).context("open", path)?;
    disk::shorten(&file, path, intact).context("shorten", path)?;
    file.seek(SeekFrom::Start(intact)).context("write", path)?;
    let written = disk::write(&file, path, line.as_bytes()).and_then(|()| disk::sync(&file, path, true));
    if let Err(error) = written {
        // Best effort: what stays is a torn tail, which the next writer cuts.
        let _ = disk::shorten(&file, path, intact);
        return Err(error).context("append to", path);
    }
    files::sync_folder(files::folder_of(path))
}

/// Adds a line to `.gitattributes`, keeping what is there.
pub(crate) fn tell_git(project: &Project, ours: &str) -> Result<(), StoreError> {
    let path = project.root().join(".gitattributes");
    let mut content = bytes(&path)?;
    if content.split(|b| *b == b'\n').any(|line| line.trim_ascii() == ours.as_bytes()) {
        return Ok(());
    }
    if !content.is_empty() && !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    content.extend(ours.as_bytes());
    content.push(b'\n');
    files::write_whole(&path, &content)
}
