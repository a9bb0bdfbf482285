//! A stage that uses a built-in operation, against the operation's signature.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use avow_model::op::{OpSignature, Parameter, ParameterType};
use avow_model::plan::Program;
use avow_model::template::Template;
use avow_model::value::Value;

use super::Cx;
use super::axes::Axes;
use super::reference::{self, Owner};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::{Entry, Node};

/// The signature that `uses` names.
pub(super) fn find<'a>(cx: &Cx<'a>, stage: &Entry) -> Option<&'a OpSignature> {
    let ops: &'a [OpSignature] = cx.ops;
    let node = stage.value.get("uses")?;
    let name = node.text()?;
    let found = ops.iter().find(|op| op.name == name);
    if found.is_none() {
        let message = format!("there is no operation `{name}`");
        let names = || ops.iter().map(|op| op.name);
        let tail = |op: &str| op.rsplit('/').next() == name.rsplit('/').next();
        let near = did_you_mean(name, names())
            .or_else(|| names().find(|op| tail(op)).map(|op| format!("did you mean `{op}`?")));
        let hint = near.unwrap_or_else(|| "`avow op` lists the operations".to_owned());
        cx.push(Diagnostic::error("unknown-operation", node.span.clone(), message).hint(hint));
    }
    found
}

/// The text a parameter has, where it is one text known beforehand: as written, through a parameter of the
/// spec, or by default.
pub(super) fn text(cx: &Cx<'_>, stage: &Entry, op: &OpSignature, name: &str) -> Option<String> {
    let written = stage.value.get("with").and_then(|with| with.get(name)).map(|node| node.value());
    let value = match written {
        Some(value) => value?,
        None => op.parameters.iter().find(|p| p.name == name)?.default.clone()?,
    };
    known(cx, &value)?.as_text().map(str::to_owned)
}

/// A value with references to parameters of the spec filled in; `None` where it depends on an axis.
fn known(cx: &Cx<'_>, value: &Value) -> Option<Value> {
    let Value::Text(text) = value else { return Some(value.clone()) };
    let template = Template::parse(text).ok()?;
    let lookup = |path: &[String]| match path {
        [root, name] if root == "params" => cx.params.get(name).cloned(),
        _ => None,
    };
    match template.sole_reference() {
        Some(path) => lookup(path),
        None => template.fill(|path| lookup(path).map(|v| v.to_string()).ok_or(())).ok().map(Value::Text),
    }
}

/// Checks `with` and fills in defaults.
pub(super) fn program(
    cx: &Cx<'_>,
    axes: &Axes,
    stage: &Entry,
    op: &OpSignature,
    owner: Owner<'_>,
    uses: &mut BTreeSet<String>,
) -> Option<Program> {
    let entries = stage.value.get("with").map(|n| n.entries()).unwrap_or_default();
    let mut with: BTreeMap<String, Value> = BTreeMap::new();
    for entry in entries {
        let Some(parameter) = op.parameters.iter().find(|p| p.name == entry.key) else {
            let message = format!("`{}` has no parameter `{}`", op.name, entry.key);
            let names = || op.parameters.iter().map(|p| p.name);
            let near = did_you_mean(&entry.key, names());
            let all = format!("it has {}", listed(names()));
            let diagnostic = Diagnostic::error("unknown-parameter", entry.at.clone(), message);
            cx.push(diagnostic.hint(near.unwrap_or(all)));
            continue;
        };
        references(cx, axes, &entry.value, owner, uses);
        if let Some(value) = entry.value.value() {
            accepted(cx, axes, parameter, &value, &entry.value);
            with.insert(entry.key.clone(), value);
        }
    }
    for parameter in &op.parameters {
        if entries.iter().any(|e| e.key == parameter.name) {
            continue;
        }
        match &parameter.default {
            Some(value) => drop(with.insert(parameter.name.to_owned(), value.clone())),
            None => {
                let at = stage.value.entry("with").or_else(|| stage.value.entry("uses"));
                let at = at.map_or(stage.at.clone(), |entry| entry.at.clone());
                let message = format!("`{}` needs `with: {}`: {}", op.name, parameter.name, parameter.about);
                cx.push(Diagnostic::error("missing-key", at, message));
            }
        }
    }
    Some(Program::Op { name: op.name.to_owned(), identity: op.identity.to_owned(), with })
}

