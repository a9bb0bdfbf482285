//! Where evidence is read: the one place that touches a store.
//!
//! Nothing is believed on the way in. A blob's bytes are hashed here every time they are read, whatever the
//! store says about them; an attempt's record must have the digest it was asked for by, and must be an attempt
//! at the action whose trace named it. What does not fit becomes a [`Finding`], never a value. Absent: writing.

use std::collections::BTreeMap;

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest, BlobDigest};
use avow_model::reads::{Reads, Seen};
use avow_store::{Aliases, BlobStore, Observed, RecordStore, Recorded, StampCache, StoreError};

use crate::finding::{AttemptFault, Finding};

/// Attempts at one action, in order.
pub type Trace = Vec<(AttemptDigest, Recorded)>;

/// The store as the audit reads it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    blobs: &'a dyn BlobStore,
    records: &'a dyn RecordStore,
    aliases: Option<&'a Aliases>,
    thorough: bool,
    reality: Option<(&'a Observed, &'a dyn StampCache)>,
}

/// The store could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Blobs or records could not be read; a missing or damaged blob is a finding instead.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// Stages that wait for each other; no plan that was checked has them.
    #[error("the stages of the plan form a cycle")]
    Cycle,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("thorough", &self.thorough).finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    /// A view of these stores.
    pub fn new(blobs: &'a dyn BlobStore, records: &'a dyn RecordStore) -> Source<'a> {
        Source { blobs, records, aliases: None, thorough: false, reality: None }
    }

    /// The same view, which also knows the files that observed attempts read.
    #[must_use]
    pub fn observing(self, observed: &'a Observed, stamps: &'a dyn StampCache) -> Source<'a> {
        Source { reality: Some((observed, stamps)), ..self }
    }

    /// Whether everything an attempt was seen to read is as it was; true where nobody observed it, or where this
    /// view does not know the files.
    pub fn reads_hold(&self, attempt: &Attempt) -> Result<bool, AuditError> {
        let (Some((observed, stamps)), Some(reads)) = (self.reality, attempt.reads) else { return Ok(true) };
        match observed.drift(reads, self.blobs, stamps) {
            Ok(drift) => Ok(drift.is_none()),
            Err(error) if error.is_unusable_blob() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The files and folders that an attempt was seen to read and that nobody declared, installed software apart.
    pub fn undeclared(&self, attempt: &Attempt) -> Result<BTreeMap<String, BlobDigest>, AuditError> {
        let Some(reads) = attempt.reads else { return Ok(BTreeMap::new()) };
        let record = self.record::<Reads>(reads.into(), "what an attempt read")?;
        let there = |(path, seen)| match seen {
            Seen::File(digest) | Seen::Names(digest) => Some((path, digest)),
            Seen::Absent | Seen::Unknown => None,
        };
        // A record that is damaged is named by the check of the store; here nothing is known then.
        Ok(record
            .map_or_else(|_| BTreeMap::new(), |reads| reads.seen.into_iter().filter_map(there).collect()))
    }

    /// The same view, with the names that actions had under earlier encodings.
    #[must_use]
    pub fn with_aliases(self, aliases: &'a Aliases) -> Source<'a> {
        Source { aliases: Some(aliases), ..self }
    }

    /// The bytes of a blob, hashed anew. `used` says where it belongs, for the finding.
    pub fn read(&self, blob: BlobDigest, used: &str) -> Result<Result<Vec<u8>, Finding>, AuditError> {
        let used = used.to_owned();
        let bytes = match self.blobs.read(blob) {
            Ok(bytes) => bytes,
            Err(StoreError::Missing { .. } | StoreError::NotAFile { .. }) => {
                return Ok(Err(Finding::MissingBlob { blob, used }));
            }
            Err(StoreError::Corrupt { found, .. }) => {
                return Ok(Err(Finding::DamagedBlob { blob, found, used }));
            }
            Err(other) => return Err(other.into()),
        };
        let found = BlobDigest::of(&bytes);
        Ok(if found == blob { Ok(bytes) } else { Err(Finding::DamagedBlob { blob, found, used }) })
    }

    /// The size of a blob; `None` where the store lacks it.
    pub fn size(&self, blob: BlobDigest) -> Result<Option<u64>, AuditError> {
        match self.blobs.size(blob) {
            Err(StoreError::NotAFile { .. }) => Ok(None),
            size => Ok(size?),
        }
    }

    /// A record by the digest of its bytes.
    pub fn record<R: Record>(&self, blob: BlobDigest, used: &str) -> Result<Result<R, Finding>, AuditError> {
        Ok(self.read(blob, used)?.and_then(|bytes| {
            R::from_bytes(&bytes).map_err(|e| Finding::BadRecord {
                blob,
                used: used.to_owned(),
                reason: e.to_string(),
            })
        }))
    }

    /// The same view, with every output of every standing attempt compared with its digest, not only the
    /// measurement files that are read. The store may spare what it compared before and nobody has touched.
    #[must_use]
    pub fn thorough(self) -> Source<'a> {
        Source { thorough: true, ..self }
    }

    /// Whether an artifact's first blob is there (and sound, where the view is thorough).
    pub fn has(
        &self,
        artifact: Artifact,
        used: impl FnOnce() -> String,
    ) -> Result<Result<(), Finding>, AuditError> {
        let blob = artifact.blob();
        let there = match self.thorough {
            false => match self.blobs.size(blob) {
                Err(StoreError::NotAFile { .. }) => false,
                size => size?.is_some(),
            },
            true => match self.blobs.contains(blob) {
                Err(StoreError::Corrupt { found, .. }) => {
                    return Ok(Err(Finding::DamagedBlob { blob, found, used: used() }));
                }
                Err(StoreError::NotAFile { .. }) => false,
                other => other?,
            },
        };
        Ok(if there { Ok(()) } else { Err(Finding::MissingBlob { blob, used: used() }) })
    }

    /// An attempt's record, by its name; `None` where nobody has it or what they have is another record.
    pub fn attempt(&self, attempt: AttemptDigest) -> Result<Option<Attempt>, AuditError> {
        let recorded = self.records.attempt(attempt)?;
        Ok(recorded.map(|recorded| recorded.attempt).filter(|record| record.digest() == attempt))
    }

    /// The attempts at an action (and its digest) whose records are sound, in order, with the faults of the others.
    /// Attempts that were recorded under an earlier encoding are found by the name the action had then, which is
    /// computed here from the action.
    pub fn attempts(
        &self,
        action: &Action,
        digest: ActionDigest,
    ) -> Result<(Trace, Vec<Finding>), AuditError> {
        let (mut sound, mut findings) = (Vec::new(), Vec::new());
        let names = match self.aliases {
            Some(aliases) => aliases.names(self.records, action, digest)?.all,
            None => vec![digest],
        };
        for name in &names {
            for attempt in self.records.trace(*name)? {
                match self.records.attempt(attempt)? {
                    None => findings.push(wrong(digest, attempt, AttemptFault::Absent)),
                    Some(record) => match fault(action, *name, attempt, &record.attempt) {
                        Some(fault) => findings.push(wrong(digest, attempt, fault)),
                        None => sound.push((attempt, record)),
                    },
                }
            }
        }
        if names.len() > 1 {
            sound.sort_by(|(_, a), (_, b)| a.position.cmp(&b.position));
        }
        Ok((sound, findings))
    }
}

fn wrong(action: ActionDigest, attempt: AttemptDigest, fault: AttemptFault) -> Finding {
    Finding::WrongAttempt { action, attempt, fault }
}

fn fault(
    action: &Action,
    asked: ActionDigest,
    name: AttemptDigest,
    record: &Attempt,
) -> Option<AttemptFault> {
    if record.digest() != name {
        return Some(AttemptFault::OtherDigest);
    }
    if record.action != asked {
        return Some(AttemptFault::OtherAction);
    }
    if !record.outcome.succeeded() {
        return None;
    }
    let absent =
        action.outputs.iter().filter(|(name, slot)| !slot.optional && !record.outputs.contains_key(*name));
    let absent: Vec<String> = absent.map(|(name, _)| name.clone()).collect();
    if !absent.is_empty() {
        return Some(AttemptFault::WithoutOutputs(absent));
    }
    let other_kind = |(name, slot): (&String, &avow_model::action::Slot)| {
        let made = record.outputs.get(name)?.artifact;
        (matches!(made, Artifact::Tree(_)) != slot.folder).then(|| name.clone())
    };
    action.outputs.iter().find_map(other_kind).map(AttemptFault::OtherKind)
}
