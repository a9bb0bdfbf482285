//! Files between stages: safetensors, read into float64 and written deterministically.
//!
//! Names are sorted, no metadata and no time is written, so equal numbers give equal bytes. Float32 and
//! integer tensors are widened when read, which loses nothing. There is deliberately no lazy or memory-mapped
//! reading: the tensors of these operations fit in memory, and a file that changes under a map would be an
//! unsound way to lose a result.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors, View};

use crate::error::OpError;
use crate::matrix::Matrix;

/// The numbers of one tensor, in row-major order, in the type in which they are stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbers {
    /// 64-bit floats: the default between stages.
    F64(Vec<f64>),
    /// 32-bit floats: trained weights, which are made in that type.
    F32(Vec<f32>),
    /// 64-bit integers: class labels.
    I64(Vec<i64>),
}

/// One tensor: shape and numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    /// Sizes, outermost first.
    pub(crate) shape: Vec<usize>,
    /// The numbers.
    pub(crate) numbers: Numbers,
}

impl From<&Matrix> for Tensor {
    fn from(matrix: &Matrix) -> Tensor {
        Tensor {
            shape: vec![matrix.rows(), matrix.columns()],
            numbers: Numbers::F64(matrix.values().to_vec()),
        }
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match self.numbers {
            Numbers::F64(_) => Dtype::F64,
            Numbers::F32(_) => Dtype::F32,
            Numbers::I64(_) => Dtype::I64,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = match &self.numbers {
            Numbers::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        let width = if matches!(self.numbers, Numbers::F32(_)) { 4 } else { 8 };
        self.shape.iter().product::<usize>() * width
    }
}

/// Writes tensors to a file, sorted by name.
pub(crate) fn write(file: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), OpError> {
    let views = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
    let bytes = safetensors::serialize(views, None)
        .map_err(|e| OpError::Tensor { doing: "writing safetensors", source: Box::new(e) })?;
    std::fs::write(file, bytes).map_err(|source| OpError::Io {
        action: "write",
        file: file.to_owned(),
        source,
    })
}

/// A safetensors file in memory.
#[derive(Clone, Debug)]
pub(crate) struct TensorFile {
    file: PathBuf,
    tensors: BTreeMap<String, Tensor>,
}

impl TensorFile {
    /// Reads a whole file; a tensor of an unsupported type is an error that names it.
    pub(crate) fn read(file: &Path) -> Result<TensorFile, OpError> {
        let bytes = std::fs::read(file).map_err(|source| OpError::Io {
            action: "read",
            file: file.to_owned(),
            source,
        })?;
        let parsed = SafeTensors::deserialize(&bytes).map_err(|e| OpError::Input {
            file: file.to_owned(),
            tensor: None,
            shape: None,
            problem: format!("is not a safetensors file ({e})"),
        })?;
        let mut tensors = BTreeMap::new();
        for (name, view) in parsed.iter() {
            let numbers = decode(view.dtype(), view.data()).ok_or_else(|| OpError::Input {
                file: file.to_owned(),
                tensor: Some(name.to_owned()),
                shape: Some(view.shape().to_vec()),
                problem: format!("has the type {:?}; F64, F32, I64 and I32 can be read", view.dtype()),
            })?;
            tensors.insert(name.to_owned(), Tensor { shape: view.shape().to_vec(), numbers });
        }
        Ok(TensorFile { file: file.to_owned(), tensors })
    }

    /// The names in the file, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A complaint about this file, or about one tensor of it.
    pub(crate) fn complaint(&self, tensor: Option<&str>, problem: impl Into<String>) -> OpError {
        OpError::Input {
            file: self.file.clone(),
            tensor: tensor.map(str::to_owned),
            shape: tensor.and_then(|name| self.tensors.get(name)).map(|t| t.shape.clone()),
            problem: problem.into(),
        }
    }

    fn tensor(&self, name: &str) -> Result<&Tensor, OpError> {
        self.tensors.get(name).ok_or_else(|| {
            let held: Vec<&str> = self.names().collect();
            self.complaint(Some(name), format!("is not in the file, which holds {}", held.join(", ")))
        })
    }

    /// A tensor of two dimensions, widened to float64, with at least one row and one column.
    pub(crate) fn matrix(&self, name: &str) -> Result<Matrix, OpError> {
        let tensor = self.tensor(name)?;
        let [rows, columns] = tensor.shape[..] else {
            return Err(self.complaint(Some(name), "must have two dimensions, rows and columns"));
        };
        if rows == 0 || columns == 0 {
            return Err(self.complaint(Some(name), "is empty"));
        }
        let values = match &tensor.numbers {
            Numbers::F64(v) => v.clone(),
            Numbers::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Numbers::I64(v) => v.iter().map(|&x| x as f64).collect(),
        };
        Ok(Matrix::new(rows, columns, values))
    }

    /// A tensor of one dimension that holds class numbers from zero.
    pub(crate) fn labels(&self, name: &str) -> Result<Vec<usize>, OpError> {
        let tensor = self.tensor(name)?;
        let Numbers::I64(values) = &tensor.numbers else {
            return Err(self.complaint(Some(name), "must hold integers"));
        };
        if tensor.shape.len() != 1 {
            return Err(self.complaint(Some(name), "must have one dimension"));
        }
        values
            .iter()
            .map(|&v| usize::try_from(v).map_err(|_| self.complaint(Some(name), "holds a negative class")))
            .collect()
    }
}

fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Numbers> {
    fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
        bytes.as_chunks::<N>().0.iter().copied()
    }
    match dtype {
        Dtype::F64 => Some(Numbers::F64(words(bytes).map(f64::from_le_bytes).collect())),
        Dtype::F32 => Some(Numbers::F32(words(bytes).map(f32::from_le_bytes).collect())),
        Dtype::I64 => Some(Numbers::I64(words(bytes).map(i64::from_le_bytes).collect())),
        Dtype::I32 => Some(Numbers::I64(words(bytes).map(|b| i64::from(i32::from_le_bytes(b))).collect())),
        _ => None,
    }
}
