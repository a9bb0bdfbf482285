//! What was registered, read from the ledger, and which attempts came after it.
//!
//! Which registration is in force is a matter of the ledger alone ([`avow_model::ledger::force`]). An attempt is
//! covered by it where some ledger head that the attempt cites descends from that entry: a hash
//! link, not a time. Absent: writing, signatures and outside witnesses; without a witness the order is the
//! author's word, and the tool says so where it prints it.

use std::collections::BTreeSet;

use avow_model::attempt::Attempt;
use avow_model::digest::{PlanDigest, RegistrationDigest};
use avow_model::ledger::force::{InForce, Registered};
use avow_model::ledger::{self, Entry, Ledger};
use serde::Serialize;

use crate::finding::Finding;

/// The registration in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Registration {
    /// The digest of its ledger line.
    pub leaf: RegistrationDigest,
    /// `register` or `amend`.
    pub kind: String,
    /// The plan it froze.
    pub plan: PlanDigest,
    /// Whether its line shows nothing of it yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub embargo: bool,
    /// The chain's first `register` entry, from which random draws take their key.
    pub first: RegistrationDigest,
    /// Entries of the same kind that are neither before nor after this one: the other side of a fork.
    pub concurrent: Vec<RegistrationDigest>,
    /// What was registered before it on its own side, oldest first, itself last.
    #[serde(skip)]
    pub history: Vec<Registered>,
    /// The entries of `concurrent`, with their plans.
    #[serde(skip)]
    pub rivals: Vec<Registered>,
    /// This entry and everything that descends from it.
    #[serde(skip)]
    after: BTreeSet<RegistrationDigest>,
}

/// Whether a verdict rests on a registered plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The plan judged is exactly the registered one.
    Confirmatory,
    /// There is no registration, or the plan differs from it.
    Exploratory,
}

impl Standing {
    /// The word printed beside a verdict.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Confirmatory => "confirmatory",
            Standing::Exploratory => "exploratory",
        }
    }
}

impl Registration {
    /// The registration in force; `None` where nothing is registered. An entry that names no plan is a finding
    /// and freezes nothing.
    pub fn latest(ledger: &Ledger) -> (Option<Registration>, Vec<Finding>) {
        let (in_force, faults) = ledger.in_force();
        let finding = |(entry, reason)| Finding::BadRegistration { entry, reason };
        let findings = faults.into_iter().map(finding).collect();
        let Some(InForce { registered, first, history, rivals }) = in_force else { return (None, findings) };
        let closed = ledger.unopened();
        let registration = Registration {
            embargo: closed.iter().any(|(leaf, _)| *leaf == registered.leaf),
            leaf: registered.leaf,
            kind: registered.kind,
            plan: registered.plan,
            first,
            concurrent: rivals.iter().map(|rival| rival.leaf).collect(),
            after: descendants(&ledger.entries(), registered.leaf),
            history,
            rivals,
        };
        (Some(registration), findings)
    }

    /// Whether an attempt was started under this registration, by hash links.
    pub fn covers(&self, attempt: &Attempt) -> bool {
        attempt.ledger_heads.iter().any(|head| self.after.contains(head))
    }

    /// Confirmatory iff the plan judged is the registered one and no rival amendment is open.
    pub fn standing(registration: Option<&Registration>, plan: PlanDigest) -> Standing {
        match registration {
            Some(r) if r.plan == plan && r.concurrent.is_empty() => Standing::Confirmatory,
            _ => Standing::Exploratory,
        }
    }
}

/// `entries` are in canonical order, so parents come first.
pub(crate) fn descendants(entries: &[&Entry], root: RegistrationDigest) -> BTreeSet<RegistrationDigest> {
    let mut after = BTreeSet::from([root]);
    for entry in entries {
        if entry.parents.iter().any(|parent| after.contains(parent)) {
            after.insert(entry.leaf);
        }
    }
    after
}

/// A ledger's own findings as findings of the audit.
pub fn ledger_findings(ledger: &Ledger) -> Vec<Finding> {
    let translate = |finding: &ledger::Finding| match finding {
        ledger::Finding::Torn { bytes } => Finding::LedgerTorn { bytes: *bytes },
        ledger::Finding::Line { line, reason } => Finding::LedgerLine { line: *line, reason: reason.clone() },
    };
    ledger.findings().iter().map(translate).collect()
}
