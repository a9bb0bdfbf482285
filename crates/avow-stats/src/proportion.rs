//! Proportions: of one arm, of two independent arms, and of pairs.
//!
//! One arm is exact by default (Clopper–Pearson), because the usual approximations cover as little as 83 % at n ≤ 20.
//! Two arms at bound 0 are tested exactly (Fisher, McNemar); any other bound, and the interval shown, is Newcombe's,
//! which is approximate: of independent arms or of pairs. The interval of the discordant share, mapped to the difference,
//! is not used for pairs: it is conditional on how many pairs differ, and covers the difference in 66 % where it says 95 %.
//! Absent: the test of what counts as a success, which is the caller's.

use crate::fit::{Fit, Newcombe, Score};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::special::binomial;

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

/// The fewest trials of an arm, or pairs, at which Newcombe's interval may decide.
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
    let model = Newcombe { first: score(first), second: score(second), correlation: 0.0 };
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

/// Pairs of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairs {
    /// Both arms succeeded.
    pub both: u64,
    /// Only the first did.
    pub only_first: u64,
    /// Only the second did.
    pub only_second: u64,
    /// Neither did.
    pub neither: u64,
}

impl Pairs {
    /// How many pairs there are; `None` where that is no number of 64 bits.
    pub fn total(&self) -> Option<u64> {
        let one = self.both.checked_add(self.only_first)?;
        one.checked_add(self.only_second)?.checked_add(self.neither)
    }

    /// φ of the table with Newcombe's correction for continuity: the numerator ad − bc, where positive, less n/2 but not
    /// below 0. 0 where a margin is empty.
    pub fn correlation(&self) -> f64 {
        let [a, b, c, d] = [self.both, self.only_first, self.only_second, self.neither].map(|k| k as f64);
        let margins = [a + b, c + d, a + c, b + d];
        if margins.contains(&0.0) {
            return 0.0;
        }
        let crossed = a * d - b * c;
        let numerator = if crossed > 0.0 { (crossed - 0.5 * (a + b + c + d)).max(0.0) } else { crossed };
        numerator / margins.iter().map(|margin| margin.sqrt()).product::<f64>()
    }
}

/// The difference of shares first − second over pairs. At bound 0 McNemar's exact test on the discordant pairs decides;
/// elsewhere Newcombe's interval for pairs inverted, which needs ten pairs where such a bound is asked (`other_bounds`).
/// No discordant pair leaves nothing to test at 0: [`Void::Undefined`] unless another bound is asked.
pub fn paired(pairs: Pairs, other_bounds: bool) -> Result<Fit, Void> {
    let total = pairs.total().ok_or(Void::Domain)?;
    let discordant = pairs.only_first + pairs.only_second;
    match total {
        0 => return Err(Void::NoUnits),
        1 => return Err(Void::BelowMinimumN),
        _ if other_bounds && total < LEAST_FOR_NEWCOMBE => return Err(Void::BelowMinimumN),
        _ if discordant == 0 && !other_bounds => return Err(Void::Undefined),
        _ => {}
    }
    let score = |only: u64| Score { successes: pairs.both + only, trials: total };
    let (first, second) = (score(pairs.only_first), score(pairs.only_second));
    let model = Newcombe { first, second, correlation: pairs.correlation() };
    let estimate = (pairs.only_first as f64 - pairs.only_second as f64) / total as f64;
    let sample = Sample::One(usize::try_from(total).unwrap_or(usize::MAX));
    let fit = Fit::new(estimate, Method::McNemar, sample, 1e-12, model);
    let at_most = binomial::at_least(pairs.only_first, discordant, 0.5);
    let at_least = binomial::at_most(pairs.only_first, discordant, 0.5);
    Ok(fit.with_test_at(0.0, at_most, at_least, None))
}
