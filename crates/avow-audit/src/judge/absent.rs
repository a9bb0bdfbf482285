//! What a void claim lacks, by name: the member whose number is not there or not finite, and the names that files hold
//! where none of them is the one that was selected.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::claim::{Part, Selected, Selection};
use avow_model::expand::Member;
use avow_stats::Void;

use super::reason::Reason;
use crate::evidence::{Evidence, Fate};
use crate::join::Joined;
use crate::measure::{Measurement, Readings};

/// So many places are listed: a verdict is one line.
const LISTED: usize = 1;

/// The reason why a part can have no numbers at all: files were read, and none of them has the name that it selects.
pub(super) fn unknown(evidence: &Evidence<'_>, readings: &Readings, part: &Part) -> Option<Reason> {
    part.selections().find_map(|selection| unknown_name(evidence, readings, selection))
}

fn unknown_name(evidence: &Evidence<'_>, readings: &Readings, selection: &Selection) -> Option<Reason> {
    let Selected::Measurement(wanted) = &selection.of else { return None };
    let stage = evidence.plan.stages.iter().position(|stage| stage.name == selection.stage)?;
    let of_stage = |member: Member| member.stage as usize == stage;
    // What could not be read may have held it.
    let doubtful = readings
        .problems
        .iter()
        .any(|problem| of_stage(problem.at) && problem.name.as_ref().is_none_or(|name| name == wanted));
    if doubtful || readings.damaged.iter().any(|(member, _)| of_stage(*member)) {
        return None;
    }
    let of_stage = readings.values.iter().filter(|value| of_stage(value.member));
    let held: BTreeSet<&str> = of_stage.map(|value| value.name.as_str()).collect();
    if held.is_empty() || held.contains(wanted.as_str()) {
        return None;
    }
    let wanted_lower = wanted.to_lowercase();
    let mut held: Vec<&str> = held.into_iter().collect();
    // A stable sort: of names equally near the order of the alphabet.
    held.sort_by_cached_key(|name| strsim::damerau_levenshtein(&name.to_lowercase(), &wanted_lower));
    Some(Reason::UnknownMeasurement {
        stage: selection.stage.clone(),
        name: wanted.clone(),
        held: held.into_iter().map(str::to_owned).collect(),
    })
}

/// The same reason with the places that it is about, where it is about any.
pub(super) fn placed(
    reason: Reason,
    evidence: &Evidence<'_>,
    readings: &Readings,
    (part, joined): (&Part, &Joined),
) -> Reason {
    let Reason::Void(void @ (Void::NonFinite | Void::MissingUnits)) = reason else { return reason };
    let members: BTreeSet<Member> = joined.points.iter().flat_map(|p| p.members.iter().copied()).collect();
    let places = match void {
        Void::NonFinite => not_finite(evidence, readings, part, &members),
        _ => not_there(evidence, readings, part, &members),
    };
    if places.is_empty() { Reason::Void(void) } else { Reason::At { void, places: listed(places) } }
}

fn listed(places: Vec<String>) -> String {
    let more = places.len().saturating_sub(LISTED);
    let mut text = places.into_iter().take(LISTED).collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Whether a number is what a part selects, by name and record keys; its member is known to be.
fn is_selected(part: &Part, value: &Measurement) -> bool {
    part.selections().any(|selection| {
        let named = matches!(&selection.of, Selected::Measurement(name) if *name == value.name);
        let mut keys = value.keys.iter();
        named
            && keys.all(|(key, value)| selection.filter.get(key).is_none_or(|wanted| wanted.contains(value)))
    })
}

fn not_finite(
    evidence: &Evidence<'_>,
    readings: &Readings,
    part: &Part,
    members: &BTreeSet<Member>,
) -> Vec<String> {
    let bad = readings.values.iter().filter(|value| {
        !value.value.is_finite() && members.contains(&value.member) && is_selected(part, value)
    });
    bad.map(|value| {
        let member = evidence.label(value.member);
        format!("{} in {member}.{}, line {}", value.value, value.origin.output, value.origin.line)
    })
    .collect()
}

/// Members that nothing stands for, and members whose files have no such number.
fn not_there(
    evidence: &Evidence<'_>,
    readings: &Readings,
    part: &Part,
    members: &BTreeSet<Member>,
) -> Vec<String> {
    let mut counts: BTreeMap<Member, usize> = BTreeMap::new();
    for value in readings.values.iter().filter(|value| is_selected(part, value)) {
        *counts.entry(value.member).or_default() += 1;
    }
    let place = |member: &Member| {
        let label = evidence.label(*member);
        match evidence.member(*member).map(|found| &found.fate) {
            Some(Fate::Stands(_)) if counts.contains_key(member) => None,
            Some(Fate::Stands(_)) => Some(format!("{label} wrote none")),
            Some(Fate::Failed { outcome, .. }) => Some(format!("{label} {outcome}")),
            Some(Fate::Unfinished { outcome, .. }) => Some(format!("{label} {outcome}")),
            Some(Fate::Invalidated { .. }) => Some(format!("{label} was declared wrong")),
            Some(Fate::NotRun) | None => Some(format!("{label} was not run")),
            Some(Fate::Blocked { .. }) => Some(format!("{label} lacks an input")),
            Some(Fate::Unbound { .. }) => Some(format!("{label} cannot be bound")),
        }
    };
    members.iter().filter_map(place).collect()
}
