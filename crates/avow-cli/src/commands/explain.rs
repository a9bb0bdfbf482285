//! `avow explain`: why a member would run or be reused, with the exact difference to the nearest earlier
//! attempt.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use avow_engine::EngineError;
use avow_exec::{Barred, Config, Confinement, Denial, LocalExecutor, Watch};
use avow_model::action::{Action, Change, changes};
use avow_model::attempt::{Attempt, AttemptId};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, BlobDigest, TreeDigest};
use avow_model::expand::{self, Member};
use avow_model::journal::RunState;
use avow_model::loads::{Loaded, Loads, load_changes};
use avow_model::plan::Plan;
use avow_model::tree::{Entry, Tree};
use avow_planner::{Planner, Reason, Target};
use avow_store::blob::read_record;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, RecordStore, Recorded, journal, presence};
use serde_json::json;

use crate::args;
use crate::commands::plan::forecast;
use crate::commands::run::Control;
use crate::context::{Planned, Reading, Spec};
use crate::divergence;
use crate::exit::Exit;
use crate::failure;
use crate::large::LARGE;
use crate::output::{Failure, Output};
use crate::present;
use crate::secrets::Vault;
use crate::settings;
use crate::undeclared;
use crate::words;

/// The most members that are explained one by one.
const LISTED: usize = 12;

/// The most attempts at other members of a stage that are looked at for one to compare with.
const NEAR: usize = 64;

/// The part of an action that stands for everything that is loaded.
const LOADS: &str = "what its programs load";

/// What is known about one member.
struct Explained {
    label: String,
    reason: String,
    earlier: Option<Recorded>,
    changes: Vec<Change>,
    /// The folder that an earlier attempt left for the next one, and the attempts that worked on it.
    waiting: Option<(PathBuf, Vec<AttemptId>)>,
    /// The attempts whose checkpoint the last attempt went on from.
    continues: Vec<AttemptId>,
    /// The attempt that stands or was the last, and what is to be said about its confinement.
    latest: Option<Recorded>,
    notes: Vec<String>,
    /// The encoding of the attempt that is reused, where it is an earlier one that named less.
    encoding: Option<u32>,
}

/// Explains a stage or member.
pub fn explain(args: &args::Explain, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    let planned = spec.plan(output)?;
    let plan = &planned.plan;
    let target = Target::parse(plan, &args.member).map_err(|_| unknown(plan, &args.member))?;
    if target.members(plan).nth(LARGE as usize).is_some() {
        return Err(Failure::new(
            Exit::Usage,
            format!("`{}` names too many members to explain", args.member),
        )
        .hint("name one: a member looks like `train[seed=3]`"));
    }
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    // Only what is asked about, and what it reads from.
    let planner = forecast(&planned, &reading, vec![target.clone()])?;
    let members: Vec<(Member, Reason)> =
        target.members(plan).filter_map(|member| Some((member, planner.reason(member)?))).collect();
    if members.is_empty() {
        return Err(unknown(plan, &args.member));
    }
    let made = made_now(&spec.project)?;
    let shown = if args.json { members.len() } else { members.len().min(LISTED) };
    let mut explained = Vec::new();
    for (member, reason) in &members[..shown] {
        let mut item = one(&spec.project, &planned, &reading, &planner, *member, reason)?;
        let action = planner.action(*member).map(|action| action.digest());
        if let Some(run) = action.and_then(|action| made.get(&action)) {
            item.reason = format!("waits for run {run}, which executes it now");
        }
        explained.push(item);
    }
    for item in &mut explained {
        item.notes = notes(args, &spec, &planned, &reading, item)?;
        if let Some(latest) = &item.latest {
            item.notes.extend(divergence::notes(&reading, latest)?);
        }
        let stage = planned.plan.stage(words::stage_of(&item.label));
        let then = item.latest.as_ref().and_then(|recorded| recorded.attempt.environment);
        if let Some(stage) = stage {
            item.notes.extend(present::notes(&spec, stage, &reading.blobs, then));
        }
    }
    if args.json {
        let rows: Vec<_> = explained.iter().map(as_json).collect();
        output.json(&rows)?;
    } else {
        for item in &explained {
            print(item, output)?;
        }
        if members.len() > shown {
            output.data(format!("… and {} more; name one to see it", members.len() - shown))?;
        }
    }
    Ok(Exit::Done)
}

