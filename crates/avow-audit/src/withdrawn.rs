//! What was declared wrong, with everything that rests on it, and which readings were withdrawn.

use std::collections::BTreeSet;

use avow_model::digest::RegistrationDigest;
use avow_model::expand::{self, Member};
use avow_model::ledger::invalid::{Invalid, Wrong};
use avow_model::ledger::{Entry, Ledger};
use avow_model::plan::Plan;

use crate::deviation::{Class, Deviation, What, When};
use crate::evidence::{Evidence, MemberEvidence, Tried};
use crate::holdout;
use crate::registration::descendants;

/// One deviation for each thing that is declared wrong and that stood for a member of the plan.
pub fn invalidations(evidence: &Evidence<'_>, ledger: &Ledger) -> Vec<Deviation> {
    let invalids = ledger.invalids();
    let found = invalids.0.iter().filter_map(|invalid| {
        let wrong: BTreeSet<Member> = evidence
            .members()
            .filter(|member| member.attempts.iter().any(|tried| is_wrong(invalid, tried)))
            .map(|member| member.member)
            .collect();
        (!wrong.is_empty()).then(|| invalidation(evidence, ledger, invalid, &wrong))
    });
    found.collect()
}

fn is_wrong(invalid: &Invalid, tried: &Tried) -> bool {
    match invalid.what {
        Wrong::Attempt(wrong) => wrong == tried.attempt,
        Wrong::Blob(wrong) => tried.outputs.values().any(|artifact| artifact.blob() == wrong),
    }
}

fn invalidation(
    evidence: &Evidence<'_>,
    ledger: &Ledger,
    invalid: &Invalid,
    wrong: &BTreeSet<Member>,
) -> Deviation {
    let downstream = downstream(evidence, wrong);
    let labels = |members: &BTreeSet<Member>| members.iter().map(|member| evidence.label(*member)).collect();
    let stages = wrong.iter().chain(&downstream);
    let stages = stages.map(|member| evidence.plan.stages[member.stage as usize].name.clone()).collect();
    let (members, rest) = (labels(wrong), labels(&downstream));
    let what = What::Invalidated { wrong: invalid.what.to_string(), members, downstream: rest, stages };
    let registration = evidence.registration.as_ref();
    let when = match registration {
        None => When::Unregistered,
        Some(r) if ledger.precedes(invalid.entry, r.leaf) => When::BeforeRegistration,
        Some(_) if was_unread(evidence, ledger, invalid.entry, &downstream) => When::BeforeValues,
        Some(_) => When::After,
    };
    let mut deviation = Deviation::new(Class::Invalidation, when, what);
    deviation.reason = Some(invalid.reason.clone()).filter(|reason| !reason.trim().is_empty());
    deviation.entry = Some(invalid.entry);
    deviation
}

/// Whether no value of the plan could have been read when an entry was made: values are hidden until the plan is complete,
/// which the wrong attempts helped to make it, and whoever peeked has a line of it.
fn was_unread(
    evidence: &Evidence<'_>,
    ledger: &Ledger,
    entry: RegistrationDigest,
    downstream: &BTreeSet<Member>,
) -> bool {
    let entries = ledger.entries();
    let peek = |one: &&&Entry| one.kind == "exposure" && holdout::copied(one).is_none();
    let peeked = entries.iter().filter(peek).any(|one| ledger.precedes(one.leaf, entry));
    let later = descendants(&entries, entry);
    let earlier = |tried: &Tried| tried.heads.iter().all(|head| !later.contains(head));
    let ended = |member: &MemberEvidence| {
        member.attempts.iter().any(|tried| tried.outcome.is_final() && earlier(tried))
    };
    // What rests on the wrong attempts is bound to nothing now; it counts as having been there.
    let complete = evidence.members().all(|member| downstream.contains(&member.member) || ended(member));
    evidence.hides() && !peeked && !complete
}

/// Everything that reads, directly or not, what these members make.
fn downstream(evidence: &Evidence<'_>, wrong: &BTreeSet<Member>) -> BTreeSet<Member> {
    let Ok(order) = crate::evidence::topological(evidence.plan) else { return BTreeSet::new() };
    let mut marked = wrong.clone();
    for stage in order {
        for MemberEvidence { member, .. } in &evidence.stages[stage] {
            let cell = expand::cell(evidence.plan, *member);
            let inputs = evidence.plan.stages[stage].producers();
            let mut producers =
                inputs.flat_map(|(_, input, _)| expand::producers(&cell, &input.from).unwrap_or_default());
            if producers.any(|producer| marked.contains(&producer)) {
                marked.insert(*member);
            }
        }
    }
    marked.difference(wrong).copied().collect()
}

/// One deviation for each withdrawn reading of a claim of the plan.
pub fn retractions(plan: &Plan, ledger: &Ledger) -> Vec<Deviation> {
    let known = ledger.retracted().into_iter().filter(|retracted| plan.claim(&retracted.claim).is_some());
    let deviation = |retracted: avow_model::ledger::invalid::Retracted| {
        let downstream = resting(plan, &retracted.claim);
        let when = if ledger.in_force().0.is_some() { When::After } else { When::Unregistered };
        let what = What::Retracted { claim: retracted.claim, downstream };
        let mut deviation = Deviation::new(Class::Retraction, when, what);
        deviation.reason = Some(retracted.reason).filter(|reason| !reason.trim().is_empty());
        deviation.entry = Some(retracted.entry);
        deviation
    };
    known.map(deviation).collect()
}

/// The claims that require a claim or follow it, however far.
fn resting(plan: &Plan, claim: &str) -> Vec<String> {
    let mut marked = BTreeSet::from([claim.to_owned()]);
    loop {
        let before = marked.len();
        for other in &plan.claims {
            let required = other.requires.iter().chain(&other.after).any(|name| marked.contains(name));
            if required {
                marked.insert(other.name.clone());
            }
        }
        if marked.len() == before {
            break;
        }
    }
    marked.remove(claim);
    marked.into_iter().collect()
}
