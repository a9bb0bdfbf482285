//! The whole audit of a plan as one value: evidence gathered, numbers read, claims judged, deviations listed.
//!
//! While a registered plan is incomplete its values stay hidden: the report then has no verdicts, only how far
//! the plan has come. Damage never hides. Absent: the decision of what to show where, which is the tool's; it
//! asks [`Audit::hiding`].

use std::collections::BTreeSet;

use avow_model::digest::PlanDigest;
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use serde::Serialize;

use crate::amended;
use crate::beside::Beside;
use crate::denominators::{self, Denominators};
use crate::deviation::{self, Class, Deviation, What};
use crate::evidence::{Completeness, Evidence};
use crate::finding::Finding;
use crate::heads::Cited;
use crate::hiding::{self, Hiding};
use crate::holdout::{self, Sealed};
use crate::integrity::{self, RunJournal};
use crate::judge::{self, Verdict};
use crate::measure::{self, Problem, Readings};
use crate::noise;
use crate::planned;
use crate::registration::{Registration, Standing, ledger_findings};
use crate::search::{self, Searched};
use crate::source::{AuditError, Source};
use crate::withdrawn;
use crate::witness::{self, Checked, Witness};

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
    /// What trusted witnesses outside say about the registration; nothing until [`Report::witnessed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// Every signature and stamp beside the ledger, as checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Checked>,
    /// How far the plan has been carried out.
    pub completeness: Completeness,
    /// Whether values stay hidden, so that there are no verdicts.
    pub hidden: bool,
    /// How far the searches of the plan have come; nothing while values stay hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<Searched>,
    /// Verdicts in the plan's order of claims.
    pub verdicts: Vec<Verdict>,
    /// What the verdicts are out of, where journals were there to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denominators: Option<Denominators>,
    /// Sealed outputs, with who read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<Sealed>,
    /// Sealed files and training files whose rows could not be compared, with why.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub uncompared: BTreeSet<String>,
    /// What differs from what was registered; verdicts name positions in this list.
    pub deviations: Vec<Deviation>,
    /// What is damaged.
    pub findings: Vec<Finding>,
    /// Values that are no numbers, in files that were read.
    pub problems: Vec<Problem>,
    /// Evidence of others that is shown beside all this and counted in none of it; nothing until it is put there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<Beside>,
}

impl Report {
    /// The same report with what witnesses say; heads that they speak about and the ledger lacks are findings.
    #[must_use]
    pub fn witnessed(mut self, ledger: &Ledger, proofs: Vec<Checked>, cited: &Cited) -> Report {
        self.witness = self.registration.as_ref().and_then(|r| witness::of(ledger, r.leaf, &proofs));
        self.proofs = proofs;
        self.findings.extend(cited.missing(ledger));
        self.findings.sort();
        self.findings.dedup();
        self
    }

    /// Whether evidence is damaged.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(Finding::is_damage)
    }
}

/// What exists for a plan, gathered once: who may see it is asked before what it says.
#[derive(Debug)]
pub struct Audit<'a> {
    evidence: Evidence<'a>,
    source: Source<'a>,
    ledger: &'a Ledger,
    /// The registered plan, where it is another.
    registered: Option<Plan>,
    /// How far the registered plan has come, where values stay hidden for it.
    hiding: Option<Completeness>,
    findings: Vec<Finding>,
}

impl<'a> Audit<'a> {
    /// Gathers everything for a plan; `ledger` is the experiment's, empty where it has none.
    pub fn gather(plan: &'a Plan, source: Source<'a>, ledger: &'a Ledger) -> Result<Audit<'a>, AuditError> {
        let evidence = Evidence::gather(plan, source, ledger)?;
        let mut findings = Vec::new();
        let registered = registered_plan(&evidence, source, &mut findings)?;
        let hiding = hiding::own(&evidence, registered.as_ref(), source, ledger)?;
        Ok(Audit { evidence, source, ledger, registered, hiding, findings })
    }

    /// What was gathered.
    pub fn evidence(&self) -> &Evidence<'a> {
        &self.evidence
    }

