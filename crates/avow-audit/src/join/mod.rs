//! From measurements to units: select, where, compare, reduce, per, replicate, along.
//!
//! What was planned is computed from the plan, never from what happens to exist: a planned unit without a
//! number is a missing unit and counts. Units pair when they are equal in every other axis and key. A dimension
//! that varies and has no role is an error, because any way of dealing with it would be a choice nobody
//! registered. Record keys are not in the plan, so they are planned wherever some member that differs only in
//! replicate, arm or reduced axes wrote them. Absent: statistics.

mod frame;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::claim::{Part, Reduction};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand::Member;
use avow_model::value::Value;
use avow_stats::sum;
use serde::Serialize;

use crate::evidence::Evidence;
use crate::measure::{Origin, Readings};
use frame::{Frame, Row};

/// What a part selects, arranged: one entry per value of `per`.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The values of `per` that this member stands for.
    pub per: PerValues,
    /// The levels along the rule's dimension, in planned order; one without a value where there is none.
    pub points: Vec<Point>,
    /// One, two, or four of two crossed contrasts: first and second of the one, for first and then second of the
    /// other.
    pub arms: usize,
    /// The units, in planned order.
    pub units: Vec<Unit>,
    /// Whether the clusters of the units are strata, within which they are drawn, and no clusters.
    pub stratified: bool,
    /// Every number used, by its origin.
    pub origins: BTreeSet<Origin>,
}

/// One level along the rule's dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its value.
    pub value: Option<Value>,
    /// The members that contribute to it.
    pub members: BTreeSet<Member>,
}

/// What is repeated: a seed, a family, a day.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The value of the replicate dimension; `None` where the claim names none.
    pub id: Option<Value>,
    /// The cluster or stratum it belongs to; `None` where the claim names neither.
    pub cluster: Option<Value>,
    slots: Vec<Slot>,
}

/// What there is for one unit, point and arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slot {
    /// A finite number.
    Number(f64),
    /// A finite number at which watching ended: the true value is this or larger.
    Censored(f64),
    /// NaN or infinite.
    NonFinite(f64),
    /// The bytes of an output.
    Content(Artifact),
    /// Planned, and not there.
    Missing,
    /// Written, and no number.
    Unreadable,
    /// Its file is damaged or gone.
    Damaged(BlobDigest),
    /// Never planned: excluded cells.
    Unplanned,
}

/// Why there are no units.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum JoinError {
    /// The plan has no such stage.
    #[error("the plan has no stage `{stage}`")]
    UnknownStage {
        /// The stage.
        stage: String,
    },
    /// A dimension that no axis, attribute or record key is called.
    #[error("nothing is called `{dimension}`")]
    UnknownDimension {
        /// The dimension.
        dimension: String,
    },
    /// A dimension that varies and has no role.
    #[error("`{dimension}` varies and the claim does not say what to do with it")]
    LeftoverDimension {
        /// The dimension.
        dimension: String,
    },
    /// A contrast with a value that the dimension does not have.
    #[error("`{dimension}` has no value `{value}`")]
    UnknownValue {
        /// The dimension.
        dimension: String,
        /// The value.
        value: String,
    },
    /// A unit that lies in several clusters.
    #[error("a unit has more than one value of `{dimension}`, so it belongs to no one cluster")]
    SplitUnit {
        /// The dimension of the clusters.
        dimension: String,
    },
    /// Bytes cannot be averaged.
    #[error("an output's bytes cannot be reduced over `{dimension}`")]
    ReducedBytes {
        /// The dimension.
        dimension: String,
    },
}

impl JoinError {
    /// The code of the error.
    pub fn word(&self) -> &'static str {
        match self {
            JoinError::UnknownStage { .. } => "unknown-stage",
            JoinError::UnknownDimension { .. } => "unknown-dimension",
            JoinError::LeftoverDimension { .. } => "leftover-dimension",
            JoinError::UnknownValue { .. } => "unknown-value",
            JoinError::SplitUnit { .. } => "split-unit",
            JoinError::ReducedBytes { .. } => "reduced-bytes",
        }
    }
}

