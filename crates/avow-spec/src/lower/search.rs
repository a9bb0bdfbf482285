//! Adaptive searches: the axes they make, and whether they can work.
//!
//! While a spec is checked a search's axes have one value each, in place of those that only a run will know, so
//! that everything else can be checked as usual. The plan has none.

mod ask;

use std::collections::BTreeSet;
use std::ops::Range;

pub(super) use self::ask::{asked_by, probes};

use avow_model::axis::{Axis, Points};
use avow_model::search::{Extreme, Found, Gather, Goal, Method, Probed, Search, State, Until};
use avow_model::value::Value;

use super::Cx;
use super::axes::{Axes, REPEAT, no_axis};
use super::scope::Stages;
use super::stage::no_stage;
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::keys::Names;
use crate::tree::{Entry, Node};

/// The probes that a search may ask for where nothing is said.
pub(crate) const AT_MOST: u64 = 1000;

fn entries<'a>(cx: &Cx<'a>) -> &'a [Entry] {
    let spec: &'a crate::experiment::Experiment = cx.spec;
    spec.root().get("search").map(|node| node.entries()).unwrap_or_default()
}

/// Adds the axes of all searches.
pub(super) fn axes(cx: &Cx<'_>, axes: &mut Axes) {
    for entry in entries(cx) {
        if entry.is_value() || !Names::Variable.allows(&entry.key) {
            continue;
        }
        let node = &entry.value;
        if !per(cx, axes, node) {
            axes.broken(&entry.key);
            continue;
        }
        match node.get("kind").and_then(|kind| kind.text()) {
            Some("bisection") => bisection(cx, axes, entry),
            Some("argmin") => best(cx, axes, entry, Extreme::Smallest),
            Some("argmax") => best(cx, axes, entry, Extreme::Largest),
            Some("halving") => halving(cx, axes, entry),
            Some("ask") => ask::axes(cx, axes, entry),
            _ => axes.broken(&entry.key),
        }
    }
}

/// Whether the axes under `per` can be those of one search each.
fn per(cx: &Cx<'_>, axes: &Axes, node: &Node) -> bool {
    let mut well = true;
    let mut seen = BTreeSet::new();
    for (name, at) in per_of(node) {
        let Some(known) = axes.get(name) else {
            no_axis(cx, axes, name, at);
            well = false;
            continue;
        };
        let chosen = ["over", "budget"].iter().any(|key| node.get(key).and_then(|n| n.text()) == Some(name));
        let listed = !matches!(known.axis.points, Points::Derived(_) | Points::Probed(_) | Points::Search(_));
        let message = match (chosen, listed, seen.insert(name)) {
            (true, ..) => {
                format!("the search chooses on `{name}`, so it cannot be one search for each value of it")
            }
            (_, false, _) => format!("the values of the axis `{name}` are not listed"),
            (_, _, false) => format!("`{name}` is named twice"),
            _ => continue,
        };
        cx.push(Diagnostic::error("search", at, message).hint("`per` names axes under `axes`"));
        well = false;
    }
    well
}

/// What all searches have.
fn search(entry: &Entry, method: Method, over: &str, stand_in: Value) -> Points {
    search_of(entry, method, over, stand_in, Vec::new())
}

/// The same with a point of several axes as the stand-in.
fn search_of(entry: &Entry, method: Method, over: &str, stand_in: Value, point: Vec<Value>) -> Points {
    let node = &entry.value;
    let (stage, measure) = node.get("measure").and_then(|n| n.text()).map(measured).unwrap_or_default();
    let reduce = match node.get("reduce").and_then(|n| n.text()) {
        Some("median") => Gather::Median,
        Some("min") => Gather::Min,
        Some("max") => Gather::Max,
        _ => Gather::Mean,
    };
    let at_most = node.get("at_most").and_then(|n| n.integer()).and_then(|n| u64::try_from(n).ok());
    let found = State::Found(Found { value: stand_in, within: None, probes: 0, point });
    let per: Vec<String> = per_of(node).map(|(name, _)| name.to_owned()).collect();
    Points::Search(Box::new(Search {
        method,
        over: over.to_owned(),
        stage,
        measure,
        reduce,
        at_most: at_most.unwrap_or(AT_MOST),
        ended: per.iter().take(1).map(|_| (Vec::new(), found.clone())).collect(),
        per,
        asked: Vec::new(),
        consulted: Vec::new(),
        state: found,
    }))
}

/// The axes named under `per`, with their places.
fn per_of(node: &Node) -> impl Iterator<Item = (&str, Range<usize>)> {
    let named = node.get("per");
    let listed = named.and_then(|named| named.items()).into_iter().flatten();
    let alone = named.filter(|named| named.items().is_none());
    alone.into_iter().chain(listed).filter_map(|named| Some((named.text()?, named.span.clone())))
}

fn measured(text: &str) -> (String, String) {
    let (stage, name) = text.split_once('.').unwrap_or(("", text));
    (stage.to_owned(), name.to_owned())
}

