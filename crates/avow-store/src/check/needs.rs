//! What the records promise to keep, and whether it is there.

use std::collections::HashSet;

use avow_model::action::Action;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest, ReadsDigest};
use avow_model::plan::Plan;
use avow_model::reads::Reads;
use avow_model::tree::{Entry, Tree};

use super::{Known, Problem, Report};
use crate::blob::{FileBlobs, read_record};
use crate::error::StoreError;
use crate::record::Recorded;

/// Looks for every blob that plans and attempts promise; each missing one is told once.
pub(super) fn check_needs(blobs: &FileBlobs, known: &Known, report: &mut Report) -> Result<(), StoreError> {
    let (told, trees, late) = <(HashSet<_>, HashSet<_>, HashSet<_>)>::default();
    let mut needs = Needs { blobs, known, report, told, trees, late };
    for (plan, who) in &known.plans {
        needs.record::<Plan>(*plan, "the plan", who)?;
    }
    for (action, member) in &known.started {
        needs.blob((*action).into(), "the action", &format!("`{member}`"));
    }
    for (hits, run) in &known.hits {
        needs.blob(*hits, "the list of what was reused", &format!("run `{run}`"));
    }
    // A collected attempt keeps its record and nothing else.
    let kept = known.recorded.iter().filter(|recorded| !known.collected.contains_key(&recorded.digest()));
    kept.into_iter().try_for_each(|recorded| needs.attempt(recorded))
}

struct Needs<'a> {
    blobs: &'a FileBlobs,
    known: &'a Known,
    report: &'a mut Report,
    told: HashSet<BlobDigest>,
    trees: HashSet<BlobDigest>,
    late: HashSet<BlobDigest>,
}

impl Needs<'_> {
    fn attempt(&mut self, recorded: &Recorded) -> Result<(), StoreError> {
        let attempt = &recorded.attempt;
        let who = format!("`{}` in run `{}`", recorded.member, recorded.position.run);
        let action: Option<Action> = self.record(attempt.action, "the action", &who)?;
        if let Some(code) = action.as_ref().and_then(|action| action.code) {
            self.artifact(Artifact::Tree(code), "the code", &who)?;
        }
        if let Some(loads) = action.as_ref().and_then(|action| action.loads) {
            self.blob(loads, "the list of what its programs loaded", &who);
        }
        if let Some(environment) = attempt.environment {
            self.blob(environment, "the record of its environment", &who);
        }
        // An output of which only the digest is kept promises no bytes; without the action, whose loss is told,
        // nobody can say which those are.
        let promised = |name: &str| {
            action.as_ref().is_some_and(|action| action.outputs.get(name).is_none_or(|o| o.keep.is_content()))
        };
        for (name, produced) in attempt.outputs.iter().filter(|(name, _)| promised(name)) {
            self.artifact(produced.artifact, &format!("output `{name}`"), &who)?;
        }
        for (stream, what) in [(attempt.stdout, "standard output"), (attempt.stderr, "standard error")] {
            if let Some(digest) = stream {
                self.blob(digest, what, &who);
            }
        }
        self.reads(attempt.reads, &who)
    }

    fn reads(&mut self, reads: Option<ReadsDigest>, who: &str) -> Result<(), StoreError> {
        let what = "what it was seen to read";
        let Some(digest) = reads.filter(|digest| self.trees.insert((*digest).into())) else { return Ok(()) };
        let record = self.record::<Reads>(digest, what, who)?;
        self.reads(record.and_then(|record| record.installed), who)
    }

    fn artifact(&mut self, artifact: Artifact, what: &str, who: &str) -> Result<(), StoreError> {
        let Artifact::Tree(digest) = artifact else {
            self.blob(artifact.blob(), what, who);
            return Ok(());
        };
        if !self.trees.insert(digest.into()) {
            return Ok(());
        }
        let Some(tree) = self.record::<Tree>(digest, what, who)? else { return Ok(()) };
        for (path, entry) in &tree.entries {
            let inner = format!("`{path}` in {what}");
            match entry {
                Entry::File { digest, .. } => drop(self.blob(*digest, &inner, who)),
                Entry::Tree { digest } => self.artifact(Artifact::Tree(*digest), &inner, who)?,
                Entry::Link { .. } | Entry::Empty => {}
            }
        }
        Ok(())
    }

    /// Whether a blob is there and sound. A damaged one was told when it was hashed.
    fn blob(&mut self, digest: BlobDigest, what: &str, who: &str) -> bool {
        if self.known.sound.contains(&digest) {
            return true;
        }
        // One that came in after the others were hashed: of a run that is under way.
        let unseen = !self.known.surveyed.contains(&digest);
        if unseen && (self.late.contains(&digest) || self.blobs.verify(digest).is_ok()) {
            self.late.insert(digest);
            return true;
        }
        let file = self.blobs.path(digest);
        if file.symlink_metadata().is_err() && self.told.insert(digest) {
            let (what, who) = (what.to_owned(), who.to_owned());
            self.report.problems.push(Problem::MissingBlob { file, digest, what, who });
        }
        false
    }

    fn record<R: Record>(&mut self, digest: R::Digest, what: &str, who: &str) -> Result<Option<R>, StoreError>
    where
        R::Digest: Into<BlobDigest>,
    {
        let blob = digest.into();
        if !self.blob(blob, what, who) {
            return Ok(None);
        }
        match read_record(self.blobs, digest) {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::Record { source, .. }) => {
                if self.told.insert(blob) {
                    let (what, who) = (what.to_owned(), who.to_owned());
                    let (file, reason) = (self.blobs.path(blob), source.to_string());
                    self.report.problems.push(Problem::BadRecord { file, what, who, reason });
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
