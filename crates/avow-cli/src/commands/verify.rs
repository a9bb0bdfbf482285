//! `avow verify`: what a bundle or the record of a reproduction says, checked without running anything and without believing it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_audit::{Audit, Finding, Report};
use avow_exchange::bundle::{Bundle, Limits, Unpacked, unpack};
use avow_model::digest::BlobDigest;
use avow_model::plan::Plan;
use avow_store::Project;
use avow_store::blob::read_record;
use avow_store::check::{self, Problem};
use serde_json::json;

mod reproduction;

use crate::args;
use crate::context::Reading;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Verifies a bundle.
pub fn verify(args: &args::Verify, output: &Output) -> Result<Exit, Failure> {
    if reproduction::is_one(&args.bundle) {
        return reproduction::verify(args, output);
    }
    let bundle = Bundle::open(&args.bundle, limits(args)).map_err(failure::opened)?;
    let opened = match (&args.opening, &args.named) {
        (Some(opening), Some(named)) => Some(super::bundle::opened(&bundle, opening, named, limits(args))?),
        _ => None,
    };
    let folder = Folder::of(args)?;
    let unpacked = unpack(&bundle, folder.path()).map_err(failure::bundle)?;
    let Judged { plan, absent, problems, report } = judge(&bundle, &unpacked)?;
    let exit = damage(&unpacked.project, &problems, &report, output);
    let kept = folder.keep()?;
    if args.json {
        let problem = |p: &Problem| {
            let file = super::store::shown(&unpacked.project, p);
            json!({"file": file, "problem": p.to_string(), "damage": p.is_damage()})
        };
        output.json(&json!({
            "bundle": args.bundle, "name": bundle.manifest().name().map_err(failure::bundle)?,
            "entries": bundle.manifest().entries.len(), "bytes": bundle.manifest().size(),
            "absent": absent.len(), "unpacked": kept, "problems": problems.iter().map(problem).collect::<Vec<_>>(),
            "report": report, "anonymous": bundle.manifest().anonymous, "made_from": opened,
        }))?;
        return Ok(exit.worse(checked(args, &report)));
    }
    told(&bundle, &problems, output)?;
    if let Some(name) = &opened {
        output
            .data(format!("  opened      it is bundle {name} without names, and nothing else was changed"))?;
    }
    if report.hidden {
        output.data("a registered plan is not complete: there are no verdicts yet")?;
    } else {
        output.data(words::verdict::lines(&plan, &report, output).trim_end())?;
    }
    if let Some(folder) = kept {
        output.data(format!("unpacked as a project in `{}`", folder.display()))?;
        for path in &unpacked.without {
            output.data(format!("  without `{path}`, which the bundle leaves out"))?;
        }
    }
    Ok(exit.worse(checked(args, &report)))
}

/// What a bundle comes to, from its bytes.
pub struct Judged {
    /// Its plan.
    pub plan: Plan,
    /// What it says that it leaves out.
    pub absent: HashSet<BlobDigest>,
    /// What the check of the store finds.
    pub problems: Vec<Problem>,
    /// What its claims come to.
    pub report: Report,
}

/// Checks what was unpacked and judges its claims anew.
pub fn judge(bundle: &Bundle, unpacked: &Unpacked) -> Result<Judged, Failure> {
    let plan: Plan = read_record(&unpacked.blobs, bundle.manifest().plan).map_err(failure::store)?;
    // What its searches asked for and found is in the evidence, not in the record of the plan.
    let plan = crate::search::followed(&unpacked.project, plan.into())?;
    let absent: HashSet<BlobDigest> = bundle.manifest().absent.iter().copied().collect();
    let problems = problems(unpacked, &absent)?;
    let report = report(unpacked, &plan, &absent)?;
    Ok(Judged { plan: Arc::unwrap_or_clone(plan), absent, problems, report })
}

fn limits(args: &args::Verify) -> Limits {
    let default = Limits::default();
    Limits {
        entries: args.max_entries.unwrap_or(default.entries),
        total: args.max_size.unwrap_or(default.total),
        ..default
    }
}

fn checked(args: &args::Verify, report: &Report) -> Exit {
    if args.check { super::verdict::checked(report) } else { Exit::Done }
}

