//! A fit of negated values, read on the scale of the values.

use std::sync::Arc;

use super::Model;
use crate::level::Level;

#[derive(Clone, Debug)]
pub(crate) struct Negated {
    pub inner: Arc<dyn Model>,
}

impl Model for Negated {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        self.inner.p_at_least(-bound, tie)
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        self.inner.p_at_most(-bound, tie)
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let (low, high) = self.inner.interval(error);
        (-high, -low)
    }

    fn draws(&self) -> Option<u32> {
        self.inner.draws()
    }

    fn no_variation(&self, tie: f64) -> bool {
        self.inner.no_variation(tie)
    }

    fn is_point(&self) -> bool {
        self.inner.is_point()
    }

    fn is_approximate(&self) -> bool {
        self.inner.is_approximate()
    }
}
