//! Every rule of a claim, carried out by `avow-stats` on one arranged selection.

use avow_model::canonical::bytes_of;
use avow_model::claim::{
    Bound, CalibrationError, Extreme, Inference as Settings, Judge, Method, Part, Rule, Scale, Side,
    Statistic, TrendOf,
};
use avow_model::value::Value;
use avow_stats::correlation;
use avow_stats::proportion::LEAST_FOR_NEWCOMBE;
use avow_stats::rng::{Draws, Key};
use avow_stats::threshold::{Every, share_that_will_pass};
use avow_stats::{Claim, Level, Region, Units, Void, by_position, slope, sum, ties, trend};
use sha2::{Digest, Sha256};

use super::fit::{self, fit, level, levels, rank, scaled, succeeds};
use super::reason::Reason;
use super::sample::{Sample, Whole, sample};
use super::tested::{Body, Column, Tested};
use super::verdict::{Culprit, DecidedBy, Qualifier};
use super::{censoring, curve, exact, worst};
use crate::evidence::Evidence;
use crate::join::{Joined, Slot};

/// What a rule needs beside the numbers.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub evidence: &'a Evidence<'a>,
    pub claim: &'a avow_model::claim::Claim,
    pub part: &'a Part,
    pub alpha: Level,
    /// Which part of a combination this is, outermost first.
    pub path: &'a [usize],
}

/// The digest that random draws hang from: the chain's first registration, or the plan.
fn root(evidence: &Evidence<'_>) -> String {
    match &evidence.registration {
        Some(registration) => registration.first.to_string(),
        None => evidence.digest.to_string(),
    }
}

/// The draws of a correction over a whole family.
pub(super) fn family_draws(evidence: &Evidence<'_>, family: &str) -> Draws {
    let key = bytes_of(&("avow-stats/1", root(evidence), family, "max", "family"));
    Draws { count: Draws::REFITTED, ..Draws::standard(Key(Sha256::digest(key).into())) }
}

impl Setting<'_> {
    /// The key of random draws (statistics, section 8): the chain's first registration or else the plan, the
    /// claim, the member, the method and the purpose.
    pub(super) fn draws(&self, at: &[(String, Value)]) -> Draws {
        let root = root(self.evidence);
        let purpose = self.path.iter().fold("test".to_owned(), |text, i| format!("{text}/{i}"));
        let method = self.part.rule.inference().map_or("none", |settings| fit::word(settings.method));
        let key = bytes_of(&("avow-stats/1", root, &self.claim.name, at, method, purpose));
        Draws::standard(Key(Sha256::digest(key).into()))
    }

    /// Whether the estimate or the position decides, outside families.
    pub fn without_inference(&self, settings: &Settings) -> Option<DecidedBy> {
        match (self.part.judge, settings.deterministic) {
            (Judge::Estimate, _) => Some(DecidedBy::Estimate),
            (Judge::Interval, true) => Some(DecidedBy::Position),
            (Judge::Interval, false) => None,
        }
    }
}

/// Whether a part counts in a family.
pub(super) fn is_inferential(part: &Part) -> bool {
    part.judge == Judge::Interval && part.rule.inference().is_some_and(|settings| !settings.deterministic)
}

/// Tests one arranged selection.
pub(super) fn test(setting: Setting<'_>, joined: &Joined) -> Tested {
    let mut tested = match &setting.part.rule {
        Rule::Curve { formula, within, inference, .. } => {
            curve::test(setting, joined, (formula, *within), inference)
        }
        Rule::Exact { within, .. } => exact::test(setting, joined, *within),
        Rule::Threshold { statistic: Statistic::Every, bound, .. } => every(setting, joined, *bound),
        _ => estimand(setting, joined),
    };
    tested.at.clone_from(&joined.per);
    tested.origins.clone_from(&joined.origins);
    tested.inferential = is_inferential(setting.part);
    tested
}

