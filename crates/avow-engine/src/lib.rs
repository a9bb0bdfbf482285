//! The loop that joins planner, store and executor, and the journal it keeps.
//!
//! [`Session`] holds what one process needs to act in a project: the run lock, the blobs, the index. Opening
//! one also puts the past in order: journals whose runner died are closed, their attempts recorded as lost,
//! their surviving processes ended. [`run()`] then carries a plan out. Its loop has no condition about stages:
//! it tells the planner what happened, dispatches what the planner answers, and journals it.
//!
//! The order of durability is always blobs, journal line, index. What ends together is made durable together,
//! beside the work (`commit.rs`), so that the cost per stage stays far below one disk flush.
//!
//! [`register()`] freezes a plan in the ledger. Nothing here judges a claim or prints a word.

mod clock;
mod commit;
mod continued;
mod error;
mod judge;
mod lookup;
mod notice;
mod others;
mod recover;
mod register;
mod run;
mod session;
mod settled;
mod verify;

#[cfg(debug_assertions)]
pub use clock::shift;
pub use clock::{now, random_hex};
pub use error::EngineError;
pub use judge::{Followed, Judge};
pub use lookup::{Lookup, Sought};
pub use notice::{Notice, Report};
pub use recover::Recovered;
pub use register::{
    Freeze, Registered, Registration, adopt, amend, current_registration, embargo, invalidate, ledger_of,
    open, record_copy, record_exposure, register, retract,
};
pub use run::{Options, run, run_adaptive};
pub use session::{Session, rebuild_index};
pub use settled::{Settling, can_settle, run_unchanged};
pub use verify::{Verification, Verified, Verify};
