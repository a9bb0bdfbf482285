//! `avow audit` without a manuscript: everything that the project claims, against everything that it has.

use std::path::Path;

use avow_audit::Report;
use avow_audit::judge::Qualifier;
use avow_store::check::{self, Problem};
use avow_store::foreign::{self, Foreign};
use avow_store::{Project, RecordStore};
use serde_json::{Value, json};

use super::macro_files::{self, Stale};
use crate::args::{self, AuditForm};
use crate::commands::import;
use crate::commands::store::{open_index, shown};
use crate::commands::verdict::{checked, damage};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::stocks;
use crate::words;

/// So many stale values of one file are told one by one.
const TOLD: usize = 5;

/// Files that repeat what the evidence gives, and do not.
struct Files {
    /// Copies of verdicts.
    forged: Vec<String>,
    /// Values of macro files.
    stale: Vec<Stale>,
}

impl Files {
    fn are_sound(&self) -> bool {
        self.forged.is_empty() && self.stale.is_empty()
    }
}

/// Audits the specs of this folder and the whole store.
pub(super) fn audit(args: &args::Audit, form: AuditForm, output: &Output) -> Result<Exit, Failure> {
    if form == AuditForm::Sarif {
        return Err(Failure::new(Exit::Usage, "an audit of the project has no places for code hosts")
            .hint("name a manuscript, or give `--format json`"));
    }
    let stocks = stocks::gather(&args.specs, None, output)?;
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Machine, "this folder cannot be found").because(error))?;
    let first =
        args.specs.first().and_then(|spec| spec.parent()).filter(|folder| !folder.as_os_str().is_empty());
    let project = Project::discover(first.unwrap_or(&here)).map_err(failure::store)?;
    let problems = whole_store(&project, output)?;
    let files = Files {
        forged: forged(&project, &stocks.reports)?,
        stale: macro_files::stale(&project, &stocks.stocked)?,
    };
    let foreign = imported(&project)?;
    if form == AuditForm::Json {
        let mut whole = as_json(&project, &stocks.reports, &problems, &files);
        whole["foreign"] =
            foreign.iter().map(|(one, wrong)| json!({"import": one, "problems": wrong})).collect();
        output.json(&whole)?;
    } else {
        text(&project, args, &stocks.reports, &problems, &files, output)?;
        tell_foreign(&foreign, output)?;
    }
    let mut exit = Exit::Done;
    for report in &stocks.reports {
        exit = exit.worse(damage(report, output));
        if args.check {
            exit = exit.worse(checked(report));
            if is_variant(report) {
                exit = exit.worse(Exit::Deviation);
            }
        }
    }
    let wrong = foreign.iter().any(|(_, wrong)| !wrong.is_empty());
    if problems.iter().any(Problem::is_damage) || !files.are_sound() || wrong {
        exit = exit.worse(Exit::Damaged);
    }
    Ok(exit)
}

/// Every import with what is wrong with it now.
fn imported(project: &Project) -> Result<Vec<(Foreign, Vec<String>)>, Failure> {
    let all = foreign::list(project).map_err(failure::store)?;
    all.into_iter().map(|one| import::problems(project, &one).map(|wrong| (one, wrong))).collect()
}

fn tell_foreign(all: &[(Foreign, Vec<String>)], output: &Output) -> Result<(), Failure> {
    for (one, wrong) in all {
        let acts = words::count(one.acts.len() as u64, "act");
        output.data(format!("{}: {acts}, counted as nobody's but theirs", words::foreign::whose(one)))?;
        for problem in wrong {
            output.data(format!("  damaged: {problem}"))?;
        }
    }
    Ok(())
}

/// What `avow store check` finds.
fn whole_store(project: &Project, output: &Output) -> Result<Vec<Problem>, Failure> {
    if !project.check_format().map_err(failure::store)? {
        return Ok(Vec::new());
    }
    let lock = avow_store::RunLock::try_acquire(project);
    let index = match &lock {
        Ok(_) if project.index().is_dir() => open_index(project, output),
        _ => None,
    };
    let records = index.as_ref().map(|index| index as &dyn RecordStore);
    Ok(check::check(project, records, None, &|_| {}).map_err(failure::store)?.problems)
}

