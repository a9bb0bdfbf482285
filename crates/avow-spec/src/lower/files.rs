//! The code, programs and environment of a stage that runs a command.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use avow_model::digest::{BlobDigest, TreeDigest};

mod environment;
mod image;
mod loads;
mod scripts;

use super::outputs::{inside, project_path};
use super::stage::Draft;
use super::{Cx, limits};
use crate::command::{self, Word};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::python::{self, Closure};
use crate::tree::Node;
use crate::world::{Answered, Asked};

/// Most words of one command that are looked at.
const WORDS: usize = 10_000;

/// What a command names.
#[derive(Default)]
struct Named {
    /// Project files, with where each is named.
    files: BTreeMap<String, Range<usize>>,
    /// Words to be looked up as programs; those that a wrapper starts may be unknown.
    programs: Vec<(String, Range<usize>, bool)>,
    /// `python -m NAME`.
    modules: Vec<(String, Range<usize>)>,
    /// `python -c TEXT`.
    texts: Vec<String>,
    python: bool,
    /// Programs that scripts of the project start.
    called: BTreeSet<String>,
    /// The words of the interpreters that it starts.
    interpreters: BTreeSet<String>,
}

/// What the world has answered already; many stages start the same script.
#[derive(Default)]
struct Known {
    programs: BTreeMap<String, Option<BlobDigest>>,
    closures: BTreeMap<[Vec<String>; 3], Rc<Closure>>,
    loads: BTreeMap<Asked, Rc<Answered>>,
    trees: BTreeMap<Vec<String>, Result<TreeDigest, String>>,
}

/// Fills in code, toolchain and environment of every stage with a command.
pub(super) fn fill(cx: &Cx<'_>, drafts: &mut [Draft<'_>]) {
    let mut known = Known::default();
    for draft in drafts.iter_mut().filter(|d| d.op.is_none()) {
        let Some(run) = draft.node.get("run") else { continue };
        let mut named = named(cx, draft, run);
        let elsewhere = image::fill(cx, draft);
        let foreign = code(cx, draft, &mut named, &mut known, elsewhere);
        if elsewhere {
            continue;
        }
        toolchain(cx, draft, &named, &mut known.programs);
        loads::fill(cx, draft, run, &named, &foreign, &mut known.loads);
        environment::fill(cx, draft, run, &named, &foreign);
    }
}

/// The commands of a stage as words; their places are in the text, or in the spec where `run` is a list.
fn commands(run: &Node) -> (Vec<Vec<Word>>, Vec<String>) {
    if let Some(items) = run.items() {
        let words = items.iter().filter_map(|item| {
            let text = item.scalar()?.text.clone();
            let computed = text.contains("${");
            Some(Word { text, computed, at: item.span.clone() })
        });
        return (vec![words.collect()], Vec::new());
    }
    let text = run.text().filter(|text| text.len() <= limits::TEXT).unwrap_or_default();
    let script = command::parse(text);
    (script.commands, script.functions)
}

/// The place of a word in the spec; it is worked out only where there is something to say.
fn located(cx: &Cx<'_>, draft: &Draft<'_>, at: &Range<usize>) -> Range<usize> {
    match draft.node.get("run") {
        Some(run) if run.items().is_none() => cx.place(run, at.start, at.len()),
        _ => at.clone(),
    }
}

fn named(cx: &Cx<'_>, draft: &Draft<'_>, run: &Node) -> Named {
    let (commands, functions) = commands(run);
    let mut named = Named::default();
    let mut left = WORDS;
    for words in &commands {
        let starters = command::starters(words);
        for (index, word) in starters.iter().enumerate() {
            let known = word.computed || functions.contains(&word.text);
            // A bare word is looked up on the path only, even where a file has its name.
            if !known && (!word.text.contains('/') || file(cx, draft, &word.text).is_none()) {
                named.programs.push((word.text.clone(), word.at.clone(), index > 0));
            }
            if command::is_python(&word.text) {
                named.python = true;
                named.interpreters.insert(word.text.clone());
            }
        }
        let last = starters.last().map(|w| w.at.clone());
        let script = python_options(words, last, &mut named);
        if let Some(word) = script {
            missing_script(cx, draft, word, &commands);
        }
        for word in script.into_iter().chain(starters.iter().copied().filter(|w| w.text.contains('/'))) {
            started_output(cx, draft, word);
        }
        let bare = |word: &&Word| !starters.contains(word) || word.text.contains('/');
        for word in words.iter().filter(bare).take(left) {
            mention(cx, draft, word, &mut named);
        }
        left = left.saturating_sub(words.len());
    }
    named.python |= named.files.keys().any(|file| file.ends_with(".py"));
    named
}

