//! Names inside text and formulas: what `${axes.width}` and `axes.width` refer to.

use std::collections::BTreeSet;
use std::ops::Range;

use avow_model::axis::Points;
use avow_model::expression::Expression;
use avow_model::template::{CHECKPOINT, Piece, Template};

use super::axes::{Axes, REPEAT, no_axis};
use super::{Cx, limits};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::Node;

/// Where a name stands, and so what it may refer to.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    /// A predicate or derived value: axes and parameters.
    Cell,
    /// A stage: axes, parameters, its inputs and outputs.
    Stage {
        /// Names under `inputs`.
        inputs: &'a [String],
        /// Names of outputs, measurement files included.
        outputs: &'a [String],
        /// Whether it is repeated, so that it has the axis `repeat`.
        repeats: bool,
        /// Its checkpoint folder.
        checkpoint: Option<&'a str>,
    },
    /// A bound: parameters only.
    Constant,
    /// A curve: axes, parameters, record keys.
    Curve,
}

/// The references of a text with their byte ranges; the text is known to parse.
pub(crate) fn references(text: &str) -> Vec<(Range<usize>, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("${") {
        let start = at + next;
        // `$${` is a literal, and the parser reads it from the left.
        if next > 0 && text.as_bytes()[start - 1] == b'$' {
            at = start + 2;
            continue;
        }
        let Some(length) = text[start..].find('}') else { break };
        let inner = &text[start + 2..start + length];
        found.push((start..start + length + 1, inner.trim().split('.').map(str::to_owned).collect()));
        at = start + length + 1;
    }
    found
}

/// Parses a text with references and checks each; the axes it uses are added to `used`.
pub(super) fn template(
    cx: &Cx<'_>,
    axes: &Axes,
    node: &Node,
    owner: Owner<'_>,
    used: &mut BTreeSet<String>,
) -> Option<Template> {
    let value = node.value().filter(|_| node.scalar().is_some())?;
    let Some(text) = value.as_text() else { return Some(Template::literal(&value.to_string())) };
    if text.len() > limits::TEXT {
        let message = format!("a text of more than {} bytes cannot be given to a program", limits::TEXT);
        cx.push(Diagnostic::error("too-large", node.span.clone(), message).hint("put it into a file"));
        return None;
    }
    match Template::parse(text) {
        Ok(template) => {
            for (range, path) in references(text) {
                name(cx, axes, &path, &|| cx.place(node, range.start, range.len()), owner, used);
            }
            Some(placed(template, owner))
        }
        Err(error) => {
            let found = references(text);
            if !found.iter().any(|(range, _)| range.start == error.offset) {
                let place = cx.place(node, error.offset, error.length);
                let hint = "a literal `${` is written `$${`";
                cx.push(Diagnostic::error("reference", place, error.reason).hint(hint));
            }
            // The parser stops at the first; the others are checked all the same.
            for (range, path) in found {
                let place = || cx.place(node, range.start, range.len());
                if Template::parse(&text[range.clone()]).is_ok() {
                    name(cx, axes, &path, &place, owner, used);
                } else {
                    cx.push(malformed(cx, axes, &text[range.clone()], &path, place()));
                }
            }
            None
        }
    }
}

/// The template with the checkpoint folder at its place: the plan knows nothing of checkpoints.
fn placed(mut template: Template, owner: Owner<'_>) -> Template {
    let Owner::Stage { checkpoint: Some(folder), .. } = owner else { return template };
    for piece in &mut template.pieces {
        if matches!(piece, Piece::Reference(path) if path == &[CHECKPOINT]) {
            *piece = Piece::Text(folder.to_owned());
        }
    }
    // Neighbouring texts are one, as they are when the completed spec is read.
    template.pieces.dedup_by(|next, piece| match (piece, next) {
        (Piece::Text(text), Piece::Text(more)) => {
            text.push_str(more);
            true
        }
        _ => false,
    });
    template
}

fn malformed(cx: &Cx<'_>, axes: &Axes, text: &str, path: &[String], place: Range<usize>) -> Diagnostic {
    let message = format!("`{text}` is not a name such as `${{axes.width}}` or `${{params.n}}`");
    let hint = match path {
        [one] if axes.get(one).is_some() => format!("write `${{axes.{one}}}`"),
        [one] if cx.params.contains_key(one) => format!("write `${{params.{one}}}`"),
        _ => "a literal `${` is written `$${`".to_owned(),
    };
    Diagnostic::error("reference", place, message).hint(hint)
}

/// Parses a formula, with the place of an error inside it.
pub(super) fn formula(cx: &Cx<'_>, node: &Node) -> Option<Expression> {
    let text = node.text()?;
    if text.len() > limits::FORMULA {
        let message = format!("a formula of more than {} bytes", limits::FORMULA);
        cx.push(Diagnostic::error("too-large", node.span.clone(), message));
        return None;
    }
    match Expression::parse(text) {
        Ok(expression) => Some(expression),
        Err(error) => {
            let place = cx.place(node, error.offset, error.length);
            let message = format!("this formula does not parse: {}", error.reason);
            let hint = text.contains("${").then(|| "in a formula names stand bare: `axes.width`".to_owned());
            cx.push(Diagnostic::error("formula", place, message).maybe_hint(hint));
            None
        }
    }
}