fn unknown(plan: &Plan, name: &str) -> Failure {
    if plan.claim(name).is_some() {
        return Failure::new(Exit::Usage, format!("`{name}` is a claim, and members are explained here"))
            .hint(format!("`avow verdict --explain {name}` shows what it rests on"));
    }
    Failure::new(Exit::Usage, format!("nothing is called `{name}`"))
        .hint(format!("{}; a member looks like `train[seed=3]`", words::stages(plan)))
}

/// The actions that living runs execute now, with their runs.
fn made_now(project: &Project) -> Result<BTreeMap<ActionDigest, String>, Failure> {
    let mut made = BTreeMap::new();
    for living in presence::living(project).map_err(failure::store)? {
        if let Some(file) = journal::journal(project, &living.run).map_err(failure::store)? {
            let state = RunState::of(&file.read().map_err(failure::store)?.lines);
            let orphans = state.orphans().filter(|orphan| !orphan.verification);
            made.extend(orphans.map(|orphan| (orphan.action, living.run.clone())));
        }
    }
    Ok(made)
}

fn one(
    project: &Project,
    planned: &Planned,
    reading: &Reading,
    planner: &Planner,
    member: Member,
    reason: &Reason,
) -> Result<Explained, Failure> {
    let plan = &planned.plan;
    let label = expand::label(plan, member);
    let now = planner.action(member);
    let digest = now.as_ref().map(Record::digest);
    let earlier = nearest(reading, &plan.experiment, &label, digest)?;
    let changes = match (&earlier, &now) {
        (Some(recorded), Some(now)) => differences(planned, reading, recorded.attempt.action, now)?,
        _ => Vec::new(),
    };
    let standing = match reason {
        Reason::Reused { attempt } => reading.index.attempt(*attempt).map_err(failure::store)?,
        _ => None,
    };
    let encoding = standing
        .as_ref()
        .map(|recorded| recorded.attempt.encoding)
        .filter(|encoding| *encoding == 1 && plan.stages[member.stage as usize].loads.is_some());
    let (waiting, continues) = match (standing, digest) {
        (Some(standing), _) => (None, standing.attempt.continues),
        (None, Some(digest)) => checkpoints(project, reading, digest)?,
        (None, None) => (None, Vec::new()),
    };
    let latest = match reason {
        Reason::Reused { attempt } => Some(*attempt),
        _ => reading.index.history(&plan.experiment, &label).map_err(failure::store)?.pop(),
    };
    let latest = match latest {
        Some(digest) => reading.index.attempt(digest).map_err(failure::store)?,
        None => None,
    };
    let reason = words::reason::reason(plan, reason);
    let notes = Vec::new();
    Ok(Explained { label, reason, earlier, changes, waiting, continues, latest, notes, encoding })
}

type Checkpoints = (Option<(PathBuf, Vec<AttemptId>)>, Vec<AttemptId>);

/// What waits for the next attempt at an action, and what the last one went on from.
fn checkpoints(project: &Project, reading: &Reading, action: ActionDigest) -> Result<Checkpoints, Failure> {
    let waiting = avow_exec::waiting_checkpoint(&project.checkpoints(), action)
        .map_err(|error| Failure::new(Exit::Machine, "a checkpoint cannot be read").because(error))?;
    let last = reading.index.trace(action).map_err(failure::store)?.pop();
    let last =
        last.map(|digest| reading.index.attempt(digest).map_err(failure::store)).transpose()?.flatten();
    Ok((waiting, last.map(|recorded| recorded.attempt.continues).unwrap_or_default()))
}

/// What a member's latest attempt read, or was kept from, without declaring it.
fn notes(
    args: &args::Explain,
    spec: &Spec,
    planned: &Planned,
    reading: &Reading,
    item: &Explained,
) -> Result<Vec<String>, Failure> {
    let Some(Recorded { attempt, .. }) = &item.latest else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    // Of an attempt at another action it says nothing about what will be.
    let told = item.changes.is_empty() && !attempt.host.confinement.is_empty();
    if told {
        lines.push(format!("executed under {}", attempt.host.confinement));
    }
    let files = undeclared::read_by(attempt, &reading.blobs).map_err(failure::store)?;
    if !files.is_empty() {
        lines.push(undeclared::reads(&files));
    }
    if attempt.outcome.succeeded() {
        return Ok(lines);
    }
    let mut config = settings::executor(&spec.project, None)?;
    if args.trace {
        config.secrets = Vault::open(&spec.project, &planned.terms, None)?.secrets;
        lines.extend(traced(&item.label, attempt, &spec.project, reading, config)?);
    } else {
        lines.extend(undeclared::barred(&item.label, attempt, &spec.project, &reading.blobs, &config)?);
    }
    Ok(lines)
}

