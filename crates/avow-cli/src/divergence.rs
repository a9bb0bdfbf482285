//! Successes of one action that did not give the same bytes, in words.

use avow_audit::compare;
use avow_model::attempt::Attempt;
use avow_store::{RecordStore, Recorded};

use crate::context::Reading;
use crate::failure;
use crate::output::Failure;
use crate::verification::listed;
use crate::words;

/// So many attempts are told one by one.
const TOLD: usize = 3;

/// How other successes of the action of an attempt differ from the first; nothing where none does.
///
/// # Errors
/// Where the store cannot be read.
pub fn notes(reading: &Reading, of: &Recorded) -> Result<Vec<String>, Failure> {
    let trace = reading.index.trace(of.attempt.action).map_err(failure::store)?;
    let mut successes = Vec::new();
    for digest in trace {
        let recorded = reading.index.attempt(digest).map_err(failure::store)?;
        successes.extend(recorded.filter(|recorded| recorded.attempt.outcome.succeeded()));
    }
    // The attempt that stands, where this one succeeded; else the first.
    let first = successes.iter().find(|recorded| recorded.digest() == of.digest()).or(successes.first());
    let Some(first) = first.cloned() else { return Ok(Vec::new()) };
    let others: Vec<&Recorded> =
        successes.iter().filter(|other| other.attempt.outputs != first.attempt.outputs).collect();
    let mut lines = Vec::new();
    for other in others.iter().take(TOLD) {
        let purpose = if other.attempt.verification { ", made to verify," } else { "" };
        lines.push(format!(
            "diverged: attempt {}{purpose} did not give the same bytes; attempt {} stays the evidence",
            other.digest().short(),
            first.digest().short()
        ));
        lines.extend(differences(reading, &first.attempt, &other.attempt)?);
    }
    if others.len() > TOLD {
        lines.push(format!("… and {} more diverged", words::count((others.len() - TOLD) as u64, "attempt")));
    }
    Ok(lines)
}

fn differences(reading: &Reading, first: &Attempt, other: &Attempt) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let names = first.outputs.keys().chain(other.outputs.keys());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let artifact = |attempt: &Attempt| attempt.outputs.get(name).map(|made| made.artifact);
        let found = compare::artifacts(reading.source(), artifact(first), artifact(other), None);
        let found = found.map_err(failure::audit)?;
        lines.extend(listed(name, &found).into_iter().map(|line| format!("  {line}")));
    }
    Ok(lines)
}
