//! What passes from the outside into an attempt without being part of its action: a checkpoint folder, secrets.

use std::collections::BTreeMap;

use avow_model::op::Kind;

use super::Cx;
use super::inputs::Given;
use super::outputs::{Outputs, inside, project_path};
use crate::diagnostic::Diagnostic;
use crate::keys::Names;
use crate::tree::{Entry, Node};

/// Variables that mean something to Avow or to every program, so that no secret may be called so.
const TAKEN: [&str; 6] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "XDG_CACHE_HOME"];

/// The checkpoint folder of a stage, without its slash; `None` where there is none or it cannot be one.
pub(super) fn checkpoint(
    cx: &Cx<'_>,
    stage: &Node,
    outputs: &Outputs,
    inputs: &BTreeMap<String, Given>,
) -> Option<String> {
    let node = stage.get("checkpoint")?;
    let (path, folder) = project_path(cx, node, node.text()?)?;
    let wrong = |code, message: String, hint: &str| {
        cx.push(Diagnostic::error(code, node.span.clone(), message).hint(hint));
        None
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !path.chars().all(plain) {
        let hint = "letters, digits, `.`, `_`, `-` and `/`";
        return wrong("path", format!("`{path}` is no plain name for a checkpoint folder"), hint);
    }
    if !folder {
        return wrong("path", "a checkpoint is a folder".to_owned(), &format!("write `checkpoint: {path}/`"));
    }
    let outputs = outputs.made.values().map(|made| (made.output.path.as_str(), &made.at, "an output"));
    let inputs = inputs.values().map(|given| (given.input.mount.as_str(), &given.at, "an input"));
    for (other, at, what) in outputs.chain(inputs) {
        if inside(other, &path) || inside(&path, other) {
            let message = format!("the checkpoint folder `{path}/` shares its place with {what}");
            let diagnostic = Diagnostic::error("collision", node.span.clone(), message);
            cx.push(
                diagnostic.label(at.clone(), format!("this one is at `{other}`")).hint("name it otherwise"),
            );
            return None;
        }
    }
    Some(path)
}

/// The names of a stage's secrets, sorted.
pub(super) fn secrets(cx: &Cx<'_>, stage: &Entry, kind: Option<Kind>) -> Vec<String> {
    let Some(entry) = stage.value.entry("secrets") else { return Vec::new() };
    if kind != Some(Kind::Capture) {
        let message = format!("the stage `{}` is no `capture`, so it gets no secrets", stage.key);
        let hint = "bring the evidence in with a stage of `kind: capture`, and read its outputs here";
        cx.push(Diagnostic::error("kind", entry.at.clone(), message).hint(hint));
        return Vec::new();
    }
    let env = stage.value.get("env").map(|n| n.entries()).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for node in entry.value.items().unwrap_or_default() {
        let Some(name) = node.text() else { continue };
        let wrong = |message: String, hint: &str| {
            cx.push(Diagnostic::error("secret", node.span.clone(), message).hint(hint));
        };
        if !Names::Environment.allows(name) {
            wrong(
                "this is no name of an environment variable".to_owned(),
                "a secret is listed by name, `secrets: [API_TOKEN]`; its value comes from the environment or the secrets file",
            );
        } else if TAKEN.contains(&name) || name.starts_with("AVOW_") {
            wrong(format!("`{name}` has a meaning of its own in every stage"), "call the secret otherwise");
        } else if env.iter().any(|variable| variable.key == name) {
            wrong(format!("`{name}` is listed under `env:` too"), "leave it there or here");
        } else if names.iter().any(|other| other == name) {
            wrong(format!("the secret `{name}` is listed twice"), "once is enough");
        } else {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names
}
