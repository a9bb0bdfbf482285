//! Cells that do not exist: mappings from axes to values, or predicates.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use avow_model::axis::Points;
use avow_model::expression::Expression;
use avow_model::seed::INDEX;
use avow_model::value::Value;

use super::axes::{Axes, Known, no_axis};
use super::reference::{self, Owner};
use super::{Cx, limits, rows};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::Node;

/// Most values that one entry of an exclusion may list.
const LISTED: usize = 200;

/// The predicates, sorted by their text.
pub(super) fn read(cx: &Cx<'_>, axes: &Axes) -> Vec<Expression> {
    let node = cx.spec.root().get("exclude");
    let mut found: Vec<(Expression, Range<usize>)> = Vec::new();
    for item in node.and_then(|n| n.items()).unwrap_or_default() {
        let predicate =
            if item.is_map() { mapping(cx, axes, item, false) } else { predicate(cx, axes, item) };
        found.extend(predicate.map(|expression| (expression, item.span.clone())));
    }
    for group in &axes.groups {
        found.extend(rows::absent(cx, axes, group).into_iter().map(|e| (e, group.at.clone())));
    }
    found.sort_by(|a, b| a.0.text().cmp(b.0.text()));
    found.dedup_by(|a, b| a.0.text() == b.0.text());
    let (predicates, places): (Vec<Expression>, Vec<Range<usize>>) = found.into_iter().unzip();
    if let Some(at) = node.map(|n| n.span.clone()).or_else(|| places.first().cloned())
        && !cx.out.borrow().any_error()
    {
        judge(cx, axes, at, &predicates, &places);
    }
    predicates
}

fn predicate(cx: &Cx<'_>, axes: &Axes, node: &Node) -> Option<Expression> {
    let expression = reference::formula(cx, node)?;
    reference::check_formula(cx, axes, node, &expression, Owner::Cell, &mut BTreeSet::new());
    Some(expression)
}

/// The cells that are pilots, as predicates.
pub(super) fn pilot(cx: &Cx<'_>, axes: &Axes) -> Vec<Expression> {
    let Some(node) = cx.spec.root().get("pilot").and_then(|n| n.get("where")) else { return Vec::new() };
    let one = if node.is_map() { mapping(cx, axes, node, true) } else { predicate(cx, axes, node) };
    one.into_iter().collect()
}

/// `{depth: 1, width: [64, 256]}` as a predicate. With `counted` the numbers of a derived seed axis count its seeds.
fn mapping(cx: &Cx<'_>, axes: &Axes, node: &Node, counted: bool) -> Option<Expression> {
    let mut parts = Vec::new();
    for entry in node.entries() {
        let seeds =
            axes.get(&entry.key).is_some_and(|known| matches!(known.axis.points, Points::Seeds { .. }));
        let dimension = if counted && seeds { format!("{}.{INDEX}", entry.key) } else { entry.key.clone() };
        let items = entry.value.one_or_more();
        if items.is_empty() || items.len() > LISTED {
            let message = format!("an exclusion lists 1 to {LISTED} values");
            let hint = "write a predicate such as `axes.depth > 8`";
            cx.push(Diagnostic::error("length", entry.value.span.clone(), message).hint(hint));
            return None;
        }
        let mut values: Vec<Value> = Vec::with_capacity(items.len());
        for item in items {
            let written = item.value()?;
            values.push(own_value(cx, axes, &dimension, &written, item.span.clone(), entry.at.clone())?);
        }
        values.sort_by(Value::order);
        parts.push(Expression::equals(&format!("axes.{dimension}"), &values));
    }
    parts.sort();
    let text = parts.join(" && ");
    match Expression::parse(&text) {
        Ok(expression) if text.len() <= limits::FORMULA => Some(expression),
        _ => {
            let message = "this exclusion is too long to be a predicate";
            cx.push(Diagnostic::error("too-large", node.span.clone(), message));
            None
        }
    }
}

/// The own value of an axis (or attribute, `model.lab`) that a written one means; complains where it is
/// unknown or lacks it.
pub(super) fn own_value(
    cx: &Cx<'_>,
    axes: &Axes,
    dimension: &str,
    value: &Value,
    value_at: Range<usize>,
    at: Range<usize>,
) -> Option<Value> {
    let (axis, attribute) = dimension.split_once('.').map_or((dimension, None), |(a, b)| (a, Some(b)));
    let Some(known) = axes.get(axis) else {
        no_axis(cx, axes, axis, at);
        return None;
    };
    match attribute {
        Some(name) if !known.has_attribute(name) => {
            let message = format!("the axis `{axis}` has no attribute `{name}`");
            let near = did_you_mean(name, known.attributes());
            cx.push(Diagnostic::error("unknown-attribute", at, message).maybe_hint(near));
            return None;
        }
        _ => {}
    }
    let own = known.own_of(attribute, value);
    if own.is_none() {
        cx.push(no_value(known, attribute, dimension, value, value_at));
    }
    own
}

