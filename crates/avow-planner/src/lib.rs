//! From events to commands: what is ready, what is reused, what runs next, and why.
//!
//! [`Planner`] is a pure state machine over a directed graph of declared stages. It is told what happened
//! ([`Event`]) and answers with what should happen now ([`Command`]); its caller does it. It knows no clock,
//! file, process or thread, so a whole schedule can be tested by feeding events in any order.
//!
//! Invariants, recomputed from scratch by [`Planner::sanity_check`] after every step of the tests: every
//! cached count agrees with the member states, no two members of one action are in flight together, the
//! slots in use are those of running members, and an unfinished planner always has something owed, in
//! flight or queued.

mod edges;
mod graph;
mod machine;
mod members;
mod reason;
mod slots;
mod target;

pub use graph::{Graph, GraphError};
pub use machine::{Command, Event, Found, Planner, Settings, Tally};
pub use reason::{Miss, Reason};
pub use slots::{Request, Slots, TooLarge};
pub use target::{Target, TargetError};
