//! One part or combination after its test and before its family.

use avow_model::value::Value;
use avow_stats::{Combination, Decision, Inference, Level, Region, Void, combine, curve};
use std::collections::BTreeSet;

use super::reason::Reason;
use super::verdict::{ArmUnits, Culprit, DecidedBy, Interval, Piece, Qualifier, Units, Word};
use crate::measure::Origin;

/// A tested part with all that a verdict will say about it.
#[derive(Clone, Debug)]
pub(super) struct Tested {
    /// The rule's word.
    pub rule: &'static str,
    /// The values of `per`.
    pub at: Vec<(String, Value)>,
    pub body: Body,
    pub units: Units,
    pub qualifiers: Vec<Qualifier>,
    /// Parts or points.
    pub pieces: Vec<Piece>,
    /// What refutes it, if anything does.
    pub culprits: Vec<Culprit>,
    pub origins: BTreeSet<Origin>,
    /// Whether it counts in a family.
    pub inferential: bool,
    /// Each unit's deviation from the bound, for a correction over all members at once.
    pub column: Option<Column>,
    /// Of a combination: whether every part with a p is an equivalence or one-sided. A curve's points are.
    pub parts_one_sided: bool,
}

/// Deviations from the bound by unit.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub units: Vec<Option<Value>>,
    pub deviations: Vec<f64>,
}

/// What came of a test.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A p-value and intervals.
    Inferred(Box<Inference>),
    /// A p-value from parts.
    Combined(Combination),
    /// A decision without a p-value.
    Decided { decision: Decision, estimate: Option<f64>, by: DecidedBy },
    /// No number.
    Void(Reason),
}

impl Body {
    /// Data so large, small or alike that a number overflowed or became 0/0 say nothing: such a test is undefined.
    fn sound(self) -> Body {
        let undefined = match &self {
            Body::Inferred(inference) => {
                let p = [inference.q, inference.pair.support, inference.pair.refute];
                !inference.fit.estimate().is_finite() || p.iter().any(|p| p.is_nan())
            }
            Body::Decided { estimate, .. } => estimate.is_some_and(|estimate| !estimate.is_finite()),
            Body::Combined(_) | Body::Void(_) => false,
        };
        if undefined { Body::Void(Reason::Void(Void::Undefined)) } else { self }
    }
}

impl Tested {
    pub fn new(rule: &'static str, at: Vec<(String, Value)>, body: Body) -> Tested {
        Tested {
            rule,
            at,
            body: body.sound(),
            units: Units::default(),
            qualifiers: Vec::new(),
            pieces: Vec::new(),
            culprits: Vec::new(),
            origins: BTreeSet::new(),
            inferential: false,
            column: None,
            parts_one_sided: rule == "curve",
        }
    }

    /// The decision p-value before correction; 1 where there is none.
    pub fn q(&self) -> f64 {
        match &self.body {
            Body::Inferred(inference) => inference.q,
            Body::Combined(combination) => combination.q,
            Body::Decided { .. } | Body::Void(_) => 1.0,
        }
    }

    /// This test as a part of a combination.
    pub fn part(&self) -> combine::Part {
        match &self.body {
            Body::Inferred(inference) => curve::part(&Ok((**inference).clone())),
            Body::Combined(combination) => combination.part(),
            Body::Decided { decision: Decision::Supported, .. } => combine::Part::Certain(true),
            Body::Decided { decision: Decision::Refuted | Decision::Reversed, .. } => {
                combine::Part::Certain(false)
            }
            Body::Decided { decision: Decision::Inconclusive(_), .. } => {
                combine::Part::Tested { pair: avow_stats::Pair::SILENT, reach: avow_stats::Pair::SILENT }
            }
            Body::Void(reason) => combine::Part::Void(reason.as_void()),
        }
    }

    /// Whether the combination of parts like this one leaves p_S undoubled; `None` where the part has no p.
    pub fn one_sided(&self) -> Option<bool> {
        match &self.body {
            Body::Inferred(inference) => Some(inference.claim.one_sided()),
            Body::Combined(_) => Some(self.parts_one_sided),
            Body::Decided { .. } | Body::Void(_) => None,
        }
    }

