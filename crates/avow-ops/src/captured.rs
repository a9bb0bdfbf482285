//! What the two alignment operations share: their parameters, and reading the layers of a capture.

use avow_model::op::{Parameter, ParameterType};
use avow_model::value::Value;

use crate::alignment::{Form, Layer, Statistic};
use crate::call::Invocation;
use crate::declare::{defaulted, ints};
use crate::error::OpError;
use crate::tensors::TensorFile;

/// The parameters of both operations.
pub(crate) fn parameters() -> [Parameter; 3] {
    [
        defaulted(
            "form",
            ParameterType::Choice(Form::WORDS),
            Value::from("normalised-covariance"),
            "how samples become a matrix over neurons",
        ),
        defaulted(
            "statistic",
            ParameterType::Choice(Statistic::WORDS),
            Value::from("pearson"),
            "how two matrices are compared",
        ),
        defaulted(
            "layers",
            ParameterType::Ints { low: 1, high: 10_000 },
            ints(&[2, 3, 4]),
            "the weight layers to measure, from 1",
        ),
    ]
}

/// The layers named by the parameter `layers`, with their numbers.
pub(crate) fn layers(call: &Invocation<'_>) -> Result<Vec<(usize, Layer)>, OpError> {
    let file = TensorFile::read(call.input("capture"))?;
    let mut numbers = call.counts("layers");
    numbers.sort_unstable();
    if let Some(twice) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(OpError::parameter("layers", format!("names layer {} twice", twice[0])));
    }
    numbers.into_iter().map(|number| Ok((number, layer(&file, number)?))).collect()
}

fn layer(file: &TensorFile, number: usize) -> Result<Layer, OpError> {
    let get = |name: &str| file.matrix(&format!("{name}.{number}"));
    let layer =
        Layer { h_a: get("h_a")?, h_b: get("h_b")?, g_a: get("g_a")?, g_b: get("g_b")?, w: get("w")? };
    let (rows, inputs, outputs) = (layer.h_a.rows(), layer.w.columns(), layer.w.rows());
    let wanted = [
        ("h_a", &layer.h_a, inputs),
        ("g_a", &layer.g_a, inputs),
        ("h_b", &layer.h_b, outputs),
        ("g_b", &layer.g_b, outputs),
    ];
    for (name, matrix, columns) in wanted {
        if matrix.rows() != rows || matrix.columns() != columns {
            let name = format!("{name}.{number}");
            let problem = format!("must have the shape [{rows}, {columns}] to fit `w.{number}`");
            return Err(file.complaint(Some(&name), problem));
        }
    }
    Ok(layer)
}
