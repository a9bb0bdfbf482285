//! The engine over real project folders, with an executor that follows a script instead of starting processes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bench;
mod crash;
mod damage;
mod durability;
mod outcomes;
mod registration;
mod reuse;
mod settled;
mod stopping;
