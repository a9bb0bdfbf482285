//! `avow check`: every problem of a spec, and what its numbers of units can show.

use std::path::PathBuf;

use avow_model::search::{Search, searches};
use avow_spec::Diagnostic;

use crate::args::Check;
use crate::compiled::{Compiled, compile};
use crate::context::Spec;
use crate::diagnostics;
use crate::exit::Exit;
use crate::large;
use crate::output::{Failure, Output};
use crate::words;
use crate::world::{Depth, ProjectWorld};

/// Checks specs; prints problems, or the completed spec.
pub fn check(args: &Check, output: &Output) -> Result<Exit, Failure> {
    let paths: Vec<Option<PathBuf>> = match args.specs.as_slice() {
        [] => vec![None],
        many => many.iter().cloned().map(Some).collect(),
    };
    let mut exit = Exit::Done;
    let mut json = Vec::new();
    for path in paths {
        let spec = Spec::open(path.as_deref())?;
        let world = ProjectWorld::new(&spec, Depth::Look);
        let compiled = compile(&spec, &world, true);
        let all = &compiled.diagnostics;
        let bad = all.iter().any(|d| d.is_error() || args.strict) || !compiled.good;
        if args.json {
            let found = all.iter().map(|d| diagnostics::json(&spec.shown, &spec.text, d));
            json.extend(found.filter_map(|d| serde_json::to_value(d).ok()));
        } else if !all.is_empty() {
            output.always(diagnostics::render_spec(&spec.shown, &spec.text, all, output.colour).trim_end());
        }
        if bad {
            exit = Exit::SpecInvalid;
            if !args.json {
                output.always(verdict_line(&spec, all));
            }
            continue;
        }
        if !args.json {
            say_good(&spec, &compiled, args.full, output)?;
        }
    }
    if args.json {
        output.json(&json)?;
    }
    Ok(exit)
}

fn verdict_line(spec: &Spec, all: &[Diagnostic]) -> String {
    let errors = all.iter().filter(|d| d.is_error()).count() as u64;
    let warnings = all.len() as u64 - errors;
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(words::count(errors, "problem"));
    }
    if warnings > 0 {
        parts.push(words::count(warnings, "warning"));
    }
    format!("{}: {}", spec.shown, parts.join(", "))
}

fn say_good(spec: &Spec, compiled: &Compiled, full: bool, output: &Output) -> Result<(), Failure> {
    let Some(plan) = compiled.plan.as_deref() else { return Ok(()) };
    if full {
        return output.data(avow_spec::full(plan, &compiled.terms, &compiled.code).trim_end());
    }
    let members = large::members(plan);
    output.data(format!(
        "{}: good. {}, {}, {}",
        spec.shown,
        words::count(plan.stages.len() as u64, "stage"),
        words::count(members, "member"),
        words::count(plan.claims.len() as u64, "claim"),
    ))?;
    for (name, search) in searches(plan) {
        let Search { at_most, stage, measure, .. } = search;
        let over = search.axes().join(", ");
        output
            .data(format!("  search {name}: over {over}, by {stage}.{measure}, at most {at_most} probes"))?;
    }
    for reach in &compiled.reach {
        output.data(format!("  {reach}"))?;
    }
    Ok(())
}
