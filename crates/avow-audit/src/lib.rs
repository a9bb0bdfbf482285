//! What the numbers say, from records alone.
//!
//! The crate reads a plan, a store, a ledger and journals, and answers: which attempt stands for each member
//! ([`evidence`]), which numbers were measured ([`measure`]), how they form units ([`join`]), what each claim
//! comes to ([`judge`]), what differs from what was registered ([`deviation`]), what a number rests on
//! ([`lineage`]), which stored values a manuscript may print ([`stock`]), and what is damaged ([`finding`], [`integrity`]). [`report::audit`] does all of it.
//!
//! It trusts nobody. Actions are bound anew from the plan, attempts must have the digest they are named by, blobs
//! are hashed as they are read, and what was planned is computed, never inferred from what exists. It shares the
//! vocabulary of `avow-model` with the crates that made the numbers and nothing else: no engine, executor or
//! planner is reachable from here.
//!
//! Everything is a pure value apart from reading. Values carry codes, numbers and digests; sentences, colours and
//! exit codes are the tool's. Absent: writing of any kind, clocks, processes, networks.

pub mod amended;
pub mod beside;
pub mod compare;
pub mod denominators;
pub mod deviation;
pub mod evidence;
pub mod finding;
pub mod heads;
pub mod hiding;
pub mod holdout;
pub mod integrity;
pub mod join;
pub mod judge;
pub mod lineage;
pub mod measure;
pub mod noise;
pub mod planned;
pub mod registration;
pub mod report;
pub mod same;
pub mod search;
pub mod source;
pub mod stock;
pub mod withdrawn;
pub mod witness;

pub use deviation::Deviation;
pub use evidence::Evidence;
pub use finding::Finding;
pub use hiding::Hiding;
pub use judge::{Verdict, Word};
pub use registration::{Registration, Standing};
pub use report::{Audit, Report, audit};
pub use source::{AuditError, Source};
