//! Any test of logarithms read on the scale of the values: a geometric mean.

use std::sync::Arc;

use super::Model;
use crate::level::Level;

/// A model of ln values; bounds go in by their logarithm, ends come back by the exponential.
#[derive(Debug)]
pub(crate) struct Logged {
    /// The model of the logarithms.
    pub inner: Arc<dyn Model>,
    /// The margin under which logarithms are equal.
    pub tie: f64,
}

impl Model for Logged {
    fn p_at_most(&self, bound: f64, _tie: f64) -> f64 {
        // Nothing positive is at or below 0.
        if bound <= 0.0 { 0.0 } else { self.inner.p_at_most(bound.ln(), self.tie) }
    }

    fn p_at_least(&self, bound: f64, _tie: f64) -> f64 {
        if bound <= 0.0 { 1.0 } else { self.inner.p_at_least(bound.ln(), self.tie) }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let (low, high) = self.inner.interval(error);
        (low.exp(), high.exp())
    }

    fn draws(&self) -> Option<u32> {
        self.inner.draws()
    }

    fn no_variation(&self, _tie: f64) -> bool {
        self.inner.no_variation(self.tie)
    }

    fn is_point(&self) -> bool {
        self.inner.is_point()
    }

    fn is_approximate(&self) -> bool {
        self.inner.is_approximate()
    }
}
