//! `mlp/capture`: representations, weights and per-sample gradients of a trained network.
//!
//! Everything is computed in float64 from the float32 weights. Gradients are of each sample's own loss, not
//! divided by the number of rows: the mean loss would give g/n, harmless for a correlation and fatal for
//! every other use.

use std::collections::BTreeMap;

use avow_model::op::{Kind, OpSignature};

use crate::call::Invocation;
use crate::classified::Classified;
use crate::declare::{input, int, measurement, output, required};
use crate::error::OpError;
use crate::matrix::Matrix;
use crate::records::Records;
use crate::softmax::{leading, loss_and_gradient};
use crate::tensors::{self, Tensor, TensorFile};

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "mlp/capture",
        kind: Some(Kind::Capture),
        about: "captures inputs, outputs, weights and per-sample gradients of every layer of a network",
        inputs: vec![
            input("model", "`epoch.E.wL` as `mlp/train` writes them"),
            input("data", "`x`: rows x features; `y`: rows, classes from 0"),
        ],
        outputs: vec![output(
            "capture",
            "capture.safetensors",
            "per layer L: `h_a.L`, `g_a.L` (rows x inputs), `h_b.L`, `g_b.L` (rows x outputs), `w.L` (outputs x inputs)",
        )],
        parameters: vec![required("epoch", int(0, 1_000_000), "the checkpoint to capture")],
        measurements: vec![
            measurement(
                "accuracy",
                &[],
                Some((0.0, 1.0)),
                "the share of rows whose class has the largest logit",
            ),
            measurement(
                "loss",
                &[],
                Some((0.0, f64::INFINITY)),
                "the mean cross-entropy over the rows, in nats",
            ),
        ],
        identity,
    }
}

/// Runs the network forward and backward and writes what passes through it.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let weights = weights(&TensorFile::read(call.input("model"))?, call.count("epoch"))?;
    let data = Classified::read(call.input("data"))?;
    let (inputs, outputs) = (weights[0].columns(), weights[weights.len() - 1].rows());
    if data.x.columns() != inputs || data.classes() > outputs {
        return Err(OpError::Input {
            file: call.input("data").to_owned(),
            tensor: Some("x".to_owned()),
            shape: Some(vec![data.x.rows(), data.x.columns()]),
            problem: format!(
                "does not fit the network: it takes {inputs} features and knows {outputs} classes, \
                 the data has {} classes",
                data.classes()
            ),
        });
    }
    let passes = forward(&weights, &data.x);
    let logits = &passes[passes.len() - 1].1;
    let (gradient, losses) = output_gradient(logits, &data.y);
    let correct =
        logits.each_row().zip(&data.y).filter(|(row, y)| leading(row) == **y && is_sound(row)).count();
    let gradients = backward(&weights, &passes, gradient);
    let mut tensors = BTreeMap::new();
    for (layer, (((h_a, h_b), (g_a, g_b)), w)) in passes.iter().zip(&gradients).zip(&weights).enumerate() {
        for (name, matrix) in [("h_a", h_a), ("h_b", h_b), ("g_a", g_a), ("g_b", g_b), ("w", w)] {
            tensors.insert(format!("{name}.{}", layer + 1), Tensor::from(matrix));
        }
    }
    tensors::write(call.output("capture"), &tensors)?;
    let rows = data.y.len() as f64;
    let mut records = Records::default();
    records.add("accuracy", correct as f64 / rows, &[]);
    records.add("loss", losses.iter().sum::<f64>() / rows, &[]);
    records.write(&call.measurements())
}

/// Every layer's weights at a checkpoint, checked to fit one another.
fn weights(model: &TensorFile, epoch: usize) -> Result<Vec<Matrix>, OpError> {
    let mut layers: Vec<Matrix> = Vec::new();
    for layer in 1.. {
        let name = format!("epoch.{epoch}.w{layer}");
        if layer > 1 && !model.names().any(|held| held == name) {
            break;
        }
        let next = model.matrix(&name)?;
        if let Some(before) = layers.last().filter(|before| before.rows() != next.columns()) {
            let problem = format!("must have {} columns, the outputs of the layer before", before.rows());
            return Err(model.complaint(Some(&name), problem));
        }
        layers.push(next);
    }
    Ok(layers)
}

/// Per layer: its inputs h_a and its outputs h_b before the activation function.
fn forward(weights: &[Matrix], x: &Matrix) -> Vec<(Matrix, Matrix)> {
    let mut passes: Vec<(Matrix, Matrix)> = Vec::with_capacity(weights.len());
    for w in weights {
        // NaN stays NaN, so that a broken network shows.
        let h_a =
            passes.last().map_or_else(|| x.clone(), |(_, h_b)| h_b.map(|z| if z <= 0.0 { 0.0 } else { z }));
        let h_b = h_a.times_transposed(w);
        passes.push((h_a, h_b));
    }
    passes
}

/// Per sample the gradient of its loss by the logits, and the loss.
fn output_gradient(logits: &Matrix, labels: &[usize]) -> (Matrix, Vec<f64>) {
    let mut values = logits.values().to_vec();
    let losses = values
        .chunks_exact_mut(logits.columns())
        .zip(labels)
        .map(|(row, &label)| loss_and_gradient(row, label))
        .collect();
    (Matrix::new(logits.rows(), logits.columns(), values), losses)
}

/// Per layer: g_a and g_b, from the first to the last.
fn backward(weights: &[Matrix], passes: &[(Matrix, Matrix)], at_output: Matrix) -> Vec<(Matrix, Matrix)> {
    let mut gradients = Vec::with_capacity(weights.len());
    let mut g_b = at_output;
    for (layer, w) in weights.iter().enumerate().rev() {
        let g_a = g_b.times(w);
        let below = layer.checked_sub(1).map(|below| gated(&g_a, &passes[below].1));
        gradients.push((g_a, g_b));
        match below {
            Some(next) => g_b = next,
            None => break,
        }
    }
    gradients.reverse();
    gradients
}

/// The gradient where the ReLU let its input pass, zero elsewhere.
fn gated(g: &Matrix, before_activation: &Matrix) -> Matrix {
    let values =
        g.values().iter().zip(before_activation.values()).map(|(g, z)| if *z <= 0.0 { 0.0 } else { *g });
    Matrix::new(g.rows(), g.columns(), values.collect())
}

fn is_sound(row: &[f64]) -> bool {
    row.iter().all(|z| z.is_finite())
}