fn bisection(cx: &Cx<'_>, axes: &mut Axes, entry: &Entry) {
    axes.broken(&entry.key);
    let node = &entry.value;
    let Some(over) = node.get("over") else { return };
    let [axis] = over.entries() else {
        let message = "a bisection looks along one axis";
        cx.push(
            Diagnostic::error("search", over.span.clone(), message)
                .hint("write `over: {lr: {from: …, to: …}}`"),
        );
        return;
    };
    axes.broken(&axis.key);
    let Some(method) = method(cx, axis, node) else { return };
    let Method::Bisection { from, .. } = &method else { return };
    let stand_in = from.clone();
    let probed = Probed { search: entry.key.clone(), values: vec![stand_in.clone()] };
    add(cx, axes, &axis.key, Points::Probed(probed), axis.at.clone());
    let points = search(entry, method, &axis.key, stand_in);
    add(cx, axes, &entry.key, points, entry.at.clone());
}

/// Two ends, the lower one first, and whether the scale is logarithmic.
fn interval(cx: &Cx<'_>, node: &Node) -> Option<(Value, Value, bool)> {
    let wrong = |at: &Node, message: &str, hint: &str| {
        cx.push(Diagnostic::error("search", at.span.clone(), message).hint(hint));
        None
    };
    let number = |node: &Node| node.value().filter(|value| value.as_f64().is_some());
    let (from_node, to_node) = (node.get("from")?, node.get("to")?);
    let (from, to) = (number(from_node)?, number(to_node)?);
    let log = node.get("scale").and_then(|n| n.text()) == Some("log");
    let (low, high) = (from.as_f64()?, to.as_f64()?);
    if low >= high {
        return wrong(to_node, "the upper end lies above the lower one", "`from` is the smaller number");
    }
    if log && low <= 0.0 {
        return wrong(
            from_node,
            "a logarithmic scale begins above zero",
            "leave `scale: log` out, or begin higher",
        );
    }
    match (&from, &to) {
        (Value::Int(_), Value::Int(_)) => Some((from, to, log)),
        _ => Some((Value::float(low)?, Value::float(high)?, log)),
    }
}

fn method(cx: &Cx<'_>, axis: &Entry, node: &Node) -> Option<Method> {
    let wrong = |at: &Node, message: &str, hint: &str| {
        cx.push(Diagnostic::error("search", at.span.clone(), message).hint(hint));
        None
    };
    let (from, to, log) = interval(cx, &axis.value)?;
    let low = from.as_f64()?;
    let one = |key: &str, first: &'static str, second: &'static str| -> Option<(bool, f64)> {
        let table = node.get(key)?;
        match (table.get(first).and_then(|n| n.number()), table.get(second).and_then(|n| n.number())) {
            (Some(x), None) => Some((true, x)),
            (None, Some(x)) => Some((false, x)),
            _ => {
                let message = format!("`{key}` says one thing: `{first}` or `{second}`");
                cx.push(Diagnostic::error("search", table.span.clone(), message));
                None
            }
        }
    };
    let goal = one("goal", "above", "below");
    let until = one("until", "width", "ratio");
    let goal = goal.map(|(above, bound)| if above { Goal::Above(bound) } else { Goal::Below(bound) })?;
    let until_node = node.get("until")?;
    let until = match until? {
        (true, width) if width < 0.0 => {
            return wrong(until_node, "a width is not negative", "e.g. `width: 0.01`");
        }
        (true, width) => Until::Width(width),
        (false, ratio) if ratio <= 1.0 => {
            return wrong(until_node, "a ratio is above 1", "e.g. `ratio: 1.05`");
        }
        (false, _) if low <= 0.0 => {
            return wrong(until_node, "a ratio needs an interval above zero", "say `until: {width: …}`");
        }
        (false, ratio) => Until::Ratio(ratio),
    };
    Some(Method::Bisection { from, to, log, goal, until })
}

fn best(cx: &Cx<'_>, axes: &mut Axes, entry: &Entry, goal: Extreme) {
    axes.broken(&entry.key);
    let Some((over, stand_in, _)) = declared(cx, axes, &entry.value, "over") else { return };
    let points = search(entry, Method::Best { goal }, &over, stand_in);
    add(cx, axes, &entry.key, points, entry.at.clone());
}

