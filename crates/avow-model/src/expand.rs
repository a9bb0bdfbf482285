//! From the symbolic plan to its members, one index at a time.
//!
//! A member is a stage and one number: a mixed-radix index over the axes in the stage's scope. Nothing here
//! ever lists the product; a caller that wants all members of a stage counts through the indices and skips
//! the excluded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::axis::{Axis, Points};
use crate::expression::{Expression, ExpressionError};
use crate::label;
use crate::plan::{Plan, Source, Stage};
use crate::search;
use crate::value::Value;

/// A stage at one point of its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Position of the stage in the plan.
    pub stage: u32,
    /// Mixed-radix index over the stage's scope; the last axis of the scope varies fastest.
    pub cell: u64,
}

/// One point of some axes of a plan.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    plan: &'a Plan,
    /// `(axis, index of its value)`, sorted by axis name.
    points: Vec<(&'a Axis, u64)>,
}

/// How many cells a stage's scope spans, excluded ones included; saturates.
pub fn span(plan: &Plan, stage: &Stage) -> u64 {
    scope(plan, stage).map(Axis::len).fold(1, u64::saturating_mul)
}

fn scope<'a>(plan: &'a Plan, stage: &'a Stage) -> impl DoubleEndedIterator<Item = &'a Axis> {
    stage.scope.iter().map(|name| plan.axis(name).expect("a plan's scopes name its axes"))
}

/// The point of a member.
pub fn cell(plan: &Plan, member: Member) -> Cell<'_> {
    let stage = &plan.stages[member.stage as usize];
    let mut rest = member.cell;
    let mut points: Vec<(&Axis, u64)> = scope(plan, stage)
        .rev()
        .map(|axis| {
            let index = rest % axis.len().max(1);
            rest /= axis.len().max(1);
            (axis, index)
        })
        .collect();
    points.reverse();
    Cell { plan, points }
}

/// The members of a stage, in order, excluded cells left out.
pub fn members(plan: &Plan, stage: usize) -> impl Iterator<Item = Member> + '_ {
    let count = span(plan, &plan.stages[stage]);
    (0..count)
        .map(move |cell| Member { stage: stage as u32, cell })
        .filter(move |member| exists(plan, *member))
}

/// How many members a stage has. Counts through the cells only where the plan excludes some; saturates.
pub fn count(plan: &Plan, stage: usize) -> u64 {
    if is_product(plan) { span(plan, &plan.stages[stage]) } else { members(plan, stage).count() as u64 }
}

/// Whether every cell of a plan's axes exists: nothing is excluded, and no search asks for some cells only.
pub fn is_product(plan: &Plan) -> bool {
    let some_only = |search: &search::Search| search.is_ragged() || !search.per.is_empty();
    plan.exclude.is_empty() && !search::searches(plan).any(|(_, search)| some_only(search))
}

/// Whether a search that asks for single cells has asked for one that projects onto this one.
fn asked_for(cell: &Cell<'_>) -> bool {
    search::searches(cell.plan).filter(|(_, search)| search.is_ragged()).all(|(_, search)| {
        let here: Vec<Option<Value>> = search.axes().into_iter().map(|axis| cell.own_value(axis)).collect();
        let agrees = |point: &Vec<Value>| {
            here.iter().zip(point).all(|(here, asked)| here.as_ref().is_none_or(|here| here == asked))
        };
        let own = &here[search.per.len()..];
        own.iter().all(Option::is_none) || search.asked.iter().any(agrees)
    })
}

/// Whether what a cell has of each search is what that search found for the cell's values.
fn found_for(cell: &Cell<'_>) -> bool {
    search::searches(cell.plan).filter(|(_, search)| !search.per.is_empty()).all(|(name, search)| {
        let Some(value) = cell.own_value(name) else { return true };
        let per: Option<Vec<Value>> = search.per.iter().map(|axis| cell.own_value(axis)).collect();
        per.and_then(|per| search.found_for(&per)).is_some_and(|found| found.value == value)
    })
}

/// How many completions of one projected cell are tried before it is taken to exist. A plan whose exclusions
/// leave nothing of a million-cell product would otherwise never finish saying so.
const MAX_COMPLETIONS: u32 = 100_000;

/// Whether a member exists: some full cell that projects onto it is not excluded. A predicate that cannot
/// be evaluated excludes nothing here; [`check_exclusions`] reports it beforehand. Where more than 100,000
/// completions are all excluded the member is taken to exist.
pub fn exists(plan: &Plan, member: Member) -> bool {
    if is_product(plan) {
        return true;
    }
    let here = cell(plan, member);
    if !asked_for(&here) || !found_for(&here) {
        return false;
    }
    let mut left = MAX_COMPLETIONS;
    !excluded(&here, &mut left) || left == 0
}

