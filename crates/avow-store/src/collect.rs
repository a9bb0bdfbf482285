//! What can go from the store, and letting it go.
//!
//! An attempt and its blobs are one unit: either all that it needs stays, or it is marked as collected and is
//! never reused or judged again, although its record stays in its journal. Kept are: everything that evidence of
//! a registered plan rests on; the latest run and the latest complete run of every experiment, whose numbers
//! people have in hand; pins; runs that were not closed; and whatever is younger than the policy says. Records of
//! plans, actions and reads stay always: they are small, and what was done stays readable.
//!
//! Whoever collects holds the run lock, so nothing runs meanwhile and no half-made attempt can lose an input.

mod mark;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use avow_model::attempt::Timestamp;
use avow_model::digest::{Artifact, AttemptDigest, BlobDigest, PlanDigest};
use avow_model::journal::{Closing, Event, Journal};

use crate::blob::{BlobStore, FileBlobs};
use crate::collected::{self, Collection};
use crate::disk;
use crate::error::{Context, StoreError};
use crate::index;
use crate::journal;
use crate::ledger::{self, LedgerFile};
use crate::lock::RunLock;
use crate::pins;
use crate::project::Project;
use crate::receipt;
use crate::record::Recorded;
use crate::stamp::MemoryStamps;
pub use mark::Marks;
use mark::owned;

/// An attempt that would go.
#[derive(Clone, Debug, PartialEq)]
pub struct Doomed {
    /// Its record.
    pub recorded: Recorded,
    /// Bytes that go with it; what several share is counted at the first.
    pub bytes: u64,
}

/// What a collection would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// Attempts that go, in the order of the journals.
    pub attempts: Vec<Doomed>,
    /// How many attempts stay.
    pub kept: u64,
    /// Blobs that no record names, and their bytes.
    pub unnamed: (u64, u64),
    /// Everything that goes: blobs with their sizes.
    pub blobs: Vec<(BlobDigest, u64)>,
}

impl Proposal {
    /// All bytes that go.
    pub fn bytes(&self) -> u64 {
        self.blobs.iter().map(|(_, size)| size).sum()
    }
}

/// One run as a journal tells it.
struct Run {
    name: String,
    experiment: String,
    at: Timestamp,
    plan: PlanDigest,
    closed: Option<Closing>,
    /// Its own attempts, and those that stood for members.
    attempts: Vec<AttemptDigest>,
    started: Vec<avow_model::digest::ActionDigest>,
    /// Lists of hits.
    cited: Vec<BlobDigest>,
}

/// Finds what can go; changes nothing. What ended or was stored after `since` stays.
pub fn propose(project: &Project, _runner: &RunLock, since: Timestamp) -> Result<Proposal, StoreError> {
    let blobs = FileBlobs::new(project.clone(), std::sync::Arc::new(MemoryStamps::default()));
    let (runs, recorded) = history(project, &blobs)?;
    let mut marks = Marks::new(&blobs);
    let roots = roots(project, &runs, &recorded, since, &mut marks)?;
    for record in recorded.iter().filter(|record| roots.contains(&record.digest())) {
        marks.attempt(&record.attempt);
    }
    for run in &runs {
        marks.blob(run.plan.into());
        run.cited.iter().for_each(|list| marks.blob(*list));
        run.started.iter().for_each(|action| marks.blob((*action).into()));
    }
    for record in &recorded {
        marks.blob(record.attempt.action.into());
        marks.reads(record.attempt.reads);
    }
    separate(project, &blobs, &recorded, &roots, &marks, since)
}

