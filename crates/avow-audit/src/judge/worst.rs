//! The groups of a claim about the worst of them: units that have a value in each, or units of their own.

use avow_model::claim::Part;
use avow_model::value::Value;
use avow_stats::worst::Groups;
use avow_stats::{Void, sum};

use super::reason::Reason;
use super::sample::{Sample, Whole, sample};
use crate::join::Joined;

/// The groups of a part, under its `missing:`.
pub(super) fn groups(joined: &Joined, part: &Part) -> Result<Groups, Reason> {
    let groups = columns(joined, part)?;
    let first = &groups[0].ids;
    let shared = |ids: &[Option<Value>]| first.iter().filter(|id| ids.contains(id)).count();
    let column = |group: &Sample| group.rows().into_iter().map(|row| row[0]).collect::<Vec<f64>>();
    let values = groups.iter().map(column).collect();
    if groups.iter().all(|group| group.ids == *first) {
        return Ok(Groups::crossed(values)?);
    }
    let apart = groups.iter().enumerate().all(|(index, group)| {
        let mut others = groups.iter().take(index);
        others.all(|other| !other.ids.iter().any(|id| group.ids.contains(id)))
    });
    if apart {
        return Ok(Groups::nested(values)?);
    }
    let some = groups.iter().map(|group| shared(&group.ids)).min().unwrap_or(0);
    Err(Reason::Unsuited(format!("groups that share some units ({some}) and not all")))
}

/// The estimate: the lowest mean, or the highest.
pub(super) fn estimate(joined: &Joined, part: &Part, highest: bool) -> Result<f64, Reason> {
    let of_one = |group: Sample| sum::mean(&group.rows().into_iter().map(|row| row[0]).collect::<Vec<f64>>());
    let means = columns(joined, part)?.into_iter().map(of_one);
    Ok(match highest {
        true => means.fold(f64::NEG_INFINITY, f64::max),
        false => means.fold(f64::INFINITY, f64::min),
    })
}

fn columns(joined: &Joined, part: &Part) -> Result<Vec<Sample>, Reason> {
    let groups: Vec<Sample> = (0..joined.points.len())
        .map(|point| sample(joined, &[point], Whole::Unit, &part.missing).0)
        .collect::<Result<_, _>>()?;
    if groups.is_empty() { Err(Reason::Void(Void::NoUnits)) } else { Ok(groups) }
}
