//! Adaptive designs: the next cells depend on what the cells before them gave.
//!
//! A search is declared like everything else and frozen by the plan's digest: what is probed, what is measured,
//! what it looks for, when it stops. What it finds is not part of the plan. [`Search::step`] is a pure function
//! from everything told so far to what comes next, and starts from the beginning every time: a search goes on
//! after an interruption by being asked again, and an auditor repeats it instead of believing it.
//!
//! A search is an axis of the plan with one value, the one it found, and none before. The axis it probes
//! ([`Probed`]) has the values asked for so far. Neither list is serialised.

mod ask;
mod bisection;
mod steps;

use std::collections::BTreeSet;

pub use self::ask::{Answer, Ask, Choice, Consultation, Dimension};
use self::steps::{best, halving};
use serde::{Deserialize, Serialize};

use crate::axis::Points;
use crate::digest::AttemptDigest;
use crate::plan::{Plan, Source};
use crate::value::Value;

/// A declared search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// How it looks.
    pub method: Method,
    /// The axis it varies.
    pub over: String,
    /// Axes for each of whose values it is a search of its own, with an answer of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per: Vec<String>,
    /// The stage whose measurement it reads.
    pub stage: String,
    /// The measurement.
    pub measure: String,
    /// How the values at one probe become one number.
    pub reduce: Gather,
    /// The most probes it may ask for.
    pub at_most: u64,
    /// The points asked for so far, as values of [`Search::axes`]; not part of the plan.
    #[serde(skip)]
    pub asked: Vec<Vec<Value>>,
    /// What a program that is asked was given in each round; not part of the plan.
    #[serde(skip)]
    pub consulted: Vec<String>,
    /// How far it has come; not part of the plan. Where it is one search per value of [`Search::per`], it is over when
    /// all of them are.
    #[serde(skip)]
    pub state: State,
    /// Of one search per value: those that are over, by values of [`Search::per`]; not part of the plan.
    #[serde(skip)]
    pub ended: Vec<(Vec<Value>, State)>,
}

/// How a search looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Halves an interval until the place where the goal begins or ceases to hold is known closely enough.
    Bisection {
        /// One end.
        from: Value,
        /// The other end, larger.
        to: Value,
        /// Whether halves are ratios instead of differences.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        log: bool,
        /// When a measured value meets the goal.
        goal: Goal,
        /// When it is close enough.
        until: Until,
    },
    /// Takes the value of a declared axis at which the measurement is best.
    Best {
        /// Which is best.
        goal: Extreme,
    },
    /// Tries all values of a declared axis at the smallest budget, the best of them at the next, and so on.
    Halving {
        /// Which is best.
        goal: Extreme,
        /// The axis of budgets, in rising order.
        budget: String,
        /// One in this many is kept from one budget to the next.
        one_in: u64,
    },
    /// Asks a program of the author's what to probe next, until it or the budget says that it is enough.
    Ask(Ask),
}

/// Which values meet a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Those above a bound.
    Above(f64),
    /// Those below.
    Below(f64),
}

/// When an interval is small enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Its ends differ by no more than this.
    Width(f64),
    /// The larger end is no more than this many times the smaller.
    Ratio(f64),
}

/// The better end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    /// Less is better.
    Smallest,
    /// More is better.
    Largest,
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gather {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// An axis whose values a search asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// The axis of the search.
    pub search: String,
    /// The values asked for so far, in the order of asking; not part of the plan.
    #[serde(skip)]
    pub values: Vec<Value>,
}

/// How far a search has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// It is not over.
    #[default]
    Open,
    /// It found a value.
    Found(Found),
    /// It ended without.
    Void {
        /// Why.
        reason: Void,
    },
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The value, one of those probed.
    pub value: Value,
    /// The interval that is left, where it looked for a place in one; the value is one of its ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<(Value, Value)>,
    /// How many probes it took.
    pub probes: u64,
    /// The point, as values of [`Search::axes`], where a program chose it. With several axes the value is then the
    /// number of the probe, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point: Vec<Value>,
}

/// Why a search ended without a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Void {
    /// Both ends of the interval are on one side of the goal.
    NoCrossing,
    /// The probes it may ask for were not enough.
    Exhausted,
    /// A probe failed for good.
    Failed {
        /// The member.
        member: String,
    },
    /// A probe gave no number, or none that is finite.
    NoNumber {
        /// The point, as the axes' values.
        at: String,
    },
    /// The program that was asked gave no answer that can be read.
    BadAnswer {
        /// The round, from 0.
        round: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The program that was asked gave nothing but points that were probed before.
    NothingNew {
        /// The round, from 0.
        round: u64,
    },
    /// It rests on another search that ended without a value.
    RestsOn {
        /// That one.
        search: String,
    },
}

/// A point that was probed, with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Values of the axes in [`Search::own_axes`].
    pub point: Vec<Value>,
    /// The reduced measurement; finite.
    pub measured: f64,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// These points are to be probed too.
    Ask(Vec<Vec<Value>>),
    /// A program is to be asked.
    Consult(Consultation),
    /// It is over.
    Found(Found),
    /// It is over, without a value.
    Void(Void),
}

