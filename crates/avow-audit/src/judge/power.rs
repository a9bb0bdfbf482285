//! Power of a registered rule before its data: by formula where there is one, else by carrying the rule out on
//! made-up units.
//!
//! The family is not known to a single simulation, so the answer is given twice: alone at α, which is optimistic, and
//! at α/m, which is pessimistic. Draws are a function of their number, so the same question has the same answer. Absent:
//! rules whose units are more than one number each; they say so.

use std::collections::BTreeMap;

use avow_model::claim::{
    Bound, Claim, Condition, Inference, Method, Missing, Part, Rule, Statistic, Test, Tier,
};
use avow_model::expression::Expression;
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_stats::noise::Noise;
use avow_stats::power::{Arms, Tails, t_power};
use avow_stats::rng::{Draw, Draws, Key};
use avow_stats::{Adjusted, Decision, Level, decide, sum};
use serde::Serialize;

use super::fit;
use super::reason::Reason;
use super::rule;
use super::sample::{Sample, Whole, sample};
use crate::evidence::Evidence;
use crate::join;
use crate::measure::{self, Readings};
use crate::source::{AuditError, Source};

/// How often the rule is carried out on made-up units.
pub const SIMULATIONS: u32 = 4_000;

/// The most units of which exact enumerations are simulated; above them the rule's own random draws stand in.
const ENUMERATED: usize = 10;

/// The most units that are looked for by formula.
const MOST: usize = 100_000;

/// The most units that are looked for by simulation, and of the betting method, which costs ten thousand bounds a unit.
const MOST_SIMULATED: usize = 1_024;
const MOST_BETS: usize = 256;

/// Steps that one answer by simulation may cost, and the fewest simulations that are made however much they cost.
const WORK: usize = 400_000_000;
const FEWEST: usize = 250;

/// What is assumed of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// The true value of what the claim is about.
    pub effect: f64,
    /// The standard deviation of a unit's number (of a pair's difference; of a value in each arm where units do not
    /// pair). Not used for shares.
    pub deviation: f64,
    /// Deviations from their mean to draw from instead of a normal distribution.
    pub residuals: Vec<f64>,
    /// For the difference of two shares: the share of the second arm.
    pub base: f64,
}

/// The answer for one number of units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// Units, pairs, or units of each arm.
    pub n: usize,
    /// The chance of Supported at α, as if the claim were alone.
    pub alone: f64,
    /// The chance of Supported at α/m, the first step of its family.
    pub in_family: f64,
    /// The binomial standard error of both; 0 by formula.
    pub error: f64,
}

/// Whether a formula answers, which is exact for normal units.
pub fn has_formula(part: &Part) -> bool {
    let Some(inference) = part.rule.inference() else { return false };
    let plain = !inference.log && inference.method == Method::T;
    let one_bound = |bound: &Bound| !matches!(bound, Bound::Between { .. });
    match &part.rule {
        Rule::Threshold { statistic: Statistic::Mean, bound, .. } => plain && one_bound(bound),
        Rule::Difference { bound, .. } => {
            one_bound(bound) && (plain && !inference.is_unpaired() || inference.method == Method::Student)
        }
        _ => false,
    }
}

/// The power of a part's rule at `n` units in a family of `members`.
///
/// # Errors
/// Where the rule has no answer: it makes no inference, or its units are more than one number.
pub fn at(part: &Part, assumed: &Assumed, n: usize, alpha: Level, members: u32) -> Result<Power, Reason> {
    if has_formula(part) && assumed.residuals.is_empty() {
        return by_formula(part, assumed, n, alpha, members);
    }
    let (mut alone, mut family) = (0_u32, 0_u32);
    let times = simulations(part, n);
    for draw in 0..times {
        let (yes, both) = once(part, assumed, n, (alpha, members), u64::from(draw))?;
        alone += u32::from(yes);
        family += u32::from(both);
    }
    let share = |count: u32| f64::from(count) / f64::from(times);
    let p = share(alone).clamp(0.5 / f64::from(times), 1.0 - 0.5 / f64::from(times));
    let error = (p * (1.0 - p) / f64::from(times)).sqrt();
    Ok(Power { n, alone: share(alone), in_family: share(family), error })
}

