//! Which numbers a claim reads, and along which dimensions they vary.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use avow_model::claim::{Selected, Selection};
use avow_model::value::Value;

use super::Cx;
use super::axes::{Axes, Known, REPEAT};
use super::exclude;
use super::outputs::Writes;
use super::scope::{Stages, near_stage};
use super::stage::{Draft, no_stage};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::Node;

/// What a claim selects, with what is known of it.
pub(super) struct Chosen<'d, 'a> {
    pub(super) draft: &'d Draft<'a>,
    pub(super) selection: Selection,
    /// The record keys its values carry; `None`: unknown.
    pub(super) keys: Option<Vec<String>>,
    /// The range its values lie in.
    pub(super) range: Option<(f64, f64)>,
    /// How often repeated stages repeat.
    repetitions: u64,
}

/// What a dimension is.
pub(super) enum Dimension<'x> {
    /// An axis.
    Axis(&'x Known),
    /// An attribute of an axis.
    Attribute(&'x Known, String),
    /// The repetition of a repeated stage, with their number.
    Repeat(u64),
    /// A record key.
    Key,
}

/// Finds the stage and measurement (or output) that `select` names.
pub(super) fn choose<'d, 'a>(
    cx: &Cx<'_>,
    stages: &Stages<'d, 'a>,
    node: &Node,
    exact_bytes: bool,
) -> Option<Chosen<'d, 'a>> {
    let text = node.text()?;
    let Some((stage, name)) = text.split_once('.').filter(|(stage, _)| stages.get(stage).is_some()) else {
        if let Some((stage, _)) =
            text.split_once('.').filter(|(stage, _)| near_stage(stages, stage).is_some())
        {
            cx.push(no_stage(stages.names(), stage, node.span.clone()));
            return None;
        }
        return bare(cx, stages, node, text, exact_bytes);
    };
    let draft = stages.get(stage)?;
    if name.is_empty() {
        let message = format!("`{text}` names no measurement");
        cx.push(
            Diagnostic::error("select", node.span.clone(), message).hint(format!("write `{stage}.NAME`")),
        );
        return None;
    }
    named(cx, stages, draft, name, node, exact_bytes)
}

fn named<'d, 'a>(
    cx: &Cx<'_>,
    stages: &Stages<'d, 'a>,
    draft: &'d Draft<'a>,
    name: &str,
    node: &Node,
    exact_bytes: bool,
) -> Option<Chosen<'d, 'a>> {
    let chosen = |of, keys, range| Chosen {
        draft,
        selection: Selection { stage: draft.name.clone(), of, filter: BTreeMap::new() },
        keys,
        range,
        repetitions: stages.repetitions,
    };
    if exact_bytes && draft.outputs.made.contains_key(name) {
        return Some(chosen(Selected::Output(name.to_owned()), Some(Vec::new()), None));
    }
    if let Some(writes) = written(draft, name) {
        return Some(chosen(Selected::Measurement(name.to_owned()), writes.keys.clone(), writes.range));
    }
    if draft.outputs.unknown {
        return None;
    }
    let stage = &draft.name;
    let known: Vec<&str> = draft.outputs.writes.iter().filter_map(|w| w.name.as_deref()).collect();
    let message = format!("the stage `{stage}` writes no measurement `{name}`");
    let hint = match draft.outputs.made.get(name) {
        Some(made) if made.measured => {
            format!(
                "`{name}` is the file; select a name in it: `{stage}.{}`",
                known.first().unwrap_or(&"NAME")
            )
        }
        Some(_) => format!("`{name}` is an output; only the rule `exact` compares outputs"),
        None if known.is_empty() => format!("list the files it writes them to: `measurements:` of `{stage}`"),
        None => did_you_mean(name, known.iter().copied())
            .unwrap_or_else(|| format!("it writes {}", listed(known.iter().copied()))),
    };
    cx.push(Diagnostic::error("select", node.span.clone(), message).hint(hint));
    None
}

/// What is known of a measurement: by its name, else through a file whose names are not listed.
fn written<'d>(draft: &'d Draft<'_>, name: &str) -> Option<&'d Writes> {
    let writes = &draft.outputs.writes;
    let exact = writes.iter().find(|w| w.name.as_deref() == Some(name));
    exact.or_else(|| writes.iter().find(|w| w.name.is_none()))
}

/// A bare name needs exactly one stage that writes it.
fn bare<'d, 'a>(
    cx: &Cx<'_>,
    stages: &Stages<'d, 'a>,
    node: &Node,
    name: &str,
    exact_bytes: bool,
) -> Option<Chosen<'d, 'a>> {
    let mut found = stages.writers(Some(name));
    if exact_bytes && found.is_empty() {
        found = stages.drafts.iter().filter(|d| d.outputs.made.contains_key(name)).collect();
    }
    if found.is_empty() {
        found = stages.writers(None);
    }
    match found.as_slice() {
        [draft] => named(cx, stages, draft, name, node, exact_bytes),
        [] => {
            if stages.drafts.iter().any(|d| d.outputs.unknown) {
                return None;
            }
            cx.push(nobody_writes(stages, node, name));
            None
        }
        several => {
            let all: Vec<String> = several.iter().map(|d| format!("{}.{name}", d.name)).collect();
            let message = format!("several stages write or may write `{name}`");
            let hint = format!("choose one: {}", listed(all.iter().map(String::as_str)));
            cx.push(Diagnostic::error("select", node.span.clone(), message).hint(hint));
            None
        }
    }
}

fn nobody_writes(stages: &Stages<'_, '_>, node: &Node, name: &str) -> Diagnostic {
    if let Some((stage, _)) = name.split_once('.')
        && near_stage(stages, stage).is_some()
    {
        return no_stage(stages.names(), stage, node.span.clone());
    }
    let known: Vec<&str> = stages
        .drafts
        .iter()
        .flat_map(|d| d.outputs.writes.iter().filter_map(|w| w.name.as_deref()))
        .take(500)
        .collect();
    let message = format!("no stage writes the measurement `{name}`");
    let near = did_you_mean(name, known.iter().copied());
    let hint = near.unwrap_or_else(|| match known.is_empty() {
        true => "give a stage `measurements:`".to_owned(),
        false => format!("known measurements are {}", listed(known.iter().copied())),
    });
    Diagnostic::error("select", node.span.clone(), message).hint(hint)
}

impl Chosen<'_, '_> {
    /// What a dimension is for this selection; complains where it is nothing.
    pub(super) fn dimension<'x>(
        &self,
        cx: &Cx<'_>,
        axes: &'x Axes,
        name: &str,
        at: Range<usize>,
    ) -> Option<Dimension<'x>> {
        if name == REPEAT && self.draft.scope.contains(REPEAT) {
            return Some(Dimension::Repeat(self.repetitions));
        }
        let (axis, attribute) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
        if let Some(known) = axes.get(axis) {
            if let Some(missing) = known.real.iter().find(|real| !self.draft.scope.contains(*real)) {
                let message = format!("`{}` does not depend on the axis `{missing}`", self.draft.name);
                let scope = self.draft.scope.iter().map(String::as_str);
                let hint = format!("it depends on {}", listed(scope));
                cx.push(Diagnostic::error("dimension", at, message).hint(hint));
                return None;
            }
            if known.axis.is_derived() {
                cx.used_derived.borrow_mut().insert(axis.to_owned());
            }
            return match attribute {
                None => Some(Dimension::Axis(known)),
                Some(word) if known.has_attribute(word) => Some(Dimension::Attribute(known, word.to_owned())),
                Some(word) => {
                    let message = format!("the axis `{axis}` has no attribute `{word}`");
                    let near = did_you_mean(word, known.attributes());
                    cx.push(Diagnostic::error("unknown-attribute", at, message).maybe_hint(near));
                    None
                }
            };
        }
        match &self.keys {
            Some(keys) if !keys.iter().any(|key| key == name) => {
                let scope = self.draft.scope.iter().chain(keys).map(String::as_str);
                let message = format!("`{name}` is neither an axis nor a record key of what is selected");
                let near = did_you_mean(name, scope.clone());
                let all = format!("it varies along {}", listed(scope));
                cx.push(Diagnostic::error("dimension", at, message).hint(near.unwrap_or(all)));
                None
            }
            _ => Some(Dimension::Key),
        }
    }

    /// Reads `where` into the selection's filter.
    pub(super) fn filter(&mut self, cx: &Cx<'_>, axes: &Axes, node: &Node) {
        for entry in node.entries() {
            let Some(dimension) = self.dimension(cx, axes, &entry.key, entry.at.clone()) else { continue };
            let mut values = Vec::new();
            for item in entry.value.one_or_more() {
                let Some(value) = item.value().filter(|_| item.scalar().is_some()) else { continue };
                values.extend(self.own_value(cx, axes, (&entry.key, &dimension), &value, item));
            }
            if entry.value.items().is_some_and(<[_]>::is_empty) {
                let message = format!("`{}` lists no value, so nothing is selected", entry.key);
                cx.push(Diagnostic::error("select", entry.value.span.clone(), message));
            }
            if values.is_empty() {
                continue;
            }
            values.sort_by(Value::order);
            values.dedup();
            self.selection.filter.insert(entry.key.clone(), values);
        }
    }

    /// The dimension's own value that a written one means, where its values are known; complains where it
    /// has none.
    pub(super) fn own_value(
        &self,
        cx: &Cx<'_>,
        axes: &Axes,
        (name, dimension): (&str, &Dimension<'_>),
        value: &Value,
        item: &Node,
    ) -> Option<Value> {
        match dimension {
            Dimension::Key => Some(value.clone()),
            Dimension::Repeat(count) => {
                let fits = value.as_i64().and_then(|i| u64::try_from(i).ok()).is_some_and(|i| i < *count);
                if !fits {
                    let message = format!("there is no repetition `{value}`; they count from 0");
                    cx.push(Diagnostic::error("unknown-value", item.span.clone(), message));
                }
                fits.then(|| value.clone())
            }
            Dimension::Axis(_) | Dimension::Attribute(..) => {
                exclude::own_value(cx, axes, name, value, item.span.clone(), item.span.clone())
            }
        }
    }

    /// How many points of an axis the filter leaves.
    pub(super) fn left(&self, known: &Known) -> u64 {
        let name = &known.axis.name;
        if let Some(values) = self.selection.filter.get(name) {
            return values.len() as u64;
        }
        let prefix = format!("{name}.");
        let mut left = known.len();
        for (dimension, values) in &self.selection.filter {
            let Some(attribute) = dimension.strip_prefix(&prefix) else { continue };
            let counted = known.attribute(attribute);
            let kept = values.iter().filter_map(|value| counted.get(value)).map(|(_, n)| n).sum();
            left = left.min(kept);
        }
        left
    }

    /// The axes and known record keys that nothing has dealt with yet, given the dimensions that are used.
    pub(super) fn leftover(&self, axes: &Axes, used: &BTreeSet<String>) -> Vec<String> {
        let mut open = Vec::new();
        let single = |name: &str| match axes.get(name) {
            Some(known) => self.left(known) <= 1,
            None => self.selection.filter.get(name).is_some_and(|values| values.len() == 1),
        };
        for name in &self.draft.scope {
            let fixed = single(name);
            if !fixed && !used.contains(name) && !distinguished(axes, name, used) {
                open.push(name.clone());
            }
        }
        for key in self.keys.iter().flatten() {
            let fixed = self.selection.filter.get(key).is_some_and(|values| values.len() == 1);
            if !fixed && !used.contains(key) {
                open.push(key.clone());
            }
        }
        open
    }
}

/// Whether a used attribute or derived axis tells every point of an axis apart.
fn distinguished(axes: &Axes, name: &str, used: &BTreeSet<String>) -> bool {
    let prefix = format!("{name}.");
    let by_attribute = used.iter().filter_map(|u| u.strip_prefix(&prefix)).any(|attribute| {
        axes.get(name).is_some_and(|known| known.attribute(attribute).values.iter().all(|(_, n)| *n == 1))
    });
    let derived = |u: &String| axes.get(u).is_some_and(|k| k.axis.is_derived() && k.real.contains(name));
    by_attribute || used.iter().any(derived)
}