/// One step of a search, with what it rested on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The axis of the search.
    pub search: String,
    /// The attempts whose measurements it rested on, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<AttemptDigest>,
    /// What was decided. The numbers that were read are in the attempts.
    pub answer: Step,
    /// Of one search per value that is over: for which values of [`Search::per`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Value>,
}

impl Decision {
    /// Makes a plan what it is after this decision.
    pub fn apply(&self, plan: &mut Plan) {
        let groups =
            searches(plan).find(|(name, _)| *name == self.search).map_or(0, |(_, s)| groups(plan, s).len());
        let Some(search) = search_mut(plan, &self.search) else { return };
        let axes: Vec<String> = search.axes().into_iter().map(str::to_owned).collect();
        match &self.answer {
            Step::Found(found) => search.end(&self.at, State::Found(found.clone()), groups),
            Step::Void(reason) => search.end(&self.at, State::Void { reason: reason.clone() }, groups),
            Step::Ask(points) => {
                search.asked.extend(points.iter().cloned());
                for (at, axis) in axes.iter().enumerate() {
                    extend(plan, axis, points.iter().filter_map(|point| point.get(at)));
                }
            }
            Step::Consult(consultation) => {
                search.consulted.push(consultation.text.clone());
                let rounds = search.asks().map(|ask| ask.rounds.clone());
                if let (Some(rounds), Ok(round)) = (rounds, i64::try_from(consultation.round)) {
                    extend(plan, &rounds, [&Value::Int(round)]);
                }
            }
        }
    }
}

/// Adds values to an axis that has those which a search asks for; each once.
fn extend<'v>(plan: &mut Plan, axis: &str, values: impl IntoIterator<Item = &'v Value>) {
    let points = plan.axes.iter_mut().find(|known| known.name == axis).map(|axis| &mut axis.points);
    if let Some(Points::Probed(probed)) = points {
        for value in values {
            if !probed.values.contains(value) {
                probed.values.push(value.clone());
            }
        }
    }
}

/// The values of [`Search::per`] in all combinations, in the order of the axes; one that is empty where there are none.
pub fn groups(plan: &Plan, search: &Search) -> Vec<Vec<Value>> {
    let mut all = vec![Vec::new()];
    for axis in search.per.iter().filter_map(|name| plan.axis(name)) {
        let values: Vec<Value> = (0..axis.len()).filter_map(|index| axis.value(index)).collect();
        let with = |group: &Vec<Value>| {
            let group = group.clone();
            values.clone().into_iter().map(move |value| group.iter().cloned().chain([value]).collect())
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

fn search_mut<'p>(plan: &'p mut Plan, name: &str) -> Option<&'p mut Search> {
    plan.axes.iter_mut().filter(|axis| axis.name == name).find_map(|axis| match &mut axis.points {
        Points::Search(search) => Some(&mut **search),
        _ => None,
    })
}

/// The searches of a plan, by the name of their axis.
pub fn searches(plan: &Plan) -> impl Iterator<Item = (&str, &Search)> {
    plan.axes.iter().filter_map(|axis| Some((axis.name.as_str(), axis.search()?)))
}

/// The searches that a stage depends on: by an axis of its own or of a stage upstream, or by gathering what they
/// probed. Sorted.
pub fn behind<'p>(plan: &'p Plan, stage: &'p str) -> BTreeSet<&'p str> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![stage];
    while let Some(stage) = waiting.pop().and_then(|name| plan.stage(name)) {
        if !seen.insert(stage.name.as_str()) {
            continue;
        }
        let gathered = stage.inputs.values().flat_map(|input| match &input.from {
            Source::Output { gather, .. } => gather.as_slice(),
            _ => &[],
        });
        for axis in stage.scope.iter().chain(gathered).filter_map(|name| plan.axis(name)) {
            match &axis.points {
                Points::Search(_) => found.insert(axis.name.as_str()),
                Points::Probed(probed) => found.insert(probed.search.as_str()),
                _ => false,
            };
        }
        waiting.extend(stage.producers().map(|(_, _, producer)| producer));
    }
    found
}

/// The other searches that must be over before a search can take a step.
pub fn rests_on<'p>(plan: &'p Plan, name: &str, search: &'p Search) -> BTreeSet<&'p str> {
    let mut others: BTreeSet<&str> = search.stages().flat_map(|stage| behind(plan, stage)).collect();
    others.remove(name);
    others
}

/// The stages that open searches want carried out now, sorted: what they measure and whom they ask, unless they wait
/// for another.
pub fn wanted(plan: &Plan) -> BTreeSet<&str> {
    let open: BTreeSet<&str> =
        searches(plan).filter(|(_, search)| !search.state.is_over()).map(|(name, _)| name).collect();
    let ready = |(name, search): &(&str, &Search)| {
        open.contains(name) && rests_on(plan, name, search).is_disjoint(&open)
    };
    searches(plan).filter(ready).flat_map(|(_, search)| search.stages()).collect()
}

