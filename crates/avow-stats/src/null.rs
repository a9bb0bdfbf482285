//! Calibration of a score against its permutation null.
//!
//! The observed score stands among K scores of permuted rows. τ is the critical value of the K + 1 together,
//! p the add-one permutation p-value, and the calibrated score what exceeds τ, so that score > 0 ⇔
//! p ≤ floor(α(K + 1))/(K + 1). Under the null it is 0 with probability at least 1 − α.
//!
//! Source: arXiv 2602.14486. Absent: the permuting itself (draws are in [`crate::rng`]) and the metric.

use crate::level::Level;
use crate::reason::Void;
use crate::ties;
use crate::units::require;

/// Why a score cannot be calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NullError {
    /// A score is missing or not finite.
    #[error("the scores cannot be used")]
    Scores(#[source] Void),
    /// With so few permutations τ is the largest of all and the score always 0.
    #[error("{permutations} permutations cannot reach level {level}; at least {needed} are needed")]
    TooFew {
        /// K as given.
        permutations: u64,
        /// The smallest K with K ≥ 1/α − 1.
        needed: u64,
        /// α.
        level: Level,
    },
}

/// A calibrated score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibrated {
    /// The observed score.
    pub observed: f64,
    /// τ, the r-th smallest of observed and null scores, r = ceil((1 − α)(K + 1)).
    pub threshold: f64,
    /// (1 + #{null ≥ observed})/(K + 1).
    pub p: f64,
    /// observed − τ, at least 0, over (ceiling − τ) where the score has a ceiling.
    pub score: f64,
    /// max(0, observed − τ), on the scale of the score.
    pub excess: f64,
}

/// Calibrates `observed` against `nulls`, K draws of the score under permutation (a draw that happens to be the
/// identity counts like any other). `ceiling` is the largest value the score can take, if it has one.
pub fn calibrate(
    observed: f64,
    nulls: &[f64],
    alpha: Level,
    ceiling: Option<f64>,
) -> Result<Calibrated, NullError> {
    require(&[observed], 1).map_err(NullError::Scores)?;
    require(nulls, 1).map_err(NullError::Scores)?;
    let permutations = nulls.len() as u64;
    let needed = needed_permutations(alpha);
    if permutations < needed {
        return Err(NullError::TooFew { permutations, needed, level: alpha });
    }
    let mut sorted = nulls.to_vec();
    sorted.push(observed);
    let tie = ties::margin(sorted.iter().copied());
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = alpha.upper_rank(permutations + 1);
    let threshold = sorted[usize::try_from(rank).expect("at most K + 1") - 1];
    let reached = nulls.iter().filter(|null| **null >= observed - tie).count();
    let p = (1 + reached) as f64 / (permutations + 1) as f64;
    // An excess within the margin is a tie with the threshold, which the p-value counts against the score.
    let excess = if observed - tie > threshold { observed - threshold } else { 0.0 };
    let score = match ceiling {
        Some(ceiling) => (excess / (ceiling - threshold).max(1e-12)).min(1.0),
        None => excess,
    };
    Ok(Calibrated { observed, threshold, p, score, excess })
}

/// The smallest K with α(K + 1) ≥ 1, below which no score can be positive.
pub fn needed_permutations(alpha: Level) -> u64 {
    let guess = (1.0 / alpha.to_f64()).floor() as u64;
    // The guess is within one of the exact ceiling of 1/α.
    (guess.saturating_sub(1)..).find(|total| alpha.floor(*total) >= 1).map_or(guess, |total| total - 1)
}