/// Runs a failed attempt's action once more, to name what it is denied.
fn traced(
    label: &str,
    attempt: &Attempt,
    project: &Project,
    reading: &Reading,
    mut config: Config,
) -> Result<Vec<String>, Failure> {
    let machine = |error| failure::engine(EngineError::Exec(error));
    config.confinement = Some(Confinement::Deny);
    let action: Action = read_record(&reading.blobs, attempt.action).map_err(failure::store)?;
    let blobs: Arc<dyn BlobStore> =
        Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
    let executor = LocalExecutor::new(config, blobs).map_err(machine)?;
    let control = Control::new(false)?;
    let mut id = avow_store::nonce().map_err(failure::store)?;
    id.truncate(32);
    let watch = Watch::new(control.cancel.clone());
    let (outcome, denied) =
        executor.explain_denials(&AttemptId(id), &action, &attempt.terms, watch).map_err(machine)?;
    let found: Vec<Denial> = denied.into_iter().map(|path| Denial { path, how: Barred::Read }).collect();
    if found.is_empty() {
        return Ok(vec![format!("it was run once more ({outcome}) and was denied no file")]);
    }
    Ok(undeclared::told(label, &found, project))
}

/// The latest attempt at the same member with another action, else the latest at its stage.
fn nearest(
    reading: &Reading,
    experiment: &str,
    label: &str,
    now: Option<ActionDigest>,
) -> Result<Option<Recorded>, Failure> {
    let same = reading.index.history(experiment, label).map_err(failure::store)?;
    let of_stage = reading.index.latest_of_stage(experiment, words::stage_of(label), NEAR);
    let of_stage = of_stage.map_err(failure::store)?;
    let candidates = same.into_iter().rev().chain(of_stage.into_iter().rev().map(|(_, digest)| digest));
    for digest in candidates {
        let recorded = reading.index.attempt(digest).map_err(failure::store)?;
        if let Some(recorded) = recorded
            && Some(recorded.attempt.action) != now
        {
            return Ok(Some(recorded));
        }
    }
    Ok(None)
}

fn differences(
    planned: &Planned,
    reading: &Reading,
    before: ActionDigest,
    now: &Action,
) -> Result<Vec<Change>, Failure> {
    let old: Action = match read_record(&reading.blobs, before) {
        Ok(action) => action,
        Err(error) if error.is_unusable_blob() => return Ok(Vec::new()),
        Err(error) => return Err(failure::store(error)),
    };
    let mut all = Vec::new();
    for change in changes(&old, now) {
        match (change.part, old.code, now.code) {
            ("code", Some(a), Some(b)) => match code_changes(planned, reading, a, b) {
                Some(files) => all.extend(files),
                None => all.push(change),
            },
            (LOADS, ..) => match (old.loads, now.loads) {
                (Some(a), Some(b)) => match loads_changes(planned, reading, a, b) {
                    Some(changes) => all.extend(changes),
                    None => all.push(change),
                },
                _ => all.push(change),
            },
            _ => all.push(change),
        }
    }
    Ok(all)
}

/// Which code files differ; `None` where one of the trees is neither planned nor in the store.
fn code_changes(
    planned: &Planned,
    reading: &Reading,
    old: TreeDigest,
    new: TreeDigest,
) -> Option<Vec<Change>> {
    let stored = |digest: TreeDigest| -> Option<Tree> { read_record(&reading.blobs, digest).ok() };
    let tree = |digest: TreeDigest| planned.trees.get(&digest).cloned().or_else(|| stored(digest));
    let (old, new) = (tree(old)?, tree(new)?);
    let spell = |entry: &Entry| match entry {
        Entry::File { digest, executable: true } => format!("{}… (executable)", digest.short()),
        Entry::File { digest, .. } => format!("{}…", digest.short()),
        Entry::Link { target } => format!("link to {target}"),
        Entry::Empty => "an empty folder".to_owned(),
        Entry::Tree { digest } => format!("folder {}…", digest.short()),
    };
    let paths: std::collections::BTreeSet<&String> = old.entries.keys().chain(new.entries.keys()).collect();
    let differing = paths.into_iter().filter(|p| old.entries.get(*p) != new.entries.get(*p));
    Some(
        differing
            .map(|path| Change {
                part: "code",
                name: Some(path.clone()),
                old: old.entries.get(path).map(spell),
                new: new.entries.get(path).map(spell),
            })
            .collect(),
    )
}

