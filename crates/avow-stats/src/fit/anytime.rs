//! Tests that hold at every look: the t-mixture and betting on bounded values.
//!
//! Both exclude a value of θ from one side: the side of the running mean at the look that excludes it most. The
//! two-sided evidence is therefore halved for that side, and the other side has p = 1.

use super::Model;
use crate::level::Level;
use crate::sequential::{self, Mixture};

/// The t-mixture over units in registered order.
#[derive(Debug)]
pub(crate) struct Anytime {
    /// The units.
    pub values: Vec<f64>,
}

impl Anytime {
    /// The anytime p-value of θ = bound, and whether the units lie above it.
    fn two_sided(&self, bound: f64) -> (f64, bool) {
        let looks = (2..=self.values.len()).filter_map(|n| Mixture::of(&self.values[..n]));
        let best = looks.map(|look| (look.log_e_value(bound), look.mean > bound));
        let (log, above) = best.fold((0.0, true), |a, b| if b.0 > a.0 { b } else { a });
        ((-log).exp(), above)
    }
}

impl Model for Anytime {
    fn p_at_most(&self, bound: f64, _tie: f64) -> f64 {
        let (p, above) = self.two_sided(bound);
        if above { 0.5 * p } else { 1.0 - 0.5 * p }
    }

    fn p_at_least(&self, bound: f64, _tie: f64) -> f64 {
        let (p, above) = self.two_sided(bound);
        if above { 1.0 - 0.5 * p } else { 0.5 * p }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let last = sequential::mixture(&self.values, error.to_f64()).pop();
        last.map_or((f64::NEG_INFINITY, f64::INFINITY), |look| (look.low, look.high))
    }
}

/// Betting on values in a declared range.
#[derive(Debug)]
pub(crate) struct Betting {
    /// The units.
    pub values: Vec<f64>,
    /// The declared range.
    pub range: (f64, f64),
}

impl Betting {
    /// The least error at which θ = bound is excluded, by bisection on its logarithm, and the side. Bets depend on the
    /// error, so there is no closed form; excluding is monotone in it up to rounding, and the larger end is taken.
    fn two_sided(&self, bound: f64) -> (f64, bool) {
        let above = crate::sum::mean(&self.values) > bound;
        let (low, high) = self.range;
        if bound <= low || bound >= high {
            return (if (bound < low) == above && bound != low && bound != high { 0.0 } else { 1.0 }, above);
        }
        let excluded = |error: f64| sequential::betting_excludes(&self.values, self.range, bound, error);
        if !excluded(1.0 - 1e-9) {
            return (1.0, above);
        }
        let (mut outside, mut inside) = (-700.0_f64, 0.0_f64);
        while inside - outside > 1e-10 {
            let middle = 0.5 * (inside + outside);
            if excluded(middle.exp()) { inside = middle } else { outside = middle }
        }
        (inside.exp(), above)
    }
}

impl Model for Betting {
    fn p_at_most(&self, bound: f64, _tie: f64) -> f64 {
        let (p, above) = self.two_sided(bound);
        if above { 0.5 * p } else { 1.0 - 0.5 * p }
    }

    fn p_at_least(&self, bound: f64, _tie: f64) -> f64 {
        let (p, above) = self.two_sided(bound);
        if above { 1.0 - 0.5 * p } else { 0.5 * p }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        sequential::betting_interval(&self.values, self.range, error.to_f64())
    }
}