impl Joined {
    /// What there is for a unit at a point in an arm.
    pub fn slot(&self, unit: usize, point: usize, arm: usize) -> Slot {
        self.units[unit].slots[point * self.arms + arm]
    }

    /// Every slot of a unit.
    pub fn slots(&self, unit: usize) -> &[Slot] {
        &self.units[unit].slots
    }
}

/// Arranges what a part selects. No entry at all where `per` names a record key that nobody wrote.
pub fn join(evidence: &Evidence<'_>, readings: &Readings, part: &Part) -> Result<Vec<Joined>, JoinError> {
    let frame = Frame::new(evidence, readings, part)?;
    frame.groups().into_iter().map(|(per, rows)| arrange(&frame, per, rows, part)).collect()
}

/// The values of `per` that a member stands for.
pub type PerValues = Vec<(String, Value)>;

/// The members that `per` makes as far as the plan alone knows, for a claim whose selection cannot be arranged:
/// they count in their family all the same. Record keys are not in the plan and make none here.
pub fn planned_members(evidence: &Evidence<'_>, part: &Part) -> Vec<PerValues> {
    frame::planned_groups(evidence, part)
}

/// Where a number belongs: arm, unit, point, and whatever no role covers.
type Place = (usize, u32, u32, Vec<u32>);

fn arrange(frame: &Frame<'_>, per: PerValues, rows: Vec<&Row>, part: &Part) -> Result<Joined, JoinError> {
    let places = fold(&rows, part)?;
    let single = unique(frame, &places)?;
    let arms = match (&part.compare, &part.crossed) {
        (None, _) => 1,
        (Some(_), None) => 2,
        (Some(_), Some(_)) => 4,
    };
    let clusters = clusters(&rows, part)?;
    let units: Vec<u32> =
        single.keys().map(|(_, unit, _)| *unit).collect::<BTreeSet<_>>().into_iter().collect();
    let levels: Vec<u32> = single.keys().map(|(_, _, p)| *p).collect::<BTreeSet<_>>().into_iter().collect();
    let point = |level: &u32| Point {
        value: frame.along_value(*level),
        members: rows.iter().filter(|row| row.point == *level).map(|row| row.member).collect(),
    };
    let unit = |id: &u32| {
        let at = |(level, arm): (&u32, usize)| single.get(&(arm, *id, *level)).copied();
        let cells = levels.iter().flat_map(|level| (0..arms).map(move |arm| (level, arm)));
        Unit {
            id: frame.unit_value(*id),
            cluster: clusters.get(id).and_then(|level| frame.cluster_value(*level)),
            slots: cells.map(|c| at(c).unwrap_or(Slot::Unplanned)).collect(),
        }
    };
    Ok(Joined {
        per,
        points: levels.iter().map(point).collect(),
        arms,
        units: units.iter().map(unit).collect(),
        stratified: part.strata.is_some(),
        origins: rows.iter().filter_map(|row| row.origin.clone()).collect(),
    })
}

/// The cluster of each unit.
fn clusters(rows: &[&Row], part: &Part) -> Result<BTreeMap<u32, u32>, JoinError> {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    let Some(dimension) = part.clusters.as_ref().or(part.strata.as_ref()) else { return Ok(found) };
    for row in rows {
        if *found.entry(row.unit).or_insert(row.cluster) != row.cluster {
            return Err(JoinError::SplitUnit { dimension: dimension.clone() });
        }
    }
    Ok(found)
}

