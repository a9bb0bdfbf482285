//! Rows with class labels: the file that `digits/split` writes and the network operations read.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::OpError;
use crate::matrix::Matrix;
use crate::tensors::{self, Numbers, Tensor, TensorFile};

/// Features and the class of each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Classified {
    /// Rows × features.
    pub(crate) x: Matrix,
    /// Classes from zero, one per row.
    pub(crate) y: Vec<usize>,
}

impl Classified {
    /// Reads `x` (rows × features) and `y` (rows) of a file.
    pub(crate) fn read(path: &Path) -> Result<Classified, OpError> {
        let file = TensorFile::read(path)?;
        let (x, y) = (file.matrix("x")?, file.labels("y")?);
        if x.rows() != y.len() {
            return Err(
                file.complaint(Some("y"), format!("must have one class per row of `x`, {}", x.rows()))
            );
        }
        Ok(Classified { x, y })
    }

    /// Writes `x` as float64 and `y` as 64-bit integers.
    pub(crate) fn write(&self, path: &Path) -> Result<(), OpError> {
        let labels = self.y.iter().map(|&c| c as i64).collect();
        let y = Tensor { shape: vec![self.y.len()], numbers: Numbers::I64(labels) };
        tensors::write(path, &BTreeMap::from([("x".to_owned(), Tensor::from(&self.x)), ("y".to_owned(), y)]))
    }

    /// The number of classes: the largest label and one.
    pub(crate) fn classes(&self) -> usize {
        self.y.iter().max().map_or(0, |c| c + 1)
    }
}
