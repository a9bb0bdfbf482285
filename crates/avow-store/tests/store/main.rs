//! The store held to its contract: one suite per trait on every implementation, then each file format against
//! crashes and damage.

#![expect(clippy::unwrap_used, reason = "tests")]

mod blobs;
mod catalogue;
mod check;
mod fixture;
mod ingest;
mod journal;
mod ledger;
mod lock;
mod materialise;
mod receipt;
mod records;
mod seam;
mod shared_index;