/// How often a rule is carried out at `n` units: 4,000 times, or less often where each time costs so much that nobody
/// would wait. The printed error tells.
fn simulations(part: &Part, n: usize) -> u32 {
    let method = part.rule.inference().map_or(Method::None, |inference| inference.method);
    let cost = match method {
        Method::SignFlip | Method::Percentile | Method::Bca | Method::BootstrapT | Method::Permutation => 999,
        Method::Wilcoxon | Method::MannWhitney => n,
        Method::Bounded => 10_000,
        _ => 1,
    };
    let affordable = WORK / cost.saturating_mul(n).max(1);
    u32::try_from(affordable.max(FEWEST)).unwrap_or(u32::MAX).min(SIMULATIONS)
}

/// The answer to "how many units would it take?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The fewest units at which the power alone is as wanted; `None` where `largest` units are too few.
    pub alone: Option<usize>,
    /// The same at the first step of the family.
    pub in_family: Option<usize>,
    /// The most units that were tried.
    pub largest: usize,
}

/// The fewest units at which the power alone, and that in the family, is `wanted`, up to 100,000 by formula and 1,024 by
/// simulation. `tell` hears of every number of units before it is tried.
///
/// # Errors
/// As [`at`].
pub fn units_for(
    part: &Part,
    assumed: &Assumed,
    wanted: f64,
    (alpha, members): (Level, u32),
    tell: &mut dyn FnMut(usize),
) -> Result<Needed, Reason> {
    let formula = has_formula(part) && assumed.residuals.is_empty();
    let bets = part.rule.inference().is_some_and(|inference| inference.method == Method::Bounded);
    let most = if formula {
        MOST
    } else if bets {
        MOST_BETS
    } else {
        MOST_SIMULATED
    };
    let mut known = BTreeMap::<usize, Power>::new();
    let mut power = |n: usize| -> Result<Power, Reason> {
        if let Some(known) = known.get(&n) {
            return Ok(*known);
        }
        tell(n);
        let power = at(part, assumed, n, alpha, members)?;
        known.insert(n, power);
        Ok(power)
    };
    let alone = least(most, &mut |n| Ok(power(n)?.alone >= wanted))?;
    let in_family = match members {
        0 | 1 => alone,
        _ => least(most, &mut |n| Ok(power(n)?.in_family >= wanted))?,
    };
    Ok(Needed { alone, in_family, largest: known.keys().max().copied().unwrap_or(0) })
}

/// The least n from 2 to `most` that is enough, by doubling and then halving the gap.
fn least(
    most: usize,
    enough: &mut dyn FnMut(usize) -> Result<bool, Reason>,
) -> Result<Option<usize>, Reason> {
    let (mut short, mut long) = (1, 2);
    while !enough(long)? {
        if long == most {
            return Ok(None);
        }
        (short, long) = (long, (long * 2).min(most));
    }
    while long - short > 1 {
        let middle = short + (long - short) / 2;
        if enough(middle)? { long = middle } else { short = middle }
    }
    Ok(Some(long))
}

fn by_formula(part: &Part, assumed: &Assumed, n: usize, alpha: Level, members: u32) -> Result<Power, Reason> {
    let inference = part.rule.inference().ok_or_else(|| Reason::Unsuited(part.rule.word().to_owned()))?;
    let (bound, up) = match &part.rule {
        Rule::Threshold { bound, .. } | Rule::Difference { bound, .. } => match bound {
            Bound::Above { bound, .. } => (*bound, true),
            Bound::Below { bound, .. } => (*bound, false),
            Bound::Between { .. } => return Err(Reason::Unsuited("two bounds".to_owned())),
        },
        other => return Err(Reason::Unsuited(other.word().to_owned())),
    };
    let arms = if inference.is_unpaired() { Arms::Two } else { Arms::One };
    let gap = if up { assumed.effect - bound } else { bound - assumed.effect } / assumed.deviation;
    // An effect on the wrong side is supported as often as one on the right side is refuted.
    let one_sided = inference.side == avow_model::claim::Side::One;
    let power = |level: Level| {
        let level = if one_sided { level.doubled() } else { level };
        if n < 2 {
            return 0.0;
        }
        if gap >= 0.0 {
            return t_power(arms, gap, n as f64, level, Tails::Directed);
        }
        t_power(arms, gap, n as f64, level, Tails::Either)
            - t_power(arms, gap, n as f64, level, Tails::Directed)
    };
    Ok(Power { n, alone: power(alpha), in_family: power(alpha.split(members)), error: 0.0 })
}

