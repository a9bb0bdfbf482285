//! Exact: two sequences of numbers equal to the bit, or within a tolerance.
//!
//! All or any, no p-value, outside families. Equality of files as bytes is a comparison of digests and needs
//! nothing from here.

use crate::decide::Decision;
use crate::reason::Void;

/// When two numbers are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Equality {
    /// The same 64 bits: NaN equals the same NaN, and 0 is not −0.
    Bits,
    /// |a − b| ≤ absolute + relative·|b|; NaN equals nothing; equal infinities are equal.
    Within {
        /// The absolute part.
        absolute: f64,
        /// The part relative to the second number.
        relative: f64,
    },
}

impl Equality {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Equality::Bits => a.to_bits() == b.to_bits(),
            Equality::Within { absolute, relative } => {
                a == b || (a - b).abs() <= absolute + relative * b.abs()
            }
        }
    }
}

/// The comparison of two sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs compared.
    pub compared: usize,
    /// Pairs that are not equal.
    pub unequal: usize,
    /// The position of the first unequal pair.
    pub first_unequal: Option<usize>,
    /// The largest |a − b| over pairs of which neither is NaN.
    pub largest: f64,
}

impl Comparison {
    /// Supported if all are equal, otherwise Refuted.
    pub fn decision(&self) -> Decision {
        if self.unequal == 0 { Decision::Supported } else { Decision::Refuted }
    }
}

/// Compares position by position. Different lengths: [`Void::Unpaired`]; nothing: [`Void::NoUnits`].
pub fn compare(first: &[f64], second: &[f64], equality: Equality) -> Result<Comparison, Void> {
    if first.len() != second.len() {
        return Err(Void::Unpaired);
    }
    if first.is_empty() {
        return Err(Void::NoUnits);
    }
    let mut result = Comparison { compared: first.len(), unequal: 0, first_unequal: None, largest: 0.0 };
    for (position, (a, b)) in first.iter().zip(second).enumerate() {
        if a != b {
            // f64::max passes over a NaN deviation.
            result.largest = result.largest.max((a - b).abs());
        }
        if !equality.holds(*a, *b) {
            result.unequal += 1;
            result.first_unequal = result.first_unequal.or(Some(position));
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_relative_to_the_second() {
        let within = |absolute, relative| Equality::Within { absolute, relative };
        assert!(within(0.0, 0.1).holds(110.0, 100.0));
        assert!(!within(0.0, 0.1).holds(100.0, 90.0));
        assert!(within(0.5, 0.0).holds(1.5, 1.0));
        assert!(within(0.0, 0.0).holds(f64::INFINITY, f64::INFINITY));
        assert!(!within(1e9, 1e9).holds(f64::NAN, f64::NAN));
    }

    #[test]
    fn bits_know_nan_and_the_sign_of_zero() {
        let both = compare(&[f64::NAN, 0.0], &[f64::NAN, -0.0], Equality::Bits).unwrap();
        assert_eq!((both.compared, both.unequal, both.first_unequal), (2, 1, Some(1)));
        assert_eq!(both.decision(), Decision::Refuted);
    }

    #[test]
    fn the_largest_deviation_is_counted_over_all() {
        let equality = Equality::Within { absolute: 0.5, relative: 0.0 };
        let some = compare(&[1.0, 2.0, 3.0], &[1.25, 2.0, 2.75], equality).unwrap();
        assert_eq!((some.unequal, some.largest), (0, 0.25));
        assert_eq!(some.decision(), Decision::Supported);
        assert_eq!(compare(&[1.0], &[], equality), Err(Void::Unpaired));
        assert_eq!(compare(&[], &[], equality), Err(Void::NoUnits));
    }
}
