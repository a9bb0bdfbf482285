//! Every rule of a claim, carried out by `avow-stats` on one arranged selection.

use avow_model::canonical::bytes_of;
use avow_model::claim::{
    Bound, Condition, Inference as Settings, Judge, Method, Part, RankStatistic, Rule, Scale, Side,
    Statistic, TrendOf,
};
use avow_model::value::Value;
use avow_stats::difference;
use avow_stats::rng::{Draws, Key};
use avow_stats::threshold::{Every, share_that_will_pass};
use avow_stats::{Claim, Fit, Level, Region, Units, Void, by_position, proportion, slope, sum, ties, trend};
use sha2::{Digest, Sha256};

use super::reason::Reason;
use super::sample::{Sample, Whole, sample};
use super::tested::{Body, Tested};
use super::verdict::{Culprit, DecidedBy, Qualifier};
use super::{curve, exact};
use crate::evidence::Evidence;
use crate::join::Joined;

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

impl Setting<'_> {
    /// The key of random draws (statistics, section 8): the chain's first registration or else the plan, the
    /// claim, the member, the method and the purpose.
    fn draws(&self, at: &[(String, Value)]) -> Draws {
        let root = match &self.evidence.registration {
            Some(registration) => registration.first.to_string(),
            None => self.evidence.digest.to_string(),
        };
        let purpose = self.path.iter().fold("test".to_owned(), |text, i| format!("{text}/{i}"));
        let method = avow_stats::Method::SignFlip.word();
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
    let whole = if settings.method == Method::Welch { Whole::Arm } else { Whole::Unit };
    let points: Vec<usize> = (0..joined.points.len()).collect();
    let (numbers, units) = sample(joined, &points, whole, &setting.part.missing);
    let body = numbers.and_then(|numbers| {
        arms_fit(&setting.part.rule, joined)?;
        let claim = question(&setting.part.rule)?;
        match setting.without_inference(settings) {
            Some(by) => position(setting, joined, &numbers, claim, by),
            None => fit(setting, joined, &numbers).map(|fit| Body::Inferred(Box::new(claim.test(fit)))),
        }
        .map(|body| (body, numbers))
    });
    match body {
        Ok((body, numbers)) => {
            let mut tested = Tested::new(word, Vec::new(), body);
            tested.qualifiers = remarks(setting, joined, &numbers);
            tested.units = units;
            tested
        }
        Err(reason) => Tested { units, ..Tested::new(word, Vec::new(), Body::Void(reason)) },
    }
}

/// A difference needs two arms, a proportion of one arm has one.
fn arms_fit(rule: &Rule, joined: &Joined) -> Result<(), Reason> {
    match rule {
        Rule::Difference { .. } if joined.arms == 1 => {
            Err(Reason::Unsuited("a difference of one arm".to_owned()))
        }
        Rule::Proportion { .. } if joined.arms == 2 => {
            Err(Reason::Unsuited("a proportion of two arms".to_owned()))
        }
        _ => Ok(()),
    }
}

