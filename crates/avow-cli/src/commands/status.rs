//! `avow status`: where the latest run stands.

use avow_model::journal::{Closing, Counts};
use avow_model::summary::RunSummary;
use avow_store::shared_index::is_stopped;
use avow_store::{Catalogue, Presence, Project, journal, presence};
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
    let (state, live) = settled(&project, state)?;
    let living = presence::living(&project).map_err(failure::store)?;
    let run = state.opened.as_ref().map(|opened| opened.run.as_str());
    let (own, others): (Vec<_>, Vec<_>) = living.iter().partition(|other| Some(other.run.as_str()) == run);
    let runner = live.then(|| own.first().map_or(0, |own| own.pid));
    if args.json {
        as_json(&state, runner, own.first().copied(), &others, output)?
    } else {
        as_text(&state, runner, output)?;
        for wait in own.iter().flat_map(|own| &own.waits) {
            output.data(format!("  waiting  {}, {}", wait.member, words::awaited(wait)))?;
        }
        for other in others {
            output.data(beside(&project, other)?)?;
        }
    }
    Ok(Exit::Done)
}

/// The state of a run and whether it lives. A run that ended while it was looked at is looked at again.
fn settled(project: &Project, state: RunSummary) -> Result<(RunSummary, bool), Failure> {
    let run = state.opened.as_ref().map(|opened| opened.run.clone()).unwrap_or_default();
    if state.closed.is_some() {
        return Ok((state, false));
    }
    let Some(file) = journal::journal(project, &run).map_err(failure::store)? else {
        return Ok((state, false));
    };
    if file.is_live().map_err(failure::store)? {
        return Ok((state, true));
    }
    Ok((summary(project, &run)?.unwrap_or(state), false))
}

fn summary(project: &Project, run: &str) -> Result<Option<RunSummary>, Failure> {
    Catalogue::open(project).and_then(|catalogue| catalogue.summary(run)).map_err(failure::store)
}

/// Another run that lives, in one line.
fn beside(project: &Project, other: &Presence) -> Result<String, Failure> {
    let state = summary(project, &other.run)?.unwrap_or_default();
    let counts = state.counts();
    let done = counts.succeeded + counts.reused;
    let members = members(&state, counts);
    let waits = match other.waits.first() {
        Some(wait) => format!("; {} {}", wait.member, words::awaited(wait)),
        None => String::new(),
    };
    Ok(format!(
        "beside it  run {} of {} ({}), running (process {}): {done} of {members} members done{waits}",
        other.run, other.experiment, other.spec, other.pid
    ))
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
        (None, Some(0)) => "running".to_owned(),
        (None, Some(pid)) if is_stopped(pid) => {
            format!("stopped (process {pid}); `kill -CONT {pid}` lets it go on")
        }
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

/// How many members the run has: those of its plan at the start and those that a search asked for since.
fn members(state: &RunSummary, counts: Counts) -> u64 {
    let begun = state.opened.as_ref().map_or(0, |opened| opened.members);
    let Counts { succeeded, reused, failed, cancelled, lost, running, waiting, .. } = counts;
    begun.max(succeeded + reused + failed + cancelled + lost + running + waiting)
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
    output.data(format!("members    {} ({})", members(state, counts), parts.join(", ")))?;
    if state.verified > 0 {
        output
            .data(format!("verified   {} executed again", words::count(state.verified, "reused action")))?;
    }
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

fn as_json(
    state: &RunSummary,
    runner: Option<u32>,
    own: Option<&Presence>,
    others: &[&Presence],
    output: &Output,
) -> Result<(), Failure> {
    let runs = state.closed.is_none() && runner.is_some();
    let running: Vec<&String> = state.running.keys().filter(|_| runs).collect();
    let failed: Vec<_> =
        state.ended.iter().map(|(member, outcome)| json!({"member": member, "outcome": outcome})).collect();
    let counts = counts_of(state, runner);
    output.json(&json!({
        "members": members(state, counts), "opened": state.opened, "since": state.since, "until": state.until, "closed": state.closed,
        "runner": runner, "counts": counts, "verified": state.verified, "running": running, "failed": failed,
        "waits": own.map_or(&[][..], |own| &own.waits), "others": others,
    }))
}
