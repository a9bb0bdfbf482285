//! `avow register` and `avow amend`: plan, claims and analysis are frozen in the ledger before any result exists,
//! and changed openly afterwards.

use std::collections::BTreeSet;

use avow_audit::Deviation;
use avow_engine::{Freeze, Registered, Session};
use avow_model::plan::Plan;
use avow_spec::Diagnostic;
use serde_json::{Value, json};

use crate::args;
use crate::circumstances;
use crate::commands::equivalence;
use crate::commands::ledger;
use crate::context::Spec;
use crate::diagnostics;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses::{self, Wanted};
use crate::world::{Depth, ProjectWorld};

/// Registers a spec.
pub fn register(args: &args::Register, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let wanted = wanted(&spec, &args.witnesses)?;
    let (plan, done) = frozen(&spec, args.accepting, output, |session, freeze| {
        if let Some(lost) = ledger::lost(&session.project, &freeze.plan.experiment)? {
            return Err(lost);
        }
        let written = match args.embargo {
            true => avow_engine::embargo(session, freeze),
            false => avow_engine::register(session, freeze),
        };
        written.map_err(failure::engine)
    })?;
    let verb = if args.embargo { "committed to" } else { "registered" };
    told(&spec, &plan, &done, verb, args.json, output)?;
    if args.embargo {
        output.say(format!(
            "keep a copy of .avow/embargo/{}: without it nobody can ever open the commitment",
            plan.experiment
        ));
    }
    witnessed(&spec, &plan, &done, &wanted, args.json, output)
}

/// Registers a changed spec in place of the registered one; or says why something deviates; or decides between two
/// sides of a fork.
pub fn amend(args: &args::Amend, output: &Output) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "an amendment needs a reason")
            .hint("say in a few words why: `avow amend --reason TEXT`"));
    }
    let spec = Spec::open(args.spec.spec.as_deref())?;
    if let Some(entry) = &args.adopt {
        return adopt(&spec, entry, &args.reason, args.json, output);
    }
    let wanted = wanted(&spec, &args.witnesses)?;
    let explained = explanations(&spec, &args.explain, output)?;
    let before =
        args.same_as.as_deref().map(|old| equivalence::comparable(&spec, old, output)).transpose()?;
    let (plan, done) = frozen(&spec, args.accepting, output, |session, mut freeze| {
        if !explained.is_empty() {
            freeze.circumstances.insert("explains".to_owned(), json!(explained));
        }
        if let Some(before) = before {
            freeze.circumstances.insert("same_as".to_owned(), json!(before));
            freeze.circumstances.insert("check".to_owned(), json!(args.check));
        }
        if args.bug_fix {
            freeze.circumstances.insert("class".to_owned(), json!("bug-fix"));
        }
        avow_engine::amend(session, freeze, &args.reason).map_err(failure::engine)
    })?;
    told(&spec, &plan, &done, "amended", args.json, output)?;
    let exit = witnessed(&spec, &plan, &done, &wanted, args.json, output)?;
    match args.same_as {
        Some(_) => Ok(exit.worse(equivalence::carry_out(&spec, done.leaf, args.json, output)?)),
        None => Ok(exit),
    }
}

fn wanted(spec: &Spec, args: &args::Witnesses) -> Result<Wanted, Failure> {
    Ok(Wanted::of(args, &Settings::of(&spec.project)?))
}

/// Has what was written signed and stamped. Where a witness fails, what was registered stays registered.
fn witnessed(
    spec: &Spec,
    plan: &Plan,
    done: &Registered,
    wanted: &Wanted,
    json: bool,
    output: &Output,
) -> Result<Exit, Failure> {
    let (_, ledger) = avow_engine::ledger_of(&spec.project, &plan.experiment).map_err(failure::engine)?;
    let talk = !json;
    witnesses::obtain(&spec.project, &plan.experiment, &ledger, done.leaf, wanted, talk, output)?;
    Ok(Exit::Done)
}

/// The deviations that `CLASS` or `CLASS:STAGE` means, as the ledger names them.
fn explanations(spec: &Spec, texts: &[String], output: &Output) -> Result<Vec<Value>, Failure> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let planned = spec.plan_as_run(output)?;
    let report = super::verdict::report(spec, &planned.plan, false)?;
    let mut all = Vec::new();
    for text in texts {
        let (class, stage) = text.split_once(':').map_or((text.as_str(), None), |(c, s)| (c, Some(s)));
        let meant = |d: &&Deviation| d.class.word() == class && (stage.is_none() || d.stage() == stage);
        let mut found = report.deviations.iter().filter(meant).filter(|d| d.reason.is_none()).peekable();
        if found.peek().is_none() {
            let open = report.deviations.iter().filter(|d| d.reason.is_none());
            let mut names: Vec<&str> = open.map(|d| d.class.word()).collect();
            names.dedup();
            let failure = Failure::new(Exit::Usage, format!("no deviation without a reason is `{text}`"));
            return Err(failure.hint(match names.as_slice() {
                [] => "every deviation has a stated reason, or there is none; `avow verdict` lists them"
                    .to_owned(),
                names => format!("those without a reason are {}", names.join(", ")),
            }));
        }
        all.extend(found.map(|d| match d.stage() {
            Some(stage) => json!({"class": class, "of": d.digest(), "stage": stage}),
            None => json!({"class": class, "of": d.digest()}),
        }));
    }
    Ok(all)
}

