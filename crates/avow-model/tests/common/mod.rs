//! Small plans for tests: a shell stage with one output `out`, changed field by field where a test needs it.

#![allow(dead_code, reason = "each test crate uses its part of this")]

use std::collections::BTreeMap;

use avow_model::action::Action;
use avow_model::axis::{Axis, Points};
use avow_model::bind::{BindError, Bound, bind};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{Determinism, Input, Keep, Output, Plan, Program, Reuse, Source, Stage};
use avow_model::template::Template;
use avow_model::value::Value;

pub fn blob(text: &str) -> BlobDigest {
    BlobDigest::of(text.as_bytes())
}

pub fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

pub fn path(text: &str) -> Vec<String> {
    text.split('.').map(str::to_owned).collect()
}

pub fn output(path: &str) -> Output {
    Output { path: path.to_owned(), folder: false, optional: false, keep: Keep::Content, holdout: false }
}

pub fn shell(name: &str, text: &str, scope: &[&str]) -> Stage {
    Stage {
        name: name.to_owned(),
        kind: None,
        program: Program::Shell(template(text)),
        scope: scope.iter().map(|axis| (*axis).to_owned()).collect(),
        code: None,
        environment: None,
        toolchain: BTreeMap::new(),
        loads: None,
        env: BTreeMap::new(),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::from([("out".to_owned(), output("out.txt"))]),
        measurements: Vec::new(),
        reuse: Reuse::Always,
        repeats: false,
        determinism: Determinism::Bytes,
        hardware: None,
        image: None,
    }
}

pub fn file(mount: &str, content: &str) -> Input {
    let from = Source::Path { path: mount.to_owned(), artifact: Artifact::Blob(blob(content)) };
    Input { from, mount: mount.to_owned(), scoring: false, licence: None }
}

pub fn from_stage(stage: &str, at: &[(&str, Value)], gather: &[&str]) -> Input {
    let from = Source::Output {
        stage: stage.to_owned(),
        output: "out".to_owned(),
        at: at.iter().map(|(axis, value)| ((*axis).to_owned(), value.clone())).collect(),
        gather: gather.iter().map(|axis| (*axis).to_owned()).collect(),
    };
    Input { from, mount: format!("inputs/{stage}"), scoring: false, licence: None }
}

pub fn list(name: &str, values: &[i64]) -> Axis {
    axis(name, Points::List(values.iter().map(|i| Value::Int(*i)).collect()))
}

pub fn axis(name: &str, points: Points) -> Axis {
    Axis { name: name.to_owned(), points }
}

pub fn plan(mut axes: Vec<Axis>, mut stages: Vec<Stage>) -> Plan {
    axes.sort_by(|a, b| a.name.cmp(&b.name));
    stages.sort_by(|a, b| a.name.cmp(&b.name));
    Plan {
        experiment: "test".to_owned(),
        params: BTreeMap::new(),
        axes,
        exclude: Vec::new(),
        pilot: Vec::new(),
        seen: Vec::new(),
        registration: BTreeMap::new(),
        stages,
        claims: Vec::new(),
    }
}

/// Binds the only member of a stage; producers are taken to have written their own label.
pub fn bound(plan: &Plan, stage: &str) -> Result<Bound, BindError> {
    let stage = plan.stage_index(stage).unwrap();
    bind_all(plan, Member { stage: stage as u32, cell: 0 })
}

pub fn bind_all(plan: &Plan, member: Member) -> Result<Bound, BindError> {
    bind(plan, member, &|member, output| {
        Some(Artifact::Blob(blob(&format!("{} {output}", expand::label(plan, member)))))
    })
}

pub fn action(plan: &Plan, stage: &str) -> Action {
    bound(plan, stage).unwrap().action
}

pub fn labels(plan: &Plan, stage: &str) -> Vec<String> {
    let stage = plan.stage_index(stage).unwrap();
    expand::members(plan, stage).map(|member| expand::label(plan, member)).collect()
}
