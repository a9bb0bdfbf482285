//! Which registered plans are incomplete, so that what was made under them stays hidden.
//!
//! A spec that was changed after its registration opens nothing that was made under it, and neither does a copy
//! under another name; what is its own is shown. What is merely shared on the way, such as trained models, hides
//! nothing. Absent: what is shown instead, and the record of those who look all the same, which are the tool's.

use std::collections::BTreeSet;

use avow_model::digest::{AttemptDigest, BlobDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;

use crate::deviation;
use crate::evidence::{Completeness, Evidence, Fate, MemberEvidence};
use crate::registration::Registration;
use crate::search;
use crate::source::{AuditError, Source};

/// A registered plan for whose completion values wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hiding {
    /// Its experiment.
    pub experiment: String,
    /// How far it has come.
    pub completeness: Completeness,
    /// Whether it is the experiment that was asked about.
    pub own: bool,
}

/// How far the registered plan of the experiment has come, where it is incomplete and something of it stands here.
/// `registered` is that plan where it is another than the one judged.
pub(crate) fn own(
    evidence: &Evidence<'_>,
    registered: Option<&Plan>,
    source: Source<'_>,
    ledger: &Ledger,
) -> Result<Option<Completeness>, AuditError> {
    let completeness = match registered {
        Some(plan) => {
            let plan = search::follow(plan, source, ledger)?.plan;
            let other = Evidence::gather(&plan, source, ledger)?;
            if made_under_registration(evidence).is_disjoint(&made_under_registration(&other)) {
                return Ok(None);
            }
            other.completeness()
        }
        None if evidence.hidden() => evidence.completeness(),
        None => return Ok(None),
    };
    Ok(Some(completeness).filter(|c| !c.is_complete()))
}

/// The other experiments whose registered plan is incomplete while attempts that its claims read stand here too.
pub(crate) fn elsewhere(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    others: &[Ledger],
) -> Result<Vec<Hiding>, AuditError> {
    let mut hiding = Vec::new();
    let mut here: Option<BTreeSet<AttemptDigest>> = None;
    for ledger in others {
        let Some(registration) = Registration::latest(ledger).0 else { continue };
        let Ok(plan) = source.record::<Plan>(BlobDigest::from(registration.plan), "registered plan")? else {
            continue;
        };
        let here = here.get_or_insert_with(|| standing(evidence.members()).collect());
        let plan = search::follow(&plan, source, ledger)?.plan;
        let there = Evidence::gather(&plan, source, ledger)?;
        let completeness = there.completeness();
        let read = read_by_claims(&there);
        let shared = made_under_registration(&there).intersection(here).any(|attempt| read.contains(attempt));
        if !completeness.is_complete() && shared {
            hiding.push(Hiding { experiment: plan.experiment.clone(), completeness, own: false });
        }
    }
    Ok(hiding)
}

fn standing<'e>(members: impl Iterator<Item = &'e MemberEvidence>) -> impl Iterator<Item = AttemptDigest> {
    members.filter_map(|member| match &member.fate {
        Fate::Stands(stands) => Some(stands.attempt),
        _ => None,
    })
}

/// The attempts that stand for members of stages that claims select from.
fn read_by_claims(evidence: &Evidence<'_>) -> BTreeSet<AttemptDigest> {
    let plan = evidence.plan;
    let selected: BTreeSet<&str> = plan
        .claims
        .iter()
        .flat_map(|claim| deviation::parts(&claim.test))
        .map(|part| part.select.stage.as_str())
        .collect();
    let of_selected = evidence
        .members()
        .filter(|member| selected.contains(plan.stages[member.member.stage as usize].name.as_str()));
    standing(of_selected).collect()
}

/// The attempts that stand and were started under the registration.
fn made_under_registration(evidence: &Evidence<'_>) -> BTreeSet<AttemptDigest> {
    let standing = evidence.members().filter_map(|member| match &member.fate {
        Fate::Stands(stands) if stands.covered => Some(stands.attempt),
        _ => None,
    });
    standing.collect()
}
