//! Parameters and axes.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use avow_model::axis::{Axis, NamedPoint, Points};
use avow_model::expression::Expression;
use avow_model::seed;
use avow_model::value::Value;

use super::reference::{self, Owner};
use super::{Cx, limits, rows, search};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::keys::Names;
use crate::tree::{Entry, Node};

/// The axis that a repeated stage has.
pub(crate) const REPEAT: &str = "repeat";

/// The axes of a spec, sorted by name.
pub(super) struct Axes {
    pub(super) list: Vec<Known>,
    /// Names of axes that could not be read; whatever refers to them is not complained about again.
    broken: BTreeSet<String>,
    /// Axes of which only some combinations exist.
    pub(super) groups: Vec<Group>,
}

/// Axes of which only these combinations exist.
pub(super) struct Group {
    /// Their names, sorted.
    pub(super) names: Vec<String>,
    /// The combinations, each with a value per name.
    pub(super) rows: Vec<Vec<Value>>,
    /// Where it stands.
    pub(super) at: Range<usize>,
}

/// An axis with what the checker knows of it.
pub(super) struct Known {
    pub(super) axis: Axis,
    /// Where its name stands.
    pub(super) at: Range<usize>,
    /// For a derived axis: the real axes it depends on; for a real one: itself; for a search those of `per` besides.
    pub(super) real: BTreeSet<String>,
    /// How many values one evaluation reads; derived axes may build on derived axes.
    pub(super) cost: u64,
    values: OnceCell<HashMap<String, u64>>,
    attributes: Vec<String>,
    distinct: RefCell<HashMap<String, Rc<Distinct>>>,
}

impl Axes {
    pub(super) fn get(&self, name: &str) -> Option<&Known> {
        self.list.binary_search_by(|known| known.axis.name.as_str().cmp(name)).ok().map(|i| &self.list[i])
    }

    /// Adds an axis that no entry under `axes` declares.
    pub(super) fn add(&mut self, axis: Axis, at: Range<usize>) {
        self.broken.remove(&axis.name);
        let place = self.list.partition_point(|known| known.axis.name < axis.name);
        self.list.insert(place, Known::new(axis, at));
    }

    /// Whatever refers to this name is not complained about again, as long as no axis of the name is added.
    pub(super) fn broken(&mut self, name: &str) {
        self.broken.insert(name.to_owned());
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|known| known.axis.name.as_str())
    }
}

impl Known {
    fn new(axis: Axis, at: Range<usize>) -> Known {
        let mut real = if axis.is_derived() { BTreeSet::new() } else { BTreeSet::from([axis.name.clone()]) };
        // What is found for each value of an axis depends on that axis.
        real.extend(axis.search().into_iter().flat_map(|search| search.per.iter().cloned()));
        Known {
            attributes: attribute_names(&axis),
            axis,
            at,
            real,
            cost: 1,
            values: OnceCell::new(),
            distinct: RefCell::default(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.axis.len()
    }

    /// The axis' own value that a written one means: `0` and `0.0` are one number, the axis says which.
    pub(super) fn own(&self, value: &Value) -> Option<Value> {
        if let Points::Range { start, stop, step } = &self.axis.points {
            return self.axis.value(range_index(start, stop, step, value)?);
        }
        let index = || -> HashMap<String, u64> {
            (0..self.len()).filter_map(|i| Some((key(&self.axis.value(i)?), i))).collect()
        };
        self.axis.value(*self.values.get_or_init(index).get(&key(value))?)
    }

    /// The same for a dimension, an attribute of this axis included.
    pub(super) fn own_of(&self, attribute: Option<&str>, value: &Value) -> Option<Value> {
        match attribute {
            None if self.axis.is_derived() => Some(value.clone()),
            None => self.own(value),
            Some(name) => self.attribute(name).get(value).map(|(own, _)| own.clone()),
        }
    }

    /// The names of its attributes: those of a mapping axis, or role streams where the values are integers.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &str> + Clone {
        self.attributes.iter().map(String::as_str)
    }

    /// Whether it has an attribute.
    pub(super) fn has_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|attribute| attribute == name)
    }

    /// The distinct values of an attribute, worked out once.
    pub(super) fn attribute(&self, name: &str) -> Rc<Distinct> {
        if let Some(found) = self.distinct.borrow().get(name) {
            return found.clone();
        }
        let mut found = Distinct::default();
        for index in 0..self.len() {
            if let Some(value) = self.axis.attribute(index, name) {
                found.add(value);
            }
        }
        let found = Rc::new(found);
        self.distinct.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }
}

