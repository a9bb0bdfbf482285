//! Why a member runs, waits, is reused or is not reached: values that `explain` and `plan` put into words.

use avow_model::attempt::Outcome;
use avow_model::digest::{AttemptDigest, BlobDigest};
use avow_model::expand::Member;
use avow_model::reads::Drift;

/// Why a member is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Some inputs have not been made.
    Waits {
        /// How many producers are still to come.
        producers: u32,
    },
    /// Its action is being looked up.
    Looking,
    /// Another member with the same action is under way.
    SameAction {
        /// That member.
        other: Member,
    },
    /// It will run when slots are free.
    Queued(Miss),
    /// It is running.
    Running(Miss),
    /// Another run executes its action.
    Elsewhere,
    /// An earlier attempt stands for it.
    Reused {
        /// That attempt.
        attempt: AttemptDigest,
    },
    /// It ran.
    Ran {
        /// Why it had to.
        miss: Miss,
        /// How it ended.
        outcome: Outcome,
    },
    /// A member it needs failed.
    Blocked {
        /// The first such member.
        by: Member,
    },
    /// The run stopped before it was its turn.
    NotReached,
}

/// Why no earlier attempt can stand for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// This action was never carried out.
    NeverRun,
    /// It was, without success.
    OnlyFailures {
        /// How the last attempt ended.
        last: Outcome,
    },
    /// It succeeded, but a blob it promised to keep is gone or damaged.
    BlobMissing {
        /// The first such blob.
        blob: BlobDigest,
    },
    /// It succeeded, and what it made was collected from the store.
    Collected {
        /// When, in milliseconds since 1970.
        at: i64,
    },
    /// It succeeded, but something it was seen to read is not as it was.
    ReadDrifted(Drift),
    /// It succeeded, and was declared wrong since.
    Invalidated,
    /// The stage declares `reuse: never`.
    Volatile,
    /// The stage declares `reuse: same-host`, and it ran elsewhere.
    OtherHost {
        /// Where.
        host: String,
    },
}
