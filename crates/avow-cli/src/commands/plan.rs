//! `avow plan` and `avow run --dry-run`: what would run, what is reused, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use avow_engine::{Lookup, current_registration};
use avow_model::attempt::Attempt;
use avow_model::expand;
use avow_planner::{Command, Event, Found, Graph, Miss, Planner, Reason, Settings, Target};
use avow_store::{RecordStore, meter};
use indexmap::IndexMap;
use serde::Serialize;

use crate::args;
use crate::context::{Planned, Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::large::{self, LARGE, Outlook};
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
    let members = large::members(&planned.plan);
    if only.is_empty() && members > LARGE {
        if all || json {
            return Err(Failure::new(Exit::Usage, format!("{members} members are too many to be listed"))
                .hint("name some: `avow plan --only 'STAGE[axis=value]'`"));
        }
        return show_large(planned, &reading, output);
    }
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
    let reused = members.iter().filter(|m| !m.runs).count() as u64;
    let rows = by_stage(planned, &planner, &members);
    summary(planned, (members.len() as u64, reused), rows, &price, output)?;
    for line in if all { listed(&members) } else { grouped(&members) } {
        output.data(format!("  {line}"))?;
    }
    Ok(())
}

/// Prints a forecast that keeps no state for each member.
fn show_large(planned: &Planned, reading: &Reading, output: &Output) -> Result<(), Failure> {
    let plan = &planned.plan;
    let graph = |error| failure::engine(avow_engine::EngineError::Graph(error));
    let graph = Graph::new(plan).map_err(graph)?;
    let actions = reading.index.actions().map_err(failure::store)?;
    let stages = with_lookup(reading, |lookup| large::forecast(plan, &graph, lookup, &actions))?;
    let sum = |of: fn(&Outlook) -> u64| stages.iter().map(|(_, outlook)| of(outlook)).sum::<u64>();
    let (members, reused) = (sum(|o| o.members), sum(|o| o.reused));
    let runs = |outlook: &Outlook| outlook.members > outlook.reused;
    let names =
        stages.iter().filter(|(_, outlook)| runs(outlook)).map(|(i, _)| plan.stages[*i].name.as_str());
    let price = prices(planned, reading, &names.collect())?;
    let rows =
        stages.iter().map(|(stage, o)| (plan.stages[*stage].name.as_str(), o.members, o.members - o.reused));
    summary(planned, (members, reused), rows, &price, output)?;
    for (first, reason, count) in stages.iter().flat_map(|(_, outlook)| {
        outlook.groups.iter().map(|(reason, (first, count))| (*first, reason, *count))
    }) {
        output.data(format!("  {}", group(&expand::label(plan, first), reason, count)))?;
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
    groups.into_iter().map(|((_, reason), (first, count))| group(first, reason, count)).collect()
}

/// Members of one stage with one reason.
fn group(first: &str, reason: &str, count: u64) -> String {
    match count {
        1 => format!("{first} {reason}"),
        n => format!("{first} and {} more: {reason}", n - 1),
    }
}

/// Prints how many members there are and how many would be reused, then the same by stage with how many would run.
fn summary<'a>(
    planned: &Planned,
    (members, reused): (u64, u64),
    stages: impl Iterator<Item = (&'a str, u64, u64)>,
    price: &BTreeMap<String, f64>,
    output: &Output,
) -> Result<(), Failure> {
    output.data(format!(
        "{}: {}, {reused} reused, {} to run",
        planned.plan.experiment,
        words::count(members, "member"),
        members - reused,
    ))?;
    let mut rows = vec![["stage", "reused", "to run", "CPU time"].map(str::to_owned).to_vec()];
    for (stage, all, runs) in stages {
        let cost = price.get(stage).map(|mean| words::seconds(mean * runs as f64));
        let cost = if runs == 0 { String::new() } else { cost.unwrap_or_else(|| "not known yet".to_owned()) };
        rows.push(vec![stage.to_owned(), (all - runs).to_string(), runs.to_string(), cost]);
    }
    for line in words::columns(&rows).lines() {
        output.data(format!("  {line}"))?;
    }
    Ok(())
}

/// Members of a forecast by stage: the stage, how many there are, and how many would run.
fn by_stage<'a>(
    planned: &'a Planned,
    planner: &'a Planner,
    members: &'a [Member],
) -> impl Iterator<Item = (&'a str, u64, u64)> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for member in members {
        let (all, runs) = counts.entry(&member.stage).or_default();
        *all += 1;
        *runs += u64::from(member.runs);
    }
    planner.graph().order().iter().filter_map(move |stage| {
        let name = planned.plan.stages[*stage].name.as_str();
        counts.get(name).map(|(all, runs)| (name, *all, *runs))
    })
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
    meter::members(planner.tally().members);
    with_lookup(reading, |lookup| {
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
        Ok(())
    })?;
    Ok(planner)
}

/// Asks with what a look-up depends on besides the action.
fn with_lookup<T>(
    reading: &Reading,
    ask: impl FnOnce(&Lookup<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let registration = current_registration(&reading.ledger);
    let registered = |attempt: &Attempt| registration.as_ref().is_some_and(|r| r.covers(attempt));
    let hosts = [avow_exec::describe_host().name];
    let invalid = reading.ledger.invalids();
    ask(&Lookup {
        records: &reading.index,
        blobs: &reading.blobs,
        hosts: &hosts,
        aliases: &reading.aliases,
        runs: &[],
        observed: &reading.observed,
        stamps: &reading.stamps,
        registered: &registered,
        invalid: &invalid,
    })
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
