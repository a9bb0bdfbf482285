//! `synthetic/relu-stack`: the layers of two random ReLU networks that see unrelated inputs.

use avow_model::op::{Kind, OpSignature, ParameterType};
use avow_model::value::Value;

use crate::call::Invocation;
use crate::declare::{defaulted, int, output, required};
use crate::error::OpError;
use crate::matrix::Matrix;
use crate::random::Source;
use crate::synthetic::{gaussian, named_layers, relu_layer};
use crate::tensors;

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "synthetic/relu-stack",
        kind: Some(Kind::Capture),
        about: "sends independent standard normal inputs through two independent random ReLU networks",
        inputs: vec![],
        outputs: vec![
            output(
                "x",
                "x.safetensors",
                "`layer.01` (the first hidden layer), ...: rows x width, after the ReLU",
            ),
            output("y", "y.safetensors", "the same names and shapes"),
        ],
        parameters: vec![
            required("rows", int(1, 1_000_000), "the number of input rows a side"),
            defaulted("inputs", int(1, 100_000), Value::Int(32), "the dimension of the inputs"),
            defaulted("width", int(1, 100_000), Value::Int(64), "the width of every hidden layer"),
            required("depth", int(1, 99), "the number of hidden layers"),
            required("seed", ParameterType::Seed, "the seed of inputs and weights"),
        ],
        measurements: vec![],
        identity,
    }
}

/// Draws and writes both stacks. Weights are N(0, 2/fan-in), without biases.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    for side in ["x", "y"] {
        let source = Source::new(&format!("synthetic/relu-stack {side}"), call.seed("seed"));
        let mut h = gaussian(&mut source.draw(0), call.count("rows"), call.count("inputs"));
        let layers: Vec<Matrix> = (1..=call.count("depth") as u64)
            .map(|layer| {
                h = relu_layer(&mut source.draw(layer), &h, call.count("width"));
                h.clone()
            })
            .collect();
        tensors::write(call.output(side), &named_layers(&layers))?;
    }
    Ok(())
}
