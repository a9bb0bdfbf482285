//! Carrying out one action, and saying honestly how it ended.
//!
//! [`Executor::run`] takes an [`Action`], its [`Terms`] and an opaque [`AttemptId`], and answers with an
//! [`Execution`]: an [`Outcome`] with what was written and used. It is never handed a stage name, a plan or a
//! claim, so it cannot treat one arm of an experiment differently from another. A program that fails is a value;
//! [`ExecError`] is only for faults of our own.
//!
//! [`LocalExecutor`] runs processes of this machine, each in a private folder that holds only what was declared,
//! with only the declared environment, confined as far as asked and possible ([`Confinement`]), in a
//! session of its own that is ended whole. [`fake::FakeExecutor`] follows a script, for tests of
//! what stands above. [`fetch`] brings in a file from an address with an expected digest; [`end_survivors`] ends
//! what a killed predecessor left running, and [`clear_leftovers`] removes the folders it left.
//!
//! Linux only: it rests on child subreapers, process descriptors, `/proc` and Landlock.
//!
//! Deliberately absent: when to run something and how much at once, whether to run it again, the journal, words
//! for people.

mod abandon;
pub mod authority;
mod cancel;
mod checkpoint;
mod confine;
mod denied;
pub mod environment;
pub mod fake;
mod family;
mod fault;
pub mod fetch;
mod folder;
mod host;
pub mod identity;
pub mod image;
mod inputs;
mod local;
mod notify;
mod observe;
mod outputs;
mod pool;
mod present;
mod proc;
mod program;
mod scrub;
mod secret;
mod streams;
mod supervise;
mod survivors;
mod sys;
pub mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Host, Outcome, Produced, Timestamp, Usage};
use avow_model::digest::{BlobDigest, ReadsDigest};
use avow_model::plan::Terms;

pub use cancel::{Cancel, Level};
pub use checkpoint::{rescue_checkpoint, rescue_checkpoints, waiting_checkpoint};
pub use confine::{Bounds, Confinement, NoSuchLevel};
pub use denied::{Barred, Denial, denials, speaks_of_denial};
pub use environment::Base;
pub use family::become_subreaper;
pub use fault::ExecError;
pub use folder::{KEPT, attempt_folders, clear_leftovers, logs};
pub use host::{Probe, describe_host, probe, total_memory};
pub use local::{Config, LocalExecutor};
pub use pool::{AnyExecutor, Pool, Site, Unplaceable};
pub use present::machine;
pub use proc::process_start;
pub use program::Shells;
pub use secret::{SHORTEST_SECRET, SecretError, Secrets};
pub use survivors::{Recorded, end_survivors};

/// Runs one action to an outcome.
pub trait Executor: Send + Sync {
    /// Carries out `action` under `terms`. Dropping the future ends the attempt.
    ///
    /// # Errors
    /// Only for faults of our own; a stage that fails is an [`Outcome`].
    fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> impl Future<Output = Result<Execution, ExecError>> + Send;
}

/// Called once, with process id and start time in clock ticks since boot, as soon as there is a process.
pub type OnSpawn = Box<dyn FnOnce(i32, u64) + Send>;

/// How the caller follows an attempt.
pub struct Watch {
    /// Told of the process. Called on the thread of the attempt; it should return soon.
    pub on_spawn: Option<OnSpawn>,
    /// Asked to end.
    pub cancel: Cancel,
    /// Values that hold for this attempt in the place of the local executor's own.
    pub given: Option<Given>,
    /// Whether it begins from nothing, and leaves nothing for the next attempt.
    pub fresh: bool,
}

/// What a local executor that works for others is given for one attempt.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The values of secrets that terms may name.
    pub secrets: Secrets,
    /// Where checkpoint folders are kept between attempts; `None`: nowhere.
    pub checkpoints: Option<PathBuf>,
}

impl Watch {
    /// Without a callback.
    pub fn new(cancel: Cancel) -> Self {
        Self { on_spawn: None, cancel, given: None, fresh: false }
    }

    /// Without a checkpoint of earlier attempts, and without one for later ones.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// With values for this attempt.
    pub fn given(mut self, given: Given) -> Self {
        self.given = Some(given);
        self
    }

    /// Calls `callback` with process id and start time.
    pub fn on_spawn(mut self, callback: impl FnOnce(i32, u64) + Send + 'static) -> Self {
        self.on_spawn = Some(Box::new(callback));
        self
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// How one attempt went.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// How it ended.
    pub outcome: Outcome,
    /// What it wrote, by output name; empty unless it succeeded. The blobs are in the store, not yet synced.
    pub outputs: BTreeMap<String, Produced>,
    /// Standard output, whole; `None` where it is empty.
    pub stdout: Option<BlobDigest>,
    /// Standard error, whole; `None` where it is empty.
    pub stderr: Option<BlobDigest>,
    /// What it was seen to read beyond its inputs, where it was observed and ended by itself. The record is in the
    /// store, not yet synced.
    pub reads: Option<ReadsDigest>,
    /// What it used. The largest resident set is 0 for a program that was both smaller than Avow itself and gone
    /// within 20 ms: the kernel does not say then.
    pub usage: Usage,
    /// Where it ran.
    pub host: Host,
    /// When it was started.
    pub started: Timestamp,
    /// When it was over.
    pub finished: Timestamp,
    /// The attempts whose checkpoint it went on from, oldest first.
    pub continues: Vec<AttemptId>,
}

impl Execution {
    /// An end with nothing written and nothing used, now.
    pub(crate) fn ended(outcome: Outcome, host: Host) -> Execution {
        let at = local::now();
        Execution {
            outcome,
            outputs: BTreeMap::new(),
            stdout: None,
            stderr: None,
            reads: None,
            usage: Usage::default(),
            host,
            started: at,
            finished: at,
            continues: Vec::new(),
        }
    }
}
