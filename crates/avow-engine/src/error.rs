//! Our own faults, and those of the machine under us. A failing stage is none of them.

use avow_exec::ExecError;
use avow_model::digest::RegistrationDigest;
use avow_model::ledger::LedgerError;
use avow_model::ledger::embargo::Mismatch;
use avow_planner::{GraphError, TooLarge};
use avow_store::StoreError;
use avow_store::lock::LockError;

/// Why a run or a registration could not go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The run lock.
    #[error("this project cannot be run in now")]
    Lock(#[from] LockError),
    /// The executor.
    #[error("the executor failed")]
    Exec(#[from] ExecError),
    /// The ledger.
    #[error("the registration ledger cannot take a line")]
    Ledger(#[from] LedgerError),
    /// The plan's graph.
    #[error("the plan cannot be carried out")]
    Graph(#[from] GraphError),
    /// A stage asks for more than there is.
    #[error("the stage `{stage}` cannot run here")]
    TooLarge {
        /// The stage.
        stage: String,
        /// What it asks for.
        source: TooLarge,
    },
    /// What a search rests on cannot be read.
    #[error("the measurements that a search rests on cannot be read")]
    Judge(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The operating system gave no random bytes.
    #[error("no random bytes could be had")]
    Random(#[source] std::io::Error),
    /// The plan is registered already.
    #[error("this plan is registered already")]
    AlreadyRegistered,
    /// Another plan is registered.
    #[error("another plan is registered for this experiment")]
    OtherRegistered,
    /// There is nothing to amend.
    #[error("no plan is registered for this experiment")]
    NotRegistered,
    /// Nothing stands against the registration that was to be chosen.
    #[error("{0} is no registration that another one stands against")]
    NoRival(RegistrationDigest),
    /// A ledger whose lines show already what an embargo would hide.
    #[error("the ledger has lines already, which name what was run")]
    Begun,
    /// There is no commitment to open.
    #[error("the ledger has no commitment that is not opened")]
    NoCommitment,
    /// Nothing here opens what is closed.
    #[error("{0} of its commitments are not opened, and the private files that open them are not here")]
    Lost(usize),
    /// What was given does not open a commitment.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The project has another ledger of the name that an opened one would get.
    #[error("there is another ledger of `{0}` in the project")]
    Taken(String),
    /// A part of the engine panicked.
    #[error("a task of the engine panicked: {0}")]
    Panic(String),
}
