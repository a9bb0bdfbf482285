//! `avow verdict`, and the verdicts at the end of a run.

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::beside::{Beside, beside};
use avow_audit::heads::Cited;
use avow_audit::judge::{Reason, Verdict};
use avow_audit::measure::Problem;
use avow_audit::{Audit, Evidence, Finding, Hiding, Report, Standing, Word, holdout};
use avow_engine::{record_copy, record_exposure};
use avow_model::digest::Artifact;
use avow_model::plan::Plan;

use crate::args::{self, VerdictForm};
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses;
use crate::words;

/// Judges the claims of a spec.
pub fn verdict(args: &args::Verdict, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    if let Some(claim) = &args.explain
        && plan.claim(claim).is_none()
    {
        let names: Vec<&str> = plan.claims.iter().map(|c| c.name.as_str()).collect();
        return Err(Failure::new(Exit::Usage, format!("no claim is called `{claim}`"))
            .hint(format!("the claims are {}", names.join(", "))));
    }
    let report = report(&spec, plan, args.peek)?;
    let exit = damage(&report, output);
    if args.json || args.format == VerdictForm::Json {
        output.json(&report)?;
    } else if report.hidden {
        hidden(&report, output)?;
    } else if args.format == VerdictForm::Markdown {
        output.data(words::forms::markdown(&report).trim_end())?;
    } else if args.format == VerdictForm::Latex {
        output.data(words::forms::latex(&report).trim_end())?;
    } else if let Some(claim) = &args.explain {
        let text = words::verdict::explained(plan, &report, claim).unwrap_or_default();
        output.data(text.trim_end())?;
    } else {
        output.data(words::verdict::lines(plan, &report, output).trim_end())?;
    }
    Ok(if args.check { exit.worse(checked(&report)) } else { exit })
}

/// The report of a run.
#[derive(serde::Serialize)]
struct WithVerification<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<serde_json::Value>,
}

/// The verdicts at the end of a run.
/// `verified` is what carrying some of it out again gave, where that was done; it stands beside them in JSON.
pub fn after_run(
    spec: &Spec,
    plan: &Plan,
    peek: bool,
    json: bool,
    verified: Option<serde_json::Value>,
    output: &Output,
) -> Result<Exit, Failure> {
    let nothing_to_judge = plan.claims.is_empty() && !json;
    if nothing_to_judge {
        say_no_claims(output);
        if !goes_on_without_claims(spec)? && !crate::search::any(plan) {
            return Ok(Exit::Done);
        }
    }
    let report = report(spec, plan, peek)?;
    let exit = damage(&report, output);
    if json {
        output.json(&WithVerification { report: &report, verification: verified })?;
    } else if nothing_to_judge && !report.hidden && crate::search::any(plan) {
        output.data(crate::search::lines(plan).trim_end())?;
    } else if report.hidden && !nothing_to_judge {
        hidden(&report, output)?;
    } else if !nothing_to_judge {
        output.data(words::verdict::lines(plan, &report, output).trim_end())?;
    }
    crate::results::keep(spec, plan, &report)?;
    Ok(if unreadable(&report) { exit.worse(Exit::StageFailed) } else { exit })
}

/// Whether a stage wrote what is no measurement file although it says so, or a claim has no number for that reason.
fn unreadable(report: &Report) -> bool {
    let whole = |problem: &Problem| problem.name.is_none();
    let voided = |verdict: &Verdict| verdict.reason == Some(Reason::Unreadable);
    report.problems.iter().any(whole) || report.verdicts.iter().any(voided)
}

/// Says that there is nothing to judge.
pub fn say_no_claims(output: &Output) {
    output.say("the spec makes no claims; `avow table` prints the measurements");
}

/// Whether everything that exists is gone through although there is nothing to judge: for the copy that the project
/// asks for.
pub fn goes_on_without_claims(spec: &Spec) -> Result<bool, Failure> {
    crate::results::wanted(spec)
}

/// Audits a plan. Peeking at an incomplete registered plan is recorded before anything is shown.
pub fn report(spec: &Spec, plan: &Plan, peek: bool) -> Result<Report, Failure> {
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    match waiting(spec, &reading, &audit, peek, ("verdict", "verdicts"))? {
        // The report of a hidden plan says how far it has come, and what is damaged.
        Some(hiding) if !hiding.own => return Err(still_hidden(&hiding)),
        _ => {}
    }
    let mut report = audit.report(Some(&reading.journals()?), peek).map_err(failure::audit)?;
    if let Some(counts) = &mut report.denominators {
        counts.unopened_elsewhere = reading.others()?.iter().map(|other| other.unopened().len() as u64).sum();
    }
    report.foreign = foreign(spec, plan)?;
    if report.registration.is_none() {
        return Ok(report);
    }
    let (trust, mut cited) =
        (witnesses::trust(&spec.project, &Settings::of(&spec.project)?, None)?, Cited::default());
    let proofs = witnesses::checked(&spec.project, &plan.experiment, &reading.ledger, &trust, &mut cited)?;
    Ok(report.witnessed(&reading.ledger, proofs, &cited))
}

/// The evidence of others that is shown beside an experiment.
pub fn foreign(spec: &Spec, plan: &Plan) -> Result<Vec<Beside>, Failure> {
    let imported = avow_store::foreign::list(&spec.project).map_err(failure::store)?;
    Ok(beside(&imported, &plan.experiment))
}

