//! Matched controls: that the arms of a contrast are equal but for what is named, proved from the plan.

use avow_model::claim::{Compare, Control};
use avow_model::expand;
use avow_model::matched::{self, Difference};
use avow_model::plan::Plan;

use super::Cx;
use super::axes::Axes;
use super::scope::Stages;
use super::selection::Chosen;
use super::stage::no_stage;
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::Node;

/// So many pairs of each control are compared here; the auditor compares all of them.
const LOOKED_AT: usize = 64;

/// Reads `control:` of a part.
pub(super) fn read(
    cx: &Cx<'_>,
    axes: &Axes,
    stages: &Stages<'_, '_>,
    part: &Node,
    chosen: &Chosen<'_, '_>,
    compare: Option<&Compare>,
) -> Option<Control> {
    let node = part.get("control").filter(|n| n.is_map())?;
    let of_node = node.get("of")?;
    let of = of_node.text()?;
    if stages.get(of).is_none() {
        cx.push(no_stage(stages.names(), of, of_node.span.clone()));
        return None;
    }
    let upstream = upstream(stages, &chosen.draft.name);
    if !upstream.iter().any(|name| name == of) {
        let message = format!("`{}` does not rest on the stage `{of}`", chosen.draft.name);
        let names = || upstream.iter().map(String::as_str);
        let hint = did_you_mean(of, names()).unwrap_or_else(|| format!("it rests on {}", listed(names())));
        cx.push(Diagnostic::error("control", of_node.span.clone(), message).hint(hint));
        return None;
    }
    // One that was read wrongly is complained about already.
    if compare.is_none() && part.get("compare").is_some() {
        return None;
    }
    if compare.is_none_or(|compare| axes.get(&compare.dimension).is_none()) {
        let message = "a control needs a `compare` over an axis: its two arms are what must match";
        let hint = "arms that one member writes side by side, as record keys, share everything already";
        cx.push(Diagnostic::error("control", node.span.clone(), message).hint(hint));
        return None;
    }
    let mut equal_except = Vec::new();
    for item in node.get("equal_except")?.items()? {
        let name = item.text()?;
        known(cx, axes, item, name, compare);
        equal_except.push(name.to_owned());
    }
    equal_except.sort();
    equal_except.dedup();
    Some(Control { of: of.to_owned(), equal_except })
}

/// Whether a name is an axis or an attribute of one.
fn known(cx: &Cx<'_>, axes: &Axes, item: &Node, name: &str, compare: Option<&Compare>) {
    let (axis, attribute) = name.split_once('.').map_or((name, None), |(axis, rest)| (axis, Some(rest)));
    let found =
        axes.get(axis).is_some_and(|known| attribute.is_none_or(|attribute| known.has_attribute(attribute)));
    if found {
        return;
    }
    let message = format!("there is no axis, nor attribute of one, called `{name}`");
    // What the arms of a mapping axis differ in is usually an attribute of it.
    let of_arm =
        compare.filter(|compare| axes.get(&compare.dimension).is_some_and(|known| known.has_attribute(name)));
    let hint = match of_arm {
        Some(compare) => Some(format!("did you mean `{}.{name}`?", compare.dimension)),
        None => did_you_mean(name, axes.names()),
    };
    cx.push(Diagnostic::error("unknown-axis", item.span.clone(), message).maybe_hint(hint));
}

/// A stage and everything that it reads, directly or not.
fn upstream(stages: &Stages<'_, '_>, of: &str) -> Vec<String> {
    let mut all = vec![of.to_owned()];
    let mut next = 0;
    while let Some(draft) = all.get(next).and_then(|name| stages.get(name)) {
        let producers = draft.inputs.values().filter_map(|given| match &given.input.from {
            avow_model::plan::Source::Output { stage, .. } => Some(stage.clone()),
            _ => None,
        });
        for producer in producers.collect::<Vec<_>>() {
            if !all.contains(&producer) {
                all.push(producer);
            }
        }
        next += 1;
    }
    all
}

/// Proves every control of a plan, as far as some of its pairs show.
pub(super) fn check(cx: &Cx<'_>, plan: &Plan) {
    for claim in &plan.claims {
        for part in claim.test.parts() {
            let Some(control) = &part.control else { continue };
            let Some(found) = matched::arms(plan, part, LOOKED_AT, &mut |_, _| None) else { continue };
            let place = || place(cx, &claim.name, control);
            match found.difference {
                Some(difference) => cx.push(differs(plan, control, &difference, place())),
                None if found.pairs == 0 => {
                    let message = format!("both arms read the same members of `{}`", control.of);
                    let hint = "name a stage that depends on what is compared";
                    cx.push(Diagnostic::error("control", place(), message).hint(hint));
                }
                None => {}
            }
        }
    }
}

fn differs(
    plan: &Plan,
    control: &Control,
    difference: &Difference,
    place: std::ops::Range<usize>,
) -> Diagnostic {
    let (first, second) = (expand::label(plan, difference.first), expand::label(plan, difference.second));
    let values = match (&difference.here, &difference.there) {
        (Some(here), Some(there)) => format!(": {here} and {there}"),
        _ => String::new(),
    };
    let message = format!("{first} and {second} also differ in {}{values}", difference.what);
    let named = difference.what.strip_prefix("axes.").unwrap_or(&difference.what);
    let hint = format!(
        "make it equal, or name `{named}` under `equal_except`: then it is part of what `{}` compares",
        control.of
    );
    Diagnostic::error("control", place, message).hint(hint)
}

/// Where a control stands: the first of its claim that says the same.
fn place(cx: &Cx<'_>, claim: &str, control: &Control) -> std::ops::Range<usize> {
    let claims = cx.spec.root().get("claims");
    let Some(entry) = claims.and_then(|claims| claims.entry(claim)) else { return 0..0 };
    let mut open = vec![&entry.value];
    while let Some(node) = open.pop() {
        if let Some(own) = node.get("control")
            && own.get("of").and_then(|n| n.text()) == Some(control.of.as_str())
        {
            return own.span.clone();
        }
        open.extend(node.items().unwrap_or_default().iter().rev());
        open.extend(node.entries().iter().rev().map(|entry| &entry.value));
    }
    entry.at.clone()
}
