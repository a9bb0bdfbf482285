//! The crate itself: its metadata file and its root.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::data::Data;
use super::graph::{Graph, all, to};
use super::words::file_id;
use super::{Edition, Form, METADATA, Profile, actions, credit};
use crate::account::Account;
use crate::moment::day;

/// Describes them, and the profiles that the crate conforms to.
pub(super) fn describe(graph: &mut Graph, data: &Data<'_>, account: &Account<'_>, form: Form) {
    let profiles = profiles(graph, form);
    let base = match form.edition {
        Edition::Half => "https://w3id.org/ro/crate/1.1",
        Edition::Six => "https://w3id.org/ro/crate/1.3",
    };
    let workflow = profiles.iter().filter(|profile| profile.contains("workflowhub"));
    let conforms = all([base.to_owned()].into_iter().chain(workflow.cloned()));
    graph.put(METADATA, "CreativeWork", json!({"about": to("./"), "conformsTo": conforms}));
    let citation = account.citation.as_ref();
    let licences = credit::licences(graph, citation);
    let authors = citation.map(|citation| credit::authors(graph, citation)).unwrap_or_default();
    let said = |field: fn(&crate::Citation) -> &Option<String>| citation.and_then(|c| field(c).clone());
    let doi = said(|c| &c.doi).map(|doi| format!("https://doi.org/{doi}"));
    let mentions = mentions(account, form.profile);
    let workflow = (form.profile >= Profile::Workflow).then(|| to(&file_id(account.spec.path)));
    let properties = json!({
        "name": said(|c| &c.title).or(account.title.map(str::to_owned)).unwrap_or(account.plan.experiment.clone()),
        "description": description(account),
        "datePublished": said(|c| &c.date_released).unwrap_or_else(|| last_day(account)),
        "license": licences, "author": all(authors), "identifier": doi, "version": said(|c| &c.version),
        "url": said(|c| &c.url), "keywords": citation.map(|c| c.keywords.join(", ")).filter(|k| !k.is_empty()),
        "conformsTo": all(profiles), "hasPart": all(data.parts(graph)), "mainEntity": workflow,
        "mentions": all(mentions),
    });
    graph.put("./", "Dataset", properties);
}

/// The profiles by address; described, so that they can be named.
fn profiles(graph: &mut Graph, form: Form) -> Vec<String> {
    let (run, workflow, kind): (_, _, Value) = match form.edition {
        Edition::Half => ("0.5", "1.0", "CreativeWork".into()),
        Edition::Six => ("0.6", "1.1", json!(["CreativeWork", "Profile"])),
    };
    let mut all = vec![("https://w3id.org/ro/wfrun/process", "Process Run Crate", run)];
    if form.profile >= Profile::Workflow {
        all.push(("https://w3id.org/ro/wfrun/workflow", "Workflow Run Crate", run));
    }
    if form.profile == Profile::Provenance {
        all.push(("https://w3id.org/ro/wfrun/provenance", "Provenance Run Crate", run));
    }
    if form.profile >= Profile::Workflow {
        all.push(("https://w3id.org/workflowhub/workflow-ro-crate", "Workflow RO-Crate", workflow));
    }
    let one = |(address, name, version): (&str, &str, &str)| {
        let id = format!("{address}/{version}");
        graph.put(&id, kind.clone(), json!({"name": name, "version": version}));
        id
    };
    all.into_iter().map(one).collect()
}

fn mentions(account: &Account<'_>, profile: Profile) -> Vec<String> {
    let mut mentions = Vec::new();
    if profile >= Profile::Workflow {
        mentions.push(actions::RUN.to_owned());
    }
    mentions.extend(account.executed.iter().map(actions::attempt));
    if profile == Profile::Provenance {
        let runs: BTreeSet<&str> = account.executed.iter().map(|e| e.attempt.run.as_str()).collect();
        mentions.extend(runs.into_iter().map(actions::organised));
    }
    mentions
}

/// What the crate is, with the numbers that somebody needs who sees successes: how often it was tried.
fn description(account: &Account<'_>) -> String {
    let failed = account.executed.iter().filter(|e| !e.attempt.outcome.succeeded()).count();
    let own = format!(
        "The Avow experiment `{}`: {} attempts at {} stages, of which {failed} did not succeed. Plan {}.",
        account.plan.experiment,
        account.executed.len(),
        account.plan.stages.len(),
        account.digest,
    );
    match account.citation.as_ref().and_then(|citation| citation.about.as_ref()) {
        Some(about) => format!("{}\n{own}", about.trim()),
        None => own,
    }
}

/// The day on which the last attempt ended: the same evidence gives the same crate.
fn last_day(account: &Account<'_>) -> String {
    day(account.executed.iter().map(|executed| executed.attempt.finished).max().unwrap_or_default())
}
