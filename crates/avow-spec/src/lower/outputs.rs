//! What a stage writes: outputs, measurement files, and what is known of the measurements in them.

use std::collections::BTreeMap;
use std::ops::Range;

use avow_model::op::{MEASUREMENTS_FILE, OpSignature};
use avow_model::plan::{Keep, MeasurementFile, MeasurementFormat, Output};
use avow_model::tree::check_path;

use super::Cx;
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::{Entry, Node};

/// One output of a stage under construction.
pub(super) struct Made {
    pub(super) output: Output,
    /// Where it is declared.
    pub(super) at: Range<usize>,
    /// Whether the author listed it under `outputs`.
    pub(super) declared: bool,
    /// Whether it holds measurements.
    pub(super) measured: bool,
}

/// A measurement that a stage writes, as far as one can know beforehand.
#[derive(Clone)]
pub(super) struct Writes {
    /// Its name; `None`: any.
    pub(super) name: Option<String>,
    /// Its record keys; `None`: unknown.
    pub(super) keys: Option<Vec<String>>,
    /// The range of its values.
    pub(super) range: Option<(f64, f64)>,
}

/// Everything that a stage writes.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) made: BTreeMap<String, Made>,
    pub(super) files: Vec<MeasurementFile>,
    pub(super) writes: Vec<Writes>,
    /// Whether the stage uses an operation that does not exist, so that nothing is known of it.
    pub(super) unknown: bool,
}

/// Reads `outputs` and `measurements` of a stage; those of an operation are filled in from its signature.
pub(super) fn read(cx: &Cx<'_>, stage: &Entry, op: Option<&OpSignature>, with: &With<'_>) -> Outputs {
    let unknown = op.is_none() && stage.value.entry("uses").is_some();
    let mut outputs = Outputs { unknown, ..Outputs::default() };
    for entry in stage.value.get("outputs").map(|n| n.entries()).unwrap_or_default() {
        if let Some(made) = output(cx, entry) {
            outputs.made.insert(entry.key.clone(), made);
        }
    }
    if let Some(op) = op {
        from_signature(cx, stage, op, with, &mut outputs);
    } else if let Some(node) = stage.value.get("measurements") {
        measurements(cx, node, &mut outputs);
    }
    collisions(cx, &outputs);
    let empty = outputs.made.is_empty() && op.is_none();
    let attempted = ["outputs", "measurements", "uses"].iter().any(|key| stage.value.entry(key).is_some());
    if empty && !attempted && !misspelt(stage) {
        let message = format!("the stage `{}` writes nothing that could be kept", stage.key);
        let hint = "name what it writes under `outputs` or `measurements`";
        cx.push(Diagnostic::error("no-output", stage.at.clone(), message).hint(hint));
    }
    outputs.files.sort_by(|a, b| a.output.cmp(&b.output));
    outputs
}

/// Whether a stage has a key that does not exist, which may be the one that is missed.
pub(super) fn misspelt(stage: &Entry) -> bool {
    stage.value.entries().iter().any(|entry| crate::keys::STAGE.key(&entry.key).is_none())
}

/// How a parameter of an operation is written, for measurement names that carry its value.
pub(super) type With<'a> = dyn Fn(&str) -> Option<String> + 'a;

fn output(cx: &Cx<'_>, entry: &Entry) -> Option<Made> {
    let node = if entry.value.is_map() { entry.value.get("path")? } else { &entry.value };
    let (path, folder) = written_path(cx, node)?;
    let flag = |key: &str| {
        entry.value.get(key).and_then(|n| n.value()) == Some(avow_model::value::Value::Bool(true))
    };
    let keep = match entry.value.get("keep").and_then(|n| n.text()) {
        Some("digest") => Keep::Digest,
        _ => Keep::Content,
    };
    let output = Output { path, folder, optional: flag("optional"), keep, holdout: flag("holdout") };
    Some(Made { output, at: entry.at.clone(), declared: true, measured: false })
}

