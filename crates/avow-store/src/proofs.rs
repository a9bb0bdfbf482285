//! The proofs beside a ledger: `registrations/EXPERIMENT.proofs/ENTRY.head.json` is the statement that was signed or
//! stamped, and what is called after it are signatures (`.sig`), requests and answers of time stamps (`.tsq`, `.tsr`)
//! and other files about it. A second of a kind has a number before its suffix: `ENTRY.head.json.2.sig`.

use std::fs;
use std::path::PathBuf;

use avow_model::digest::RegistrationDigest;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::ledger::LedgerFile;
use crate::project::Project;

/// The name of a statement's file after its entry.
const STATEMENT: &str = ".head.json";

/// The line that tells git to keep the bytes of proofs.
pub const GIT_ATTRIBUTES: &str = "registrations/*.proofs/* -text";

/// The folder of proofs of one experiment.
#[derive(Clone, Debug)]
pub struct Proofs {
    project: Project,
    folder: PathBuf,
}

/// What lies there about one entry.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The entry, as the file name says.
    pub entry: String,
    /// The head statement.
    pub statement: Vec<u8>,
    /// The other files, by name, sorted.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Proofs {
    /// The proofs of an experiment, whether or not there are any.
    pub fn of(project: &Project, experiment: &str) -> Result<Proofs, StoreError> {
        let name = LedgerFile::of(project, experiment)?.name().to_owned();
        let folder = project.registrations().join(format!("{name}.proofs"));
        Ok(Proofs { project: project.clone(), folder })
    }

    /// The folder.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// Everything that lies there, entry by entry.
    pub fn all(&self) -> Result<Vec<About>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if files::absent(&error) => return Ok(Vec::new()),
            other => other.context("list", &self.folder)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry.context("list", &self.folder)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        let read = |name: &String| {
            let path = self.folder.join(name);
            fs::read(&path).context("read", &path)
        };
        let mut all = Vec::new();
        for name in &names {
            let Some(entry) = name.strip_suffix(STATEMENT) else { continue };
            let mut about = About { entry: entry.to_owned(), statement: read(name)?, files: Vec::new() };
            for other in
                names.iter().filter(|other| other.strip_prefix(&**name).is_some_and(|s| !s.is_empty()))
            {
                about.files.push((other.clone(), read(other)?));
            }
            all.push(about);
        }
        Ok(all)
    }

    /// Writes the statement about an entry, where it is not there, and gives its path.
    pub fn state(&self, entry: RegistrationDigest, statement: &str) -> Result<PathBuf, StoreError> {
        disk::create_folders(&self.folder).context("create", &self.folder)?;
        crate::ledger::tell_git(&self.project, GIT_ATTRIBUTES)?;
        let path = self.folder.join(format!("{entry}{STATEMENT}"));
        if !path.exists() {
            files::write_whole(&path, statement.as_bytes())?;
        }
        Ok(path)
    }

    /// Writes files about an entry under one number that is free for all their suffixes (`sig`, `tsq`, …), and gives
    /// their paths.
    pub fn add(
        &self,
        entry: RegistrationDigest,
        files: &[(&str, &[u8])],
    ) -> Result<Vec<PathBuf>, StoreError> {
        let place = |number: u32, suffix: &str| {
            let number = if number == 1 { String::new() } else { format!(".{number}") };
            self.folder.join(format!("{entry}{STATEMENT}{number}.{suffix}"))
        };
        let mut number = 1;
        while files.iter().any(|(suffix, _)| place(number, suffix).exists()) {
            number += 1;
        }
        let mut written = Vec::new();
        for (suffix, bytes) in files {
            let path = place(number, suffix);
            files::write_whole(&path, bytes)?;
            written.push(path);
        }
        Ok(written)
    }
}
