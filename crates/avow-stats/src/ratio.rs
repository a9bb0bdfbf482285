//! Ratio of two arms: of geometric means by t of logarithms, or of arithmetic means by Fieller.
//!
//! Bounds and p-values of the first are on the log scale, where the null value is a ratio of 1. A value that is not
//! positive has no logarithm: [`Void::Domain`]. Absent: ratios of medians.

use crate::fit::{Fieller, Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::slope::logs;
use crate::special::student;
use crate::units::{equal_signs, require};
use crate::{sum, ties};

/// The geometric mean of first/second over pairs, by t; n ≥ 2 pairs. Arms of different length: [`Void::Unpaired`].
pub fn paired(first: &[f64], second: &[f64]) -> Result<Fit, Void> {
    if first.len() != second.len() {
        return Err(Void::Unpaired);
    }
    require(first, 2)?;
    require(second, 2)?;
    let (a, b) = (logs(first)?, logs(second)?);
    let gaps: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let n = gaps.len();
    let sample = Sample::One(n);
    if ties::all_equal(&gaps, LOG_TIE) {
        let value = sum::mean(&gaps).exp();
        return Ok(Fit::constant(Method::T, sample, value, equal_signs(n), LOG_TIE * value));
    }
    let error = sum::deviation(&gaps) / (n as f64).sqrt();
    Ok(on_logs(Method::T, sample, sum::mean(&gaps), error, (n - 1) as f64))
}

/// The ratio of geometric means of two independent arms, by Welch's t of logarithms; n ≥ 2 in each.
pub fn unpaired(first: &[f64], second: &[f64]) -> Result<Fit, Void> {
    require(first, 2)?;
    require(second, 2)?;
    let (a, b) = (logs(first)?, logs(second)?);
    let part = |arm: &[f64]| {
        if ties::all_equal(arm, LOG_TIE) { 0.0 } else { sum::deviation(arm) / (arm.len() as f64).sqrt() }
    };
    let (s, t) = (part(&a), part(&b));
    let (centre, error) = (sum::mean(&a) - sum::mean(&b), s.hypot(t));
    let sample = Sample::Two(a.len(), b.len());
    if error == 0.0 {
        let (value, tail) = (centre.exp(), 1.0 / crate::difference::relabellings(a.len(), b.len()));
        return Ok(Fit::constant(Method::Welch, sample, value, tail, LOG_TIE * value));
    }
    let (s, t) = ((s / error).powi(4), (t / error).powi(4));
    let df = 1.0 / (s / (a.len() - 1) as f64 + t / (b.len() - 1) as f64);
    Ok(on_logs(Method::Welch, sample, centre, error, df))
}

/// The rounding of a logarithm of a decimal number.
const LOG_TIE: f64 = 1e-12;

fn on_logs(method: Method, sample: Sample, centre: f64, error: f64, df: f64) -> Fit {
    let tie = LOG_TIE * centre.exp();
    Fit::student(StudentPart { method, sample, centre, error, df, scale: Scale::Log, tie })
}

/// The ratio of arithmetic means over pairs (Fieller 1954), t with n − 1 degrees of freedom; n ≥ 2. Where the second
/// mean is not away from 0 the interval is unbounded. A second mean of exactly 0: [`Void::Domain`].
pub fn fieller(first: &[f64], second: &[f64]) -> Result<Fit, Void> {
    if first.len() != second.len() {
        return Err(Void::Unpaired);
    }
    require(first, 2)?;
    require(second, 2)?;
    let n = first.len();
    let (x, y) = (sum::mean(first), sum::mean(second));
    if y == 0.0 {
        return Err(Void::Domain);
    }
    let over = (n * (n - 1)) as f64;
    let product = |a: &[f64], m: f64, b: &[f64], k: f64| {
        sum::sum(a.iter().zip(b).map(|(u, v)| (u - m) * (v - k))) / over
    };
    let model = Fieller {
        first: x,
        second: y,
        first_variance: product(first, x, first, x),
        second_variance: product(second, y, second, y),
        covariance: product(first, x, second, y),
        df: (n - 1) as f64,
    };
    let tie = 1e-12 * (x / y).abs();
    let residual: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - x / y * b).collect();
    if ties::all_equal(&residual, ties::margin(first.iter().copied())) {
        return Ok(Fit::constant(Method::Fieller, Sample::One(n), x / y, equal_signs(n), tie));
    }
    Ok(Fit::new(x / y, Method::Fieller, Sample::One(n), tie, model))
}

/// Whether the second mean of a Fieller ratio is away from 0 at two-sided error `half`·2, so that the interval ends.
pub fn denominator_is_sure(second: &[f64], half: f64) -> bool {
    let n = second.len();
    if n < 2 {
        return false;
    }
    let error = sum::deviation(second) / (n as f64).sqrt();
    sum::mean(second).abs() > student::upper_quantile(half, (n - 1) as f64) * error
}
