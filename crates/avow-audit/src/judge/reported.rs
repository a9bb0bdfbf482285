//! The rule `reported`: a result that the experiment's own analysis computed, read and checked for plausibility.

use avow_model::claim::{Bound, Reported as Names};
use avow_stats::reported::{Ends, Reported};
use avow_stats::{Combination, combine};

use super::reason::Reason;
use super::rule::{Setting, region};
use super::tested::{Body, Tested};
use super::verdict::{Interval, Piece, Units, Word};
use crate::join::{JoinError, Joined, Slot};

/// Another measurement of the same stage, arranged like the estimate.
pub(super) type Other<'o> = &'o dyn Fn(&str) -> Result<Option<Joined>, JoinError>;

pub(super) fn test(
    setting: Setting<'_>,
    joined: &Joined,
    (names, bound, skewed): (&Names, Bound, bool),
    other: Other<'_>,
) -> Tested {
    let mut tested = match read(joined, names, other).and_then(|read| judged(read, bound, skewed)) {
        Err(reason) => Tested::new("reported", Vec::new(), Body::Void(reason)),
        Ok((reported, combination)) => {
            let mut tested = Tested::new("reported", Vec::new(), Body::Combined(combination.clone()));
            tested.pieces = vec![piece(&reported, &combination, setting)];
            tested
        }
    };
    tested.at.clone_from(&joined.per);
    tested.origins.clone_from(&joined.origins);
    for name in names.all() {
        if let Ok(Some(other)) = other(name) {
            tested.origins.extend(other.origins);
        }
    }
    tested.inferential = true;
    tested
}

fn judged(read: Reported, bound: Bound, skewed: bool) -> Result<(Reported, Combination), Reason> {
    let region = region(bound)?;
    let [at, _] = region.ends();
    let checked = read.checked(None, skewed, at).map_err(|error| Reason::Implausible(error.to_string()))?;
    let pair = checked.pair(region);
    let reach = avow_stats::Pair { support: 0.0, refute: 0.0 };
    let combination = Combination::all(&[combine::Part::Tested { pair, reach }], false)?;
    Ok((checked, combination))
}

/// The one number of a selection.
fn single(joined: &Joined) -> Result<f64, Reason> {
    let slots: Vec<Slot> = (0..joined.units.len()).flat_map(|unit| joined.slots(unit).to_vec()).collect();
    match slots.as_slice() {
        [Slot::Number(x) | Slot::Censored(x) | Slot::NonFinite(x)] => Ok(*x),
        [Slot::Damaged(blob)] => Err(Reason::Damaged(*blob)),
        [Slot::Unreadable | Slot::Content(_)] => Err(Reason::Unreadable),
        [] | [Slot::Missing | Slot::Unplanned] => Err(Reason::Void(avow_stats::Void::MissingUnits)),
        _ => Err(Reason::Unsuited("several values where one result is reported".to_owned())),
    }
}

fn read(joined: &Joined, names: &Names, other: Other<'_>) -> Result<Reported, Reason> {
    let number = |name: &Option<String>| -> Result<Option<f64>, Reason> {
        let Some(name) = name else { return Ok(None) };
        match other(name)? {
            Some(joined) => single(&joined).map(Some),
            None => Err(Reason::Void(avow_stats::Void::MissingUnits)),
        }
    };
    let level = match &names.level {
        Some(level) => level.parse().map_err(|_| Reason::BadClaim(format!("`{level}` is not a level")))?,
        None => 0.95,
    };
    let interval = match (number(&names.low)?, number(&names.high)?) {
        (Some(low), Some(high)) => Some(Ends { low, high, level }),
        _ => None,
    };
    let units = number(&names.n)?.map(|n| {
        if n >= 0.0 && n.fract() == 0.0 && n < 9e15 {
            Ok(n as u64)
        } else {
            Err(Reason::Implausible(format!("n is {n}, not a number of units")))
        }
    });
    Ok(Reported { estimate: single(joined)?, interval, p: number(&names.p)?, n: units.transpose()? })
}

/// The numbers as read, for the page: a combination itself has no estimate.
fn piece(reported: &Reported, combination: &Combination, setting: Setting<'_>) -> Piece {
    let adjusted = avow_stats::Adjusted::alone(combination.q);
    let (word, reason) = match combination.decide(&adjusted, setting.alpha) {
        Ok(decision) => Word::of(decision),
        Err(void) => (Word::Void, Some(Reason::Void(void))),
    };
    let units = reported.n.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
    Piece {
        rule: "reported",
        at: Vec::new(),
        word,
        reason,
        estimate: Some(reported.estimate),
        expected: None,
        margin: None,
        interval: reported.interval.map(|e| Interval { low: e.low, high: e.high, level: e.level }),
        p: Some(combination.pair.into()),
        method: Some("computed by the experiment's code"),
        units: Units { planned: units, used: units, ..Units::default() },
        parts: Vec::new(),
    }
}
