//! What the two similarity operations share: their ports and parameters, and reading both sides.

use avow_model::op::{Parameter, ParameterType, Port};
use avow_model::value::Value;

use crate::call::Invocation;
use crate::cka::{LinearCka, Pairs};
use crate::declare::{defaulted, input};
use crate::error::OpError;
use crate::matrix::Matrix;
use crate::tensors::TensorFile;

/// The inputs of both operations.
pub(crate) fn inputs() -> [Port; 2] {
    [
        input("x", "one tensor, or one per layer in name order: rows x columns"),
        input("y", "the same number of rows; columns and layers may differ"),
    ]
}

/// The parameters of both operations.
pub(crate) fn parameters() -> [Parameter; 2] {
    [
        defaulted(
            "metric",
            ParameterType::Choice(&["linear-cka"]),
            Value::from("linear-cka"),
            "the measure of similarity",
        ),
        defaulted(
            "pairs",
            ParameterType::Choice(&["single", "max", "last"]),
            Value::from("single"),
            "one tensor a side, the largest value over all layer pairs, or the last layers",
        ),
    ]
}

/// Reads `x` and `y` and prepares the metric for its score and so many permutations.
pub(crate) fn prepared(call: &Invocation<'_>, draws: usize) -> Result<LinearCka, OpError> {
    let word = call.choice("pairs");
    let (x_file, x) = layers(call, "x", word)?;
    let (y_file, y) = layers(call, "y", word)?;
    let rows = x[0].1.rows();
    for (file, name, layer) in
        x.iter().map(|(n, l)| (&x_file, n, l)).chain(y.iter().map(|(n, l)| (&y_file, n, l)))
    {
        if layer.rows() != rows {
            let problem =
                format!("must have as many rows as the first tensor of `x`, {rows}: rows are paired");
            return Err(file.complaint(Some(name), problem));
        }
    }
    let only = |side: Vec<(String, Matrix)>| side.into_iter().map(|(_, m)| m).collect::<Vec<_>>();
    let pairs = if word == "max" { Pairs::Max } else { Pairs::Last };
    Ok(LinearCka::new(&only(x), &only(y), pairs, draws))
}

type Named = Vec<(String, Matrix)>;

fn layers(call: &Invocation<'_>, side: &str, pairs: &str) -> Result<(TensorFile, Named), OpError> {
    let file = TensorFile::read(call.input(side))?;
    let names: Vec<String> = file.names().map(str::to_owned).collect();
    if names.is_empty() {
        return Err(file.complaint(None, "holds no tensor"));
    }
    if pairs == "single" && names.len() > 1 {
        let problem = format!(
            "holds {} tensors; with `pairs: single` there must be one (or give `max` or `last`)",
            names.len()
        );
        return Err(file.complaint(None, problem));
    }
    let layers = names
        .into_iter()
        .map(|name| file.matrix(&name).map(|matrix| (name, matrix)))
        .collect::<Result<Named, OpError>>()?;
    Ok((file, layers))
}
