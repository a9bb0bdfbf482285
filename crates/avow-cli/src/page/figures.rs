//! Which plots a claim and a measurement get.

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::judge::Verdict;
use avow_audit::measure::table::{Row, Table};
use avow_model::axis::Points;
use avow_model::claim::{Bound, Claim, Part, Rule, Selected, Selection};
use avow_model::plan::Plan;
use avow_model::value::Value;
use avow_report::Plot;
use avow_report::document::Figure;
use avow_report::plot::{Forest, Group, Line, Null, Series, Strip, Trend};

/// Groups that one strip can hold and still be read.
const GROUPS: usize = 16;
/// Series that can be told apart.
const SERIES: usize = 6;
/// Lines of one forest.
const LINES: usize = 60;
/// Members of a claim whose null is drawn.
const NULLS: usize = 6;

/// The plots of a claim: its intervals, what its tests compare the estimates with, and every value of each measurement
/// that it selects.
pub(super) fn of_claim(claim: &Claim, verdicts: &[&Verdict], table: &Table) -> Vec<Figure> {
    let mut figures: Vec<Figure> = intervals(claim, verdicts).into_iter().collect();
    figures.extend(verdicts.iter().filter_map(|verdict| null(verdict)).take(NULLS));
    let mut seen = BTreeSet::new();
    for part in claim.test.parts() {
        for selection in part.selections() {
            if seen.insert(format!("{selection:?}")) {
                figures.extend(values(part, selection, verdicts, table));
            }
        }
    }
    figures
}

/// Measurements that no claim selects, a plot each, with their names.
pub(super) fn unclaimed(plan: &Plan, table: &Table) -> Vec<(String, Figure)> {
    let selected = |stage: &str, name: &str| {
        let parts = plan.claims.iter().flat_map(|claim| claim.test.parts());
        parts.flat_map(Part::selections).any(|s| s.stage == stage && is_named(&s.of, name))
    };
    plotted(plan, table, |stage, name| !selected(stage, name))
}

/// The measurement that is called so, `name` or `stage.name`.
pub(super) fn measured(plan: &Plan, table: &Table, of: &str) -> Vec<(String, Figure)> {
    plotted(plan, table, |stage, name| of == name || of == format!("{stage}.{name}"))
}

/// A plot of each wanted measurement, with its name.
fn plotted(plan: &Plan, table: &Table, wanted: impl Fn(&str, &str) -> bool) -> Vec<(String, Figure)> {
    let mut named: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
    for row in &table.rows {
        named.entry((&row.stage, &row.name)).or_default().push(row);
    }
    let replicates = replicates(plan);
    let plot = |((stage, name), rows): ((&str, &str), Vec<&Row>)| {
        wanted(stage, name).then(|| (format!("{stage}.{name}"), strip(name, &rows, &replicates)))
    };
    named.into_iter().filter_map(plot).collect()
}

/// The dimensions whose values are repetitions: seeds, and what any claim counts units by.
fn replicates(plan: &Plan) -> BTreeSet<&str> {
    let parts = plan.claims.iter().flat_map(|claim| claim.test.parts());
    let counted = parts.filter_map(|part| part.replicate.as_deref());
    let seeds = plan.axes.iter().filter(|axis| matches!(axis.points, Points::Seeds { .. }));
    counted.chain(seeds.map(|axis| axis.name.as_str())).collect()
}

fn is_named(selected: &Selected, name: &str) -> bool {
    matches!(selected, Selected::Measurement(measured) if measured == name)
}

