//! A confidence interval, with the margin under which its ends are compared.
//!
//! Absent: clipping to a declared range. An interval is the set of values its test does not reject; a page that
//! cuts it at 0 and 1 does so for the eye only.

use crate::level::Level;

/// The set of values that the test does not reject, from `low` to `high`; infinite where no end exists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end; −∞ where nothing bounds it.
    pub low: f64,
    /// The upper end; ∞ where nothing bounds it.
    pub high: f64,
    /// The error probability a; the confidence level is 1 − a.
    pub error: Level,
    /// The margin under which an end equals a value.
    pub tie: f64,
}

impl Interval {
    /// Whether the interval lies wholly above `value`.
    pub fn above(&self, value: f64) -> bool {
        self.low > value + self.tie
    }

    /// Whether the interval lies wholly below `value`.
    pub fn below(&self, value: f64) -> bool {
        self.high < value - self.tie
    }

    /// Whether `value` is inside or on an end.
    pub fn contains(&self, value: f64) -> bool {
        !self.above(value) && !self.below(value)
    }

    /// 1 − a as a double.
    pub fn confidence(&self) -> f64 {
        1.0 - self.error.to_f64()
    }
}
