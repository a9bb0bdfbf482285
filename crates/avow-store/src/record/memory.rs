//! The index as maps, built from journals for one command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use avow_model::attempt::Timestamp;
use avow_model::digest::{ActionDigest, AttemptDigest};

use super::{Position, RecordStore, Recorded, of_stage};
use crate::error::StoreError;

/// An index that is gone with its value.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    maps: Mutex<Maps>,
    collected: HashMap<AttemptDigest, Timestamp>,
}

#[derive(Debug, Default)]
struct Maps {
    attempts: BTreeMap<AttemptDigest, Recorded>,
    traces: BTreeMap<ActionDigest, BTreeSet<(Position, AttemptDigest)>>,
    /// By experiment, then by member.
    members: BTreeMap<String, BTreeMap<String, BTreeSet<(Position, AttemptDigest)>>>,
}

impl MemoryIndex {
    /// An empty index.
    pub fn new() -> MemoryIndex {
        MemoryIndex::default()
    }

    /// An empty index that knows which attempts were collected.
    pub fn with_collected(collected: HashMap<AttemptDigest, Timestamp>) -> MemoryIndex {
        MemoryIndex { maps: Mutex::default(), collected }
    }

    fn maps(&self) -> MutexGuard<'_, Maps> {
        // The maps hold only values that are whole, so a panic elsewhere does not make them wrong.
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digests(places: Option<&BTreeSet<(Position, AttemptDigest)>>) -> Vec<AttemptDigest> {
    places.into_iter().flatten().map(|(_, digest)| *digest).collect()
}

impl RecordStore for MemoryIndex {
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        let digest = recorded.digest();
        let place = (recorded.position.clone(), digest);
        let mut maps = self.maps();
        maps.traces.entry(recorded.attempt.action).or_default().insert(place.clone());
        let members = maps.members.entry(recorded.experiment.clone()).or_default();
        members.entry(recorded.member.clone()).or_default().insert(place);
        maps.attempts.insert(digest, recorded.clone());
        Ok(digest)
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        Ok(self.maps().attempts.get(&digest).cloned())
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        let mut trace = digests(self.maps().traces.get(&action));
        trace.retain(|attempt| !self.collected.contains_key(attempt));
        Ok(trace)
    }

    fn collected(&self, action: ActionDigest) -> Result<Option<Timestamp>, StoreError> {
        let all = digests(self.maps().traces.get(&action));
        Ok(all.iter().filter_map(|attempt| self.collected.get(attempt)).max().copied())
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        Ok(digests(self.maps().members.get(experiment).and_then(|members| members.get(member))))
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        let maps = self.maps();
        let mut found: Vec<(&Position, &String, AttemptDigest)> = Vec::new();
        for (label, places) in maps.members.get(experiment).into_iter().flatten() {
            if of_stage(label, stage) {
                found.extend(places.iter().map(|(position, digest)| (position, label, *digest)));
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, label, digest)| (label.clone(), digest)).collect())
    }

    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        let mut all: Vec<Recorded> = self.maps().attempts.values().cloned().collect();
        all.sort_by(|a, b| a.position.cmp(&b.position));
        Ok(all)
    }
}
