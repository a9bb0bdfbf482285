//! The error of Stirling's formula, Loader's deviance, and the incomplete gamma function built on them.
//!
//! Source: C. Loader, "Fast and accurate computation of binomial probabilities" (2000): a density such as
//! x^a e^{-x}/Γ(a + 1) is written as exp(−δ(a) − D(a, x))/√(2πa), where δ is the error of Stirling's formula and
//! D ≥ 0 the deviance, which vanishes at the mode. Nothing large is subtracted.

use std::f64::consts::PI;

/// The largest number of terms of a series or continued fraction; far above what a sample size needs.
pub(crate) const MOST_TERMS: usize = 2_000_000;

/// δ(z) = ln Γ(z + 1) − \[(z + ½) ln z − z + ½ ln 2π\] for z > 0; absolute error below 1e-14.
pub(crate) fn stirling_error(z: f64) -> f64 {
    const SERIES_FROM: f64 = 16.0;
    if z >= SERIES_FROM {
        return stirling_series(z);
    }
    // Γ(z + 1) is lowered from Γ(w + 1), w = z + steps, where the series is exact to the last digit.
    let steps = (SERIES_FROM - z).ceil();
    let w = z + steps;
    let mut product = 1.0;
    let mut factor = 1.0;
    while factor <= steps {
        product *= z + factor;
        factor += 1.0;
    }
    let upper = (w + 0.5) * w.ln() - w;
    let lower = (z + 0.5) * z.ln() - z;
    stirling_series(w) + (upper - lower - product.ln())
}

/// The asymptotic series of δ(z); seven terms are exact in double precision for z ≥ 16.
fn stirling_series(z: f64) -> f64 {
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let inverse_square = 1.0 / (z * z);
    TERMS.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term) / z
}

/// D(x, m) = x ln(x/m) + m − x ≥ 0 for x, m > 0, without cancellation near x = m.
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    let gap = x - m;
    if gap.abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() + m - x;
    }
    // ln(x/m) = 2 artanh(v), v = (x − m)/(x + m); the first term of D is gap·v and the rest falls as v².
    let v = gap / (x + m);
    let mut sum = gap * v;
    let mut power = 2.0 * x * v;
    let mut odd = 3.0;
    loop {
        power *= v * v;
        let next = sum + power / odd;
        if next == sum {
            return sum;
        }
        sum = next;
        odd += 2.0;
    }
}

/// x^a e^{-x}/Γ(a + 1) for a, x > 0.
fn poisson_density(a: f64, x: f64) -> f64 {
    (-stirling_error(a) - deviance(a, x)).exp() / (2.0 * PI * a).sqrt()
}

/// (P, Q): the regularised lower and upper incomplete gamma function of shape `a` > 0 at `x` ≥ 0, each with
/// full relative accuracy where it is the smaller.
pub(crate) fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x == f64::INFINITY {
        return (1.0, 0.0);
    }
    let density = poisson_density(a, x);
    if x < a + 1.0 {
        let lower = density * lower_series(a, x);
        (lower, 1.0 - lower)
    } else {
        let upper = density * a * upper_fraction(a, x);
        (1.0 - upper, upper)
    }
}

/// The derivative of P in ln x: x^a e^{-x}/Γ(a).
pub(crate) fn gamma_slope(a: f64, x: f64) -> f64 {
    poisson_density(a, x) * a
}

/// 1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …
fn lower_series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut shape) = (1.0, 1.0, a);
    for _ in 0..MOST_TERMS {
        shape += 1.0;
        term *= x / shape;
        sum += term;
        if term < sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum
}

/// 1/(x + 1 − a − 1(1 − a)/(x + 3 − a − 2(2 − a)/(…))), by Lentz's method.
fn upper_fraction(a: f64, x: f64) -> f64 {
    let terms = (0..MOST_TERMS).map(|i| {
        let i = i as f64;
        (-i * (i - a), x + 2.0 * i + 1.0 - a)
    });
    1.0 / continued_fraction(terms)
}

/// b₀ + a₁/(b₁ + a₂/(b₂ + …)) from the pairs (aᵢ, bᵢ); a₀ is ignored. Modified Lentz.
pub(crate) fn continued_fraction(mut terms: impl Iterator<Item = (f64, f64)>) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let first = terms.next().map_or(TINY, |(_, b)| away(b));
    let (mut value, mut c, mut d) = (first, first, 0.0);
    for (a, b) in terms {
        d = 1.0 / away(b + a * d);
        c = away(b + a / c);
        let step = c * d;
        value *= step;
        if (step - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}
