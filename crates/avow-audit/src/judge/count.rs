//! `count`: how many values of a dimension hold. Arithmetic about these units, no test of a population.
//!
//! At each value the parts are judged by their estimates, in Kleene's three-valued logic. Where a value cannot be judged,
//! best and worst case are both computed, and the count is undecided only if they differ.

use std::collections::BTreeSet;

use avow_model::claim::{Count, Judge, Part, Test};
use avow_model::value::Value;
use avow_stats::{Decision, Void};

use super::reason::Reason;
use super::tested::{Body, Tested};
use super::verdict::{ArmUnits, Culprit, DecidedBy};
use super::{Context, join};
use crate::measure::Origin;

/// What is fixed so far: a dimension and its value, outermost first.
type Fixed = Vec<(String, Value)>;

pub(super) fn test(context: Context<'_>, count: &Count, path: &[usize]) -> Tested {
    let mut counter = Counter { context, path, origins: BTreeSet::new() };
    let truths = counter.values(count, &Fixed::new());
    let tally = Tally::of(&truths, count.at_least);
    let body = match tally.holds() {
        Some(holds) => {
            let decision = if holds { Decision::Supported } else { Decision::Refuted };
            Body::Decided { decision, estimate: Some(tally.sure as f64), by: DecidedBy::Units }
        }
        None => Body::Void(Reason::Void(if truths.is_empty() { Void::NoUnits } else { Void::MissingUnits })),
    };
    let mut tested = Tested::new("count", Vec::new(), body);
    let (planned, missing) = (truths.len(), tally.open as usize);
    tested.units.planned = planned;
    tested.units.used = planned - missing;
    tested.units.arms = vec![ArmUnits { planned, missing, non_finite: 0 }];
    let against = truths.into_iter().filter(|(_, holds)| *holds == Some(false));
    tested.culprits = against.map(|(value, _)| culprit(count, path, value)).collect();
    tested.origins = counter.origins;
    tested
}

fn culprit(count: &Count, path: &[usize], value: Value) -> Culprit {
    let at = vec![(count.over.clone(), value)];
    Culprit { part: path.to_vec(), at, found: None, expected: None, margin: None }
}

struct Tally {
    sure: u64,
    open: u64,
    all: u64,
    wanted: u64,
}

impl Tally {
    fn of(truths: &[(Value, Option<bool>)], wanted: u64) -> Tally {
        let count = |wanted: Option<bool>| truths.iter().filter(|(_, holds)| *holds == wanted).count() as u64;
        Tally { sure: count(Some(true)), open: count(None), all: truths.len() as u64, wanted }
    }

    /// Whether enough hold, however the open ones turn out.
    fn holds(&self) -> Option<bool> {
        if self.all > 0 && self.sure >= self.wanted {
            Some(true)
        } else if self.all > 0 && self.sure + self.open < self.wanted {
            Some(false)
        } else {
            None
        }
    }
}

struct Counter<'a> {
    context: Context<'a>,
    path: &'a [usize],
    origins: BTreeSet<Origin>,
}

impl Counter<'_> {
    /// Each value of the counted dimension, in planned order, with whether it holds.
    fn values(&mut self, count: &Count, fixed: &Fixed) -> Vec<(Value, Option<bool>)> {
        let mut values: Vec<Value> = Vec::new();
        for part in count.of.parts() {
            // What further counts inside count over is open here as well.
            let per = std::iter::once(count.over.clone()).chain(counted(&count.of)).collect();
            let mut part = Part { per, ..narrowed(part, fixed, &count.over) };
            part.replicate = part.replicate.filter(|unit| !part.per.contains(unit));
            for joined in join::join(self.context.evidence, self.context.readings, &part).unwrap_or_default()
            {
                let own = joined.per.into_iter().find(|(name, _)| *name == count.over);
                values.extend(own.map(|(_, value)| value).filter(|value| !values.contains(value)));
            }
        }
        let mut truths = Vec::with_capacity(values.len());
        for value in values {
            let mut fixed = fixed.clone();
            fixed.push((count.over.clone(), value.clone()));
            let holds = self.holds(&count.of, &fixed);
            truths.push((value, holds));
        }
        truths
    }

    fn holds(&mut self, test: &Test, fixed: &Fixed) -> Option<bool> {
        match test {
            Test::One(part) => self.part(part, fixed),
            Test::Count(count) => Tally::of(&self.values(count, fixed), count.at_least).holds(),
            Test::All(tests) => {
                let parts: Vec<Option<bool>> = tests.iter().map(|test| self.holds(test, fixed)).collect();
                let sure = parts.iter().all(|part| *part == Some(true)).then_some(true);
                if parts.contains(&Some(false)) { Some(false) } else { sure }
            }
            Test::Any(tests) => {
                let parts: Vec<Option<bool>> = tests.iter().map(|test| self.holds(test, fixed)).collect();
                let sure = parts.iter().all(|part| *part == Some(false)).then_some(false);
                if parts.contains(&Some(true)) { Some(true) } else { sure }
            }
            Test::Unmeasured => None,
        }
    }

    /// A part by its estimate where everything in `fixed` has its value; all values of its own `per` must hold.
    fn part(&mut self, part: &Part, fixed: &Fixed) -> Option<bool> {
        let mut part = part.clone();
        for (name, _) in fixed {
            part = narrowed(&part, fixed, name);
        }
        part.judge = Judge::Estimate;
        let mut all = Some(true);
        for tested in self.context.each(&Test::One(Box::new(part)), self.path) {
            self.origins.extend(tested.origins.iter().cloned());
            match &tested.body {
                Body::Decided { decision, .. } if *decision == Decision::Supported => {}
                Body::Decided { .. } => all = Some(false),
                _ if all == Some(true) => all = None,
                _ => {}
            }
        }
        all
    }
}

/// The dimensions that counts inside a test count over.
fn counted(test: &Test) -> Vec<String> {
    match test {
        Test::Count(count) => std::iter::once(count.over.clone()).chain(counted(&count.of)).collect(),
        Test::All(tests) | Test::Any(tests) => tests.iter().flat_map(counted).collect(),
        Test::One(_) | Test::Unmeasured => Vec::new(),
    }
}

/// A part at fixed values, with `counted` no longer its unit.
fn narrowed(part: &Part, fixed: &Fixed, counted: &str) -> Part {
    let mut part = part.clone();
    for (name, value) in fixed {
        part.select.filter.insert(name.clone(), vec![value.clone()]);
    }
    part.replicate = part.replicate.filter(|unit| unit != counted);
    part
}
