//! A stage under construction, and how it becomes one of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use avow_model::claim::Tolerance;
use avow_model::digest::{BlobDigest, TreeDigest};
use avow_model::op::{Kind, OpSignature};
use avow_model::plan::{Determinism, Environment, Image, Program, Reuse, Stage, Terms};
use avow_model::template::Template;

use super::axes::Axes;
use super::inputs::{self, Given, Producers};
use super::outputs::{self, Outputs};
use super::reference::{self, Owner};
use super::{Cx, kept, limits, operation};
use crate::command;
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::keys::Names;
use crate::tree::{Entry, Node};
use crate::units;

/// A stage under construction.
pub(super) struct Draft<'a> {
    pub(super) name: String,
    pub(super) at: Range<usize>,
    pub(super) node: &'a Node,
    pub(super) kind: Option<Kind>,
    pub(super) op: Option<&'a OpSignature>,
    pub(super) program: Option<Program>,
    /// Axes that it uses by itself; `repeat` where it is repeated.
    pub(super) uses: BTreeSet<String>,
    pub(super) env: BTreeMap<String, Template>,
    pub(super) inputs: BTreeMap<String, Given>,
    pub(super) outputs: Outputs,
    pub(super) repeat: Option<u64>,
    pub(super) reuse: Reuse,
    pub(super) determinism: Determinism,
    pub(super) terms: Terms,
    /// Filled in by [`super::scope`].
    pub(super) scope: BTreeSet<String>,
    /// Filled in by [`super::files`].
    pub(super) code: Vec<String>,
    pub(super) code_tree: Option<TreeDigest>,
    pub(super) toolchain: BTreeMap<String, BlobDigest>,
    pub(super) loads: Option<BlobDigest>,
    pub(super) environment: Option<Environment>,
    pub(super) image: Option<Image>,
}

impl Draft<'_> {
    /// The stage of the plan; `None` where its program could not be read.
    pub(super) fn finish(self) -> Option<Stage> {
        Some(Stage {
            name: self.name,
            kind: self.kind,
            program: self.program?,
            scope: self.scope.into_iter().collect(),
            code: self.code_tree,
            environment: self.environment,
            toolchain: self.toolchain,
            loads: self.loads,
            env: self.env,
            inputs: self.inputs.into_iter().map(|(name, given)| (name, given.input)).collect(),
            outputs: self.outputs.made.into_iter().map(|(name, made)| (name, made.output)).collect(),
            measurements: self.outputs.files,
            reuse: self.reuse,
            repeats: self.repeat.is_some(),
            determinism: self.determinism,
            hardware: self.node.get("hardware").and_then(|n| n.text()).map(str::to_owned),
            image: self.image,
        })
    }
}

/// Reads all stages, sorted by name: first what each writes, then the rest.
pub(super) fn read<'a>(cx: &Cx<'a>, axes: &Axes) -> Vec<Draft<'a>> {
    let spec: &'a crate::experiment::Experiment = cx.spec;
    let Some(node) = spec.root().get("stages") else { return Vec::new() };
    if node.entries().is_empty() && node.is_map() {
        cx.push(Diagnostic::error("length", node.span.clone(), "a spec needs at least one stage"));
    }
    if node.entries().len() > limits::STAGES {
        let message = format!("more than {} stages", limits::STAGES);
        cx.push(Diagnostic::error("too-large", node.entries()[limits::STAGES].at.clone(), message));
    }
    let named = |e: &&Entry| e.value.is_map() && !e.is_value() && Names::Thing.allows(&e.key);
    let mut entries: Vec<&Entry> = node.entries().iter().take(limits::STAGES).filter(named).collect();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    for (entry, key) in entries.iter().flat_map(|e| ["inputs", "outputs", "measurements"].map(|key| (e, key)))
    {
        let Some(node) = entry.value.get(key) else { continue };
        let values = |n: &Node| n.get("values").and_then(|v| v.items()).map_or(1, <[_]>::len);
        let listed = node.items().unwrap_or_default().iter().map(|n| values(n)).sum::<usize>();
        if listed + node.entries().iter().map(|e| values(&e.value)).sum::<usize>() > limits::PORTS {
            let message = format!("more than {} under `{key}`", limits::PORTS);
            cx.push(
                Diagnostic::error("too-large", node.span.clone(), message).hint("use a folder or `gather`"),
            );
            return Vec::new();
        }
    }
    let outlines: Vec<(Option<&'a OpSignature>, Outputs)> = entries
        .iter()
        .map(|entry| {
            let op = operation::find(cx, entry);
            let with = |name: &str| op.and_then(|op| operation::text(cx, entry, op, name));
            (op, outputs::read(cx, entry, op, &with))
        })
        .collect();
    let producers: Producers<'_> =
        entries.iter().zip(&outlines).map(|(entry, (_, outputs))| (entry.key.as_str(), outputs)).collect();
    let all_inputs: Vec<BTreeMap<String, Given>> = entries
        .iter()
        .zip(&outlines)
        .map(|(entry, (_, own))| inputs::read(cx, entry, &producers, own))
        .collect();
    drop(producers);
    let parts = entries.into_iter().zip(outlines).zip(all_inputs);
    parts.map(|((entry, (op, outputs)), inputs)| draft(cx, axes, entry, op, outputs, inputs)).collect()
}

