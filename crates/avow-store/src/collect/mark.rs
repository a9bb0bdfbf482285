//! Everything that something to be kept rests on.

use std::collections::{BTreeSet, HashSet};

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, PlanDigest, ReadsDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::{Plan, Source};
use avow_model::reads::Reads;
use avow_model::tree::{Entry, Tree};

use crate::blob::{BlobStore, read_record};

/// The blobs that must stay with what was marked. What is missing or damaged is marked and not looked into: `store check` tells it.
pub struct Marks<'a> {
    blobs: &'a dyn BlobStore,
    live: HashSet<BlobDigest>,
    opened: HashSet<BlobDigest>,
}

impl<'a> Marks<'a> {
    /// Nothing yet.
    pub fn new(blobs: &'a dyn BlobStore) -> Marks<'a> {
        Marks { blobs, live: HashSet::new(), opened: HashSet::new() }
    }

    /// Whether a blob must stay.
    pub fn has(&self, digest: BlobDigest) -> bool {
        self.live.contains(&digest)
    }

    /// The records of folders, actions and plans that were looked into.
    pub fn opened(&self) -> impl Iterator<Item = BlobDigest> {
        self.opened.iter().copied()
    }

    /// Every blob that must stay, in no order.
    pub fn into_blobs(self) -> impl Iterator<Item = BlobDigest> {
        self.live.into_iter()
    }

    /// A blob alone.
    pub fn blob(&mut self, digest: BlobDigest) {
        self.live.insert(digest);
    }

    /// A file, or a folder with everything in it.
    pub fn artifact(&mut self, artifact: Artifact) {
        self.blob(artifact.blob());
        let Artifact::Tree(digest) = artifact else { return };
        if !self.opened.insert(digest.into()) {
            return;
        }
        let Ok(tree) = read_record::<Tree>(self.blobs, digest) else { return };
        for entry in tree.entries.into_values() {
            match entry {
                Entry::File { digest, .. } => self.blob(digest),
                Entry::Tree { digest } => self.artifact(Artifact::Tree(digest)),
                Entry::Link { .. } | Entry::Empty => {}
            }
        }
    }

    /// An action with its code and inputs.
    pub fn action(&mut self, digest: ActionDigest) {
        self.blob(digest.into());
        if !self.opened.insert(digest.into()) {
            return;
        }
        let Ok(action) = read_record::<Action>(self.blobs, digest) else { return };
        if let Some(code) = action.code {
            self.artifact(Artifact::Tree(code));
        }
        for record in [action.environment, action.loads].into_iter().flatten() {
            self.blob(record);
        }
        action.inputs.into_values().for_each(|artifact| self.artifact(artifact));
    }

    /// An attempt: its action, its outputs, what it printed.
    pub fn attempt(&mut self, attempt: &Attempt) {
        self.action(attempt.action);
        if let Some(environment) = attempt.environment {
            self.blob(environment);
        }
        for artifact in owned(attempt) {
            self.artifact(artifact);
        }
        self.reads(attempt.reads);
    }

    /// What an attempt was seen to read, as a record.
    pub fn reads(&mut self, digest: Option<ReadsDigest>) {
        let mut reads = digest;
        while let Some(digest) = reads.filter(|digest| self.opened.insert((*digest).into())) {
            self.blob(digest.into());
            reads = read_record::<Reads>(self.blobs, digest).ok().and_then(|record| record.installed);
        }
    }

    /// Everything that a ledger names: registered plans with what they need, and any digest that is a blob's name.
    /// Returns the plans.
    pub fn ledger(&mut self, ledger: &Ledger) -> BTreeSet<PlanDigest> {
        let mut plans = BTreeSet::new();
        for entry in ledger.entries() {
            let plan = entry.fields.get("plan").and_then(|value| value.as_str());
            if !entry.kind.starts_with("run-") {
                plans.extend(plan.and_then(|hex| hex.parse::<PlanDigest>().ok()));
            }
            entry.fields.values().for_each(|value| self.named(value));
        }
        plans.iter().for_each(|plan| self.plan(*plan));
        plans
    }

    /// Marks every digest in a value that is the name of a blob.
    fn named(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                if let Ok(digest) = text.parse()
                    && !matches!(self.blobs.size(digest), Ok(None))
                {
                    self.blob(digest);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.named(item)),
            serde_json::Value::Object(map) => map.values().for_each(|item| self.named(item)),
            _ => {}
        }
    }

    /// A plan with the code and the files that it names, so that it can be carried out.
    pub fn plan(&mut self, digest: PlanDigest) {
        self.blob(digest.into());
        if !self.opened.insert(digest.into()) {
            return;
        }
        let Ok(plan) = read_record::<Plan>(self.blobs, digest) else { return };
        for stage in plan.stages {
            if let Some(code) = stage.code {
                self.artifact(Artifact::Tree(code));
            }
            if let Some(environment) = stage.environment {
                self.blob(environment.lock);
            }
            if let Some(loads) = stage.loads {
                self.blob(loads);
            }
            for input in stage.inputs.into_values() {
                match input.from {
                    Source::Path { artifact, .. } => self.artifact(artifact),
                    Source::Url { digest, .. } => self.blob(digest),
                    Source::Output { .. } | Source::Probes { .. } => {}
                }
            }
        }
    }
}

/// What an attempt wrote and printed.
pub(super) fn owned(attempt: &Attempt) -> impl Iterator<Item = Artifact> {
    let logs = [attempt.stdout, attempt.stderr].into_iter().flatten().map(Artifact::Blob);
    attempt.outputs.values().map(|produced| produced.artifact).chain(logs)
}
