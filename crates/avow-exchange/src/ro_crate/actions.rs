//! Attempts as actions of tools, the whole as an action of the workflow, runs as what organised them.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::attempt::Attempt;
use avow_model::digest::Artifact;
use avow_model::expand::{self, Member};
use avow_model::plan::{Input, Source};
use serde_json::{Value, json};

use super::Profile;
use super::data::Data;
use super::graph::{Graph, all, to};
use super::parameters::{constant, plain, value};
use super::steps::{self, tool};
use super::words::{file_id, id};
use crate::account::{Account, Executed};
use crate::moment::moment;

const COMPLETED: &str = "http://schema.org/CompletedActionStatus";
const FAILED: &str = "http://schema.org/FailedActionStatus";

/// The action of the whole.
pub(super) const RUN: &str = "#run";

/// The action of an attempt.
pub(super) fn attempt(executed: &Executed) -> String {
    format!("#attempt-{}", executed.digest)
}

/// The action of an organising run.
pub(super) fn organised(run: &str) -> String {
    id("organize", run)
}

/// What a member read as an input: a file of the project, or outputs of the attempts that stand.
pub(super) fn objects(
    data: &Data<'_>,
    account: &Account<'_>,
    member: Member,
    input: &Input,
    artifact: Artifact,
) -> Vec<String> {
    let Source::Output { output, .. } = &input.from else {
        return vec![data.input(&input.from, &input.mount, artifact)];
    };
    let cell = expand::cell(account.plan, member);
    let producers = expand::producers(&cell, &input.from).unwrap_or_default();
    let made = |producer: Member| data.standing(producer).and_then(|attempt| data.output(attempt, output));
    producers.into_iter().filter_map(made).collect()
}

/// Describes tools and actions.
pub(super) fn describe(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>, profile: Profile) {
    steps::tools(graph, data, account, profile);
    for executed in &account.executed {
        action(graph, data, account, executed, profile);
    }
    if profile >= Profile::Workflow {
        whole(graph, data, account);
    }
    if profile == Profile::Provenance {
        organising(graph, account);
    }
}

fn action(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>, executed: &Executed, profile: Profile) {
    let mut read = Vec::new();
    for (member, _) in &executed.members {
        for (_, input, artifact) in executed.inputs(account.stage(*member)) {
            read.extend(objects(data, account, *member, input, artifact));
        }
        read.extend(point(graph, account, *member));
    }
    let wrote = executed.attempt.outputs.keys().filter_map(|name| data.output(executed.digest, name));
    let tools = executed.members.iter().map(|(member, _)| tool(&account.stage(*member).name));
    let variables = variables(graph, executed);
    let usage = if profile == Profile::Provenance { usage(graph, executed) } else { Vec::new() };
    let properties = json!({
        "name": executed.label(), "description": about(executed), "instrument": all(tools),
        "object": all(read), "result": all(wrote.collect::<Vec<_>>()),
        "environment": all(variables), "resourceUsage": all(usage),
        "startTime": moment(executed.attempt.started), "endTime": moment(executed.attempt.finished),
        "actionStatus": status(&executed.attempt), "error": error(&executed.attempt),
    });
    graph.put(&attempt(executed), "CreateAction", properties);
}

/// The values of the axes at a member; their ids.
fn point(graph: &mut Graph, account: &Account<'_>, member: Member) -> Vec<String> {
    let cell = expand::cell(account.plan, member);
    let one = |(name, scalar): (&str, avow_model::value::Value)| {
        let id = value(name, cell.index(name)?);
        graph.put(&id, "PropertyValue", json!({"name": name, "value": plain(&scalar)}));
        Some(id)
    };
    cell.values().filter_map(one).collect()
}

/// Declared environment variables.
fn variables(graph: &mut Graph, executed: &Executed) -> Vec<String> {
    let one = |(name, text): (&String, &String)| {
        let id = id("env", &format!("{name}={text}"));
        graph.put(&id, "PropertyValue", json!({"name": name, "value": text}));
        id
    };
    executed.action.env.iter().map(one).collect()
}

/// What an attempt used, with units of QUDT.
fn usage(graph: &mut Graph, executed: &Executed) -> Vec<String> {
    let used = &executed.attempt.usage;
    let seconds = |micros: u64| json!(micros as f64 / 1e6);
    let all = [
        ("wall-time", seconds(used.wall), "SEC"),
        ("cpu-time", seconds(used.cpu), "SEC"),
        ("peak-memory", json!(used.peak_memory), "BYTE"),
    ];
    let one = |(name, value, unit): (&str, Value, &str)| {
        let id = format!("#usage-{name}-{}", executed.digest);
        let properties = json!({
            "name": name, "propertyID": format!("{}usage:{name}", crate::NAMES), "value": value,
            "unitCode": format!("http://qudt.org/vocab/unit/{unit}"),
        });
        graph.put(&id, "PropertyValue", properties);
        id
    };
    all.into_iter().map(one).collect()
}

