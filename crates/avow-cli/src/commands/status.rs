//! `avow status`: where the latest run stands.

use avow_model::journal::{Closing, Counts};
use avow_model::summary::RunSummary;
use avow_store::lock::RunLock;
use avow_store::{Catalogue, Project};
use serde_json::json;

use crate::args;
use crate::context::Spec;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Shows the latest run of the experiment, or of the project where no spec is named and none is found.
pub fn status(args: &args::Status, output: &Output) -> Result<Exit, Failure> {
    let (project, experiment) = subject(args)?;
    let Some(state) = latest(&project, experiment.as_deref())? else {
        output.data("nothing has been run yet")?;
        output.say("start with `avow run`");
        return Ok(Exit::Done);
    };
    let runner = RunLock::runner(&project).map_err(failure::lock)?;
    if args.json {
        as_json(&state, runner, output)?
    } else {
        as_text(&state, runner, output)?
    }
    Ok(Exit::Done)
}

fn subject(args: &args::Status) -> Result<(Project, Option<String>), Failure> {
    match Spec::open(args.spec.spec.as_deref()) {
        Ok(spec) => {
            let name = spec.name().map(str::to_owned);
            Ok((spec.project, name))
        }
        // Without a spec the project's latest run is meant.
        Err(_) if args.spec.spec.is_none() => {
            let here = Project::discover(std::path::Path::new(".")).map_err(failure::store)?;
            Ok((here, None))
        }
        Err(failure) => Err(failure),
    }
}

/// Where the run that began last stands.
fn latest(project: &Project, experiment: Option<&str>) -> Result<Option<RunSummary>, Failure> {
    let catalogue = Catalogue::open(project).map_err(failure::store)?;
    match catalogue.latest(experiment) {
        Some(run) => catalogue.summary(&run.run).map_err(failure::store),
        None => Ok(None),
    }
}

fn how(state: &RunSummary, runner: Option<u32>) -> String {
    match (state.closed, runner) {
        (Some(Closing::Complete), _) => "complete".to_owned(),
        (Some(Closing::Failed), _) => "ended with failures".to_owned(),
        (Some(Closing::Partial), _) => "complete as far as it was asked for (`--only`)".to_owned(),
        (Some(Closing::Interrupted), _) => "interrupted; `avow run` goes on".to_owned(),
        (Some(Closing::Abandoned), _) => "died; `avow run` goes on".to_owned(),
        (None, Some(pid)) => format!("running (process {pid})"),
        (None, None) => "died; `avow run` goes on".to_owned(),
    }
}

/// Counts as they are: what a dead process was running is lost.
fn counts_of(state: &RunSummary, runner: Option<u32>) -> Counts {
    let mut counts = state.counts();
    if state.closed.is_none() && runner.is_none() {
        counts.lost += std::mem::take(&mut counts.running);
    }
    counts
}

fn as_text(state: &RunSummary, runner: Option<u32>, output: &Output) -> Result<(), Failure> {
    let opened = state.opened.as_ref();
    let counts = counts_of(state, runner);
    output.data(format!("experiment {}", opened.map_or("?", |o| o.experiment.as_str())))?;
    output.data(format!("run        {}, {}", opened.map_or("?", |o| o.run.as_str()), how(state, runner)))?;
    output.data(format!("began      {}", words::moment(state.since)))?;
    let standing = if opened.is_some_and(|o| o.confirmatory) { "confirmatory" } else { "exploratory" };
    output.data(format!("standing   {standing}"))?;
    let parts: Vec<String> = [
        (counts.succeeded, "executed"),
        (counts.reused, "reused"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
        (counts.lost, "lost"),
        (counts.running, "running"),
        (counts.waiting, "not reached"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    output.data(format!("members    {} ({})", opened.map_or(0, |o| o.members), parts.join(", ")))?;
    if state.closed.is_none() {
        let word = if runner.is_some() { "running" } else { "lost   " };
        for (member, since) in &state.running {
            output.data(format!("  {word}  {member}, since {}", words::moment(*since)))?;
        }
    }
    for (member, outcome) in &state.ended {
        output.data(format!("  ended    {member}: {outcome}"))?;
    }
    Ok(())
}

fn as_json(state: &RunSummary, runner: Option<u32>, output: &Output) -> Result<(), Failure> {
    let runs = state.closed.is_none() && runner.is_some();
    let running: Vec<&String> = state.running.keys().filter(|_| runs).collect();
    let failed: Vec<_> =
        state.ended.iter().map(|(member, outcome)| json!({"member": member, "outcome": outcome})).collect();
    output.json(&json!({
        "opened": state.opened, "since": state.since, "until": state.until, "closed": state.closed,
        "runner": runner, "counts": counts_of(state, runner), "running": running, "failed": failed,
    }))
}
