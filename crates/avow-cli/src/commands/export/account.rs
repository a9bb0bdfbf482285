//! The account of what was done, from the evidence.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use avow_audit::evidence::Fate;
use avow_audit::measure::table::Table;
use avow_audit::measure::{self, Readings};
use avow_audit::{Audit, Evidence, Report};
use avow_exchange::bundle::What;
use avow_exchange::citation::{Citation, FILE};
use avow_exchange::{Account, Executed, Paper, SpecText};
use avow_model::action::Action;
use avow_model::canonical::Record;
use avow_model::digest::AttemptDigest;
use avow_model::plan::Plan;
use avow_store::Project;
use avow_store::blob::read_record;

use crate::context::{Planned, Reading, Spec};
use crate::embargo;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// A spec with its evidence, to be exported.
pub struct Exported {
    /// The spec.
    pub spec: Spec,
    /// Its plan.
    pub planned: Planned,
    /// Its store.
    pub reading: Reading,
}

impl Exported {
    /// Opens a spec that was carried out.
    pub fn open(given: Option<&Path>, output: &Output) -> Result<Exported, Failure> {
        let spec = Spec::open(given)?;
        let planned = spec.plan_as_run(output)?;
        embargo::closed_to(&spec.project, &planned.plan.experiment, "an export")?;
        let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
        Ok(Exported { spec, planned, reading })
    }

    /// What was done, once it may be seen. `what` is written down where it may not and is peeked at. The exit code
    /// says whether evidence is damaged, which was told then.
    pub fn account(&self, peek: bool, what: &str, output: &Output) -> Result<(Account<'_>, Exit), Failure> {
        let (plan, reading) = (&*self.planned.plan, &self.reading);
        let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
        crate::commands::verdict::guard(&self.spec, reading, &audit, peek, ("export", what))?;
        let executed = executed(audit.evidence(), reading)?;
        if executed.is_empty() {
            return Err(crate::commands::bundle::never_run(plan.experiment.as_str(), reading));
        }
        let readings = measure::read_all(audit.evidence(), reading.source()).map_err(failure::audit)?;
        let report = audit.report(Some(&reading.journals()?), peek).map_err(failure::audit)?;
        let exit = crate::commands::verdict::damage(&report, output);
        let root = self.spec.project.root();
        let mut papers = credits(root)?;
        let citation = papers.iter().find(|paper| paper.path == FILE);
        let citation =
            citation.map(|paper| Citation::read(&paper.bytes)).transpose().map_err(failure::exchange)?;
        papers.extend(registrations(&self.spec.project, &plan.experiment)?);
        papers.extend(tables(plan, &readings, &report)?);
        let account = Account {
            plan,
            digest: plan.digest(),
            spec: SpecText { path: &self.spec.path, text: &self.spec.text },
            title: self.spec.title(),
            tool: env!("CARGO_PKG_VERSION"),
            executed,
            papers,
            citation,
        };
        Ok((account, exit))
    }
}

/// Every attempt once, in the order of members.
pub fn executed(evidence: &Evidence<'_>, reading: &Reading) -> Result<Vec<Executed>, Failure> {
    let (mut all, mut places) = (Vec::<Executed>::new(), BTreeMap::<AttemptDigest, usize>::new());
    for member in evidence.members() {
        let standing = match &member.fate {
            Fate::Stands(stands) => Some(stands.attempt),
            _ => None,
        };
        for tried in &member.attempts {
            let labelled = (member.member, evidence.label(member.member));
            if let Some(place) = places.get(&tried.attempt) {
                all[*place].members.push(labelled);
                continue;
            }
            // A record that is gone is a finding of the audit already.
            let Some(attempt) = reading.source().attempt(tried.attempt).map_err(failure::audit)? else {
                continue;
            };
            let action: Action = read_record(&reading.blobs, attempt.action).map_err(failure::store)?;
            places.insert(tried.attempt, all.len());
            let stands = standing == Some(tried.attempt);
            all.push(Executed { members: vec![labelled], digest: tried.attempt, attempt, action, stands });
        }
    }
    Ok(all)
}

/// The citation and the licences in the root of a project.
pub fn credits(root: &Path) -> Result<Vec<Paper>, Failure> {
    let failed =
        |error| Failure::new(Exit::Machine, format!("cannot look into `{}`", root.display())).because(error);
    let mut papers = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let about = match What::of_name(&name) {
            Some(What::Licence) => "A licence of the project.",
            Some(What::Citation) => "How the work is to be cited.",
            Some(What::Table) | None => continue,
        };
        if path.is_file() {
            papers.push(Paper {
                path: name,
                bytes: fs::read(&path).map_err(failed)?,
                about: about.to_owned(),
            });
        }
    }
    papers.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(papers)
}

/// The ledger of the experiment with the proofs beside it, where it was registered.
fn registrations(project: &Project, experiment: &str) -> Result<Vec<Paper>, Failure> {
    let about_ledger = "The ledger of registrations: JSON Lines, each naming the ones before it by SHA-256.";
    let about_proof = "A signature or time stamp over a head of the ledger.";
    let files = avow_exchange::bundle::registrations(project, experiment).map_err(failure::bundle)?;
    let paper = |(path, bytes): (String, Vec<u8>)| {
        let about = if path.contains(".proofs/") { about_proof } else { about_ledger };
        Paper { path: format!("registrations/{path}"), bytes, about: about.to_owned() }
    };
    Ok(files.into_iter().map(paper).collect())
}

/// The numbers, and what they come to.
fn tables(plan: &Plan, readings: &Readings, report: &Report) -> Result<Vec<Paper>, Failure> {
    let internal = |error: &dyn std::error::Error| {
        Failure::new(Exit::Internal, "the results have no text form").because(error)
    };
    let mut csv = Vec::new();
    Table::new(plan, readings).write_csv(&mut csv).map_err(|error| internal(&error))?;
    let mut json = serde_json::to_vec_pretty(report).map_err(|error| internal(&error))?;
    json.push(b'\n');
    let paper =
        |path: &str, bytes, about: &str| Paper { path: path.to_owned(), bytes, about: about.to_owned() };
    Ok(vec![
        paper("results/measurements.csv", csv, "Every measurement with its cell, as `avow table` prints it."),
        paper(
            "results/verdicts.json",
            json,
            "The verdicts on the claims, as `avow verdict --json` prints them.",
        ),
    ])
}
