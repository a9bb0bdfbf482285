//! The graph of stages: its order, the axes each stage depends on, and what nothing uses.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

use avow_model::axis::{Axis, Points};
use avow_model::expand::referred;
use avow_model::plan::Source;
use avow_model::value::Value;

use super::Cx;
use super::axes::{Axes, REPEAT, no_axis};
use super::exclude;
use super::search::asked_by;
use super::stage::Draft;
use crate::diagnostic::{Diagnostic, did_you_mean, listed};

/// The finished drafts, for claims.
pub(super) struct Stages<'d, 'a> {
    pub(super) drafts: &'d [Draft<'a>],
    by_name: HashMap<&'d str, usize>,
    /// How often repeated stages repeat.
    pub(super) repetitions: u64,
    /// The stages that write a measurement, under `None` those that may write any.
    writers: HashMap<Option<&'d str>, Vec<usize>>,
}

impl<'d, 'a> Stages<'d, 'a> {
    pub(super) fn new(drafts: &'d [Draft<'a>], by_name: HashMap<&'d str, usize>) -> Self {
        let mut writers: HashMap<Option<&'d str>, Vec<usize>> = HashMap::new();
        for (index, draft) in drafts.iter().enumerate() {
            for writes in &draft.outputs.writes {
                let all = writers.entry(writes.name.as_deref()).or_default();
                if all.last() != Some(&index) {
                    all.push(index);
                }
            }
        }
        let repetitions = drafts.iter().find_map(|d| d.repeat).unwrap_or(1);
        Self { drafts, by_name, repetitions, writers }
    }

    /// The stages that write a measurement of this name; `None`: those of whose names nothing is known.
    pub(super) fn writers(&self, name: Option<&str>) -> Vec<&'d Draft<'a>> {
        self.writers.get(&name).into_iter().flatten().map(|i| &self.drafts[*i]).collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<&'d Draft<'a>> {
        self.by_name.get(name).map(|i| &self.drafts[*i])
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'d str> {
        self.drafts.iter().map(|draft| draft.name.as_str())
    }
}

/// Indices of the producers of each stage.
fn edges(drafts: &[Draft<'_>]) -> Vec<Vec<usize>> {
    let by_name: HashMap<&str, usize> =
        drafts.iter().enumerate().map(|(i, d)| (d.name.as_str(), i)).collect();
    let producers = |draft: &Draft<'_>| {
        let found = draft.inputs.values().filter_map(|given| match &given.input.from {
            Source::Output { stage, .. } => by_name.get(stage.as_str()).copied(),
            _ => None,
        });
        found.collect::<BTreeSet<usize>>().into_iter().collect()
    };
    drafts.iter().map(producers).collect()
}

/// Producers before consumers. Stages on or behind a cycle are left out, after a complaint.
pub(super) fn order(cx: &Cx<'_>, drafts: &[Draft<'_>]) -> Vec<usize> {
    let producers = edges(drafts);
    let mut waiting: Vec<usize> = producers.iter().map(Vec::len).collect();
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (index, from) in producers.iter().enumerate() {
        for producer in from {
            consumers[*producer].push(index);
        }
    }
    let mut ready: VecDeque<usize> = (0..drafts.len()).filter(|i| waiting[*i] == 0).collect();
    let mut order = Vec::with_capacity(drafts.len());
    while let Some(index) = ready.pop_front() {
        order.push(index);
        for consumer in &consumers[index] {
            waiting[*consumer] -= 1;
            if waiting[*consumer] == 0 {
                ready.push_back(*consumer);
            }
        }
    }
    if order.len() < drafts.len() {
        cycle(cx, drafts, &producers, &waiting);
    }
    order
}

/// Walks backwards from a stage that waits until one comes twice.
fn cycle(cx: &Cx<'_>, drafts: &[Draft<'_>], producers: &[Vec<usize>], waiting: &[usize]) {
    let Some(start) = waiting.iter().position(|n| *n > 0) else { return };
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let mut path = Vec::new();
    let mut now = start;
    while !seen.contains_key(&now) {
        seen.insert(now, path.len());
        path.push(now);
        match producers[now].iter().find(|p| waiting[**p] > 0) {
            Some(next) => now = *next,
            None => return,
        }
    }
    let ring: Vec<usize> = path[seen[&now]..].iter().rev().copied().collect();
    let mut names: Vec<String> = ring.iter().take(12).map(|i| format!("`{}`", drafts[*i].name)).collect();
    names.push(names[0].clone());
    let message = format!("these stages wait for each other: {}", names.join(" → "));
    let mut diagnostic = Diagnostic::error("cycle", drafts[ring[0]].at.clone(), message);
    for index in ring.iter().skip(1).take(8) {
        diagnostic = diagnostic.label(drafts[*index].at.clone(), "part of the cycle");
    }
    cx.push(diagnostic.hint("a stage reads what other stages have finished; cut one input"));
}

