//! Threshold: every unit against a bound, without inference.
//!
//! A mean or median against a bound is [`Units::t`], [`Units::signs`] or [`Units::median`] and a claim. Absent:
//! any repair of skewed means at small n, which nothing repairs.

use crate::decide::Decision;
use crate::level::Level;
use crate::reason::Inconclusive;
use crate::region::Region;
use crate::units::Units;

/// Every unit against a region: no inference, outside families.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Every {
    /// Units looked at.
    pub units: usize,
    /// Units strictly in the claim region.
    pub inside: usize,
    /// Units that refute: on or beyond the bound of the opposite region.
    pub outside: usize,
    /// The smallest value.
    pub lowest: f64,
    /// The largest value.
    pub highest: f64,
}

impl Every {
    /// Looks at every unit. A unit on the bound is outside (ties count against the claim).
    pub fn of(units: &Units, region: Region) -> Every {
        let (values, tie) = (units.values(), units.tie());
        let in_gap = |v: f64| match region {
            Region::Above { refute, .. } => v > refute + tie,
            Region::Below { refute, .. } => v < refute - tie,
            Region::Between { .. } | Region::Equivalence { .. } => false,
        };
        Every {
            units: values.len(),
            inside: values.iter().filter(|v| region.holds(**v, tie)).count(),
            outside: values.iter().filter(|v| !region.holds(**v, tie) && !in_gap(**v)).count(),
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// All inside: Supported; any outside: Refuted; some in a declared gap only: Inconclusive.
    pub fn decision(&self) -> Decision {
        if self.inside == self.units {
            Decision::Supported
        } else if self.outside > 0 {
            Decision::Refuted
        } else {
            Decision::Inconclusive(Inconclusive::CrossesBound)
        }
    }
}

/// The exact lower end, (a/2)^(1/n), for the share of future units that pass when all of n did.
pub fn share_that_will_pass(units: usize, error: Level) -> f64 {
    (0.5 * error.to_f64()).powf(1.0 / units as f64)
}