fn excluded(cell: &Cell<'_>, left: &mut u32) -> bool {
    *left = left.saturating_sub(1);
    let mut open = None;
    for predicate in &cell.plan.exclude {
        match cell.open_axis(predicate) {
            // It says the same of every completion.
            None if predicate.truth(&|name| cell.lookup(name)) == Ok(true) => return true,
            None => {}
            Some(axis) => open = open.or(Some(axis)),
        }
    }
    match open {
        // Every completion must be excluded for the projection to be.
        Some(axis) => cell.completions(axis).all(|wider| *left > 0 && excluded(&wider, left)),
        None => false,
    }
}

/// The first exclusion that cannot be evaluated on the first full cell.
pub fn check_exclusions(plan: &Plan) -> Result<(), (usize, ExpressionError)> {
    let points = plan.axes.iter().filter(|axis| !axis.is_derived()).map(|axis| (axis, 0)).collect();
    let cell = Cell { plan, points };
    for (index, predicate) in plan.exclude.iter().enumerate() {
        predicate.truth(&|name| cell.lookup(name)).map_err(|error| (index, error))?;
    }
    Ok(())
}

/// The member with these axis indices, looked up by name.
pub fn member_at(plan: &Plan, stage: usize, index_of: impl Fn(&str) -> Option<u64>) -> Option<Member> {
    let mut cell = 0u64;
    for axis in scope(plan, &plan.stages[stage]) {
        let index = index_of(&axis.name).filter(|i| *i < axis.len())?;
        cell = cell.checked_mul(axis.len())?.checked_add(index)?;
    }
    Some(Member { stage: stage as u32, cell })
}

/// The axis (and attribute) that a fixed value refers to: `${axes.pair.first}` is what the reader has there.
pub fn referred(value: &Value) -> Option<Vec<String>> {
    let inner = value.as_text()?.strip_prefix("${")?.strip_suffix('}')?;
    let path: Vec<String> = inner.split('.').map(str::to_owned).collect();
    (path.len() > 1 && path[0] == "axes").then_some(path)
}

/// The members of `source` that an input of a member at `cell` reads: one, or every existing one where axes
/// are gathered. `None` where the source is not a stage's output.
pub fn producers<'a>(cell: &Cell<'a>, source: &Source) -> Option<Vec<Member>> {
    let plan = cell.plan;
    let Source::Output { stage, at, gather, .. } = source else { return None };
    let index = plan.stage_index(stage)?;
    let gathered: Vec<&Axis> =
        scope(plan, &plan.stages[index]).filter(|a| gather.contains(&a.name)).collect();
    // An axis fixed to a value it does not have leads nowhere, never to the reader's own value.
    let place = |name: &str, value: &Value| {
        let axis = plan.axis(name)?;
        match referred(value) {
            Some(path) => axis.index_of(&cell.lookup(&path)?),
            None => axis.index_of(value),
        }
    };
    let fixed: BTreeMap<&str, Option<u64>> =
        at.iter().map(|(name, value)| (name.as_str(), place(name, value))).collect();
    let count: u64 = gathered.iter().map(|axis| axis.len()).fold(1, u64::saturating_mul);
    let one = |combination: u64| {
        let mut rest = combination;
        let mut chosen = Vec::with_capacity(gathered.len());
        for axis in gathered.iter().rev() {
            chosen.push((axis.name.as_str(), rest % axis.len()));
            rest /= axis.len();
        }
        member_at(plan, index, |name| {
            let picked = chosen.iter().find(|(axis, _)| *axis == name).map(|(_, i)| *i);
            match fixed.get(name) {
                Some(index) if picked.is_none() => *index,
                _ => picked.or_else(|| cell.index(name)),
            }
        })
    };
    Some((0..count).filter_map(one).filter(|member| exists(plan, *member)).collect())
}

impl<'a> Cell<'a> {
    /// The plan it belongs to.
    pub fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// The index of an axis' value here.
    pub fn index(&self, axis: &str) -> Option<u64> {
        self.points.iter().find(|(a, _)| a.name == axis).map(|(_, i)| *i)
    }

