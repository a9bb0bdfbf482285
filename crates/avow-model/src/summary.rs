//! A run's state without its settled members: small however long the run was.
//!
//! [`RunState`](crate::journal::RunState) keeps every attempt, because recovery needs them. Whoever only asks where
//! a run stands needs the counts, and by name only those members that are under way or did not succeed. Both folds
//! agree on the counts of every journal that an engine writes, where a member that succeeded or was reused is not
//! touched again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attempt::{Outcome, Timestamp};
use crate::journal::{Closing, Counts, Event, Line, Opened};

/// Where a run stands: the fold of its lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Opened>,
    /// When it began.
    pub since: Timestamp,
    /// When the last line was written.
    pub until: Timestamp,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closing>,
    /// Members that were reused.
    pub reused: u64,
    /// Members that were executed with success.
    pub succeeded: u64,
    /// Members under way, by label, with the time they were started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub running: BTreeMap<String, Timestamp>,
    /// Members whose last attempt did not succeed, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended: BTreeMap<String, Outcome>,
    /// Attempts that ended and were made only to be compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub verified: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RunSummary {
    /// The fold of some lines.
    pub fn of<'l>(lines: impl IntoIterator<Item = &'l Line>) -> RunSummary {
        let mut summary = RunSummary::default();
        lines.into_iter().for_each(|line| summary.apply(line));
        summary
    }

    /// Takes one more line in.
    pub fn apply(&mut self, line: &Line) {
        self.until = line.at;
        match &line.event {
            Event::Opened(opened) => {
                self.opened = Some((**opened).clone());
                self.since = line.at;
            }
            Event::Reused { hits, cited } => {
                self.reused += cited.map_or(0, |cited| cited.count);
                for hit in hits {
                    self.settle(&hit.member);
                    self.reused += 1;
                }
            }
            Event::Started { verification: true, .. } => {}
            Event::Started { member, .. } => {
                self.settle(member);
                self.running.insert(member.clone(), line.at);
            }
            Event::Spawned { .. } => {}
            Event::Finished { attempt, .. } if attempt.verification => self.verified += 1,
            Event::Finished { member, attempt } => {
                self.settle(member);
                if attempt.outcome.succeeded() {
                    self.succeeded += 1;
                } else {
                    self.ended.insert(member.clone(), attempt.outcome.clone());
                }
            }
            Event::Decided { .. } | Event::Verifying { .. } => {}
            Event::Closed { how } => self.closed = Some(*how),
        }
    }

    fn settle(&mut self, member: &str) {
        if self.running.remove(member).is_none() {
            self.ended.remove(member);
        }
    }

    /// How many members are in which state.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            running: self.running.len() as u64,
            reused: self.reused,
            succeeded: self.succeeded,
            ..Counts::default()
        };
        for outcome in self.ended.values() {
            match outcome {
                Outcome::Cancelled => counts.cancelled += 1,
                Outcome::Lost => counts.lost += 1,
                _ => counts.failed += 1,
            }
        }
        counts.with_rest_waiting(self.opened.as_ref().map_or(0, |o| o.members))
    }
}
