//! Whether an earlier attempt can stand for a member now.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, TreeDigest};
use avow_model::ledger::invalid::Invalids;
use avow_model::plan::{Keep, Reuse, Stage};
use avow_model::tree::{Entry, Tree};
use avow_planner::{Found, Miss};
use avow_store::blob::read_record;
use avow_store::{Aliases, BlobStore, Observed, RecordStore, StampCache, StoreError};

/// What a look-up depends on besides the action.
pub struct Lookup<'a> {
    /// The index.
    pub records: &'a dyn RecordStore,
    /// The blobs.
    pub blobs: &'a dyn BlobStore,
    /// The names of the hosts on which attempts are made, for `reuse: same-host`.
    pub hosts: &'a [String],
    /// The names that actions had under earlier encodings.
    pub aliases: &'a Aliases,
    /// Runs whose volatile attempts still count: this one, and the unfinished one it goes on with.
    pub runs: &'a [String],
    /// Whether what observed attempts read is still so.
    pub observed: &'a Observed,
    /// Remembered digests of files.
    pub stamps: &'a dyn StampCache,
    /// Whether an attempt was made under the registration in force; such an attempt is preferred.
    pub registered: &'a dyn Fn(&Attempt) -> bool,
    /// What the ledger declares wrong; it stands for nothing.
    pub invalid: &'a Invalids,
}

/// What a look-up found.
#[derive(Clone, Debug, PartialEq)]
pub struct Sought {
    /// The attempt that stands, or why none does.
    pub found: Found,
    /// The record of the attempt that stands.
    pub stands: Option<Attempt>,
    /// Names under earlier encodings, with their numbers, that were taken for this action's and are not written
    /// down yet.
    pub adopted: Vec<(u32, ActionDigest)>,
}

impl Lookup<'_> {
    /// The first success that may stand for a member of this stage, made under the registration if there is
    /// one; else why there is none. A damaged blob that it meets is moved aside.
    ///
    /// # Errors
    /// Where index or blobs cannot be read, or a damaged blob cannot be moved; one that is missing or damaged
    /// is a miss.
    pub fn find(&self, stage: &Stage, action: &Action, digest: ActionDigest) -> Result<Sought, StoreError> {
        let names = self.aliases.names(self.records, action, digest)?;
        let (found, stands) = self.among(stage, &names.all)?;
        Ok(Sought { found, stands, adopted: names.fresh })
    }

    fn among(&self, stage: &Stage, names: &[ActionDigest]) -> Result<(Found, Option<Attempt>), StoreError> {
        let mut successes = Vec::new();
        let mut last_failure = None;
        let mut traces = Vec::new();
        for name in names {
            traces.extend(self.records.trace(*name)?);
        }
        for digest in traces {
            let Some(recorded) = self.records.attempt(digest)? else { continue };
            // What was made only to be compared stands for nothing.
            if recorded.attempt.verification {
                continue;
            }
            if recorded.attempt.outcome.succeeded() {
                successes.push((digest, recorded.attempt));
            } else {
                last_failure = Some(recorded.attempt.outcome);
            }
        }
        if successes.is_empty() {
            let mut collected = None;
            for name in names {
                collected = collected.max(self.records.collected(*name)?);
            }
            let miss = match (last_failure, collected) {
                (_, Some(at)) => Miss::Collected { at },
                (Some(last), None) => Miss::OnlyFailures { last },
                (None, None) => Miss::NeverRun,
            };
            return Ok((Found::Miss(miss), None));
        }
        successes.sort_by_key(|(_, attempt)| !(self.registered)(attempt));
        let mut miss = Miss::NeverRun;
        for (digest, attempt) in successes {
            if self.invalid.of(digest, &attempt).is_some() {
                miss = Miss::Invalidated;
                continue;
            }
            match self.obstacle(stage, &attempt)? {
                Some(obstacle) => miss = obstacle,
                None => {
                    let outputs = attempt.outputs.iter().map(|(n, p)| (n.clone(), p.artifact)).collect();
                    return Ok((Found::Hit { attempt: digest, outputs }, Some(attempt)));
                }
            }
        }
        Ok((Found::Miss(miss), None))
    }

    fn obstacle(&self, stage: &Stage, attempt: &Attempt) -> Result<Option<Miss>, StoreError> {
        match stage.reuse {
            Reuse::Never if !self.runs.contains(&attempt.run) => return Ok(Some(Miss::Volatile)),
            Reuse::SameHost if !self.hosts.contains(&attempt.host.name) => {
                return Ok(Some(Miss::OtherHost { host: attempt.host.name.clone() }));
            }
            _ => {}
        }
        if let Some(reads) = attempt.reads {
            match self.observed.drift(reads, self.blobs, self.stamps) {
                Ok(None) => {}
                Ok(Some(drift)) => return Ok(Some(Miss::ReadDrifted(drift))),
                Err(error) if error.is_unusable_blob() => {
                    return Ok(Some(Miss::BlobMissing { blob: reads.into() }));
                }
                Err(error) => return Err(error),
            }
        }
        let kept = stage.outputs.iter().filter(|(_, output)| output.keep == Keep::Content);
        for (name, _) in kept {
            let Some(produced) = attempt.outputs.get(name) else { continue };
            if let Some(blob) = missing(self.blobs, produced.artifact)? {
                return Ok(Some(Miss::BlobMissing { blob }));
            }
        }
        Ok(None)
    }
}

/// The first blob of an artifact that is not there or does not verify. A damaged blob is moved aside, so that
/// it can be made again.
pub(crate) fn missing(blobs: &dyn BlobStore, artifact: Artifact) -> Result<Option<BlobDigest>, StoreError> {
    whole(blobs, artifact).map(Result::err)
}

/// All blobs of an artifact, or the first that is not there or does not verify.
pub(crate) fn whole(
    blobs: &dyn BlobStore,
    artifact: Artifact,
) -> Result<Result<Vec<BlobDigest>, BlobDigest>, StoreError> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![artifact];
    while let Some(next) = pending.pop() {
        if !seen.insert(next) {
            continue;
        }
        if !present(blobs, next.blob())? {
            return Ok(Err(next.blob()));
        }
        if let Artifact::Tree(digest) = next {
            match entries(blobs, digest) {
                Ok(inside) => pending.extend(inside),
                Err(error) if error.is_unusable_blob() => return Ok(Err(digest.into())),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Ok(seen.into_iter().map(Artifact::blob).collect()))
}

fn entries(blobs: &dyn BlobStore, digest: TreeDigest) -> Result<Vec<Artifact>, StoreError> {
    let tree: Tree = read_record(blobs, digest)?;
    let artifacts: BTreeMap<_, _> = tree.entries;
    Ok(artifacts
        .into_values()
        .filter_map(|entry| match entry {
            Entry::File { digest, .. } => Some(Artifact::Blob(digest)),
            Entry::Tree { digest } => Some(Artifact::Tree(digest)),
            Entry::Link { .. } | Entry::Empty => None,
        })
        .collect())
}

fn present(blobs: &dyn BlobStore, digest: BlobDigest) -> Result<bool, StoreError> {
    match blobs.contains(digest) {
        Err(error) if error.is_unusable_blob() => {
            let aside = blobs.quarantine(digest)?;
            tracing::warn!(%digest, %error, ?aside, "a damaged blob was moved aside");
            Ok(false)
        }
        other => other,
    }
}