/// One made-up experiment: whether it supports the claim alone, and at the first step of the family.
fn once(
    part: &Part,
    assumed: &Assumed,
    n: usize,
    (alpha, members): (Level, u32),
    index: u64,
) -> Result<(bool, bool), Reason> {
    let inference = part.rule.inference().ok_or_else(|| Reason::Unsuited(part.rule.word().to_owned()))?;
    let mut draw = Draw::new(&Key(*b"avow-stats/power: made-up units."), index);
    let numbers = made_up(part, assumed, n, &mut draw)?;
    let claim = rule::question(&part.rule, numbers.arms.len())?;
    let resampling = Draws { key: Key(*b"avow-stats/power: the rule's own"), count: 999 };
    let fit = match fit::of_numbers(&part.rule, inference, &numbers, resampling, n > ENUMERATED) {
        Ok(fit) => fit,
        // Too few units, or data that have no answer, do not support anything.
        Err(Reason::Void(_)) => return Ok((false, false)),
        Err(other) => return Err(other),
    };
    let test = claim.test(fit);
    let supported = |adjusted: &Adjusted| decide(&test.evidence(), adjusted, alpha) == Decision::Supported;
    let first = Adjusted {
        q_tilde: (test.q * f64::from(members)).min(1.0),
        members,
        factor: members,
        ..Adjusted::alone(test.q)
    };
    Ok((supported(&Adjusted::alone(test.q)), supported(&first)))
}

fn made_up(part: &Part, assumed: &Assumed, n: usize, draw: &mut Draw) -> Result<Sample, Reason> {
    let inference = part.rule.inference().ok_or_else(|| Reason::Unsuited(part.rule.word().to_owned()))?;
    let mut noise = || match assumed.residuals.as_slice() {
        [] => assumed.deviation * draw.normal(),
        some => some[draw.below(some.len() as u64) as usize],
    };
    let mut column = |centre: f64| -> Vec<Vec<f64>> { (0..n).map(|_| vec![centre + noise()]).collect() };
    let arms = match &part.rule {
        Rule::Proportion { success, .. } => {
            let shares = match part.compare {
                Some(_) => vec![assumed.base + assumed.effect, assumed.base],
                None => vec![assumed.effect],
            };
            let (hit, miss) = outcomes(*success);
            let one = |share: f64, draw: &mut Draw| vec![if draw.uniform() < share { hit } else { miss }];
            shares.iter().map(|share| (0..n).map(|_| one(*share, draw)).collect()).collect()
        }
        Rule::Threshold { .. } => {
            if inference.log {
                let centre = assumed.effect.ln();
                vec![column(centre).iter().map(|row| vec![row[0].exp()]).collect()]
            } else {
                vec![column(assumed.effect)]
            }
        }
        Rule::Difference { .. } | Rule::Equivalence { .. } if part.crossed.is_none() => {
            match (part.compare.is_some(), inference.is_unpaired()) {
                (true, true) => vec![column(assumed.effect), column(0.0)],
                // A pair is its difference beside nothing.
                (true, false) => vec![column(assumed.effect), vec![vec![0.0]; n]],
                (false, _) => vec![column(assumed.effect)],
            }
        }
        other => return Err(Reason::Unsuited(format!("the power of a {}", other.word()))),
    };
    Ok(Sample { ids: vec![None; n], arms, ..Sample::default() })
}

/// A value that succeeds and one that does not.
fn outcomes(success: Condition) -> (f64, f64) {
    match success {
        Condition::Above(x) => (x + x.abs() + 1.0, x),
        Condition::AtLeast(x) => (x, x - x.abs() - 1.0),
        Condition::Below(x) => (x - x.abs() - 1.0, x),
        Condition::AtMost(x) => (x, x + x.abs() + 1.0),
    }
}

/// Whether a part's power can be asked at all.
pub fn is_known(part: &Part) -> bool {
    let plain = part.rule.inference().is_some_and(|inference| inference.method != Method::None);
    let shaped = matches!(
        &part.rule,
        Rule::Threshold { statistic: Statistic::Mean | Statistic::Median, .. }
            | Rule::Proportion { .. }
            | Rule::Difference { .. }
            | Rule::Equivalence { .. }
    );
    plain && shaped && part.crossed.is_none()
}

/// The fewest pilot units that are trusted to know their spread, and whose deviations may be drawn from.
pub const TRUSTED: usize = 10;

/// The standard deviation that a pilot's deviations tell; of fewer than ten the upper 80 % end, because a small pilot
/// does not know its own spread. `None` where they tell nothing.
pub fn spread(pilot: &[f64]) -> Option<f64> {
    let count = pilot.len();
    if count < 2 {
        return None;
    }
    let noise = Noise { sd: (sum::sum(pilot.iter().map(|x| x * x)) / count as f64).sqrt(), df: count - 1 };
    let deviation = if count < TRUSTED { noise.interval("0.4".parse().ok()?).high } else { noise.sd };
    (deviation > 0.0 && deviation.is_finite()).then_some(deviation)
}

