//! All units equal: the interval is the point, and only the number of units speaks.

use super::Model;
use crate::level::Level;

#[derive(Clone, Debug)]
pub(crate) struct Constant {
    pub value: f64,
    /// The one-sided p-value on either side of the value.
    pub tail: f64,
}

impl Model for Constant {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        if self.value > bound + tie { self.tail } else { 1.0 }
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        if self.value < bound - tie { self.tail } else { 1.0 }
    }

    fn interval(&self, _: Level) -> (f64, f64) {
        (self.value, self.value)
    }

    fn no_variation(&self, _: f64) -> bool {
        true
    }

    fn is_point(&self) -> bool {
        true
    }
}
