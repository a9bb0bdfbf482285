//! `avow import`: somebody else's evidence, read strictly, kept beside the project's own and marked as foreign.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_audit::{Audit, Report, Standing};
use avow_exchange::bundle::{self, Bundle, unpack};
use avow_exchange::foreign::{self as crates, RunCrate};
use avow_exchange::{Executed, ro_crate};
use avow_model::attempt::Outcome;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Plan, Source};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::foreign::{self, Act, Claimed, Foreign, Form, RECORD};
use avow_store::materialise::flatten;
use avow_store::{BlobStore, FileBlobs, Project};

use super::export::account::executed;
use super::reproduce::is_archive;
use super::verify::{self, Judged};
use crate::args;
use crate::context::Reading;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// The folder with the bytes, inside an import's.
const CONTENT: &str = "content";

/// Imports, or lists what was imported.
pub fn import(args: &args::Import, output: &Output) -> Result<Exit, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Machine, "this folder cannot be found").because(error))?;
    let project = Project::discover(&here).map_err(failure::store)?;
    let Some(path) = &args.path else { return list(&project, args, output) };
    project.create().map_err(failure::store)?;
    let place = Place::new(&project)?;
    let mut record = read(path, args, &place, output)?;
    if let Some(experiment) = &args.experiment {
        record.experiment = Some(experiment.clone());
    }
    let known = foreign::list(&project).map_err(failure::store)?.into_iter().find(|f| f.name == record.name);
    let fresh = known.is_none();
    let record = match known {
        Some(known) => known,
        None => place.keep(&project, record)?,
    };
    if args.json {
        output.json(&record)?;
    } else {
        told(&record, fresh, output)?;
    }
    Ok(Exit::Done)
}

/// Reads what was given: the folder of a crate, a crate in a zip archive, or a bundle.
fn read(path: &Path, args: &args::Import, place: &Place, output: &Output) -> Result<Foreign, Failure> {
    if path.is_dir() {
        return run_crate(path, path, args, place);
    }
    if is_archive(path) {
        let unpacked = place.beside()?;
        let found = crates::unpack(path, crate_limits(limits(args)), unpacked.path());
        if let Some(folder) = found.map_err(failure::foreign)? {
            return run_crate(&folder, path, args, place);
        }
    }
    of_bundle(path, args, place, output)
}

fn list(project: &Project, args: &args::Import, output: &Output) -> Result<Exit, Failure> {
    let all = foreign::list(project).map_err(failure::store)?;
    if args.json {
        output.json(&all)?;
        return Ok(Exit::Done);
    }
    for foreign in &all {
        output.data(format!(
            "{}  {}  {}  {}",
            foreign.short(),
            words::moment(foreign.at),
            foreign.form.word(),
            words::foreign::said(&foreign.title)
        ))?;
    }
    if all.is_empty() {
        output.say("nothing was imported; `avow import PATH` takes a bundle, or a Run Crate as a folder or a zip archive");
    }
    Ok(Exit::Done)
}

fn told(record: &Foreign, fresh: bool, output: &Output) -> Result<(), Failure> {
    let how = if fresh { "imported" } else { "was imported already:" };
    output.data(format!("{how} {} {} as foreign evidence", record.form.word(), record.short()))?;
    output.data(format!("  title    {}", words::foreign::said(&record.title)))?;
    output.data(format!(
        "  says     {}, {} failed; {}",
        words::count(record.acts.len() as u64, "act"),
        record.failed(),
        words::count(record.files.len() as u64, "file")
    ))?;
    for claimed in &record.verdicts {
        output.data(format!("  claims   {}", words::foreign::verdict(claimed)))?;
    }
    match &record.experiment {
        Some(experiment) => output
            .data(format!("  shown    beside the verdicts of `{experiment}`, and counted in none of them")),
        None => output.data("  shown    by `avow audit`; `--for EXPERIMENT` shows it beside verdicts"),
    }
}

