//! `synthetic/gaussian`: two sets of features that share nothing, or a stated part of their variance.

use avow_model::op::{Kind, OpSignature, ParameterType};
use avow_model::value::Value;

use crate::call::Invocation;
use crate::declare::{defaulted, int, output, required};
use crate::error::OpError;
use crate::matrix::Matrix;
use crate::random::Source;
use crate::synthetic::{gaussian, named_layers};
use crate::tensors;

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "synthetic/gaussian",
        kind: Some(Kind::Capture),
        about: "draws two paired sets of standard normal features, independent or with a shared part",
        inputs: vec![],
        outputs: vec![
            output("x", "x.safetensors", "`layer.01`, `layer.02`, ...: rows x columns"),
            output("y", "y.safetensors", "the same names and shapes"),
        ],
        parameters: vec![
            required("rows", int(1, 1_000_000), "the number of paired rows"),
            required("columns", int(1, 100_000), "the width of every layer"),
            defaulted("layers", int(1, 99), Value::Int(1), "the number of independent layers a side"),
            defaulted(
                "shared",
                ParameterType::Number { low: 0.0, high: 1.0 },
                Value::Float(0.0),
                "the part of each column's variance that x and y have in common",
            ),
            required("seed", ParameterType::Seed, "the seed of all draws"),
        ],
        measurements: vec![],
        identity,
    }
}

/// Draws and writes both sides. Column j of layer l is √ρ·z + √(1 − ρ)·e with one z for both sides.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let (rows, columns) = (call.count("rows"), call.count("columns"));
    let shared = call.number("shared");
    let source = |part: &str| Source::new(&format!("synthetic/gaussian {part}"), call.seed("seed"));
    let latent = source("shared");
    for side in ["x", "y"] {
        let own = source(side);
        let layers: Vec<Matrix> = (0..call.count("layers") as u64)
            .map(|layer| {
                let own = gaussian(&mut own.draw(layer), rows, columns);
                if shared == 0.0 {
                    return own;
                }
                let latent = gaussian(&mut latent.draw(layer), rows, columns);
                mixed(&latent, &own, shared)
            })
            .collect();
        tensors::write(call.output(side), &named_layers(&layers))?;
    }
    Ok(())
}

fn mixed(latent: &Matrix, own: &Matrix, shared: f64) -> Matrix {
    let (common, rest) = (shared.sqrt(), (1.0 - shared).sqrt());
    let values = latent.values().iter().zip(own.values()).map(|(z, e)| common * z + rest * e).collect();
    Matrix::new(own.rows(), own.columns(), values)
}
