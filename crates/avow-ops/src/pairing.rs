//! The sum over all entries of two symmetric matrices, one of them relabelled by a permutation.
//!
//! Both permutation nulls rest on it: rows of a representation (centred Gram matrices) and neurons of a layer
//! (moment matrices). Relabelling commutes with centring and keeps norms, so only this sum changes from draw
//! to draw. Because the matrices are symmetric, half of the entries are enough; rows are gathered once and
//! may serve several partners. The order of summation is the same for every permutation, so equal relabelled
//! matrices give equal bits: ties are exact.

use crate::matrix::Matrix;

/// `Σ_ij k[i,j] · l[π(i),π(j)]` for each k of `partners`, all symmetric and of the size of π.
pub(crate) fn sums(partners: &[Matrix], l: &Matrix, order: &[usize]) -> Vec<f64> {
    let mut off_diagonal = vec![0.0; partners.len()];
    let mut diagonal = vec![0.0; partners.len()];
    let mut gathered = vec![0.0; order.len()];
    for (i, &row) in order.iter().enumerate() {
        let source = l.row(row);
        for (value, &column) in gathered[..=i].iter_mut().zip(order) {
            *value = source[column];
        }
        for (k, partner) in partners.iter().enumerate() {
            let other = partner.row(i);
            off_diagonal[k] += dot(&other[..i], &gathered[..i]);
            diagonal[k] += other[i] * gathered[i];
        }
    }
    off_diagonal.iter().zip(&diagonal).map(|(o, d)| 2.0 * o + d).collect()
}

/// `Σ_ij k[i,j]²`, summed in the order of [`sums`].
pub(crate) fn squared_norm(k: &Matrix) -> f64 {
    let mut off_diagonal = 0.0;
    let mut diagonal = 0.0;
    for i in 0..k.rows() {
        let row = k.row(i);
        off_diagonal += dot(&row[..i], &row[..i]);
        diagonal += row[i] * row[i];
    }
    2.0 * off_diagonal + diagonal
}

/// An inner product in eight interleaved partial sums, added up in a fixed order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut partial = [0.0; 8];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..8 {
            partial[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    partial.iter().sum::<f64>() + rest
}
