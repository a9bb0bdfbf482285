//! Copies of ledger heads outside the ledger. Whole lines cut from its end, or a whole side of a fork, leave a valid
//! ledger: only somebody who cites a later head shows that it is gone.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::digest::RegistrationDigest;
use avow_model::journal::Event;
use avow_model::ledger::Ledger;

use crate::finding::Finding;
use crate::integrity::RunJournal;

/// Heads, each with those who cite it.
#[derive(Clone, Debug, Default)]
pub struct Cited(BTreeMap<RegistrationDigest, BTreeSet<String>>);

impl Cited {
    /// Notes that somebody cites a head.
    pub fn add(&mut self, head: RegistrationDigest, by: impl Into<String>) {
        self.0.entry(head).or_default().insert(by.into());
    }

    /// What the journals of an experiment's runs cite: the heads at their beginning and at that of each attempt.
    pub fn by_journals(&mut self, experiment: &str, journals: &[RunJournal]) {
        for RunJournal { run, journal } in journals {
            let Some(Event::Opened(opened)) = journal.lines.first().map(|line| &line.event) else { continue };
            if opened.experiment != experiment {
                continue;
            }
            let attempts = journal.lines.iter().filter_map(|line| match &line.event {
                Event::Finished { attempt, .. } => Some(&attempt.ledger_heads),
                _ => None,
            });
            for head in opened.ledger_heads.iter().chain(attempts.flatten()) {
                self.add(*head, format!("run {run}"));
            }
        }
    }

    /// How many heads are cited.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody cites any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The heads that the ledger lacks, each with the first that cites it.
    pub fn missing(&self, ledger: &Ledger) -> Vec<Finding> {
        let lacking = self.0.iter().filter(|(head, _)| ledger.entry(**head).is_none());
        let finding = |(head, by): (&RegistrationDigest, &BTreeSet<String>)| {
            let cited_by = match by.len() {
                0 | 1 => by.first().cloned().unwrap_or_default(),
                n => format!("{} and {} more", by.first().cloned().unwrap_or_default(), n - 1),
            };
            Finding::MissingHead { head: *head, cited_by }
        };
        lacking.map(finding).collect()
    }
}
