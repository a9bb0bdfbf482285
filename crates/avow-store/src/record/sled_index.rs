//! The index on disk, in sled: one tree per kind.
//!
//! | tree | key | value |
//! |---|---|---|
//! | `attempts` | attempt digest | [`Recorded`] as JSON |
//! | `traces` | action digest, place | attempt digest |
//! | `members` | experiment, `\0`, member, `\0`, place | attempt digest |
//! | `journals` | run | length in bytes of the journal when everything in it was indexed, and when it was last written to then |
//! | `stamps` | device, inode | size, times, digest |
//!
//! A place sorts as [`Position`] does: opening time, run, line. sled's own flush is no promise about a power
//! cut, and it checks its pages only in part; hence nothing here is believed, the journals are.
//!
//! Nothing is written as one of sled's batches: each of them hands two pieces to the disk and wakes four threads, and
//! nothing here has to appear at once. What a kill takes from the buffer is read again from the journals.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use avow_model::attempt::Timestamp;
use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};

use super::{Position, RecordStore, Recorded, of_stage};
use crate::disk;
use crate::error::{Context, StoreError};
use crate::project::JOURNALS;
use crate::stamp::{FileStamp, StampCache};

/// Bytes of pages that sled keeps in memory; its default of 1 GiB is out of proportion to an index.
const CACHE: u64 = 24 << 20;

/// A journal as it was when everything in it was indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its length in bytes.
    pub(crate) length: u64,
    /// When it was last written to, in nanoseconds since 1970, where that was noted.
    pub(crate) modified: Option<i64>,
}

impl Noted {
    fn unreadable() -> StoreError {
        StoreError::IndexValue { what: "journal length" }
    }

    /// Earlier only the length was noted.
    fn read(bytes: &[u8]) -> Result<Noted, StoreError> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(Noted::unreadable)?;
        let modified = match rest {
            [] => None,
            rest => Some(i64::from_be_bytes(rest.try_into().map_err(|_| Noted::unreadable())?)),
        };
        let modified = modified.filter(|time| *time != 0);
        Ok(Noted { length: u64::from_be_bytes(*length), modified })
    }
}

/// An index in a folder that one process at a time can open.
#[derive(Debug)]
pub struct SledIndex {
    folder: PathBuf,
    collected: HashMap<AttemptDigest, Timestamp>,
    database: sled::Db,
    attempts: sled::Tree,
    traces: sled::Tree,
    members: sled::Tree,
    journals: sled::Tree,
    stamps: sled::Tree,
}

impl SledIndex {
    /// Opens or creates the index in a folder, without a look at the journals. Commands use
    /// [`crate::index::open_index`].
    pub fn open(folder: &Path) -> Result<SledIndex, StoreError> {
        let database =
            sled::Config::new().path(folder).cache_capacity(CACHE).flush_every_ms(Some(1000)).open()?;
        Ok(SledIndex {
            attempts: database.open_tree("attempts")?,
            traces: database.open_tree("traces")?,
            members: database.open_tree("members")?,
            journals: database.open_tree("journals")?,
            stamps: database.open_tree("stamps")?,
            database,
            folder: folder.to_owned(),
            collected: HashMap::new(),
        })
    }

    /// The same index, knowing which attempts were collected.
    #[must_use]
    pub fn with_collected(self, collected: HashMap<AttemptDigest, Timestamp>) -> SledIndex {
        SledIndex { collected, ..self }
    }

    /// Notes that everything in the first `length` bytes of a run's journal is in the index, so that the next
    /// command need not read it again. To be called when a run ends; without it the next command looks.
    pub fn caught_up(&self, run: &str, length: u64) -> Result<(), StoreError> {
        // The note must not outlive what it notes.
        self.flush()?;
        self.stand_before()?;
        let mut noted = length.to_be_bytes().to_vec();
        noted.extend(self.modified(run).unwrap_or_default().to_be_bytes());
        self.journals.insert(run, noted)?;
        Ok(())
    }

    /// When the journal of a run was last written to; an index that lies beside no journals does not know.
    fn modified(&self, run: &str) -> Option<i64> {
        let path = self.folder.parent()?.join(JOURNALS).join(format!("{run}.jsonl"));
        Some(FileStamp::of(&std::fs::metadata(path).ok()?).modified)
    }

    /// What [`SledIndex::caught_up`] noted, by run.
    pub(crate) fn indexed(&self) -> Result<Vec<(String, Noted)>, StoreError> {
        self.journals
            .iter()
            .map(|item| {
                let (run, noted) = item?;
                let run = String::from_utf8(run.to_vec()).map_err(|_| Noted::unreadable())?;
                Ok((run, Noted::read(&noted)?))
            })
            .collect()
    }

    /// What [`SledIndex::caught_up`] noted of one run.
    pub(crate) fn indexed_length(&self, run: &str) -> Result<Option<u64>, StoreError> {
        let noted = self.journals.get(run)?.map(|noted| Noted::read(&noted)).transpose()?;
        Ok(noted.map(|noted| noted.length))
    }

    /// Hands everything to the operating system; a crash of the process then loses nothing.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.stand_before()?;
        self.database.flush()?;
        Ok(())
    }
}

