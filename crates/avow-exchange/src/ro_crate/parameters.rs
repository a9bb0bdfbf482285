//! The parameters of the workflow and of its tools, and what their values were.
//!
//! The workflow has the axes, the parameters of the spec, the data that come from outside, and what its stages
//! write. A tool has the axes that its stage uses, its inputs and its outputs. Connections say how the one becomes the
//! other.

use std::collections::BTreeSet;

use avow_model::digest::Artifact;
use avow_model::expand;
use avow_model::plan::{Plan, Source};
use avow_model::value::Value as Scalar;
use serde_json::{Value, json};

use super::data::Data;
use super::graph::Graph;
use super::words::{id, kind_of};
use crate::account::{Account, Executed};

/// The workflow's parameter for an axis.
pub(super) fn axis(name: &str) -> String {
    id("axis", name)
}

/// The workflow's parameter for one of the spec's.
pub(super) fn param(name: &str) -> String {
    id("param", name)
}

/// The workflow's parameter for data from outside; `None` for what a stage writes.
pub(super) fn source(source: &Source) -> Option<String> {
    match source {
        Source::Path { path, .. } => Some(id("data", path)),
        Source::Url { url, .. } => Some(id("data", url)),
        Source::Probes { .. } | Source::Output { .. } => None,
    }
}

/// A tool's parameter for an axis.
pub(super) fn tool_axis(stage: &str, axis: &str) -> String {
    id("axis", &format!("{stage}.{axis}"))
}

/// A tool's parameter for an input.
pub(super) fn read(stage: &str, input: &str) -> String {
    id("in", &format!("{stage}.{input}"))
}

/// A tool's parameter for an output.
pub(super) fn written(stage: &str, output: &str) -> String {
    id("out", &format!("{stage}.{output}"))
}

/// The workflow's parameter for an output.
pub(super) fn result(stage: &str, output: &str) -> String {
    id("result", &format!("{stage}.{output}"))
}

/// The value of an axis at an index.
pub(super) fn value(axis: &str, index: u64) -> String {
    id("value", &format!("{axis}-{index}"))
}

/// The value of one of the spec's parameters.
pub(super) fn constant(name: &str) -> String {
    id("constant", name)
}

/// The axes that some stage uses, by name.
pub(super) fn axes(plan: &Plan) -> BTreeSet<&str> {
    plan.stages.iter().flat_map(|stage| &stage.scope).map(String::as_str).collect()
}

/// Describes parameters, and which entity was a value of which.
pub(super) fn describe(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>) {
    let plan = account.plan;
    for name in axes(plan) {
        let kind = plan.axis(name).and_then(|axis| axis.value(0)).map_or("Text", |value| kind_of(&value));
        formal(graph, &axis(name), name, kind);
    }
    for (name, scalar) in &plan.params {
        formal(graph, &param(name), name, kind_of(scalar));
        graph.put(&constant(name), "PropertyValue", json!({"name": name, "value": plain(scalar)}));
        graph.example(&constant(name), &param(name));
    }
    for stage in &plan.stages {
        for name in &stage.scope {
            let kind = plan.axis(name).and_then(|axis| axis.value(0)).map_or("Text", |value| kind_of(&value));
            formal(graph, &tool_axis(&stage.name, name), name, kind);
        }
        for (name, input) in &stage.inputs {
            let kind = kind_of_source(plan, &input.from);
            formal(graph, &read(&stage.name, name), name, kind);
            if let Some(outside) = source(&input.from) {
                formal(graph, &outside, name, kind);
            }
        }
        for (name, output) in &stage.outputs {
            let kind = if output.folder { "Dataset" } else { "File" };
            formal(graph, &written(&stage.name, name), name, kind);
            formal(graph, &result(&stage.name, name), &format!("{}.{name}", stage.name), kind);
        }
    }
    for executed in &account.executed {
        examples(graph, data, account, executed);
    }
}

fn formal(graph: &mut Graph, id: &str, name: &str, kind: &str) {
    graph.put(id, "FormalParameter", json!({"name": name, "additionalType": kind}));
}

fn kind_of_source(plan: &Plan, source: &Source) -> &'static str {
    let folder = match source {
        Source::Path { artifact, .. } => matches!(artifact, Artifact::Tree(_)),
        Source::Url { .. } | Source::Probes { .. } => false,
        Source::Output { gather, .. } if !gather.is_empty() => true,
        Source::Output { stage, output, .. } => {
            plan.stage(stage).and_then(|stage| stage.outputs.get(output)).is_some_and(|o| o.folder)
        }
    };
    if folder { "Dataset" } else { "File" }
}

/// A value as JSON; lists and maps as text.
pub(super) fn plain(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Bool(is) => json!(is),
        Scalar::Int(number) => json!(number),
        Scalar::Float(number) => json!(number),
        other => json!(other.to_string()),
    }
}

fn examples(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>, executed: &Executed) {
    for (member, _) in &executed.members {
        let stage = account.stage(*member);
        let cell = expand::cell(account.plan, *member);
        for name in &stage.scope {
            if let Some(index) = cell.index(name) {
                graph.example(&value(name, index), &axis(name));
                graph.example(&value(name, index), &tool_axis(&stage.name, name));
            }
        }
        for (name, input, artifact) in executed.inputs(stage) {
            let parameter = read(&stage.name, name);
            for id in super::actions::objects(data, account, *member, input, artifact) {
                graph.example(&id, &parameter);
                if let Some(outside) = source(&input.from) {
                    graph.example(&id, &outside);
                }
            }
        }
        for name in executed.attempt.outputs.keys() {
            if let Some(id) = data.output(executed.digest, name) {
                graph.example(&id, &written(&stage.name, name));
                if executed.stands {
                    graph.example(&id, &result(&stage.name, name));
                }
            }
        }
    }
}