fn adopt(spec: &Spec, entry: &str, reason: &str, json: bool, output: &Output) -> Result<Exit, Failure> {
    let Some(name) = spec.name() else {
        return Err(Failure::new(Exit::SpecInvalid, format!("`{}` names no experiment", spec.shown))
            .hint("`avow check` says what is wrong with it"));
    };
    let (_, ledger) = avow_engine::ledger_of(&spec.project, name).map_err(failure::engine)?;
    let chosen = ledger::entry(&ledger, entry)?;
    let leaf = avow_engine::adopt(&spec.project, name, chosen, reason).map_err(failure::engine)?;
    if json {
        output.json(&json!({"entry": leaf, "adopts": chosen}))?;
    } else {
        output.data(format!("adopted {} as {leaf}", chosen.short()))?;
    }
    Ok(Exit::Done)
}

/// Makes the plan of a spec, everything of it stored, and writes it down.
fn frozen(
    spec: &Spec,
    accepting: args::Accepting,
    output: &Output,
    write: impl FnOnce(&Session, Freeze<'_>) -> Result<Registered, Failure>,
) -> Result<(std::sync::Arc<Plan>, Registered), Failure> {
    // Problems are found before anything is stored.
    let accepted = accepted(spec, accepting, output)?;
    let session = super::run::session(&spec.project, output, None)?;
    let (blobs, stamps) = (&*session.blobs, &*session.index);
    let planned = spec.plan_with(&ProjectWorld::new(spec, Depth::Store { blobs, stamps }), output)?;
    let plan = planned.plan;
    let mut circumstances = circumstances::of(spec, &plan)?;
    if !accepted.is_empty() {
        circumstances.insert("accepted".to_owned(), json!(accepted));
    }
    let freeze = Freeze { plan: &plan, spec: spec.text.as_bytes(), circumstances };
    let done = write(&session, freeze)?;
    Ok((plan, done))
}

/// The code of the warnings that an environment is not pinned.
const UNPINNED: &str = "unpinned";

/// The kinds of warning that a spec has, each accepted; a spec with others is not registered.
fn accepted(spec: &Spec, accepting: args::Accepting, output: &Output) -> Result<BTreeSet<String>, Failure> {
    let all = spec.problems(output)?.diagnostics;
    let open = |found: &&Diagnostic| {
        !(accepting.accept_warnings || accepting.accept_unpinned && found.code == UNPINNED)
    };
    let refused: Vec<Diagnostic> = all.iter().filter(open).cloned().collect();
    if refused.is_empty() {
        return Ok(all.into_iter().map(|found| found.code.to_owned()).collect());
    }
    let rendered = diagnostics::render_spec(&spec.shown, &spec.text, &refused, output.colour);
    let (reason, hint) = match refused.iter().all(|found| found.code == UNPINNED) {
        true => (
            "a registration is for ever, and nothing pins the environment",
            "pin it, or accept that it is not: `--accept-unpinned`; the ledger will say so",
        ),
        false => (
            "a registration is for ever, and the spec has warnings",
            "mend them, or accept them: `--accept-warnings`",
        ),
    };
    Err(Failure::new(Exit::SpecInvalid, reason).after(rendered).hint(hint))
}

fn told(
    spec: &Spec,
    plan: &Plan,
    done: &Registered,
    verb: &str,
    json: bool,
    output: &Output,
) -> Result<(), Failure> {
    if json {
        output.json(&json!({
            "registration": done.leaf, "chain": done.chain, "plan": done.plan,
            "ledger": done.path.display().to_string(),
        }))?;
    } else {
        output.data(format!("{verb} {} as {}", plan.experiment, done.leaf))?;
        output.data(format!("  plan   {}", done.plan))?;
        output.data(format!("  ledger {}", shown(spec, &done.path)))?;
        output.say("commit the ledger: a published copy is what fixes the date for others");
    }
    Ok(())
}

fn shown(spec: &Spec, path: &std::path::Path) -> String {
    path.strip_prefix(spec.project.root()).unwrap_or(path).display().to_string()
}