    /// Everything for whose completion values stay hidden: the experiment's own registered plan first, then those
    /// of the project's other experiments, whose ledgers are `others`.
    pub fn hiding(&self, others: &[Ledger]) -> Result<Vec<Hiding>, AuditError> {
        let experiment = self.evidence.plan.experiment.clone();
        let own = self.hiding.clone().map(|completeness| Hiding { experiment, completeness, own: true });
        let elsewhere = hiding::elsewhere(&self.evidence, self.source, others)?;
        Ok(own.into_iter().chain(elsewhere).collect())
    }

    /// The registered plan, where it is another than the one judged and its record is there.
    pub fn registered_plan(&self) -> Option<&Plan> {
        self.registered.as_ref()
    }

    /// What differs from what was registered, in the order by which verdicts name it.
    pub fn deviations(&self) -> Result<Vec<Deviation>, AuditError> {
        let about = (&self.evidence, self.registered.as_ref(), self.hiding.is_some());
        let leaked = holdout::leaks(&self.evidence, self.source)?.deviations;
        all_deviations(about, self.source, self.ledger, leaked, &mut Vec::new())
    }

    /// The whole report. `journals` are all that the project has, or nothing where they are not to be compared with
    /// ledger and attempts. With `show` there are verdicts although a registered plan is incomplete; whoever asks
    /// for that has recorded that values are about to be seen.
    pub fn report(self, journals: Option<&[RunJournal]>, show: bool) -> Result<Report, AuditError> {
        let hidden = self.hiding.is_some() && !show;
        let readings = if hidden { Readings::default() } else { selected(&self.evidence, self.source)? };
        self.report_on(journals, show, &readings)
    }

    /// The same, on measurements that were read already: at least those of every stage that a claim selects from.
    pub fn report_on(
        &self,
        journals: Option<&[RunJournal]>,
        show: bool,
        readings: &Readings,
    ) -> Result<Report, AuditError> {
        let Audit { evidence, source, ledger, registered, hiding, findings } = self;
        let (source, ledger, mut findings) = (*source, *ledger, findings.clone());
        let plan = evidence.plan;
        findings.extend(evidence.findings.iter().cloned());
        match journals {
            Some(journals) => findings.extend(integrity::check(evidence, ledger, journals)),
            None => findings.extend(ledger_findings(ledger)),
        }
        let denominators =
            journals.map(|journals| denominators::count(evidence, source, ledger, journals)).transpose()?;
        let sealed =
            journals.map(|journals| holdout::reads(evidence, source, ledger, journals)).transpose()?;
        let leaks = holdout::leaks(evidence, source)?;
        let (registered, hidden) = (registered.as_ref(), hiding.is_some());
        let deviations =
            all_deviations((evidence, registered, hidden), source, ledger, leaks.deviations, &mut findings)?;
        let hidden = hiding.is_some() && !show;
        let mut verdicts = if hidden { Vec::new() } else { judge::judge(evidence, readings) };
        noise::qualify(evidence, source, readings, &mut verdicts)?;
        disputed(evidence, source, &mut verdicts, &mut findings)?;
        attach(plan, &mut verdicts, &deviations);
        findings.extend(readings.findings.iter().cloned());
        findings.sort();
        findings.dedup();
        Ok(Report {
            experiment: plan.experiment.clone(),
            plan: evidence.digest,
            standing: evidence.standing(),
            witness: None,
            proofs: Vec::new(),
            completeness: hiding.clone().unwrap_or_else(|| evidence.completeness()),
            registration: evidence.registration.clone(),
            hidden,
            searches: if hidden { Vec::new() } else { search::standing(plan) },
            verdicts,
            denominators,
            sealed: sealed.unwrap_or_default(),
            uncompared: leaks.uncompared,
            deviations,
            findings,
            problems: readings.problems.clone(),
            foreign: Vec::new(),
        })
    }
}