/// A folder of an import that is not whole yet.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(project: &Project) -> Result<Place, Failure> {
        let all = foreign::folder(project);
        std::fs::create_dir_all(&all).map_err(|error| unwritable(&all, error))?;
        let folder = tempfile::Builder::new().prefix(".new-").tempdir_in(&all);
        Ok(Place { folder: folder.map_err(|error| unwritable(&all, error))? })
    }

    /// A folder beside it, for what is only passed through.
    fn beside(&self) -> Result<tempfile::TempDir, Failure> {
        let all = self.folder.path().parent().unwrap_or(self.folder.path());
        let made = tempfile::Builder::new().prefix(".new-").tempdir_in(all);
        made.map_err(|error| unwritable(all, error))
    }

    fn content(&self) -> PathBuf {
        self.folder.path().join(CONTENT)
    }

    /// Writes the record and gives the folder its name, at once.
    fn keep(self, project: &Project, record: Foreign) -> Result<Foreign, Failure> {
        let path = self.folder.path().join(RECORD);
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|error| Failure::new(Exit::Internal, "the record has no JSON form").because(error))?;
        std::fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
        let target = foreign::folder(project).join(&record.name);
        std::fs::rename(self.folder.path(), &target).map_err(|error| unwritable(&target, error))?;
        let _named = self.folder.keep();
        Ok(record)
    }
}

