//! What a method must answer: the tests of every bound, and the interval that is their inversion.

use crate::level::Level;
use crate::reference::Reference;
use std::fmt::Debug;

/// The tests of one fit. `tie` is the margin ε under which numbers are equal, always taken towards the larger p.
pub(crate) trait Model: Debug + Send + Sync + 'static {
    /// The p-value of θ ≤ `bound`.
    fn p_at_most(&self, bound: f64, tie: f64) -> f64;

    /// The p-value of θ ≥ `bound`.
    fn p_at_least(&self, bound: f64, tie: f64) -> f64;

    /// The ends of the interval at confidence 1 − `error`; infinite where no end exists.
    fn interval(&self, error: Level) -> (f64, f64);

    /// How the estimate would be spread where `bound` is true, as far as the method says it.
    fn reference(&self, _bound: f64, _observed: f64) -> Option<Reference> {
        None
    }

    /// Random draws, where there are any.
    fn draws(&self) -> Option<u32> {
        None
    }

    /// Whether all units are equal.
    fn no_variation(&self, _tie: f64) -> bool {
        false
    }

    /// Whether this is the point law of equal units.
    fn is_point(&self) -> bool {
        false
    }

    /// Whether p-values at the null value come from another test than the interval.
    fn is_approximate(&self) -> bool {
        false
    }
}
