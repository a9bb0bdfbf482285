//! The built-in stages: operations that train small networks, capture what passes through them, and measure
//! and calibrate neural representations.
//!
//! Each operation is a pure function from input files and parameters to output files: [`run`] reads a
//! [`Call`], computes, and writes. The same call gives the same bytes on every run and for any number of
//! threads (on one level of CPU features); all randomness comes from 31-bit seeds through [`random`], all
//! sums have a fixed order, all transcendental functions come from locked dependencies. Files between stages
//! are safetensors, measurements are tidy JSON Lines.
//!
//! [`signatures`] is the whole table of operations: it is what `spec` checks a stage against. An operation's
//! identity digests the sources and dependencies that it reaches (see the build script), so nobody bumps a
//! version by hand.
//!
//! Each operation is one file under `op/`; it reaches shared code only through `use crate::module::…`, never
//! through this root, because the identity follows those paths. Deliberately absent: an operation never sees
//! a stage name, a cell or a claim, never prints, and never looks at the clock, the environment or the
//! network.

pub mod alignment;
pub mod calibration;
mod call;
mod captured;
pub mod cka;
mod classified;
mod declare;
mod error;
pub mod matrix;
mod network;
pub mod normal;
mod op;
mod pairing;
pub mod random;
mod records;
mod similarity;
mod softmax;
pub mod spectrum;
mod synthetic;
mod tensors;

use std::sync::LazyLock;

use avow_model::op::OpSignature;

pub use crate::call::{Call, Invocation};
pub use crate::error::OpError;
use crate::op::OPERATIONS;

/// Every operation's promise, sorted by name.
pub fn signatures() -> &'static [OpSignature] {
    static SIGNATURES: LazyLock<Vec<OpSignature>> = LazyLock::new(|| {
        let mut all: Vec<_> = OPERATIONS.iter().map(|op| (op.signature)(op.identity)).collect();
        all.sort_by_key(|signature| signature.name);
        all
    });
    &SIGNATURES
}

/// Runs one operation: reads the call's inputs, writes its outputs and its measurements.
///
/// On an error some outputs may have been written and none may be trusted.
///
/// # Errors
/// See [`OpError`]; the call is checked against the signature before any file is read.
pub fn run(name: &str, call: &Call) -> Result<(), OpError> {
    for operation in OPERATIONS {
        let signature = (operation.signature)(operation.identity);
        if signature.name == name {
            return (operation.run)(&Invocation::check(&signature, call)?);
        }
    }
    Err(OpError::UnknownOp { name: name.to_owned() })
}
