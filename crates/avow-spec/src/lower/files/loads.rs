//! What the programs of a stage load besides project files.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Named;
use crate::command;
use crate::diagnostic::Diagnostic;
use crate::lower::Cx;
use crate::lower::stage::Draft;
use crate::tree::Node;
use crate::world::{Answered, Asked, World};

/// Most files of listed code folders whose imports are read.
const MAX_SOURCES: usize = 10_000;

/// Asks for the libraries and packages of a stage, and says what could not be identified.
pub(super) fn fill(
    cx: &Cx<'_>,
    draft: &mut Draft<'_>,
    run: &Node,
    named: &Named,
    foreign: &BTreeSet<String>,
    known: &mut BTreeMap<Asked, Rc<Answered>>,
) {
    let asked = Asked {
        shell: run.items().is_none().then(|| shell_text(run)),
        programs: draft.toolchain.keys().cloned().collect(),
        called: named.called.iter().filter(|word| !draft.toolchain.contains_key(*word)).cloned().collect(),
        files: draft.code.iter().filter(|path| started(named, path)).cloned().collect(),
        modules: foreign.clone(),
        interpreters: interpreters(draft, named),
    };
    let answered = known.entry(asked).or_insert_with_key(|asked| Rc::new(cx.world.loads(asked)));
    draft.loads = answered.loads;
    for doubt in &answered.doubts {
        cx.push(Diagnostic::warning("environment", draft.at.clone(), doubt.clone()));
    }
}

/// The interpreters that a stage's programs are read by. A manager that makes an environment of its own (`uv run`)
/// is known by its lock file alone.
pub(super) fn interpreters(draft: &Draft<'_>, named: &Named) -> BTreeSet<String> {
    let managed = ["uv", "poetry", "pixi", "hatch", "conda"];
    if draft.toolchain.keys().any(|word| managed.contains(&word.as_str())) {
        return BTreeSet::new();
    }
    let started = draft.toolchain.keys().filter(|word| command::is_python(word));
    named.interpreters.iter().chain(started).cloned().collect()
}

/// Only whether there is a pipe matters for which shell it is.
fn shell_text(run: &Node) -> String {
    let text = run.text().unwrap_or_default();
    if text.replace("||", "").contains('|') { "|".to_owned() } else { String::new() }
}

/// Whether a code file is a program that the command names.
fn started(named: &Named, path: &str) -> bool {
    named.files.contains_key(path) && !path.ends_with(".py")
}

/// The Python sources among listed code, those in folders included.
pub(super) fn sources(world: &dyn World, paths: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<String> = paths.iter().rev().cloned().collect();
    while let Some(path) = open.pop() {
        if found.len() >= MAX_SOURCES || open.len() >= MAX_SOURCES {
            break;
        }
        match world.look(&path) {
            Some(at) if at.folder => {
                let hidden = |name: &String| name.starts_with('.') || name == "__pycache__";
                let names = world.names(&path).into_iter().filter(|name| !hidden(name));
                open.extend(names.map(|name| format!("{path}/{name}")));
            }
            Some(_) if path.ends_with(".py") => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}
