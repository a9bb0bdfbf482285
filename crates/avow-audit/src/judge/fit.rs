//! From a rule's numbers to a fit, by the registered method.

use avow_model::claim::{
    Bound, Coefficient, Condition, Extreme, Inference, Method, RankStatistic, Rule, Scale, Statistic,
    TrendOf, Weighting,
};
use avow_model::value::Value;
use avow_stats::agreement::{self, TwoRaters};
use avow_stats::calibration::Forecasts;
use avow_stats::clusters;
use avow_stats::correlation;
use avow_stats::power_law::{self, Weights};
use avow_stats::proportion::{self, Arm};
use avow_stats::rng::Draws;
use avow_stats::{Fit, Units, bootstrap, difference, ratio, slope, trend};

use super::censoring;
use super::reason::Reason;
use super::rule::Setting;
use super::sample::Sample;
use super::worst;
use crate::join::Joined;

/// The fit of a rule with its registered method.
pub(super) fn fit(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Result<Fit, Reason> {
    let rule = &setting.part.rule;
    let settings = rule.inference().ok_or_else(|| Reason::Unsuited(rule.word().to_owned()))?;
    let (method, unpaired) = (settings.method, settings.is_unpaired());
    let draws = setting.draws(&joined.per);
    if let Some(fit) = censoring::fit(settings, numbers)? {
        return Ok(fit);
    }
    if setting.part.strata.is_some() {
        let draws = Draws { count: Draws::REFITTED, ..draws };
        return Ok(bootstrap::stratified(&level(joined, numbers)?, &numbers.strata, draws)?);
    }
    if setting.part.by_units {
        return Ok(clusters::weighted(&level(joined, numbers)?, &numbers.sizes, draws)?);
    }
    match rule {
        Rule::Proportion { success, bound, .. } => shares(numbers, *success, *bound, method, unpaired),
        Rule::Worst { take, .. } => {
            let draws = Draws { count: Draws::REFITTED, ..draws };
            let groups = worst::groups(joined, setting.part)?;
            Ok(match take {
                Extreme::Lowest => groups.lowest(draws),
                Extreme::Highest => groups.highest(draws),
            })
        }
        Rule::Calibration { bins, .. } => {
            let draws = Draws { count: Draws::REFITTED, ..draws };
            Ok(forecasts(numbers)?.fit(*bins as usize, draws)?)
        }
        Rule::Trend { statistic, of, .. } => {
            let levels = levels(joined);
            let rows = numbers.rows();
            let cells = trend::Cells::new(&levels, &rows)?;
            let statistic = rank(*statistic);
            match (of, method) {
                (TrendOf::Pooled, Method::Jackknife) => Ok(trend::pooled(&cells, statistic)?),
                (TrendOf::Pooled, other) => Err(unsuited(other)),
                (TrendOf::Unit, Method::Page) => Ok(cells.page_fit()?),
                (TrendOf::Unit, _) => one_sample(&cells.of_units(statistic)?, method, draws),
            }
        }
        Rule::Slope { scale, .. } => {
            let (axis, rows) = scaled(*scale, joined, numbers)?;
            match (method, rows.as_slice()) {
                (Method::LeastSquares, [row]) => Ok(slope::of_points(&axis, row)?),
                (Method::Hc3, [row]) => Ok(slope::hc3(&axis, row)?),
                (Method::TheilSen, [row]) => Ok(slope::theil_sen(&axis, row)?),
                (Method::PowerOffset, [row]) => {
                    Ok(power_law::offset(&axis, row, Weights::Relative)?.exponent)
                }
                (Method::LeastSquares | Method::Hc3 | Method::TheilSen | Method::PowerOffset, _) => {
                    Err(unsuited(method))
                }
                _ => one_sample(&slope::of_units(&axis, &rows)?, method, draws),
            }
        }
        Rule::Ratio { .. } => {
            let (first, second) = two(numbers)?;
            match method {
                Method::T => Ok(ratio::paired(&first, &second)?),
                Method::Fieller => Ok(ratio::fieller(&first, &second)?),
                Method::Welch => Ok(ratio::unpaired(&first, &second)?),
                other => Err(unsuited(other)),
            }
        }
        Rule::Correlation { statistic, bound, .. } => {
            let (first, second) = two(numbers)?;
            let joined = correlation::Joined::new(&first, &second, coefficient(*statistic))?;
            Ok(joined.fit(draws, asks_other_than(*bound, 0.0))?)
        }
        Rule::Agreement { weights, bound, .. } => {
            let raters = raters(numbers, *weights)?;
            Ok(raters.fit(draws, asks_other_than(*bound, 0.0))?)
        }
        _ if joined.arms == 4 && unpaired => contrast(numbers),
        _ if joined.arms == 2 && unpaired => {
            let (first, second) = (numbers.arms[0].len(), numbers.arms[1].len());
            let refused = difference::sizes_need_assumption(first, second) && !settings.equal_spread;
            if method == Method::Permutation && refused {
                let sizes = format!("a permutation of {first} against {second} units without `equal-spread`");
                return Err(Reason::Unsuited(sizes));
            }
            two_arms(numbers, method, draws)
        }
        Rule::Threshold { statistic: Statistic::Median, .. } if method == Method::Bca => {
            let draws = Draws { count: Draws::REFITTED, ..draws };
            Ok(level(joined, numbers)?.median_bca(draws)?)
        }
        _ if method == Method::Bounded => {
            let range = settings.range.ok_or_else(|| unsuited(method))?;
            // The difference of two values in a range lies in the range of differences.
            let span = range.1 - range.0;
            let range = if joined.arms == 2 { (-span, span) } else { range };
            Ok(level(joined, numbers)?.bounded(range)?)
        }
        _ if settings.log => {
            let logs = slope::logs(&numbers.values(0))?;
            Ok(one_sample(&Units::of(&logs)?, method, draws)?.of_logarithms())
        }
        _ => one_sample(&level(joined, numbers)?, method, draws),
    }
}

/// The fit of a rule whose units are one number each (of two arms where there are two), beside any evidence. With
/// `by_draws` an enumeration of sign flips gives way to random ones.
pub(super) fn of_numbers(
    rule: &Rule,
    settings: &Inference,
    numbers: &Sample,
    draws: Draws,
    by_draws: bool,
) -> Result<Fit, Reason> {
    let (method, unpaired) = (settings.method, settings.is_unpaired());
    if let Rule::Proportion { success, bound, .. } = rule {
        return shares(numbers, *success, *bound, method, unpaired);
    }
    if numbers.arms.len() == 2 && unpaired {
        return two_arms(numbers, method, draws);
    }
    let units = match numbers.arms.len() {
        2 => Units::paired(&numbers.values(0), &numbers.values(1))?,
        _ => Units::of(&numbers.values(0))?,
    };
    match (rule, method) {
        (Rule::Threshold { statistic: Statistic::Median, .. }, Method::Bca) => Ok(units.median_bca(draws)?),
        (_, Method::Bounded) => Ok(units.bounded(settings.range.ok_or_else(|| unsuited(method))?)?),
        (_, Method::SignFlip) if by_draws => Ok(units.signs_by_draws(draws)?),
        _ if settings.log => {
            let logs = slope::logs(units.values())?;
            Ok(one_sample(&Units::of(&logs)?, method, draws)?.of_logarithms())
        }
        _ => one_sample(&units, method, draws),
    }
}

fn one_sample(units: &Units, method: Method, draws: Draws) -> Result<Fit, Reason> {
    let refitted = Draws { count: Draws::REFITTED, ..draws };
    Ok(match method {
        Method::T => units.t()?,
        Method::SignFlip => units.signs(draws)?,
        Method::OrderStatistics => units.median()?,
        Method::Wilcoxon => units.wilcoxon()?,
        Method::Percentile => units.percentile(refitted)?,
        Method::Bca => units.bca(refitted)?,
        Method::BootstrapT => units.bootstrap_t(refitted)?,
        Method::Sequential => units.sequential()?,
        other => return Err(unsuited(other)),
    })
}

fn two_arms(numbers: &Sample, method: Method, draws: Draws) -> Result<Fit, Reason> {
    let (first, second) = two(numbers)?;
    let refitted = Draws { count: Draws::REFITTED, ..draws };
    Ok(match method {
        Method::Welch => difference::welch(&first, &second)?,
        Method::Student => difference::student(&first, &second)?,
        Method::Permutation => difference::permutation(&first, &second, draws)?,
        Method::MannWhitney => difference::mann_whitney(&first, &second)?,
        Method::Percentile => bootstrap::percentile(&first, &second, refitted)?,
        Method::Bca => bootstrap::bca(&first, &second, refitted)?,
        Method::BootstrapT => bootstrap::bootstrap_t(&first, &second, refitted)?,
        other => return Err(unsuited(other)),
    })
}

/// The difference of differences of four independent arms.
fn contrast(numbers: &Sample) -> Result<Fit, Reason> {
    let arms: Vec<Vec<f64>> = (0..4).map(|arm| numbers.values(arm)).collect();
    let arms: Vec<&[f64]> = arms.iter().map(Vec::as_slice).collect();
    Ok(difference::contrast(&arms, &[1.0, -1.0, -1.0, 1.0])?)
}

fn two(numbers: &Sample) -> Result<(Vec<f64>, Vec<f64>), Reason> {
    match numbers.arms.len() {
        2 => Ok((numbers.values(0), numbers.values(1))),
        _ => Err(Reason::Unsuited("a comparison of one arm".to_owned())),
    }
}

fn shares(
    numbers: &Sample,
    success: Condition,
    bound: Bound,
    method: Method,
    unpaired: bool,
) -> Result<Fit, Reason> {
    let hits = |arm: usize| -> Vec<bool> {
        numbers.values(arm).into_iter().map(|value| succeeds(success, value)).collect()
    };
    let count = |hits: &[bool]| hits.iter().filter(|hit| **hit).count() as u64;
    let first = hits(0);
    if numbers.arms.len() == 1 {
        let (successes, trials) = (count(&first), first.len() as u64);
        return Ok(match method {
            Method::Wilson => proportion::wilson(successes, trials)?,
            _ => proportion::one_arm(successes, trials)?,
        });
    }
    if !matches!(method, Method::Newcombe | Method::Mcnemar) {
        return Err(unsuited(method));
    }
    let second = hits(1);
    if unpaired {
        let arm = |hits: &[bool]| Arm { successes: count(hits), trials: hits.len() as u64 };
        return Ok(proportion::two_arms(arm(&first), arm(&second), asks_other_than(bound, 0.0))?);
    }
    let of = |outcome: (bool, bool)| {
        first.iter().zip(&second).filter(|(a, b)| (**a, **b) == outcome).count() as u64
    };
    let pairs = proportion::Pairs {
        both: of((true, true)),
        only_first: of((true, false)),
        only_second: of((false, true)),
        neither: of((false, false)),
    };
    Ok(proportion::paired(pairs, asks_other_than(bound, 0.0))?)
}

/// Stated probabilities with what happened, 0 or 1.
pub(super) fn forecasts(numbers: &Sample) -> Result<Forecasts, Reason> {
    let (stated, happened) = two(numbers)?;
    if happened.iter().any(|value| *value != 0.0 && *value != 1.0) {
        return Err(Reason::Unsuited("what happened is 0 or 1".to_owned()));
    }
    let happened: Vec<bool> = happened.iter().map(|value| *value == 1.0).collect();
    Ok(Forecasts::new(&stated, &happened)?)
}

/// The two raters' categories: the distinct values, in their order.
pub(super) fn raters(numbers: &Sample, weights: Weighting) -> Result<TwoRaters, Reason> {
    let (first, second) = two(numbers)?;
    let mut categories: Vec<f64> = first.iter().chain(&second).copied().collect();
    categories.sort_by(f64::total_cmp);
    categories.dedup();
    let place = |values: &[f64]| -> Vec<usize> {
        values.iter().map(|v| categories.partition_point(|category| category < v)).collect()
    };
    let weighting = match weights {
        Weighting::None => agreement::Weighting::None,
        Weighting::Linear => agreement::Weighting::Linear,
        Weighting::Quadratic => agreement::Weighting::Quadratic,
    };
    // One category alone leaves nothing to agree about beyond chance, which κ itself says.
    Ok(TwoRaters::new(&place(&first), &place(&second), categories.len().max(2), weighting)?)
}

pub(super) fn coefficient(statistic: Coefficient) -> correlation::Coefficient {
    match statistic {
        Coefficient::Spearman => correlation::Coefficient::Spearman,
        Coefficient::Kendall => correlation::Coefficient::Kendall,
        Coefficient::Pearson => correlation::Coefficient::Pearson,
    }
}

/// The word of a method, for the key of its draws.
pub(super) fn word(method: Method) -> &'static str {
    use avow_stats::Method as Named;
    match method {
        Method::T => Named::T.word(),
        Method::SignFlip => Named::SignFlip.word(),
        Method::Welch => Named::Welch.word(),
        Method::OrderStatistics => Named::OrderStatistics.word(),
        Method::ClopperPearson => Named::ClopperPearson.word(),
        Method::Jackknife => Named::UnitJackknife.word(),
        Method::LeastSquares => Named::LeastSquares.word(),
        Method::Wilcoxon => Named::Wilcoxon.word(),
        Method::Percentile => Named::Percentile.word(),
        Method::Bca => Named::Bca.word(),
        Method::BootstrapT => Named::BootstrapT.word(),
        Method::Permutation => Named::Permutation.word(),
        Method::Student => Named::Student.word(),
        Method::MannWhitney => Named::MannWhitney.word(),
        Method::Wilson => Named::Wilson.word(),
        Method::Newcombe => Named::Newcombe.word(),
        Method::Mcnemar => Named::McNemar.word(),
        Method::Fieller => Named::Fieller.word(),
        Method::Hc3 => Named::Hc3.word(),
        Method::TheilSen => Named::TheilSen.word(),
        Method::PowerOffset => Named::PowerOffset.word(),
        Method::Kappa => Named::Kappa.word(),
        Method::Page => Named::Page.word(),
        Method::Bounded => Named::Bounded.word(),
        Method::Sequential => Named::Sequential.word(),
        Method::RestrictedMean => Named::RestrictedMean.word(),
        Method::LogRank => Named::LogRank.word(),
        Method::WorstGroup => Named::WorstGroup.word(),
        Method::Consistency => Named::Consistency.word(),
        Method::None => "none",
    }
}

