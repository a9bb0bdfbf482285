//! How the index comes from the journals, and only from them.
//!
//! Opening it compares each journal's length with the length that was indexed. A journal that is longer (its run
//! was killed) is read again, which adds what is missing; a journal that is gone or shorter, an index that
//! cannot be opened, or one marked as damaged makes the whole index be built anew. So nobody needs to know
//! whether the last run ended well.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use avow_model::journal::{Damage, Event, Journal};

use crate::collected;
use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::journal::{self, JournalFile};
use crate::lock::RunLock;
use crate::project::Project;
use crate::receipt;
use crate::record::{MemoryIndex, Position, RecordStore, Recorded, SledIndex};

/// What opening the index took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It was complete.
    Complete,
    /// These runs' journals held more than it did, and were read.
    CaughtUp {
        /// The runs.
        runs: Vec<String>,
    },
    /// It was built anew from all journals.
    Rebuilt {
        /// Why.
        reason: String,
    },
}

/// Opens the index for the process that runs, and makes it complete first.
pub fn open_index(project: &Project, runner: &RunLock) -> Result<(SledIndex, Opening), StoreError> {
    let journals = journal::journals(project)?;
    let reason = match usable(project, &journals)? {
        Ok(index) => {
            let index = index.with_collected(collected::dates(project)?);
            let runs = catch_up(&index, &journals)?;
            if !runs.is_empty() {
                receipt::forget(project);
            }
            let opening = if runs.is_empty() { Opening::Complete } else { Opening::CaughtUp { runs } };
            return Ok((index, opening));
        }
        Err(reason) => reason,
    };
    let index = rebuild(project, runner)?;
    Ok((index, Opening::Rebuilt { reason }))
}

/// Throws the index away and builds it from the journals.
pub fn rebuild(project: &Project, _runner: &RunLock) -> Result<SledIndex, StoreError> {
    let folder = project.index();
    let file = folder.symlink_metadata().is_ok_and(|about| !about.is_dir());
    match if file { disk::remove_file(&folder) } else { disk::remove_folder(&folder) } {
        Err(e) if !files::absent(&e) => return Err(e).context("remove", &folder),
        _ => {}
    }
    receipt::forget(project);
    let index = SledIndex::open(&folder)?.with_collected(collected::dates(project)?);
    catch_up(&index, &journal::journals(project)?)?;
    match disk::remove_file(&damage_mark(project)) {
        Err(e) if !files::absent(&e) => Err(e).context("remove", &damage_mark(project)),
        _ => Ok(index),
    }
}

/// Marks the index as damaged, so that the next command builds it anew. To be called when a call on it failed.
pub fn mark_damaged(project: &Project) -> Result<(), StoreError> {
    files::write_whole(&damage_mark(project), b"the next command builds the index anew\n")
}

/// An index in memory for commands that read while another process runs.
pub fn memory_index(project: &Project) -> Result<MemoryIndex, StoreError> {
    let index = MemoryIndex::with_collected(collected::dates(project)?);
    for file in journal::journals(project)? {
        for recorded in attempts(&file.read()?) {
            index.insert(&recorded)?;
        }
    }
    Ok(index)
}

/// The attempts that a journal records, with their places.
pub fn attempts(journal: &Journal) -> Vec<Recorded> {
    let Some(Event::Opened(opened)) = journal.lines.first().map(|line| &line.event) else {
        return Vec::new();
    };
    let at = journal.lines[0].at;
    let finished = journal.lines.iter().enumerate().filter_map(|(i, line)| match &line.event {
        Event::Finished { member, attempt } => Some(Recorded {
            position: Position { opened: at, run: opened.run.clone(), line: i as u64 + 1 },
            experiment: opened.experiment.clone(),
            member: member.clone(),
            attempt: (**attempt).clone(),
        }),
        _ => None,
    });
    finished.collect()
}

/// Reads the journals that hold more than the index does; returns their runs.
fn catch_up(index: &SledIndex, journals: &[JournalFile]) -> Result<Vec<String>, StoreError> {
    let indexed: HashMap<String, u64> =
        index.indexed()?.into_iter().map(|(run, noted)| (run, noted.length)).collect();
    let mut runs = Vec::new();
    for file in journals.iter().filter(|file| indexed.get(&file.run) != Some(&file.length)) {
        take_in(index, file)?;
        runs.push(file.run.clone());
    }
    Ok(runs)
}

/// Reads one run's journal where it holds more than the index does.
pub(crate) fn catch_up_run(project: &Project, index: &SledIndex, run: &str) -> Result<(), StoreError> {
    let Some(file) = journal::journal(project, run)? else { return Ok(()) };
    if index.indexed_length(run)? == Some(file.length) { Ok(()) } else { take_in(index, &file) }
}

/// The journal may belong to a run that writes to it now: what is noted is what was read.
fn take_in(index: &SledIndex, file: &JournalFile) -> Result<(), StoreError> {
    let journal = file.read()?;
    for recorded in attempts(&journal) {
        index.insert(&recorded)?;
    }
    let length = match &journal.damage {
        Some(Damage::Broken { .. }) => file.length,
        _ => journal.intact as u64,
    };
    index.caught_up(&file.run, length)
}

/// The index on disk, or why it cannot be used.
fn usable(project: &Project, journals: &[JournalFile]) -> Result<Result<SledIndex, String>, StoreError> {
    let folder = project.index();
    if !folder.is_dir() {
        return Ok(Err("there was none".to_owned()));
    }
    if damage_mark(project).exists() {
        return Ok(Err("it was damaged".to_owned()));
    }
    // sled meets some damage with a panic instead of an error.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let index = SledIndex::open(&folder)?;
        let indexed = index.indexed()?;
        Ok::<_, StoreError>((index, indexed))
    }));
    let (index, indexed) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(StoreError::Index { source })) if !damaged(&source) => {
            return Err(StoreError::Index { source });
        }
        Ok(Err(StoreError::Index { source })) => return Ok(Err(format!("it cannot be opened: {source}"))),
        Ok(Err(error)) => return Ok(Err(format!("it cannot be opened: {error}"))),
        Err(_) => return Ok(Err("it cannot be opened".to_owned())),
    };
    let files: HashMap<&str, &JournalFile> = journals.iter().map(|file| (file.run.as_str(), file)).collect();
    for (run, noted) in indexed {
        let what = match files.get(run.as_str()) {
            None => "is gone",
            Some(file) if file.length < noted.length => "became shorter",
            // A run only appends, so nothing of ours writes to it without making it longer.
            Some(file)
                if file.length == noted.length
                    && noted.modified.is_some_and(|at| at != file.stamp.modified) =>
            {
                "was written to by something else"
            }
            Some(_) => continue,
        };
        return Ok(Err(format!("the journal of run `{run}` {what}")));
    }
    Ok(Ok(index))
}

/// Whether an error of sled says something about the database rather than about the machine.
fn damaged(error: &sled::Error) -> bool {
    match error {
        sled::Error::Io(e) => matches!(
            e.kind(),
            std::io::ErrorKind::InvalidData
                | std::io::ErrorKind::UnexpectedEof
                | std::io::ErrorKind::InvalidInput
        ),
        _ => true,
    }
}

fn damage_mark(project: &Project) -> PathBuf {
    project.store().join("index-damaged")
}
