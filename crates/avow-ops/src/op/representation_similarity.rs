//! `representation/similarity`: how alike two representations of the same rows are.

use avow_model::op::{Kind, OpSignature};

use crate::call::Invocation;
use crate::declare::measurement;
use crate::error::OpError;
use crate::records::Records;
use crate::similarity::{self, prepared};

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "representation/similarity",
        kind: Some(Kind::Measure),
        about: "measures the similarity of two representations whose rows are paired",
        inputs: similarity::inputs().into(),
        outputs: vec![],
        parameters: similarity::parameters().into(),
        measurements: vec![measurement("{metric}", &[], Some((0.0, 1.0)), "the similarity")],
        identity,
    }
}

/// Measures and records one number.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let score = prepared(call, 0)?.score();
    let mut records = Records::default();
    records.add(call.choice("metric"), score, &[]);
    records.write(&call.measurements())
}
