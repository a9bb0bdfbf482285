//! Sealed outputs: who read them, and whether their rows also occur in what was trained on.
//!
//! An output with `holdout: true` is sealed. That no train or calibrate stage descends from it is proved from the graph
//! before anything runs. Here is what only records can say: which attempts had its bytes among their inputs and which
//! commands copied it out, before the registration and after it, whatever experiment did so; and which of its rows are
//! also rows of the data that the models judged on it were trained with. Data that the sealed output was itself made
//! from holds all its rows, and is no training data. Absent: rows that are nearly the same, and reads beside this tool.

mod leak;
pub mod npy;
pub mod rows;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, TreeDigest};
use avow_model::journal::Event;
use avow_model::ledger::{Entry, Ledger};
use avow_model::plan::Plan;
use avow_model::tree::{self, Tree};
use serde::Serialize;

use crate::deviation::{Class, Deviation, What, When};
use crate::evidence::Evidence;
use crate::integrity::RunJournal;
use crate::source::{AuditError, Source};

pub use leak::{Leaks, leaks};

/// A sealed output, and who read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sealed {
    /// `stage.output`.
    pub output: String,
    /// Before the registration; all, where nothing is registered.
    pub before: Reads,
    /// Under it.
    pub after: Reads,
}

/// Who read a sealed output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Attempts that had it among their inputs, by stage; those of other experiments as `experiment: stage`.
    pub attempts: BTreeMap<String, u64>,
    /// Commands that copied it out, with how often.
    pub commands: BTreeMap<String, u64>,
}

impl Reads {
    /// Whether nobody did.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.commands.is_empty()
    }
}

/// Whether a plan seals anything.
pub fn seals(plan: &Plan) -> bool {
    plan.stages.iter().flat_map(|stage| stage.outputs.values()).any(|output| output.holdout)
}

/// The sealed output that a line of the ledger says was copied out.
pub fn copied(entry: &Entry) -> Option<&str> {
    (entry.kind == "exposure").then(|| entry.fields.get("sealed")?.as_str()).flatten()
}

/// Every sealed output of a plan with its readers, in the plan's order.
pub fn reads(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    ledger: &Ledger,
    journals: &[RunJournal],
) -> Result<Vec<Sealed>, AuditError> {
    let contents = contents(evidence);
    let mut all: BTreeMap<String, Sealed> = contents
        .values()
        .flatten()
        .map(|name| (name.clone(), Sealed { output: name.clone(), ..Sealed::default() }))
        .collect();
    let mut readers =
        Readers { source, contents: &contents, actions: BTreeMap::new(), trees: BTreeMap::new() };
    for run in journals {
        let experiment = run.journal.lines.first().and_then(|line| match &line.event {
            Event::Opened(opened) => Some(opened.experiment.as_str()),
            _ => None,
        });
        for line in &run.journal.lines {
            let Event::Finished { member, attempt } = &line.event else { continue };
            let stage = member.split('[').next().unwrap_or(member);
            let own = experiment == Some(evidence.plan.experiment.as_str());
            let who = if own { stage.to_owned() } else { format!("{}: {stage}", experiment.unwrap_or("?")) };
            for name in readers.of(attempt)? {
                let Some(sealed) = all.get_mut(&name) else { continue };
                let covered = evidence.registration.as_ref().is_some_and(|r| r.covers(attempt));
                let side = if covered { &mut sealed.after } else { &mut sealed.before };
                *side.attempts.entry(who.clone()).or_default() += 1;
            }
        }
    }
    for entry in ledger.entries() {
        let Some(sealed) = copied(entry).and_then(|name| all.get_mut(name)) else { continue };
        let side = if is_before(evidence, ledger, entry) { &mut sealed.before } else { &mut sealed.after };
        *side.commands.entry(command(entry)).or_default() += 1;
    }
    Ok(all.into_values().collect())
}

fn command(entry: &Entry) -> String {
    entry.fields.get("command").and_then(|c| c.as_str()).unwrap_or("unknown").to_owned()
}

fn is_before(evidence: &Evidence<'_>, ledger: &Ledger, entry: &Entry) -> bool {
    evidence.registration.as_ref().is_none_or(|r| !ledger.precedes(r.leaf, entry.leaf))
}

