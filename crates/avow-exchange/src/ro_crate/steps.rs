//! The spec as a workflow, its stages as tools and steps.

use avow_model::plan::{Program, Source, Stage};
use serde_json::{Value, json};

use super::Profile;
use super::data::Data;
use super::graph::{Graph, all, to};
use super::parameters::{self, read, result, tool_axis, written};
use super::words::{file_id, id};
use crate::account::Account;

/// The tool of a stage.
pub(super) fn tool(stage: &str) -> String {
    id("tool", stage)
}

/// The step of a stage.
pub(super) fn step(account: &Account<'_>, stage: &str) -> String {
    format!("{}#{stage}", file_id(account.spec.path))
}

/// Describes the tools. One that nobody used is no part of what was done.
pub(super) fn tools(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>, profile: Profile) {
    for (index, stage) in account.plan.stages.iter().enumerate() {
        let lock = stage.environment.as_ref().map(|environment| file_id(&environment.path));
        let lock = lock.filter(|id| graph.has(id)).map(|id| to(&id));
        let mut properties = json!({
            "name": stage.name, "description": command(stage), "version": version(account, stage),
            "url": to(&file_id(account.spec.path)),
            "hasPart": all(data.code(index)), "softwareRequirements": lock,
        });
        if profile >= Profile::Workflow {
            let scope = stage.scope.iter().map(|axis| tool_axis(&stage.name, axis));
            let inputs = stage.inputs.keys().map(|input| read(&stage.name, input));
            properties["input"] = all(scope.chain(inputs));
            properties["output"] = all(stage.outputs.keys().map(|output| written(&stage.name, output)));
        }
        graph.put(&tool(&stage.name), "SoftwareApplication", properties);
    }
}

/// The command as declared, in one line.
fn command(stage: &Stage) -> String {
    match &stage.program {
        Program::Op { name, .. } => format!("avow op {name}"),
        Program::Shell(template) => template.to_string().trim().to_owned(),
        Program::Arguments(arguments) => {
            arguments.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
    }
}

/// What tells this version of a tool from another: its code, or what it is compiled from, or else the plan.
fn version(account: &Account<'_>, stage: &Stage) -> String {
    match (&stage.program, stage.code) {
        (_, Some(code)) => code.to_string(),
        (Program::Op { identity, .. }, None) => identity.clone(),
        _ => account.digest.to_string(),
    }
}

/// Describes the workflow, and with the provenance profile its steps.
pub(super) fn describe(graph: &mut Graph, account: &Account<'_>, profile: Profile) {
    let (plan, workflow) = (account.plan, file_id(account.spec.path));
    let outside = plan.stages.iter().flat_map(|stage| stage.inputs.values());
    let inputs = parameters::axes(plan).into_iter().map(parameters::axis);
    let inputs = inputs.chain(plan.params.keys().map(|name| parameters::param(name)));
    let inputs = inputs.chain(outside.filter_map(|input| parameters::source(&input.from)));
    let outputs = plan.stages.iter().flat_map(|s| s.outputs.keys().map(|output| result(&s.name, output)));
    let kinds: &[&str] = match profile {
        Profile::Provenance => &["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        _ => &["File", "SoftwareSourceCode", "ComputationalWorkflow"],
    };
    let say = |graph: &mut Graph, key: &str, value: Value| graph.say(&workflow, key, value);
    say(graph, "@type", json!(kinds));
    say(graph, "name", json!(plan.experiment));
    say(graph, "description", json!(claims(account)));
    say(graph, "version", json!(account.digest.to_string()));
    say(graph, "programmingLanguage", to("#language"));
    say(graph, "input", all(inputs));
    say(graph, "output", all(outputs));
    let about = "The language of Avow's experiments, written in YAML.";
    let language = json!({"name": "Avow experiment", "alternateName": "avow", "version": "1", "url": format!("{}language:1", crate::NAMES), "description": about});
    graph.put("#language", "ComputerLanguage", language);
    if profile == Profile::Provenance {
        steps(graph, account, &workflow);
    }
}

/// What the experiment claims, a line each.
fn claims(account: &Account<'_>) -> String {
    let one = |claim: &avow_model::claim::Claim| {
        format!("{}: {}", claim.name, claim.says.as_deref().unwrap_or_default().trim())
    };
    let lines: Vec<String> = account.plan.claims.iter().map(one).collect();
    if lines.is_empty() { "It makes no claims.".to_owned() } else { lines.join("\n") }
}

fn steps(graph: &mut Graph, account: &Account<'_>, workflow: &str) {
    let mut results = Vec::new();
    for (position, stage) in account.plan.stages.iter().enumerate() {
        let connections: Vec<String> = incoming(stage)
            .into_iter()
            .map(|(from, into, name)| connection(graph, &from, &into, &name))
            .collect();
        let properties = json!({
            "name": stage.name, "position": position.to_string(), "workExample": to(&tool(&stage.name)),
            "connection": all(connections),
        });
        graph.put(&step(account, &stage.name), "HowToStep", properties);
        for output in stage.outputs.keys() {
            let (from, into) = (written(&stage.name, output), result(&stage.name, output));
            results.push(connection(graph, &from, &into, output));
        }
    }
    let stages = &account.plan.stages;
    // A tool that no action used must not be among those that the workflow orchestrated.
    let used = stages.iter().enumerate().filter(|(index, _)| account.was_tried(*index));
    graph.say(workflow, "hasPart", all(used.map(|(_, stage)| tool(&stage.name))));
    graph.say(workflow, "step", all(stages.iter().map(|stage| step(account, &stage.name))));
    graph.say(workflow, "connection", all(results));
}

/// Where a stage's parameters get their values from: source, target, and a name.
fn incoming(stage: &Stage) -> Vec<(String, String, String)> {
    let axes =
        stage.scope.iter().map(|axis| (parameters::axis(axis), tool_axis(&stage.name, axis), axis.clone()));
    let inputs = stage.inputs.iter().filter_map(|(name, input)| {
        let from = match &input.from {
            Source::Output { stage, output, .. } => Some(written(stage, output)),
            other => parameters::source(other),
        };
        Some((from?, read(&stage.name, name), name.clone()))
    });
    axes.chain(inputs).collect()
}

fn connection(graph: &mut Graph, from: &str, into: &str, name: &str) -> String {
    let id = format!("#connection-{}-{}", &from[1..], &into[1..]);
    let properties = json!({"name": name, "sourceParameter": to(from), "targetParameter": to(into)});
    graph.put(&id, "ParameterConnection", properties);
    id
}
