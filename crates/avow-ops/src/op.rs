//! The table of operations.
//!
//! No operation imports this module: its identity would then reach every other operation.

mod digits_split;
mod mlp_capture;
mod mlp_train;
mod representation_alignment;
mod representation_alignment_null;
mod representation_permutation_null;
mod representation_similarity;
mod synthetic_gaussian;
mod synthetic_relu_rank;
mod synthetic_relu_stack;

use avow_model::op::OpSignature;

use crate::call::Invocation;
use crate::error::OpError;

/// One operation: what it promises, what it does, and what it is made of.
pub(crate) struct Operation {
    /// Its promise, given its identity.
    pub(crate) signature: fn(&'static str) -> OpSignature,
    /// Its work.
    pub(crate) run: fn(&Invocation<'_>) -> Result<(), OpError>,
    /// Hex digest of everything it is compiled from.
    pub(crate) identity: &'static str,
}

/// Joins an operation's module with the identity that the build script computed for its file.
macro_rules! operations {
    ($($module:ident $identity:literal),* $(,)?) => {
        &[$(Operation { signature: $module::signature, run: $module::run, identity: env!($identity) }),*]
    };
}

/// All operations.
pub(crate) const OPERATIONS: &[Operation] = operations![
    digits_split "AVOW_OP_DIGITS_SPLIT",
    mlp_capture "AVOW_OP_MLP_CAPTURE",
    mlp_train "AVOW_OP_MLP_TRAIN",
    representation_alignment "AVOW_OP_REPRESENTATION_ALIGNMENT",
    representation_alignment_null "AVOW_OP_REPRESENTATION_ALIGNMENT_NULL",
    representation_permutation_null "AVOW_OP_REPRESENTATION_PERMUTATION_NULL",
    representation_similarity "AVOW_OP_REPRESENTATION_SIMILARITY",
    synthetic_gaussian "AVOW_OP_SYNTHETIC_GAUSSIAN",
    synthetic_relu_rank "AVOW_OP_SYNTHETIC_RELU_RANK",
    synthetic_relu_stack "AVOW_OP_SYNTHETIC_RELU_STACK",
];
