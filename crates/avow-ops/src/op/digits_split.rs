//! `digits/split`: the UCI digits as training and test rows.
//!
//! Pixels are divided by 16 and the mean of the **training** rows is subtracted from both parts. There is
//! deliberately no scaling by standard deviations: it would blow up the pixels that are almost always zero.

use std::path::Path;

use avow_model::op::{OpSignature, ParameterType};
use avow_model::value::Value;

use crate::call::Invocation;
use crate::classified::Classified;
use crate::declare::{defaulted, input, int, output, required};
use crate::error::OpError;
use crate::matrix::Matrix;
use crate::random::Source;

/// Pixel values run from 0 to this.
const FULL: f64 = 16.0;

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    OpSignature {
        name: "digits/split",
        kind: None,
        about: "splits a table of digit images into training and test rows and centres the pixels",
        inputs: vec![input("data", "CSV with a header, pixel columns of integers 0 to 16, and `label`")],
        outputs: vec![
            output("train", "train.safetensors", "`x`: rows x pixels; `y`: rows, the classes"),
            output("test", "test.safetensors", "the same names for the test rows"),
        ],
        parameters: vec![
            defaulted("test_rows", int(1, 1_000_000), Value::Int(360), "how many rows are held back"),
            required("seed", ParameterType::Seed, "the seed of the split"),
        ],
        measurements: vec![],
        identity,
    }
}

/// Splits by a permutation: its first rows are the test rows, the others the training rows.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let all = read(call.input("data"))?;
    let test_rows = call.count("test_rows");
    if test_rows >= all.y.len() {
        let problem = format!("leaves no training rows: the table has {} rows", all.y.len());
        return Err(OpError::parameter("test_rows", problem));
    }
    let order = Source::new("digits/split", call.seed("seed")).draw(0).permutation(all.y.len());
    let part = |rows: &[usize]| Classified {
        x: all.x.pick_rows(rows).map(|p| p / FULL),
        y: rows.iter().map(|&i| all.y[i]).collect(),
    };
    let (test, train) = order.split_at(test_rows);
    let (mut test, mut train) = (part(test), part(train));
    let means = column_means(&train.x);
    train.x = minus(&train.x, &means);
    test.x = minus(&test.x, &means);
    train.write(call.output("train"))?;
    test.write(call.output("test"))
}

fn column_means(x: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; x.columns()];
    for row in x.each_row() {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
    sums.iter().map(|s| s / x.rows() as f64).collect()
}

fn minus(x: &Matrix, means: &[f64]) -> Matrix {
    let values = x.each_row().flat_map(|row| row.iter().zip(means).map(|(v, m)| v - m)).collect();
    Matrix::new(x.rows(), x.columns(), values)
}

fn read(file: &Path) -> Result<Classified, OpError> {
    let complaint =
        |problem: String| OpError::Input { file: file.to_owned(), tensor: None, shape: None, problem };
    let bytes = std::fs::read(file).map_err(|source| OpError::Io {
        action: "read",
        file: file.to_owned(),
        source,
    })?;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let header = reader.headers().map_err(|e| complaint(e.to_string()))?.clone();
    let label = header
        .iter()
        .position(|name| name == "label")
        .ok_or_else(|| complaint("has no column `label`".to_owned()))?;
    let (mut pixels, mut y) = (Vec::new(), Vec::new());
    for (row, record) in reader.records().enumerate() {
        let record = record.map_err(|e| complaint(e.to_string()))?;
        for (column, field) in record.iter().enumerate() {
            let (name, most) =
                (header.get(column).unwrap_or("?"), if column == label { 999 } else { FULL as u32 });
            let value = field.trim().parse::<u32>().ok().filter(|v| *v <= most).ok_or_else(|| {
                complaint(format!(
                    "row {}, column `{name}`: `{field}` is not an integer from 0 to {most}",
                    row + 1
                ))
            })?;
            if column == label {
                y.push(value as usize);
            } else {
                pixels.push(f64::from(value));
            }
        }
    }
    if pixels.is_empty() {
        return Err(complaint("has no pixel values".to_owned()));
    }
    Ok(Classified { x: Matrix::new(y.len(), header.len() - 1, pixels), y })
}