/// What stands behind a Python interpreter and its options: `-m NAME`, `-c TEXT`, or a script, which is
/// given back.
fn python_options<'w>(
    words: &'w [Word],
    interpreter: Option<Range<usize>>,
    named: &mut Named,
) -> Option<&'w Word> {
    let start = words.iter().position(|w| Some(&w.at) == interpreter.as_ref())?;
    if !command::is_python(&words[start].text) {
        return None;
    }
    let mut rest = words[start + 1..].iter();
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "-m" => {
                let module = rest.next().filter(|value| !value.computed)?;
                named.modules.push((module.text.clone(), module.at.clone()));
                return None;
            }
            "-c" => {
                named.texts.extend(rest.next().map(|value| value.text.clone()));
                return None;
            }
            "-W" | "-X" => drop(rest.next()),
            text if text.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// A script that Python is to start, and nobody has. Where the command changes its folder nothing is known.
fn missing_script(cx: &Cx<'_>, draft: &Draft<'_>, word: &Word, commands: &[Vec<Word>]) {
    let path = word.text.trim_start_matches("./");
    let moves = commands.iter().any(|words| words.first().is_some_and(|first| first.text == "cd"));
    let made = draft.inputs.values().any(|given| inside(path, &given.input.mount))
        || draft.outputs.made.values().any(|made| inside(path, &made.output.path));
    // A script that the command itself writes first is none of ours to judge.
    let written = commands.iter().flatten().filter(|other| other.text == word.text).count() > 1;
    let plain = !word.computed && path.ends_with(".py") && avow_model::tree::check_path(path).is_ok();
    if !plain || moves || made || written || cx.world.look(path).is_some() {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let names = cx.world.names(folder);
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let hint = near.unwrap_or_else(|| "paths are relative to the project's root".to_owned());
    let message = format!("there is no file `{path}`");
    cx.push(Diagnostic::error("missing-file", located(cx, draft, &word.at), message).hint(hint));
}

/// A file that is started and written over by the same stage.
fn started_output(cx: &Cx<'_>, draft: &Draft<'_>, word: &Word) {
    let path = word.text.trim_start_matches("./");
    let over = draft.outputs.made.values().find(|made| inside(path, &made.output.path));
    if let Some(made) = over.filter(|_| !word.computed && cx.world.look(path).is_some()) {
        let message = format!("this output would be written over `{path}`, which the stage starts");
        cx.push(Diagnostic::error("collision", made.at.clone(), message));
    }
}

/// A word, or what stands behind its `=`, that is a file of the project.
fn mention(cx: &Cx<'_>, draft: &Draft<'_>, word: &Word, named: &mut Named) {
    if word.computed {
        return;
    }
    let tail = word.text.split_once('=').map(|(_, tail)| tail);
    for text in [Some(word.text.as_str()), tail].into_iter().flatten() {
        let Some(path) = file(cx, draft, text) else { continue };
        if cx.world.look(&path).is_some_and(|found| found.folder) {
            let message = format!("the command names the folder `{path}`, which is no part of the stage");
            let hint = "list it under `inputs` if it is data, under `code` if it is code";
            if draft.node.entry("code").is_none() {
                cx.push(Diagnostic::warning("folder", located(cx, draft, &word.at), message).hint(hint));
            }
            continue;
        }
        named.files.entry(path).or_insert_with(|| word.at.clone());
    }
}

/// The project path a word stands for, unless it is an input or output of the stage.
fn file(cx: &Cx<'_>, draft: &Draft<'_>, text: &str) -> Option<String> {
    let path = text.trim_start_matches("./").trim_end_matches('/');
    if path.is_empty() || path.len() > 1_000 || avow_model::tree::check_path(path).is_err() {
        return None;
    }
    let read = draft.inputs.values().any(|given| inside(path, &given.input.mount));
    let written = draft.outputs.made.values().any(|made| inside(path, &made.output.path));
    (!read && !written && cx.world.look(path).is_some()).then(|| path.to_owned())
}

/// Sets the code of a stage; returns the packages from elsewhere that it imports.
/// A command that runs `elsewhere`, in an image, may start modules that nobody here has.
fn code(
    cx: &Cx<'_>,
    draft: &mut Draft<'_>,
    named: &mut Named,
    known: &mut Known,
    elsewhere: bool,
) -> BTreeSet<String> {
    let mut foreign = BTreeSet::new();
    let paths: BTreeSet<String> = match draft.node.get("code") {
        Some(node) => {
            let paths = listed_code(cx, node);
            // Which packages it imports is known from it all the same.
            let sources = loads::sources(cx.world, &paths);
            let closure = imports(cx, draft, sources, std::mem::take(&mut named.texts), known);
            foreign.extend(closure.foreign.iter().cloned());
            paths
        }
        None => {
            let mut scripts: Vec<String> = Vec::new();
            for (module, at) in &named.modules {
                match python::module(cx.world, module) {
                    Some(files) => scripts.extend(files),
                    None if elsewhere || python::is_standard(module) => {}
                    None => foreign.extend(outside(cx, draft, module, at, &named.interpreters)),
                }
            }
            scripts::follow(cx, draft, named);
            let (python, others): (Vec<&String>, Vec<&String>) =
                named.files.keys().partition(|file| file.ends_with(".py"));
            scripts.extend(python.into_iter().cloned());
            let compiled = others.iter().flat_map(|file| cx.world.libraries(file));
            let compiled: Vec<String> = compiled.collect();
            let closure = imports(cx, draft, scripts, std::mem::take(&mut named.texts), known);
            foreign.extend(closure.foreign.iter().cloned());
            closure.files.iter().chain(others).chain(&compiled).cloned().collect()
        }
    };
    for path in &paths {
        let over = draft.outputs.made.values().find(|made| inside(path, &made.output.path));
        if let Some(made) = over {
            let message = format!("this output would be written over the code file `{path}`");
            cx.push(Diagnostic::error("collision", made.at.clone(), message));
        }
    }
    // What is mounted as an input comes from there.
    draft.code = paths
        .into_iter()
        .filter(|path| !draft.inputs.values().any(|given| inside(path, &given.input.mount)))
        .collect();
    if !draft.code.is_empty() {
        let tree = known.trees.entry(draft.code.clone()).or_insert_with_key(|paths| cx.world.code(paths));
        match tree {
            Ok(tree) => draft.code_tree = Some(*tree),
            Err(reason) => {
                let message = format!("the code of `{}` cannot be read: {reason}", draft.name);
                cx.push(Diagnostic::error("missing-file", draft.at.clone(), message));
            }
        }
    }
    foreign
}

/// The import closure of scripts, searched also where `PYTHONPATH` says.
fn imports(
    cx: &Cx<'_>,
    draft: &Draft<'_>,
    scripts: Vec<String>,
    texts: Vec<String>,
    known: &mut Known,
) -> Rc<Closure> {
    let path = draft.node.get("env").and_then(|env| env.get("PYTHONPATH")).and_then(|node| node.text());
    let folders = path.into_iter().flat_map(|path| path.split(':')).map(|f| f.trim_matches('/'));
    let bases =
        folders.map(|f| f.trim_start_matches("./").to_owned()).filter(|f| !f.contains("${")).collect();
    let found = known.closures.entry([scripts, texts, bases]);
    let walk = |key: &[Vec<String>; 3]| Rc::new(python::closure(cx.world, &key[0], &key[1], &key[2]));
    Rc::clone(found.or_insert_with_key(walk))
}

/// The top-level name of a module that is started with `-m` and is installed; a complaint where it is nowhere.
fn outside(
    cx: &Cx<'_>,
    draft: &Draft<'_>,
    module: &str,
    at: &Range<usize>,
    interpreters: &BTreeSet<String>,
) -> Option<String> {
    let top = module.split('.').next().unwrap_or_default().to_owned();
    let modules = BTreeSet::from([top.clone()]);
    let asked = Asked { modules, interpreters: interpreters.clone(), ..Asked::default() };
    let found = cx.world.loads(&asked);
    let here = found.loads.is_some() && found.missing.is_empty();
    if !here {
        cx.push(unresolved(module, located(cx, draft, at)));
    }
    here.then_some(top)
}

fn unresolved(module: &str, at: Range<usize>) -> Diagnostic {
    let message =
        format!("`{module}` is neither a module of the project nor installed, so its code is not known");
    let hint = "list the files it needs under `code:`; `code: []` says that there are none";
    Diagnostic::error("code", at, message).hint(hint)
}

fn listed_code(cx: &Cx<'_>, node: &Node) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for item in node.items().unwrap_or_default() {
        let Some(text) = item.text() else { continue };
        if text.starts_with("git:") {
            let message = "code from another repository is not yet supported by this version";
            cx.push(Diagnostic::error("not-yet", item.span.clone(), message));
            continue;
        }
        let Some((path, _)) = project_path(cx, item, text) else { continue };
        if cx.world.look(&path).is_none() {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let known: Vec<String> =
                cx.world.names(folder).into_iter().map(|n| format!("{prefix}{n}")).collect();
            let near = did_you_mean(&path, known.iter().map(String::as_str));
            let message = format!("there is no file or folder `{path}`");
            cx.push(Diagnostic::error("missing-file", item.span.clone(), message).maybe_hint(near));
            continue;
        }
        paths.insert(path);
    }
    paths
}