/// Where somebody copied a sealed output out of the store before the registered plan was complete: one deviation for
/// each output and side of the registration.
pub fn exposures(evidence: &Evidence<'_>, ledger: &Ledger) -> Vec<Deviation> {
    if evidence.registration.is_none() {
        return Vec::new();
    }
    let mut found: BTreeMap<(bool, &str), BTreeMap<String, usize>> = BTreeMap::new();
    for entry in ledger.entries() {
        let complete = entry.fields.get("complete").and_then(serde_json::Value::as_bool) == Some(true);
        if let Some(name) = copied(entry).filter(|_| !complete) {
            let commands = found.entry((is_before(evidence, ledger, entry), name)).or_default();
            *commands.entry(command(entry)).or_default() += 1;
        }
    }
    let deviation = |((before, name), commands): ((bool, &str), _)| {
        let when = if before { When::BeforeRegistration } else { When::After };
        Deviation::new(Class::Exposure, when, What::Copied { output: name.to_owned(), commands })
    };
    found.into_iter().map(deviation).collect()
}

/// What every success of a sealing stage wrote, with the names of the sealed outputs that have this content.
pub fn contents(evidence: &Evidence<'_>) -> BTreeMap<BlobDigest, BTreeSet<String>> {
    let mut contents: BTreeMap<BlobDigest, BTreeSet<String>> = BTreeMap::new();
    for (stage, members) in evidence.plan.stages.iter().zip(&evidence.stages) {
        for (name, _) in stage.outputs.iter().filter(|(_, output)| output.holdout) {
            let written =
                members.iter().flat_map(|member| &member.attempts).filter_map(|t| t.outputs.get(name));
            for artifact in written {
                contents.entry(artifact.blob()).or_default().insert(format!("{}.{name}", stage.name));
            }
        }
    }
    contents
}

/// Finds out what attempts had among their inputs.
struct Readers<'a> {
    source: Source<'a>,
    contents: &'a BTreeMap<BlobDigest, BTreeSet<String>>,
    /// What an action reads that is sealed.
    actions: BTreeMap<ActionDigest, BTreeSet<String>>,
    trees: BTreeMap<TreeDigest, BTreeSet<String>>,
}

impl Readers<'_> {
    /// The sealed outputs that an attempt read. An action whose record is gone says nothing; the check of the store
    /// names it.
    fn of(&mut self, attempt: &Attempt) -> Result<BTreeSet<String>, AuditError> {
        if self.contents.is_empty() {
            return Ok(BTreeSet::new());
        }
        if let Some(known) = self.actions.get(&attempt.action) {
            return Ok(known.clone());
        }
        let mut found = BTreeSet::new();
        if let Ok(action) = self.source.record::<Action>(BlobDigest::from(attempt.action), "an action")? {
            for artifact in action.inputs.values() {
                found.extend(self.inside(*artifact, 0)?);
            }
        }
        self.actions.insert(attempt.action, found.clone());
        Ok(found)
    }

    fn inside(&mut self, artifact: Artifact, depth: usize) -> Result<BTreeSet<String>, AuditError> {
        /// Folders are gathered once, and hold folders of files.
        const DEEPEST: usize = 3;
        let mut found = self.contents.get(&artifact.blob()).cloned().unwrap_or_default();
        let Artifact::Tree(digest) = artifact else { return Ok(found) };
        if let Some(known) = self.trees.get(&digest) {
            return Ok(known.clone());
        }
        if depth < DEEPEST
            && let Ok(tree) = self.source.record::<Tree>(BlobDigest::from(digest), "a folder")?
        {
            for entry in tree.entries.values() {
                let inner = match entry {
                    tree::Entry::File { digest, .. } => Artifact::Blob(*digest),
                    tree::Entry::Tree { digest } => Artifact::Tree(*digest),
                    tree::Entry::Link { .. } | tree::Entry::Empty => continue,
                };
                found.extend(self.inside(inner, depth + 1)?);
            }
        }
        self.trees.insert(digest, found.clone());
        Ok(found)
    }
}