/// Which libraries, packages and programs differ; `None` where one of the records is neither planned nor in the
/// store.
fn loads_changes(
    planned: &Planned,
    reading: &Reading,
    old: BlobDigest,
    new: BlobDigest,
) -> Option<Vec<Change>> {
    let stored = |digest: BlobDigest| -> Option<Loads> { read_record(&reading.blobs, digest).ok() };
    let loads = |digest: BlobDigest| planned.loads.get(&digest).cloned().or_else(|| stored(digest));
    let all = load_changes(&loads(old)?, &loads(new)?).into_iter().map(|(key, old, new)| {
        let (kind, name) = key.split_once(' ').unwrap_or(("program", &key));
        let part =
            ["library", "package", "module"].into_iter().find(|part| *part == kind).unwrap_or("program");
        let same_version = |a: &Loaded, b: &Loaded| a.to_string() == b.to_string();
        let (mut a, mut b) = (old.as_ref().map(Loaded::to_string), new.as_ref().map(Loaded::to_string));
        if let (Some(old), Some(new)) = (&old, &new)
            && same_version(old, new)
        {
            a = a.map(|version| format!("{version} ({})", old.content.short()));
            b = b.map(|version| format!("{version} ({})", new.content.short()));
        }
        Change { part, name: Some(name.to_owned()), old: a, new: b }
    });
    Some(all.collect())
}

/// One difference as one line.
fn sentence(change: &Change) -> String {
    let name = change.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("{}{name} changed: {old} → {new}", change.part),
        (None, Some(new)) => format!("{}{name} is new: {new}", change.part),
        (Some(old), None) => format!("{}{name} is gone: it was {old}", change.part),
        (None, None) => format!("{}{name}", change.part),
    }
}

fn print(item: &Explained, output: &Output) -> Result<(), Failure> {
    output.data(format!("{} {}", item.label, item.reason))?;
    if !item.continues.is_empty() {
        output.data(format!("  its attempt ran{}", words::continued(&item.continues)))?;
    }
    if let Some((folder, attempts)) = &item.waiting {
        output.data(format!("  the next attempt runs{}", words::continued(attempts)))?;
        output.data(format!("  remove `{}` to begin from nothing", folder.display()))?;
    }
    if let Some(encoding) = item.encoding {
        output.data(format!(
            "  reused from an attempt recorded under encoding {encoding}, which named neither shared libraries nor packages"
        ))?;
    }
    if !item.changes.is_empty()
        && let Some(earlier) = &item.earlier
    {
        for change in &item.changes {
            output.data(format!("  {}", sentence(change)))?;
        }
        output.data(format!(
            "  compared with attempt {} of {} ({}, run {})",
            earlier.digest().short(),
            earlier.member,
            earlier.attempt.outcome,
            earlier.attempt.run
        ))?;
    }
    for note in &item.notes {
        output.data(format!("  {note}"))?;
    }
    Ok(())
}

fn as_json(item: &Explained) -> serde_json::Value {
    let changes: Vec<_> = item
        .changes
        .iter()
        .map(|c| json!({"part": c.part, "name": c.name, "old": c.old, "new": c.new}))
        .collect();
    json!({
        "member": item.label, "reason": item.reason, "changes": changes, "continues": item.continues,
        "encoding": item.encoding,
        "checkpoint": item.waiting.as_ref().map(|(folder, attempts)| json!({"folder": folder, "attempts": attempts})),
        "notes": item.notes,
        "confinement": item.latest.as_ref().map(|r| &r.attempt.host.confinement),
        "compared_with": item.earlier.as_ref().map(|r| json!({"attempt": r.digest(), "member": r.member, "run": r.attempt.run})),
    })
}
