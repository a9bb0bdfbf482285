//! From entries of the catalogue to attempts, each read from its own journal line.

use std::collections::hash_map::Entry as Slot;
use std::fs::File;
use std::os::unix::fs::FileExt;

use avow_model::journal::{Event, Line};

use super::table::{ACTIONS, ATTEMPTS, Entry, MEMBERS, key_of, label_key};
use super::{Inner, KEPT};
use crate::error::{Context, StoreError};
use crate::meter;
use crate::project::Project;
use crate::record::{Position, Recorded, stage_of};

/// Journals that are kept open.
const OPEN: usize = 64;

/// What is looked for: a key in a table, and what an attempt found under it must be.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    table: usize,
    key: u64,
    is: &'a dyn Fn(&Recorded) -> bool,
    most: usize,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(table: usize, key: u64, is: &'a dyn Fn(&Recorded) -> bool) -> Lookup<'a> {
        Lookup { table, key, is, most: usize::MAX }
    }

    /// Only so many, the latest.
    pub(super) fn latest(self, most: usize) -> Lookup<'a> {
        Lookup { most, ..self }
    }
}

/// Under which key an attempt stands in a table.
fn key_in(table: usize, recorded: &Recorded) -> u64 {
    let label = |label: &str| label_key(&recorded.experiment, label);
    match table {
        ATTEMPTS => key_of(recorded.digest().as_bytes()),
        ACTIONS => key_of(recorded.attempt.action.as_bytes()),
        MEMBERS => label(&recorded.member),
        _ => label(stage_of(&recorded.member)),
    }
}

impl Inner {
    /// The attempts looked for, in order; `None` where the catalogue is damaged.
    pub(super) fn find(
        &mut self,
        project: &Project,
        lookup: Lookup<'_>,
    ) -> Result<Option<Vec<Recorded>>, StoreError> {
        let Some(entries) = self.scan.entries(lookup.table, lookup.key) else { return Ok(None) };
        let mut found = Vec::new();
        for entry in entries.into_iter().rev() {
            if found.len() >= lookup.most {
                break;
            }
            let Some(recorded) = self.fetch(project, entry)? else { return Ok(None) };
            if key_in(lookup.table, &recorded) != lookup.key {
                return Ok(None);
            }
            // Two names may begin alike; such an attempt is another's.
            if (lookup.is)(&recorded) {
                found.push(recorded);
            }
        }
        found.reverse();
        self.keep(&found);
        Ok(Some(found))
    }

    /// Every attempt, in order; `None` where the catalogue is damaged.
    pub(super) fn all(&mut self, project: &Project) -> Result<Option<Vec<Recorded>>, StoreError> {
        let Some(mut entries) = self.scan.all(ATTEMPTS) else { return Ok(None) };
        entries.sort_unstable_by_key(|entry| (entry.row, entry.line));
        let mut all = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(recorded) = self.fetch(project, entry)? else { return Ok(None) };
            all.push(recorded);
        }
        Ok(Some(all))
    }

    fn keep(&mut self, found: &[Recorded]) {
        if self.read.len() + found.len() > KEPT {
            self.read.clear();
        }
        let kept = found.iter().take(KEPT).map(|recorded| (recorded.digest(), recorded.clone()));
        self.read.extend(kept);
    }

    /// The attempt on a journal line; `None` where the line is no such thing.
    fn fetch(&mut self, project: &Project, entry: Entry) -> Result<Option<Recorded>, StoreError> {
        let Some(row) = self.scan.rows.get(entry.row as usize) else { return Ok(None) };
        let covered = &row.covered;
        let path = project.journal(&covered.run);
        if self.journals.len() > OPEN {
            self.journals.clear();
        }
        let file = match self.journals.entry(entry.row) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(new) => {
                meter::journal(0);
                new.insert(File::open(&path).context("open", &path)?)
            }
        };
        let mut raw = vec![0; entry.length as usize];
        if file.read_exact_at(&mut raw, entry.offset).is_err() {
            return Ok(None);
        }
        meter::line(1);
        let Ok(Line { event: Event::Finished { member, attempt }, .. }) = serde_json::from_slice(&raw) else {
            return Ok(None);
        };
        Ok(Some(Recorded {
            position: Position { opened: covered.at, run: covered.run.clone(), line: u64::from(entry.line) },
            experiment: covered.experiment.clone(),
            member,
            attempt: *attempt,
        }))
    }
}
