//! Dense float64 matrices, just enough for these operations.
//!
//! Products and singular values go to `faer`, always on one thread and always from freshly aligned memory:
//! its kernels may start a sum at an aligned address, so the bytes of a result could otherwise depend on
//! where the allocator put an operand. There is deliberately no operator overloading and no in-place product;
//! every method returns a new value.

use faer::linalg::matmul::matmul;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{Accum, Mat, Par};

/// A matrix in row-major order with at least one row and one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// A matrix from its values, row after row.
    ///
    /// # Panics
    /// Where the number of values is not `rows * columns`, or is zero.
    pub fn new(rows: usize, columns: usize, values: Vec<f64>) -> Matrix {
        assert!(rows * columns == values.len() && !values.is_empty(), "a matrix has rows x columns values");
        Matrix { rows, columns, values }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// The rows in order.
    pub fn each_row(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }

    /// One value.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    /// The same shape with every value mapped.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Matrix {
        Matrix { values: self.values.iter().map(|&x| f(x)).collect(), ..*self }
    }

    /// The rows of `self` in another order, possibly with repeats.
    pub fn pick_rows(&self, order: &[usize]) -> Matrix {
        let values = order.iter().flat_map(|&i| self.row(i)).copied().collect();
        Matrix::new(order.len(), self.columns, values)
    }

    /// `self · other`.
    pub fn times(&self, other: &Matrix) -> Matrix {
        product(self.aligned().as_ref(), other.aligned().as_ref())
    }

    /// `self · otherᵀ`.
    pub fn times_transposed(&self, other: &Matrix) -> Matrix {
        product(self.aligned().as_ref(), other.aligned().transpose())
    }

    /// `selfᵀ · other`.
    pub fn transposed_times(&self, other: &Matrix) -> Matrix {
        product(self.aligned().transpose(), other.aligned().as_ref())
    }

    /// `selfᵀ · self`, exactly symmetric.
    pub fn column_gram(&self) -> Matrix {
        mirrored(self.transposed_times(self))
    }

    /// `self · selfᵀ`, exactly symmetric.
    pub fn row_gram(&self) -> Matrix {
        mirrored(self.times_transposed(self))
    }

    /// Every column minus its mean (two passes: sum first, then subtract). A column whose entries are all
    /// equal becomes exactly zero, so that rounding in its mean cannot pass for variance.
    pub fn centred_columns(&self) -> Matrix {
        let first = self.row(0);
        let mut sums = vec![0.0; self.columns];
        let mut varies = vec![false; self.columns];
        for row in self.each_row() {
            for (j, &x) in row.iter().enumerate() {
                sums[j] += x;
                varies[j] |= x != first[j];
            }
        }
        let means: Vec<f64> = sums.iter().map(|s| s / self.rows as f64).collect();
        let values = self
            .values
            .iter()
            .enumerate()
            .map(|(k, &x)| {
                let j = k % self.columns;
                // NaN differs from everything, itself included, so it counts as varying and stays.
                if varies[j] || x.is_nan() { x - means[j] } else { 0.0 }
            })
            .collect();
        Matrix::new(self.rows, self.columns, values)
    }

    /// `self` divided by the power of two just above its largest magnitude. Exact, so scale-free quantities
    /// keep every bit while their intermediate squares can neither overflow nor vanish.
    pub fn scaled_to_unit(&self) -> Matrix {
        let largest = self.values.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        if largest == 0.0 || !largest.is_finite() {
            return self.clone();
        }
        let (_, exponent) = libm::frexp(largest);
        self.map(|x| libm::ldexp(x, -exponent))
    }

    /// Singular values, largest first; `None` where the iteration does not converge (as with NaN entries).
    pub fn singular_values(&self) -> Option<Vec<f64>> {
        let (m, n) = (self.rows, self.columns);
        let no = ComputeSvdVectors::No;
        let mut memory =
            faer::dyn_stack::MemBuffer::new(svd_scratch::<f64>(m, n, no, no, Par::Seq, Default::default()));
        let mut diagonal = faer::diag::Diag::<f64>::zeros(m.min(n));
        svd(
            self.aligned().as_ref(),
            diagonal.as_mut(),
            None,
            None,
            Par::Seq,
            faer::dyn_stack::MemStack::new(&mut memory),
            Default::default(),
        )
        .ok()?;
        let values: Vec<f64> = (0..m.min(n)).map(|i| diagonal.column_vector()[i]).collect();
        values.iter().all(|v| v.is_finite()).then_some(values)
    }

    /// A copy in faer's own storage, whose columns start at aligned addresses.
    fn aligned(&self) -> Mat<f64> {
        Mat::from_fn(self.rows, self.columns, |i, j| self.at(i, j))
    }
}

fn product(a: faer::MatRef<'_, f64>, b: faer::MatRef<'_, f64>) -> Matrix {
    assert_eq!(a.ncols(), b.nrows(), "inner sizes agree");
    let mut out = Mat::<f64>::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    let (rows, columns) = (out.nrows(), out.ncols());
    let mut values = Vec::with_capacity(rows * columns);
    for i in 0..rows {
        values.extend((0..columns).map(|j| out[(i, j)]));
    }
    Matrix::new(rows, columns, values)
}

/// Copies the lower triangle over the upper: a kernel may sum the two in different orders.
fn mirrored(mut square: Matrix) -> Matrix {
    let n = square.rows;
    for i in 0..n {
        for j in 0..i {
            square.values[j * n + i] = square.values[i * n + j];
        }
    }
    square
}
