//! `representation/alignment-null`: what an alignment would be if the neurons of the two matrices had nothing
//! to do with each other.
//!
//! Each layer and relation has its own permutations of neurons. One further permuted pairing, not part of the
//! null, is the negative control: its distance from the null mean should be nothing but noise.

use avow_model::op::{Kind, OpSignature};
use avow_model::value::Value;

use crate::alignment::{Form, Relation, Statistic};
use crate::calibration::{self, Calibration, Level, level_of};
use crate::call::Invocation;
use crate::captured::{self, layers};
use crate::declare::{input, measurement};
use crate::error::OpError;
use crate::random::Source;
use crate::records::Records;

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    let value = |name, low, high, about| measurement(name, &["layer", "relation"], Some((low, high)), about);
    OpSignature {
        name: "representation/alignment-null",
        kind: Some(Kind::Calibrate),
        about: "compares six alignments per layer with their values under random pairings of neurons",
        inputs: vec![input(
            "capture",
            "`h_a.L`, `h_b.L`, `g_a.L`, `g_b.L`, `w.L` as `mlp/capture` writes them",
        )],
        outputs: vec![],
        parameters: captured::parameters().into_iter().chain(calibration::parameters(99)).collect(),
        measurements: vec![
            value("alignment-score", -1.0, 1.0, "the alignment itself"),
            value("alignment-p", 0.0, 1.0, "(1 + null values at least as large)/(K + 1)"),
            value(
                "alignment-threshold",
                -1.0,
                1.0,
                "the (1 - alpha) order statistic of null values and score",
            ),
            value("alignment-excess", -2.0, 2.0, "the score minus the mean of the null values"),
            value("alignment-null-mean", -1.0, 1.0, "the mean of the null values"),
            value("alignment-calibrated", 0.0, 1.0, "(score - threshold)/(1 - threshold), cut to [0, 1]"),
            value(
                "alignment-control",
                -2.0,
                2.0,
                "one further permuted pairing minus the mean of the null values",
            ),
        ],
        identity,
    }
}

/// Draws a null per layer and relation and records seven numbers each.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let (permutations, level) = level_of(call)?;
    let (form, statistic) = (Form::of(call.choice("form")), Statistic::of(call.choice("statistic")));
    let mut records = Records::default();
    for (number, layer) in layers(call)? {
        for (name, relation) in layer.relations(form, statistic) {
            let domain = format!("representation/alignment-null {number} {name}");
            let source = Source::new(&domain, call.seed("seed"));
            let (calibration, control) = calibrated(&relation, permutations, level, &source);
            let keys = [("layer", Value::Int(number as i64)), ("relation", Value::from(name))];
            calibration.record(&mut records, "alignment", &keys);
            records.add("alignment-control", control, &keys);
        }
    }
    records.write(&call.measurements())
}

/// The calibration, and the control's distance from the null mean.
fn calibrated(relation: &Relation, permutations: usize, level: Level, source: &Source) -> (Calibration, f64) {
    let permuted =
        |index: usize| relation.permuted(&source.draw(index as u64).permutation(relation.neurons()));
    let null: Vec<f64> = (0..permutations).map(permuted).collect();
    let calibration = Calibration::new(relation.score(), &null, level, 1.0);
    (calibration, permuted(permutations) - calibration.null_mean)
}
