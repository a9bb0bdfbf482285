//! The difference of two shares by Newcombe (1998): Wilson limits of each arm, squared and added, for independent arms;
//! for pairs under the correlation φ of their outcomes (Statistics in Medicine 17, pp. 2635–2650, method 10).

use super::{Model, Score};
use crate::level::Level;
use crate::special::normal;

#[derive(Clone, Debug)]
pub(crate) struct Newcombe {
    pub first: Score,
    pub second: Score,
    /// The correlation φ of the outcomes of pairs; 0 for independent arms.
    pub correlation: f64,
}

impl Newcombe {
    fn shares(&self) -> (f64, f64) {
        let share = |score: &Score| score.successes as f64 / score.trials as f64;
        (share(&self.first), share(&self.second))
    }

    /// √(x² − 2φxy + y²), which is at least (1 − |φ|) of the square and so never below zero but by rounding.
    fn added(&self, x: f64, y: f64) -> f64 {
        if self.correlation == 0.0 {
            return x.hypot(y);
        }
        (x * x - 2.0 * self.correlation * x * y + y * y).max(0.0).sqrt()
    }

    fn low(&self, z: f64) -> f64 {
        let (p, q) = self.shares();
        let (l, u) = (self.first.limits(z).0, self.second.limits(z).1);
        p - q - self.added(p - l, u - q)
    }

    fn high(&self, z: f64) -> f64 {
        let (p, q) = self.shares();
        let (u, l) = (self.first.limits(z).1, self.second.limits(z).0);
        p - q + self.added(u - p, q - l)
    }

    /// The one-sided p at which the limit that moves away with z reaches the bound: `excess(z)` is positive while
    /// the bound is outside.
    fn invert(excess: impl Fn(f64) -> f64) -> f64 {
        const FAR: f64 = 38.0;
        if excess(0.0) <= 0.0 {
            return 1.0;
        }
        if excess(FAR) > 0.0 {
            return normal::above(FAR);
        }
        let (mut out, mut inside) = (0.0, FAR);
        for _ in 0..200 {
            let middle = 0.5 * (out + inside);
            if middle <= out || middle >= inside {
                break;
            }
            if excess(middle) > 0.0 { out = middle } else { inside = middle }
        }
        normal::above(inside)
    }
}

impl Model for Newcombe {
    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        Newcombe::invert(|z| self.low(z) - bound)
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        Newcombe::invert(|z| bound - self.high(z))
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let z = -normal::quantile(0.5 * error.to_f64());
        (self.low(z), self.high(z))
    }
}
