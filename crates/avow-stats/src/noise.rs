//! Noise floor: the spread of replicates that differ in the seed only, and the effect it hides.
//!
//! The interval of a standard deviation assumes normal values and covers poorly without (printed so). Effects
//! under the floor are shown as such, never voided. Absent: variance components of several sources.

use crate::interval::Interval;
use crate::level::Level;
use crate::reason::Void;
use crate::special::beta::Tail;
use crate::special::{chi_square, student};
use crate::sum::{deviation, norm};
use crate::units::require;

/// A standard deviation and its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation.
    pub sd: f64,
    /// Σ(n_c − 1).
    pub df: usize,
}

impl Noise {
    /// Of one cell's replicates; n ≥ 2.
    pub fn of(values: &[f64]) -> Result<Noise, Void> {
        Noise::pooled(&[values])
    }

    /// Pooled over cells: √(Σ(n_c − 1)s_c²/Σ(n_c − 1)); cells of one replicate add nothing.
    pub fn pooled(cells: &[&[f64]]) -> Result<Noise, Void> {
        if cells.is_empty() {
            return Err(Void::NoUnits);
        }
        for cell in cells {
            require(cell, 1)?;
        }
        let df: usize = cells.iter().map(|c| c.len() - 1).sum();
        if df == 0 {
            return Err(Void::BelowMinimumN);
        }
        // √Σ(n_c − 1)s_c² is the norm of all deviations from the cells' means.
        let parts =
            cells.iter().filter(|c| c.len() > 1).map(|c| ((c.len() - 1) as f64).sqrt() * deviation(c));
        Ok(Noise { sd: norm(parts) / (df as f64).sqrt(), df })
    }

    /// s·√(df/χ²), the interval of the standard deviation of normal values.
    pub fn interval(&self, error: Level) -> Interval {
        let (half, df) = (0.5 * error.to_f64(), self.df as f64);
        let end = |tail| self.sd * (df / chi_square::quantile(tail, df)).sqrt();
        let (low, high) = (end(Tail::Upper(half)), end(Tail::Lower(half)));
        Interval { low, high, error, tie: 1e-12 * self.sd }
    }

    /// The smallest effect that n pairs detect at two-sided `alpha` with probability `power`:
    /// (t_{1−α/2} + t_power)·s/√n. An approximation; [`crate::power`] is exact.
    pub fn detectable_paired(&self, pairs: usize, alpha: Level, power: f64) -> f64 {
        self.detectable((pairs - 1) as f64, 1.0 / pairs as f64, alpha, power)
    }

    /// The same for two arms of n units each: s·√(2/n) in place of s/√n.
    pub fn detectable_two_arms(&self, per_arm: usize, alpha: Level, power: f64) -> f64 {
        self.detectable((2 * per_arm - 2) as f64, 2.0 / per_arm as f64, alpha, power)
    }

    fn detectable(&self, df: f64, share: f64, alpha: Level, power: f64) -> f64 {
        let quantiles =
            student::upper_quantile(0.5 * alpha.to_f64(), df) + student::upper_quantile(1.0 - power, df);
        quantiles * self.sd * share.sqrt()
    }
}
