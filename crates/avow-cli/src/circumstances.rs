//! What a registration records of its moment, so that its line can be read without the store: digests of code, data and
//! environments, whether any result of these cells existed, and how the version control stood.

use std::collections::BTreeMap;

use avow_audit::deviation::covered;
use avow_audit::evidence::{Evidence, Fate};
use avow_model::digest::BlobDigest;
use avow_model::plan::{Plan, Source};
use serde_json::{Map, Value, json};

use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::git;
use crate::output::Failure;

/// The fields of the line beside those that name the plan. What does not apply is left out.
pub fn of(spec: &Spec, plan: &Plan) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    fields.insert("analysis".to_owned(), json!(analysis(plan)?));
    let stages = plan.stages.iter();
    let code: BTreeMap<&str, _> = stages.clone().filter_map(|s| Some((&*s.name, s.code?))).collect();
    let locks: BTreeMap<&str, _> =
        stages.filter_map(|s| s.environment.as_ref()).map(|lock| (&*lock.path, lock.lock)).collect();
    for (key, value) in [("code", json!(code)), ("data", json!(data(plan))), ("environment", json!(locks))] {
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            fields.insert(key.to_owned(), value);
        }
    }
    fields.insert("existed".to_owned(), existed(spec, plan)?);
    if let Some(seen) = serde_json::to_value(plan).ok().and_then(|plan| plan.get("seen").cloned()) {
        fields.insert("seen".to_owned(), seen);
    }
    if let Some(state) = version_control(spec.project.root()) {
        fields.insert("git".to_owned(), state);
    }
    Ok(fields)
}

/// The digest of the claims with their rules, as JSON in the order of the plan's record.
fn analysis(plan: &Plan) -> Result<BlobDigest, Failure> {
    serde_json::to_vec(&plan.claims)
        .map(|claims| BlobDigest::of(&claims))
        .map_err(|error| Failure::new(Exit::Internal, "the claims have no JSON form").because(error))
}

/// What comes from outside, by path or address.
fn data(plan: &Plan) -> BTreeMap<String, String> {
    let inputs = plan.stages.iter().flat_map(|stage| stage.inputs.values());
    let named = inputs.filter_map(|input| match &input.from {
        Source::Path { path, artifact } => Some((path.clone(), artifact.to_string())),
        Source::Url { url, digest } => Some((url.clone(), format!("blob:{digest}"))),
        Source::Output { .. } | Source::Probes { .. } => None,
    });
    named.collect()
}

/// Whether anything had been tried at the members that the registration covers, as the store knows.
fn existed(spec: &Spec, plan: &Plan) -> Result<Value, Failure> {
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let evidence = Evidence::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let covered = covered(plan);
    let members = || evidence.members().filter(|m| covered.contains(&(m.member.stage as usize)));
    Ok(json!({
        "members": members().count(),
        "tried": members().filter(|m| !m.attempts.is_empty()).count(),
        "succeeded": members().filter(|m| matches!(m.fate, Fate::Stands(_))).count(),
    }))
}

/// The commit, and what differs from it. A commit's date proves nothing; its name helps to find it.
fn version_control(root: &std::path::Path) -> Option<Value> {
    let commit = git::ask(root, &["rev-parse", "--verify", "-q", "HEAD"])?;
    let status = git::ask(root, &["status", "--porcelain=v2", "--untracked-files=normal"])?;
    let (mut tracked, mut untracked, mut submodules) = (0, 0, 0);
    for line in status.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["?", ..] => untracked += 1,
            [_, _, submodule, ..] if submodule.starts_with('S') => submodules += 1,
            _ => tracked += 1,
        }
    }
    let mut state = json!({"commit": commit, "tracked": tracked, "untracked": untracked});
    if submodules > 0 {
        state["submodules"] = json!(submodules);
    }
    // As last fetched: nobody is asked over the network.
    let remotes = git::ask(root, &["branch", "-r", "--contains", "HEAD", "--format=%(refname:short)"])?;
    let remotes: Vec<&str> = remotes.lines().collect();
    if !remotes.is_empty() {
        state["pushed"] = json!(remotes);
    }
    Some(state)
}
