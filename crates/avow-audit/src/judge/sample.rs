//! From joined units to the numbers a rule reads, under the claim's `missing:`.
//!
//! A unit that is missing or not finite voids the claim, or is dropped and counted; a pair is whole or not a
//! pair at all. Above the registered share of dropped units the claim is Void, by arm and overall, counted in
//! whole numbers.

use avow_model::claim::Missing;
use avow_model::value::Value;
use avow_stats::{Void, sum};

use super::reason::Reason;
use super::verdict::{ArmUnits, Units};
use crate::join::{Joined, Slot};

/// Whole units, in planned order.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// The units' names.
    pub ids: Vec<Option<Value>>,
    /// By arm, then unit, then point.
    pub arms: Vec<Vec<Vec<f64>>>,
    /// By arm, then unit: whether watching ended at its value.
    pub censored: Vec<Vec<bool>>,
    /// What was planned and what is missing.
    pub units: Units,
    /// How many units each of the first arm's rows stands for, where clusters became units.
    pub sizes: Vec<usize>,
    /// The stratum of each of the first arm's rows, by its number, where units are drawn within strata.
    pub strata: Vec<usize>,
}

/// What must be there together for a unit to be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// All arms and points (pairs; units that cross an axis).
    Unit,
    /// Each arm by itself, all points.
    Arm,
}

impl Sample {
    /// One arm's values at the first point, in planned order.
    pub fn values(&self, arm: usize) -> Vec<f64> {
        self.arms[arm].iter().map(|row| row[0]).collect()
    }

    /// Each unit's row, a value per point; of two arms the difference, of four the difference of differences,
    /// point by point.
    pub fn rows(&self) -> Vec<Vec<f64>> {
        let less = |first: &[Vec<f64>], second: &[Vec<f64>]| -> Vec<Vec<f64>> {
            let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(x, y)| x - y).collect();
            first.iter().zip(second).map(row).collect()
        };
        match self.arms.as_slice() {
            [first, second] => less(first, second),
            [a, b, c, d] => less(&less(a, b), &less(c, d)),
            arms => arms.first().cloned().unwrap_or_default(),
        }
    }

    /// Units that share a cluster become one: the mean of their values, clusters in the order of their first unit.
    /// `clusters` runs beside the rows, by arm.
    fn clustered(self, clusters: &[Vec<Option<Value>>]) -> Sample {
        let mean = |rows: &[&Vec<f64>]| -> Vec<f64> {
            let points = rows.first().map_or(0, |row| row.len());
            (0..points).map(|p| sum::mean(&rows.iter().map(|row| row[p]).collect::<Vec<f64>>())).collect()
        };
        let fold = |(arm, clusters): (&Vec<Vec<f64>>, &Vec<Option<Value>>)| -> Vec<Vec<f64>> {
            let of = |cluster: &Option<Value>| {
                let own = arm.iter().zip(clusters).filter(|(_, own)| *own == cluster).map(|(row, _)| row);
                mean(&own.collect::<Vec<_>>())
            };
            distinct(clusters).iter().map(of).collect()
        };
        let arms = self.arms.iter().zip(clusters).map(fold).collect();
        let any = |(flags, clusters): (&Vec<bool>, &Vec<Option<Value>>)| -> Vec<bool> {
            let of = |cluster: &Option<Value>| {
                flags.iter().zip(clusters).any(|(flag, own)| *flag && own == cluster)
            };
            distinct(clusters).iter().map(of).collect()
        };
        let censored = self.censored.iter().zip(clusters).map(any).collect();
        let ids = clusters.first().map(|c| distinct(c)).unwrap_or_default();
        let of_first = clusters.first().map(Vec::as_slice).unwrap_or_default();
        let size = |id: &Option<Value>| of_first.iter().filter(|own| *own == id).count();
        let sizes = ids.iter().map(size).collect();
        Sample { ids, arms, censored, units: self.units, sizes, strata: Vec::new() }
    }
}

/// Takes the whole units of `points` (positions in the join), or says why there can be no sample; the counts
/// are given either way.
pub(super) fn sample(
    joined: &Joined,
    points: &[usize],
    whole: Whole,
    missing: &Missing,
) -> (Result<Sample, Reason>, Units) {
    let (arms, censored) = (vec![Vec::new(); joined.arms], vec![Vec::new(); joined.arms]);
    let sample = Sample { arms, censored, ..Sample::default() };
    let mut out = Taken { sample, clusters: vec![Vec::new(); joined.arms] };
    out.units.arms = vec![ArmUnits::default(); joined.arms];
    let mut worst = None;
    for unit in 0..joined.units.len() {
        take(joined, unit, points, whole, &mut out, &mut worst);
    }
    let mut units = out.units.clone();
    let clusters = std::mem::take(&mut out.clusters);
    let clustered = !joined.stratified && clusters.iter().flatten().any(Option::is_some);
    let mut out = if clustered { out.sample.clustered(&clusters) } else { out.sample };
    units.clusters = clustered.then_some(out.sizes.len());
    if joined.stratified {
        let own = clusters.first().map(Vec::as_slice).unwrap_or_default();
        let all = distinct(own);
        out.strata = own.iter().filter_map(|own| all.iter().position(|one| one == own)).collect();
    }
    (policy(&units, worst, missing).map(|()| out), units)
}

/// A sample on the way, with the cluster of each unit.
struct Taken {
    sample: Sample,
    /// By arm.
    clusters: Vec<Vec<Option<Value>>>,
}

/// Values in the order of their first appearance.
fn distinct(values: &[Option<Value>]) -> Vec<Option<Value>> {
    let mut order: Vec<Option<Value>> = Vec::new();
    for value in values {
        if !order.contains(value) {
            order.push(value.clone());
        }
    }
    order
}

