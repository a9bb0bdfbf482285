//! The regularised incomplete beta function and its inverse, on which t, binomial and their intervals rest.
//!
//! The argument is passed as the pair (x, y) with x + y = 1, because near 1 the complement carries the digits.
//! The continued fraction is that of DiDonato and Morris (1992), whose terms stay positive on the side where it
//! is used; the prefactor is Loader's (see [`super::gamma`]).

use super::gamma::{MOST_TERMS, continued_fraction, deviance, stirling_error};
use super::root;
use std::f64::consts::PI;

/// A probability named by its tail, so that small ones keep their digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// The probability below the argument.
    Lower(f64),
    /// The probability above the argument.
    Upper(f64),
}

/// x^a y^b / B(a, b), the derivative of I_x(a, b) in the logit of x.
fn density(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let exponent =
        stirling_error(n) - stirling_error(a) - stirling_error(b) - deviance(a, n * x) - deviance(b, n * y);
    exponent.exp() * (a * b / (2.0 * PI * n)).sqrt()
}

/// (I, 1 − I) for I = I_x(a, b), a, b > 0, with y = 1 − x given by the caller; each is accurate relative to
/// itself where it is the smaller of the two.
pub fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if y <= 0.0 {
        return (1.0, 0.0);
    }
    let front = density(a, b, x, y);
    // Below its mean the function itself is the smaller part, above it the complement.
    if a * y >= b * x {
        let value = front / fraction(a, b, x, y);
        (value, 1.0 - value)
    } else {
        let value = front / fraction(b, a, y, x);
        (1.0 - value, value)
    }
}

/// The denominator of I_x(a, b) = x^a y^b / (B(a, b) · fraction), for x at or below a/(a + b).
fn fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let lambda = a * y - b * x + 1.0;
    let terms = (0..MOST_TERMS).map(|index| {
        let m = index as f64;
        let odd = a + 2.0 * m - 1.0;
        let numerator = (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * x * x / (odd * odd);
        let denominator =
            m + m * (b - m) * x / odd + (a + m) * (lambda + m * (1.0 + y)) / (a + 2.0 * m + 1.0);
        (numerator, if index == 0 { a * lambda / (a + 1.0) } else { denominator })
    });
    continued_fraction(terms)
}

/// The (x, 1 − x) at which I_x(a, b) has the given tail; (0, 1) and (1, 0) for tails of 0 and 1.
pub fn beta_quantile(a: f64, b: f64, tail: Tail) -> (f64, f64) {
    let (p, lower) = match tail {
        Tail::Lower(p) => (p, true),
        Tail::Upper(p) => (p, false),
    };
    if p <= 0.0 {
        return if lower { (0.0, 1.0) } else { (1.0, 0.0) };
    }
    if p >= 1.0 {
        return if lower { (1.0, 0.0) } else { (0.0, 1.0) };
    }
    let logit = logit_quantile(a, b, p, lower);
    (1.0 / (1.0 + (-logit).exp()), 1.0 / (1.0 + logit.exp()))
}

/// The logit of the beta quantile. Solves on the logarithm of the named tail.
pub(crate) fn logit_quantile(a: f64, b: f64, p: f64, lower: bool) -> f64 {
    let target = p.ln();
    root::increasing((a / b).ln(), |logit| {
        let (x, y) = (1.0 / (1.0 + (-logit).exp()), 1.0 / (1.0 + logit.exp()));
        let (below, above) = incomplete_beta(a, b, x, y);
        let slope = density(a, b, x, y);
        if lower { (below.ln() - target, slope / below) } else { (target - above.ln(), slope / above) }
    })
}
