//! Why something is not what was registered.
//!
//! A number is as registered where the plan judged is the registered one, nothing stands beside that registration,
//! and every attempt it rests on was started under it, preparation apart. Each way in which that fails is one reason,
//! with the members for which it holds. Absent: deviations that leave a registered result registered, such as
//! failures before a success; those are listed by themselves.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::digest::{PlanDigest, RegistrationDigest};
use serde::Serialize;

use super::{Lineage, Thing};
use crate::deviation;
use crate::evidence::{Evidence, Fate, MemberEvidence};
use crate::planned::{self, Change};

/// Why something is not as registered; no reason where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// The registration in force.
    pub registration: Option<RegistrationDigest>,
    /// The reasons, the most general first.
    pub reasons: Vec<Reason>,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// The experiment was never registered.
    NothingRegistered,
    /// Another plan is registered.
    OtherPlan {
        /// The plan registered.
        registered: PlanDigest,
        /// The plan of this lineage.
        judged: PlanDigest,
        /// What differs; nothing where the record of the registered plan is not here.
        changes: Vec<Change>,
    },
    /// Of several registrations, none is before the other.
    Concurrent {
        /// Their ledger lines.
        entries: Vec<RegistrationDigest>,
    },
    /// Members that the registered plan does not have.
    NotPlanned {
        /// Their labels.
        members: Vec<String>,
    },
    /// Members that are other work under the registered plan: another command, code, input, program, environment.
    OtherWork {
        /// Their labels.
        members: Vec<String>,
    },
    /// Attempts that were started before the registration.
    Older {
        /// Members by label.
        members: Vec<String>,
        /// Whether only preparation is concerned, which may be older: it reads no results.
        preparation: bool,
    },
    /// Members for which nothing stands.
    NoResult {
        /// Members by label, with the code of their fate.
        members: BTreeMap<String, &'static str>,
    },
}

/// Why a lineage is not as registered. `registered` is what exists for the registered plan, where that is another
/// than the one judged and its record is here.
pub fn why_not_registered(
    lineage: &Lineage,
    evidence: &Evidence<'_>,
    registered: Option<&Evidence<'_>>,
) -> Why {
    let Some(registration) = &evidence.registration else {
        return Why { registration: None, reasons: vec![Reason::NothingRegistered] };
    };
    let mut why = Why { registration: Some(registration.leaf), reasons: Vec::new() };
    if !evidence.plan.is_named(registration.plan) {
        let changes = registered.map(|other| planned::changes(other.plan, evidence.plan)).unwrap_or_default();
        let (registered, judged) = (registration.plan, evidence.digest);
        why.reasons.push(Reason::OtherPlan { registered, judged, changes });
    }
    if !registration.concurrent.is_empty() {
        why.reasons.push(Reason::Concurrent { entries: registration.concurrent.clone() });
    }
    let labels: BTreeSet<&str> = lineage
        .nodes
        .values()
        .filter_map(|node| match &node.what {
            Thing::Member { label, .. } => Some(label.as_str()),
            _ => None,
        })
        .collect();
    let members: Vec<(String, &MemberEvidence)> = evidence
        .members()
        .map(|member| (evidence.label(member.member), member))
        .filter(|(label, _)| labels.contains(label.as_str()))
        .collect();
    if let Some(registered) = registered {
        why.reasons.extend(elsewhere(registered, &members));
    }
    why.reasons.extend(older(evidence, &members));
    let without = members.iter().filter(|(_, member)| !matches!(member.fate, Fate::Stands(_)));
    let without: BTreeMap<String, &'static str> =
        without.map(|(label, member)| (label.clone(), member.fate.word())).collect();
    if !without.is_empty() {
        why.reasons.push(Reason::NoResult { members: without });
    }
    why
}

/// Members that the registered plan does not have, or has as other work.
fn elsewhere(registered: &Evidence<'_>, members: &[(String, &MemberEvidence)]) -> Vec<Reason> {
    let planned: BTreeMap<String, &MemberEvidence> =
        registered.members().map(|member| (registered.label(member.member), member)).collect();
    let (mut absent, mut other) = (Vec::new(), Vec::new());
    for (label, member) in members {
        match planned.get(label) {
            None => absent.push(label.clone()),
            Some(there) if there.action != member.action => other.push(label.clone()),
            Some(_) => {}
        }
    }
    let absent = (!absent.is_empty()).then_some(Reason::NotPlanned { members: absent });
    let other = (!other.is_empty()).then_some(Reason::OtherWork { members: other });
    absent.into_iter().chain(other).collect()
}

/// Members whose attempts are older than the registration: first those that it covers, then preparation.
fn older(evidence: &Evidence<'_>, members: &[(String, &MemberEvidence)]) -> Vec<Reason> {
    let covered = deviation::covered(evidence.plan);
    let of = |preparation: bool| {
        let older = members.iter().filter(|(_, member)| {
            let concerned = covered.contains(&(member.member.stage as usize)) != preparation;
            concerned && matches!(&member.fate, Fate::Stands(stands) if !stands.covered)
        });
        let members: Vec<String> = older.map(|(label, _)| label.clone()).collect();
        (!members.is_empty()).then_some(Reason::Older { members, preparation })
    };
    [of(false), of(true)].into_iter().flatten().collect()
}

impl Reason {
    /// Whether it takes away that something is registered: preparation may be older.
    pub fn counts(&self) -> bool {
        !matches!(self, Reason::Older { preparation: true, .. })
    }
}
