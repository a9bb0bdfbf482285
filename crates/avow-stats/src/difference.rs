//! Difference of two independent arms: Welch's t.
//!
//! Paired arms are one sample of differences ([`crate::units::Units::paired`]). Absent: Student's pooled
//! variance, permutation and rank tests.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::units::require;
use crate::{sum, ties};

/// The difference of means of two independent arms by Welch's t with Satterthwaite's degrees of freedom; n ≥ 2
/// in each arm. One constant arm leaves the other's n − 1; two constant arms have one-sided p-values of
/// 1/C(n₁ + n₂, n₁), the smallest of a relabelling.
pub fn welch(first: &[f64], second: &[f64]) -> Result<Fit, Void> {
    require(first, 2)?;
    require(second, 2)?;
    let tie = ties::margin(first.iter().chain(second).copied());
    let centre = sum::mean(first) - sum::mean(second);
    let sample = Sample::Two(first.len(), second.len());
    let part = |arm: &[f64]| {
        if ties::all_equal(arm, tie) { 0.0 } else { sum::deviation(arm) / (arm.len() as f64).sqrt() }
    };
    let (a, b) = (part(first), part(second));
    if a == 0.0 && b == 0.0 {
        let tail = 1.0 / relabellings(first.len(), second.len());
        return Ok(Fit::constant(Method::Welch, sample, centre, tail, tie));
    }
    let error = a.hypot(b);
    if !centre.is_finite() || !error.is_finite() {
        return Err(Void::NonFinite);
    }
    // Each arm's share of the variance, squared once more below.
    let (s, t) = ((a / error).powi(2), (b / error).powi(2));
    let df = 1.0 / (s * s / (first.len() - 1) as f64 + t * t / (second.len() - 1) as f64);
    Ok(Fit::student(StudentPart {
        method: Method::Welch,
        sample,
        centre,
        error,
        df,
        scale: Scale::Identity,
        tie,
    }))
}

/// C(n₁ + n₂, n₁), as a double (∞ beyond its range).
fn relabellings(first: usize, second: usize) -> f64 {
    let (few, many) = (first.min(second), first.max(second));
    (1..=few).fold(1.0, |count, i| count * (many + i) as f64 / i as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relabellings_are_binomial_coefficients() {
        assert_eq!(relabellings(3, 3), 20.0);
        assert_eq!(relabellings(5, 3), 56.0);
        assert_eq!(relabellings(11, 11), 705_432.0);
    }
}