/// A path that a stage writes: no references, not under `inputs/`.
fn written_path(cx: &Cx<'_>, node: &Node) -> Option<(String, bool)> {
    let text = node.text()?;
    if text.contains("${") {
        let message = "the path of an output is the same for every member";
        let hint = "each member has a working folder of its own, so a plain name is enough";
        cx.push(Diagnostic::error("path", node.span.clone(), message).hint(hint));
        return None;
    }
    let (path, folder) = project_path(cx, node, text)?;
    if path == "inputs" || path.starts_with("inputs/") {
        let message = "`inputs/` is where a stage finds what it reads";
        cx.push(Diagnostic::error("path", node.span.clone(), message).hint("write elsewhere"));
        return None;
    }
    Some((path, folder))
}

/// A path inside the project without `./` and trailing `/`; whether it had the slash comes second.
pub(super) fn project_path(cx: &Cx<'_>, node: &Node, text: &str) -> Option<(String, bool)> {
    let mut path = text;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    let folder = path.ends_with('/');
    let path = path.trim_end_matches('/');
    let wrong = |message: String, hint: &str| {
        cx.push(Diagnostic::error("path", node.span.clone(), message).hint(hint));
        None
    };
    if text.starts_with('/') || text.starts_with("~/") {
        return wrong(
            format!("`{text}` lies outside the project"),
            "paths are relative to the project's root",
        );
    }
    if path.split('/').any(|segment| segment == "..") {
        return wrong(format!("`{text}` leads outside the project"), "paths go down from the project's root");
    }
    if path.split('/').next() == Some(".avow") {
        return wrong("`.avow/` is the store".to_owned(), "choose another place");
    }
    if check_path(path).is_err() || path.contains('\\') {
        return wrong(format!("`{}` is no plain path", text.escape_debug()), "separate plain names with `/`");
    }
    Some((path.to_owned(), folder))
}

fn measurements(cx: &Cx<'_>, node: &Node, outputs: &mut Outputs) {
    for entry in node.entries() {
        measurement(cx, &entry.value, Some(entry), outputs);
    }
    for item in node.items().unwrap_or_default() {
        measurement(cx, item, None, outputs);
    }
}

fn measurement(cx: &Cx<'_>, node: &Node, entry: Option<&Entry>, outputs: &mut Outputs) -> Option<()> {
    let at = entry.map_or(node.span.clone(), |e| e.at.clone());
    let file = if node.is_map() { node.get("file")? } else { node };
    let (path, folder) = written_path(cx, file)?;
    let nested = node.get("values").is_some_and(|n| n.is_map());
    let listed = ["values", "keys"]
        .iter()
        .any(|key| node.get(key).and_then(|n| n.items()).is_some_and(|items| !items.is_empty()));
    let format = format_of(cx, file, (&path, folder), nested, listed)?;
    let stem = path.rsplit('/').next().unwrap_or(&path).split('.').next().unwrap_or_default();
    let given = node.get("name").and_then(|n| n.text());
    let name = entry.map_or(given.unwrap_or(stem), |e| e.key.as_str()).to_owned();
    if !crate::keys::Names::Thing.allows(&name) {
        let message = format!("`{name}` cannot be an output's name");
        let hint = "name it: `measurements: {scores: FILE}`";
        cx.push(Diagnostic::error("name", at, message).hint(hint));
        return None;
    }
    let texts = |key: &str| -> Option<Vec<String>> {
        let items = node.get(key)?.items()?;
        Some(items.iter().filter_map(|n| n.text().map(str::to_owned)).collect())
    };
    let (values, keys) = (texts("values"), texts("keys"));
    let pointers = if nested { pointers(cx, node.get("values")?) } else { BTreeMap::new() };
    let single = matches!(format, MeasurementFormat::FlatJson | MeasurementFormat::NestedJson);
    if single && keys.is_some() {
        let message = "a JSON map has no record keys";
        let hint = "write JSON Lines (`.jsonl`), one record a line: {\"name\": …, \"value\": …, KEY: …}";
        cx.push(Diagnostic::error("value", file.span.clone(), message).hint(hint));
    }
    // A wide table has no other keys than those that are named.
    let wide = format == MeasurementFormat::WideTable;
    let known_keys = if single || wide { Some(keys.clone().unwrap_or_default()) } else { keys.clone() };
    let one = |name: Option<String>| Writes { name, keys: known_keys.clone(), range: None };
    match &values {
        _ if nested => outputs.writes.extend(pointers.keys().map(|n| one(Some(n.clone())))),
        Some(names) => outputs.writes.extend(names.iter().map(|n| one(Some(n.clone())))),
        None => outputs.writes.push(one(None)),
    }
    let output = place(cx, outputs, name, path, &at)?;
    let sorted = |names: Option<Vec<String>>| {
        let mut names = names.unwrap_or_default();
        names.sort();
        names.dedup();
        names
    };
    let (values, keys) = (sorted(values), sorted(keys));
    outputs.files.push(MeasurementFile { output, format, values, keys, pointers });
    Some(())
}