fn draft<'a>(
    cx: &Cx<'a>,
    axes: &Axes,
    entry: &'a Entry,
    op: Option<&'a OpSignature>,
    outputs: Outputs,
    inputs: BTreeMap<String, Given>,
) -> Draft<'a> {
    let node: &'a Node = &entry.value;
    let repeat = node.get("repeat").and_then(|n| n.integer()).and_then(|n| u64::try_from(n).ok());
    let mut uses = BTreeSet::new();
    uses.extend(repeat.map(|_| super::axes::REPEAT.to_owned()));
    let input_names: Vec<String> =
        node.get("inputs").map(|n| n.entries()).unwrap_or_default().iter().map(|e| e.key.clone()).collect();
    let mut output_names: Vec<String> = outputs.made.keys().cloned().collect();
    output_names
        .extend(node.get("outputs").map(|n| n.entries()).unwrap_or_default().iter().map(|e| e.key.clone()));
    let checkpoint = kept::checkpoint(cx, node, &outputs, &inputs);
    let owner = Owner::Stage {
        inputs: &input_names,
        outputs: &output_names,
        repeats: repeat.is_some(),
        // One that is declared wrongly is complained of once.
        checkpoint: checkpoint.as_deref().or(node.entry("checkpoint").map(|_| "")),
    };
    let program = program(cx, axes, entry, op, owner, &mut uses);
    if let Some(op) = op {
        operation::ports(cx, entry, op);
    }
    let mut env = BTreeMap::new();
    for variable in node.get("env").map(|n| n.entries()).unwrap_or_default() {
        if let Some(template) = reference::template(cx, axes, &variable.value, owner, &mut uses) {
            env.insert(variable.key.clone(), template);
        }
    }
    let kind = kind(cx, entry, op);
    let draft = Draft {
        name: entry.key.clone(),
        at: entry.at.clone(),
        node,
        kind,
        op,
        program,
        uses,
        env,
        inputs,
        outputs,
        repeat,
        reuse: reuse(node),
        determinism: determinism(cx, node, kind),
        terms: Terms { checkpoint, secrets: kept::secrets(cx, entry, kind), ..terms(node) },
        scope: BTreeSet::new(),
        code: Vec::new(),
        code_tree: None,
        toolchain: BTreeMap::new(),
        loads: None,
        environment: None,
        image: None,
    };
    seeds_named(cx, axes, &draft);
    draft
}

fn kind_of(word: &str) -> Option<Kind> {
    [Kind::Capture, Kind::Train, Kind::Measure, Kind::Calibrate].into_iter().find(|kind| kind.word() == word)
}

