//! Putting the past in order: runs whose process died without closing their journal.
//!
//! A run that lives holds a lock on its own journal; an open journal without that lock belongs to a dead runner.
//! What survives of its attempts is ended first, so that no process of the old run can write into anything; then
//! each attempt that never finished is recorded as `Lost`, and the journal is closed. A journal that is damaged
//! where no crash can have damaged it is evidence: it is left as it is, and blocks nobody.
//!
//! Only one process does so at a time. Whoever finds a dead run waits for it, because before a process of the dead
//! run is known to be gone no other may execute the same action.

use std::collections::HashSet;

use avow_exec::ExecError;
use avow_model::action::ENCODING;
use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Timestamp, Usage};
use avow_model::digest::ActionDigest;
use avow_model::journal::{Closing, Damage, Event, Journal, Opened, RunState};
use avow_model::ledger::Entry;
use avow_model::plan::Terms;
use avow_store::journal::{self, JournalFile};
use avow_store::ledger;
use avow_store::lock::RecoveryLock;
use avow_store::presence;
use avow_store::{JournalWriter, LedgerFile, Project, RecordStore, Recorded, SharedIndex, StoreError};

use crate::clock::now;
use crate::error::EngineError;
use crate::register;

/// A run that had died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The run.
    pub run: String,
    /// Members whose attempts were under way.
    pub lost: Vec<String>,
    /// Processes that were still alive and were ended.
    pub survivors: usize,
}

/// The runs that a project has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    /// All of them.
    pub(crate) known: HashSet<String>,
    /// Those that live.
    pub(crate) living: Vec<JournalFile>,
}

/// Closes every journal that a dead process left open.
pub(crate) fn recover(
    project: &Project,
    index: &SharedIndex,
) -> Result<(Vec<Recovered>, Census), EngineError> {
    for experiment in ledger::experiments(project)? {
        if LedgerFile::of(project, &experiment)?.mend()? {
            tracing::warn!(experiment, "a torn tail was cut off the ledger");
        }
    }
    let mut census = Census::default();
    let mut dead = Vec::new();
    for file in journal::journals(project)? {
        census.known.insert(file.run.clone());
        if file.closing()?.is_none() {
            if file.is_live()? { &mut census.living } else { &mut dead }.push(file);
        }
    }
    Ok((close_all(project, index, &dead)?, census))
}

/// Closes these journals, whose runs are dead, unless another process has done so meanwhile.
pub(crate) fn close_all(
    project: &Project,
    index: &SharedIndex,
    dead: &[JournalFile],
) -> Result<Vec<Recovered>, EngineError> {
    let mut recovered = Vec::new();
    if dead.is_empty() {
        return Ok(recovered);
    }
    let _lock = RecoveryLock::acquire(project)?;
    for file in dead {
        if file.closing()?.is_none() {
            recovered.extend(close(project, index, file)?);
        }
    }
    Ok(recovered)
}

fn close(
    project: &Project,
    index: &SharedIndex,
    file: &JournalFile,
) -> Result<Option<Recovered>, EngineError> {
    let journal = file.read()?;
    let state = RunState::of(&journal.lines);
    let orphans = orphans(&state);
    let processes: Vec<_> = orphans.iter().map(|o| (o.id.clone(), o.process)).collect();
    let survivors = avow_exec::end_survivors(&processes);
    clear(project, &orphans);
    if !continuable(&journal) {
        tracing::warn!(run = file.run, damage = ?journal.damage, "a damaged journal is left as it is");
        return Ok(None);
    }
    let Some(opened) = state.opened else {
        let went = file.discard_unbegun()?;
        tracing::info!(run = file.run, went, "a run had died before it wrote a line");
        return Ok(None);
    };
    // It may have died between the line of an attempt and the word to the index.
    index.catch_up(&file.run)?;
    let (mut writer, _) = JournalWriter::open_existing(project, &file.run)?;
    let at = now();
    let mut records = Vec::with_capacity(orphans.len());
    for orphan in &orphans {
        let attempt = orphan.lost(&opened, at);
        let member = orphan.member.clone();
        let event = Event::Finished { member: member.clone(), attempt: Box::new(attempt.clone()) };
        let position = writer.append(at, event)?;
        records.push(Recorded { position, experiment: opened.experiment.clone(), member, attempt });
    }
    writer.append(at, Event::Closed { how: Closing::Abandoned })?;
    writer.sync()?;
    learn(project, index, &records, Some((writer.run().to_owned(), writer.length())))?;
    told_of_end(project, &opened.experiment, &writer)?;
    presence::forget(project, &file.run)?;
    let lost = orphans.into_iter().map(|o| o.member).collect();
    Ok(Some(Recovered { run: file.run.clone(), lost, survivors }))
}