/// References may stand in any text inside a value.
fn references(cx: &Cx<'_>, axes: &Axes, node: &Node, owner: Owner<'_>, uses: &mut BTreeSet<String>) {
    for entry in node.entries() {
        references(cx, axes, &entry.value, owner, uses);
    }
    for item in node.items().unwrap_or_default() {
        references(cx, axes, item, owner, uses);
    }
    if node.scalar().is_some() {
        reference::template(cx, axes, node, owner, uses);
    }
}

/// Checks every value that a parameter may take: one, or those of the axis it refers to (the first few).
fn accepted(cx: &Cx<'_>, axes: &Axes, parameter: &Parameter, value: &Value, node: &Node) {
    const LOOKED_AT: u64 = 100;
    let path = value.as_text().and_then(|text| Template::parse(text).ok());
    let path: Vec<String> = path.and_then(|t| t.sole_reference().map(<[String]>::to_vec)).unwrap_or_default();
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let candidates: Vec<Value> = match words.as_slice() {
        ["axes", axis, rest @ ..] => {
            let Some(known) = axes.get(axis) else { return };
            let one = |i| match rest {
                [] => known.axis.value(i),
                [attribute] => known.axis.attribute(i, attribute),
                _ => None,
            };
            (0..known.len().min(LOOKED_AT)).filter_map(one).collect()
        }
        ["params", name] => cx.params.get(*name).cloned().into_iter().collect(),
        [] if value.as_text().is_some_and(|text| text.contains("${")) => return,
        [] => vec![value.clone()],
        _ => return,
    };
    if let Some(wrong) = candidates.iter().find(|candidate| !fits(&parameter.accepts, candidate)) {
        let message =
            format!("`{}` takes {}, not `{wrong}`", parameter.name, expectation(&parameter.accepts));
        let near = match (&parameter.accepts, wrong.as_text()) {
            (ParameterType::Choice(words), Some(text)) => did_you_mean(text, words.iter().copied()),
            _ => None,
        };
        cx.push(Diagnostic::error("parameter", node.span.clone(), message).maybe_hint(near));
    }
}

fn fits(accepts: &ParameterType, value: &Value) -> bool {
    match accepts {
        ParameterType::Int { low, high } => value.as_i64().is_some_and(|i| (*low..=*high).contains(&i)),
        ParameterType::Number { low, high } => value.as_f64().is_some_and(|x| *low <= x && x <= *high),
        ParameterType::Bool => matches!(value, Value::Bool(_)),
        ParameterType::Choice(words) => value.as_text().is_some_and(|text| words.contains(&text)),
        ParameterType::Ints { low, high } => match value {
            Value::List(items) => {
                items.iter().all(|item| item.as_i64().is_some_and(|i| (*low..=*high).contains(&i)))
            }
            _ => false,
        },
        ParameterType::Seed => value.as_i64().is_some_and(|i| (0..=0x7fff_ffff).contains(&i)),
    }
}

/// What a parameter accepts, in words.
pub(crate) fn expectation(accepts: &ParameterType) -> String {
    match accepts {
        ParameterType::Int { low, high } => format!("an integer from {low} to {high}"),
        ParameterType::Number { low, high } => format!("a number from {low} to {high}"),
        ParameterType::Bool => "`true` or `false`".to_owned(),
        ParameterType::Choice(words) => listed(words.iter().copied()).replace(" and ", " or "),
        ParameterType::Ints { low, high } => format!("a list of integers from {low} to {high}"),
        ParameterType::Seed => "a seed, an integer from 0 to 2147483647".to_owned(),
    }
}

/// Checks `inputs` against the operation's ports.
pub(super) fn ports(cx: &Cx<'_>, stage: &Entry, op: &OpSignature) {
    let entries = stage.value.get("inputs").map(|n| n.entries()).unwrap_or_default();
    let names = || op.inputs.iter().map(|port| port.name);
    for entry in entries.iter().filter(|e| !names().any(|name| name == e.key)) {
        let message = format!("`{}` reads no input `{}`", op.name, entry.key);
        let near = did_you_mean(&entry.key, names());
        let all = format!("it reads {}", listed(names()));
        cx.push(Diagnostic::error("unknown-name", entry.at.clone(), message).hint(near.unwrap_or(all)));
    }
    let missing =
        op.inputs.iter().filter(|port| !port.optional && !entries.iter().any(|e| e.key == port.name));
    for port in missing {
        let at: Range<usize> = stage.value.entry("inputs").map_or(stage.at.clone(), |entry| entry.at.clone());
        let message = format!("`{}` needs the input `{}`: {}", op.name, port.name, port.about);
        cx.push(Diagnostic::error("missing-key", at, message));
    }
}