/// Looks up the programs that are no project files.
fn toolchain(
    cx: &Cx<'_>,
    draft: &mut Draft<'_>,
    named: &Named,
    known: &mut BTreeMap<String, Option<BlobDigest>>,
) {
    let mut wanted = named.programs.clone();
    wanted.extend(interpreters(cx, draft, named));
    for (word, at, may_be_missing) in wanted {
        let mounted = word.contains('/')
            && draft.inputs.values().any(|given| inside(word.trim_start_matches("./"), &given.input.mount));
        let path = word.trim_start_matches("./");
        let in_code = word.contains('/') && draft.code.iter().any(|code| inside(path, code));
        if mounted || in_code || draft.toolchain.contains_key(&word) {
            continue;
        }
        let digest = *known.entry(word.clone()).or_insert_with(|| cx.world.program(&word));
        match digest {
            Some(digest) => drop(draft.toolchain.insert(word, digest)),
            None if may_be_missing => {}
            None => cx.push(no_program(cx, &word, located(cx, draft, &at))),
        }
    }
}

fn no_program(cx: &Cx<'_>, word: &str, at: Range<usize>) -> Diagnostic {
    let message = format!("there is no program `{word}`");
    let script = cx.world.look(word).is_some_and(|found| !found.folder);
    let hint = match word.rsplit_once('.') {
        _ if word.contains('/') => {
            "a path is looked up in the project; list it under `inputs` if a stage makes it"
        }
        Some((_, "py")) if script => "start it with an interpreter: `python3 FILE`",
        _ if script => "a program of the project is started as `./FILE`",
        _ => "install it, or make it a file of the project",
    };
    Diagnostic::error("unknown-program", at, message).hint(hint)
}

/// Programs named in the first line (`#!`) of project files that are started directly.
fn interpreters(cx: &Cx<'_>, draft: &Draft<'_>, named: &Named) -> Vec<(String, Range<usize>, bool)> {
    let Some(run) = draft.node.get("run") else { return Vec::new() };
    let (commands, _) = commands(run);
    let mut found = Vec::new();
    for word in commands.iter().filter_map(|words| command::starters(words).first().copied()) {
        let path = word.text.trim_start_matches("./");
        if word.computed || !named.files.contains_key(path) {
            continue;
        }
        if cx.world.look(path).is_some_and(|f| !f.executable) {
            let message = format!("`{path}` is started but not executable");
            let hint = format!("run `chmod +x {path}`, or name its interpreter");
            cx.push(Diagnostic::error("not-executable", located(cx, draft, &word.at), message).hint(hint));
        }
        let text = cx.world.text(path).unwrap_or_default();
        let line = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).unwrap_or_default();
        let mut words = line.split_whitespace().skip_while(|w| w.ends_with("/env") || w.starts_with('-'));
        found.extend(words.next().map(|program| (program.to_owned(), word.at.clone(), false)));
    }
    found
}
