//! Fixed sequences: `after`, within one family, one claim after another.

use std::collections::{BTreeMap, BTreeSet};

use super::Cx;
use super::claims::{ClaimDraft, TestDraft};
use crate::diagnostic::{Diagnostic, did_you_mean};

/// Checks that every `after` names a claim of the same family, that sequences neither branch nor close on themselves, and
/// that their claims are one member each.
pub(super) fn check(cx: &Cx<'_>, drafts: &[ClaimDraft<'_>]) {
    let by_name: BTreeMap<&str, &ClaimDraft<'_>> =
        drafts.iter().map(|draft| (draft.entry.key.as_str(), draft)).collect();
    let mut followed: BTreeMap<&str, &str> = BTreeMap::new();
    for draft in drafts {
        let Some((at, before)) = draft.entry.value.get("after").and_then(|n| Some((n, n.text()?))) else {
            continue;
        };
        let error = |message: String| Diagnostic::error("sequence", at.span.clone(), message);
        let Some(other) = by_name.get(before) else {
            let near = did_you_mean(before, by_name.keys().copied());
            cx.push(error(format!("there is no claim `{before}`")).maybe_hint(near));
            continue;
        };
        if other.family != draft.family {
            let message =
                format!("`{before}` belongs to the family `{}`, not `{}`", other.family, draft.family);
            cx.push(error(message).hint("a sequence shares one error rate: put both into one `family`"));
        }
        if let Some(sibling) = followed.insert(before, &draft.entry.key) {
            cx.push(
                error(format!("`{sibling}` already comes after `{before}`"))
                    .hint("make it one line: a, b, c"),
            );
        }
        for claim in [draft, *other] {
            if several(&claim.test) {
                let message =
                    format!("`{}` makes several members, and a sequence is of single ones", claim.entry.key);
                cx.push(error(message).hint("join its members by `all:`, which makes one"));
            }
        }
    }
    circle(cx, drafts);
}

fn several(test: &TestDraft) -> bool {
    matches!(test, TestDraft::One(part) if !part.part.per.is_empty())
}

/// Follows every sequence back to its head; one that comes back to itself has none.
fn circle(cx: &Cx<'_>, drafts: &[ClaimDraft<'_>]) {
    let before: BTreeMap<&str, &str> = drafts
        .iter()
        .filter_map(|draft| Some((draft.entry.key.as_str(), draft.entry.value.get("after")?.text()?)))
        .collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for draft in drafts {
        let mut path = vec![draft.entry.key.as_str()];
        while let Some(next) = path.last().and_then(|name| before.get(name)) {
            if let Some(start) = path.iter().position(|name| name == next) {
                if told.is_disjoint(&path.iter().copied().collect()) {
                    let names: Vec<String> =
                        path[start..].iter().chain([next]).map(|n| format!("`{n}`")).collect();
                    let message = format!("these claims come after each other: {}", names.join(" → "));
                    cx.push(Diagnostic::error("cycle", draft.entry.at.clone(), message));
                }
                told.extend(path.iter().copied());
                break;
            }
            path.push(next);
        }
    }
}
