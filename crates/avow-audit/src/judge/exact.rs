//! The rule `exact`: values or bytes equal along a dimension or between two arms.

use avow_model::claim::Tolerance;
use avow_model::value::Value;
use avow_stats::exact::Equality;
use avow_stats::{Decision, Void};

use super::reason::Reason;
use super::rule::Setting;
use super::tested::{Body, Tested};
use super::verdict::{ArmUnits, Culprit, DecidedBy, Qualifier, Units};
use crate::join::{Joined, Slot};

/// One comparison: where, and the two things compared; the second is the reference.
struct Couple {
    at: Vec<(String, Value)>,
    first: Slot,
    second: Slot,
}

pub(super) fn test(setting: Setting<'_>, joined: &Joined, within: Option<Tolerance>) -> Tested {
    let word = setting.part.rule.word();
    let couples = couples(setting, joined);
    let units = count(joined);
    let compared = compare(&couples, within);
    let mut tested = match compared {
        Err(reason) => Tested::new(word, Vec::new(), Body::Void(reason)),
        Ok((unequal, largest)) => {
            let decision = if unequal.is_empty() { Decision::Supported } else { Decision::Refuted };
            let body = Body::Decided { decision, estimate: None, by: DecidedBy::Units };
            let mut tested = Tested::new(word, Vec::new(), body);
            let (values, count) = (couples.len(), unequal.len());
            tested.qualifiers = vec![Qualifier::Compared { values, unequal: count, largest }];
            tested.culprits =
                unequal.iter().map(|index| culprit(setting, &couples[*index], within)).collect();
            tested
        }
    };
    tested.units = units;
    tested
}

/// Every level against the first one, or the first arm against the second.
fn couples(setting: Setting<'_>, joined: &Joined) -> Vec<Couple> {
    let part = setting.part;
    let named = |name: Option<&str>, value: Option<&Value>| {
        name.zip(value).map(|(name, value)| (name.to_owned(), value.clone()))
    };
    let mut couples = Vec::new();
    for (unit, id) in joined.units.iter().enumerate() {
        for (index, point) in joined.points.iter().enumerate() {
            let reference = match joined.arms {
                2 => joined.slot(unit, index, 1),
                _ if index == 0 => continue,
                _ => joined.slot(unit, 0, 0),
            };
            let level = named(part.rule.along(), point.value.as_ref());
            let unit_name = named(part.replicate.as_deref(), id.id.as_ref());
            let at = level.into_iter().chain(unit_name).collect();
            couples.push(Couple { at, first: joined.slot(unit, index, 0), second: reference });
        }
    }
    couples
}

/// The positions of unequal couples and the largest deviation of numbers.
fn compare(couples: &[Couple], within: Option<Tolerance>) -> Result<(Vec<usize>, Option<f64>), Reason> {
    if couples.is_empty() {
        return Err(Reason::Void(Void::NoUnits));
    }
    let equality = match within {
        None => Equality::Bits,
        Some(t) => Equality::Within { absolute: t.absolute, relative: t.relative },
    };
    let (mut unequal, mut largest) = (Vec::new(), None);
    for (index, couple) in couples.iter().enumerate() {
        match (comparable(couple.first)?, comparable(couple.second)?) {
            (Thing::Number(a), Thing::Number(b)) => {
                let one = avow_stats::exact::compare(&[a], &[b], equality)?;
                largest = Some(one.largest.max(largest.unwrap_or(0.0)));
                if one.unequal > 0 {
                    unequal.push(index);
                }
            }
            (Thing::Content(a), Thing::Content(b)) if within.is_none() => {
                if a != b {
                    unequal.push(index);
                }
            }
            _ => return Err(Reason::Unsuited("a tolerance between bytes".to_owned())),
        }
    }
    Ok((unequal, largest))
}

enum Thing {
    Number(f64),
    Content(avow_model::digest::Artifact),
}

/// Equality is defined for NaN too; only what is not there, or no number, cannot be compared.
fn comparable(slot: Slot) -> Result<Thing, Reason> {
    match slot {
        Slot::Number(x) | Slot::Censored(x) | Slot::NonFinite(x) => Ok(Thing::Number(x)),
        Slot::Content(artifact) => Ok(Thing::Content(artifact)),
        Slot::Missing => Err(Reason::Void(Void::MissingUnits)),
        Slot::Unplanned => Err(Reason::Void(Void::Unpaired)),
        Slot::Unreadable => Err(Reason::Unreadable),
        Slot::Damaged(blob) => Err(Reason::Damaged(blob)),
    }
}

fn count(joined: &Joined) -> Units {
    let is_there = |slot: &Slot| comparable(*slot).is_ok();
    let planned = joined.units.len();
    let used = (0..planned).filter(|unit| joined.slots(*unit).iter().all(is_there)).count();
    let arm = |arm: usize| {
        let whole = |unit: &usize| (0..joined.points.len()).all(|p| is_there(&joined.slot(*unit, p, arm)));
        ArmUnits { planned, missing: planned - (0..planned).filter(whole).count(), non_finite: 0 }
    };
    Units { planned, used, clusters: None, arms: (0..joined.arms).map(arm).collect() }
}

fn culprit(setting: Setting<'_>, couple: &Couple, within: Option<Tolerance>) -> Culprit {
    let number = |slot| match slot {
        Slot::Number(x) | Slot::Censored(x) | Slot::NonFinite(x) => Some(x),
        _ => None,
    };
    let expected = number(couple.second);
    let margin = within.zip(expected).map(|(t, x)| t.absolute + t.relative * x.abs());
    Culprit {
        part: setting.path.to_vec(),
        at: couple.at.clone(),
        found: number(couple.first),
        expected,
        margin,
    }
}
