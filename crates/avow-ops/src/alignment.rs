//! Canonical alignment of representations (R), weights (W) and gradients (G) of one weight layer (arXiv
//! 2410.03006).
//!
//! For a weight matrix W (d_b × d_a) with inputs h_a, outputs h_b = W h_a and per-sample loss gradients g_b,
//! g_a = Wᵀ g_b, each side has three matrices over its neurons: H from h, G from g and Z from the weights
//! (Z_a = WᵀW, Z_b = WWᵀ). An alignment is a correlation over all entries of two of them, six in all. The
//! null relabels the neurons of one matrix, B[π, π], which keeps both spectra and both diagonals and breaks
//! who is whom. Power laws between eigenvalues are a different measurement and are deliberately not here.

use crate::matrix::Matrix;
use crate::pairing;

/// How H and G are made from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rows divided by their norm (zero rows stay zero), minus their mean, then the second moment with 1/n.
    NormalisedCovariance,
    /// E[v vᵀ], not centred.
    SecondMoment,
}

impl Form {
    /// The words of a spec.
    pub const WORDS: &[&str] = &["normalised-covariance", "second-moment"];

    /// The form of a checked word.
    pub(crate) fn of(word: &str) -> Form {
        if word == "second-moment" { Form::SecondMoment } else { Form::NormalisedCovariance }
    }

    /// The matrix over the columns (neurons) of a samples × neurons matrix.
    pub fn moment(self, samples: &Matrix) -> Matrix {
        let n = samples.rows() as f64;
        match self {
            Form::SecondMoment => samples.column_gram().map(|x| x / n),
            Form::NormalisedCovariance => unit_rows(samples).centred_columns().column_gram().map(|x| x / n),
        }
    }
}

/// How two matrices are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The Pearson correlation over all entries, the diagonal included.
    Pearson,
    /// The same without subtracting the mean entry.
    Cosine,
}

impl Statistic {
    /// The words of a spec.
    pub const WORDS: &[&str] = &["pearson", "cosine"];

    /// The statistic of a checked word.
    pub(crate) fn of(word: &str) -> Statistic {
        if word == "cosine" { Statistic::Cosine } else { Statistic::Pearson }
    }
}

/// What one weight layer left behind: samples × neurons, and the weights (outputs × inputs).
#[derive(Clone, Debug)]
pub struct Layer {
    /// The inputs of the layer, after the activation function.
    pub h_a: Matrix,
    /// Its outputs, before the activation function.
    pub h_b: Matrix,
    /// The gradient of each sample's loss by the inputs.
    pub g_a: Matrix,
    /// The gradient of each sample's loss by the outputs.
    pub g_b: Matrix,
    /// The weights.
    pub w: Matrix,
}

impl Layer {
    /// The six relations by name, each ready to be scored.
    pub fn relations(&self, form: Form, statistic: Statistic) -> [(&'static str, Relation); 6] {
        let (h_a, g_a, z_a) = (form.moment(&self.h_a), form.moment(&self.g_a), self.w.column_gram());
        let (h_b, g_b, z_b) = (form.moment(&self.h_b), form.moment(&self.g_b), self.w.row_gram());
        let relation = |a: &Matrix, b: &Matrix| Relation::new(a, b, statistic);
        [
            ("ha-ga", relation(&h_a, &g_a)),
            ("ha-za", relation(&h_a, &z_a)),
            ("ga-za", relation(&g_a, &z_a)),
            ("hb-gb", relation(&h_b, &g_b)),
            ("hb-zb", relation(&h_b, &z_b)),
            ("gb-zb", relation(&g_b, &z_b)),
        ]
    }
}

/// Two symmetric matrices over the same neurons.
#[derive(Clone, Debug)]
pub struct Relation {
    a: Matrix,
    b: Matrix,
    /// The product of the two norms; NaN where a matrix is constant.
    norm: f64,
}

impl Relation {
    /// Prepares two symmetric matrices of equal size.
    pub fn new(a: &Matrix, b: &Matrix, statistic: Statistic) -> Relation {
        let prepare = |m: &Matrix| match statistic {
            Statistic::Pearson => minus_mean_entry(&m.scaled_to_unit()),
            Statistic::Cosine => m.scaled_to_unit(),
        };
        let (a, b) = (prepare(a), prepare(b));
        let squares = pairing::squared_norm(&a) * pairing::squared_norm(&b);
        let norm = if squares == 0.0 { f64::NAN } else { squares.sqrt() };
        Relation { a, b, norm }
    }

    /// The alignment, −1 to 1; NaN where a matrix is constant.
    pub fn score(&self) -> f64 {
        self.permuted(&(0..self.a.rows()).collect::<Vec<_>>())
    }

    /// The alignment of A with B[π, π].
    pub fn permuted(&self, order: &[usize]) -> f64 {
        let product = pairing::sums(std::slice::from_ref(&self.a), &self.b, order)[0];
        (product / self.norm).clamp(-1.0, 1.0)
    }

    /// The number of neurons.
    pub fn neurons(&self) -> usize {
        self.a.rows()
    }
}

/// Every row divided by its Euclidean norm. A zero row has no direction and stays zero: dividing it by a
/// small number would make unit-length noise of it.
fn unit_rows(samples: &Matrix) -> Matrix {
    let mut values = Vec::with_capacity(samples.values().len());
    for row in samples.each_row() {
        let largest = row.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        if largest == 0.0 && row.iter().all(|x| *x == 0.0) {
            values.extend_from_slice(row);
            continue;
        }
        // A power of two keeps squares of tiny gradients (1e-200 on fitted rows) from vanishing.
        let (_, exponent) = libm::frexp(largest);
        let scaled: Vec<f64> = row.iter().map(|&x| libm::ldexp(x, -exponent)).collect();
        let norm = pairing::dot(&scaled, &scaled).sqrt();
        values.extend(scaled.iter().map(|x| x / norm));
    }
    Matrix::new(samples.rows(), samples.columns(), values)
}

/// A matrix minus the mean of its entries; exactly zero where all entries are equal.
fn minus_mean_entry(square: &Matrix) -> Matrix {
    let first = square.at(0, 0);
    if square.values().iter().all(|&x| x == first) {
        return square.map(|_| 0.0);
    }
    let mean = square.values().iter().sum::<f64>() / square.values().len() as f64;
    square.map(|x| x - mean)
}
