//! Binomial tail probabilities and the exact limits for a share.

use super::beta::{Tail, beta_quantile, incomplete_beta};

/// P(X ≥ k) for X ~ Bin(n, p).
pub fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n || p <= 0.0 {
        return 0.0;
    }
    incomplete_beta(k as f64, (n - k + 1) as f64, p, 1.0 - p).0
}

/// P(X ≤ k) for X ~ Bin(n, p).
pub fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    incomplete_beta((k + 1) as f64, (n - k) as f64, p, 1.0 - p).1
}

/// The p with P(X ≥ k) = `tail`: the lower Clopper–Pearson limit; 0 for k = 0.
pub fn lower_limit(k: u64, n: u64, tail: f64) -> f64 {
    if k == 0 { 0.0 } else { beta_quantile(k as f64, (n - k + 1) as f64, Tail::Lower(tail)).0 }
}

/// The p with P(X ≤ k) = `tail`: the upper Clopper–Pearson limit; 1 for k = n.
pub fn upper_limit(k: u64, n: u64, tail: f64) -> f64 {
    if k >= n { 1.0 } else { beta_quantile((k + 1) as f64, (n - k) as f64, Tail::Upper(tail)).0 }
}
