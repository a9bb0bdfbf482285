//! Searches that ask a program: the axes they make, what the program reads, and whether it can answer.

use std::collections::BTreeSet;

use avow_model::axis::Points;
use avow_model::plan::Source;
use avow_model::search::{Ask, Choice, Dimension, Extreme, Method, Probed, Search};
use avow_model::value::Value;

use super::{add, entries, interval, measured, search_of};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::lower::Cx;
use crate::lower::axes::{Axes, key};
use crate::lower::scope::Stages;
use crate::lower::stage::{Draft, no_stage};
use crate::tree::{Entry, Node};

/// The axis that numbers the rounds of a search.
fn rounds(search: &str) -> String {
    format!("{search}_round")
}

/// The search that a text `SEARCH.probes` means, as long as it asks a program.
pub(in crate::lower) fn probes<'t>(cx: &Cx<'_>, text: &'t str) -> Option<&'t str> {
    let (name, what) = text.split_once('.')?;
    let asks = |entry: &Entry| {
        entry.key == name && entry.value.get("kind").and_then(|kind| kind.text()) == Some("ask")
    };
    (what == "probes" && entries(cx).iter().any(asks)).then_some(name)
}

/// The axis of rounds that a stage depends on because it reads what was probed.
pub(in crate::lower) fn asked_by(source: &Source) -> Option<String> {
    match source {
        Source::Probes { search } => Some(rounds(search)),
        _ => None,
    }
}

/// Adds the axes: those that the program chooses on, the rounds, and what is found.
pub(super) fn axes(cx: &Cx<'_>, axes: &mut Axes, entry: &Entry) {
    let node = &entry.value;
    let rounds = rounds(&entry.key);
    axes.broken(&entry.key);
    axes.broken(&rounds);
    let over = node.get("over").map(|over| over.entries()).unwrap_or_default();
    over.iter().for_each(|axis| axes.broken(&axis.key));
    let mut space = Vec::new();
    for axis in over {
        let Some(choice) = choice(cx, &axis.value) else { return };
        space.push(Dimension { axis: axis.key.clone(), choice });
    }
    let Some(program) = node.get("program").and_then(|n| n.text()) else { return };
    if space.is_empty() {
        if let Some(over) = node.get("over") {
            let message = "a search needs an axis to choose on";
            let hint = "write `over: {lr: {from: …, to: …}}` or `over: {width: [16, 32]}`";
            cx.push(Diagnostic::error("search", over.span.clone(), message).hint(hint));
        }
        return;
    }
    let point: Vec<Value> = space.iter().map(|dimension| first(&dimension.choice)).collect();
    let probed = |value: Value| Points::Probed(Probed { search: entry.key.clone(), values: vec![value] });
    for (axis, value) in over.iter().zip(&point) {
        add(cx, axes, &axis.key, probed(value.clone()), axis.at.clone());
    }
    add(cx, axes, &rounds, probed(Value::Int(0)), entry.at.clone());
    let goal = match node.get("goal").and_then(|n| n.text()) {
        Some("largest") => Extreme::Largest,
        _ => Extreme::Smallest,
    };
    let (program, output) = measured(program);
    let stand_in = match point.as_slice() {
        [one] => one.clone(),
        _ => Value::Int(1),
    };
    let over = space[0].axis.clone();
    let method = Method::Ask(Ask { program, output, rounds, goal, space });
    let points = search_of(entry, method, &over, stand_in, point);
    add(cx, axes, &entry.key, points, entry.at.clone());
}

fn first(choice: &Choice) -> Value {
    match choice {
        Choice::Between { from, .. } => from.clone(),
        Choice::Among(values) => values.first().cloned().unwrap_or(Value::Int(0)),
    }
}

fn choice(cx: &Cx<'_>, node: &Node) -> Option<Choice> {
    let Some(items) = node.items() else {
        return interval(cx, node).map(|(from, to, log)| Choice::Between { from, to, log });
    };
    let values: Vec<Value> = items.iter().filter_map(|item| item.value()).collect();
    let distinct: BTreeSet<String> = values.iter().map(key).collect();
    if values.is_empty() || distinct.len() < values.len() {
        let message = "the values to choose from are one or more, each once";
        cx.push(Diagnostic::error("search", node.span.clone(), message));
        return None;
    }
    Some(Choice::Among(values))
}

/// Checks that the program is a stage that can answer.
pub(super) fn check(cx: &Cx<'_>, stages: &Stages<'_, '_>, entry: &Entry, search: &Search) {
    let Some(ask) = search.asks() else { return };
    let Some(node) = entry.value.get("program") else { return };
    let Some(draft) = stages.get(&ask.program) else {
        return cx.push(no_stage(stages.names(), &ask.program, node.span.clone()));
    };
    let wrong = |message: String, hint: String| {
        cx.push(Diagnostic::error("search", node.span.clone(), message).hint(hint));
    };
    let name = &draft.name;
    match draft.outputs.made.get(&ask.output) {
        None if draft.outputs.unknown => {}
        None => {
            let all = draft.outputs.made.keys().map(String::as_str);
            let hint =
                did_you_mean(&ask.output, all.clone()).unwrap_or_else(|| format!("it has {}", listed(all)));
            let message = format!("the stage `{name}` has no output `{}`", ask.output);
            cx.push(Diagnostic::error("unknown-output", node.span.clone(), message).hint(hint));
        }
        Some(made) => {
            let output = &made.output;
            if output.folder || output.optional || !output.keep.is_content() {
                let message =
                    format!("`{name}.{}` holds the answer, so it is a file that is kept", ask.output);
                wrong(message, "declare it as a plain output: `outputs: {next: next.json}`".to_owned());
            }
        }
    }
    reads(draft, ask, &entry.key, &wrong);
}

/// The program has one member a round: it reads what was probed, and depends on nothing else that varies.
fn reads(draft: &Draft<'_>, ask: &Ask, search: &str, wrong: &dyn Fn(String, String)) {
    let name = &draft.name;
    let reads = draft.inputs.values().any(|given| asked_by(&given.input.from).as_ref() == Some(&ask.rounds));
    if !reads {
        let message = format!("`{name}` does not read what the search probed");
        wrong(message, format!("give it the input `probes: {search}.probes`"));
    } else if let Some(other) = draft.scope.iter().find(|axis| **axis != ask.rounds) {
        let message = format!("`{name}` answers for the whole search, and it depends on the axis `{other}`");
        wrong(message, format!("leave `{other}` out of it; it is told in `{search}.probes` what there is"));
    }
}