/// A claim whose power can be asked: one member of it.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Its only part.
    pub part: &'a Part,
    /// Its level.
    pub alpha: Level,
    /// Planned units, of the smallest member and the smaller arm.
    pub n: usize,
    /// Inferential members of its family, m.
    pub members: u32,
    /// Numbers of the pilot's units, of all members, each as a deviation from its member's mean.
    pub pilot: Vec<f64>,
}

/// The claims of a plan that decide, with what is planned for them, in the plan's order. Combinations and claims
/// without inference are left out.
///
/// # Errors
/// Where the store cannot be read.
pub fn questions<'a>(
    evidence: &'a Evidence<'a>,
    source: Source<'_>,
    ledger: &Ledger,
) -> Result<Vec<Question<'a>>, AuditError> {
    let readings = Readings::default();
    let pilot = pilot_plan(evidence.plan);
    let piloted = match &pilot {
        Some(plan) => {
            let evidence = Evidence::gather(plan, source, ledger)?;
            let readings = measure::read_all(&evidence, source)?;
            Some((evidence, readings))
        }
        None => None,
    };
    let inferential = |claim: &Claim| claim.test.parts().into_iter().any(rule::is_inferential);
    let members = |claim: &Claim| match &claim.test {
        Test::One(part) => join::planned_members(evidence, part).len().max(1),
        _ => 1,
    };
    let size = |of: &Claim| {
        let family = evidence.plan.claims.iter().filter(|c| c.tier == of.tier && c.family == of.family);
        let count: usize = family.filter(|c| inferential(c)).map(members).sum();
        u32::try_from(count.max(1)).unwrap_or(u32::MAX)
    };
    let mut found = Vec::new();
    for claim in &evidence.plan.claims {
        let Test::One(part) = &claim.test else { continue };
        let (true, Ok(alpha)) = (rule::is_inferential(part), claim.alpha.parse::<Level>()) else { continue };
        let planned = join::join(evidence, &readings, part).unwrap_or_default();
        let n = planned.iter().map(|one| one.units.len()).min().unwrap_or(0);
        let pilot = piloted.as_ref().map(|(e, r)| residuals(e, r, part)).unwrap_or_default();
        let members = if matches!(claim.tier, Tier::Primary | Tier::Secondary) { size(claim) } else { 1 };
        found.push(Question { claim, part, alpha, n, members, pilot });
    }
    Ok(found)
}

/// The plan whose claims read the pilot cells, and nothing else.
fn pilot_plan(plan: &Plan) -> Option<Plan> {
    let predicates: Vec<String> = plan.pilot.iter().map(|p| format!("({})", p.text())).collect();
    let rest = Expression::parse(&format!("!({})", predicates.join(" || "))).ok()?;
    (!predicates.is_empty()).then(|| Plan { pilot: vec![rest], ..plan.clone() })
}

/// Deviations of units from their member's mean.
fn residuals(evidence: &Evidence<'_>, readings: &Readings, part: &Part) -> Vec<f64> {
    let members = join::join(evidence, readings, part).unwrap_or_default();
    let mut all = Vec::new();
    for joined in members {
        let whole =
            if part.rule.inference().is_some_and(Inference::is_unpaired) { Whole::Arm } else { Whole::Unit };
        let Ok(numbers) = sample(&joined, &[0], whole, &Missing::Drop { void_above: "1".to_owned() }).0
        else {
            continue;
        };
        let log = part.rule.inference().is_some_and(|inference| inference.log);
        let columns: Vec<Vec<f64>> = match (whole == Whole::Arm, numbers.arms.len()) {
            (false, 2) => vec![numbers.rows().into_iter().map(|row| row[0]).collect()],
            _ => (0..numbers.arms.len()).map(|arm| numbers.values(arm)).collect(),
        };
        for column in columns {
            let column: Vec<f64> = if log { column.iter().map(|x| x.ln()).collect() } else { column };
            let centre = sum::mean(&column);
            // n − 1 of n deviations are free: scaled so that drawing from them has the sample's own spread.
            let scale = (column.len() as f64 / (column.len() as f64 - 1.0)).sqrt();
            all.extend(column.iter().map(|x| (x - centre) * scale).filter(|x| x.is_finite()));
        }
    }
    all
}