fn no_value(
    known: &Known,
    attribute: Option<&str>,
    dimension: &str,
    value: &Value,
    at: Range<usize>,
) -> Diagnostic {
    const SHOWN: u64 = 50;
    let values: Vec<String> = match attribute {
        None => {
            (0..known.len().min(SHOWN)).filter_map(|i| known.axis.value(i)).map(|v| v.to_string()).collect()
        }
        Some(name) => known.attribute(name).values.iter().take(50).map(|(v, _)| v.to_string()).collect(),
    };
    let message = format!("`{dimension}` has no value `{value}`");
    let near = did_you_mean(&value.to_string(), values.iter().map(String::as_str));
    let all = format!("its values are {}", listed(values.iter().map(String::as_str)));
    Diagnostic::error("unknown-value", at, message).hint(near.unwrap_or(all))
}

/// Evaluates the predicates over the axes they mention, within a budget: a predicate that cannot be
/// evaluated, and exclusions that leave no cell, are errors.
fn judge(cx: &Cx<'_>, axes: &Axes, at: Range<usize>, predicates: &[Expression], places: &[Range<usize>]) {
    let grid = Grid::new(cx, axes, mentioned(axes, predicates));
    let budget = limits::EVALUATIONS / cost(axes, predicates).max(1);
    let mut kept = false;
    for cell in 0..grid.cells.min(budget) {
        match grid.excluded(cell, predicates) {
            Ok(excluded) => kept |= !excluded,
            Err((index, reason)) => {
                let message = format!("this predicate cannot be evaluated for every cell: {reason}");
                cx.push(Diagnostic::error("formula", places[index].clone(), message));
                return;
            }
        }
    }
    if !kept && grid.cells <= budget && !predicates.is_empty() {
        cx.push(Diagnostic::error("no-cell", at, "these exclusions leave no cell"));
    }
}

/// The real axes that some predicates depend on.
pub(super) fn mentioned<'x>(axes: &'x Axes, predicates: &[Expression]) -> BTreeSet<&'x str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for (path, _) in predicates.iter().flat_map(Expression::names) {
        if let [root, axis, ..] = path
            && root == "axes"
            && let Some(known) = axes.get(axis)
        {
            found.extend(known.real.iter().map(String::as_str));
        }
    }
    found
}

/// How many values one evaluation of the predicates reads, about.
pub(super) fn cost(axes: &Axes, predicates: &[Expression]) -> u64 {
    let of = |path: &[String]| path.get(1).and_then(|axis| axes.get(axis)).map_or(1, |known| known.cost);
    let names = predicates.iter().flat_map(Expression::names);
    names.map(|(path, _)| of(path)).fold(10 * predicates.len() as u64, u64::saturating_add)
}

/// The axes that matter to some predicates, as a grid that is counted through and never stored.
pub(super) struct Grid<'a> {
    params: &'a BTreeMap<String, Value>,
    all: &'a Axes,
    axes: Vec<&'a Known>,
    pub(super) cells: u64,
}

impl<'a> Grid<'a> {
    pub(super) fn new<'n>(cx: &'a Cx<'_>, all: &'a Axes, names: impl IntoIterator<Item = &'n str>) -> Self {
        let axes: Vec<&Known> = names.into_iter().filter_map(|name| all.get(name)).collect();
        let cells = axes.iter().map(|known| known.len()).fold(1, u64::saturating_mul);
        Self { params: &cx.params, all, axes, cells }
    }

    /// Index of each axis' value at a cell.
    pub(super) fn indices(&self, mut cell: u64) -> Vec<(&'a Known, u64)> {
        let mut found = Vec::with_capacity(self.axes.len());
        for known in self.axes.iter().rev() {
            found.push((*known, cell % known.len().max(1)));
            cell /= known.len().max(1);
        }
        found
    }

    /// Whether some predicate holds, or which one fails and why.
    pub(super) fn excluded(&self, cell: u64, predicates: &[Expression]) -> Result<bool, (usize, String)> {
        let point = self.indices(cell);
        for (index, predicate) in predicates.iter().enumerate() {
            match predicate.truth(&|path| lookup(self, &point, path, 0)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => return Err((index, error.reason)),
            }
        }
        Ok(false)
    }
}

fn lookup(grid: &Grid<'_>, point: &[(&Known, u64)], path: &[String], depth: usize) -> Option<Value> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["params", name] => grid.params.get(*name).cloned(),
        ["axes", axis, rest @ ..] => {
            if let Some((known, index)) = point.iter().find(|(known, _)| known.axis.name == *axis) {
                return match rest {
                    [] => known.axis.value(*index),
                    [attribute] => known.axis.attribute(*index, attribute),
                    _ => None,
                };
            }
            match &grid.all.get(axis)?.axis.points {
                Points::Derived(formula) if rest.is_empty() && depth < limits::AXES => {
                    formula.evaluate(&|path| lookup(grid, point, path, depth + 1)).ok()
                }
                _ => None,
            }
        }
        _ => None,
    }
}