impl std::ops::Deref for Taken {
    type Target = Sample;

    fn deref(&self) -> &Sample {
        &self.sample
    }
}

impl std::ops::DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Sample {
        &mut self.sample
    }
}

fn take(
    joined: &Joined,
    unit: usize,
    points: &[usize],
    whole: Whole,
    out: &mut Taken,
    worst: &mut Option<Reason>,
) {
    let row = |arm: usize| points.iter().map(move |point| joined.slot(unit, *point, arm));
    if (0..joined.arms).flat_map(row).all(|slot| slot == Slot::Unplanned) {
        return;
    }
    let mut usable = Vec::with_capacity(joined.arms);
    for (arm, count) in out.units.arms.iter_mut().enumerate() {
        if row(arm).all(|slot| slot == Slot::Unplanned) {
            // Planned in the other arm only: it can never pair.
            usable.push(None);
            continue;
        }
        count.planned += 1;
        let numbers: Vec<Option<f64>> = row(arm)
            .map(|slot| if let Slot::Number(x) | Slot::Censored(x) = slot { Some(x) } else { None })
            .collect();
        worsen(worst, row(arm));
        let non_finite = row(arm).any(|slot| matches!(slot, Slot::NonFinite(_)));
        let numbers: Option<Vec<f64>> = numbers.into_iter().collect();
        count.non_finite += usize::from(non_finite);
        count.missing += usize::from(numbers.is_none() && !non_finite);
        usable.push(numbers);
    }
    out.units.planned += 1;
    let complete = usable.iter().all(Option::is_some);
    if whole == Whole::Unit && !complete {
        if usable.iter().any(Option::is_some) && worst.is_none() {
            *worst = Some(Reason::Void(Void::Unpaired));
        }
        return;
    }
    out.units.used += usize::from(complete || usable.iter().any(Option::is_some));
    out.ids.push(joined.units[unit].id.clone());
    for (arm, row) in usable.into_iter().enumerate() {
        if row.is_some() {
            out.clusters[arm].push(joined.units[unit].cluster.clone());
            let cut = points.iter().any(|point| matches!(joined.slot(unit, *point, arm), Slot::Censored(_)));
            out.censored[arm].push(cut);
        }
        out.arms[arm].extend(row);
    }
}

/// Keeps the gravest reason seen: damage, then what is no number, then what is missing, then NaN.
fn worsen(worst: &mut Option<Reason>, slots: impl Iterator<Item = Slot>) {
    let gravity = |reason: &Reason| match reason {
        Reason::Damaged(_) => 4,
        Reason::Unreadable | Reason::Unsuited(_) => 3,
        Reason::Void(Void::MissingUnits) => 2,
        Reason::Void(Void::NonFinite) => 1,
        _ => 0,
    };
    for slot in slots {
        let reason = match slot {
            Slot::Number(_) | Slot::Censored(_) => continue,
            Slot::Damaged(blob) => Reason::Damaged(blob),
            Slot::Unreadable => Reason::Unreadable,
            Slot::Content(_) => Reason::Unsuited("bytes of an output where numbers are needed".to_owned()),
            Slot::Missing | Slot::Unplanned => Reason::Void(Void::MissingUnits),
            Slot::NonFinite(_) => Reason::Void(Void::NonFinite),
        };
        if worst.as_ref().is_none_or(|w| gravity(w) < gravity(&reason)) {
            *worst = Some(reason);
        }
    }
}

fn policy(units: &Units, worst: Option<Reason>, missing: &Missing) -> Result<(), Reason> {
    if units.planned == 0 {
        return Err(Reason::Void(Void::NoUnits));
    }
    let Some(worst) = worst else { return Ok(()) };
    match (missing, &worst) {
        (Missing::Drop { void_above }, Reason::Void(_)) => {
            let limit = Share::parse(void_above)
                .ok_or_else(|| Reason::BadClaim(format!("`{void_above}` is not a share")))?;
            let by_arm = units.arms.iter().map(|arm| (arm.missing + arm.non_finite, arm.planned));
            let overall = (units.planned - units.used, units.planned);
            let exceeded = by_arm.chain([overall]).any(|(dropped, planned)| limit.exceeded(dropped, planned));
            if exceeded { Err(worst) } else { Ok(()) }
        }
        _ => Err(worst),
    }
}

/// A share written as a decimal, kept as a fraction.
struct Share {
    numerator: u128,
    denominator: u128,
}

impl Share {
    fn parse(text: &str) -> Option<Share> {
        let (digits, percent) = text.strip_suffix('%').map_or((text, 1), |digits| (digits, 100));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{part}");
        if all.is_empty() || all.len() > 18 || !all.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let denominator = 10_u128.pow(u32::try_from(part.len()).ok()?) * percent;
        Some(Share { numerator: all.parse().ok()?, denominator })
    }

    /// Strictly more than the share.
    fn exceeded(&self, dropped: usize, planned: usize) -> bool {
        dropped as u128 * self.denominator > planned as u128 * self.numerator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared_in_whole_numbers() {
        let tenth = Share::parse("0.1").unwrap();
        assert!(!tenth.exceeded(1, 10) && tenth.exceeded(2, 10) && !tenth.exceeded(0, 0));
        let same = Share::parse("10%").unwrap();
        assert!(!same.exceeded(3, 30) && same.exceeded(4, 30));
        for text in ["", "x", "-0.1", "1e-1", "0,1"] {
            assert!(Share::parse(text).is_none(), "{text}");
        }
    }
}
