//! What the engine tells whoever watches, and what it reports at the end.

use std::collections::BTreeMap;

use avow_model::attempt::{Attempt, Outcome, Timestamp};
use avow_model::journal::Closing;
use avow_model::search::Decision;
use avow_planner::Tally;

use crate::verify::Verification;

/// Something that happened, for a progress line.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The run has a name and a journal.
    Opened {
        /// The run.
        run: String,
        /// How many members it is about, by stage.
        members: BTreeMap<String, u64>,
    },
    /// Some members were reused.
    Reused {
        /// Their labels.
        members: Vec<String>,
    },
    /// A member was started.
    Started {
        /// Its label.
        member: String,
        /// When.
        at: Timestamp,
    },
    /// A member waits, because another run executes its action.
    Waiting {
        /// Its label.
        member: String,
        /// The other run.
        run: String,
    },
    /// A member's attempt ended.
    Finished {
        /// Its label.
        member: String,
        /// The record.
        attempt: Box<Attempt>,
        /// Whether it will be tried again.
        again: bool,
    },
    /// A search took a step.
    Decided(Decision),
    /// Some of what was reused is carried out again.
    Verifying {
        /// How many actions.
        drawn: u64,
        /// Of how many.
        of: u64,
    },
    /// One of them ended.
    Verified {
        /// Its label.
        member: String,
        /// Whether it gave the same bytes.
        same: bool,
        /// How many have ended.
        done: u64,
    },
    /// How many members are in which state now.
    Tally(Tally),
    /// The run was told to stop.
    Stopping,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The run.
    pub run: String,
    /// How.
    pub closing: Closing,
    /// Members by state.
    pub tally: Tally,
    /// Members whose last attempt failed, with that outcome.
    pub failures: Vec<(String, Outcome)>,
    /// Actions whose attempts under encoding 1, which named less, were taken over by this run.
    pub migrated: u64,
    /// Wall time in milliseconds.
    pub wall: i64,
    /// CPU time of all attempts in microseconds.
    pub cpu: u64,
    /// Whether everything was found as an earlier run of the same plan had left it.
    pub unchanged: bool,
    /// What carrying some of what was reused out again gave, where that was asked for and the run came to its end.
    pub verification: Option<Verification>,
}
