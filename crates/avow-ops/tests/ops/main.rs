//! What the built-in stages promise, shown from outside: reference values, traps, contracts, bytes and science.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bytes;
mod contract;
mod identity;
mod network;
mod random;
mod reference;
mod science;
mod support;
mod traps;
