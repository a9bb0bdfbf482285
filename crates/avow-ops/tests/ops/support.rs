//! A folder to run operations in, and readers for what they write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_model::value::Value;
use avow_ops::matrix::Matrix;
use avow_ops::{Call, OpError, run};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;
use tempfile::TempDir;

/// A bench in a folder; every file of a call lies in it.
pub struct Bench {
    folder: PathBuf,
    /// Removes a folder of its own when the bench is done.
    _own: Option<TempDir>,
}

impl Bench {
    pub fn new() -> Bench {
        let own = tempfile::tempdir().unwrap();
        Bench { folder: own.path().to_owned(), _own: Some(own) }
    }

    /// A bench in a folder that stays.
    pub fn in_folder(folder: PathBuf) -> Bench {
        Bench { folder, _own: None }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// A call whose files are named relative to the bench; measurements go to `measurements.jsonl`.
    pub fn call(&self, with: &[(&str, Value)], inputs: &[(&str, &str)], outputs: &[(&str, &str)]) -> Call {
        let files = |ports: &[(&str, &str)]| {
            ports.iter().map(|(port, file)| ((*port).to_owned(), self.path(file))).collect()
        };
        Call {
            with: with.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
            inputs: files(inputs),
            outputs: files(outputs),
            measurements: Some(self.path("measurements.jsonl")),
        }
    }

    /// Runs an operation that must succeed and gives its measurements.
    pub fn run(
        &self,
        name: &str,
        with: &[(&str, Value)],
        inputs: &[(&str, &str)],
        outputs: &[(&str, &str)],
    ) -> Records {
        run(name, &self.call(with, inputs, outputs)).unwrap_or_else(|e| panic!("{name}: {e}"));
        Records::read(&self.path("measurements.jsonl"))
    }

    /// Runs an operation that must fail and gives the error.
    pub fn refused(
        &self,
        name: &str,
        with: &[(&str, Value)],
        inputs: &[(&str, &str)],
        outputs: &[(&str, &str)],
    ) -> OpError {
        run(name, &self.call(with, inputs, outputs)).unwrap_err()
    }

    /// Writes float64 matrices, for inputs that no operation makes.
    pub fn write(&self, file: &str, tensors: &[(&str, &Matrix)]) {
        let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
            .iter()
            .map(|(name, m)| {
                let data = m.values().iter().flat_map(|x| x.to_le_bytes()).collect();
                ((*name).to_owned(), vec![m.rows(), m.columns()], data)
            })
            .collect();
        let views = bytes
            .iter()
            .map(|(name, shape, data)| (name, TensorView::new(Dtype::F64, shape.clone(), data).unwrap()));
        std::fs::write(self.path(file), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    /// Writes rows with classes, as `digits/split` does.
    pub fn write_classified(&self, file: &str, x: &Matrix, y: &[i64]) {
        let x_bytes: Vec<u8> = x.values().iter().flat_map(|v| v.to_le_bytes()).collect();
        let y_bytes: Vec<u8> = y.iter().flat_map(|v| v.to_le_bytes()).collect();
        let views = [
            ("x", TensorView::new(Dtype::F64, vec![x.rows(), x.columns()], &x_bytes).unwrap()),
            ("y", TensorView::new(Dtype::I64, vec![y.len()], &y_bytes).unwrap()),
        ];
        std::fs::write(self.path(file), safetensors::serialize(views, None).unwrap()).unwrap();
    }

    /// Reads every two-dimensional tensor of a file.
    pub fn read(&self, file: &str) -> BTreeMap<String, Matrix> {
        let bytes = std::fs::read(self.path(file)).unwrap();
        let parsed = SafeTensors::deserialize(&bytes).unwrap();
        parsed
            .iter()
            .filter(|(_, view)| view.shape().len() == 2)
            .map(|(name, view)| (name.to_owned(), matrix(&view)))
            .collect()
    }
}

fn matrix(view: &TensorView<'_>) -> Matrix {
    let values = match view.dtype() {
        Dtype::F64 => view.data().as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        Dtype::F32 => {
            view.data().as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
        }
        other => panic!("unexpected type {other:?}"),
    };
    Matrix::new(view.shape()[0], view.shape()[1], values)
}

/// The lines of a measurements file.
pub struct Records {
    pub lines: Vec<Json>,
}

impl Records {
    fn read(file: &Path) -> Records {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        Records { lines: text.lines().map(|l| serde_json::from_str(l).unwrap()).collect() }
    }

    /// The value of the first line with this name whose keys contain `keys`; NaN is read back.
    pub fn get(&self, name: &str, keys: &[(&str, Json)]) -> f64 {
        let line = self
            .lines
            .iter()
            .find(|l| l["name"] == name && keys.iter().all(|(k, v)| l[*k] == *v))
            .unwrap_or_else(|| panic!("no measurement `{name}` with {keys:?}"));
        match &line["value"] {
            Json::String(text) if text == "NaN" => f64::NAN,
            value => value.as_f64().unwrap(),
        }
    }
}

/// The shipped digits table.
pub fn digits() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/data/digits.csv")
}

/// The reference values beside the tests.
pub fn reference() -> Json {
    serde_json::from_str(include_str!("../data/reference.json")).unwrap()
}

/// A matrix written as a list of rows.
pub fn rows(json: &Json) -> Matrix {
    let rows: Vec<Vec<f64>> = serde_json::from_value(json.clone()).unwrap();
    Matrix::new(rows.len(), rows[0].len(), rows.concat())
}

pub fn int(value: i64) -> Value {
    Value::Int(value)
}

pub fn float(value: f64) -> Value {
    Value::Float(value)
}

pub fn ints(values: &[i64]) -> Value {
    Value::List(values.iter().copied().map(Value::Int).collect())
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[track_caller]
pub fn close(got: f64, wanted: f64, tolerance: f64) {
    assert!((got - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{got} is not {wanted}");
}