/// Lets it go. The note comes first, and is durable before the first blob is removed.
pub fn carry_out(
    project: &Project,
    runner: &RunLock,
    proposal: &Proposal,
    now: Timestamp,
) -> Result<(), StoreError> {
    if proposal.blobs.is_empty() {
        return Ok(());
    }
    let attempts = proposal.attempts.iter().map(|doomed| doomed.recorded.digest()).collect();
    let (blobs, bytes) = (proposal.blobs.len() as u64, proposal.bytes());
    collected::append(project, runner, &Collection { at: now, attempts, blobs, bytes })?;
    // What was settled may rest on an attempt that goes while its blobs stay for another's sake.
    receipt::forget(project);
    for (digest, _) in &proposal.blobs {
        let path = project.blob(*digest);
        match disk::remove_file(&path) {
            Err(e) if crate::files::absent(&e) => {}
            other => other.context("remove", &path)?,
        }
    }
    Ok(())
}

/// The lists of hits that a journal's lines cite.
fn cited(journal: &Journal) -> Vec<BlobDigest> {
    let cited = |event: &Event| match event {
        Event::Reused { cited: Some(cited), .. } => Some(cited.record),
        _ => None,
    };
    journal.lines.iter().filter_map(|line| cited(&line.event)).collect()
}

fn history(project: &Project, blobs: &FileBlobs) -> Result<(Vec<Run>, Vec<Recorded>), StoreError> {
    let (mut runs, mut recorded) = (Vec::new(), Vec::new());
    for file in journal::journals(project)? {
        let mut journal = file.read()?;
        let cited = cited(&journal);
        avow_model::journal::resolve(&mut journal.lines, |digest| blobs.read(digest).ok());
        let attempts = index::attempts(&journal);
        runs.extend(run(&journal, &attempts).map(|run| Run { cited, ..run }));
        recorded.extend(attempts);
    }
    recorded.sort_by(|a, b| a.position.cmp(&b.position));
    Ok((runs, recorded))
}

fn run(journal: &Journal, recorded: &[Recorded]) -> Option<Run> {
    let first = journal.lines.first()?;
    let Event::Opened(opened) = &first.event else { return None };
    let mut run = Run {
        name: opened.run.clone(),
        experiment: opened.experiment.clone(),
        at: first.at,
        plan: opened.plan,
        closed: None,
        attempts: recorded.iter().map(Recorded::digest).collect(),
        started: Vec::new(),
        cited: Vec::new(),
    };
    for line in &journal.lines {
        match &line.event {
            Event::Reused { hits, .. } => run.attempts.extend(hits.iter().map(|hit| hit.attempt)),
            Event::Started { action, .. } => run.started.push(*action),
            Event::Closed { how } => run.closed = Some(*how),
            _ => {}
        }
    }
    Some(run)
}

/// The attempts that stay for their own sake. What else stays is marked at once.
fn roots(
    project: &Project,
    runs: &[Run],
    recorded: &[Recorded],
    since: Timestamp,
    marks: &mut Marks<'_>,
) -> Result<HashSet<AttemptDigest>, StoreError> {
    let registered = registered(project, marks)?;
    let latest = latest(runs);
    let mut roots = HashSet::new();
    for run in runs {
        let open = run.closed.is_none();
        if open {
            marks.plan(run.plan);
            run.started.iter().for_each(|action| marks.action(*action));
        }
        if open || registered.contains(&run.plan) || latest.contains(run.name.as_str()) {
            roots.extend(run.attempts.iter().copied());
        }
    }
    let young = recorded.iter().filter(|record| record.attempt.finished > since);
    roots.extend(young.map(Recorded::digest));
    for (_, pin) in pins::read(project)? {
        roots.extend(pin.attempts);
        for digest in pin.blobs {
            marks.artifact(Artifact::Blob(digest));
            marks.artifact(Artifact::Tree(avow_model::digest::TreeDigest::from_bytes(*digest.as_bytes())));
        }
    }
    let diverged = diverged(recorded, &roots);
    roots.extend(diverged);
    Ok(roots)
}

