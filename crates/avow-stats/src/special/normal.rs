//! The standard normal distribution.
//!
//! The error function of `statrs` is good to ten digits, so it only gives the first guess of the quantile; the
//! probabilities are incomplete gammas of shape ½.

use super::gamma::incomplete_gamma;
use statrs::function::erf::erfc_inv;
use std::f64::consts::{PI, SQRT_2};

/// P(Z ≤ z).
pub fn below(z: f64) -> f64 {
    let (inner, outer) = incomplete_gamma(0.5, 0.5 * z * z);
    if z < 0.0 { 0.5 * outer } else { 0.5 + 0.5 * inner }
}

/// P(Z ≥ z).
pub fn above(z: f64) -> f64 {
    below(-z)
}

/// The z with P(Z ≤ z) = p, 0 < p < 1; −∞ and ∞ at the ends.
pub fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        // 1 − p is exact here, and the lower tail is the accurate one.
        return -quantile(1.0 - p);
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let guess = -SQRT_2 * erfc_inv(2.0 * p);
    let density = (-0.5 * guess * guess).exp() / (2.0 * PI).sqrt();
    if density == 0.0 {
        return guess;
    }
    // One Newton step on ln P removes what the inverse error function leaves in the far tail.
    let below = below(guess);
    guess - (below / p).ln() * below / density
}