/// The distinct values of an attribute in order of appearance, with how many points have each.
#[derive(Default)]
pub(super) struct Distinct {
    pub(super) values: Vec<(Value, u64)>,
    index: HashMap<String, usize>,
}

impl Distinct {
    fn add(&mut self, value: Value) {
        let slot = *self.index.entry(key(&value)).or_insert(self.values.len());
        match self.values.get_mut(slot) {
            Some((_, count)) => *count += 1,
            None => self.values.push((value, 1)),
        }
    }

    /// A value as the axis has it, with how many points have it.
    pub(super) fn get(&self, value: &Value) -> Option<&(Value, u64)> {
        self.values.get(*self.index.get(&key(value))?)
    }
}

fn attribute_names(axis: &Axis) -> Vec<String> {
    match &axis.points {
        Points::Named(points) => {
            let all: BTreeSet<&String> = points.iter().flat_map(|p| p.attributes.keys()).collect();
            all.into_iter().cloned().collect()
        }
        Points::Derived(_) => Vec::new(),
        Points::Search(search) if search.asks().is_some() => {
            search.axes().into_iter().map(str::to_owned).collect()
        }
        _ if axis.value(0).is_some_and(|v| v.as_i64().is_some()) => {
            let index = matches!(axis.points, Points::Seeds { .. }).then_some(seed::INDEX);
            index.iter().chain(&seed::ROLES).map(|name| (*name).to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Numbers compare by size whichever kind they are, as in a filter.
pub(super) fn key(value: &Value) -> String {
    match value {
        Value::Int(_) | Value::Float(_) => format!("n{}", value.as_f64().unwrap_or_default()),
        Value::Bool(b) => format!("b{b}"),
        other => format!("t{other}"),
    }
}

fn range_index(start: &Value, stop: &Value, step: &Value, value: &Value) -> Option<u64> {
    let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
    let (low, high, by, x) = (number(start), number(stop), number(step), number(value));
    let steps = ((x - low) / by).round();
    let near = (low + steps * by - x).abs() <= 1e-9 * by.abs().max(x.abs());
    let inside = steps >= 0.0 && near && (if by > 0.0 { x < high } else { x > high });
    inside.then_some(steps as u64)
}

/// The experiment's name, which names files.
pub(super) fn experiment_name(cx: &Cx<'_>, node: &Node) -> Option<String> {
    let text = node.text()?;
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    if first && text.len() <= 100 && text.chars().all(plain) {
        return Some(text.to_owned());
    }
    let message = format!("`{}` cannot be an experiment's name", text.escape_debug());
    let hint = "up to 100 lower-case letters, digits, `-`, `_` and `.`: it names the ledger's file";
    cx.push(Diagnostic::error("name", node.span.clone(), message).hint(hint));
    None
}

/// The parameters.
pub(super) fn params(cx: &Cx<'_>) -> BTreeMap<String, Value> {
    let entries = cx.spec.root().get("params").map(|node| node.entries()).unwrap_or_default();
    entries.iter().filter_map(|e| Some((e.key.clone(), e.value.value()?))).collect()
}

/// A parameter that nothing uses is a slip, though a harmless one.
pub(super) fn unused_params(cx: &Cx<'_>) {
    let entries = cx.spec.root().get("params").map(|node| node.entries()).unwrap_or_default();
    let used = cx.used_params.borrow();
    for entry in entries.iter().filter(|e| !used.contains(&e.key)) {
        let message = format!("nothing uses the parameter `{}`", entry.key);
        cx.push(Diagnostic::warning("unused", entry.at.clone(), message));
    }
}

/// Reads all axes; derived ones last, since they refer to the others.
pub(super) fn read(cx: &Cx<'_>) -> Axes {
    let entries = cx.spec.root().get("axes").map(|node| node.entries()).unwrap_or_default();
    if entries.len() > limits::AXES {
        let message = format!("{} axes are more than the {} allowed", entries.len(), limits::AXES);
        cx.push(Diagnostic::error("too-large", entries[limits::AXES].at.clone(), message));
    }
    let broken = entries.iter().map(|e| e.key.clone()).collect();
    let mut axes = Axes { list: Vec::new(), broken, groups: Vec::new() };
    for entry in entries.iter().take(limits::AXES) {
        if entry.key == REPEAT {
            let message = "the axis `repeat` belongs to stages that are repeated";
            cx.push(Diagnostic::error("name", entry.at.clone(), message).hint("choose another name"));
            continue;
        }
        if entry.is_value() || !Names::Variable.allows(&entry.key) {
            continue;
        }
        if let Some(points) = points(cx, entry) {
            let axis = Axis { name: entry.key.clone(), points };
            axes.broken.remove(&entry.key);
            axes.list.push(Known::new(axis, entry.at.clone()));
        }
    }
    axes.list.sort_by(|a, b| a.axis.name.cmp(&b.axis.name));
    rows::pairs(cx, entries, &mut axes);
    rows::declare(cx, &mut axes);
    search::axes(cx, &mut axes);
    derive(cx, &mut axes);
    span_fits(cx, &axes);
    axes
}

fn span_fits(cx: &Cx<'_>, axes: &Axes) {
    let mut cells: u64 = 1;
    for known in &axes.list {
        match cells.checked_mul(known.len().max(1)) {
            Some(product) => cells = product,
            None => {
                let message = "the axes span more than 2^64 cells";
                cx.push(Diagnostic::error("too-large", known.at.clone(), message));
                return;
            }
        }
    }
}

fn points(cx: &Cx<'_>, entry: &Entry) -> Option<Points> {
    let node = &entry.value;
    let count = node.items().map_or(node.entries().len(), <[_]>::len);
    if count > limits::LISTED {
        let message = format!("{count} values are more than the {} an axis may list", limits::LISTED);
        cx.push(
            Diagnostic::error("too-large", entry.at.clone(), message).hint("use `range`, `log` or `seeds`"),
        );
        return None;
    }
    if node.items().is_some() {
        return listed(cx, entry);
    }
    if let Some(range) = node.get("range") {
        return ranged(cx, range);
    }
    if let Some(log) = node.get("log") {
        return logarithmic(cx, log);
    }
    if let Some(seeds) = node.get("seeds") {
        let count = u64::try_from(seeds.integer()?).ok().filter(|n| (1..=100_000).contains(n))?;
        let salt = node.get("salt").and_then(|s| s.text()).map(str::to_owned);
        let fresh = node.get("fresh").and_then(|n| n.value()) == Some(Value::Bool(true));
        let points = Points::Seeds { count, salt, fresh, root: None };
        collision(cx, entry, &points);
        return Some(points);
    }
    if let Some(derived) = node.get("derived") {
        return reference::formula(cx, derived).map(Points::Derived);
    }
    if let Some(from) = node.get("from") {
        return rows::table(cx, entry, from);
    }
    // Pairs need the axis they pair, and come after all others.
    if node.entry("pairs").is_some() {
        return None;
    }
    named(cx, entry)
}

/// Two derived seeds may be equal by chance: then two cells are one, and are shown as such.
fn collision(cx: &Cx<'_>, entry: &Entry, points: &Points) {
    let axis = Axis { name: entry.key.clone(), points: points.clone() };
    if matches!(points, Points::Seeds { fresh: true, .. }) {
        return;
    }
    let mut seen: HashMap<String, u64> = HashMap::new();
    for index in 0..axis.len() {
        let Some(value) = axis.value(index) else { return };
        if let Some(first) = seen.insert(key(&value), index) {
            let message =
                format!("seeds {first} and {index} of `{}` are equal by chance ({value})", entry.key);
            let hint = "they are one cell in two places; `salt: TEXT` derives others";
            cx.push(Diagnostic::warning("seed-collision", entry.at.clone(), message).hint(hint));
            return;
        }
    }
}

fn listed(cx: &Cx<'_>, entry: &Entry) -> Option<Points> {
    let items = entry.value.items()?;
    let mut seen: HashMap<String, (Value, Range<usize>)> = HashMap::new();
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let value = item.value().filter(|_| item.scalar().is_some())?;
        if let Some((first, at)) = seen.get(&key(&value)) {
            let twice = *first == value;
            let message = match twice {
                true => format!("the value `{value}` stands twice on the axis `{}`", entry.key),
                false => format!("`{}` and `{}` are one number in two forms", scalar(item), first),
            };
            let diagnostic = Diagnostic::error("axis-value", item.span.clone(), message);
            let diagnostic = diagnostic.label(at.clone(), "first given here");
            cx.push(if twice { diagnostic } else { diagnostic.hint("write all values of an axis alike") });
        } else {
            seen.insert(key(&value), (value.clone(), item.span.clone()));
        }
        values.push(value);
    }
    if values.is_empty() {
        cx.push(Diagnostic::error(
            "axis-value",
            entry.at.clone(),
            format!("the axis `{}` has no value", entry.key),
        ));
        return None;
    }
    mixed_kinds(cx, entry, &values);
    Some(Points::List(values))
}

fn scalar(node: &Node) -> &str {
    node.scalar().map_or("", |s| &s.text)
}

/// `[0, 0.5, 1]` mixes integers and floats, which a command would receive in two spellings; harmless, since
/// each is itself. Text beside numbers is nearly always a missing or superfluous quote.
fn mixed_kinds(cx: &Cx<'_>, entry: &Entry, values: &[Value]) {
    let text = values.iter().filter(|v| v.as_text().is_some()).count();
    if text > 0 && text < values.len() {
        let message = format!("the axis `{}` mixes text with numbers or truths", entry.key);
        let hint = "check the quotes: `no` and `1.2.3` are text, `1` and `true` are not";
        cx.push(Diagnostic::warning("axis-value", entry.at.clone(), message).hint(hint));
    }
}

fn ranged(cx: &Cx<'_>, node: &Node) -> Option<Points> {
    let items = node.items()?;
    let mut values: Vec<Value> =
        items.iter().map(|n| n.value().filter(|v| v.as_f64().is_some())).collect::<Option<_>>()?;
    let (2 | 3) = values.len() else { return None };
    if values.len() == 2 {
        values.push(Value::Int(1));
    }
    // One kind of number throughout, so that `[0, 1, 0.5]` and `[0.0, 1.0, 0.5]` are one axis.
    if values.iter().any(|v| matches!(v, Value::Float(_))) {
        values = values.iter().filter_map(|v| Value::float(v.as_f64()?)).collect();
    }
    let [start, stop, step] = <[Value; 3]>::try_from(values).ok()?;
    let wrong = |message: String| cx.push(Diagnostic::error("axis-value", node.span.clone(), message));
    if step.as_f64() == Some(0.0) {
        wrong("a range needs a step that is not zero".to_owned());
        return None;
    }
    let points = Points::Range { start, stop, step };
    match (Axis { name: String::new(), points: points.clone() }).len() {
        0 => wrong("this range has no value; the stop itself is left out".to_owned()),
        n if n > limits::POINTS => wrong(format!("{n} values are more than the {} allowed", limits::POINTS)),
        _ => return Some(points),
    }
    None
}

fn logarithmic(cx: &Cx<'_>, node: &Node) -> Option<Points> {
    let [low, high, count] = node.items()? else { return None };
    let wrong = |at: &Node, message: &str| {
        cx.push(Diagnostic::error("axis-value", at.span.clone(), message));
        None
    };
    let (low_value, high_value) = (low.number().filter(|x| *x > 0.0)?, high.number().filter(|x| *x > 0.0)?);
    let Some(n) = count.integer().filter(|n| (2..=100_000).contains(n)) else {
        return wrong(count, "the count of a logarithmic axis is an integer from 2 to 100000");
    };
    if low_value == high_value {
        return wrong(high, "the two ends of a logarithmic axis differ");
    }
    Some(Points::Log { low: low_value, high: high_value, count: n.unsigned_abs() })
}

fn named(cx: &Cx<'_>, entry: &Entry) -> Option<Points> {
    let entries = entry.value.entries();
    if !entry.value.is_map() || entries.iter().any(|e| !e.value.is_map()) {
        return None;
    }
    let mut points = Vec::with_capacity(entries.len());
    for point in entries {
        let attributes: BTreeMap<String, Value> =
            point.value.entries().iter().filter_map(|e| Some((e.key.clone(), e.value.value()?))).collect();
        points.push(NamedPoint { name: point.key.clone(), attributes });
    }
    let Some(first) = points.first() else {
        cx.push(Diagnostic::error(
            "axis-value",
            entry.at.clone(),
            format!("the axis `{}` has no value", entry.key),
        ));
        return None;
    };
    let wanted: Vec<&String> = first.attributes.keys().collect();
    for (point, written) in points.iter().zip(entries) {
        if !point.attributes.keys().eq(wanted.iter().copied()) {
            let message = format!("`{}` and `{}` have different attributes", point.name, first.name);
            let hint = "give every value of the axis the same attributes";
            cx.push(Diagnostic::error("axis-value", written.at.clone(), message).hint(hint));
        }
    }
    // The order of keys says nothing elsewhere in a spec, so it says nothing here.
    points.sort_by(|a, b| a.name.cmp(&b.name));
    Some(Points::Named(points))
}

/// Resolves what derived axes depend on, in any order of definition, and finds cycles.
fn derive(cx: &Cx<'_>, axes: &mut Axes) {
    let formulas: Vec<(String, Expression, Range<usize>)> = axes
        .list
        .iter()
        .filter_map(|known| match &known.axis.points {
            Points::Derived(formula) => Some((known.axis.name.clone(), formula.clone(), known.at.clone())),
            _ => None,
        })
        .collect();
    let entries = cx.spec.root().get("axes").map(|node| node.entries()).unwrap_or_default();
    for (name, formula, _) in &formulas {
        let node = entries.iter().find(|e| e.key == *name).and_then(|e| e.value.get("derived"));
        if let Some(node) = node {
            reference::check_formula(cx, axes, node, formula, Owner::Cell, &mut BTreeSet::new());
        }
    }
    resolve(cx, axes, formulas);
}

/// Fills in the real axes behind each derived one; what is left over when nothing moves is a cycle.
fn resolve(cx: &Cx<'_>, axes: &mut Axes, mut open: Vec<(String, Expression, Range<usize>)>) {
    loop {
        let waiting: HashSet<String> = open.iter().map(|(name, ..)| name.clone()).collect();
        let (blocked, ready): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|(_, formula, _)| axis_names(formula).iter().any(|axis| waiting.contains(axis)));
        for (name, formula, at) in &ready {
            let names = axis_names(formula);
            let cost = names
                .iter()
                .filter_map(|axis| axes.get(axis))
                .fold(1, |sum: u64, k| sum.saturating_add(k.cost));
            if cost > limits::DERIVED {
                let message = format!("the derived axis `{name}` stands for too many others");
                cx.push(Diagnostic::error("too-large", at.clone(), message));
            }
            let real =
                names.iter().filter_map(|axis| axes.get(axis)).flat_map(|k| k.real.iter().cloned()).collect();
            if let Some(known) = axes.list.iter_mut().find(|known| known.axis.name == *name) {
                known.real = real;
                known.cost = cost;
            }
        }
        open = blocked;
        if ready.is_empty() {
            break;
        }
    }
    for (name, _, at) in &open {
        let message = format!("the derived axis `{name}` depends on itself");
        cx.push(Diagnostic::error("cycle", at.clone(), message));
    }
}

fn axis_names(formula: &Expression) -> Vec<String> {
    let names = formula.names();
    let axes = names.iter().filter_map(|(path, _)| match path {
        [root, axis, ..] if root == "axes" => Some(axis.clone()),
        _ => None,
    });
    axes.collect()
}

/// Complains about a name that is no axis, unless that axis is there and could not be read.
pub(super) fn no_axis(cx: &Cx<'_>, axes: &Axes, name: &str, at: Range<usize>) {
    if !axes.broken.contains(name) {
        let message = format!("there is no axis `{name}`");
        let near = did_you_mean(name, axes.names());
        cx.push(Diagnostic::error("unknown-axis", at, message).maybe_hint(near));
    }
}
