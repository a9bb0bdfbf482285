//! Proportion of one arm: exact binomial p-values and Clopper–Pearson limits.
//!
//! Exact because the usual approximations cover as little as 83 % at n ≤ 20. Absent: two arms, and the test of
//! what counts as a success, which is the caller's.

use crate::fit::Fit;
use crate::reason::Void;

/// The share of `successes` in `trials`, at least 2 (one unit makes no inference anywhere). More successes than
/// trials: [`Void::Domain`].
pub fn one_arm(successes: u64, trials: u64) -> Result<Fit, Void> {
    if trials == 0 {
        return Err(Void::NoUnits);
    }
    if successes > trials {
        return Err(Void::Domain);
    }
    if trials == 1 {
        return Err(Void::BelowMinimumN);
    }
    Ok(Fit::share(successes, trials))
}
