//! Proportions: of one arm, of two independent arms, and of pairs.
//!
//! One arm is exact by default (Clopper–Pearson), because the usual approximations cover as little as 83 % at n ≤ 20.
//! Two arms at bound 0 are tested exactly (Fisher, McNemar); any other bound, and the interval shown, is Newcombe's,
//! which is approximate. Absent: the test of what counts as a success, which is the caller's.

use crate::fit::{Discordant, Fit, Newcombe, Score};
use crate::method::{Method, Sample};
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

/// The share of `successes` in `trials` by the score test, with Wilson's interval. As [`one_arm`] otherwise.
pub fn wilson(successes: u64, trials: u64) -> Result<Fit, Void> {
    let exact = one_arm(successes, trials)?;
    Ok(Fit::new(exact.estimate(), Method::Wilson, exact.sample(), 1e-12, Score { successes, trials }))
}

/// Successes and trials of one arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arm {
    /// Successes.
    pub successes: u64,
    /// Trials.
    pub trials: u64,
}

/// The fewest trials of an arm at which Newcombe's interval may decide.
pub const LEAST_FOR_NEWCOMBE: u64 = 10;

/// The difference of shares first − second. At bound 0 Fisher's exact test decides, one-sided either way; elsewhere
/// Newcombe's interval inverted, which needs ten trials an arm where such a bound is asked (`other_bounds`).
pub fn two_arms(first: Arm, second: Arm, other_bounds: bool) -> Result<Fit, Void> {
    for arm in [first, second] {
        one_arm(arm.successes, arm.trials)?;
        if other_bounds && arm.trials < LEAST_FOR_NEWCOMBE {
            return Err(Void::BelowMinimumN);
        }
    }
    let score = |arm: Arm| Score { successes: arm.successes, trials: arm.trials };
    let share = |arm: Arm| arm.successes as f64 / arm.trials as f64;
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let sample = Sample::Two(count(first.trials), count(second.trials));
    let model = Newcombe { first: score(first), second: score(second) };
    let fit = Fit::new(share(first) - share(second), Method::Newcombe, sample, 1e-12, model);
    let (at_most, at_least) = fisher(first, second);
    Ok(fit.with_test_at(0.0, at_most, at_least, None))
}

/// Fisher's exact one-sided p-values of "first − second ≤ 0" and "≥ 0": hypergeometric tails at fixed margins.
pub fn fisher(first: Arm, second: Arm) -> (f64, f64) {
    let (n, m, k) = (first.trials, second.trials, first.successes + second.successes);
    let (least, most) = (k.saturating_sub(m), k.min(n));
    // Weights relative to the likeliest table, so that nothing overflows and what underflows is nothing.
    let mode = (u128::from(n + 1) * u128::from(k + 1) / u128::from(n + m + 2)) as u64;
    let mode = mode.clamp(least, most);
    let up = |a: u64| (n - a) as f64 * (k - a) as f64 / ((a + 1) as f64 * (m + a + 1 - k) as f64);
    let mut weights = vec![1.0; (most - least + 1) as usize];
    for a in mode..most {
        weights[(a + 1 - least) as usize] = weights[(a - least) as usize] * up(a);
    }
    for a in (least..mode).rev() {
        weights[(a - least) as usize] = weights[(a + 1 - least) as usize] / up(a);
    }
    let total = |part: &[f64]| crate::sum::sum(part.iter().copied());
    let (seen, all) = ((first.successes - least) as usize, total(&weights));
    ((total(&weights[seen..]) / all).min(1.0), (total(&weights[..=seen]) / all).min(1.0))
}

/// Pairs of outcomes: how often only the first succeeded, only the second, and of how many.
///
/// McNemar's exact test on the discordant pairs; the interval is Clopper–Pearson of the discordant share, mapped to the
/// difference and conditional on their number. No discordant pair: [`Void::Undefined`].
pub fn paired(only_first: u64, only_second: u64, pairs: u64) -> Result<Fit, Void> {
    let discordant = only_first.checked_add(only_second).filter(|d| *d <= pairs).ok_or(Void::Domain)?;
    match pairs {
        0 => return Err(Void::NoUnits),
        1 => return Err(Void::BelowMinimumN),
        _ if discordant == 0 => return Err(Void::Undefined),
        _ => {}
    }
    let estimate = (only_first as f64 - only_second as f64) / pairs as f64;
    let sample = Sample::One(usize::try_from(pairs).unwrap_or(usize::MAX));
    let model = Discordant { first: only_first, discordant, pairs };
    Ok(Fit::new(estimate, Method::McNemar, sample, 1e-12, model))
}
