//! Softmax cross-entropy of one sample, without the cancellation that ruins small gradients.
//!
//! The gradient by the logits is p − onehot(y). On well-fitted rows p_y is nearly one and p_y − 1 computed as
//! written is rounding noise; here it is minus the sum of the other probabilities, which is the same number
//! and keeps all its digits.

/// The loss −ln p_y of one sample; writes the gradient by its logits over them.
///
/// # Panics
/// Where `label` is not an index into `logits`.
pub(crate) fn loss_and_gradient(logits: &mut [f64], label: usize) -> f64 {
    let own = logits[label];
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let others: f64 =
        logits.iter().enumerate().filter(|(c, _)| *c != label).map(|(_, z)| libm::exp(z - largest)).sum();
    let own_share = libm::exp(own - largest);
    // Where y leads, ln(1 + small) keeps a tiny loss; elsewhere the loss is large and the plain form is right.
    let loss =
        if own == largest { libm::log1p(others) } else { libm::log(own_share + others) - (own - largest) };
    let total = own_share + others;
    for (class, z) in logits.iter_mut().enumerate() {
        *z = if class == label { -(others / total) } else { libm::exp(*z - largest) / total };
    }
    loss
}

/// The index of the largest value, the first of several equal ones.
pub(crate) fn leading(values: &[f64]) -> usize {
    values.iter().enumerate().fold(0, |best, (i, v)| if *v > values[best] { i } else { best })
}
