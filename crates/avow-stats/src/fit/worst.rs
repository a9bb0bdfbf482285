//! An interval whose two ends come from two resampled statistics: the lowest of several means.

use super::Model;
use crate::level::Level;

#[derive(Clone, Debug)]
pub(crate) struct Worst {
    /// The resampled statistic that ends the interval below, ascending.
    pub lower: Vec<f64>,
    /// The one that ends it above, ascending.
    pub upper: Vec<f64>,
}

impl Worst {
    fn total(&self) -> u64 {
        self.lower.len() as u64 + 1
    }
}

impl Model for Worst {
    fn draws(&self) -> Option<u32> {
        u32::try_from(self.lower.len()).ok()
    }

    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        let count = self.lower.partition_point(|low| *low <= bound + tie) as u64;
        (1 + count) as f64 / self.total() as f64
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        let count = (self.upper.len() - self.upper.partition_point(|high| *high < bound - tie)) as u64;
        (1 + count) as f64 / self.total() as f64
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        match usize::try_from(error.half_floor(self.total())) {
            Ok(k) if k >= 1 && k <= self.lower.len() => (self.lower[k - 1], self.upper[self.upper.len() - k]),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}
