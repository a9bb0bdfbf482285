//! The whole audit of a plan as one value: evidence gathered, numbers read, claims judged, deviations listed.
//!
//! While a registered plan is incomplete its values stay hidden: the report then has no verdicts, only how far
//! the plan has come. Damage never hides. Absent: the decision of what to show where, which is the tool's; it
//! asks [`crate::evidence::Evidence::hidden`].

use std::collections::BTreeSet;

use avow_model::canonical::Record;
use avow_model::digest::{AttemptDigest, BlobDigest, PlanDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use serde::Serialize;

use crate::deviation::{self, Class, Deviation};
use crate::evidence::{Completeness, Evidence, Fate};
use crate::finding::Finding;
use crate::integrity::{self, RunJournal};
use crate::judge::{self, Verdict};
use crate::measure::{self, Problem, Readings};
use crate::registration::{Registration, Standing, ledger_findings};
use crate::source::{AuditError, Source};

/// What the audit of one plan found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The experiment.
    pub experiment: String,
    /// The plan judged.
    pub plan: PlanDigest,
    /// The registration in force.
    pub registration: Option<Registration>,
    /// Whether the plan judged is the registered one.
    pub standing: Standing,
    /// How far the plan has been carried out.
    pub completeness: Completeness,
    /// Whether values stay hidden, so that there are no verdicts.
    pub hidden: bool,
    /// Verdicts in the plan's order of claims.
    pub verdicts: Vec<Verdict>,
    /// What differs from what was registered; verdicts name positions in this list.
    pub deviations: Vec<Deviation>,
    /// What is damaged.
    pub findings: Vec<Finding>,
    /// Values that are no numbers, in files that were read.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Whether evidence is damaged.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(Finding::is_damage)
    }
}

/// Audits a plan. `ledger` is the experiment's, empty where it has none; `journals` are all that the project has,
/// or nothing where they are not to be compared with ledger and attempts.
pub fn audit(
    plan: &Plan,
    source: Source<'_>,
    ledger: &Ledger,
    journals: Option<&[RunJournal]>,
) -> Result<Report, AuditError> {
    audit_with(plan, source, ledger, journals, false)
}

/// The same, with verdicts although a registered plan is incomplete. Whoever calls this has recorded that
/// values are about to be seen.
pub fn peek(
    plan: &Plan,
    source: Source<'_>,
    ledger: &Ledger,
    journals: Option<&[RunJournal]>,
) -> Result<Report, AuditError> {
    audit_with(plan, source, ledger, journals, true)
}

fn audit_with(
    plan: &Plan,
    source: Source<'_>,
    ledger: &Ledger,
    journals: Option<&[RunJournal]>,
    peek: bool,
) -> Result<Report, AuditError> {
    let evidence = Evidence::gather(plan, source, ledger)?;
    let mut findings = evidence.findings.clone();
    match journals {
        Some(journals) => findings.extend(integrity::check(&evidence, ledger, journals)),
        None => findings.extend(ledger_findings(ledger)),
    }
    let registered = registered_plan(&evidence, source, &mut findings)?;
    let mut deviations = deviation::deviations(&evidence, registered.as_ref());
    deviations.extend(deviation::exposures(ledger));
    let hiding = hiding(&evidence, registered.as_ref(), source, ledger)?;
    let hidden = hiding.is_some() && !peek;
    let readings = if hidden { Readings::default() } else { selected(&evidence, source)? };
    let mut verdicts = if hidden { Vec::new() } else { judge::judge(&evidence, &readings) };
    attach(plan, &mut verdicts, &deviations);
    findings.extend(readings.findings);
    findings.sort();
    findings.dedup();
    Ok(Report {
        experiment: plan.experiment.clone(),
        plan: evidence.digest,
        standing: evidence.standing(),
        completeness: hiding.unwrap_or_else(|| evidence.completeness()),
        registration: evidence.registration,
        hidden,
        verdicts,
        deviations,
        findings,
        problems: readings.problems,
    })
}