/// Fills in every scope, and checks fixed and gathered axes on the way.
pub(super) fn fill(cx: &Cx<'_>, axes: &Axes, drafts: &mut [Draft<'_>], order: &[usize]) {
    let by_name: HashMap<String, usize> =
        drafts.iter().enumerate().map(|(i, d)| (d.name.clone(), i)).collect();
    for index in order {
        let mut scope = drafts[*index].uses.clone();
        scope.extend(drafts[*index].inputs.values().filter_map(|given| asked_by(&given.input.from)));
        let mut own: Vec<(String, String, Value)> = Vec::new();
        for (input, given) in &drafts[*index].inputs {
            let Source::Output { stage, at, gather, .. } = &given.input.from else { continue };
            let Some(producer) = by_name.get(stage).map(|i| &drafts[*i]) else { continue };
            let named = at.keys().chain(gather.iter());
            for axis in named {
                let places = given.axes.get(axis).cloned();
                let place = places.unwrap_or((given.from.clone(), given.from.clone()));
                let value = fixed(cx, axes, producer, axis, at.get(axis), place);
                own.extend(value.map(|value| (input.clone(), axis.clone(), value)));
            }
            for axis in at.keys().filter(|axis| gather.contains(axis)) {
                let message = format!("`{axis}` is both fixed and gathered");
                cx.push(Diagnostic::error("axis", given.from.clone(), message));
            }
            // What a fixed axis refers to is the reader's own.
            scope.extend(at.values().filter_map(|value| referred(value)?.get(1).cloned()));
            let open = producer.scope.iter().filter(|axis| !at.contains_key(*axis) && !gather.contains(axis));
            scope.extend(open.cloned());
        }
        drafts[*index].scope = scope;
        for (input, axis, value) in own {
            if let Some(given) = drafts[*index].inputs.get_mut(&input)
                && let Source::Output { at, .. } = &mut given.input.from
            {
                at.insert(axis, value);
            }
        }
    }
    repeats(cx, drafts);
}

/// Checks one fixed or gathered axis of a producer; gives the axis' own value where one is fixed.
fn fixed(
    cx: &Cx<'_>,
    axes: &Axes,
    producer: &Draft<'_>,
    axis: &str,
    value: Option<&Value>,
    at: (Range<usize>, Range<usize>),
) -> Option<Value> {
    if axis != REPEAT && axes.get(axis).is_none() {
        no_axis(cx, axes, axis, at.0);
        return None;
    }
    if !producer.scope.contains(axis) {
        let name = &producer.name;
        let message = format!("`{name}` does not depend on the axis `{axis}`");
        let scope = producer.scope.iter().map(String::as_str);
        let hint = match producer.scope.is_empty() {
            true => format!("`{name}` exists once"),
            false => format!("it depends on {}", listed(scope)),
        };
        cx.push(Diagnostic::error("axis", at.0, message).hint(hint));
        return None;
    }
    let value = value?;
    if let Some(path) = referred(value) {
        reference(cx, axes, axis, &path, at.1);
        return None;
    }
    if axis == REPEAT {
        let count = producer.repeat.unwrap_or(u64::MAX);
        let fits = value.as_i64().and_then(|i| u64::try_from(i).ok()).is_some_and(|i| i < count);
        if !fits {
            let message = format!("there is no repetition `{value}`; they count from 0");
            cx.push(Diagnostic::error("unknown-value", at.1, message));
        }
        return fits.then(|| value.clone());
    }
    exclude::own_value(cx, axes, axis, value, at.1, at.0)
}

/// Checks what a fixed axis refers to: every value there must be one of the axis that it fixes.
fn reference(cx: &Cx<'_>, axes: &Axes, axis: &str, path: &[String], at: Range<usize>) {
    let wrong = |message: String, hint: &str| {
        cx.push(Diagnostic::error("axis", at.clone(), message).hint(hint));
    };
    let Some(own) = path.get(1).and_then(|name| axes.get(name)) else {
        no_axis(cx, axes, path.get(1).map_or("", |name| name), at.clone());
        return;
    };
    let spelled = path.join(".");
    let values: Vec<Value> = match path.get(2) {
        _ if own.axis.is_derived() || path.len() > 3 => Vec::new(),
        Some(attribute) => own.attribute(attribute).values.iter().map(|(value, _)| value.clone()).collect(),
        None => (0..own.len()).filter_map(|i| own.axis.value(i)).collect(),
    };
    if values.is_empty() {
        wrong(format!("`{spelled}` has no values to fix an axis to"), "e.g. `${axes.pair.first}`");
    } else if let (Some(fixed), true) = (axes.get(axis), axis != REPEAT)
        && let Some(other) = values.iter().find(|value| fixed.own(value).is_none())
    {
        wrong(
            format!("`{spelled}` is `{other}` somewhere, which `{axis}` is not"),
            "fix it to its own values",
        );
    }
}

