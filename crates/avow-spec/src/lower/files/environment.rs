//! The environment of a stage by its lock file.

use std::collections::BTreeSet;
use std::ops::Range;

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::Environment;

use super::loads::interpreters;
use super::{Named, project_path};
use crate::diagnostic::Diagnostic;
use crate::lock::{self, Lock, Mismatch, Open};
use crate::lower::Cx;
use crate::lower::stage::Draft;
use crate::tree::Node;

/// The code of every warning that an environment is not pinned; `avow register --accept-unpinned` accepts these.
pub(crate) const UNPINNED: &str = "unpinned";

/// The managers in the order in which their lock files are looked for, with the files' names.
const LOCKS: &[(&str, &[&str])] = &[
    ("uv", &["uv.lock"]),
    ("pip", &["requirements.lock", "requirements.txt"]),
    ("conda", &["conda-lock.yml", "environment.yml", "environment.yaml"]),
];

/// Fills in the environment of a stage, and compares its lock file with what is installed.
pub(super) fn fill(
    cx: &Cx<'_>,
    draft: &mut Draft<'_>,
    run: &Node,
    named: &Named,
    foreign: &BTreeSet<String>,
) {
    let given = draft.node.get("environment");
    let found = match given {
        Some(node) if node.is_map() => declared(cx, node),
        Some(_) => None,
        None if named.python => beside(cx).map(|(manager, path)| (manager, path, run.span.clone())),
        None => None,
    };
    if let Some((manager, path, at)) = found {
        match cx.world.artifact(&path) {
            Ok(Artifact::Blob(lock)) => {
                unpinned(cx, manager, &path, &at);
                compared(cx, (manager, &path), &interpreters(draft, named), given.is_some(), &at);
                let (digest, as_written) = in_plain_form(cx, manager, &path, lock);
                let manager = manager.to_owned();
                draft.environment = Some(Environment { manager, path, lock: digest, as_written });
            }
            Ok(Artifact::Tree(_)) => {
                let message = format!("`{path}` is a folder, not a lock file");
                cx.push(Diagnostic::error("environment", at, message));
            }
            Err(reason) => {
                let message = format!("`{path}` cannot be read: {reason}");
                cx.push(Diagnostic::error("missing-file", at, message));
            }
        }
    } else if given.is_none() && !foreign.is_empty() {
        let names: Vec<&str> = foreign.iter().map(String::as_str).collect();
        let message = format!(
            "`{}` imports {}, and no lock file says which version",
            draft.name,
            crate::diagnostic::listed(names)
        );
        let hint = "put a `uv.lock` or a pinned `requirements.txt` beside the spec";
        cx.push(Diagnostic::warning(UNPINNED, draft.at.clone(), message).hint(hint));
    }
}

/// The digest of a lock file's plain form, and that of the file where it is another.
fn in_plain_form(
    cx: &Cx<'_>,
    manager: &str,
    path: &str,
    written: BlobDigest,
) -> (BlobDigest, Option<BlobDigest>) {
    let Some(plain) = cx.world.text(path).and_then(|text| lock::plain(manager, &text)) else {
        return (written, None);
    };
    let lock = cx.world.keep(&plain);
    (lock, (lock != written).then_some(written))
}

fn declared(cx: &Cx<'_>, node: &Node) -> Option<(&'static str, String, Range<usize>)> {
    let given: Vec<_> = LOCKS.iter().filter_map(|(m, _)| Some((*m, node.get(m)?))).collect();
    let [(manager, path)] = given.as_slice() else {
        let message = "an environment names exactly one lock file";
        cx.push(Diagnostic::error("environment", node.span.clone(), message).hint("write `{uv: uv.lock}`"));
        return None;
    };
    let (clean, _) = project_path(cx, path, path.text()?)?;
    if cx.world.look(&clean).is_none() {
        let message = format!("there is no file `{clean}`");
        cx.push(Diagnostic::error("missing-file", path.span.clone(), message));
        return None;
    }
    Some((manager, clean, path.span.clone()))
}

/// The lock file beside the spec, else at the project's root.
fn beside(cx: &Cx<'_>) -> Option<(&'static str, String)> {
    let folder = cx.world.beside();
    let prefixes =
        if folder.is_empty() { vec![String::new()] } else { vec![format!("{folder}/"), String::new()] };
    for prefix in prefixes {
        for (manager, names) in LOCKS {
            for name in *names {
                let path = format!("{prefix}{name}");
                if cx.world.look(&path).is_some_and(|found| !found.folder) {
                    return Some((manager, path));
                }
            }
        }
    }
    None
}

/// A lock file that leaves something open is no lock.
fn unpinned(cx: &Cx<'_>, manager: &str, path: &str, at: &Range<usize>) {
    let Some(open) = cx.world.text(path).and_then(|text| lock::open(manager, &text)) else { return };
    let short = |line: String| line.chars().take(60).collect::<String>();
    let message = match open {
        Open::Versions(line) => format!("`{path}` leaves versions open: `{}`", short(line)),
        Open::Elsewhere(line) => {
            format!("`{path}` names what is no part of it, and may change: `{}`", short(line))
        }
    };
    let hint = "pin every version: `pip freeze`, `uv lock` or `conda-lock` writes such a file";
    cx.push(Diagnostic::warning(UNPINNED, at.clone(), message).hint(hint));
}

/// So many packages are named.
const NAMED: usize = 5;

/// Compares a lock file with what is installed. Where the spec names the lock, the stage runs in what it says or not
/// at all; one that was only found beside the spec may be another program's.
fn compared(
    cx: &Cx<'_>,
    (manager, path): (&str, &str),
    interpreters: &BTreeSet<String>,
    named: bool,
    at: &Range<usize>,
) {
    let Some(text) = cx.world.text(path).filter(|_| !interpreters.is_empty()) else { return };
    let lock = Lock::read(manager, &text);
    for word in interpreters {
        let Some(installed) = cx.world.installed(word) else { continue };
        let mut found = lock.mismatches(&installed);
        found.retain(|mismatch| named || mismatch.found.is_some());
        let lines: Vec<String> = found.iter().take(NAMED).map(|mismatch| wants(mismatch, word)).collect();
        if lines.is_empty() {
            continue;
        }
        let more = found.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let message = format!("`{path}` is not what is installed: {}{more}", lines.join(", "));
        let diagnostic = match named {
            true => Diagnostic::error("environment-mismatch", at.clone(), message),
            false => Diagnostic::warning("environment-mismatch", at.clone(), message),
        };
        cx.push(diagnostic.hint(mending(manager, path, word)));
    }
}

fn wants(Mismatch { package, wanted, found }: &Mismatch, word: &str) -> String {
    match found {
        Some(found) => format!("it wants {package} {wanted}, and `{word}` has {found}"),
        None => format!("it wants {package} {wanted}, and `{word}` has none"),
    }
}

fn mending(manager: &str, path: &str, word: &str) -> String {
    match manager {
        "uv" => {
            "run `uv sync`, and start Avow in that environment; or `uv lock` to lock what you mean".to_owned()
        }
        "conda" => format!("run `conda env update -f {path}`, and start Avow in that environment"),
        _ => format!(
            "run `{word} -m pip install -r {path}`, or lock what is installed: `{word} -m pip freeze > {path}`"
        ),
    }
}
