//! Proof from the graph that no train or calibrate stage descends from a sealed output.

use std::collections::HashMap;
use std::ops::Range;

use avow_model::op::Kind;
use avow_model::plan::Source;

use super::Cx;
use super::stage::Draft;
use crate::diagnostic::Diagnostic;

/// Where a stage's outputs got holdout data from: the input that brought it in.
#[derive(Clone)]
struct Origin {
    /// `split.test`
    sealed: String,
    at: Range<usize>,
    /// Stages on the way, the last one first.
    path: Vec<String>,
}

/// Follows sealed outputs through the stages in their order.
pub(super) fn check(cx: &Cx<'_>, drafts: &[Draft<'_>], order: &[usize]) {
    let mut tainted: HashMap<&str, Origin> = HashMap::new();
    let by_name: HashMap<&str, &Draft<'_>> = drafts.iter().map(|d| (d.name.as_str(), d)).collect();
    for index in order {
        let draft = &drafts[*index];
        for given in draft.inputs.values() {
            let Source::Output { stage, output, .. } = &given.input.from else { continue };
            scoring(cx, draft, given.input.scoring, &given.from);
            let declared = by_name.get(stage.as_str()).and_then(|d| d.outputs.made.get(output));
            let sealed = declared.filter(|made| made.output.holdout);
            let origin = match sealed {
                Some(made) => {
                    Origin { sealed: format!("{stage}.{output}"), at: made.at.clone(), path: Vec::new() }
                }
                None => match tainted.get(stage.as_str()) {
                    Some(origin) => {
                        let mut origin = origin.clone();
                        origin.path.truncate(8);
                        origin.path.insert(0, stage.clone());
                        origin
                    }
                    None => continue,
                },
            };
            if given.input.scoring && draft.kind == Some(Kind::Train) {
                continue;
            }
            if matches!(draft.kind, Some(Kind::Train | Kind::Calibrate)) {
                cx.push(complaint(draft, &given.from, &origin));
            }
            tainted.entry(&draft.name).or_insert(origin);
        }
    }
}

fn scoring(cx: &Cx<'_>, draft: &Draft<'_>, given: bool, at: &Range<usize>) {
    if given && draft.kind != Some(Kind::Train) {
        let message = "`for: scoring` is for train stages that score themselves on a holdout";
        cx.push(Diagnostic::error("holdout", at.clone(), message).hint("leave `for` out"));
    }
}

fn complaint(draft: &Draft<'_>, from: &Range<usize>, origin: &Origin) -> Diagnostic {
    let kind = draft.kind.map_or("", Kind::word);
    let way = if origin.path.is_empty() {
        String::new()
    } else {
        let names: Vec<String> = origin.path.iter().rev().map(|name| format!("`{name}`")).collect();
        format!(" through {}", names.join(", "))
    };
    let sealed = &origin.sealed;
    let message = format!("the {kind} stage `{}` descends from the holdout `{sealed}`{way}", draft.name);
    let hint = match draft.kind {
        Some(Kind::Train) if origin.path.is_empty() => {
            "to score the model while it trains, write `{from: …, for: scoring}`; it is shown as asserted"
        }
        _ => "take the input from another part of the data",
    };
    Diagnostic::error("holdout", from.clone(), message).label(origin.at.clone(), "sealed here").hint(hint)
}