fn halving(cx: &Cx<'_>, axes: &mut Axes, entry: &Entry) {
    axes.broken(&entry.key);
    let node = &entry.value;
    let found = (declared(cx, axes, node, "over"), declared(cx, axes, node, "budget"));
    let (Some((over, stand_in, _)), Some((budget, _, at))) = found else { return };
    if over == budget {
        cx.push(Diagnostic::error("search", at, "what is tried and what it costs are two axes"));
        return;
    }
    let numbers = |axis: &Axis| (0..axis.len()).all(|i| axis.value(i).is_some_and(|v| v.as_f64().is_some()));
    if axes.get(&budget).is_some_and(|known| !numbers(&known.axis)) {
        let message = format!("the axis `{budget}` is a budget, so its values are numbers");
        cx.push(Diagnostic::error("search", at, message));
        return;
    }
    let goal = match node.get("goal").and_then(|n| n.text()) {
        Some("largest") => Extreme::Largest,
        _ => Extreme::Smallest,
    };
    let one_in =
        node.get("one_in").and_then(|n| n.integer()).and_then(|n| u64::try_from(n).ok()).unwrap_or(2);
    let points = search(entry, Method::Halving { goal, budget, one_in }, &over, stand_in);
    add(cx, axes, &entry.key, points, entry.at.clone());
}

/// A declared axis with a stand-in for what will be found on it, and the place where it is named.
fn declared(cx: &Cx<'_>, axes: &Axes, node: &Node, key: &str) -> Option<(String, Value, Range<usize>)> {
    let named = node.get(key)?;
    let name = named.text()?;
    let Some(known) = axes.get(name) else {
        no_axis(cx, axes, name, named.span.clone());
        return None;
    };
    if matches!(known.axis.points, Points::Derived(_) | Points::Probed(_) | Points::Search(_)) {
        let message = format!("the values of the axis `{name}` are not listed");
        let hint = "a search of this kind chooses among the values of an axis under `axes`";
        cx.push(Diagnostic::error("search", named.span.clone(), message).hint(hint));
        return None;
    }
    Some((name.to_owned(), known.axis.value(0)?, named.span.clone()))
}

fn add(cx: &Cx<'_>, axes: &mut Axes, name: &str, points: Points, at: Range<usize>) {
    if name == REPEAT || axes.get(name).is_some() {
        let message = format!("there is an axis `{name}` already");
        let hint =
            "a search makes axes of its own: one of its name, and for a bisection the one it looks along";
        cx.push(Diagnostic::error("name", at, message).hint(hint));
        return;
    }
    axes.add(Axis { name: name.to_owned(), points }, at);
}

/// Checks what a search measures, once the scopes of all stages are known.
pub(super) fn check(cx: &Cx<'_>, axes: &Axes, stages: &Stages<'_, '_>) {
    for entry in entries(cx) {
        let Some(search) = axes.get(&entry.key).and_then(|known| known.axis.search()) else { continue };
        let Some(node) = entry.value.get("measure").filter(|node| node.text().is_some()) else { continue };
        let Some(draft) = stages.get(&search.stage) else {
            cx.push(no_stage(stages.names(), &search.stage, node.span.clone()));
            continue;
        };
        let writes = &draft.outputs.writes;
        let known = writes.iter().any(|w| w.name.as_ref().is_none_or(|name| *name == search.measure));
        if !known && !draft.outputs.unknown {
            let message = format!("the stage `{}` writes no measurement `{}`", draft.name, search.measure);
            let names: Vec<&str> = writes.iter().filter_map(|w| w.name.as_deref()).collect();
            let hint = did_you_mean(&search.measure, names.iter().copied())
                .unwrap_or_else(|| format!("it writes {}", listed(names.into_iter())));
            cx.push(Diagnostic::error("select", node.span.clone(), message).hint(hint));
        }
        ask::check(cx, stages, entry, search);
        for axis in search.axes().into_iter().filter(|axis| !draft.scope.contains(*axis)) {
            let message = format!(
                "`{}` does not depend on the axis `{axis}`, so it cannot tell its values apart",
                draft.name
            );
            let hint = format!("pass `${{axes.{axis}}}` to it, or measure a stage that depends on it");
            cx.push(Diagnostic::error("search", node.span.clone(), message).hint(hint));
        }
        if let Some(ring) = rests_on_itself(axes, stages, &entry.key) {
            let message = format!("the search `{}` waits for itself", entry.key);
            let hint = format!(
                "what it measures depends on what it finds, through {}",
                listed(ring.iter().map(String::as_str))
            );
            cx.push(Diagnostic::error("cycle", entry.at.clone(), message).hint(hint));
        }
    }
}

/// The searches that a search's measured stage depends on, directly or through others, where it is one of them.
fn rests_on_itself(axes: &Axes, stages: &Stages<'_, '_>, name: &str) -> Option<BTreeSet<String>> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![name.to_owned()];
    while let Some(next) = waiting.pop() {
        let stage = axes.get(&next).and_then(|known| known.axis.search()).map(|search| search.stage.clone());
        let Some(draft) = stage.and_then(|stage| stages.get(&stage)) else { continue };
        let searched =
            draft.scope.iter().filter(|axis| axes.get(axis).is_some_and(|k| k.axis.search().is_some()));
        for axis in searched.cloned().collect::<Vec<_>>() {
            if seen.insert(axis.clone()) {
                waiting.push(axis);
            }
        }
    }
    seen.contains(name).then_some(seen)
}
