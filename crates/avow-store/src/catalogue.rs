//! Where in the journals each attempt stands, for commands that read.
//!
//! A reading command must not parse what nobody asked for. The catalogue is one plain file, `.avow/cache/journals`,
//! that says of every journal how far it was read, where its run stood there, and, by digest and by name, at which
//! byte each attempt's line begins. It may be deleted at any time: the next command reads the journals again and
//! writes it anew. Truth stays in the journals: an attempt is always read from its own line there, and compared with
//! what it was looked up by.
//!
//! It is right while a run goes on: whatever a journal holds beyond the catalogued length is read by the command
//! itself. Only when that grows large is the catalogue written again, so that its cost is spread over what was
//! appended. A journal that became shorter, lost its last catalogued line or was written to in place is read from its
//! beginning. Pages carry their own digests, since a lookup reads few of them; one that does not verify makes the
//! whole catalogue be built anew.
//!
//! What it does not do is audit: a change in the middle of a journal that kept the file's times would not be seen
//! here. Verdicts and `store check` read every journal's chain for that.

mod file;
mod lookup;
mod scan;
mod table;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use avow_model::attempt::Timestamp;
use avow_model::digest::{ActionDigest, AttemptDigest, PlanDigest};
use avow_model::summary::RunSummary;

use crate::collected;
use crate::error::StoreError;
use crate::project::Project;
use crate::record::{MemoryIndex, RecordStore, Recorded};
use lookup::Lookup;
use scan::Scan;
use table::{ACTIONS, ATTEMPTS, MEMBERS, STAGES, key_of, label_key};

/// A run, as far as its first line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub run: String,
    /// When it began.
    pub at: Timestamp,
    /// The experiment.
    pub experiment: String,
    /// The plan it carried out.
    pub plan: PlanDigest,
}

/// The actions that were ever attempted, by the beginning of their digests.
#[derive(Debug)]
pub struct Actions(HashSet<u64>);

impl Actions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// False where there is certainly no attempt at this action.
    pub fn may_hold(&self, action: ActionDigest) -> bool {
        self.0.contains(&key_of(action.as_bytes()))
    }
}

/// A view of all journals of a project that reads only what is asked for.
#[derive(Debug)]
pub struct Catalogue {
    project: Project,
    inner: Mutex<Inner>,
    /// What was inserted here; nothing is written to journals.
    added: MemoryIndex,
    /// When each collected attempt was collected.
    collected: HashMap<AttemptDigest, Timestamp>,
}

#[derive(Debug)]
struct Inner {
    scan: Scan,
    /// Journals that were opened, by row.
    journals: HashMap<u32, File>,
    /// Attempts that were read; a trace asks for each twice.
    read: HashMap<AttemptDigest, Recorded>,
    /// Whether it was built anew in this process already.
    rebuilt: bool,
}

/// Attempts that are kept after they were read.
const KEPT: usize = 4096;

impl Catalogue {
    /// Opens the catalogue of a project and reads what was appended to journals since.
    ///
    /// # Errors
    /// Where the journals cannot be listed or read. A catalogue that is missing, damaged or cannot be written is none.
    pub fn open(project: &Project) -> Result<Catalogue, StoreError> {
        let mut scan = Scan::of(project, file::open(project))?;
        scan.save_if_worth_it(project);
        let inner = Inner { scan, journals: HashMap::new(), read: HashMap::new(), rebuilt: false };
        let (inner, added) = (Mutex::new(inner), MemoryIndex::new());
        Ok(Catalogue { project: project.clone(), inner, added, collected: collected::dates(project)? })
    }

    /// When an attempt was collected, if it was.
    pub fn collected_on(&self, attempt: AttemptDigest) -> Option<Timestamp> {
        self.collected.get(&attempt).copied()
    }

