//! The bias-corrected and accelerated bootstrap (Efron 1987), with p-values by inversion.
//!
//! Order statistics of B resampled statistics at levels Φ(z₀ + (z₀ ± z)/(1 − A(z₀ ± z))). Quantile Q(p) has rank
//! floor((B + 1)p) below one half and ceil((B + 1)p) above, within 1 … B. The p-value of θ ≤ b is the smallest a/2
//! whose interval excludes b, never below 1/(B + 1).

use super::Model;
use crate::level::Level;
use crate::special::normal;

#[derive(Clone, Debug)]
pub(crate) struct Bca {
    /// Resampled statistics, ascending.
    pub sorted: Vec<f64>,
    /// z₀, the bias correction.
    pub bias: f64,
    /// A, the acceleration.
    pub acceleration: f64,
}

impl Bca {
    /// The level that a normal quantile becomes; `None` where the acceleration turns it round.
    pub(crate) fn level(&self, z: f64) -> Option<f64> {
        let shifted = self.bias + z;
        let room = 1.0 - self.acceleration * shifted;
        (room > 0.0).then(|| normal::below(self.bias + shifted / room))
    }

    fn quantile(&self, level: f64) -> f64 {
        let draws = self.sorted.len();
        let place = (draws + 1) as f64 * level;
        // A product that is whole up to rounding is whole.
        let whole = (place - place.round()).abs() <= 1e-9 * place.abs().max(1.0);
        let rank = match (whole, level < 0.5) {
            (true, _) => place.round(),
            (false, true) => place.floor(),
            (false, false) => place.ceil(),
        };
        self.sorted[(rank.max(1.0) as usize).min(draws) - 1]
    }

    /// The a/2 whose level is `level`: the inverse of [`Bca::level`].
    fn error_at(&self, level: f64) -> f64 {
        let gap = normal::quantile(level) - self.bias;
        let room = 1.0 + self.acceleration * gap;
        if room <= 0.0 { 1.0 } else { normal::below(gap / room - self.bias) }
    }

    /// Bounds a p-value below by 1/(B + 1).
    fn floored(&self, p: f64) -> f64 {
        p.clamp(1.0 / (self.sorted.len() + 1) as f64, 1.0)
    }
}

impl Model for Bca {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        let beaten = self.sorted.partition_point(|m| *m <= bound + tie);
        if beaten == self.sorted.len() {
            return 1.0;
        }
        self.floored(self.error_at((beaten + 1) as f64 / (self.sorted.len() + 1) as f64))
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        let below = self.sorted.partition_point(|m| *m < bound - tie);
        if below == 0 {
            return 1.0;
        }
        // The upper end has rank `below` or less exactly from this level down.
        self.floored(1.0 - self.error_at(below as f64 / (self.sorted.len() + 1) as f64))
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let z = normal::quantile(0.5 * error.to_f64());
        match (self.level(z), self.level(-z)) {
            (Some(low), Some(high)) => (self.quantile(low), self.quantile(high)),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    fn draws(&self) -> Option<u32> {
        u32::try_from(self.sorted.len()).ok()
    }
}
