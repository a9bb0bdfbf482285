//! Curve: the mean at every point of an axis within a tolerance of a formula.
//!
//! An intersection of equivalences. The claim side needs no correction (p_S is the largest over points); the
//! other is Bonferroni (p_R is k times the smallest). Intervals shown are simultaneous, at error α/k. Absent:
//! the formula, which the caller evaluates, and fitted constants, which must come from other cells.

use crate::claim::{Claim, Inference};
use crate::combine::{Combination, Part};
use crate::reach;
use crate::reason::Void;
use crate::region::Region;
use crate::units::Units;

/// How far the mean may be from the formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// In units of the value.
    Absolute(f64),
    /// As a share of |f|.
    Relative(f64),
}

/// A tolerance that gives no margin at a point.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ToleranceError {
    /// A share of zero is no margin.
    #[error("a relative tolerance has no width where the formula is 0")]
    RelativeToZero,
    /// The tolerance or the formula's value is not a positive finite number, as it must be.
    #[error("the tolerance `{tolerance}` gives no positive finite margin about `{expected}`")]
    NoMargin {
        /// The tolerance.
        tolerance: f64,
        /// The value of the formula.
        expected: f64,
    },
}

impl Tolerance {
    /// The region |θ − expected| < margin.
    pub fn region(self, expected: f64) -> Result<Region, ToleranceError> {
        let (tolerance, margin) = match self {
            Tolerance::Absolute(t) => (t, t),
            Tolerance::Relative(_) if expected == 0.0 => return Err(ToleranceError::RelativeToZero),
            Tolerance::Relative(t) => (t, t * expected.abs()),
        };
        Region::Equivalence { target: expected, margin }
            .checked()
            .map_err(|_| ToleranceError::NoMargin { tolerance, expected })
    }
}

/// One point: what the formula says and the units' values there.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The region about the formula's value ([`Tolerance::region`]).
    pub region: Region,
    /// One value per unit, in planned order.
    pub values: Vec<f64>,
}

/// A tested curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The test at each point, in order.
    pub points: Vec<Result<Inference, Void>>,
    /// The claim as a whole.
    pub whole: Combination,
}

/// Tests every point by t and joins them. No points: [`Void::NoUnits`].
pub fn curve(points: &[Point]) -> Result<Curve, Void> {
    let tests: Vec<Result<Inference, Void>> = points
        .iter()
        .map(|point| Ok(Claim::new(point.region).test(Units::of(&point.values)?.t()?)))
        .collect();
    let parts: Vec<Part> = tests.iter().map(part).collect();
    let one_sided = points.iter().all(|p| Claim::new(p.region).one_sided());
    Ok(Curve { whole: Combination::all(&parts, one_sided)?, points: tests })
}

/// A test, or why there is none, as a part of a combination.
pub fn part(test: &Result<Inference, Void>) -> Part {
    match test {
        Ok(test) => Part::Tested { pair: test.pair, reach: reach::smallest_pair_of(test) },
        Err(void) => Part::Void(*void),
    }
}