    fn all_of(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        let is = |recorded: &Recorded| recorded.attempt.action == action;
        let found = self.find(Lookup::new(ACTIONS, key_of(action.as_bytes()), &is))?;
        let added = self.added.trace(action)?;
        let added = added.into_iter().filter_map(|digest| self.added.attempt(digest).transpose());
        Ok(names(merged(found, added.collect::<Result<_, _>>()?)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Everything in it is a cache of files, whole after every call.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every run whose journal begins as one should, in the order in which they began.
    pub fn runs(&self) -> Vec<Run> {
        let inner = self.inner();
        let rows = inner.scan.rows.iter().filter_map(|row| {
            let (run, at) = (row.covered.run.clone(), row.covered.at);
            Some(Run { run, at, experiment: row.covered.experiment.clone(), plan: row.covered.plan? })
        });
        rows.collect()
    }

    /// The run of an experiment, or of any, that began last.
    pub fn latest(&self, experiment: Option<&str>) -> Option<Run> {
        let wanted = |run: &Run| experiment.is_none_or(|name| name == run.experiment);
        self.runs().into_iter().rev().find(wanted)
    }

    /// Which actions there are attempts at, for those who would ask about very many.
    ///
    /// # Errors
    /// Where the catalogue is damaged and cannot be built anew.
    pub fn actions(&self) -> Result<Actions, StoreError> {
        let keys = self.asking(|inner| Ok(inner.scan.all(ACTIONS)))?;
        let added = self.added.entries()?;
        let keys = keys.into_iter().map(|entry| entry.key);
        Ok(Actions(keys.chain(added.iter().map(|r| key_of(r.attempt.action.as_bytes()))).collect()))
    }

    /// Where a run stands; `None` where there is no such run.
    ///
    /// # Errors
    /// Where its journal has to be read for it and cannot be.
    pub fn summary(&self, run: &str) -> Result<Option<RunSummary>, StoreError> {
        self.asking(|inner| {
            let Some(row) = inner.scan.rows.iter().position(|row| row.covered.run == run) else {
                return Ok(Some(None));
            };
            Ok(inner.scan.summary(row)?.map(Some))
        })
    }

    /// Asks, and where the catalogue turns out to be damaged (`None`) builds it anew and asks again.
    fn asking<T>(&self, ask: impl Fn(&mut Inner) -> Result<Option<T>, StoreError>) -> Result<T, StoreError> {
        let mut inner = self.inner();
        if let Some(answer) = ask(&mut inner)? {
            return Ok(answer);
        }
        if !inner.rebuilt {
            tracing::debug!("the catalogue of the journals is built anew");
            let mut scan = Scan::of(&self.project, None)?;
            scan.save(&self.project);
            *inner = Inner { scan, journals: HashMap::new(), read: HashMap::new(), rebuilt: true };
        }
        // Built from the journals a moment ago: what disagrees now is being changed under our hands.
        ask(&mut inner)?.ok_or_else(|| StoreError::Changed { path: self.project.journals() })
    }

    fn find(&self, lookup: Lookup<'_>) -> Result<Vec<Recorded>, StoreError> {
        self.asking(|inner| inner.find(&self.project, lookup))
    }
}

fn names(found: Vec<Recorded>) -> Vec<AttemptDigest> {
    found.iter().map(Recorded::digest).collect()
}

/// Both in one order.
fn merged(mut found: Vec<Recorded>, added: Vec<Recorded>) -> Vec<Recorded> {
    if !added.is_empty() {
        found.extend(added);
        found.sort_by(|a, b| a.position.cmp(&b.position));
        found.dedup();
    }
    found
}

impl RecordStore for Catalogue {
    /// Adds an attempt to this view only.
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        self.added.insert(recorded)
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        if let Some(read) = self.inner().read.get(&digest) {
            return Ok(Some(read.clone()));
        }
        match self.added.attempt(digest)? {
            Some(added) => Ok(Some(added)),
            None => Ok(self
                .find(Lookup::new(ATTEMPTS, key_of(digest.as_bytes()), &|r| r.digest() == digest))?
                .pop()),
        }
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        let mut trace = self.all_of(action)?;
        trace.retain(|attempt| !self.collected.contains_key(attempt));
        Ok(trace)
    }

    fn collected(&self, action: ActionDigest) -> Result<Option<Timestamp>, StoreError> {
        if self.collected.is_empty() {
            return Ok(None);
        }
        Ok(self.all_of(action)?.iter().filter_map(|attempt| self.collected.get(attempt)).max().copied())
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        let is = |recorded: &Recorded| recorded.experiment == experiment && recorded.member == member;
        let found = self.find(Lookup::new(MEMBERS, label_key(experiment, member), &is))?;
        let added = self.added.history(experiment, member)?;
        let added = added.into_iter().filter_map(|digest| self.added.attempt(digest).transpose());
        Ok(names(merged(found, added.collect::<Result<_, _>>()?)))
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        self.latest_of_stage(experiment, stage, usize::MAX)
    }

    fn latest_of_stage(
        &self,
        experiment: &str,
        stage: &str,
        most: usize,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        let is = |recorded: &Recorded| {
            recorded.experiment == experiment && crate::record::of_stage(&recorded.member, stage)
        };
        let lookup = Lookup::new(STAGES, label_key(experiment, stage), &is).latest(most);
        let found = self.find(lookup)?;
        let added = self.added.stage_history(experiment, stage)?;
        let added = added.into_iter().filter_map(|(_, digest)| self.added.attempt(digest).transpose());
        let mut all = merged(found, added.collect::<Result<_, _>>()?);
        let older = all.len().saturating_sub(most);
        all.drain(..older);
        Ok(all.into_iter().map(|recorded| (recorded.member.clone(), recorded.digest())).collect())
    }

    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        let found = self.asking(|inner| inner.all(&self.project))?;
        Ok(merged(found, self.added.entries()?))
    }
}