/// All repeated stages share the axis `repeat`, so they repeat equally often.
fn repeats(cx: &Cx<'_>, drafts: &[Draft<'_>]) {
    let mut repeated = drafts.iter().filter_map(|d| Some((d, d.repeat?, d.node.entry("repeat")?)));
    let Some((first, count, entry)) = repeated.next() else { return };
    for (draft, other, at) in repeated.filter(|(_, other, _)| *other != count) {
        let message = format!("`{}` repeats {other} times and `{}` {count} times", draft.name, first.name);
        let diagnostic = Diagnostic::error("repeat", at.value.span.clone(), message);
        let hint = "repetitions are one axis, `repeat`; give both the same number";
        cx.push(diagnostic.label(entry.value.span.clone(), "the other one").hint(hint));
    }
}

/// The axes of the plan, with `repeat` where a stage repeats, sorted by name.
pub(super) fn planned_axes(axes: &Axes, drafts: &[Draft<'_>]) -> Vec<Axis> {
    let mut planned: Vec<Axis> = axes.list.iter().map(|known| known.axis.clone()).collect();
    planned.extend(drafts.iter().find_map(|d| d.repeat).map(repeat_axis));
    planned.sort_by(|a, b| a.name.cmp(&b.name));
    planned
}

fn repeat_axis(count: u64) -> Axis {
    let stop = Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let points = Points::Range { start: Value::Int(0), stop, step: Value::Int(1) };
    Axis { name: REPEAT.to_owned(), points }
}

/// Axes and outputs that nothing uses.
pub(super) fn unused(
    cx: &Cx<'_>,
    axes: &Axes,
    stages: &Stages<'_, '_>,
    selected: &HashSet<(String, String)>,
) {
    let scoped: HashSet<&str> =
        stages.drafts.iter().flat_map(|d| d.scope.iter().chain(&d.uses)).map(String::as_str).collect();
    let derived = cx.used_derived.borrow();
    // A stage that could not be read may be the one that uses them.
    let written = cx.spec.root().get("stages").map_or(0, |n| n.entries().len());
    let whole = stages.drafts.len() == written && stages.drafts.iter().all(|d| d.program.is_some());
    for known in axes.list.iter().filter(|_| whole) {
        let name = known.axis.name.as_str();
        // What a search finds may be wanted for itself.
        if known.axis.search().is_some() {
            continue;
        }
        let used = if known.axis.is_derived() { derived.contains(name) } else { scoped.contains(name) };
        if !used {
            let message = format!("no stage uses the axis `{name}`");
            let hint = format!("pass `${{axes.{name}}}` to a stage, or remove the axis");
            cx.push(Diagnostic::error("unused", known.at.clone(), message).hint(hint));
        }
    }
    drop(derived);
    let asked = axes.list.iter().filter_map(|known| known.axis.search()?.asks());
    let asked = asked.map(|ask| (ask.program.as_str(), ask.output.as_str()));
    let read: HashSet<(&str, &str)> = stages
        .drafts
        .iter()
        .flat_map(|d| d.inputs.values())
        .filter_map(|given| match &given.input.from {
            Source::Output { stage, output, .. } => Some((stage.as_str(), output.as_str())),
            _ => None,
        })
        .chain(asked)
        .collect();
    for draft in stages.drafts {
        for (name, made) in draft.outputs.made.iter().filter(|(_, m)| m.declared && !m.measured) {
            let used = read.contains(&(draft.name.as_str(), name.as_str()))
                || selected.contains(&(draft.name.clone(), name.clone()));
            if !used && !made.output.optional {
                let message = format!("nothing reads `{}.{name}`", draft.name);
                let hint = "`avow get` can still fetch it; make it `optional: true` if it is a log";
                cx.push(Diagnostic::warning("unused", made.at.clone(), message).hint(hint));
            }
        }
    }
}

/// The near names of a stage for a hint.
pub(super) fn near_stage(stages: &Stages<'_, '_>, name: &str) -> Option<String> {
    did_you_mean(name, stages.names())
}