/// Checks the names of a formula; the axes it uses are added to `used`.
pub(super) fn check_formula(
    cx: &Cx<'_>,
    axes: &Axes,
    node: &Node,
    formula: &Expression,
    owner: Owner<'_>,
    used: &mut BTreeSet<String>,
) {
    let shift = node.text().map_or(0, |text| text.len() - text.trim_start().len());
    for (path, range) in formula.names() {
        if matches!(path, [pi] if pi == "pi") {
            continue;
        }
        name(cx, axes, path, &|| cx.place(node, range.start + shift, range.len()), owner, used);
    }
}

fn name(
    cx: &Cx<'_>,
    axes: &Axes,
    path: &[String],
    place: &dyn Fn() -> Range<usize>,
    owner: Owner<'_>,
    used: &mut BTreeSet<String>,
) {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match (words.as_slice(), owner) {
        (["axes", axis], Owner::Stage { repeats: true, .. }) if *axis == REPEAT => {
            used.insert(REPEAT.to_owned());
        }
        (["axes", ..], Owner::Constant) => {
            let message = "a bound is one number, so it cannot depend on an axis";
            cx.push(Diagnostic::error("formula", place(), message).hint("use parameters, or a `curve`"));
        }
        (["axes", axis, rest @ ..], _) => self::axis(cx, axes, (axis, rest), place, used),
        (["params", name], _) => param(cx, name, place),
        (["inputs", name], Owner::Stage { inputs, .. }) => port("input", name, inputs, cx, place),
        (["outputs", name], Owner::Stage { outputs, .. }) => port("output", name, outputs, cx, place),
        (["keys", _], Owner::Curve) => {}
        ([CHECKPOINT], Owner::Stage { checkpoint: Some(_), .. }) => {}
        ([CHECKPOINT], Owner::Stage { .. }) => {
            let message = "this stage has no checkpoint folder";
            let hint = "declare one: `checkpoint: ckpt/`";
            cx.push(Diagnostic::error("unknown-name", place(), message).hint(hint));
        }
        _ => unknown(cx, axes, &words, place, owner),
    }
}

fn axis(
    cx: &Cx<'_>,
    axes: &Axes,
    (axis, rest): (&str, &[&str]),
    place: &dyn Fn() -> Range<usize>,
    used: &mut BTreeSet<String>,
) {
    let Some(known) = axes.get(axis) else { return no_axis(cx, axes, axis, place()) };
    used.extend(known.real.iter().cloned());
    if matches!(known.axis.points, Points::Derived(_)) {
        cx.used_derived.borrow_mut().insert(axis.to_owned());
    }
    match rest {
        [] => {}
        [attribute] if known.has_attribute(attribute) => {}
        [attribute, ..] => {
            let attributes = known.attributes();
            let message = format!("the axis `{axis}` has no attribute `{attribute}`");
            let near = did_you_mean(attribute, attributes.clone());
            let all = format!("it has {}", listed(attributes));
            cx.push(Diagnostic::error("unknown-attribute", place(), message).hint(near.unwrap_or(all)));
        }
    }
}

fn param(cx: &Cx<'_>, name: &str, place: &dyn Fn() -> Range<usize>) {
    if cx.params.contains_key(name) {
        cx.used_params.borrow_mut().insert(name.to_owned());
        return;
    }
    let declared = cx.spec.root().get("params").is_some_and(|node| node.entry(name).is_some());
    if declared {
        cx.used_params.borrow_mut().insert(name.to_owned());
        return;
    }
    let message = format!("there is no parameter `{name}`");
    let near = did_you_mean(name, cx.params.keys().map(String::as_str));
    cx.push(Diagnostic::error("unknown-parameter", place(), message).maybe_hint(near));
}

fn port(what: &str, name: &str, known: &[String], cx: &Cx<'_>, place: &dyn Fn() -> Range<usize>) {
    if known.iter().any(|k| k == name) {
        return;
    }
    let message = format!("this stage has no {what} `{name}`");
    let near = did_you_mean(name, known.iter().map(String::as_str));
    cx.push(Diagnostic::error("unknown-name", place(), message).maybe_hint(near));
}

fn unknown(cx: &Cx<'_>, axes: &Axes, path: &[&str], place: &dyn Fn() -> Range<usize>, owner: Owner<'_>) {
    let whole = path.join(".");
    let roots: &[&str] = match owner {
        Owner::Cell => &["axes", "params"],
        Owner::Constant => &["params"],
        Owner::Stage { .. } => &["axes", "params", "inputs", "outputs"],
        Owner::Curve => &["axes", "params", "keys"],
    };
    let message = format!("`{whole}` refers to nothing");
    let first = path.first().copied().unwrap_or_default();
    let hint = if axes.get(first).is_some() {
        format!("write `axes.{whole}`")
    } else if cx.params.contains_key(first) {
        format!("write `params.{whole}`")
    } else {
        did_you_mean(first, roots.iter().copied())
            .unwrap_or_else(|| format!("a name begins with {}", listed(roots.iter().copied())))
    };
    cx.push(Diagnostic::error("unknown-name", place(), message).hint(hint));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_with_their_places_and_literals_are_not() {
        let text = "a ${axes.x} $${b} ${ params.n }";
        let found = references(text);
        assert_eq!(found.len(), 2);
        assert_eq!(&text[found[0].0.clone()], "${axes.x}");
        assert_eq!(found[1].1, ["params", "n"]);
    }
}