/// How far the registered plan has come, where it is incomplete and values stay hidden for that. A spec that
/// was changed after its registration opens nothing that was made under it; what is its own is shown.
pub fn hidden(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    ledger: &Ledger,
) -> Result<Option<Completeness>, AuditError> {
    let registered = registered_plan(evidence, source, &mut Vec::new())?;
    hiding(evidence, registered.as_ref(), source, ledger)
}

/// The other experiments whose registered plan is incomplete while attempts that its claims read stand here too,
/// with how far each has come: a copy of a spec under another name opens nothing either. What is merely shared
/// on the way, such as trained models, hides nothing.
pub fn hidden_elsewhere(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    others: &[Ledger],
) -> Result<Vec<(String, Completeness)>, AuditError> {
    let mut hiding = Vec::new();
    let here: BTreeSet<AttemptDigest> = evidence
        .members()
        .filter_map(
            |member| if let Fate::Stands(stands) = &member.fate { Some(stands.attempt) } else { None },
        )
        .collect();
    for ledger in others {
        let Some(registration) = Registration::latest(ledger).0 else { continue };
        let Ok(plan) = source.record::<Plan>(BlobDigest::from(registration.plan), "registered plan")? else {
            continue;
        };
        let there = Evidence::gather(&plan, source, ledger)?;
        let completeness = there.completeness();
        let read = read_by_claims(&there);
        let shared =
            made_under_registration(&there).intersection(&here).any(|attempt| read.contains(attempt));
        if !completeness.is_complete() && shared {
            hiding.push((plan.experiment.clone(), completeness));
        }
    }
    Ok(hiding)
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
    of_selected
        .filter_map(
            |member| if let Fate::Stands(stands) = &member.fate { Some(stands.attempt) } else { None },
        )
        .collect()
}

fn hiding(
    evidence: &Evidence<'_>,
    registered: Option<&Plan>,
    source: Source<'_>,
    ledger: &Ledger,
) -> Result<Option<Completeness>, AuditError> {
    let completeness = match registered {
        Some(plan) => {
            let other = Evidence::gather(plan, source, ledger)?;
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

/// The attempts that stand and were started under the registration.
fn made_under_registration(evidence: &Evidence<'_>) -> BTreeSet<AttemptDigest> {
    let standing = evidence.members().filter_map(|member| match &member.fate {
        Fate::Stands(stands) if stands.covered => Some(stands.attempt),
        _ => None,
    });
    standing.collect()
}

/// The registered plan, where it is another than the one judged.
fn registered_plan(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Option<Plan>, AuditError> {
    let Some(registration) = evidence.registration.as_ref().filter(|r| r.plan != evidence.digest) else {
        return Ok(None);
    };
    match source.record::<Plan>(BlobDigest::from(registration.plan), "registered plan")? {
        Ok(plan) => Ok(Some(plan).filter(|plan| plan.digest() == registration.plan)),
        Err(Finding::MissingBlob { .. }) => {
            findings.push(Finding::MissingPlan { plan: registration.plan });
            Ok(None)
        }
        Err(finding) => {
            findings.push(finding);
            Ok(None)
        }
    }
}

/// The measurements of every stage that a claim selects from.
pub fn selected(evidence: &Evidence<'_>, source: Source<'_>) -> Result<Readings, AuditError> {
    let plan = evidence.plan;
    let mut all = Readings::default();
    for (index, stage) in plan.stages.iter().enumerate() {
        let wanted =
            plan.claims.iter().flat_map(|c| deviation::parts(&c.test)).any(|p| p.select.stage == stage.name);
        if wanted {
            all.append(measure::read_stage(evidence, source, index)?);
        }
    }
    Ok(all)
}

fn attach(plan: &Plan, verdicts: &mut [Verdict], deviations: &[Deviation]) {
    for verdict in verdicts {
        let Some(claim) = plan.claim(&verdict.claim) else { continue };
        let concerning = deviations.iter().enumerate().filter(|(_, d)| d.concerns(plan, claim));
        verdict.deviations = concerning.map(|(index, _)| index).collect();
        // What was made before its registration cannot confirm anything.
        let older = |index: &usize| deviations[*index].class == Class::OlderThanRegistration;
        if verdict.deviations.iter().any(older) {
            verdict.standing = Standing::Exploratory;
        }
    }
}
