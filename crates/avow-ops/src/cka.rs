//! Linear centred kernel alignment (CKA) and its row-permutation null.
//!
//! X (n × d₁) and Y (n × d₂) have paired rows. With centred columns, CKA = ‖X_cᵀY_c‖² / (‖X_cX_cᵀ‖
//! ‖Y_cY_cᵀ‖), which lies in [0, 1] and is undefined (NaN) where a side is constant. Permuting the rows of Y
//! leaves both norms alone, so a draw costs one sum over half of the two Gram matrices, or, where rows are
//! many and columns few, one product of features. Without draws the products of features are enough wherever
//! there are fewer columns than rows. With several layers a side, each permutation serves all
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
    /// Prepares the pairs of two lists of layers, all with the same number of rows, for a score under so many
    /// permutations beside the rows as they are.
    ///
    /// # Panics
    /// Where a list is empty or the numbers of rows differ.
    pub fn new(x: &[Matrix], y: &[Matrix], pairs: Pairs, draws: usize) -> LinearCka {
        let rows = x.first().expect("X has a layer").rows();
        assert!(x.iter().chain(y).all(|layer| layer.rows() == rows), "rows are paired");
        let chosen = |layers: &[Matrix]| -> Vec<Matrix> {
            let from = if pairs == Pairs::Last { layers.len() - 1 } else { 0 };
            layers[from..].iter().map(|layer| layer.centred_columns().scaled_to_unit()).collect()
        };
        let (x, y) = (chosen(x), chosen(y));
        if features_are_cheaper(&x, &y, draws) {
            let squares = |layers: &[Matrix]| layers.iter().map(|layer| cross_square(layer, layer)).collect();
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
                x.iter().map(|layer| cross_square(layer, &permuted)).collect()
            }
        }
    }
}

/// Whether products of features cost less than Gram matrices of rows, over all layers and draws, counted in
/// multiplications of a product. One entry of a permuted Gram matrix is a scattered read: at 4,000 rows it takes as
/// long as ninety of them, at 200, where everything stays in the cache and products are too small to be fast, as long
/// as five.
fn features_are_cheaper(x: &[Matrix], y: &[Matrix], draws: usize) -> bool {
    const READ: f64 = 16.0;
    let (rows, draws) = (x[0].rows() as f64, draws as f64 + 1.0);
    let columns = |layers: &[Matrix]| -> Vec<f64> { layers.iter().map(|l| l.columns() as f64).collect() };
    let (x, y) = (columns(x), columns(y));
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let squares = |of: &[f64]| of.iter().map(|d| d * d).sum::<f64>();
    let features = rows * (squares(&x) + squares(&y) + draws * sum(&x) * sum(&y));
    let pairs = (x.len() * y.len()) as f64;
    let grams = rows * rows * (sum(&x) + sum(&y) + draws * pairs * READ / 2.0);
    features <= grams
}

/// ‖XᵀY‖², summed in the same order whatever X and Y are, so that a side with itself scores exactly one.
fn cross_square(x: &Matrix, y: &Matrix) -> f64 {
    let cross = x.transposed_times(y);
    pairing::dot(cross.values(), cross.values())
}

/// Rounding may carry a ratio a few units in the last place past the bounds that the Cauchy-Schwarz
/// inequality gives.
fn ratio(product: f64, x_square: f64, y_square: f64) -> f64 {
    if x_square == 0.0 || y_square == 0.0 {
        return f64::NAN;
    }
    (product / (x_square * y_square).sqrt()).clamp(0.0, 1.0)
}
