//! Linear centred kernel alignment (CKA) and its row-permutation null.
//!
//! X (n × d₁) and Y (n × d₂) have paired rows. With centred columns, CKA = ‖X_cᵀY_c‖² / (‖X_cX_cᵀ‖
//! ‖Y_cY_cᵀ‖), which lies in [0, 1] and is undefined (NaN) where a side is constant. Permuting the rows of Y
//! leaves both norms alone, so a draw costs one sum over half of the two Gram matrices, or, where rows are
//! many and columns few, one product of features. With several layers a side, each permutation serves all
//! pairs of layers. There is deliberately no debiased or kernel form here yet, and no average over
//! minibatches, which would be wrong for this biased form.

use crate::matrix::Matrix;
use crate::pairing;
use crate::random::Source;

/// Which pairs of layers enter the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// The largest value over all pairs of a layer of X and a layer of Y.
    Max,
    /// The last layer of X with the last layer of Y, in name order; with one layer a side, the only pair.
    Last,
}

/// Two lists of layers, prepared so that their score under a row permutation of Y is cheap.
#[derive(Clone, Debug)]
pub struct LinearCka {
    form: Form,
    /// ‖X_cX_cᵀ‖² per layer of X.
    x_squares: Vec<f64>,
    /// ‖Y_cY_cᵀ‖² per layer of Y.
    y_squares: Vec<f64>,
    rows: usize,
}

#[derive(Clone, Debug)]
enum Form {
    /// Centred Gram matrices, n × n.
    Gram { x: Vec<Matrix>, y: Vec<Matrix> },
    /// Centred features, n × d.
    Features { x: Vec<Matrix>, y: Vec<Matrix> },
}

impl LinearCka {
    /// Prepares the pairs of two lists of layers, all with the same number of rows.
    ///
    /// # Panics
    /// Where a list is empty or the numbers of rows differ.
    pub fn new(x: &[Matrix], y: &[Matrix], pairs: Pairs) -> LinearCka {
        let rows = x.first().expect("X has a layer").rows();
        assert!(x.iter().chain(y).all(|layer| layer.rows() == rows), "rows are paired");
        let chosen = |layers: &[Matrix]| -> Vec<Matrix> {
            let from = if pairs == Pairs::Last { layers.len() - 1 } else { 0 };
            layers[from..].iter().map(|layer| layer.centred_columns().scaled_to_unit()).collect()
        };
        let (x, y) = (chosen(x), chosen(y));
        let widest = |layers: &[Matrix]| layers.iter().map(Matrix::columns).max().unwrap_or(1);
        // A draw costs n·d₁·d₂ with features and about n²/2 scattered reads with Gram matrices.
        if 4 * widest(&x) * widest(&y) <= rows {
            let squares =
                |layers: &[Matrix]| layers.iter().map(|l| pairing::squared_norm(&l.column_gram())).collect();
            LinearCka { x_squares: squares(&x), y_squares: squares(&y), form: Form::Features { x, y }, rows }
        } else {
            let grams = |layers: &[Matrix]| layers.iter().map(Matrix::row_gram).collect::<Vec<_>>();
            let (x, y) = (grams(&x), grams(&y));
            let squares = |grams: &[Matrix]| grams.iter().map(pairing::squared_norm).collect();
            LinearCka { x_squares: squares(&x), y_squares: squares(&y), form: Form::Gram { x, y }, rows }
        }
    }

    /// The score with the rows as they are.
    pub fn score(&self) -> f64 {
        self.permuted(&(0..self.rows).collect::<Vec<_>>())
    }

    /// The score with row i of X paired with row `order[i]` of Y.
    pub fn permuted(&self, order: &[usize]) -> f64 {
        let mut largest = f64::NEG_INFINITY;
        for (b, &y_square) in self.y_squares.iter().enumerate() {
            for (product, &x_square) in self.products(b, order).into_iter().zip(&self.x_squares) {
                let value = ratio(product, x_square, y_square);
                if value.is_nan() {
                    return value;
                }
                largest = largest.max(value);
            }
        }
        largest
    }

    /// The scores of `count` permutations, each from its own stream of `source`.
    pub fn null(&self, count: usize, source: &Source) -> Vec<f64> {
        (0..count as u64).map(|index| self.permuted(&source.draw(index).permutation(self.rows))).collect()
    }

    /// ‖X_cᵀY_c[π]‖² of every layer of X with layer `b` of Y.
    fn products(&self, b: usize, order: &[usize]) -> Vec<f64> {
        match &self.form {
            Form::Gram { x, y } => pairing::sums(x, &y[b], order),
            Form::Features { x, y } => {
                let permuted = y[b].pick_rows(order);
                x.iter()
                    .map(|layer| {
                        let cross = layer.transposed_times(&permuted);
                        pairing::dot(cross.values(), cross.values())
                    })
                    .collect()
            }
        }
    }
}

/// Rounding may carry a ratio a few units in the last place past the bounds that the Cauchy-Schwarz
/// inequality gives.
fn ratio(product: f64, x_square: f64, y_square: f64) -> f64 {
    if x_square == 0.0 || y_square == 0.0 {
        return f64::NAN;
    }
    (product / (x_square * y_square).sqrt()).clamp(0.0, 1.0)
}
