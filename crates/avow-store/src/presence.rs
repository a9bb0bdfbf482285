//! What a living run says about itself to others: `.avow/live/RUN.json`.
//!
//! It is for people who ask which runs there are, what they wait for and how to end one. It is believed only while
//! the run's journal is held, goes with the run, and is no evidence: nothing is decided by it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::journal;
use crate::project::Project;

/// What is said of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The run.
    pub run: String,
    /// Its experiment.
    pub experiment: String,
    /// The spec's path in the project.
    pub spec: String,
    /// Its process.
    pub pid: u32,
    /// When the process started, in clock ticks since boot, so that a reused id is not mistaken for it.
    pub start_ticks: u64,
    /// Where it writes what it would say on a terminal, from the project; `None` where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Members it cannot go on with because another run executes the same action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
}

/// A member that waits for another run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Its label.
    pub member: String,
    /// The run that executes its action, where that could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// The file of a run's presence, which is removed with the value.
#[derive(Debug)]
pub struct PresenceFile {
    path: PathBuf,
}

impl PresenceFile {
    /// Says it for the first time.
    pub fn create(project: &Project, presence: &Presence) -> Result<PresenceFile, StoreError> {
        files::check_name(&presence.run)?;
        let folder = project.live();
        disk::create_folders(&folder).context("create", &folder)?;
        let file = PresenceFile { path: path(project, &presence.run) };
        file.write(presence)?;
        Ok(file)
    }

    /// Says it anew. It need not outlast a power cut, so nothing is synced.
    pub fn write(&self, presence: &Presence) -> Result<(), StoreError> {
        let text = serde_json::to_vec(presence).expect("a presence holds only JSON values");
        let temporary = files::beside(&self.path);
        let written = disk::create_new(&temporary)
            .and_then(|file| disk::write(&file, &temporary, &text))
            .and_then(|()| disk::rename(&temporary, &self.path));
        if written.is_err() {
            // The first error is the one to tell; a leftover temporary name does no harm.
            let _ = disk::remove_file(&temporary);
        }
        written.context("write", &self.path)
    }
}

impl Drop for PresenceFile {
    fn drop(&mut self) {
        // One that stays is not believed, and is removed when the run is put in order.
        let _ = disk::remove_file(&self.path);
    }
}

/// Removes what a dead run left.
pub fn forget(project: &Project, run: &str) -> Result<(), StoreError> {
    let path = path(project, run);
    match disk::remove_file(&path) {
        Err(error) if !files::absent(&error) => Err(error).context("remove", &path),
        _ => Ok(()),
    }
}

/// The living runs of a project, by name.
pub fn living(project: &Project) -> Result<Vec<Presence>, StoreError> {
    let folder = project.live();
    let list = match fs::read_dir(&folder) {
        Err(error) if files::absent(&error) => return Ok(Vec::new()),
        other => other.context("list", &folder)?,
    };
    let mut living = Vec::new();
    for entry in list {
        let path = entry.context("list", &folder)?.path();
        let Some(run) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) else {
            continue;
        };
        let Some(journal) = journal::journal(project, run)? else { continue };
        if !journal.is_live()? {
            continue;
        }
        // It may end at this moment, and what is not ours says nothing.
        let presence = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Presence>(&text).ok());
        living.extend(presence.filter(|presence| presence.run == run));
    }
    living.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(living)
}

fn path(project: &Project, run: &str) -> PathBuf {
    project.live().join(format!("{run}.json"))
}