/// What the check of the store finds, without what the bundle says that it leaves out.
fn problems(unpacked: &Unpacked, absent: &HashSet<BlobDigest>) -> Result<Vec<Problem>, Failure> {
    let found = check::check(&unpacked.project, None, None, &|_| {}).map_err(failure::store)?;
    let left_out = |p: &Problem| matches!(p, Problem::MissingBlob { digest, .. } if absent.contains(digest));
    Ok(found.problems.into_iter().filter(|problem| !left_out(problem)).collect())
}

/// Judges the claims anew. What was left out is no damage, unless a claim rests on it.
fn report(unpacked: &Unpacked, plan: &Plan, absent: &HashSet<BlobDigest>) -> Result<Report, Failure> {
    let reading = Reading::open(&unpacked.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let mut needed = HashSet::new();
    for member in audit.evidence().members() {
        let stage = &plan.stages[member.member.stage as usize];
        let outputs = member.attempts.iter().flat_map(|attempt| &attempt.outputs);
        let measured =
            outputs.filter(|(name, _)| stage.measurements.iter().any(|file| file.output == **name));
        needed.extend(measured.map(|(_, artifact)| artifact.blob()));
    }
    let mut report = audit.report(Some(&reading.journals()?), false).map_err(failure::audit)?;
    report.findings.retain(|finding| match finding {
        Finding::MissingBlob { blob, .. } => !absent.contains(blob) || needed.contains(blob),
        _ => true,
    });
    Ok(report)
}

/// Tells damage; its exit code.
pub fn damage(project: &Project, problems: &[Problem], report: &Report, output: &Output) -> Exit {
    let mut exit = super::verdict::damage(report, output);
    for problem in problems.iter().filter(|problem| problem.is_damage()) {
        let file = super::store::shown(project, problem);
        output.always(format!("{} {file}: {problem}", output.coloured("damaged:", 31)));
        exit = exit.worse(Exit::Damaged);
    }
    exit
}

fn told(bundle: &Bundle, problems: &[Problem], output: &Output) -> Result<(), Failure> {
    let manifest = bundle.manifest();
    output.data(format!("bundle {}", manifest.name().map_err(failure::bundle)?))?;
    output.data(format!(
        "  experiment  {}\n  entries     {} ({}), every byte as the manifest says\n  runs        {}",
        manifest.experiment,
        manifest.entries.len(),
        words::bytes(manifest.size()),
        manifest.runs.len(),
    ))?;
    if let Some(anonymous) = &manifest.anonymous {
        let pieces = words::count(anonymous.withheld.len() as u64, "piece");
        output.data(format!(
            "  anonymous   without names; {pieces} withheld (signatures, time stamps, logs), to be opened after the review"
        ))?;
    }
    if !manifest.absent.is_empty() {
        output.data(format!("  left out    {}", words::count(manifest.absent.len() as u64, "blob")))?;
    }
    for problem in problems.iter().filter(|problem| !problem.is_damage()) {
        output.data(format!("  note        {problem}"))?;
    }
    Ok(())
}

/// Where a bundle is unpacked: a folder that goes when it is not wanted, or one that stays under its name once
/// everything in it has been compared.
enum Folder {
    Passing(tempfile::TempDir),
    Wanted { partial: tempfile::TempDir, target: PathBuf },
}

impl Folder {
    fn of(args: &args::Verify) -> Result<Folder, Failure> {
        let machine =
            |error| Failure::new(Exit::Machine, "no folder could be made to unpack in").because(error);
        let Some(target) = args.unpack.clone() else {
            return tempfile::Builder::new()
                .prefix("avow-verify-")
                .tempdir()
                .map(Folder::Passing)
                .map_err(machine);
        };
        if target.symlink_metadata().is_ok() {
            return Err(Failure::new(Exit::Usage, format!("`{}` exists already", target.display()))
                .hint("name a folder that does not exist yet"));
        }
        let beside = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let partial = tempfile::Builder::new().prefix(".avow-verify-").tempdir_in(beside).map_err(machine)?;
        Ok(Folder::Wanted { partial, target })
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Passing(folder) => folder.path(),
            Folder::Wanted { partial, .. } => partial.path(),
        }
    }

    fn keep(self) -> Result<Option<PathBuf>, Failure> {
        let Folder::Wanted { partial, target } = self else { return Ok(None) };
        std::fs::rename(partial.keep(), &target).map_err(|error| {
            Failure::new(Exit::Machine, format!("`{}` could not be named", target.display())).because(error)
        })?;
        Ok(Some(target))
    }
}
