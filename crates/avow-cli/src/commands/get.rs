//! `avow get`: an artifact as files.

use std::path::PathBuf;

use avow_audit::evidence::Fate;
use avow_audit::lineage::Address;
use avow_audit::{Audit, Evidence};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand::{self, Member};
use avow_model::label;
use avow_model::plan::Plan;
use avow_planner::{Reason, Target};
use avow_store::materialise::{MaterialiseError, publish};
use avow_store::{BlobStore, RecordStore, StoreError};
use serde_json::json;

use crate::args;
use crate::commands::plan::forecast;
use crate::context::{Planned, Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::large::LARGE;
use crate::output::{Failure, Output};

/// One artifact to copy.
struct Wanted {
    label: String,
    file: String,
    artifact: Artifact,
}

/// Copies artifacts out of the store.
pub fn get(args: &args::Get, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
    let wanted = match alone(&spec, &planned, &reading, &args.artifact)? {
        Some(wanted) => wanted,
        None => {
            let audit =
                Audit::gather(&planned.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
            super::verdict::guard(&spec, &reading, &audit, args.peek, ("get", &args.artifact))?;
            let wanted = find(&planned, &reading, audit.evidence(), &args.artifact)?;
            let artifacts: Vec<Artifact> = wanted.iter().map(|one| one.artifact).collect();
            super::verdict::note_sealed(&spec, audit.evidence(), "get", &artifacts)?;
            wanted
        }
    };
    let mut copied = Vec::new();
    for (position, one) in wanted.iter().enumerate() {
        let target = target(args, &wanted, position);
        publish(&reading.blobs, one.artifact, &target, false).map_err(|error| refused(error, &target))?;
        if !args.json {
            output.data(format!("{} → {}", one.label, target.display()))?;
        }
        copied.push(json!({"from": one.label, "artifact": one.artifact, "path": target}));
    }
    if wanted.len() > 1 {
        index(args, &copied)?;
    }
    if args.json {
        output.json(&copied)?;
    }
    Ok(Exit::Done)
}

/// Says in the folder itself which file is which.
fn index(args: &args::Get, copied: &[serde_json::Value]) -> Result<(), Failure> {
    let path = folder(args).join("index.json");
    let text = serde_json::to_vec_pretty(copied)
        .map_err(|error| Failure::new(Exit::Internal, "the index has no JSON form").because(error))?;
    std::fs::write(&path, text).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", path.display())).because(error)
    })
}

fn folder(args: &args::Get) -> PathBuf {
    args.output.clone().unwrap_or_else(|| PathBuf::from("artifacts"))
}

/// One artifact goes where it is told, or under its own name; several go into a folder, by member.
fn target(args: &args::Get, wanted: &[Wanted], position: usize) -> PathBuf {
    let one = &wanted[position];
    match (&args.output, wanted.len()) {
        (Some(path), 1) => path.clone(),
        (None, 1) => PathBuf::from(&one.file),
        _ => folder(args).join(format!("{position:04}-{}", one.file)),
    }
}

fn refused(error: MaterialiseError, target: &std::path::Path) -> Failure {
    match error {
        MaterialiseError::Exists { .. } => {
            Failure::new(Exit::Usage, format!("`{}` exists already", target.display()))
                .hint("give another path with `-o`")
        }
        MaterialiseError::Store(error) => failure::store(error),
        error => Failure::new(Exit::Damaged, format!("`{}` could not be written", target.display()))
            .because(error)
            .hint("`avow store check` names every damaged file"),
    }
}