    /// The same point with another value of an axis, by its index; the same point where it has no such axis.
    #[must_use]
    pub fn at(mut self, axis: &str, index: u64) -> Cell<'a> {
        if let Some(point) = self.points.iter_mut().find(|(a, _)| a.name == axis) {
            point.1 = index;
        }
        self
    }

    /// The value of an axis with cells of its own.
    fn own_value(&self, axis: &str) -> Option<Value> {
        self.points.iter().find(|(a, _)| a.name == axis).and_then(|(axis, index)| axis.value(*index))
    }

    /// Axis names and values, sorted by name.
    pub fn values(&self) -> impl Iterator<Item = (&'a str, Value)> + '_ {
        self.points.iter().filter_map(|(axis, i)| Some((axis.name.as_str(), axis.value(*i)?)))
    }

    /// What `axes.…` and `params.…` mean here.
    pub fn lookup(&self, path: &[String]) -> Option<Value> {
        match path {
            [root, name] if root == "params" => self.plan.params.get(name).cloned(),
            [root, name] if root == "axes" => self.axis_value(name),
            [root, name, attribute] if root == "axes" => {
                let (axis, index) = self.points.iter().find(|(a, _)| a.name == *name)?;
                axis.attribute(*index, attribute)
            }
            _ => None,
        }
    }

    fn axis_value(&self, name: &str) -> Option<Value> {
        match self.points.iter().find(|(a, _)| a.name == name) {
            Some((axis, index)) => axis.value(*index),
            None => match &self.plan.axis(name)?.points {
                Points::Derived(formula) => self.derived(name, formula),
                _ => None,
            },
        }
    }

    /// The value of a derived axis. Derived axes may rest on one another: each is computed once, those it
    /// rests on first, without recursion, and one that rests on itself has no value.
    fn derived(&self, name: &str, formula: &'a Expression) -> Option<Value> {
        let mut known: BTreeMap<String, Option<Value>> = BTreeMap::from([(name.to_owned(), None)]);
        let mut open = vec![(name.to_owned(), formula, derived_axes(self.plan, formula))];
        while let Some((_, _, waiting)) = open.last_mut() {
            if let Some((next, formula)) = waiting.pop() {
                if self.index(next).is_none() && !known.contains_key(next) {
                    known.insert(next.to_owned(), None);
                    open.push((next.to_owned(), formula, derived_axes(self.plan, formula)));
                }
                continue;
            }
            let (done, formula, _) = open.pop().expect("the loop runs while one is open");
            let value = formula.evaluate(&|path| match path {
                [root, axis] if root == "axes" && known.contains_key(axis) => known[axis].clone(),
                _ => self.lookup(path),
            });
            known.insert(done, value.ok());
        }
        known.remove(name).flatten()
    }

    /// An axis with cells of its own that an expression needs, through derived axes too, and that has no
    /// value here.
    fn open_axis(&self, expression: &'a Expression) -> Option<&'a Axis> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![expression];
        while let Some(expression) = waiting.pop() {
            for name in axis_names(expression) {
                let Some(axis) = self.plan.axis(name) else { continue };
                if self.index(name).is_some() || !seen.insert(name) {
                    continue;
                }
                match &axis.points {
                    Points::Derived(formula) => waiting.push(formula),
                    _ => return Some(axis),
                }
            }
        }
        None
    }

    fn completions<'b>(&'b self, axis: &'a Axis) -> impl Iterator<Item = Cell<'a>> + 'b {
        (0..axis.len()).map(move |index| {
            let mut wider = self.clone();
            wider.points.push((axis, index));
            wider
        })
    }
}

/// The axes an expression names.
fn axis_names(expression: &Expression) -> impl Iterator<Item = &str> {
    expression.names().into_iter().filter_map(|(name, _)| match name {
        [root, axis, ..] if root == "axes" => Some(axis.as_str()),
        _ => None,
    })
}

/// The derived axes an expression names.
fn derived_axes<'a>(plan: &'a Plan, expression: &'a Expression) -> Vec<(&'a str, &'a Expression)> {
    let derived = |name| match &plan.axis(name)?.points {
        Points::Derived(formula) => Some((name, formula)),
        _ => None,
    };
    axis_names(expression).filter_map(derived).collect()
}

/// `train[seed=3,width=64]`: how a member is written everywhere.
pub struct Label<'a>(pub &'a Plan, pub Member);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Label(plan, member) = self;
        f.write_str(&plan.stages[member.stage as usize].name)?;
        let point = cell(plan, *member);
        let mut opened = false;
        for (axis, value) in point.values() {
            let value = value.to_string();
            write!(f, "{}{axis}={}", if opened { "," } else { "[" }, label::written(&value))?;
            opened = true;
        }
        f.write_str(if opened { "]" } else { "" })
    }
}

/// The label of a member as text.
pub fn label(plan: &Plan, member: Member) -> String {
    Label(plan, member).to_string()
}