fn hidden(report: &Report, output: &Output) -> Result<(), Failure> {
    let done = report.completeness.done;
    output.data(format!(
        "{}: {done} of {} members are done; values stay hidden until the registered plan is complete",
        report.experiment,
        done + report.completeness.open,
    ))?;
    output.say("go on with `avow run`; `--peek` shows values now and records that they were seen");
    Ok(())
}

/// Prints damage; its exit code wins over all others.
pub fn damage(report: &Report, output: &Output) -> Exit {
    damage_of(&report.findings, &report.problems, output)
}

/// The same for parts of a report.
pub fn damage_of(findings: &[Finding], problems: &[Problem], output: &Output) -> Exit {
    /// So many findings of one kind are told one by one.
    const TOLD: usize = 5;
    let damage: Vec<&Finding> = findings.iter().filter(|f| f.is_damage()).collect();
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &damage {
        let count = told.entry(finding.word()).or_default();
        *count += 1;
        if *count <= TOLD {
            output.always(format!("{} {}", output.coloured("damaged:", 31), words::finding::words(finding)));
        }
    }
    for (word, count) in told.iter().filter(|(_, count)| **count > TOLD) {
        output.always(format!("{} … and {} more of `{word}`", output.coloured("damaged:", 31), count - TOLD));
    }
    for problem in problems.iter().take(TOLD) {
        output.always(format!("{} {}", output.coloured("unreadable:", 33), words::finding::problem(problem)));
    }
    if problems.len() > TOLD {
        output.always(format!("{} … and {} more", output.coloured("unreadable:", 33), problems.len() - TOLD));
    }
    if let Some(problem) = problems.first() {
        let hint = words::finding::mending(problem);
        output.say(format!("{} {hint}", output.coloured("hint:", 36)));
    }
    if damage.is_empty() {
        return Exit::Done;
    }
    let hint = match damage[0] {
        Finding::DamagedBlob { .. } | Finding::MissingBlob { .. } => {
            "`avow run` makes again what can be made; `avow store check` names every damaged file"
        }
        Finding::LedgerLine { .. } | Finding::MissingHead { .. } | Finding::BadRegistration { .. } => {
            "restore the ledger from version control; what was recorded after it is then found again"
        }
        Finding::JournalLine { .. } | Finding::Unjournalled { .. } | Finding::JournalCut { .. } => {
            "restore the journal from a copy; without one, `avow store rebuild` goes on with what is intact"
        }
        _ => "`avow store check` names every damaged file",
    };
    output.say(format!("{} {hint}", output.coloured("hint:", 36)));
    Exit::Damaged
}

/// Refuses to show values while a registered plan is not complete; with `--peek` records that they were seen.
pub fn guard(
    spec: &Spec,
    reading: &Reading,
    audit: &Audit<'_>,
    peek: bool,
    what: (&str, &str),
) -> Result<(), Failure> {
    waiting(spec, reading, audit, peek, what)?.map_or(Ok(()), |hiding| Err(still_hidden(&hiding)))
}

/// The first registered plan for which values stay hidden. With `--peek` none does, and for each of them it is
/// recorded that values were seen.
fn waiting(
    spec: &Spec,
    reading: &Reading,
    audit: &Audit<'_>,
    peek: bool,
    (by, what): (&str, &str),
) -> Result<Option<Hiding>, Failure> {
    for hiding in audit.hiding(&reading.others()?).map_err(failure::audit)? {
        if !peek {
            return Ok(Some(hiding));
        }
        record_exposure(&spec.project, &hiding.experiment, by, what).map_err(failure::engine)?;
    }
    Ok(None)
}

/// Records that a command is about to copy these artifacts out of the store, where they are sealed.
pub fn note_sealed(
    spec: &Spec,
    evidence: &Evidence<'_>,
    by: &str,
    artifacts: &[Artifact],
) -> Result<(), Failure> {
    let contents = holdout::contents(evidence);
    let sealed = artifacts.iter().filter_map(|artifact| contents.get(&artifact.blob())).flatten();
    let complete = evidence.standing() == Standing::Confirmatory && evidence.completeness().is_complete();
    for output in sealed.collect::<BTreeSet<_>>() {
        record_copy(&spec.project, &evidence.plan.experiment, by, output, complete)
            .map_err(failure::engine)?;
    }
    Ok(())
}

fn still_hidden(Hiding { experiment, completeness, .. }: &Hiding) -> Failure {
    Failure::new(
        Exit::Undecided,
        format!(
            "values stay hidden until the registered plan of `{experiment}` is complete; {} of {} members are done",
            completeness.done,
            completeness.done + completeness.open
        ),
    )
    .hint("go on with `avow run`; `--peek` shows values now and records that they were seen")
}

/// The exit code that a report has under `--check`.
pub fn checked(report: &Report) -> Exit {
    if report.hidden || !report.completeness.is_complete() {
        return Exit::Undecided;
    }
    let mut exit = Exit::Done;
    if report.deviations.iter().any(avow_audit::Deviation::is_unexplained) {
        exit = exit.worse(Exit::Deviation);
    }
    for word in report.verdicts.iter().filter_map(|verdict| verdict.word) {
        exit = exit.worse(match word {
            Word::Supported => Exit::Done,
            Word::Refuted | Word::Reversed => Exit::Refuted,
            Word::Inconclusive | Word::Void => Exit::Undecided,
        });
    }
    exit
}
