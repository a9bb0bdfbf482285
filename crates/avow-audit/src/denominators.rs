//! What a verdict is out of: how many cells, attempts, failures, abandoned runs and variants there are.
//!
//! Every attempt counts, also one that nobody cites, before the registration and after it. A *variant* is another plan
//! that some run of this store carried out, that measures a name which this one's claims select, on the same data: a
//! second try under another name or threshold. What was done in another store leaves no trace here.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::canonical::Record;
use avow_model::claim::{Claim, Selected};
use avow_model::digest::{BlobDigest, PlanDigest};
use avow_model::expand;
use avow_model::journal::{Closing, Event};
use avow_model::ledger::Ledger;
use avow_model::plan::{Plan, Source as From};
use serde::Serialize;

use crate::deviation;
use crate::evidence::Evidence;
use crate::integrity::RunJournal;
use crate::source::{AuditError, Source};

/// The counts behind every verdict of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Denominators {
    /// Members that claims rest on.
    pub members: u64,
    /// Attempts at them before the registration; all of them, where nothing is registered.
    pub before: Attempts,
    /// Attempts at them under it.
    pub after: Attempts,
    /// Runs of the experiment that ended without carrying their plan out.
    pub abandoned: u64,
    /// Other plans that measured the same name on the same data.
    pub variants: Vec<Variant>,
    /// Commitments of this chain that nobody has opened: whoever makes several may show the lucky one.
    #[serde(skip_serializing_if = "is_zero")]
    pub unopened: u64,
    /// The same in the project's other chains; told by who has read them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unopened_elsewhere: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Attempts, by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attempts {
    /// All.
    pub all: u64,
    /// Those whose own program failed.
    pub failed: u64,
    /// Those that were cancelled or lost.
    pub unfinished: u64,
}

/// Another plan over the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Variant {
    /// Its experiment.
    pub experiment: String,
    /// The plan.
    pub plan: PlanDigest,
    /// The names of measurements that both select.
    pub measured: BTreeSet<String>,
    /// How many members it has.
    pub members: u64,
}

/// Counts what exists for a plan.
pub fn count(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    ledger: &Ledger,
    journals: &[RunJournal],
) -> Result<Denominators, AuditError> {
    let plan = evidence.plan;
    let rests: BTreeSet<&str> =
        plan.claims.iter().flat_map(|claim| deviation::rests_on(plan, claim)).collect();
    let mut out = Denominators::default();
    let registered = evidence.registration.is_some();
    for member in evidence.members() {
        if !rests.contains(plan.stages[member.member.stage as usize].name.as_str()) {
            continue;
        }
        out.members += 1;
        for tried in member.attempts.iter().filter(|tried| !tried.verification) {
            let side = if registered && tried.covered { &mut out.after } else { &mut out.before };
            side.all += 1;
            if tried.outcome.succeeded() {
                continue;
            }
            let own = tried.outcome.is_final();
            side.failed += u64::from(own);
            side.unfinished += u64::from(!own);
        }
    }
    out.abandoned = abandoned(&plan.experiment, journals);
    out.variants = variants(evidence, source, journals)?;
    out.unopened = ledger.unopened().len() as u64;
    Ok(out)
}

/// Runs that were interrupted, or that a later command found dead.
fn abandoned(experiment: &str, journals: &[RunJournal]) -> u64 {
    let own = journals.iter().filter(|run| match run.journal.lines.first().map(|line| &line.event) {
        Some(Event::Opened(opened)) => opened.experiment == experiment,
        _ => false,
    });
    let left = own.filter(|run| {
        let closed = run.journal.lines.iter().rev().find_map(|line| match &line.event {
            Event::Closed { how } => Some(how),
            _ => None,
        });
        matches!(closed, Some(Closing::Interrupted | Closing::Abandoned))
    });
    left.count() as u64
}

/// The plans of other runs that measured the same on the same.
fn variants(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    journals: &[RunJournal],
) -> Result<Vec<Variant>, AuditError> {
    let mut own: BTreeSet<PlanDigest> = evidence.plan.earlier().into_iter().collect();
    own.insert(evidence.digest);
    let registration = evidence.registration.iter();
    own.extend(registration.flat_map(|r| r.history.iter().map(|registered| registered.plan).chain([r.plan])));
    own.insert(evidence.plan.digest());
    let mut others: BTreeMap<PlanDigest, ()> = BTreeMap::new();
    for run in journals {
        if let Some(Event::Opened(opened)) = run.journal.lines.first().map(|line| &line.event)
            && !own.contains(&opened.plan)
        {
            others.insert(opened.plan, ());
        }
    }
    let (names, data) = (selected(evidence.plan), outside(evidence.plan));
    let mut found = Vec::new();
    for digest in others.into_keys() {
        // A plan whose record is gone says nothing; the check of the store names it.
        let Ok(plan) = source.record::<Plan>(BlobDigest::from(digest), "a variant's plan")? else { continue };
        let measured: BTreeSet<String> = selected(&plan).intersection(&names).cloned().collect();
        let theirs = outside(&plan);
        let same_data = if data.is_empty() { theirs.is_empty() } else { !theirs.is_disjoint(&data) };
        if !measured.is_empty() && same_data {
            let members =
                (0..plan.stages.len()).map(|stage| expand::members(&plan, stage).count() as u64).sum();
            found.push(Variant { experiment: plan.experiment.clone(), plan: digest, measured, members });
        }
    }
    found.sort();
    Ok(found)
}

/// The names that a plan's claims select.
fn selected(plan: &Plan) -> BTreeSet<String> {
    let of = |claim: &Claim| -> Vec<String> {
        let parts = deviation::parts(&claim.test);
        let selections = parts.iter().flat_map(|part| part.selections());
        selections
            .map(|select| match &select.of {
                Selected::Measurement(name) | Selected::Output(name) => name.clone(),
            })
            .collect()
    };
    plan.claims.iter().flat_map(of).collect()
}

/// What comes from outside, by content.
fn outside(plan: &Plan) -> BTreeSet<BlobDigest> {
    let inputs = plan.stages.iter().flat_map(|stage| stage.inputs.values());
    let contents = inputs.filter_map(|input| match &input.from {
        From::Path { artifact, .. } => Some(artifact.blob()),
        From::Url { digest, .. } => Some(*digest),
        From::Output { .. } | From::Probes { .. } => None,
    });
    contents.collect()
}
