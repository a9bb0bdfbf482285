//! `avow diff`: what differs between two registrations or specs, or between what was registered and what was done.

use std::path::Path;
use std::sync::Arc;

use avow_audit::amended;
use avow_audit::deviation::{Deviation, What};
use avow_audit::evidence::Evidence;
use avow_audit::planned::{self, Change};
use avow_model::digest::{PlanDigest, RegistrationDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_store::blob::read_record;
use serde_json::{Value, json};

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::{columns, deviation};

/// One side of a comparison.
struct Side {
    name: String,
    plan: Arc<Plan>,
    /// Where it is a registration.
    entry: Option<RegistrationDigest>,
}

/// Compares.
pub fn diff(args: &args::Diff, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    let here = spec.plan_as_run(output)?.plan;
    let reading = Reading::open(&spec.project, &here.experiment)?;
    let side = |text: &str| side(text, &reading, output);
    let old = side(args.old.as_deref().unwrap_or("registered"))?;
    let new = match &args.new {
        Some(text) => side(text)?,
        None => Side { name: spec.shown.clone(), plan: Arc::clone(&here), entry: None },
    };
    let changes = planned::changes(&old.plan, &new.plan);
    let reasons = reasons(&here, &reading)?;
    let rows: Vec<(Change, Option<Deviation>)> = changes
        .into_iter()
        .map(|change| (change.clone(), why(&change, &old, &new, &reasons, &reading.ledger)))
        .collect();
    let cells = planned::cells(&old.plan, &new.plan);
    // What was done is compared where the plan at hand is one of the two.
    let done = match &args.new {
        None => done(&spec, &here)?,
        Some(_) => Vec::new(),
    };
    if args.json {
        output.json(&json!({
            "old": old.name, "new": new.name, "cells": cells, "done": done,
            "changes": rows.iter().map(|(change, reason)| machine(change, reason.as_ref())).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    output.data(format!("{} → {}", old.name, new.name))?;
    if rows.is_empty() && done.is_empty() {
        output.data("no difference")?;
        return Ok(Exit::Done);
    }
    let table: Vec<Vec<String>> = rows.iter().map(|(change, reason)| row(change, reason.as_ref())).collect();
    if !table.is_empty() {
        output.data(columns(&table).trim_end())?;
    }
    for (what, labels) in [("extra", &cells.extra), ("missing", &cells.missing)] {
        if let Some(first) = labels.first() {
            output.data(format!("{} {what} members ({first}{})", labels.len(), more(labels.len())))?;
        }
    }
    for one in &done {
        output.data(deviation::words(one))?;
    }
    Ok(Exit::Done)
}

fn more(count: usize) -> &'static str {
    if count > 1 { ", …" } else { "" }
}

fn side(text: &str, reading: &Reading, output: &Output) -> Result<Side, Failure> {
    if text.ends_with(".yaml") || text.ends_with(".yml") {
        let spec = Spec::open(Some(Path::new(text)))?;
        return Ok(Side { name: text.to_owned(), plan: spec.plan_as_run(output)?.plan, entry: None });
    }
    let ledger = &reading.ledger;
    let registration = match text {
        "registered" => ledger.in_force().0.map(|force| (force.registered.leaf, force.registered.plan)),
        digits => {
            let leaf = super::ledger::entry(ledger, digits)?;
            let plan = ledger.entry(leaf).and_then(|entry| entry.fields.get("plan")?.as_str()?.parse().ok());
            plan.map(|plan: PlanDigest| (leaf, plan))
        }
    };
    let Some((leaf, digest)) = registration else {
        return Err(Failure::new(Exit::Usage, format!("`{text}` is no registration"))
            .hint("`avow ledger log` lists them; `avow register` makes the first"));
    };
    let plan = read_record::<Plan>(&reading.blobs, digest).map_err(failure::store)?;
    Ok(Side { name: format!("registration {}", leaf.short()), plan: Arc::new(plan), entry: Some(leaf) })
}

/// What the amendments on the way to the registration in force changed, with their reasons.
fn reasons(here: &Plan, reading: &Reading) -> Result<Vec<Deviation>, Failure> {
    let (source, ledger) = (reading.source(), &reading.ledger);
    let evidence = Evidence::gather(here, source, ledger).map_err(failure::audit)?;
    // What is damaged of old plans is told by the audit.
    amended::amendments(&evidence, ledger, source, &mut Vec::new()).map_err(failure::audit)
}

/// The last amendment between the two sides that made this change.
fn why(change: &Change, old: &Side, new: &Side, all: &[Deviation], ledger: &Ledger) -> Option<Deviation> {
    let (from, to) = (old.entry?, new.entry?);
    let between = |entry: RegistrationDigest| {
        entry != from && ledger.precedes(from, entry) && ledger.precedes(entry, to)
    };
    let same = |other: &Change| {
        (&other.subject, &other.name, &other.path) == (&change.subject, &change.name, &change.path)
    };
    let made = all.iter().rev().find(|deviation| {
        deviation.entry.is_some_and(between) && matches!(&deviation.what, What::Plan(other) if same(other))
    });
    made.cloned()
}

/// What differs from the plan in what was done.
fn done(spec: &Spec, plan: &Plan) -> Result<Vec<Deviation>, Failure> {
    let report = super::verdict::report(spec, plan, false)?;
    let of_plan = |deviation: &Deviation| matches!(deviation.what, What::Plan(_));
    Ok(report.deviations.into_iter().filter(|deviation| !of_plan(deviation)).collect())
}

fn row(change: &Change, made: Option<&Deviation>) -> Vec<String> {
    let reason = match made {
        Some(Deviation { reason: Some(reason), .. }) => format!("reason: {}", reason.trim()),
        _ => "no reason stated".to_owned(),
    };
    vec![
        planned::topic(change).word().to_owned(),
        planned::class(change).word().to_owned(),
        deviation::change(change),
        reason,
    ]
}

fn machine(change: &Change, made: Option<&Deviation>) -> Value {
    json!({
        "topic": planned::topic(change), "class": planned::class(change), "change": change,
        "reason": made.and_then(|made| made.reason.as_ref()), "when": made.map(|made| made.when),
        "entry": made.and_then(|made| made.entry),
    })
}