/// Copies of verdicts in the results folder that are not what the evidence gives.
fn forged(project: &Project, reports: &[Report]) -> Result<Vec<String>, Failure> {
    let Some(folder) = Settings::of(project)?.results else { return Ok(Vec::new()) };
    let mut forged = Vec::new();
    for report in reports.iter().filter(|report| !report.hidden) {
        let file = Path::new(&folder).join(format!("{}.verdicts.json", report.experiment));
        let Ok(bytes) = std::fs::read(project.root().join(&file)) else { continue };
        let now = serde_json::to_value(report)
            .map_err(|error| Failure::new(Exit::Internal, "the report has no JSON form").because(error))?;
        let said: Option<Value> = serde_json::from_slice(&bytes).ok();
        let same = |part: &str| said.as_ref().and_then(|said| said.get(part)) == now.get(part);
        // What was found damaged since is told by itself.
        let of_plan = said.as_ref().and_then(|said| said.get("plan")) == now.get("plan");
        if said.is_none() || (of_plan && !(same("verdicts") && same("standing"))) {
            forged.push(file.display().to_string());
        }
    }
    Ok(forged)
}

fn text(
    project: &Project,
    args: &args::Audit,
    reports: &[Report],
    problems: &[Problem],
    files: &Files,
    output: &Output,
) -> Result<(), Failure> {
    let all = |report: &Report| args.all || is_variant(report);
    for report in reports {
        output.data(line(report))?;
        if is_variant(report) {
            output.data("  this is not the registered plan but a variant of it")?;
        }
        for deviation in report.deviations.iter().filter(|d| all(report) || d.is_unexplained()) {
            output.data(format!("  {}", words::deviation::words(deviation)))?;
        }
    }
    for verdict in reports.iter().flat_map(|report| &report.verdicts) {
        for qualifier in &verdict.qualifiers {
            if let Qualifier::Noise { sd, effect, below: true, .. } = qualifier {
                let (effect, noise) = (words::number(*effect), words::number(*sd));
                output.data(format!(
                    "  {}: an effect of {effect} below its own noise, {noise}",
                    verdict.claim
                ))?;
            }
        }
    }
    for problem in problems {
        let word = if problem.is_damage() { "damaged:" } else { "problem:" };
        output.data(format!("{word} {}: {problem}", shown(project, problem)))?;
        output.data(format!("  {}", problem.remedy()))?;
    }
    for copy in &files.forged {
        output.data(format!("damaged: {copy}: these verdicts are not what the evidence gives"))?;
        output.data("  `avow run` writes them again from the evidence")?;
    }
    for of_file in files.stale.chunk_by(|a, b| a.file == b.file) {
        for Stale { file, line, key, now } in of_file.iter().take(TOLD) {
            output.data(format!("damaged: {file}:{line}: `{key}` is {now}"))?;
        }
        if of_file.len() > TOLD {
            output.data(format!("  … and {} more in this file", of_file.len() - TOLD))?;
        }
        output.data("  write the macro file again with `avow report --macros FILE --for PAPER`")?;
    }
    if problems.is_empty() && files.are_sound() && reports.iter().all(|report| report.findings.is_empty()) {
        output.data("nothing is damaged")?;
    }
    Ok(())
}

/// Whether another plan of the same experiment is registered.
fn is_variant(report: &Report) -> bool {
    report.registration.as_ref().is_some_and(|registration| registration.plan != report.plan)
}

fn line(report: &Report) -> String {
    let done = report.completeness.done;
    let members = done + report.completeness.open;
    if report.hidden {
        return format!("{}: {done} of {members} members are done; values stay hidden", report.experiment);
    }
    let verdicts: Vec<String> = report
        .verdicts
        .iter()
        .map(|verdict| {
            format!("{} {}", verdict.claim, verdict.word.map_or("exploratory", |word| word.word()))
        })
        .collect();
    let standing = serde_json::to_value(report.standing).ok();
    let standing = standing.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let claims = if verdicts.is_empty() { "no claims".to_owned() } else { verdicts.join(", ") };
    format!("{}: {standing}, {done} of {members} members done; {claims}", report.experiment)
}

fn as_json(project: &Project, reports: &[Report], problems: &[Problem], files: &Files) -> Value {
    let problem = |problem: &Problem| {
        json!({
            "file": shown(project, problem), "problem": problem.to_string(), "damage": problem.is_damage(),
            "remedy": problem.remedy(),
        })
    };
    json!({
        "reports": reports,
        "store": problems.iter().map(problem).collect::<Vec<_>>(),
        "forged": files.forged,
        "stale_macros": files.stale,
    })
}