fn unwritable(path: &Path, error: std::io::Error) -> Failure {
    Failure::new(Exit::Machine, format!("`{}` cannot be written", path.display())).because(error)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn limits(args: &args::Import) -> bundle::Limits {
    let usual = bundle::Limits::default();
    bundle::Limits {
        entries: args.max_entries.unwrap_or(usual.entries),
        total: args.max_size.unwrap_or(usual.total),
        ..usual
    }
}

/// Limits for crates, from those for bundles.
fn crate_limits(limits: bundle::Limits) -> crates::Limits {
    crates::Limits { entries: limits.entries, total: limits.total, metadata: limits.manifest }
}

fn run_crate(folder: &Path, from: &Path, args: &args::Import, place: &Place) -> Result<Foreign, Failure> {
    let content = place.content();
    std::fs::create_dir(&content).map_err(|error| unwritable(&content, error))?;
    let RunCrate { name, title, conforms, acts, files } =
        crates::open(folder, crate_limits(limits(args)), Some(&content)).map_err(failure::foreign)?;
    Ok(Foreign {
        v: 1,
        form: Form::RoCrate,
        name,
        title,
        from: from.display().to_string(),
        at: now(),
        experiment: None,
        conforms,
        verdicts: Vec::new(),
        acts,
        files,
    })
}

fn of_bundle(path: &Path, args: &args::Import, place: &Place, output: &Output) -> Result<Foreign, Failure> {
    let bundle = Bundle::open(path, limits(args)).map_err(failure::opened)?;
    let unpacked = unpack(&bundle, &place.content()).map_err(failure::bundle)?;
    let Judged { plan, report, problems, .. } = verify::judge(&bundle, &unpacked)?;
    if verify::damage(&unpacked.project, &problems, &report, output) != Exit::Done {
        return Err(Failure::new(Exit::Damaged, "the bundle is not imported: its evidence is damaged")
            .hint("`avow verify` shows all of it; ask for the bundle again"));
    }
    let (acts, files) = told_by(&unpacked.project, &unpacked.blobs, &plan)?;
    Ok(Foreign {
        v: 1,
        form: Form::Bundle,
        name: bundle.manifest().name().map_err(failure::bundle)?,
        title: plan.experiment.clone(),
        from: path.display().to_string(),
        at: now(),
        experiment: Some(plan.experiment.clone()),
        conforms: Vec::new(),
        verdicts: claimed(&report),
        acts,
        files,
    })
}

/// What the claims came to, judged from the bytes.
fn claimed(report: &Report) -> Vec<Claimed> {
    let confirmatory = report.standing == Standing::Confirmatory;
    let one = |verdict: &avow_audit::Verdict| Claimed {
        claim: verdict.claim.clone(),
        word: verdict.word.map(|word| word.word().to_owned()),
        units: verdict.units.used as u64,
        confirmatory,
    };
    report.verdicts.iter().map(one).collect()
}

type Acts = (Vec<Act>, BTreeMap<String, BlobDigest>);

/// What a bundle says was done, and its files.
fn told_by(project: &Project, blobs: &FileBlobs, plan: &Plan) -> Result<Acts, Failure> {
    let reading = Reading::open(project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let mut told = Told { plan, blobs, acts: Vec::new(), files: BTreeMap::new() };
    for executed in executed(audit.evidence(), &reading)? {
        told.attempt(&executed)?;
    }
    Ok((told.acts, told.files))
}

struct Told<'a> {
    plan: &'a Plan,
    blobs: &'a FileBlobs,
    acts: Vec<Act>,
    files: BTreeMap<String, BlobDigest>,
}

impl Told<'_> {
    fn attempt(&mut self, executed: &Executed) -> Result<(), Failure> {
        let stage = &self.plan.stages[executed.member().stage as usize];
        let (mut read, mut wrote) = (Vec::new(), Vec::new());
        for (name, input, artifact) in executed.inputs(stage) {
            let called = match &input.from {
                Source::Path { path, .. } => path.clone(),
                Source::Url { url, .. } => url.clone(),
                _ => format!("{}.{name}", executed.label()),
            };
            self.content(&called, artifact)?;
            read.push(called);
        }
        for (name, produced) in &executed.attempt.outputs {
            let mut called = format!("{}.{name}", executed.label());
            if !executed.stands {
                called = format!("{called} of attempt {}", executed.digest.short());
            }
            self.content(&called, produced.artifact)?;
            wrote.push(called);
        }
        let failed = match &executed.attempt.outcome {
            Outcome::Succeeded => None,
            other => Some(other.to_string()),
        };
        let ended = Some(words::moment(executed.attempt.finished));
        self.acts.push(Act { name: executed.label(), tool: stage.name.clone(), read, wrote, ended, failed });
        Ok(())
    }

    /// A file, or each file of a folder.
    fn content(&mut self, called: &str, artifact: Artifact) -> Result<(), Failure> {
        match artifact {
            Artifact::Blob(digest) => drop(self.files.insert(called.to_owned(), digest)),
            Artifact::Tree(digest) => {
                if self.blobs.size(digest.into()).map_err(failure::store)?.is_none() {
                    return Ok(());
                }
                let tree: Tree = read_record(self.blobs, digest).map_err(failure::store)?;
                let flat = flatten(self.blobs, &tree).map_err(|error| {
                    Failure::new(Exit::Damaged, "a folder in the bundle cannot be read").because(error)
                })?;
                for (inner, entry) in flat.entries {
                    if let Entry::File { digest, .. } = entry {
                        self.files.insert(format!("{called}/{inner}"), digest);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Everything that is wrong with an import now: its record or its bytes are not what they were.
pub fn problems(project: &Project, foreign: &Foreign) -> Result<Vec<String>, Failure> {
    let content = foreign::folder(project).join(&foreign.name).join(CONTENT);
    match foreign.form {
        Form::RoCrate => {
            let limits = crates::Limits { entries: u64::MAX, total: u64::MAX - 1, metadata: u64::MAX - 1 };
            match crates::open(&content, limits, None) {
                Ok(now) => Ok(differs(foreign, &now)),
                Err(error) if error.is_of_the_crate() => Ok(vec![error.to_string()]),
                Err(crates::ForeignError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    Ok(vec![format!("its bytes are gone: there is no `{}`", ro_crate::METADATA)])
                }
                Err(error) => Err(failure::foreign(error)),
            }
        }
        Form::Bundle => of_bundle_now(foreign, &content),
    }
}

fn differs(foreign: &Foreign, now: &RunCrate) -> Vec<String> {
    let mut wrong = Vec::new();
    if now.name != foreign.name {
        wrong.push("its metadata are not those that were imported".to_owned());
    } else if now.acts != foreign.acts || now.title != foreign.title || now.conforms != foreign.conforms {
        wrong.push("its record does not say what its metadata say".to_owned());
    }
    let changed = foreign.files.iter().filter(|(path, digest)| now.files.get(*path) != Some(digest));
    wrong.extend(
        changed.map(|(path, _)| format!("`{}` is not what was imported", words::foreign::said(path))),
    );
    wrong
}

fn of_bundle_now(foreign: &Foreign, content: &Path) -> Result<Vec<String>, Failure> {
    if !content.is_dir() {
        return Ok(vec!["its bytes are gone".to_owned()]);
    }
    let found =
        avow_store::check::check(&Project::at(content), None, None, &|_| {}).map_err(failure::store)?;
    let absent = |problem: &&avow_store::check::Problem| {
        // A thin bundle left blobs out, and those were counted when it was imported.
        !matches!(problem, avow_store::check::Problem::MissingBlob { .. }) && problem.is_damage()
    };
    let mut wrong: Vec<String> = found.problems.iter().filter(absent).map(ToString::to_string).collect();
    let blobs =
        FileBlobs::new(Project::at(content), std::sync::Arc::new(avow_store::MemoryStamps::default()));
    for (path, digest) in &foreign.files {
        match blobs.contains(*digest) {
            Ok(_) => {}
            Err(error) => wrong.push(format!("`{}`: {error}", words::foreign::said(path))),
        }
    }
    Ok(wrong)
}