/// The rules with one estimand.
fn estimand(setting: Setting<'_>, joined: &Joined) -> Tested {
    let word = setting.part.rule.word();
    let settings = setting.part.rule.inference().expect("rules without inference are tested elsewhere");
    let whole = if settings.is_unpaired() { Whole::Arm } else { Whole::Unit };
    let points: Vec<usize> = (0..joined.points.len()).collect();
    let so_far = setting.claim.sequential.then(|| until_now(joined));
    let joined = so_far.as_ref().unwrap_or(joined);
    // Groups may have units of their own, so each group is taken by itself when it is its turn.
    let points = if matches!(setting.part.rule, Rule::Worst { .. }) { vec![0] } else { points };
    let (numbers, units) = sample(joined, &points, whole, &setting.part.missing);
    let body = numbers.and_then(|numbers| {
        arms_fit(&setting.part.rule, joined)?;
        let censored = censoring::check(&setting.part.rule, &numbers)?;
        let claim = question(&setting.part.rule, joined.arms)?;
        match setting.without_inference(settings) {
            Some(by) => position(setting, joined, &numbers, claim, by),
            None => fit(setting, joined, &numbers)
                .map_err(|reason| too_few(reason, settings, whole, units.used, &numbers))
                .map(|fit| Body::Inferred(Box::new(claim.test(fit)))),
        }
        .map(|body| (body, numbers, censored))
    });
    match body {
        Ok((body, numbers, censored)) => {
            let mut tested = Tested::new(word, Vec::new(), body);
            tested.qualifiers = remarks(setting, joined, &numbers);
            tested.qualifiers.extend(censored);
            tested.column = column(setting, joined, &numbers);
            tested.units = units;
            tested
        }
        Err(reason) => Tested { units, ..Tested::new(word, Vec::new(), Body::Void(reason)) },
    }
}

/// Names the method that would work where the registered one is not defined for so few units.
fn too_few(reason: Reason, settings: &Settings, whole: Whole, used: usize, numbers: &Sample) -> Reason {
    if reason != Reason::Void(Void::BelowMinimumN) {
        return reason;
    }
    let Some(method) = avow_stats::Method::from_word(fit::word(settings.method)) else { return reason };
    let smallest = match whole {
        Whole::Arm => numbers.arms.iter().map(Vec::len).min().unwrap_or(0),
        Whole::Unit => used,
    };
    let resampled = matches!(settings.method, Method::Percentile | Method::Bca | Method::BootstrapT);
    let instead = match settings.method {
        _ if smallest < 2 => None,
        _ if resampled && whole == Whole::Arm => Some(avow_stats::Method::Welch.word()),
        _ if resampled => Some(avow_stats::Method::T.word()),
        Method::Kappa => Some("a permutation at bound 0"),
        Method::TheilSen | Method::PowerOffset if smallest >= 4 => {
            Some(avow_stats::Method::LeastSquares.word())
        }
        _ => None,
    };
    // With two units or more, only another bound than 0 asks for more.
    let least = match settings.method {
        Method::Newcombe | Method::Mcnemar if smallest >= 2 => LEAST_FOR_NEWCOMBE as usize,
        _ => method.minimum_n(),
    };
    Reason::TooFew { method: method.word(), least, instead }
}

/// The units that a sequential design has looked at: all up to the last one with any number. Those after it have not
/// been made yet, which is no loss.
fn until_now(joined: &Joined) -> Joined {
    let made = |unit: &usize| {
        joined.slots(*unit).iter().any(|slot| !matches!(slot, Slot::Missing | Slot::Unplanned))
    };
    let looked = (0..joined.units.len()).filter(made).max().map_or(0, |last| last + 1);
    Joined { units: joined.units[..looked].to_vec(), ..joined.clone() }
}

