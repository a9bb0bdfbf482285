//! `synthetic/relu-rank`: six readings of the rank of a random ReLU network's layers, depth by depth.
//!
//! The source (arXiv 2507.07675) prints m[1 − (1 − 2/π)^l] for the "effective dimension" at depth l without
//! saying which reading it means, so all of them are measured and none is singled out.

use avow_model::op::{Kind, OpSignature, ParameterType};
use avow_model::value::Value;

use crate::call::Invocation;
use crate::declare::{defaulted, int, measurement, required};
use crate::error::OpError;
use crate::random::Source;
use crate::records::Records;
use crate::spectrum::Spectrum;
use crate::synthetic::{gaussian, relu_layer};

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    let reading = |name, about| measurement(name, &["depth"], Some((0.0, f64::INFINITY)), about);
    OpSignature {
        name: "synthetic/relu-rank",
        kind: Some(Kind::Measure),
        about: "measures the rank of every layer of a random ReLU network on standard normal inputs",
        inputs: vec![],
        outputs: vec![],
        parameters: vec![
            defaulted("rows", int(1, 100_000), Value::Int(64), "the number of input rows, m"),
            defaulted("inputs", int(1, 100_000), Value::Int(64), "the dimension of the inputs, d"),
            defaulted("width", int(1, 100_000), Value::Int(64), "the width of every layer, n"),
            defaulted("depth", int(1, 99), Value::Int(6), "the number of layers; each is measured"),
            required("seed", ParameterType::Seed, "the seed of inputs and weights"),
        ],
        measurements: vec![
            reading("rank-exact", "singular values above max(m, n) x epsilon x the largest"),
            reading("rank-relative", "singular values above 0.01 of the largest"),
            reading("participation", "squared sum over sum of squares of the squared singular values"),
            reading("effective-rank", "exponential of the entropy of the singular values' shares"),
            reading("effective-rank-energy", "the same with squared singular values"),
            reading("stable-rank", "sum of the squared singular values over the largest"),
        ],
        identity,
    }
}

/// Draws the network and records six readings per depth.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let source = Source::new("synthetic/relu-rank", call.seed("seed"));
    let mut h = gaussian(&mut source.draw(0), call.count("rows"), call.count("inputs"));
    let mut records = Records::default();
    for depth in 1..=call.count("depth") {
        h = relu_layer(&mut source.draw(depth as u64), &h, call.count("width"));
        let spectrum = Spectrum::of(&h).ok_or_else(|| OpError::Numerical {
            problem: format!("the singular values at depth {depth} could not be computed"),
        })?;
        let readings = [
            ("rank-exact", spectrum.exact_rank() as f64),
            ("rank-relative", spectrum.rank_above(1e-2) as f64),
            ("participation", spectrum.participation()),
            ("effective-rank", spectrum.effective_rank()),
            ("effective-rank-energy", spectrum.effective_rank_of_energy()),
            ("stable-rank", spectrum.stable_rank()),
        ];
        for (name, value) in readings {
            records.add(name, value, &[("depth", Value::Int(depth as i64))]);
        }
    }
    records.write(&call.measurements())
}
