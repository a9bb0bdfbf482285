//! `representation/alignment`: how representations, weights and gradients of a layer are aligned, in six
//! relations.

use avow_model::op::{Kind, OpSignature};
use avow_model::value::Value;

use crate::alignment::{Form, Statistic};
use crate::call::Invocation;
use crate::captured::{self, layers};
use crate::declare::{input, measurement};
use crate::error::OpError;
use crate::records::Records;

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "representation/alignment",
        kind: Some(Kind::Measure),
        about: "measures six alignments of representations, weights and gradients per layer",
        inputs: vec![input(
            "capture",
            "`h_a.L`, `h_b.L`, `g_a.L`, `g_b.L`, `w.L` as `mlp/capture` writes them",
        )],
        outputs: vec![],
        parameters: captured::parameters().into(),
        measurements: vec![measurement(
            "alignment",
            &["layer", "relation"],
            Some((-1.0, 1.0)),
            "one of ha-ga, ha-za, ga-za, hb-gb, hb-zb, gb-zb",
        )],
        identity,
    }
}

/// Measures and records six numbers per layer.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let (form, statistic) = (Form::of(call.choice("form")), Statistic::of(call.choice("statistic")));
    let mut records = Records::default();
    for (number, layer) in layers(call)? {
        for (name, relation) in layer.relations(form, statistic) {
            let keys = [("layer", Value::Int(number as i64)), ("relation", Value::from(name))];
            records.add("alignment", relation.score(), &keys);
        }
    }
    records.write(&call.measurements())
}