/// Where nested JSON holds each name.
fn pointers(cx: &Cx<'_>, node: &Node) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in node.entries() {
        let Some(pointer) = entry.value.text() else { continue };
        let escapes = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if !pointer.starts_with('/') || !escapes {
            let message = format!("`{}` is no JSON pointer", pointer.escape_debug());
            let hint = "a pointer is the names on the way, each after a `/`: `/probe/knn`, `/layers/0/loss`";
            cx.push(Diagnostic::error("value", entry.value.span.clone(), message).hint(hint));
            continue;
        }
        found.insert(entry.key.clone(), pointer.to_owned());
    }
    found
}

/// The output that a measurement file is: one that is declared already under the same path, or a new one.
fn place(
    cx: &Cx<'_>,
    outputs: &mut Outputs,
    name: String,
    path: String,
    at: &Range<usize>,
) -> Option<String> {
    let same = outputs.made.iter_mut().find(|(_, made)| made.output.path == path && !made.measured);
    if let Some((declared, made)) = same {
        made.measured = true;
        if !made.output.keep.is_content() {
            let message = "the bytes of a measurement file are kept";
            cx.push(Diagnostic::error("keep", made.at.clone(), message).hint("leave `keep: digest` out"));
        }
        return Some(declared.clone());
    }
    if let Some(other) = outputs.made.get(&name) {
        let diagnostic =
            Diagnostic::error("collision", at.clone(), format!("two outputs are called `{name}`"));
        cx.push(diagnostic.label(other.at.clone(), "the other one"));
        return None;
    }
    let output = Output { path, folder: false, optional: false, keep: Keep::Content, holdout: false };
    outputs.made.insert(name.clone(), Made { output, at: at.clone(), declared: false, measured: true });
    Some(name)
}

/// The form of a file by its suffix; `nested` where pointers are given, `listed` where columns are.
fn format_of(
    cx: &Cx<'_>,
    node: &Node,
    (path, folder): (&str, bool),
    nested: bool,
    listed: bool,
) -> Option<MeasurementFormat> {
    let suffix = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, s)| s);
    let wrong = |code, message: String, hint: &str| {
        cx.push(Diagnostic::error(code, node.span.clone(), message).hint(hint));
        None
    };
    match suffix.to_ascii_lowercase().as_str() {
        "json" if !folder && nested => Some(MeasurementFormat::NestedJson),
        "json" if !folder => Some(MeasurementFormat::FlatJson),
        _ if nested => wrong(
            "measurement-format",
            "pointers lead into a `.json` file".to_owned(),
            "list the names that are read: `values: [accuracy, loss]`",
        ),
        "jsonl" | "ndjson" if !folder => Some(MeasurementFormat::TidyJsonLines),
        "csv" | "tsv" if !folder && listed => Some(MeasurementFormat::WideTable),
        "csv" | "tsv" if !folder => Some(MeasurementFormat::TidyTable),
        "parquet" => wrong(
            "not-yet",
            format!("measurements from `.{suffix}` are not yet supported by this version"),
            "write a `.csv` table: `pandas.read_parquet(\"a.parquet\").to_csv(\"a.csv\", index=False)`",
        ),
        "npy" | "npz" => wrong(
            "measurement-format",
            "arrays hold no names".to_owned(),
            "convert in two lines: `import json, numpy as np`, then `json.dump({\"score\": float(np.load(\"score.npy\"))}, open(\"score.json\", \"w\"))`",
        ),
        "pkl" | "pickle" | "pt" | "pth" => wrong(
            "measurement-format",
            "a pickle can run code when it is read, so it is never opened".to_owned(),
            "convert in two lines: `import json, pickle`, then `json.dump(pickle.load(open(\"m.pkl\", \"rb\")), open(\"m.json\", \"w\"))`",
        ),
        _ => wrong(
            "measurement-format",
            format!("`{path}` has no known form for measurements"),
            "a JSON map ends in `.json`, tidy JSON Lines in `.jsonl`, a table in `.csv` or `.tsv`",
        ),
    }
}

