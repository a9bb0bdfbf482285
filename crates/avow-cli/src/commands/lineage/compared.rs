//! `--diff A B`.

use avow_audit::Audit;
use avow_audit::lineage::{Difference, Lineage, Side, Thing, WorkChange, difference};
use avow_model::expand::Member;
use serde_json::json;

use super::asked::{self, Opened};
use crate::args::{self, LineageForm};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// Says in what two things differ by what they rest on.
pub(super) fn compared(
    args: &args::Lineage,
    a: &str,
    b: &str,
    form: LineageForm,
    output: &Output,
) -> Result<Exit, Failure> {
    let compared = asked::with(args, a, output, |first, one, found| {
        let left = side(first, one, &found, a)?;
        let compared = asked::with(args, b, output, |second, other, found| {
            let right = side(second, other, &found, b)?;
            let names = (one.evidence().label(left.member), other.evidence().label(right.member));
            let difference = difference(left, right).map_err(failure::audit)?;
            if form == LineageForm::Json {
                output.json(&json!({
                    "a": names.0, "b": names.1, "same": difference.is_none(), "difference": difference,
                }))?;
            } else {
                lines(&names, &difference).into_iter().try_for_each(|line| output.data(line))?;
            }
            Ok(Exit::Done)
        })?;
        compared.ok_or_else(|| asked::nothing(b))
    })?;
    compared.ok_or_else(|| asked::nothing(a))
}

fn side<'a>(
    opened: &'a Opened,
    audit: &'a Audit<'a>,
    found: &Lineage,
    written: &str,
) -> Result<Side<'a>, Failure> {
    let evidence = audit.evidence();
    let labels = members(found);
    let one = |label: &String| evidence.members().map(|m| m.member).find(|m| evidence.label(*m) == *label);
    let found: Vec<Member> = labels.iter().filter_map(one).collect();
    match found.as_slice() {
        [member] => Ok(Side { evidence, source: opened.reading.source(), member: *member }),
        several => Err(Failure::new(
            Exit::Usage,
            format!("`{written}` is of {} members, and two are compared one by one", several.len()),
        )
        .hint("name all axes, e.g. `train.accuracy[seed=3,wd=0.1]`")),
    }
}

/// The members of which the things asked for are.
fn members(found: &Lineage) -> Vec<String> {
    let mut labels = Vec::new();
    let mut open: Vec<&String> = found.roots.iter().collect();
    while let Some(node) = open.pop().and_then(|id| found.nodes.get(id)) {
        match &node.what {
            Thing::Member { label, .. } | Thing::Number { member: label, .. } => labels.push(label.clone()),
            Thing::Artifact { .. } => open.extend(node.on.iter().map(|edge| &edge.to)),
            _ => {}
        }
    }
    labels.sort();
    labels.dedup();
    labels
}

fn lines((a, b): &(String, String), difference: &Difference) -> Vec<String> {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let axes: Vec<String> = difference
        .axes
        .iter()
        .map(|axis| format!("`{}`: {} → {}", axis.axis, or_none(&axis.a), or_none(&axis.b)))
        .collect();
    let mut lines = vec![match (axes.is_empty(), difference.work.is_empty()) {
        (true, true) => format!("{a} and {b} are the same work"),
        (false, true) => format!("{a} and {b} are equal except {}", axes.join(", ")),
        (true, false) => format!("{a} and {b} differ:"),
        (false, false) => format!("{a} and {b} differ in {}, and:", axes.join(", ")),
    }];
    lines.extend(difference.work.iter().map(|change| format!("  {}", words_of(change, (a, b)))));
    if !difference.through.is_empty() {
        let stages: Vec<&str> = difference.through.iter().map(String::as_str).collect();
        lines.push(format!("  through {}", stages.join(", ")));
    }
    for one in &difference.circumstances {
        lines.push(format!("  beside the work, {}: {} → {}", one.what, or_none(&one.a), or_none(&one.b)));
    }
    lines
}

fn words_of(change: &WorkChange, (a, b): (&str, &str)) -> String {
    let of = match (&change.members.0, &change.members.1) {
        (x, y) if x == a && y == b => String::new(),
        (x, y) if x == y => format!("{x}: "),
        (x, y) => format!("{x}, {y}: "),
    };
    let name = change.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{of}{}{name}: {} → {}", change.part, or_none(&change.a), or_none(&change.b))
}
