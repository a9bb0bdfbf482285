//! Putting the past in order: runs whose process died without closing their journal.
//!
//! Called with the run lock in hand, so nobody else writes. Each open journal belongs to a dead runner. What
//! survives of its attempts is ended first, so that no process of the old run can write into anything; then
//! each attempt that never finished is recorded as `Lost`, and the journal is closed. A journal that is damaged
//! where no crash can have damaged it is evidence: it is left as it is, and blocks nobody.

use avow_model::action::ENCODING;
use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Timestamp, Usage};
use avow_model::digest::ActionDigest;
use avow_model::journal::{Closing, Damage, Event, Journal, Opened, RunState};
use avow_model::plan::Terms;
use avow_store::journal::{self, JournalFile};
use avow_store::ledger;
use avow_store::{JournalWriter, LedgerFile, Project, RecordStore, Recorded, RunLock, SledIndex, StoreError};

use crate::clock::now;
use crate::error::EngineError;

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

/// Closes every journal that a dead process left open.
pub(crate) fn recover(
    project: &Project,
    lock: &RunLock,
    index: &SledIndex,
) -> Result<Vec<Recovered>, EngineError> {
    for experiment in ledger::experiments(project)? {
        if LedgerFile::of(project, &experiment)?.mend()? {
            tracing::warn!(experiment, "a torn tail was cut off the ledger");
        }
    }
    let mut recovered = Vec::new();
    for file in journal::journals(project)? {
        if file.closing()?.is_none() {
            recovered.extend(close(project, lock, index, &file)?);
        }
    }
    Ok(recovered)
}

fn close(
    project: &Project,
    lock: &RunLock,
    index: &SledIndex,
    file: &JournalFile,
) -> Result<Option<Recovered>, EngineError> {
    let journal = file.read()?;
    let state = RunState::of(&journal.lines);
    let orphans = orphans(&state);
    let processes: Vec<_> = orphans.iter().map(|o| (o.id.clone(), o.process)).collect();
    let survivors = avow_exec::end_survivors(&processes);
    if !continuable(&journal) {
        tracing::warn!(run = file.run, damage = ?journal.damage, "a damaged journal is left as it is");
        return Ok(None);
    }
    let Some(opened) = state.opened else {
        let went = file.discard_unbegun(lock)?;
        tracing::info!(run = file.run, went, "a run had died before it wrote a line");
        return Ok(None);
    };
    let (mut writer, _) = JournalWriter::open_existing(project, &file.run, lock)?;
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
    learn(project, index, &records, &writer)?;
    let lost = orphans.into_iter().map(|o| o.member).collect();
    Ok(Some(Recovered { run: file.run.clone(), lost, survivors }))
}

/// Brings the index up to what a journal now holds. An index that fails in between is marked, so that the next
/// command builds it from the journals.
pub(crate) fn learn<'r>(
    project: &Project,
    index: &SledIndex,
    records: impl IntoIterator<Item = &'r Recorded>,
    journal: &JournalWriter,
) -> Result<(), StoreError> {
    let insert = || {
        records.into_iter().try_for_each(|recorded| index.insert(recorded).map(drop))?;
        index.caught_up(journal.run(), journal.length())
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
}

fn orphans(state: &RunState) -> Vec<Orphan> {
    let before = |member: &str| state.attempts.iter().filter(|(label, _)| label == member).count();
    state
        .orphans()
        .map(|(member, id, action, since, process)| Orphan {
            member: member.to_owned(),
            id: id.clone(),
            action,
            since,
            process,
            number: u32::try_from(before(member) + 1).unwrap_or(u32::MAX),
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
        }
    }
}
