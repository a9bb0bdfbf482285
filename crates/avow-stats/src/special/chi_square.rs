//! The χ² distribution: its tails and quantile, for the interval of a standard deviation.

use super::beta::Tail;
use super::gamma::{gamma_slope, incomplete_gamma};
use super::root;

/// (P(X ≤ x), P(X ≥ x)) for `df` > 0 degrees of freedom.
pub fn tails(x: f64, df: f64) -> (f64, f64) {
    incomplete_gamma(0.5 * df, 0.5 * x)
}

/// The x with the given tail probability, 0 < p < 1.
pub fn quantile(tail: Tail, df: f64) -> f64 {
    let a = 0.5 * df;
    let (target, lower) = match tail {
        Tail::Lower(p) => (p.ln(), true),
        Tail::Upper(p) => (p.ln(), false),
    };
    let log = root::increasing(a.ln(), |log| {
        let x = log.exp();
        let (below, above) = incomplete_gamma(a, x);
        let slope = gamma_slope(a, x);
        if lower { (below.ln() - target, slope / below) } else { (target - above.ln(), slope / above) }
    });
    2.0 * log.exp()
}
