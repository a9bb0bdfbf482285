//! `avow register`: plan, claims and analysis are frozen in the ledger before any result exists.

use avow_engine::register as freeze;
use serde_json::json;

use crate::args;
use crate::context::Spec;
use crate::diagnostics;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::world::{Depth, ProjectWorld};

/// Registers a spec.
pub fn register(args: &args::Register, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    // Problems are found before anything is stored.
    let all = spec.problems(output)?.diagnostics;
    if !all.is_empty() && !args.accept_warnings {
        let rendered = diagnostics::render(&spec.shown, &spec.text, &all, output.colour);
        return Err(Failure::new(Exit::SpecInvalid, "a registration is for ever, and the spec has warnings")
            .after(rendered)
            .hint("mend them, or accept them: `avow register --accept-warnings`"));
    }
    let session = super::run::session(&spec.project, output, None)?;
    let (blobs, stamps) = (&*session.blobs, &*session.index);
    let planned = spec.plan_with(&ProjectWorld::new(&spec, Depth::Store { blobs, stamps }), output)?;
    let done = freeze(&session, &planned.plan, spec.text.as_bytes()).map_err(failure::engine)?;
    if args.json {
        output.json(&json!({
            "registration": done.leaf, "chain": done.chain, "plan": done.plan,
            "ledger": done.path.display().to_string(),
        }))?;
    } else {
        output.data(format!("registered {} as {}", planned.plan.experiment, done.leaf))?;
        output.data(format!("  plan   {}", done.plan))?;
        output.data(format!("  ledger {}", shown(&spec, &done.path)))?;
        output.say("commit the ledger: a published copy is what fixes the date for others");
    }
    Ok(Exit::Done)
}

fn shown(spec: &Spec, path: &std::path::Path) -> String {
    path.strip_prefix(spec.project.root()).unwrap_or(path).display().to_string()
}
