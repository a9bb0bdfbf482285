//! Shares of trials: exact (Clopper–Pearson) and by score (Wilson).

use super::Model;
use crate::level::Level;
use crate::reference::Reference;
use crate::special::{binomial, normal};

/// `successes` in `trials`, exact.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub successes: u64,
    pub trials: u64,
}

/// Trials beyond which no picture of every count is made.
const COUNTED: u64 = 100_000;

impl Model for Share {
    fn reference(&self, bound: f64, observed: f64) -> Option<Reference> {
        let n = self.trials;
        if n > COUNTED || !(0.0..=1.0).contains(&bound) {
            return None;
        }
        let below = |k: u64| if k == 0 { 0.0 } else { binomial::at_most(k - 1, n, bound) };
        let shares =
            (0..=n).map(|k| (k as f64 / n as f64, (binomial::at_most(k, n, bound) - below(k)).max(0.0)));
        Reference::of_weighted(bound, observed, &shares.collect::<Vec<_>>(), None)
    }

    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        // No share is at or below a negative number.
        if bound < 0.0 { 0.0 } else { binomial::at_least(self.successes, self.trials, bound) }
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        if bound > 1.0 { 0.0 } else { binomial::at_most(self.successes, self.trials, bound) }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let half = 0.5 * error.to_f64();
        (
            binomial::lower_limit(self.successes, self.trials, half),
            binomial::upper_limit(self.successes, self.trials, half),
        )
    }
}

/// `successes` in `trials` by the score test (Wilson 1927): z = (p̂ − b)/√(b(1 − b)/n).
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub successes: u64,
    pub trials: u64,
}

impl Score {
    fn share(&self) -> f64 {
        self.successes as f64 / self.trials as f64
    }

    /// P(Z ≥ gap/√(b(1 − b)/n)); where the bound leaves no spread, the position alone.
    fn tail(&self, bound: f64, gap: f64) -> f64 {
        let spread = (bound * (1.0 - bound) / self.trials as f64).max(0.0).sqrt();
        if spread > 0.0 {
            normal::above(gap / spread)
        } else if gap > 0.0 {
            0.0
        } else {
            1.0
        }
    }

    /// The limit at which the score test has one-sided p = Φ(−z).
    pub(crate) fn limits(&self, z: f64) -> (f64, f64) {
        let (n, p) = (self.trials as f64, self.share());
        let square = z * z;
        let centre = (p + square / (2.0 * n)) / (1.0 + square / n);
        let reach = z / (1.0 + square / n) * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
        let low = if self.successes == 0 { 0.0 } else { centre - reach };
        let high = if self.successes == self.trials { 1.0 } else { centre + reach };
        (low, high)
    }
}

impl Model for Score {
    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        if bound < 0.0 { 0.0 } else { self.tail(bound, self.share() - bound) }
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        if bound > 1.0 { 0.0 } else { self.tail(bound, bound - self.share()) }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        self.limits(-normal::quantile(0.5 * error.to_f64()))
    }
}