/// Two arranged selections as the two arms of one: units and points that are equal, in the order of the first.
pub fn beside(first: Joined, second: &Joined) -> Joined {
    let place = |id: &Option<Value>| second.units.iter().position(|unit| unit.id == *id);
    let column = |point: &Option<Value>| second.points.iter().position(|p| p.value == *point);
    let mut units = Vec::new();
    for (index, unit) in first.units.iter().enumerate() {
        let other = place(&unit.id);
        let slots = first.points.iter().enumerate().flat_map(|(point, level)| {
            let there = other.zip(column(&level.value)).map(|(u, p)| second.slot(u, p, 0));
            [first.slot(index, point, 0), there.unwrap_or(Slot::Missing)]
        });
        units.push(Unit { id: unit.id.clone(), cluster: unit.cluster.clone(), slots: slots.collect() });
    }
    let alone = second.units.iter().filter(|unit| !first.units.iter().any(|own| own.id == unit.id));
    for unit in alone {
        let slots = first.points.iter().flat_map(|_| [Slot::Missing, Slot::Missing]).collect();
        units.push(Unit { id: unit.id.clone(), cluster: unit.cluster.clone(), slots });
    }
    let origins = first.origins.iter().chain(&second.origins).cloned().collect();
    Joined { units, arms: 2, origins, ..first }
}

/// Folds the reduced dimensions away, in the order the claim names them.
fn fold(rows: &[&Row], part: &Part) -> Result<BTreeMap<Place, Slot>, JoinError> {
    let mut cells: BTreeMap<(Place, Vec<u32>), Vec<Slot>> = BTreeMap::new();
    for row in rows {
        let place = (row.arm, row.unit, row.point, row.rest.clone());
        cells.entry((place, row.folded.clone())).or_default().push(row.slot);
    }
    for reduce in &part.reduce {
        let mut wider: BTreeMap<(Place, Vec<u32>), Vec<Slot>> = BTreeMap::new();
        for ((place, folded), slots) in cells {
            wider.entry((place, folded[1..].to_vec())).or_default().extend(slots);
        }
        if wider.values().flatten().any(|slot| matches!(slot, Slot::Content(_))) {
            return Err(JoinError::ReducedBytes { dimension: reduce.dimension.clone() });
        }
        cells = wider.into_iter().map(|(at, slots)| (at, vec![reduced(&slots, reduce.by)])).collect();
    }
    // Axes and keys are all either roles or rest, so a place holds one number.
    Ok(cells.into_iter().map(|((place, _), slots)| (place, slots[0])).collect())
}

/// One number of several. What is wrong with any of them is wrong with the result: a maximum over the layers
/// that happen to exist is another quantity.
fn reduced(slots: &[Slot], by: Reduction) -> Slot {
    let wrong = |slot: &&Slot| !matches!(slot, Slot::Number(_) | Slot::Censored(_) | Slot::Unplanned);
    if let Some(slot) = slots.iter().find(wrong) {
        return *slot;
    }
    let number = |slot: &Slot| match slot {
        Slot::Number(x) | Slot::Censored(x) => Some(*x),
        _ => None,
    };
    let mut values: Vec<f64> = slots.iter().filter_map(number).collect();
    let censored = slots.iter().any(|slot| matches!(slot, Slot::Censored(_)));
    if values.is_empty() {
        return Slot::Unplanned;
    }
    let result = match by {
        Reduction::Mean => sum::mean(&values),
        Reduction::Sum => sum::sum(values),
        Reduction::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Median => {
            values.sort_by(f64::total_cmp);
            0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2])
        }
    };
    match (result.is_finite(), censored) {
        (true, false) => Slot::Number(result),
        // Of several values of which one was cut off, the smallest or largest may be known; nobody says so here.
        (true, true) => Slot::Censored(result),
        (false, _) => Slot::NonFinite(result),
    }
}

/// Insists that no dimension without a role varies within a unit, point and arm.
fn unique(
    frame: &Frame<'_>,
    places: &BTreeMap<Place, Slot>,
) -> Result<BTreeMap<(usize, u32, u32), Slot>, JoinError> {
    let mut single: BTreeMap<(usize, u32, u32), (&[u32], Slot)> = BTreeMap::new();
    for ((arm, unit, point, rest), slot) in places {
        if let Some((other, _)) = single.insert((*arm, *unit, *point), (rest, *slot)) {
            return Err(JoinError::LeftoverDimension { dimension: frame.differing(other, rest) });
        }
    }
    Ok(single.into_iter().map(|(at, (_, slot))| (at, slot)).collect())
}
