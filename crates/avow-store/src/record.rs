//! The fast index over what the journals say: which attempts an action had, and which a member had.
//!
//! [`RecordStore`] is the contract; [`SledIndex`] keeps it on disk for the process that runs, [`MemoryIndex`] in
//! memory for commands that read while another process runs. Both hold nothing that the journals do not hold,
//! and both answer in one order: by the opening time of the journal, its name, and the line in it, so that an
//! index built line by line and one rebuilt from the journals are equal.

mod memory;
mod sled_index;

use avow_model::attempt::{Attempt, Timestamp};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, AttemptDigest};
use serde::{Deserialize, Serialize};

pub use memory::MemoryIndex;
pub use sled_index::SledIndex;

use crate::error::StoreError;

/// Where an attempt stands in the journals. The order of the fields is the order of attempts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// When the journal's first line was written.
    pub opened: Timestamp,
    /// The run.
    pub run: String,
    /// The line of the `Finished` event, counted from 1.
    pub line: u64,
}

/// An attempt with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Where it stands.
    pub position: Position,
    /// The experiment whose run made it.
    pub experiment: String,
    /// The label of the member it was made for.
    pub member: String,
    /// The attempt.
    pub attempt: Attempt,
}

impl Recorded {
    /// The attempt's name.
    pub fn digest(&self) -> AttemptDigest {
        self.attempt.digest()
    }
}

/// An index of attempts.
pub trait RecordStore: Send + Sync {
    /// Adds an attempt and returns its name. Adding it again at the same place changes nothing.
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError>;

    /// Adds many attempts, in order; cheaper than one by one where the store can group them.
    fn insert_all(&self, recorded: &[Recorded]) -> Result<(), StoreError> {
        recorded.iter().try_for_each(|one| self.insert(one).map(drop))
    }

    /// The attempt with this name.
    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError>;

    /// All attempts at an action that were not collected, in order.
    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError>;

    /// When the latest of the attempts at an action was collected, that [`RecordStore::trace`] leaves out.
    fn collected(&self, action: ActionDigest) -> Result<Option<Timestamp>, StoreError> {
        let _ = action;
        Ok(None)
    }

    /// All attempts that an experiment's runs made for the member with this label, in order: the last is the one
    /// that `explain` compares with.
    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError>;

    /// All attempts that an experiment's runs made for any member of a stage (the label `stage` or
    /// `stage[…]`), in order, with the member's label: for prices, and for `explain` where a label is new.
    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError>;

    /// The latest of them, at most so many, in order.
    fn latest_of_stage(
        &self,
        experiment: &str,
        stage: &str,
        most: usize,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        let mut all = self.stage_history(experiment, stage)?;
        let older = all.len().saturating_sub(most);
        all.drain(..older);
        Ok(all)
    }

    /// Everything, in order.
    fn entries(&self) -> Result<Vec<Recorded>, StoreError>;
}

/// The stage whose member a label names.
pub(crate) fn stage_of(label: &str) -> &str {
    label.split('[').next().unwrap_or(label)
}

/// Whether a label names a member of a stage.
pub(crate) fn of_stage(label: &str, stage: &str) -> bool {
    label.strip_prefix(stage).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}
