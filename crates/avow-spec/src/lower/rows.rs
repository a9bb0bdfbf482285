//! Axes from rows: tables, explicit cells, axes that move together, pairs.
//!
//! None of them is a form of its own in a plan. A table is a mapping axis with what it held, a pair axis a mapping
//! axis of two values, and combinations that do not exist are exclusions: so the plan stays one symbolic product
//! with predicates, and whatever works on it works here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use avow_model::axis::{Axis, NamedPoint, Points};
use avow_model::expression::Expression;
use avow_model::value::Value;

use super::axes::{Axes, Group, Known, key, no_axis};
use super::exclude::own_value;
use super::{Cx, limits};
use crate::diagnostic::Diagnostic;
use crate::keys::Names;
use crate::scalar::{Meaning, meaning};
use crate::tree::{Entry, Node};

/// Most combinations of one group: each is a predicate that every cell is held against.
const ROWS: usize = 200;

/// The rows of a table: the first column holds the values, the others are attributes.
pub(super) fn table(cx: &Cx<'_>, entry: &Entry, from: &Node) -> Option<Points> {
    let (path, folder) = super::outputs::project_path(cx, from, from.text()?)?;
    match points_of(cx, &path, folder) {
        Ok(points) => Some(points),
        Err((message, hint)) => {
            let message = format!("the axis `{}` cannot be read: {message}", entry.key);
            let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
            cx.push(Diagnostic::error("table", from.span.clone(), message).maybe_hint(hint));
            None
        }
    }
}

/// What is wrong with a table, and what to do.
type Wrong = (String, &'static str);

fn points_of(cx: &Cx<'_>, path: &str, folder: bool) -> Result<Points, Wrong> {
    let tabs = path.to_ascii_lowercase().ends_with(".tsv");
    if folder || !(tabs || path.to_ascii_lowercase().ends_with(".csv")) {
        return Err((format!("`{path}` is no table"), "an axis is read from a `.csv` or `.tsv` file"));
    }
    let missing = || (format!("there is no file `{path}`"), "the path is relative to the project's root");
    let text = cx.world.text(path).ok_or_else(missing)?;
    let (header, rows) = parsed(text.strip_prefix('\u{feff}').unwrap_or(&text), path, tabs)?;
    if header.len() == 1 {
        return Ok(Points::List(rows.into_iter().map(|row| typed(&row[0])).collect()));
    }
    let point = |row: Vec<String>| {
        let cells = header.iter().skip(1).cloned().zip(row[1..].iter().map(|cell| typed(cell)));
        NamedPoint { name: row[0].clone(), attributes: cells.collect() }
    };
    let mut points: Vec<NamedPoint> = rows.into_iter().map(point).collect();
    points.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Points::Named(points))
}

type Parsed = (Vec<String>, Vec<Vec<String>>);