impl SledIndex {
    /// Where a test can let a change go wrong.
    fn stand_before(&self) -> Result<(), StoreError> {
        disk::index(&self.folder).context("write", &self.folder)
    }
}

/// Bytes that sort as the position does.
fn place(position: &Position) -> Vec<u8> {
    let mut key = Vec::with_capacity(position.run.len() + 17);
    // Flipping the sign bit makes negative times sort before positive ones.
    key.extend((position.opened as u64 ^ 1 << 63).to_be_bytes());
    key.extend(position.run.as_bytes());
    key.push(0);
    key.extend(position.line.to_be_bytes());
    key
}

fn member_prefix(experiment: &str, member: &str) -> Vec<u8> {
    [experiment.as_bytes(), &[0], member.as_bytes(), &[0]].concat()
}

fn digest_of(value: &[u8]) -> Result<[u8; 32], StoreError> {
    value.try_into().map_err(|_| StoreError::IndexValue { what: "digest" })
}

fn recorded(value: &[u8]) -> Result<Recorded, StoreError> {
    serde_json::from_slice(value).map_err(|_| StoreError::IndexValue { what: "attempt" })
}

fn digests(found: sled::Iter) -> Result<Vec<AttemptDigest>, StoreError> {
    found.values().map(|value| Ok(AttemptDigest::from_bytes(digest_of(&value?)?))).collect()
}

impl RecordStore for SledIndex {
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        self.insert_all(std::slice::from_ref(recorded))?;
        Ok(recorded.digest())
    }

    fn insert_all(&self, recorded: &[Recorded]) -> Result<(), StoreError> {
        let digests: Vec<AttemptDigest> = recorded.iter().map(Recorded::digest).collect();
        let named = || recorded.iter().zip(&digests);
        // The records first: a trace never names an attempt that is not there.
        self.stand_before()?;
        for (one, digest) in named() {
            let value = serde_json::to_vec(one).expect("attempts hold only JSON values");
            self.attempts.insert(digest.as_bytes(), value)?;
        }
        self.stand_before()?;
        for (one, digest) in named() {
            let key = [one.attempt.action.as_bytes(), place(&one.position).as_slice()].concat();
            self.traces.insert(key, digest.as_bytes())?;
        }
        self.stand_before()?;
        for (one, digest) in named() {
            let key = [member_prefix(&one.experiment, &one.member), place(&one.position)].concat();
            self.members.insert(key, digest.as_bytes())?;
        }
        Ok(())
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        let Some(value) = self.attempts.get(digest.as_bytes())? else { return Ok(None) };
        let found = recorded(&value)?;
        // A flipped bit in the value must not become somebody's provenance.
        if found.digest() == digest {
            Ok(Some(found))
        } else {
            Err(StoreError::IndexValue { what: "attempt" })
        }
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        let mut trace = digests(self.traces.scan_prefix(action.as_bytes()))?;
        trace.retain(|attempt| !self.collected.contains_key(attempt));
        Ok(trace)
    }

    fn collected(&self, action: ActionDigest) -> Result<Option<Timestamp>, StoreError> {
        if self.collected.is_empty() {
            return Ok(None);
        }
        let all = digests(self.traces.scan_prefix(action.as_bytes()))?;
        Ok(all.iter().filter_map(|attempt| self.collected.get(attempt)).max().copied())
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        digests(self.members.scan_prefix(member_prefix(experiment, member)))
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        let unreadable = || StoreError::IndexValue { what: "member" };
        let before = experiment.len() + 1;
        let mut found = Vec::new();
        for item in self.members.scan_prefix([experiment.as_bytes(), &[0], stage.as_bytes()].concat()) {
            let (key, value) = item?;
            let rest = &key[before..];
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(unreadable)?;
            let label = std::str::from_utf8(&rest[..end]).map_err(|_| unreadable())?;
            if of_stage(label, stage) {
                let digest = AttemptDigest::from_bytes(digest_of(&value)?);
                found.push((rest[end + 1..].to_vec(), label.to_owned(), digest));
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, label, digest)| (label, digest)).collect())
    }

    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        let all = self.attempts.iter().values().map(|value| recorded(&value?));
        let mut all = all.collect::<Result<Vec<_>, StoreError>>()?;
        all.sort_by(|a, b| a.position.cmp(&b.position));
        Ok(all)
    }
}

impl StampCache for SledIndex {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let Some(value) = self.stamps.get(stamp.identity())? else { return Ok(None) };
        let (state, digest) = value.split_at_checked(24).ok_or(StoreError::IndexValue { what: "stamp" })?;
        if state == stamp.state() {
            digest_of(digest).map(|d| Some(BlobDigest::from_bytes(d)))
        } else {
            Ok(None)
        }
    }

    fn earlier_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let Some(value) = self.stamps.get(stamp.identity())? else { return Ok(None) };
        let (state, digest) = value.split_at_checked(24).ok_or(StoreError::IndexValue { what: "stamp" })?;
        if !stamp.is_as_large(state) {
            return Ok(None);
        }
        digest_of(digest).map(|d| Some(BlobDigest::from_bytes(d)))
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.stand_before()?;
        for (stamp, digest) in entries {
            let value = [stamp.state().as_slice(), digest.as_bytes()].concat();
            self.stamps.insert(stamp.identity(), value)?;
        }
        Ok(())
    }
}