/// Every deviation, in its order, with the reasons that later lines of the ledger state.
fn all_deviations(
    (evidence, registered, hidden): (&Evidence<'_>, Option<&Plan>, bool),
    source: Source<'_>,
    ledger: &Ledger,
    leaked: Vec<Deviation>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Deviation>, AuditError> {
    let exposures = deviation::exposures(ledger);
    let unread = hidden && exposures.is_none();
    let mut deviations = amended::amendments(evidence, ledger, source, findings)?;
    deviations.extend(deviation::deviations(evidence, registered, ledger, unread));
    deviations.extend(exposures);
    deviations.extend(holdout::exposures(evidence, ledger));
    deviations.extend(leaked);
    deviations.extend(withdrawn::invalidations(evidence, ledger));
    deviations.extend(withdrawn::retractions(evidence.plan, ledger));
    amended::absolve(&mut deviations, evidence, ledger);
    amended::explain(&mut deviations, ledger);
    Ok(deviations)
}

/// Audits a plan, hiding what is to be hidden. `ledger` is the experiment's, empty where it has none; `journals` are
/// all that the project has, or nothing where they are not to be compared with ledger and attempts.
pub fn audit(
    plan: &Plan,
    source: Source<'_>,
    ledger: &Ledger,
    journals: Option<&[RunJournal]>,
) -> Result<Report, AuditError> {
    Audit::gather(plan, source, ledger)?.report(journals, false)
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
    match amended::plan(registration.plan, source)? {
        Ok(plan) => Ok(Some(plan)),
        Err(Finding::MissingBlob { .. }) => {
            // Of two sides of a fork one may have been registered in another clone, whose store is not here.
            if registration.rivals.is_empty() {
                findings.push(Finding::MissingPlan { plan: registration.plan });
            }
            Ok(None)
        }
        Err(finding) => {
            findings.push(finding);
            Ok(None)
        }
    }
}

/// Claims about which registrations on two sides of a fork disagree are void until one of them is adopted.
fn disputed(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    verdicts: &mut [Verdict],
    findings: &mut Vec<Finding>,
) -> Result<(), AuditError> {
    let Some(registration) = &evidence.registration else { return Ok(()) };
    if registration.rivals.is_empty() {
        return Ok(());
    }
    let sides = registration.history.last().into_iter().chain(&registration.rivals);
    for rival in sides.filter(|side| !evidence.plan.is_named(side.plan)) {
        let other = match amended::plan(rival.plan, source)? {
            Ok(plan) => plan,
            // It was registered in another clone: nobody here can say about which claims it disagrees.
            Err(Finding::MissingBlob { .. }) => {
                verdicts.iter_mut().for_each(|verdict| verdict.dispute(rival.leaf));
                continue;
            }
            Err(damage) => {
                findings.push(damage);
                continue;
            }
        };
        let mut changes = planned::changes(evidence.plan, &other);
        changes.retain(|change| planned::class(change) != Class::Clarification);
        for verdict in verdicts.iter_mut() {
            let Some(claim) = evidence.plan.claim(&verdict.claim) else { continue };
            let stages = deviation::rests_on(evidence.plan, claim);
            if changes.iter().any(|change| planned::concerns(change, &claim.name, &stages)) {
                verdict.dispute(rival.leaf);
            }
        }
    }
    Ok(())
}

/// The measurements of every stage that a claim selects from.
pub fn selected(evidence: &Evidence<'_>, source: Source<'_>) -> Result<Readings, AuditError> {
    let plan = evidence.plan;
    let mut all = Readings::default();
    for (index, stage) in plan.stages.iter().enumerate() {
        let wanted = plan
            .claims
            .iter()
            .flat_map(|c| deviation::parts(&c.test))
            .any(|part| part.selections().any(|selection| selection.stage == stage.name));
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
        let diverged = verdict.deviations.iter().filter_map(|index| match &deviations[*index].what {
            What::Outputs { member, .. } => Some(member.clone()),
            _ => None,
        });
        verdict.diverged = diverged.collect();
        verdict.diverged.dedup();
        // What was made before its registration cannot confirm anything.
        let older = |index: &usize| deviations[*index].class == Class::OlderThanRegistration;
        if verdict.deviations.iter().any(older) {
            verdict.standing = Standing::Exploratory;
        }
    }
}