fn about(executed: &Executed) -> String {
    let stands = match (executed.stands, executed.attempt.verification) {
        (true, _) => "It stands for its member.",
        (false, true) => "It was made only to be compared and stands for nothing.",
        (false, false) => "It does not stand for its member.",
    };
    format!("{}\n{stands}", executed.action.command)
}

fn status(attempt: &Attempt) -> &'static str {
    if attempt.outcome.succeeded() { COMPLETED } else { FAILED }
}

fn error(attempt: &Attempt) -> Option<String> {
    (!attempt.outcome.succeeded()).then(|| attempt.outcome.to_string())
}

/// The experiment as it stands: what came from outside, and what the standing attempts made of it.
fn whole(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>) {
    let mut read: Vec<String> = account.plan.params.keys().map(|name| constant(name)).collect();
    let mut wrote = Vec::new();
    for executed in account.standing() {
        for (member, _) in &executed.members {
            for (_, input, artifact) in executed.inputs(account.stage(*member)) {
                if matches!(input.from, Source::Path { .. } | Source::Url { .. }) {
                    read.push(data.input(&input.from, &input.mount, artifact));
                }
            }
            read.extend(point(graph, account, *member));
        }
        wrote.extend(executed.attempt.outputs.keys().filter_map(|name| data.output(executed.digest, name)));
    }
    let stood: BTreeSet<Member> =
        account.standing().flat_map(|e| e.members.iter().map(|(m, _)| *m)).collect();
    let tried = account.executed.iter().flat_map(|e| e.members.iter().map(|(m, _)| *m));
    let failed: BTreeSet<Member> = tried.filter(|member| !stood.contains(member)).collect();
    let error =
        (!failed.is_empty()).then(|| format!("{} members were tried and have no result", failed.len()));
    let times = account.executed.iter().map(|e| (e.attempt.started, e.attempt.finished));
    let (begin, end) = times.fold((i64::MAX, i64::MIN), |(a, b), (s, f)| (a.min(s), b.max(f)));
    let properties = json!({
        "name": format!("{} as it stands", account.plan.experiment),
        "description": "The attempts that stand, taken together.",
        "instrument": to(&file_id(account.spec.path)), "object": all(read), "result": all(wrote),
        "startTime": moment(begin), "endTime": moment(end),
        "actionStatus": if failed.is_empty() { COMPLETED } else { FAILED }, "error": error,
    });
    graph.put(RUN, "CreateAction", properties);
}

/// Each run of the engine with the steps that it carried out.
fn organising(graph: &mut Graph, account: &Account<'_>) {
    let about = json!({"name": "Avow", "version": account.tool, "url": format!("{}engine", crate::NAMES), "description": "The engine that carried the stages out."});
    graph.put("#avow", "SoftwareApplication", about);
    let mut runs: BTreeMap<&str, BTreeMap<Member, Vec<&Executed>>> = BTreeMap::new();
    for executed in &account.executed {
        runs.entry(&executed.attempt.run).or_default().entry(executed.member()).or_default().push(executed);
    }
    for (run, members) in runs {
        let mut controls = Vec::new();
        let (mut begin, mut end) = (i64::MAX, i64::MIN);
        for (member, attempts) in members {
            let stage = &account.stage(member).name;
            let id = id("control", &format!("{run}-{stage}-{}", member.cell));
            let label = attempts[0].label();
            let properties = json!({
                "name": format!("{run}: {label}"), "instrument": to(&steps::step(account, stage)),
                "object": all(attempts.iter().map(|executed| attempt(executed))),
            });
            graph.put(&id, "ControlAction", properties);
            controls.push(id);
            begin = attempts.iter().fold(begin, |time, e| time.min(e.attempt.started));
            end = attempts.iter().fold(end, |time, e| time.max(e.attempt.finished));
        }
        let properties = json!({
            "name": format!("run {run}"), "instrument": to("#avow"), "object": all(controls), "result": to(RUN),
            "startTime": moment(begin), "endTime": moment(end),
        });
        graph.put(&organised(run), "OrganizeAction", properties);
    }
}