fn from_signature(cx: &Cx<'_>, stage: &Entry, op: &OpSignature, with: &With<'_>, outputs: &mut Outputs) {
    let ports = || op.outputs.iter().map(|port| port.name);
    for entry in stage.value.get("outputs").map(|n| n.entries()).unwrap_or_default() {
        if !ports().any(|port| port == entry.key) {
            let message = format!("`{}` writes no output `{}`", op.name, entry.key);
            let near = did_you_mean(&entry.key, ports());
            let all = format!("it writes {}", listed(ports()));
            cx.push(Diagnostic::error("unknown-name", entry.at.clone(), message).hint(near.unwrap_or(all)));
            outputs.made.remove(&entry.key);
        }
    }
    if let Some(entry) = stage.value.entry("measurements") {
        let message = format!("`{}` names its measurements itself", op.name);
        cx.push(Diagnostic::error("key", entry.at.clone(), message).hint("leave `measurements` out"));
    }
    for port in op.outputs.iter().filter(|port| !port.optional) {
        outputs.made.entry(port.name.to_owned()).or_insert_with(|| implied(port.file, stage));
    }
    if op.measurements.is_empty() {
        return;
    }
    let mut made = implied(MEASUREMENTS_FILE, stage);
    made.measured = true;
    outputs.made.insert("measurements".to_owned(), made);
    let format = MeasurementFormat::TidyJsonLines;
    let file = MeasurementFile {
        output: "measurements".to_owned(),
        format,
        values: Vec::new(),
        keys: Vec::new(),
        pointers: BTreeMap::new(),
    };
    outputs.files.push(file);
    for measurement in &op.measurements {
        let keys = Some(measurement.keys.iter().map(|k| (*k).to_owned()).collect());
        let name = filled(measurement.name, with);
        outputs.writes.push(Writes { name, keys, range: measurement.range });
    }
}

fn implied(path: &str, stage: &Entry) -> Made {
    let output =
        Output { path: path.to_owned(), folder: false, optional: false, keep: Keep::Content, holdout: false };
    let at = stage.value.entry("uses").map_or(stage.at.clone(), |entry| entry.value.span.clone());
    Made { output, at, declared: false, measured: false }
}

/// `{metric}-calibrated` with the value of the parameter `metric`; `None` where that is not one known text.
fn filled(name: &str, with: &With<'_>) -> Option<String> {
    let (Some(start), Some(end)) = (name.find('{'), name.find('}')) else { return Some(name.to_owned()) };
    let value = with(name.get(start + 1..end)?)?;
    filled(&format!("{}{value}{}", &name[..start], &name[end + 1..]), with)
}

/// No two outputs share a path, and none lies inside another.
fn collisions(cx: &Cx<'_>, outputs: &Outputs) {
    let mut by_path: Vec<(&str, &Made)> =
        outputs.made.values().map(|m| (m.output.path.as_str(), m)).collect();
    by_path.sort_by(|a, b| a.0.split('/').cmp(b.0.split('/')).then(a.1.at.start.cmp(&b.1.at.start)));
    for pair in by_path.windows(2) {
        let [(first, a), (second, b)] = pair else { continue };
        if inside(second, first) {
            let message = format!("`{second}` is also what another output of this stage writes");
            let diagnostic = Diagnostic::error("collision", b.at.clone(), message);
            cx.push(diagnostic.label(a.at.clone(), format!("this one writes `{first}`")));
        }
    }
}

/// Whether `path` is `folder` or lies in it.
pub(super) fn inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