fn kind(cx: &Cx<'_>, entry: &Entry, op: Option<&OpSignature>) -> Option<Kind> {
    let written = entry.value.get("kind").and_then(|node| Some((node, kind_of(node.text()?)?)));
    let Some(op) = op else { return written.map(|(_, kind)| kind) };
    if let Some((node, kind)) = written
        && op.kind != Some(kind)
    {
        let own = op.kind.map_or("a plain step".to_owned(), |k| format!("`{}`", k.word()));
        let message = format!("`{}` is {own}, not `{}`", op.name, kind.word());
        let hint = "an operation carries its kind; leave `kind` out";
        cx.push(Diagnostic::error("kind", node.span.clone(), message).hint(hint));
    }
    op.kind
}

fn program(
    cx: &Cx<'_>,
    axes: &Axes,
    entry: &Entry,
    op: Option<&OpSignature>,
    owner: Owner<'_>,
    uses: &mut BTreeSet<String>,
) -> Option<Program> {
    let node = &entry.value;
    let (run, named) = (node.get("run"), node.entry("uses"));
    if let (Some(run), Some(named)) = (run, named) {
        let message = format!("the stage `{}` has both `run` and `uses`", entry.key);
        let diagnostic = Diagnostic::error("key", named.at.clone(), message);
        cx.push(diagnostic.label(run.span.clone(), "a stage starts one thing"));
        return None;
    }
    for key in ["code", "environment", "env", "checkpoint", "secrets"] {
        if let Some(found) = node.entry(key).filter(|_| named.is_some()) {
            let message = format!("`{key}` says nothing to a built-in operation");
            cx.push(Diagnostic::error("key", found.at.clone(), message).hint("leave it out"));
        }
    }
    if let Some(op) = op {
        return operation::program(cx, axes, entry, op, owner, uses);
    }
    if let Some(with) = node.entry("with").filter(|_| named.is_none()) {
        let message = "`with` holds the parameters of a built-in operation";
        let hint = "a command takes `${params.NAME}` and `${axes.NAME}` in its text";
        cx.push(Diagnostic::error("key", with.at.clone(), message).hint(hint));
    }
    let Some(run) = run else {
        let attempted = node.entry("run").is_some() || named.is_some();
        if !attempted && !outputs::misspelt(entry) {
            let message = format!("the stage `{}` starts nothing", entry.key);
            let hint = "give it `run: COMMAND` or `uses: OPERATION`";
            cx.push(Diagnostic::error("missing-key", entry.at.clone(), message).hint(hint));
        }
        return None;
    };
    if let Some(items) = run.items() {
        let arguments: Option<Vec<Template>> =
            items.iter().map(|item| reference::template(cx, axes, item, owner, uses)).collect();
        return arguments.filter(|a| !a.is_empty()).map(Program::Arguments);
    }
    let template = reference::template(cx, axes, run, owner, uses)?;
    quoted(cx, run);
    Some(Program::Shell(template))
}

/// A substitution inside the user's own quotes would be quoted twice.
fn quoted(cx: &Cx<'_>, run: &Node) {
    let Some(text) = run.text() else { return };
    if text.trim().is_empty() {
        cx.push(Diagnostic::error("length", run.span.clone(), "this command is empty"));
    }
    for found in command::parse(text).in_documents {
        let reference = &text[found.clone()];
        let message = format!("`{reference}` stands in a here-document, where its quotes would become text");
        let hint = "hand the value over as a variable: list it under `env:` and write `$NAME` here";
        let place = cx.place(run, found.start, found.len());
        cx.push(Diagnostic::error("document-reference", place, message).hint(hint));
    }
    for found in command::quoted_references(text) {
        let place = cx.place(run, found.reference.start, found.reference.len());
        let reference = &text[found.reference.clone()];
        let message = format!("`{reference}` stands inside quotes, and Avow quotes every value itself");
        let whole = &text[found.quotes.clone()];
        let inner = whole.get(1..whole.len().saturating_sub(1)).unwrap_or_default();
        let hint = match found.quote {
            _ if inner.contains(char::is_whitespace) || inner.is_empty() => {
                "end the quotes before it and begin them again after it".to_owned()
            }
            _ => format!("leave the quotes out: {inner}"),
        };
        cx.push(Diagnostic::error("quoted-reference", place, message).hint(hint));
    }
}