/// The intervals of a claim's verdicts, above one another.
fn intervals(claim: &Claim, verdicts: &[&Verdict]) -> Option<Figure> {
    let line = |verdict: &&&Verdict| {
        let estimate = verdict.estimate?;
        let at: Vec<String> = verdict.member.iter().map(|(_, value)| value.to_string()).collect();
        let name = if at.is_empty() { verdict.claim.clone() } else { at.join(", ") };
        Some(Line { name, estimate, interval: verdict.interval.map(|i| (i.low, i.high)) })
    };
    let lines: Vec<Line> = verdicts.iter().filter_map(|v| line(&v)).collect();
    if lines.iter().all(|line| line.interval.is_none()) {
        return None;
    }
    let (all, shown) = (lines.len(), lines.len().min(LINES));
    let level = verdicts.iter().find_map(|v| v.interval).map_or(0.0, |interval| interval.level * 100.0);
    let bounds = claim.test.parts().into_iter().flat_map(|part| bounds(&part.rule)).collect();
    let more = if shown < all { format!("; the first {shown} of {all}") } else { String::new() };
    let caption = format!(
        "Estimates (dots) with {} % intervals, simultaneous over the family; dashed: the registered bounds{more}.",
        crate::words::number((level * 100.0).round() / 100.0)
    );
    let lines = lines.into_iter().take(LINES).collect();
    Some(Figure { plot: Plot::Forest(Forest { scale: "estimate".to_owned(), bounds, lines }), caption })
}

/// What a verdict's test compares the estimate with.
fn null(verdict: &Verdict) -> Option<Figure> {
    let reference = verdict.behind.reference()?;
    let how = match (reference.draws, verdict.method.unwrap_or_default()) {
        (Some(draws), method) => format!("{method}, from {draws} random draws"),
        (None, method) => method.to_owned(),
    };
    let at: Vec<String> = verdict.member.iter().map(|(key, value)| format!("{key} {value}")).collect();
    let at = if at.is_empty() { String::new() } else { format!(" at {}", at.join(", ")) };
    let caption = format!(
        "Null against observed{at}: how the estimate would be spread if {} were true ({how}), dashed there; the \
         triangle marks what was observed{}.",
        crate::words::number(reference.bound),
        verdict.q.map(|q| format!(", q = {}", crate::words::number(q))).unwrap_or_default(),
    );
    let plot = Plot::Null(Null {
        scale: "estimate".to_owned(),
        ends: (reference.low, reference.high),
        shares: reference.shares,
        bound: reference.bound,
        observed: reference.observed,
    });
    Some(Figure { plot, caption })
}

/// The values at which a rule's regions end.
fn bounds(rule: &Rule) -> Vec<f64> {
    if let Rule::Equivalence { about, margin, .. } = rule {
        return vec![about - margin, about + margin];
    }
    let Some(bound) = rule.bound() else { return Vec::new() };
    match bound {
        Bound::Above { bound, refute } | Bound::Below { bound, refute } if bound == refute => vec![bound],
        Bound::Above { bound, refute } | Bound::Below { bound, refute } => vec![bound, refute],
        Bound::Between { low, high } => vec![low, high],
    }
}

/// Every value that a part selects.
fn values(part: &Part, selection: &Selection, verdicts: &[&Verdict], table: &Table) -> Option<Figure> {
    let Selected::Measurement(name) = &selection.of else { return None };
    let matches = |row: &&Row| {
        row.stage == selection.stage
            && row.name == *name
            && selection.filter.iter().all(|(key, allowed)| {
                row.axes.get(key).or_else(|| row.keys.get(key)).is_none_or(|value| allowed.contains(value))
            })
    };
    let rows: Vec<&Row> = table.rows.iter().filter(matches).collect();
    if rows.is_empty() {
        return None;
    }
    let hidden: BTreeSet<&str> = part.replicate.iter().map(String::as_str).collect();
    match part.rule.along() {
        Some(axis) if rows.iter().all(|row| at(row, axis).and_then(Value::as_f64).is_some()) => {
            let formula = formula(&part.rule, axis, verdicts);
            Some(trend((name, axis), &rows, &hidden, formula))
        }
        _ => Some(strip(name, &rows, &hidden)),
    }
}

fn at<'r>(row: &'r Row, dimension: &str) -> Option<&'r Value> {
    row.axes.get(dimension).or_else(|| row.keys.get(dimension))
}

/// The dimensions by which rows differ, the hidden ones apart, each with its number of values, fewest first.
fn dimensions<'r>(rows: &[&'r Row], hidden: &BTreeSet<&str>) -> Vec<&'r str> {
    let mut distinct: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        for (name, value) in
            row.axes.iter().chain(&row.keys).filter(|(name, _)| !hidden.contains(name.as_str()))
        {
            distinct.entry(name).or_default().insert(value.to_string());
        }
    }
    let mut several: Vec<(usize, &str)> = distinct
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(name, v)| (v.len(), name))
        .collect();
    several.sort_unstable();
    several.into_iter().map(|(_, name)| name).collect()
}