/// Takes back everything that searches have asked for and found.
pub fn forget(plan: &mut Plan) {
    for axis in &mut plan.axes {
        match &mut axis.points {
            Points::Search(search) => {
                search.asked.clear();
                search.consulted.clear();
                search.ended.clear();
                search.state = State::Open;
            }
            Points::Probed(probed) => probed.values.clear(),
            _ => {}
        }
    }
}

impl Search {
    /// Whether the cells of its axes are fewer than their product.
    pub fn is_ragged(&self) -> bool {
        match self.method {
            Method::Halving { .. } | Method::Ask(_) => true,
            // Each of several bisections has middles of its own.
            Method::Bisection { .. } => !self.per.is_empty(),
            Method::Best { .. } => false,
        }
    }

    /// Notes that it is over, for some values of [`Search::per`] where it is one search for each of `groups`.
    fn end(&mut self, at: &[Value], state: State, groups: usize) {
        if self.per.is_empty() {
            self.state = state;
            return;
        }
        self.ended.push((at.to_vec(), state));
        if self.ended.len() >= groups {
            let found = self.ended.iter().find(|(_, state)| matches!(state, State::Found(_)));
            let state = found.or(self.ended.first()).map(|(_, state)| state.clone());
            self.state = state.unwrap_or_default();
        }
    }

    /// What it found for some values of [`Search::per`].
    pub fn found_for(&self, per: &[Value]) -> Option<&Found> {
        let (_, state) = self.ended.iter().find(|(at, _)| at.is_empty() || at == per)?;
        match state {
            State::Found(found) => Some(found),
            _ => None,
        }
    }

    /// The values that it found, each once; none before it is over.
    pub fn values(&self) -> Vec<&Value> {
        let State::Found(first) = &self.state else { return Vec::new() };
        if self.per.is_empty() {
            return vec![&first.value];
        }
        let mut all: Vec<&Value> = Vec::new();
        for (_, state) in &self.ended {
            if let State::Found(found) = state
                && !all.contains(&&found.value)
            {
                all.push(&found.value);
            }
        }
        all
    }

    /// How it asks a program, where it does.
    pub fn asks(&self) -> Option<&Ask> {
        match &self.method {
            Method::Ask(ask) => Some(ask),
            _ => None,
        }
    }

    /// The stage that it measures, and the one that it asks.
    pub fn stages(&self) -> impl Iterator<Item = &str> {
        [Some(self.stage.as_str()), self.asks().map(|ask| ask.program.as_str())].into_iter().flatten()
    }

    /// One coordinate of the point that it found, by the axis.
    pub fn found(&self, axis: &str) -> Option<&Value> {
        let State::Found(found) = &self.state else { return None };
        found.point.get(self.own_axes().into_iter().position(|name| name == axis)?)
    }

    /// The axes of a probe: first those of [`Search::per`], then those that it chooses on.
    pub fn axes(&self) -> Vec<&str> {
        self.per.iter().map(String::as_str).chain(self.own_axes()).collect()
    }

    /// The axes that it chooses on.
    pub fn own_axes(&self) -> Vec<&str> {
        match &self.method {
            Method::Halving { budget, .. } => vec![&self.over, budget],
            Method::Ask(ask) => ask.space.iter().map(|dimension| dimension.axis.as_str()).collect(),
            _ => vec![&self.over],
        }
    }

    /// The next step, when all points in `told` have been asked for and nothing else has; points are values of
    /// [`Search::own_axes`], and of one search per value those of one of them. `declared` gives the
    /// values of a declared axis; `answers` are what a program that is asked wrote in each round so far.
    pub fn step(&self, told: &[Told], declared: &dyn Fn(&str) -> Vec<Value>, answers: &[String]) -> Step {
        match &self.method {
            Method::Bisection { from, to, log, goal, until } => {
                bisection::step((from, to, *log), goal, *until, self.at_most, told)
            }
            Method::Best { goal } => best(*goal, &declared(&self.over), self.at_most, told),
            Method::Halving { goal, budget, one_in } => {
                halving(*goal, (&declared(&self.over), &declared(budget)), *one_in, self.at_most, told)
            }
            Method::Ask(ask) => ask.step(self.at_most, told, &self.consulted, answers),
        }
    }
}

impl Goal {
    /// Whether a value meets it.
    pub fn met(&self, value: f64) -> bool {
        match self {
            Goal::Above(bound) => value > *bound,
            Goal::Below(bound) => value < *bound,
        }
    }
}

impl Gather {
    /// One number from several; `None` of none.
    pub fn apply(self, values: &[f64]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        Some(match self {
            Gather::Mean => sorted.iter().sum::<f64>() / sorted.len() as f64,
            Gather::Median if sorted.len() % 2 == 1 => sorted[middle],
            Gather::Median => f64::midpoint(sorted[middle - 1], sorted[middle]),
            Gather::Min => first,
            Gather::Max => last,
        })
    }
}

impl State {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        *self != State::Open
    }
}
