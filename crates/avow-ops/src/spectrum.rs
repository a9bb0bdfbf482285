//! Readings of "rank" from singular values.
//!
//! Singular values at or below max(m, n)·ε·σ₁ are rounding noise that differs between libraries; they are
//! zero here before anything is computed. An all-zero matrix has rank 0 and its ratios are undefined (NaN).

use crate::matrix::Matrix;

/// Singular values, largest first, with rounding noise set to zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    values: Vec<f64>,
}

impl Spectrum {
    /// The spectrum of a matrix; `None` where it has entries that are not finite.
    pub fn of(matrix: &Matrix) -> Option<Spectrum> {
        let mut values = matrix.singular_values()?;
        let cut = matrix.rows().max(matrix.columns()) as f64 * f64::EPSILON * values[0];
        for value in &mut values {
            if *value <= cut {
                *value = 0.0;
            }
        }
        Some(Spectrum { values })
    }

    /// The singular values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The number of singular values above rounding noise.
    pub fn exact_rank(&self) -> usize {
        self.rank_above(0.0)
    }

    /// The number of singular values above `fraction` of the largest.
    pub fn rank_above(&self, fraction: f64) -> usize {
        let cut = fraction * self.values[0];
        self.values.iter().filter(|&&s| s > cut).count()
    }

    /// (Σλ)²/Σλ² with λ = σ².
    pub fn participation(&self) -> f64 {
        let energies = self.energies();
        let total: f64 = energies.iter().sum();
        total * total / energies.iter().map(|e| e * e).sum::<f64>()
    }

    /// exp(−Σ p ln p) with p = σ/Σσ.
    pub fn effective_rank(&self) -> f64 {
        entropy_rank(&self.relative())
    }

    /// exp(−Σ p ln p) with p = σ²/Σσ².
    pub fn effective_rank_of_energy(&self) -> f64 {
        entropy_rank(&self.energies())
    }

    /// Σλ/λ₁.
    pub fn stable_rank(&self) -> f64 {
        self.energies().iter().sum()
    }

    /// σ/σ₁: every reading is free of scale, and squares of these cannot overflow.
    fn relative(&self) -> Vec<f64> {
        self.values.iter().map(|s| s / self.values[0]).collect()
    }

    fn energies(&self) -> Vec<f64> {
        self.relative().iter().map(|s| s * s).collect()
    }
}

fn entropy_rank(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    if !total.is_finite() {
        return f64::NAN;
    }
    let shares = weights.iter().map(|w| w / total).filter(|&p| p > 0.0);
    libm::exp(-shares.map(|p| p * libm::log(p)).sum::<f64>())
}
