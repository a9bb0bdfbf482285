//! What the synthetic operations share: Gaussian matrices, random ReLU layers and the names of layers.

use std::collections::BTreeMap;

use crate::matrix::Matrix;
use crate::random::Draw;
use crate::tensors::Tensor;

/// A matrix of independent standard normal numbers, drawn row after row.
pub(crate) fn gaussian(draw: &mut Draw, rows: usize, columns: usize) -> Matrix {
    Matrix::new(rows, columns, draw.normals(rows * columns))
}

/// A random ReLU layer: `relu(h · W)` with W ~ N(0, 2/fan-in), fan-in × width.
pub(crate) fn relu_layer(draw: &mut Draw, h: &Matrix, width: usize) -> Matrix {
    let scale = (2.0 / h.columns() as f64).sqrt();
    let weights = gaussian(draw, h.columns(), width).map(|x| scale * x);
    h.times(&weights).map(|x| if x > 0.0 { x } else { 0.0 })
}

/// Names layers from 1 with two digits, so that name order is depth order up to 99.
pub(crate) fn named_layers(layers: &[Matrix]) -> BTreeMap<String, Tensor> {
    layers.iter().enumerate().map(|(i, layer)| (format!("layer.{:02}", i + 1), Tensor::from(layer))).collect()
}