fn reuse(node: &Node) -> Reuse {
    match node.get("reuse").and_then(|n| n.text()) {
        Some("never") => Reuse::Never,
        Some("same-host") => Reuse::SameHost,
        _ => Reuse::Always,
    }
}

fn determinism(cx: &Cx<'_>, node: &Node, kind: Option<Kind>) -> Determinism {
    let Some(given) = node.get("determinism") else { return Determinism::Bytes };
    let class = if given.is_map() { given.get("class") } else { Some(given) };
    let word = class.and_then(|n| n.text()).unwrap_or_default();
    let number = |key: &str| given.get(key).and_then(|n| n.number());
    let (absolute, relative) = (number("absolute"), number("relative"));
    let wrong = |message: &str| cx.push(Diagnostic::error("determinism", given.span.clone(), message));
    if word != "tolerance" && (absolute.is_some() || relative.is_some()) {
        wrong("`absolute` and `relative` belong to the class `tolerance`");
    }
    match word {
        "tolerance" => {
            let tolerance =
                Tolerance { absolute: absolute.unwrap_or(0.0), relative: relative.unwrap_or(0.0) };
            let fine = tolerance.absolute >= 0.0 && tolerance.relative >= 0.0;
            if !fine || tolerance.absolute + tolerance.relative == 0.0 {
                wrong("a tolerance needs `absolute` or `relative` above zero");
            }
            Determinism::Tolerance(tolerance)
        }
        "distribution" => Determinism::Distribution,
        "unrepeatable" => {
            if kind != Some(Kind::Capture) {
                let message = "only a `capture` stage may be unrepeatable";
                let hint = "give the stage `kind: capture`, or promise `distribution`";
                cx.push(Diagnostic::error("kind", given.span.clone(), message).hint(hint));
            }
            Determinism::Unrepeatable
        }
        _ => Determinism::Bytes,
    }
}

fn terms(node: &Node) -> Terms {
    let resource = |key: &str| node.get("resources").and_then(|r| r.get(key));
    let count = |node: &Node| node.integer().and_then(|n| u32::try_from(n).ok());
    let bytes = |key: &str| resource(key).and_then(|n| units::size(&n.scalar()?.text));
    Terms {
        cpus: resource("cpus").and_then(|n| count(n)).unwrap_or(1),
        memory: bytes("memory"),
        disk: bytes("disk"),
        gpus: resource("gpus").and_then(|n| count(n)).unwrap_or(0),
        timeout: node.get("timeout").and_then(|n| units::duration(&n.scalar()?.text)),
        retries: node.get("retries").and_then(|n| count(n)).unwrap_or(0),
        ..Terms::default()
    }
}

/// A train stage of the author's own names its seeds, or its result is one draw that nobody can repeat.
fn seeds_named(cx: &Cx<'_>, axes: &Axes, draft: &Draft<'_>) {
    if draft.kind != Some(Kind::Train) || draft.op.is_some() || draft.program.is_none() {
        return;
    }
    let is_seed = |name: &String| {
        name.contains("seed")
            || axes.get(name).is_some_and(|k| matches!(k.axis.points, avow_model::axis::Points::Seeds { .. }))
    };
    let text = serde_json::to_string(&draft.program).unwrap_or_default();
    if !draft.uses.iter().any(is_seed) && !text.contains("seed") {
        let message = format!("the train stage `{}` names no seed", draft.name);
        let hint = "pass one, e.g. `--seed ${axes.seed.init}`";
        cx.push(Diagnostic::warning("seed", draft.at.clone(), message).hint(hint));
    }
}

/// A complaint about a name that is no stage.
pub(super) fn no_stage<'s>(names: impl Iterator<Item = &'s str>, name: &str, at: Range<usize>) -> Diagnostic {
    let message = format!("there is no stage `{name}`");
    Diagnostic::error("unknown-stage", at, message).maybe_hint(did_you_mean(name, names))
}