/// Values by the dimensions that fit: those with the fewest values first, the rest pooled.
fn strip(name: &str, rows: &[&Row], hidden: &BTreeSet<&str>) -> Figure {
    let mut by: Vec<&str> = Vec::new();
    let mut groups = grouped(rows, &by);
    for dimension in dimensions(rows, hidden) {
        let finer = grouped(rows, &[by.clone(), vec![dimension]].concat());
        if finer.len() > GROUPS {
            break;
        }
        by.push(dimension);
        groups = finer;
    }
    let grouping = by.join(", ");
    let caption = format!(
        "Every value of {name} ({} values{}); the bar is the mean of its group.",
        rows.len(),
        if grouping.is_empty() { String::new() } else { format!(", by {grouping}") }
    );
    let groups = groups.into_iter().map(|(_, (name, values))| Group { name, values }).collect();
    Figure {
        plot: Plot::Strip(Strip { measure: name.to_owned(), grouping, groups, bounds: Vec::new() }),
        caption,
    }
}

/// What a group has in common, its name, and its values.
type Grouped = (Vec<Value>, (String, Vec<f64>));

/// Values by group, in the order of the groups' values: numbers as numbers.
fn grouped(rows: &[&Row], by: &[&str]) -> Vec<Grouped> {
    let mut groups: Vec<Grouped> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let key: Vec<Value> = by.iter().filter_map(|dimension| at(row, dimension).cloned()).collect();
        let name = key.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        let place = *places.entry(name.clone()).or_insert_with(|| {
            groups.push((key, (name, Vec::new())));
            groups.len() - 1
        });
        groups[place].1.1.push(row.value);
    }
    let order = |a: &[Value], b: &[Value]| {
        a.iter().zip(b).map(|(x, y)| x.order(y)).find(|o| o.is_ne()).unwrap_or(a.len().cmp(&b.len()))
    };
    groups.sort_by(|(a, _), (b, _)| order(a, b));
    groups
}

/// What the formula of a claim about a curve says at each place, as the verdict has it.
fn formula(rule: &Rule, axis: &str, verdicts: &[&Verdict]) -> Vec<(f64, f64)> {
    if !matches!(rule, Rule::Curve { .. }) {
        return Vec::new();
    }
    let pieces = verdicts.iter().flat_map(|verdict| &verdict.parts);
    let point = |piece: &avow_audit::judge::Piece| {
        let at = piece.at.iter().find(|(name, _)| name == axis)?.1.as_f64()?;
        Some((at, piece.expected?))
    };
    let mut points: Vec<(f64, f64)> = pieces.filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup();
    points
}

fn trend(
    (name, axis): (&str, &str),
    rows: &[&Row],
    hidden: &BTreeSet<&str>,
    formula: Vec<(f64, f64)>,
) -> Figure {
    let mut hidden = hidden.clone();
    hidden.insert(axis);
    let by = dimensions(rows, &hidden).into_iter().next();
    let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let key = by.and_then(|by| at(row, by)).map(|value| format!("{} {value}", by.unwrap_or_default()));
        let Some(x) = at(row, axis).and_then(Value::as_f64) else { continue };
        series.entry(key.unwrap_or_default()).or_default().push((x, row.value));
    }
    if series.len() > SERIES {
        let pooled = series.into_values().flatten().collect();
        series = BTreeMap::from([(String::new(), pooled)]);
    }
    let series = series.into_iter().map(|(name, points)| Series { name, points }).collect();
    let dashed = if formula.is_empty() { "" } else { ", dashed: the registered formula" };
    let caption = format!(
        "Every value of {name} along {axis} ({} values); the line joins the means{dashed}.",
        rows.len()
    );
    let (measure, along) = (name.to_owned(), axis.to_owned());
    Figure { plot: Plot::Trend(Trend { measure, along, series, formula }), caption }
}