    /// What it would be alone, at the claim's level.
    pub fn piece(&self, alpha: Level) -> Piece {
        let (word, reason) = self.alone(alpha);
        let (estimate, interval, p, method) = match &self.body {
            Body::Inferred(i) => (
                Some(i.fit.estimate()),
                Some(Interval::from(i.interval(i.claim.interval_error(alpha, 1)))),
                Some(i.pair.into()),
                Some(i.fit.method().word()),
            ),
            Body::Combined(c) => (None, None, Some(c.pair.into()), None),
            Body::Decided { estimate, .. } => (*estimate, None, None, None),
            Body::Void(_) => (None, None, None, None),
        };
        let (expected, margin) = match &self.body {
            Body::Inferred(i) => centre(i.claim.region),
            _ => (None, None),
        };
        Piece {
            rule: self.rule,
            at: self.at.clone(),
            word,
            reason,
            estimate,
            expected,
            margin,
            interval,
            p,
            method,
            units: self.units.clone(),
            parts: self.pieces.clone(),
        }
    }

    fn alone(&self, alpha: Level) -> (Word, Option<Reason>) {
        let adjusted = avow_stats::Adjusted::alone(self.q());
        match &self.body {
            Body::Inferred(i) => Word::of(avow_stats::decide(&i.evidence(), &adjusted, alpha)),
            Body::Combined(c) => match c.decide(&adjusted, alpha) {
                Ok(decision) => Word::of(decision),
                Err(void) => (Word::Void, Some(self.void_reason().unwrap_or(Reason::Void(void)))),
            },
            Body::Decided { decision, .. } => Word::of(*decision),
            Body::Void(reason) => (Word::Void, Some(reason.clone())),
        }
    }

    /// The damage that voided it, if that is why it is Void.
    pub fn damage(&self) -> Option<Reason> {
        match &self.body {
            Body::Void(reason @ Reason::Damaged(_)) => Some(reason.clone()),
            _ => None,
        }
    }

    /// The reason of the first Void piece, which says more than the combination's.
    pub fn void_reason(&self) -> Option<Reason> {
        self.pieces.iter().find(|p| p.word == Word::Void).and_then(|p| p.reason.clone())
    }
}

/// The centre and half-width of an equivalence.
pub(super) fn centre(region: Region) -> (Option<f64>, Option<f64>) {
    match region {
        Region::Equivalence { target, margin } => (Some(target), Some(margin)),
        _ => (None, None),
    }
}

impl Units {
    /// The counts of several parts: the part with the fewest units speaks for all.
    pub(super) fn scarcest<'u>(parts: impl Iterator<Item = &'u Units>) -> Units {
        parts.min_by_key(|units| (units.used, units.planned)).cloned().unwrap_or_default()
    }
}

impl ArmUnits {
    /// Whether anything is missing.
    pub fn is_short(&self) -> bool {
        self.missing + self.non_finite > 0
    }
}

/// Two tests of one claim over two kinds of units as one: whichever is Void voids it, and the larger p of the two decides
/// on either side. Estimate, interval and units are those of the test that decides.
pub(super) fn larger((unit, first): (String, Tested), (also, second): (String, &Tested)) -> Tested {
    let (Body::Inferred(one), Body::Inferred(other)) = (&first.body, &second.body) else {
        return if matches!(first.body, Body::Inferred(_)) { second.clone() } else { first };
    };
    let (decides, over) = if one.q >= other.q { (&first, unit) } else { (second, also) };
    let Body::Inferred(deciding) = &decides.body else { return decides.clone() };
    let mut joint = (**deciding).clone();
    joint.pair = avow_stats::Pair {
        support: one.pair.support.max(other.pair.support),
        refute: one.pair.refute.max(other.pair.refute),
    };
    joint.q = joint.claim.q(joint.pair);
    joint.reversal = one.reversal.zip(other.reversal).map(|(a, b)| a.max(b));
    joint.reach = one.reach.max(other.reach);
    let mut tested = decides.clone();
    tested.body = Body::Inferred(Box::new(joint));
    // Deviations of one kind of units only are no column of the family's permutation.
    tested.column = None;
    tested.qualifiers.push(Qualifier::OverUnits { over });
    tested
}
