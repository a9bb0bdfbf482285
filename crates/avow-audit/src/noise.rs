//! Each measurement's own variability, from repeated attempts, and which claimed effects it hides.
//!
//! Groups are what should have been the same: the successes of one action (`--verify`, a stage that is not
//! deterministic, one that was made again after its blobs were gone) and members that differ in the axis `repeat`
//! alone. Their standard deviations are pooled over groups (`avow_stats::noise`). An effect — a difference, or the
//! distance of a level from its bound — that is smaller than that standard deviation is said to be so; it is voided by
//! nothing, because units average noise out. Absent: variability that comes from further up; a stage's own attempts
//! all read the same inputs.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::claim::{Bound, Claim, Part, Reduction, Rule, Selected, Selection, Statistic, Test};
use avow_model::digest::AttemptDigest;
use avow_model::expand::Member;
use avow_stats::noise::Noise;
use avow_stats::{Interval, Level};
use serde::Serialize;

use crate::evidence::{Evidence, Fate, MemberEvidence, Stands};
use crate::judge::{Qualifier, Verdict};
use crate::measure::{self, Measurement, Readings, table};
use crate::source::{AuditError, Source};

/// The axis that numbers the repetitions of a stage.
const REPEAT: &str = "repeat";

/// How much a measurement varies where nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// The standard deviation.
    #[serde(serialize_with = "table::number")]
    pub sd: f64,
    /// The ends of its 95 % interval, which assumes normal values.
    #[serde(serialize_with = "table::number")]
    pub low: f64,
    /// The upper end.
    #[serde(serialize_with = "table::number")]
    pub high: f64,
    /// Repetitions beyond the first of each group.
    pub repetitions: usize,
}

/// What groups of values by one thing come to; nothing where none has two.
pub fn floor(groups: &[Vec<f64>]) -> Option<Floor> {
    let repeated: Vec<&[f64]> = groups.iter().filter(|group| group.len() > 1).map(Vec::as_slice).collect();
    let noise = Noise::pooled(&repeated).ok()?;
    let Interval { low, high, .. } = noise.interval(Level::ratio(1, 20)?);
    Some(Floor { sd: noise.sd, low, high, repetitions: noise.df })
}

/// The effect that a verdict claims, in units of the measurement; nothing for rules that have no such thing.
pub fn effect(part: &Part, estimate: f64) -> Option<f64> {
    // A sum has other units of variation, and a logarithm other units altogether.
    let in_units = part.reduce.iter().all(|reduce| reduce.by != Reduction::Sum);
    let plain = part.rule.inference().is_none_or(|inference| !inference.log);
    let size = match &part.rule {
        Rule::Difference { .. } => estimate.abs(),
        Rule::Threshold { statistic: Statistic::Mean | Statistic::Median, bound, .. } => match *bound {
            Bound::Above { bound, .. } | Bound::Below { bound, .. } => (estimate - bound).abs(),
            Bound::Between { low, high } => (estimate - low).abs().min((estimate - high).abs()),
        },
        _ => return None,
    };
    (in_units && plain && size.is_finite()).then_some(size)
}

/// Adds to each verdict how much its measurement varies by itself, where that is known, and whether its effect is
/// smaller than that.
pub(crate) fn qualify(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    readings: &Readings,
    verdicts: &mut [Verdict],
) -> Result<(), AuditError> {
    let mut floors: BTreeMap<(String, String), Option<Floor>> = BTreeMap::new();
    for verdict in verdicts {
        let Some((part, name)) = evidence.plan.claim(&verdict.claim).and_then(selected) else { continue };
        let Some(effect) = verdict.estimate.and_then(|estimate| effect(part, estimate)) else { continue };
        let key = (part.select.stage.clone(), name.to_owned());
        let floor = match floors.get(&key) {
            Some(floor) => *floor,
            None => {
                let floor = floor(&groups(evidence, source, readings, &part.select, name)?);
                *floors.entry(key).or_insert(floor)
            }
        };
        if let Some(Floor { sd, low, high, repetitions }) = floor {
            let below = effect < sd;
            verdict.qualifiers.push(Qualifier::Noise { sd, low, high, repetitions, effect, below });
        }
    }
    Ok(())
}

/// The one part of a claim and the measurement that it selects; nothing for combinations and outputs.
pub fn selected(claim: &Claim) -> Option<(&Part, &str)> {
    match &claim.test {
        Test::One(part) => match &part.select.of {
            Selected::Measurement(name) => Some((part, name)),
            Selected::Output(_) => None,
        },
        _ => None,
    }
}

/// What should be one number: where it stands, and which record.
type Key = (Vec<(String, String)>, Vec<(String, String)>);

/// The values of one measurement, grouped by what should have been the same.
fn groups(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    readings: &Readings,
    select: &Selection,
    name: &str,
) -> Result<Vec<Vec<f64>>, AuditError> {
    let Some(stage) = evidence.plan.stage_index(&select.stage) else { return Ok(Vec::new()) };
    let mut groups: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
    let chosen = |value: &&Measurement| {
        let at = |key: &String| value.axes.get(key).or_else(|| value.keys.get(key));
        value.name == name
            && select.filter.iter().all(|(key, allowed)| at(key).is_none_or(|value| allowed.contains(value)))
    };
    let mut add = |values: &mut dyn Iterator<Item = &Measurement>| {
        for value in values.filter(chosen).filter(|value| value.value.is_finite()) {
            groups.entry(key(value)).or_default().push(value.value);
        }
    };
    let repeats = evidence.plan.stages[stage].scope.iter().any(|axis| axis == REPEAT);
    let mut again = Vec::new();
    for member in &evidence.stages[stage] {
        for attempt in repeated(member) {
            again.push((member.member, measure::read_attempt(evidence, member, &attempt, source)?.values));
        }
    }
    // Where nothing was repeated there is nothing to look at, however many values there are.
    let members: BTreeSet<Member> = again.iter().map(|(member, _)| *member).collect();
    let concerned = |value: &&Measurement| {
        value.member.stage as usize == stage && (repeats || members.contains(&value.member))
    };
    add(&mut readings.values.iter().filter(concerned));
    again.iter().for_each(|(_, values)| add(&mut values.iter()));
    Ok(groups.into_values().filter(|group| group.len() > 1).collect())
}

/// Everything but the number of the repetition.
fn key(value: &Measurement) -> Key {
    let text = |(name, value): (&String, &avow_model::value::Value)| (name.clone(), value.to_string());
    let axes = value.axes.iter().filter(|(axis, _)| *axis != REPEAT).map(text).collect();
    (axes, value.keys.iter().map(text).collect())
}

/// The successes of a member beside the one that stands, as if they stood.
fn repeated(member: &MemberEvidence) -> Vec<Stands> {
    let Fate::Stands(Stands { attempt: standing, .. }) = &member.fate else { return Vec::new() };
    let other = |attempt: &AttemptDigest| attempt != standing;
    let again = member.attempts.iter().filter(|tried| tried.outcome.succeeded() && !tried.invalid);
    again
        .filter(|tried| other(&tried.attempt))
        .map(|tried| Stands {
            attempt: tried.attempt,
            outputs: tried.outputs.clone(),
            covered: tried.covered,
        })
        .collect()
}