/// Each unit's deviation from the bound, for a correction that permutes all members of a family together. Only rules
/// about a mean against one bound have it.
fn column(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Option<Column> {
    let bound = match &setting.part.rule {
        Rule::Threshold { statistic: Statistic::Mean, bound, inference } if !inference.log => *bound,
        Rule::Difference { bound, inference } if !inference.is_unpaired() => *bound,
        _ => return None,
    };
    let (Bound::Above { bound, .. } | Bound::Below { bound, .. }) = bound else { return None };
    let units = level(joined, numbers).ok()?;
    let deviations = units.values().iter().map(|value| value - bound).collect();
    Some(Column { units: numbers.ids.clone(), deviations })
}

/// A difference needs two arms, a proportion of one arm has one.
fn arms_fit(rule: &Rule, joined: &Joined) -> Result<(), Reason> {
    match rule {
        Rule::Difference { .. }
        | Rule::Ratio { .. }
        | Rule::Agreement { .. }
        | Rule::Calibration { .. }
        | Rule::Correlation { .. }
            if joined.arms == 1 =>
        {
            Err(Reason::Unsuited(format!("a {} of one arm", rule.word())))
        }
        Rule::Proportion { .. } | Rule::Ratio { .. } | Rule::Agreement { .. } if joined.arms == 4 => {
            Err(Reason::Unsuited(format!("a {} of four arms", rule.word())))
        }
        _ => Ok(()),
    }
}

/// The claim that a rule makes about its estimand.
pub(super) fn question(rule: &Rule, arms: usize) -> Result<Claim, Reason> {
    let (region, null) = match rule {
        Rule::Proportion { bound, .. } if arms == 2 => (region(*bound)?, Some(0.0)),
        Rule::Threshold { bound, .. } | Rule::Proportion { bound, .. } => (region(*bound)?, None),
        Rule::Difference { bound, .. }
        | Rule::Trend { bound, .. }
        | Rule::Slope { bound, .. }
        | Rule::Correlation { bound, .. }
        | Rule::Agreement { bound, .. } => (region(*bound)?, Some(0.0)),
        Rule::Worst { bound, .. } | Rule::Calibration { bound, .. } => (region(*bound)?, None),
        Rule::Ratio { bound, .. } => (region(*bound)?, Some(1.0)),
        Rule::Equivalence { about, margin, .. } => {
            (checked(Region::Equivalence { target: *about, margin: *margin })?, None)
        }
        Rule::Curve { .. } | Rule::Exact { .. } | Rule::Reported { .. } => {
            return Err(Reason::Unsuited(rule.word().to_owned()));
        }
    };
    let settings = rule.inference();
    let side = match settings.map(|s| s.side) {
        Some(Side::One) => avow_stats::Side::One,
        _ => avow_stats::Side::Two,
    };
    let multiplicative = matches!(rule, Rule::Ratio { .. });
    Ok(Claim { region, side, null, smallest: settings.and_then(|s| s.smallest), multiplicative })
}

/// A registered bound as a region with its opposite.
pub(super) fn region(bound: Bound) -> Result<Region, Reason> {
    checked(match bound {
        Bound::Above { bound, refute } => Region::Above { bound, refute },
        Bound::Below { bound, refute } => Region::Below { bound, refute },
        Bound::Between { low, high } => Region::Between { low, high },
    })
}

pub(super) fn checked(region: Region) -> Result<Region, Reason> {
    region.checked().map_err(|error| Reason::BadClaim(error.to_string()))
}

/// `judge: estimate` and `variation: none`: the position of the estimate decides.
fn position(
    setting: Setting<'_>,
    joined: &Joined,
    numbers: &Sample,
    claim: Claim,
    by: DecidedBy,
) -> Result<Body, Reason> {
    if let Rule::Worst { take, .. } = &setting.part.rule {
        let estimate = worst::estimate(joined, setting.part, *take == Extreme::Highest)?;
        let decision = by_position(&claim, estimate, 1e-12 * estimate.abs());
        return Ok(Body::Decided { decision, estimate: Some(estimate), by });
    }
    if let Some(estimate) = whole_estimate(setting, numbers)? {
        let decision = by_position(&claim, estimate, 1e-12 * estimate.abs());
        return Ok(Body::Decided { decision, estimate: Some(estimate), by });
    }
    let unpaired = setting.part.rule.inference().is_some_and(Settings::is_unpaired);
    let units = if unpaired { None } else { Some(per_unit(setting, joined, numbers)?) };
    if by == DecidedBy::Position && !units.as_ref().is_some_and(Units::all_equal) {
        return Err(Reason::NotDeterministic);
    }
    let (estimate, tie) = match &units {
        Some(units) if setting.part.by_units => {
            let total: usize = numbers.sizes.iter().sum();
            let parts = units.values().iter().zip(&numbers.sizes).map(|(mean, size)| mean * *size as f64);
            (sum::sum(parts) / total as f64, units.tie())
        }
        Some(units) => (centre(setting, units), units.tie()),
        None => {
            let (first, second) = (numbers.values(0), numbers.values(1));
            let tie = ties::margin(first.iter().chain(&second).copied());
            (sum::mean(&first) - sum::mean(&second), tie)
        }
    };
    if !estimate.is_finite() {
        return Err(Reason::Void(Void::NoUnits));
    }
    Ok(Body::Decided { decision: by_position(&claim, estimate, tie), estimate: Some(estimate), by })
}

/// The estimate of a rule that has none per unit: a ratio, a correlation, κ, a difference of shares.
fn whole_estimate(setting: Setting<'_>, numbers: &Sample) -> Result<Option<f64>, Reason> {
    if let Some(settings) = setting.part.rule.inference()
        && let Some(estimate) = censoring::estimate(settings, numbers)?
    {
        return Ok(Some(estimate));
    }
    let two = || (numbers.values(0), numbers.values(1));
    Ok(match &setting.part.rule {
        Rule::Ratio { inference, .. } => {
            let (first, second) = two();
            let arithmetic = inference.method == Method::Fieller;
            let centre = |values: &[f64]| -> Result<f64, Reason> {
                Ok(if arithmetic { sum::mean(values) } else { sum::mean(&slope::logs(values)?).exp() })
            };
            Some(centre(&first)? / centre(&second)?)
        }
        Rule::Threshold { statistic: Statistic::Mean, inference, .. } if inference.log => {
            Some(sum::mean(&slope::logs(&numbers.values(0))?).exp())
        }
        Rule::Correlation { statistic, .. } => {
            let (first, second) = two();
            let joined = correlation::Joined::new(&first, &second, fit::coefficient(*statistic))?;
            Some(joined.coefficient()?)
        }
        Rule::Calibration { bins, estimator, .. } => {
            let (forecasts, bins) = (fit::forecasts(numbers)?, *bins as usize);
            Some(match estimator {
                CalibrationError::DebiasedSquare => forecasts.debiased_square(bins),
                CalibrationError::Expected => forecasts.expected_error(bins),
                CalibrationError::RootMeanSquare => forecasts.root_mean_square_error(bins),
            })
        }
        Rule::Agreement { weights, .. } => Some(fit::raters(numbers, *weights)?.kappa()?.kappa),
        Rule::Proportion { success, .. } if numbers.arms.len() == 2 => {
            let share = |values: Vec<f64>| {
                let hits = values.iter().filter(|value| succeeds(*success, **value)).count();
                hits as f64 / values.len() as f64
            };
            let (first, second) = two();
            Some(share(first) - share(second))
        }
        _ => None,
    })
}

/// The estimate over units: their mean, or their median where the rule is about it.
fn centre(setting: Setting<'_>, units: &Units) -> f64 {
    if let Rule::Threshold { statistic: Statistic::Median, .. } = &setting.part.rule {
        let mut sorted = units.values().to_vec();
        sorted.sort_by(f64::total_cmp);
        return 0.5 * (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]);
    }
    sum::mean(units.values())
}

