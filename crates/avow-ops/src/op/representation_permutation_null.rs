//! `representation/permutation-null`: what a similarity score would be if the rows of `y` had nothing to do
//! with those of `x`.

use avow_model::op::{Kind, OpSignature};

use crate::calibration::{self, Calibration, level_of};
use crate::call::Invocation;
use crate::declare::measurement;
use crate::error::OpError;
use crate::random::Source;
use crate::records::Records;
use crate::similarity::{self, prepared};

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    let value = |name, low, about| measurement(name, &[], Some((low, 1.0)), about);
    OpSignature {
        name: "representation/permutation-null",
        kind: Some(Kind::Calibrate),
        about: "compares a similarity with its values under random pairings of the rows",
        inputs: similarity::inputs().into(),
        outputs: vec![],
        parameters: similarity::parameters().into_iter().chain(calibration::parameters(199)).collect(),
        measurements: vec![
            value("{metric}-score", 0.0, "the similarity itself"),
            value("{metric}-p", 0.0, "(1 + null values at least as large)/(K + 1)"),
            value("{metric}-threshold", 0.0, "the (1 - alpha) order statistic of null values and score"),
            value("{metric}-excess", -1.0, "the score minus the mean of the null values"),
            value("{metric}-null-mean", 0.0, "the mean of the null values"),
            value("{metric}-calibrated", 0.0, "(score - threshold)/(1 - threshold), cut to [0, 1]"),
        ],
        identity,
    }
}

/// Draws the null and records six numbers.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let (permutations, level) = level_of(call)?;
    let metric = prepared(call, permutations)?;
    let source = Source::new("representation/permutation-null", call.seed("seed"));
    let null = metric.null(permutations, &source);
    let mut records = Records::default();
    Calibration::new(metric.score(), &null, level, 1.0).record(&mut records, call.choice("metric"), &[]);
    records.write(&call.measurements())
}