/// What is wanted, by a look at its members and what they read from alone; `None` where that does not tell: a registered
/// plan may hide values until all of it is complete, what is sealed is noted when it is read, and of a member that a run would make again the evidence knows more.
fn alone(
    spec: &Spec,
    planned: &Planned,
    reading: &Reading,
    text: &str,
) -> Result<Option<Vec<Wanted>>, Failure> {
    let plan = &planned.plan;
    let sealed = plan.stages.iter().flat_map(|stage| stage.outputs.values()).any(|output| output.holdout);
    if sealed || spec.project.registrations().exists() {
        return Ok(None);
    }
    let Ok(Address::Named { stage, name, at }) = Address::parse(plan, text) else { return Ok(None) };
    let pairs = at.iter().map(|(axis, value)| format!("{axis}={}", label::written(value)));
    let pairs: Vec<String> = pairs.collect();
    let target = if pairs.is_empty() { stage.clone() } else { format!("{stage}[{}]", pairs.join(",")) };
    let Ok(target) = Target::parse(plan, &target) else { return Ok(None) };
    if target.members(plan).nth(LARGE as usize).is_some() {
        return Ok(None);
    }
    let planner = forecast(planned, reading, vec![target.clone()])?;
    let mut found = Vec::new();
    for member in target.members(plan) {
        let Some(Reason::Reused { attempt }) = planner.reason(member) else { return Ok(None) };
        let recorded = reading.index.attempt(attempt).map_err(failure::store)?;
        let outputs = recorded.as_ref().map(|recorded| &recorded.attempt.outputs);
        let Some(produced) = outputs.and_then(|outputs| outputs.get(&name)) else { return Ok(None) };
        found.push(Wanted::of(plan, member, &name, produced.artifact));
    }
    Ok((!found.is_empty()).then_some(found))
}

impl Wanted {
    fn of(plan: &Plan, member: Member, name: &str, artifact: Artifact) -> Wanted {
        let declared = &plan.stages[member.stage as usize];
        let path = declared.outputs.get(name).map_or(name, |o| o.path.as_str());
        let file = path.rsplit('/').next().unwrap_or(path).to_owned();
        Wanted { label: format!("{}.{name}", expand::label(plan, member)), file, artifact }
    }
}

fn find(
    planned: &Planned,
    reading: &Reading,
    evidence: &Evidence<'_>,
    text: &str,
) -> Result<Vec<Wanted>, Failure> {
    let address = Address::parse(&planned.plan, text)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(FORM))?;
    let found = match &address {
        Address::Named { stage, name, at } => named(planned, evidence, stage, name, at),
        Address::Digest(prefix) => by_digest(reading, prefix)?,
        _ => Vec::new(),
    };
    if found.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("no artifact is called `{text}`")).hint(FORM));
    }
    Ok(found)
}

const FORM: &str =
    "an artifact is `stage.output`, `stage.output[axis=value]` or a digest; `avow plan --all` lists members";

fn named(
    planned: &Planned,
    evidence: &Evidence<'_>,
    stage: &str,
    name: &str,
    at: &[(String, String)],
) -> Vec<Wanted> {
    let plan = &planned.plan;
    let mut found = Vec::new();
    for member in evidence.members() {
        let declared = &plan.stages[member.member.stage as usize];
        let (Fate::Stands(stands), true) = (&member.fate, declared.name == *stage) else { continue };
        let cell = expand::cell(plan, member.member);
        let matches = |(axis, value): &(String, String)| {
            cell.values().any(|(a, v)| a == axis && v.to_string() == *value)
        };
        if let (true, Some(artifact)) = (at.iter().all(matches), stands.outputs.get(name)) {
            found.push(Wanted::of(plan, member.member, name, *artifact));
        }
    }
    found
}

fn by_digest(reading: &Reading, prefix: &str) -> Result<Vec<Wanted>, Failure> {
    let all = reading.blobs.list().map_err(failure::store)?;
    let hits: Vec<_> = all.into_iter().filter(|digest| digest.to_string().starts_with(prefix)).collect();
    match hits.as_slice() {
        [one] => {
            Ok(vec![Wanted { label: one.to_string(), file: one.short(), artifact: Artifact::Blob(*one) }])
        }
        // What is kept by reference is in no list; what is wrong with it is told when it is copied.
        [] => Ok(match prefix.parse::<BlobDigest>().map(|digest| (digest, reading.blobs.contains(digest))) {
            Ok((digest, Ok(true) | Err(StoreError::Origin { .. }))) => {
                let (label, file) = (digest.to_string(), digest.short());
                vec![Wanted { label, file, artifact: Artifact::Blob(digest) }]
            }
            _ => Vec::new(),
        }),
        many => Err(Failure::new(Exit::Usage, format!("`{prefix}` begins {} digests", many.len()))
            .hint("give more digits")),
    }
}
