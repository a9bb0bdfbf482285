//! Whether journals, ledger and attempts agree with each other.
//!
//! Journals are chained, the ledger remembers each journal's beginning and how far it had come, and attempts
//! cite the ledger's heads. So what was cut from the end of one of them is known to another. Absent: hashing
//! every blob, which the store does, and repairing anything.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::canonical::Record;
use avow_model::digest::{AttemptDigest, LineDigest};
use avow_model::journal::{Damage, Event, Journal};
use avow_model::ledger::{Entry, Ledger};

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::heads::Cited;
use crate::registration::ledger_findings;

/// A run's journal as read.
#[derive(Clone, Debug)]
pub struct RunJournal {
    /// The run.
    pub run: String,
    /// Its lines and what is wrong after them.
    pub journal: Journal,
}

/// Compares the ledger, the journals and the attempts found. `journals` are all that the project has, because an
/// attempt may have been made for another experiment; the ledger of those is not this one.
pub fn check(evidence: &Evidence<'_>, ledger: &Ledger, journals: &[RunJournal]) -> Vec<Finding> {
    let mut findings: BTreeSet<Finding> = ledger_findings(ledger).into_iter().collect();
    findings.extend(journals.iter().filter_map(damage));
    let mut cited = Cited::default();
    cited.by_journals(&evidence.plan.experiment, journals);
    findings.extend(cited.missing(ledger));
    findings.extend(missing_lines(ledger, journals));
    findings.extend(unjournalled(evidence, journals));
    findings.extend(unannounced(&evidence.plan.experiment, ledger, journals));
    findings.into_iter().collect()
}

fn damage(run: &RunJournal) -> Option<Finding> {
    let name = run.run.clone();
    Some(match run.journal.damage.as_ref()? {
        Damage::Torn { bytes } => Finding::JournalTorn { run: name, bytes: *bytes },
        Damage::Broken { line, reason } => {
            Finding::JournalLine { run: name, line: *line, reason: reason.clone() }
        }
    })
}

/// Journals, and lines of journals, that the ledger saw and nobody has.
pub fn missing_lines(ledger: &Ledger, journals: &[RunJournal]) -> Vec<Finding> {
    let by_run: BTreeMap<&str, &Journal> = journals.iter().map(|j| (j.run.as_str(), &j.journal)).collect();
    let any = |line: &str| {
        let mut lines = journals.iter().flat_map(|run| digests(&run.journal));
        line.parse().is_ok_and(|wanted: LineDigest| lines.any(|digest| digest == wanted))
    };
    let mut findings = Vec::new();
    for entry in ledger.entries() {
        let Some((run, line)) = seen(entry) else { continue };
        let journal = run.and_then(|run| by_run.get(run));
        match (run, journal) {
            // Under embargo a line names no run.
            (None, _) if !any(line) => {
                findings.push(Finding::MissingJournal { run: format!("with the line {line}") });
            }
            (Some(run), None) => findings.push(Finding::MissingJournal { run: run.to_owned() }),
            (Some(run), Some(journal)) if !digests(journal).any(|digest| digest.to_string() == line) => {
                findings.push(Finding::JournalCut { run: run.to_owned(), line: line.to_owned() });
            }
            _ => {}
        }
    }
    findings
}

/// The run, where it is named, and the journal line that a ledger line mentions.
fn seen(entry: &Entry) -> Option<(Option<&str>, &str)> {
    if !matches!(entry.kind.as_str(), "run-opened" | "run-head" | "run-closed") {
        return None;
    }
    let text = |key: &str| entry.fields.get(key).and_then(|value| value.as_str());
    Some((text("run"), text("journal")?))
}

/// The digest of every intact line: each line holds that of the one before.
fn digests(journal: &Journal) -> impl Iterator<Item = LineDigest> {
    journal.lines.iter().filter_map(|line| line.previous).chain(journal.head)
}

/// Journals of the experiment with attempts that the ledger was not told of beforehand: nobody's run wrote them.
pub fn unannounced(experiment: &str, ledger: &Ledger, journals: &[RunJournal]) -> Vec<Finding> {
    let announced = ledger.announced();
    let own = journals.iter().filter(|run| match run.journal.lines.first().map(|line| &line.event) {
        Some(Event::Opened(opened)) => opened.experiment == experiment,
        _ => false,
    });
    let missed = own.filter(|run| {
        let before = run.journal.before_attempts();
        before.is_some_and(|lines| !lines.iter().any(|line| announced.contains(line)))
    });
    missed.map(|run| Finding::Unannounced { run: run.run.clone() }).collect()
}

/// Attempts that stand for a member and that no journal holds: somebody's index made them up.
fn unjournalled(evidence: &Evidence<'_>, journals: &[RunJournal]) -> Vec<Finding> {
    let lines = journals.iter().flat_map(|j| &j.journal.lines);
    let journalled: BTreeSet<AttemptDigest> = lines
        .filter_map(|line| match &line.event {
            Event::Finished { attempt, .. } => Some(attempt.digest()),
            _ => None,
        })
        .collect();
    let tried = evidence.members().flat_map(|m| &m.attempts).map(|tried| tried.attempt);
    tried
        .filter(|attempt| !journalled.contains(attempt))
        .map(|attempt| Finding::Unjournalled { attempt })
        .collect()
}
