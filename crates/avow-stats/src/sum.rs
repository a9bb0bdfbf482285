//! Sums, means and standard deviations, in the order given.
//!
//! Units are summed in planned order with Neumaier's compensation, squares in two passes with divisor n − 1,
//! so that a result depends on the numbers and their order only. Absent: streaming updates and parallel sums.

/// Σ values, Neumaier-compensated; the error is about one unit in the last place of the result.
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0);
    for value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() { (total - next) + value } else { (value - next) + total };
        total = next;
    }
    // An overflow makes the correction NaN; the total alone then says what happened.
    if total.is_finite() { total + lost } else { total }
}

/// The mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    sum(values.iter().copied()) / values.len() as f64
}

/// √Σv², without overflow or underflow of the squares. A standard error that underflows to 0 would make any
/// effect certain.
pub fn norm(values: impl IntoIterator<Item = f64> + Clone) -> f64 {
    const SAFE: std::ops::Range<f64> = 1e-100..1e100;
    let largest = values.clone().into_iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
    if largest == 0.0 || SAFE.contains(&largest) {
        return sum(values.into_iter().map(|v| v * v)).sqrt();
    }
    largest * sum(values.into_iter().map(|v| (v / largest) * (v / largest))).sqrt()
}

/// The standard deviation with divisor n − 1, in two passes; NaN for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let centre = mean(values);
    norm(values.iter().map(|v| v - centre)) / ((values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensation_keeps_what_plain_addition_loses() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum([0.1; 10]), 1.0);
    }

    #[test]
    fn deviation_survives_a_large_offset() {
        assert_eq!(deviation(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]), 30.0_f64.sqrt());
        assert!(deviation(&[1.0]).is_nan());
    }

    #[test]
    fn norms_of_extreme_values_do_not_vanish() {
        for scale in [1e-300, 1e-150, 1.0, 1e150, 1e300] {
            let norm = norm([3.0 * scale, -4.0 * scale]);
            assert!((norm / scale - 5.0).abs() < 1e-14, "{scale}");
        }
        assert_eq!(norm([0.0, 0.0]), 0.0);
    }
}