/// The claim that a rule makes about its estimand.
fn question(rule: &Rule) -> Result<Claim, Reason> {
    let (region, null) = match rule {
        Rule::Threshold { bound, .. } | Rule::Proportion { bound, .. } => (region(*bound)?, None),
        Rule::Difference { bound, .. } | Rule::Trend { bound, .. } | Rule::Slope { bound, .. } => {
            (region(*bound)?, Some(0.0))
        }
        Rule::Equivalence { about, margin, .. } => {
            (checked(Region::Equivalence { target: *about, margin: *margin })?, None)
        }
        Rule::Curve { .. } | Rule::Exact { .. } => return Err(Reason::Unsuited(rule.word().to_owned())),
    };
    let settings = rule.inference();
    let side = match settings.map(|s| s.side) {
        Some(Side::One) => avow_stats::Side::One,
        _ => avow_stats::Side::Two,
    };
    Ok(Claim { region, side, null, smallest: settings.and_then(|s| s.smallest) })
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

/// The fit of a rule with its registered method.
fn fit(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Result<Fit, Reason> {
    let draws = setting.draws(&joined.per);
    let rule = &setting.part.rule;
    let method = rule.inference().map_or(Method::None, |settings| settings.method);
    let one = |units: &Units| one_sample(units, method, draws);
    match rule {
        Rule::Proportion { success, .. } => {
            let values = numbers.values(0);
            let successes = values.iter().filter(|v| succeeds(*success, **v)).count();
            Ok(proportion::one_arm(successes as u64, values.len() as u64)?)
        }
        Rule::Trend { statistic, of, .. } => {
            let levels = levels(joined);
            let rows = numbers.rows();
            let cells = trend::Cells::new(&levels, &rows)?;
            let statistic = rank(*statistic);
            match (of, method) {
                (TrendOf::Pooled, Method::Jackknife) => Ok(trend::pooled(&cells, statistic)?),
                (TrendOf::Pooled, other) => Err(unsuited(other)),
                (TrendOf::Unit, _) => one(&cells.of_units(statistic)?),
            }
        }
        Rule::Slope { scale, .. } => {
            let (axis, rows) = scaled(*scale, joined, numbers)?;
            match (method, rows.as_slice()) {
                (Method::LeastSquares, [row]) => Ok(slope::of_points(&axis, row)?),
                (Method::LeastSquares, _) => Err(unsuited(method)),
                _ => one(&slope::of_units(&axis, &rows)?),
            }
        }
        _ if method == Method::Welch => Ok(difference::welch(&numbers.values(0), &numbers.values(1))?),
        _ => one(&level(joined, numbers)?),
    }
}

fn one_sample(units: &Units, method: Method, draws: Draws) -> Result<Fit, Reason> {
    Ok(match method {
        Method::T => units.t()?,
        Method::SignFlip => units.signs(draws)?,
        Method::OrderStatistics => units.median()?,
        other => return Err(unsuited(other)),
    })
}

fn unsuited(method: Method) -> Reason {
    Reason::Unsuited(format!("{method:?}"))
}

/// One number per unit: its value, or the difference of its pair.
fn level(joined: &Joined, numbers: &Sample) -> Result<Units, Reason> {
    Ok(match joined.arms {
        2 => Units::paired(&numbers.values(0), &numbers.values(1))?,
        _ => Units::of(&numbers.values(0))?,
    })
}

/// `judge: estimate` and `variation: none`: the position of the estimate decides.
fn position(
    setting: Setting<'_>,
    joined: &Joined,
    numbers: &Sample,
    claim: Claim,
    by: DecidedBy,
) -> Result<Body, Reason> {
    let settings = setting.part.rule.inference();
    let unpaired = settings.is_some_and(|s| s.method == Method::Welch);
    let units = if unpaired { None } else { Some(per_unit(setting, joined, numbers)?) };
    if by == DecidedBy::Position && !units.as_ref().is_some_and(Units::all_equal) {
        return Err(Reason::NotDeterministic);
    }
    let (estimate, tie) = match &units {
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

fn rank(statistic: RankStatistic) -> trend::Statistic {
    match statistic {
        RankStatistic::Spearman => trend::Statistic::Spearman,
        RankStatistic::Kendall => trend::Statistic::Kendall,
    }
}

/// The levels along the rule's dimension as numbers; their order where they are not all numbers.
fn levels(joined: &Joined) -> Vec<f64> {
    let numbers: Option<Vec<f64>> =
        joined.points.iter().map(|point| point.value.as_ref().and_then(Value::as_f64)).collect();
    numbers.unwrap_or_else(|| (0..joined.points.len()).map(|i| i as f64).collect())
}

type Scaled = (Vec<f64>, Vec<Vec<f64>>);

/// Axis and rows on the scale of a slope.
fn scaled(scale: Scale, joined: &Joined, numbers: &Sample) -> Result<Scaled, Reason> {
    let (axis, rows) = (levels(joined), numbers.rows());
    Ok(match scale {
        Scale::Linear => (axis, rows),
        Scale::LogLog => {
            let rows = rows.iter().map(|row| slope::logs(row)).collect::<Result<_, _>>()?;
            (slope::logs(&axis)?, rows)
        }
    })
}

fn succeeds(condition: Condition, value: f64) -> bool {
    match condition {
        Condition::Above(x) => value > x,
        Condition::AtLeast(x) => value >= x,
        Condition::Below(x) => value < x,
        Condition::AtMost(x) => value <= x,
    }
}

/// Remarks that depend on the numbers and not on the decision.
fn remarks(setting: Setting<'_>, joined: &Joined, numbers: &Sample) -> Vec<Qualifier> {
    match &setting.part.rule {
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