/// Notes in the ledger where the journal of a run ends that the ledger knows, as the run itself would have.
fn told_of_end(project: &Project, experiment: &str, writer: &JournalWriter) -> Result<(), EngineError> {
    let ledger = LedgerFile::of(project, experiment)?;
    let read = ledger.read()?;
    let run = |entry: &Entry| entry.fields.get("run").and_then(|run| run.as_str()) == Some(writer.run());
    let opened = read.entries().into_iter().any(|entry| entry.kind == "run-opened" && run(entry));
    match writer.head() {
        Some(head) if opened => {
            ledger.run_closed(writer.run(), head).map_err(register::appended)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Takes back what attempts that are lost left for the next one, and removes their folders. Before their journal is
/// closed, because until then nobody starts another attempt at the same actions.
fn clear(project: &Project, orphans: &[Orphan]) {
    let work = project.work();
    for orphan in orphans {
        let rescued = avow_exec::rescue_checkpoint(&project.checkpoints(), &work, orphan.action, &orphan.id);
        if let Err(error) = rescued {
            tracing::warn!(member = orphan.member, %error, "a checkpoint is lost");
        }
    }
    avow_exec::clear_leftovers(&work, orphans.iter().map(|orphan| orphan.id.clone()));
}

/// Removes the folders of attempts that no living run makes.
pub(crate) fn clear_folders(project: &Project) -> Result<(), EngineError> {
    let work = project.work();
    let failed = |source| ExecError::Work { path: work.clone(), source };
    // The folders are listed first: one that is there now belongs to an attempt that stands in its run's journal.
    let folders = avow_exec::attempt_folders(&work).map_err(failed)?;
    if folders.is_empty() {
        return Ok(());
    }
    let mut living = HashSet::new();
    for file in journal::journals(project)? {
        if file.closing()?.is_none() && file.is_live()? {
            let started = file.read()?.lines.into_iter().filter_map(|line| match line.event {
                Event::Started { attempt, .. } => Some(attempt),
                _ => None,
            });
            living.extend(started);
        }
    }
    let dead = folders.into_iter().filter(|attempt| !living.contains(attempt));
    avow_exec::clear_leftovers(&work, dead);
    Ok(())
}

/// Brings the index up to what a journal now holds; `noted` is its run and length, where that is to be noted. An
/// index that fails in between is marked, so that the next command builds it from the journals.
pub(crate) fn learn(
    project: &Project,
    index: &SharedIndex,
    records: &[Recorded],
    noted: Option<(String, u64)>,
) -> Result<(), StoreError> {
    let insert = || {
        index.insert_all(records)?;
        noted.map_or(Ok(()), |(run, length)| index.caught_up(&run, length))
    };
    insert().inspect_err(|_| {
        if let Err(second) = avow_store::index::mark_damaged(project) {
            tracing::warn!(%second, "the index could not be marked as damaged");
        }
    })
}

/// A journal that breaks in the middle is evidence of damage; nothing is appended to it.
fn continuable(journal: &Journal) -> bool {
    !matches!(journal.damage, Some(Damage::Broken { .. }))
}

/// An attempt that was started and never finished.
struct Orphan {
    member: String,
    id: AttemptId,
    action: ActionDigest,
    since: Timestamp,
    process: Option<(i32, u64)>,
    number: u32,
    verification: bool,
}

fn orphans(state: &RunState) -> Vec<Orphan> {
    let before = |member: &str| state.attempts.iter().filter(|(label, _)| label == member).count();
    state
        .orphans()
        .map(|orphan| Orphan {
            number: u32::try_from(before(&orphan.member) + 1).unwrap_or(u32::MAX),
            member: orphan.member,
            id: orphan.attempt,
            action: orphan.action,
            since: orphan.since,
            process: orphan.process,
            verification: orphan.verification,
        })
        .collect()
}

impl Orphan {
    /// What is known of it: neither its terms nor its host are in the journal.
    fn lost(&self, opened: &Opened, at: Timestamp) -> Attempt {
        Attempt {
            id: self.id.clone(),
            action: self.action,
            run: opened.run.clone(),
            outcome: Outcome::Lost,
            outputs: Default::default(),
            stdout: None,
            stderr: None,
            reads: None,
            started: self.since,
            finished: at,
            usage: Usage::default(),
            host: Host::default(),
            environment: None,
            encoding: ENCODING,
            terms: Terms::default(),
            ledger_heads: opened.ledger_heads.clone(),
            number: self.number,
            continues: Vec::new(),
            verification: self.verification,
        }
    }
}