/// Whether a claim asks any bound but `null`.
fn asks_other_than(bound: Bound, null: f64) -> bool {
    let bounds = match bound {
        Bound::Above { bound, refute } | Bound::Below { bound, refute } => [bound, refute],
        Bound::Between { low, high } => [low, high],
    };
    bounds.into_iter().any(|bound| bound != null)
}

pub(super) fn unsuited(method: Method) -> Reason {
    Reason::Unsuited(format!("{method:?}"))
}

/// One number per unit: its value, the difference of its pair, or the difference of its differences.
pub(super) fn level(joined: &Joined, numbers: &Sample) -> Result<Units, Reason> {
    Ok(match joined.arms {
        2 => Units::paired(&numbers.values(0), &numbers.values(1))?,
        4 => {
            let all = (0..4).flat_map(|arm| numbers.values(arm));
            let tie = avow_stats::ties::margin(all);
            Units::with_tie(numbers.rows().into_iter().map(|row| row[0]).collect(), tie)?
        }
        _ => Units::of(&numbers.values(0))?,
    })
}

pub(super) fn rank(statistic: RankStatistic) -> trend::Statistic {
    match statistic {
        RankStatistic::Spearman => trend::Statistic::Spearman,
        RankStatistic::Kendall => trend::Statistic::Kendall,
    }
}

/// The levels along the rule's dimension as numbers; their order where they are not all numbers.
pub(super) fn levels(joined: &Joined) -> Vec<f64> {
    let numbers: Option<Vec<f64>> =
        joined.points.iter().map(|point| point.value.as_ref().and_then(Value::as_f64)).collect();
    numbers.unwrap_or_else(|| (0..joined.points.len()).map(|i| i as f64).collect())
}

pub(super) type Scaled = (Vec<f64>, Vec<Vec<f64>>);

/// Axis and rows on the scale of a slope.
pub(super) fn scaled(scale: Scale, joined: &Joined, numbers: &Sample) -> Result<Scaled, Reason> {
    let (axis, rows) = (levels(joined), numbers.rows());
    Ok(match scale {
        Scale::Linear => (axis, rows),
        Scale::LogLog => {
            let rows = rows.iter().map(|row| slope::logs(row)).collect::<Result<_, _>>()?;
            (slope::logs(&axis)?, rows)
        }
    })
}

pub(super) fn succeeds(condition: Condition, value: f64) -> bool {
    match condition {
        Condition::Above(x) => value > x,
        Condition::AtLeast(x) => value >= x,
        Condition::Below(x) => value < x,
        Condition::AtMost(x) => value <= x,
    }
}
