//! Values at which watching ended: "it never generalised within 5,000 steps" is not missing.
//!
//! Where every such value lies at one common budget τ and no event lies beyond it, min(T, τ) is an ordinary value: its mean
//! is the restricted mean survival time, ranks take it as the largest, and shares and medians can be told for bounds
//! below τ. That is what the usual methods are given. Unequal budgets need `method: restricted-mean` or `log-rank`.

use avow_model::claim::{Bound, Condition, Inference, Method, Rule, Statistic};
use avow_stats::survival::{self, Curve, Time};
use avow_stats::{Fit, Void};

use super::reason::Reason;
use super::sample::Sample;
use super::verdict::Qualifier;

/// The times of an arm.
fn times(numbers: &Sample, arm: usize) -> Vec<Time> {
    let flags = numbers.censored.get(arm).map(Vec::as_slice).unwrap_or_default();
    let cut = |unit: usize| flags.get(unit).copied().unwrap_or(false);
    numbers.values(arm).into_iter().enumerate().map(|(unit, at)| Time { at, event: !cut(unit) }).collect()
}

fn count(numbers: &Sample) -> usize {
    numbers.censored.iter().flatten().filter(|cut| **cut).count()
}

/// What is to be said of cut-off values, or why a rule cannot take them.
pub(super) fn check(rule: &Rule, numbers: &Sample) -> Result<Option<Qualifier>, Reason> {
    let units = count(numbers);
    let method = rule.inference().map(|settings| settings.method);
    if units == 0 || matches!(method, Some(Method::RestrictedMean | Method::LogRank)) {
        return Ok((units > 0).then_some(Qualifier::Censored { units, budget: None }));
    }
    let mut budget: Option<f64> = None;
    let mut latest = f64::NEG_INFINITY;
    for (arm, rows) in numbers.arms.iter().enumerate() {
        for (unit, row) in rows.iter().enumerate() {
            latest = row.iter().copied().fold(latest, f64::max);
            if !numbers.censored[arm][unit] {
                continue;
            }
            // Of several points some may be known; their latest is where watching ended.
            let at = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if *budget.get_or_insert(at) != at {
                return Err(Reason::Censored("units were watched for unequal times".to_owned()));
            }
        }
    }
    let budget = budget.unwrap_or(latest);
    if latest > budget {
        return Err(Reason::Censored(format!("some values lie beyond {budget}, where others were cut off")));
    }
    let bounds = asked(rule);
    if let Some(beyond) = bounds.into_iter().find(|bound| *bound >= budget) {
        return Err(Reason::Censored(format!("{beyond} is not below {budget}, where watching ended")));
    }
    Ok(Some(Qualifier::Censored { units, budget: Some(budget) }))
}

/// The values that must lie below the budget to be told: bounds of a median, and what counts as a success.
fn asked(rule: &Rule) -> Vec<f64> {
    match rule {
        Rule::Threshold { statistic: Statistic::Median | Statistic::Every, bound, .. } => match *bound {
            Bound::Above { bound, refute } | Bound::Below { bound, refute } => vec![bound, refute],
            Bound::Between { low, high } => vec![low, high],
        },
        Rule::Proportion { success, .. } => match *success {
            Condition::Above(x) | Condition::Below(x) | Condition::AtMost(x) => vec![x],
            // At the budget itself "at least" is known.
            Condition::AtLeast(x) => vec![x.next_down()],
        },
        _ => Vec::new(),
    }
}

/// The fit of a method that takes unequal budgets; `None` for all others.
pub(super) fn fit(settings: &Inference, numbers: &Sample) -> Result<Option<Fit>, Reason> {
    let two = numbers.arms.len() == 2;
    let takes = matches!(settings.method, Method::RestrictedMean | Method::LogRank);
    if takes && numbers.arms.len() > 2 {
        return Err(Reason::Unsuited("a contrast of four arms that were cut off".to_owned()));
    }
    Ok(match settings.method {
        Method::RestrictedMean => {
            let until = until(settings)?;
            let first = times(numbers, 0);
            Some(match two {
                true => survival::restricted_difference(&first, &times(numbers, 1), until)?,
                false => survival::restricted_mean(&first, until)?,
            })
        }
        Method::LogRank if two => Some(survival::log_rank_fit(&times(numbers, 0), &times(numbers, 1))?),
        Method::LogRank => return Err(Reason::Unsuited("a log-rank test of one arm".to_owned())),
        _ => None,
    })
}

fn until(settings: &Inference) -> Result<f64, Reason> {
    settings.until.ok_or_else(|| Reason::BadClaim("a restricted mean without `until`".to_owned()))
}

/// The restricted mean, or the difference of two, for a claim that is judged by its estimate.
pub(super) fn estimate(settings: &Inference, numbers: &Sample) -> Result<Option<f64>, Reason> {
    let Some(until) = settings.until else { return Ok(None) };
    let mean =
        |arm: usize| -> Result<f64, Void> { Ok(Curve::of(&times(numbers, arm))?.restricted_mean(until)?.0) };
    Ok(Some(if numbers.arms.len() == 2 { mean(0)? - mean(1)? } else { mean(0)? }))
}
