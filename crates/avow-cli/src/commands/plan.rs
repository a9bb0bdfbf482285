//! `avow plan` and `avow run --dry-run`: what would run, what is reused, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use avow_engine::{Lookup, current_registration};
use avow_model::attempt::Attempt;
use avow_model::expand;
use avow_planner::{Command, Event, Found, Miss, Planner, Reason, Settings, Target};
use avow_store::{RecordStore, meter};
use indexmap::IndexMap;
use serde::Serialize;

use crate::args;
use crate::context::{Planned, Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Shows what a run would do.
pub fn plan(args: &args::Plan, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let planned = spec.plan(output)?;
    show(&spec, &planned, &args.only, args.all, args.json, output)?;
    Ok(Exit::Done)
}

/// One member of the forecast.
#[derive(Debug, Serialize)]
struct Member {
    member: String,
    stage: String,
    runs: bool,
    reason: String,
}

/// Prints a forecast for a plan.
pub fn show(
    spec: &Spec,
    planned: &Planned,
    only: &[String],
    all: bool,
    json: bool,
    output: &Output,
) -> Result<(), Failure> {
    let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
    let planner = forecast(planned, &reading, targets(planned, only)?)?;
    let members: Vec<Member> = planner
        .reasons()
        .map(|(member, reason)| Member {
            member: expand::label(&planned.plan, member),
            stage: planned.plan.stages[member.stage as usize].name.clone(),
            runs: !matches!(reason, Reason::Reused { .. }),
            reason: words::reason::reason(&planned.plan, &reason),
        })
        .collect();
    if json {
        return output.json(&members);
    }
    let running: BTreeSet<&str> = members.iter().filter(|m| m.runs).map(|m| m.stage.as_str()).collect();
    let price = prices(planned, &reading, &running)?;
    summary(planned, &planner, &members, &price, output)?;
    for line in if all { listed(&members) } else { grouped(&members) } {
        output.data(format!("  {line}"))?;
    }
    Ok(())
}

fn listed(members: &[Member]) -> Vec<String> {
    members.iter().map(|member| format!("{} {}", member.member, member.reason)).collect()
}

/// Members that would run; those of one stage with one reason are one line.
fn grouped(members: &[Member]) -> Vec<String> {
    let mut groups: IndexMap<(&str, &str), (&str, u64)> = IndexMap::new();
    for member in members.iter().filter(|m| m.runs) {
        let key = (member.stage.as_str(), member.reason.as_str());
        groups.entry(key).or_insert((&member.member, 0)).1 += 1;
    }
    let line = |((_, reason), (first, count)): ((&str, &str), (&str, u64))| match count {
        1 => format!("{first} {reason}"),
        n => format!("{first} and {} more: {reason}", n - 1),
    };
    groups.into_iter().map(line).collect()
}

fn summary(
    planned: &Planned,
    planner: &Planner,
    members: &[Member],
    price: &BTreeMap<String, f64>,
    output: &Output,
) -> Result<(), Failure> {
    let tally = planner.tally();
    output.data(format!(
        "{}: {}, {} reused, {} to run",
        planned.plan.experiment,
        words::count(tally.members, "member"),
        tally.reused,
        members.iter().filter(|m| m.runs).count(),
    ))?;
    let mut rows = vec![["stage", "reused", "to run", "CPU time"].map(str::to_owned).to_vec()];
    let mut by_stage: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for member in members {
        let (all, runs) = by_stage.entry(&member.stage).or_default();
        *all += 1;
        *runs += usize::from(member.runs);
    }
    for stage in planner.graph().order().iter().map(|i| &planned.plan.stages[*i].name) {
        let Some((all, runs)) = by_stage.get(stage.as_str()).copied() else { continue };
        let cost = price.get(stage).map(|mean| words::seconds(mean * runs as f64));
        let cost = if runs == 0 { String::new() } else { cost.unwrap_or_else(|| "not known yet".to_owned()) };
        rows.push(vec![stage.clone(), (all - runs).to_string(), runs.to_string(), cost]);
    }
    for line in words::columns(&rows).lines() {
        output.data(format!("  {line}"))?;
    }
    Ok(())
}

/// Mean CPU seconds of the successful attempts so far, for stages that would run.
fn prices(
    planned: &Planned,
    reading: &Reading,
    running: &BTreeSet<&str>,
) -> Result<BTreeMap<String, f64>, Failure> {
    let mut prices = BTreeMap::new();
    for stage in running {
        let history = reading.index.latest_of_stage(&planned.plan.experiment, stage, 50);
        let mut seconds = Vec::new();
        for (_, digest) in history.map_err(failure::store)? {
            if let Some(recorded) = reading.index.attempt(digest).map_err(failure::store)?
                && recorded.attempt.outcome.succeeded()
            {
                seconds.push(recorded.attempt.usage.cpu as f64 / 1e6);
            }
        }
        if !seconds.is_empty() {
            prices.insert((*stage).to_owned(), seconds.iter().sum::<f64>() / seconds.len() as f64);
        }
    }
    Ok(prices)
}

/// The planner after every look that can be answered now: members that would run are queued, those behind them
/// wait.
pub fn forecast(planned: &Planned, reading: &Reading, only: Vec<Target>) -> Result<Planner, Failure> {
    let settings = Settings { cpus: 0, memory: u64::MAX, keep_going: true, only, terms: BTreeMap::new() };
    let graph = |error| failure::engine(avow_engine::EngineError::Graph(error));
    let mut planner = Planner::new(Arc::clone(&planned.plan), settings).map_err(graph)?;
    let registration = current_registration(&reading.ledger);
    let registered = |attempt: &Attempt| registration.as_ref().is_some_and(|r| r.covers(attempt));
    let hosts = [avow_exec::describe_host().name];
    let runs = Vec::new();
    let lookup = Lookup {
        records: &reading.index,
        blobs: &reading.blobs,
        hosts: &hosts,
        aliases: &reading.aliases,
        runs: &runs,
        observed: &reading.observed,
        stamps: &reading.stamps,
        registered: &registered,
    };
    meter::members(planner.tally().members);
    let mut commands = planner.owed();
    while let Some(command) = commands.pop() {
        let Command::Look { member, action, digest, .. } = command else { continue };
        let stage = &planned.plan.stages[member.stage as usize];
        let found = match lookup.find(stage, &action, digest) {
            Ok(sought) => sought.found,
            // Damage is a miss here as in a run; `store check` is where it is named.
            Err(error) if error.is_unusable_blob() => Found::Miss(Miss::NeverRun),
            Err(error) => return Err(failure::store(error)),
        };
        commands.extend(planner.handle(Event::Looked { member, found }).into_iter().filter(is_look));
    }
    Ok(planner)
}

fn is_look(command: &Command) -> bool {
    matches!(command, Command::Look { .. })
}

/// The members that `--only` names.
pub fn targets(planned: &Planned, only: &[String]) -> Result<Vec<Target>, Failure> {
    only.iter()
        .map(|text| {
            Target::parse(&planned.plan, text).map_err(|error| {
                Failure::new(Exit::Usage, error.to_string()).hint(words::stages(&planned.plan))
            })
        })
        .collect()
}