/// Header and rows, each value once.
fn parsed(text: &str, path: &str, tabs: bool) -> Result<Parsed, Wrong> {
    let syntax = |error: csv::Error| (format!("`{path}` does not parse: {error}"), "");
    let separator = if tabs { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_reader(text.as_bytes());
    let header: Vec<String> =
        reader.headers().map_err(syntax)?.iter().map(|name| name.trim().to_owned()).collect();
    if let Some(bad) = header.iter().skip(1).find(|name| !Names::Variable.allows(name)) {
        let hint = "columns after the first are attributes: lower-case letters, digits and `_`";
        return Err((
            format!("the column `{}` of `{path}` cannot be an attribute", bad.escape_debug()),
            hint,
        ));
    }
    if header.iter().skip(1).collect::<BTreeSet<_>>().len() + 1 < header.len() {
        return Err((format!("two columns of `{path}` have one name"), ""));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for record in reader.records() {
        rows.push(record.map_err(syntax)?.iter().map(|cell| cell.trim().to_owned()).collect());
        if rows.len() > limits::LISTED {
            return Err((format!("`{path}` has more than the {} rows an axis may have", limits::LISTED), ""));
        }
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for row in &rows {
        if row[0].is_empty() || !Names::AxisValue.allows(&row[0]) {
            return Err((format!("`{}` cannot be a value of an axis", row[0].escape_debug()), ""));
        }
        if !seen.insert(&row[0]) {
            return Err((format!("the value `{}` stands twice in `{path}`", row[0].escape_debug()), ""));
        }
    }
    if rows.is_empty() { Err((format!("`{path}` has no row"), "")) } else { Ok((header, rows)) }
}

/// A cell as YAML would read it, where that is a number or a truth; otherwise text.
fn typed(cell: &str) -> Value {
    match meaning(cell) {
        Meaning::Int(i) => Value::Int(i),
        Meaning::Float(x) => Value::Float(x),
        Meaning::Bool(b) => Value::Bool(b),
        _ => Value::Text(cell.to_owned()),
    }
}

/// Pair axes: every two values of another axis.
pub(super) fn pairs(cx: &Cx<'_>, entries: &[Entry], axes: &mut Axes) {
    for entry in entries {
        let Some(over) = entry.value.get("pairs") else { continue };
        let Some(name) = over.text() else { continue };
        let Some(known) = axes.get(name) else {
            no_axis(cx, axes, name, over.span.clone());
            continue;
        };
        let unordered = entry.value.get("unordered").and_then(|n| n.value()) != Some(Value::Bool(false));
        let wrong = |message: String, hint: &str| {
            cx.push(Diagnostic::error("pairs", over.span.clone(), message).hint(hint));
        };
        if known.axis.is_derived() || matches!(known.axis.points, Points::Seeds { fresh: true, .. }) {
            let hint = "pair an axis whose values are known before the registration";
            wrong(format!("the values of `{name}` are not known here"), hint);
            continue;
        }
        let n = known.len();
        let count = n.saturating_mul(n.saturating_sub(1)) / if unordered { 2 } else { 1 };
        if count == 0 || count > limits::LISTED as u64 {
            let hint = "two values make a pair; an axis has at most 100000 values";
            wrong(format!("`{name}` has {n} values, which make {count} pairs"), hint);
            continue;
        }
        let points = every_two(known, unordered);
        axes.add(Axis { name: entry.key.clone(), points }, entry.at.clone());
    }
}

fn every_two(known: &Known, unordered: bool) -> Points {
    let values: Vec<Value> = (0..known.len()).filter_map(|i| known.axis.value(i)).collect();
    let mut points = Vec::new();
    for (i, first) in values.iter().enumerate() {
        for (j, second) in values.iter().enumerate() {
            if i == j || (unordered && i > j) {
                continue;
            }
            let attributes = [("first", first), ("second", second)];
            let attributes = attributes.map(|(k, v)| (k.to_owned(), v.clone()));
            points.push(NamedPoint {
                name: format!("{first}+{second}"),
                attributes: BTreeMap::from(attributes),
            });
        }
    }
    points.sort_by(|a, b| a.name.cmp(&b.name));
    Points::Named(points)
}

/// Reads `zip` and `points`: the combinations that exist, and axes that only `points` name.
pub(super) fn declare(cx: &Cx<'_>, axes: &mut Axes) {
    points(cx, axes);
    zip(cx, axes);
}

fn too_many(cx: &Cx<'_>, at: Range<usize>, count: usize) {
    let message = format!("{count} combinations are more than the {ROWS} that can be listed");
    let hint = "make one axis of a table, `{from: cells.csv}`: its columns are attributes";
    cx.push(Diagnostic::error("too-large", at, message).hint(hint));
}

fn points(cx: &Cx<'_>, axes: &mut Axes) {
    let Some(node) = cx.spec.root().get("points") else { return };
    let items = node.items().unwrap_or_default();
    let Some(first) = items.first() else { return };
    if items.len() > ROWS {
        return too_many(cx, node.span.clone(), items.len());
    }
    let mut names: Vec<String> = first.entries().iter().map(|e| e.key.clone()).collect();
    names.sort();
    for item in items {
        let mut own: Vec<&str> = item.entries().iter().map(|e| e.key.as_str()).collect();
        own.sort_unstable();
        if !own.iter().eq(names.iter()) || own.is_empty() {
            let message = "all points name the same axes";
            let hint = format!("the first one names {}", names.join(", "));
            cx.push(Diagnostic::error("points", item.span.clone(), message).hint(hint));
            return;
        }
    }
    for name in &names {
        if axes.get(name).is_none() && Names::Variable.allows(name) && name != super::REPEAT {
            let mut values: Vec<Value> = Vec::new();
            for value in items.iter().filter_map(|item| item.get(name)?.value()) {
                if !values.iter().any(|v| key(v) == key(&value)) {
                    values.push(value);
                }
            }
            let at = first.entry(name).map_or(first.span.clone(), |e| e.at.clone());
            axes.add(Axis { name: name.clone(), points: Points::List(values) }, at);
        }
    }
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for item in items {
        let own = |name: &String| {
            let entry = item.entry(name)?;
            let (at, written) = (entry.value.span.clone(), entry.value.value()?);
            own_value(cx, axes, name, &written, at, entry.at.clone())
        };
        let Some(row) = names.iter().map(own).collect::<Option<Vec<Value>>>() else { return };
        if rows.contains(&row) {
            let message = "this point stands here twice";
            cx.push(Diagnostic::error("points", item.span.clone(), message).hint("leave one of them out"));
        }
        rows.push(row);
    }
    axes.groups.push(Group { names, rows, at: node.span.clone() });
}

fn zip(cx: &Cx<'_>, axes: &mut Axes) {
    let Some(node) = cx.spec.root().get("zip") else { return };
    let items = node.items().unwrap_or_default();
    let several = items.iter().any(|item| item.items().is_some());
    let groups: Vec<(Range<usize>, Vec<&Node>)> = match several {
        true => {
            items.iter().map(|i| (i.span.clone(), i.one_or_more().iter().map(|n| &**n).collect())).collect()
        }
        false => vec![(node.span.clone(), items.iter().map(|n| &**n).collect())],
    };
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (at, members) in groups {
        if let Some(group) = zipped(cx, axes, at, &members, &used) {
            used.extend(group.names.iter().cloned());
            axes.groups.push(group);
        }
    }
}

/// One group of axes that move together.
fn zipped(
    cx: &Cx<'_>,
    axes: &Axes,
    at: Range<usize>,
    members: &[&Node],
    used: &BTreeSet<String>,
) -> Option<Group> {
    let wrong = |message: String, hint: &str| {
        cx.push(Diagnostic::error("zip", at.clone(), message).hint(hint));
        None
    };
    let mut names: Vec<String> = members.iter().filter_map(|n| n.text().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    if names.len() < 2 || names.len() < members.len() {
        return wrong("a zip is of two or more different axes".to_owned(), "e.g. `zip: [width, rate]`");
    }
    if let Some(again) = names.iter().find(|name| used.contains(*name)) {
        return wrong(format!("`{again}` is in two groups"), "put all axes that move together into one");
    }
    let mut known = real(cx, axes, members)?;
    known.sort_by(|a, b| a.axis.name.cmp(&b.axis.name));
    if let Some(other) = known.iter().find(|one| one.len() != known[0].len()) {
        let (a, b) = (&known[0], other);
        let lengths = (a.len(), b.len());
        let message = format!(
            "`{}` has {} values and `{}` has {}: they cannot move together",
            a.axis.name, lengths.0, b.axis.name, lengths.1
        );
        return wrong(message, "give all axes of a zip the same number of values");
    }
    let count = usize::try_from(known[0].len()).unwrap_or(usize::MAX);
    if count > ROWS {
        too_many(cx, at, count);
        return None;
    }
    let row = |i: u64| known.iter().map(|one| one.axis.value(i)).collect::<Option<Vec<Value>>>();
    let rows = (0..count as u64).map(row).collect::<Option<Vec<_>>>()?;
    Some(Group { names, rows, at })
}

/// The axes that some nodes name; complains of those that are none, or have no values of their own.
fn real<'x>(cx: &Cx<'_>, axes: &'x Axes, members: &[&Node]) -> Option<Vec<&'x Known>> {
    let mut known: Vec<&Known> = Vec::new();
    for (name, node) in members.iter().filter_map(|n| Some((n.text()?, n))) {
        match axes.get(name) {
            None => no_axis(cx, axes, name, node.span.clone()),
            Some(one) if one.axis.is_derived() => {
                let hint = "a derived axis moves with those it is computed from anyhow";
                let message = format!("`{name}` is derived");
                cx.push(Diagnostic::error("zip", node.span.clone(), message).hint(hint));
            }
            Some(one) => known.push(one),
        }
    }
    (known.len() == members.len()).then_some(known)
}

/// The combinations that a group leaves out, as predicates. Each fixes the first axes to values that occur together
/// and forbids the next one every other value.
pub(super) fn absent(cx: &Cx<'_>, axes: &Axes, group: &Group) -> Vec<Expression> {
    let mut texts = Vec::new();
    let rows: Vec<&[Value]> = group.rows.iter().map(Vec::as_slice).collect();
    forbid(axes, &group.names, &rows, "", &mut texts);
    let mut found = Vec::new();
    for text in texts {
        match Expression::parse(&text) {
            Ok(expression) if text.len() <= limits::FORMULA => found.push(expression),
            _ => {
                let message = "the values of these combinations are too long to be a predicate";
                cx.push(Diagnostic::error("too-large", group.at.clone(), message));
                return Vec::new();
            }
        }
    }
    found
}

fn forbid(axes: &Axes, names: &[String], rows: &[&[Value]], prefix: &str, out: &mut Vec<String>) {
    let ([name, others @ ..], Some(known)) = (names, names.first().and_then(|name| axes.get(name))) else {
        return;
    };
    let mut here: Vec<Value> = Vec::new();
    for row in rows {
        if !here.contains(&row[0]) {
            here.push(row[0].clone());
        }
    }
    here.sort_by(Value::order);
    let path = format!("axes.{name}");
    let and = |more: &str| if prefix.is_empty() { more.to_owned() } else { format!("{prefix} && {more}") };
    if (here.len() as u64) < known.len() {
        let denied = and(&format!("!{}", Expression::equals(&path, &here)));
        if denied.len() <= limits::FORMULA {
            out.push(denied);
        } else {
            let all = (0..known.len()).filter_map(|i| known.axis.value(i));
            let mut rest: Vec<Value> = all.filter(|value| !here.contains(value)).collect();
            rest.sort_by(Value::order);
            out.extend(rest.chunks(10).map(|some| and(&Expression::equals(&path, some))));
        }
    }
    for value in &here {
        let below: Vec<&[Value]> = rows.iter().filter(|row| row[0] == *value).map(|row| &row[1..]).collect();
        forbid(axes, others, &below, &and(&Expression::equals(&path, std::slice::from_ref(value))), out);
    }
}
