//! Putting the past in order: runs whose process died without closing their journal.
//!
//! Called with the run lock in hand, so nobody else writes. Each open journal belongs to a dead runner. What
//! survives of its attempts is ended first, so that no process of the old run can write into anything; then
//! each attempt that never finished is recorded as `Lost`, and the journal is closed.

use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Timestamp, Usage};
use avow_model::digest::ActionDigest;
use avow_model::journal::{Closing, Event, Journal, RunState};
use avow_model::plan::Terms;
use avow_store::journal::{self, JournalFile};
use avow_store::{JournalWriter, Project, RunLock};

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
pub(crate) fn recover(project: &Project, lock: &RunLock) -> Result<Vec<Recovered>, EngineError> {
    let mut recovered = Vec::new();
    for file in journal::journals(project)? {
        if file.closing()?.is_none() {
            recovered.extend(close(project, lock, &file)?);
        }
    }
    Ok(recovered)
}

fn close(project: &Project, lock: &RunLock, file: &JournalFile) -> Result<Option<Recovered>, EngineError> {
    let journal = file.read()?;
    if !continuable(&journal) {
        tracing::warn!(run = file.run, damage = ?journal.damage, "a damaged journal is left as it is");
        return Ok(None);
    }
    let state = RunState::of(&journal.lines);
    let orphans: Vec<Orphan> = state
        .orphans()
        .map(|(member, id, action, since, process)| Orphan {
            member: member.to_owned(),
            id: id.clone(),
            action,
            since,
            process,
        })
        .collect();
    let processes: Vec<_> = orphans.iter().map(|o| (o.id.clone(), o.process)).collect();
    let survivors = avow_exec::end_survivors(&processes);
    let heads = state.opened.as_ref().map(|o| o.ledger_heads.clone()).unwrap_or_default();
    let (mut writer, _) = JournalWriter::open_existing(project, &file.run, lock)?;
    let at = now();
    for orphan in &orphans {
        let mut attempt = orphan.lost(&file.run, at);
        attempt.ledger_heads.clone_from(&heads);
        let member = orphan.member.clone();
        writer.append(at, Event::Finished { member, attempt: Box::new(attempt) })?;
    }
    writer.append(at, Event::Closed { how: Closing::Abandoned })?;
    writer.sync()?;
    let lost = orphans.into_iter().map(|o| o.member).collect();
    Ok(Some(Recovered { run: file.run.clone(), lost, survivors }))
}

/// A journal that breaks in the middle is evidence of damage; nothing is appended to it.
fn continuable(journal: &Journal) -> bool {
    use avow_model::journal::Damage;
    !journal.lines.is_empty() && !matches!(journal.damage, Some(Damage::Broken { .. }))
}

struct Orphan {
    member: String,
    id: AttemptId,
    action: ActionDigest,
    since: Timestamp,
    process: Option<(i32, u64)>,
}

impl Orphan {
    fn lost(&self, run: &str, at: Timestamp) -> Attempt {
        Attempt {
            id: self.id.clone(),
            action: self.action,
            run: run.to_owned(),
            outcome: Outcome::Lost,
            outputs: Default::default(),
            stdout: None,
            stderr: None,
            started: self.since,
            finished: at,
            usage: Usage::default(),
            host: Host::default(),
            terms: Terms::default(),
            ledger_heads: Vec::new(),
            number: 1,
        }
    }
}