/// Successes of the same action as one that stays, with other outputs: that a result did not come out the same again
/// must not be forgotten with what is collected.
fn diverged(recorded: &[Recorded], roots: &HashSet<AttemptDigest>) -> Vec<AttemptDigest> {
    let succeeded = || recorded.iter().filter(|record| record.attempt.outcome.succeeded());
    let mut kept = HashMap::new();
    for record in succeeded().filter(|record| roots.contains(&record.digest())) {
        kept.entry(record.attempt.action).or_insert(&record.attempt.outputs);
    }
    let differs = |record: &&Recorded| {
        kept.get(&record.attempt.action).is_some_and(|outputs| **outputs != record.attempt.outputs)
    };
    succeeded().filter(differs).map(Recorded::digest).collect()
}

/// The plans that were ever registered. Whatever else a ledger names by a digest is marked.
fn registered(project: &Project, marks: &mut Marks<'_>) -> Result<BTreeSet<PlanDigest>, StoreError> {
    let mut plans = BTreeSet::new();
    for experiment in ledger::experiments(project)? {
        let file = LedgerFile::of(project, &experiment)?;
        for ledger in [Some(file.read()?), file.stray()?].into_iter().flatten() {
            plans.extend(marks.ledger(&ledger));
        }
    }
    Ok(plans)
}

/// Of every experiment the latest run, and the latest that came to its end.
fn latest(runs: &[Run]) -> HashSet<&str> {
    let mut last: BTreeMap<(&str, bool), &Run> = BTreeMap::new();
    for run in runs {
        for complete in [false, true] {
            if complete && run.closed != Some(Closing::Complete) {
                continue;
            }
            let known = last.entry((run.experiment.as_str(), complete)).or_insert(run);
            if (run.at, &run.name) >= (known.at, &known.name) {
                *known = run;
            }
        }
    }
    last.into_values().map(|run| run.name.as_str()).collect()
}

/// Tells the blobs that go from those that stay, and whose they are.
fn separate(
    project: &Project,
    blobs: &FileBlobs,
    recorded: &[Recorded],
    roots: &HashSet<AttemptDigest>,
    marks: &Marks<'_>,
    since: Timestamp,
) -> Result<Proposal, StoreError> {
    let mut going: HashMap<BlobDigest, u64> = HashMap::new();
    for digest in blobs.survey()?.0 {
        if !marks.has(digest) {
            let path = project.blob(digest);
            going.insert(digest, fs::metadata(&path).context("look at", &path)?.len());
        }
    }
    let before = collected::dates(project)?;
    let mut proposal = Proposal::default();
    let mut counted = HashSet::new();
    for record in recorded {
        let digest = record.digest();
        let mut own = Marks::new(blobs);
        if roots.contains(&digest) || before.contains_key(&digest) {
            proposal.kept += u64::from(roots.contains(&digest));
            continue;
        }
        owned(&record.attempt).for_each(|artifact| own.artifact(artifact));
        let lost: Vec<_> = own.into_blobs().filter(|blob| going.contains_key(blob)).collect();
        if lost.is_empty() {
            proposal.kept += 1;
            continue;
        }
        let bytes = lost.into_iter().filter(|blob| counted.insert(*blob)).map(|blob| going[&blob]).sum();
        proposal.attempts.push(Doomed { recorded: record.clone(), bytes });
    }
    for (digest, size) in going {
        if !counted.contains(&digest) {
            // What nobody names yet may be for a run that is about to begin.
            if young(project, digest, since)? {
                continue;
            }
            proposal.unnamed = (proposal.unnamed.0 + 1, proposal.unnamed.1 + size);
        }
        proposal.blobs.push((digest, size));
    }
    proposal.blobs.sort_unstable();
    Ok(proposal)
}

fn young(project: &Project, digest: BlobDigest, since: Timestamp) -> Result<bool, StoreError> {
    let path = project.blob(digest);
    let changed = fs::metadata(&path).and_then(|about| about.modified()).context("look at", &path)?;
    let age = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(age.as_millis()).unwrap_or(i64::MAX) > since)
}