/// The statistic of each unit, of which the estimate is the centre.
fn per_unit(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Result<Units, Reason> {
    match &setting.part.rule {
        Rule::Proportion { success, .. } => {
            let hit = |value: f64| if succeeds(*success, value) { 1.0 } else { 0.0 };
            Ok(Units::of(&numbers.values(0).into_iter().map(hit).collect::<Vec<f64>>())?)
        }
        Rule::Trend { statistic, of, .. } => {
            let levels = levels(joined);
            let rows = numbers.rows();
            let cells = trend::Cells::new(&levels, &rows)?;
            match of {
                TrendOf::Unit => Ok(cells.of_units(rank(*statistic))?),
                TrendOf::Pooled => Ok(Units::with_tie(vec![cells.correlation(rank(*statistic))?], 1e-12)?),
            }
        }
        Rule::Slope { scale, .. } => {
            let (axis, rows) = scaled(*scale, joined, numbers)?;
            Ok(slope::of_units(&axis, &rows)?)
        }
        _ => level(joined, numbers),
    }
}

/// Remarks that depend on the numbers and not on the decision.
fn remarks(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Vec<Qualifier> {
    match &setting.part.rule {
        Rule::Calibration { .. } => match fit::forecasts(numbers) {
            Ok(forecasts) => {
                vec![Qualifier::Forecasts { brier: forecasts.brier(), log_score: forecasts.log_score() }]
            }
            Err(_) => Vec::new(),
        },
        Rule::Equivalence { .. } if numbers.units.used < 20 => {
            vec![Qualifier::EquivalenceAtFewUnits { units: numbers.units.used }]
        }
        Rule::Slope { scale: Scale::LogLog, .. } => {
            let curvature = scaled(Scale::LogLog, joined, numbers).ok().and_then(|(axis, rows)| {
                let mean = |i: usize| sum::mean(&rows.iter().map(|row| row[i]).collect::<Vec<f64>>());
                slope::curvature(&axis, &(0..axis.len()).map(mean).collect::<Vec<f64>>()).ok()
            });
            curvature.map(|c| Qualifier::Curvature { t: c.t, p: c.p }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// `every`: all units against a bound, a statement about these units.
fn every(setting: Setting<'_>, joined: &Joined, bound: Bound) -> Tested {
    let word = setting.part.rule.word();
    let (numbers, units) = sample(joined, &[0], Whole::Unit, &setting.part.missing);
    let looked = numbers.and_then(|numbers| {
        censoring::check(&setting.part.rule, &numbers)?;
        let region = region(bound)?;
        let found = level(joined, &numbers)?;
        Ok((Every::of(&found, region), numbers.ids, found, region))
    });
    let (every, ids, found, region) = match looked {
        Ok(looked) => looked,
        Err(reason) => return Tested { units, ..Tested::new(word, Vec::new(), Body::Void(reason)) },
    };
    let body = Body::Decided { decision: every.decision(), estimate: None, by: DecidedBy::Units };
    let mut tested = Tested::new(word, Vec::new(), body);
    let outside = ids.iter().zip(found.values()).filter(|(_, value)| !region.holds(**value, found.tie()));
    tested.culprits = outside.map(|(id, value)| culprit(setting, id.as_ref(), *value)).collect();
    let share = share_that_will_pass(every.units, setting.alpha);
    tested.qualifiers = vec![Qualifier::TheseUnits { units: every.units, share }];
    tested.units = units;
    tested
}

/// A unit that refutes.
fn culprit(setting: Setting<'_>, id: Option<&Value>, found: f64) -> Culprit {
    let replicate = setting.part.replicate.clone().unwrap_or_default();
    Culprit {
        part: setting.path.to_vec(),
        at: id.map(|value| (replicate, value.clone())).into_iter().collect(),
        found: Some(found),
        expected: None,
        margin: None,
    }
}
