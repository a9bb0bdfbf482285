//! `avow invalidate` and `avow retract`: nothing is deleted, and everything says so from here on.

use avow_audit::evidence::{Evidence, Fate};
use avow_model::digest::{AttemptDigest, BlobDigest};
use avow_model::ledger::invalid::Wrong;
use avow_model::plan::Plan;
use avow_store::{BlobStore, RecordStore};
use serde_json::json;

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Declares an attempt or an output wrong.
pub fn invalidate(args: &args::Invalidate, output: &Output) -> Result<Exit, Failure> {
    reasoned(&args.reason)?;
    let spec = Spec::open(args.spec.as_deref())?;
    let plan = spec.plan_as_run(output)?.plan;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let what = meant(&args.what, &plan, &reading)?;
    let leaf = avow_engine::invalidate(&spec.project, &plan.experiment, what, &args.reason)
        .map_err(failure::engine)?;
    let ledger = Reading::open(&spec.project, &plan.experiment)?.ledger;
    let evidence = Evidence::gather(&plan, reading.source(), &ledger).map_err(failure::audit)?;
    let marked = avow_audit::withdrawn::invalidations(&evidence, &ledger);
    let marked: Vec<_> = marked.into_iter().filter(|deviation| deviation.entry == Some(leaf)).collect();
    if args.json {
        output.json(&json!({"entry": leaf, "what": what.to_string(), "marked": marked}))?;
    } else {
        output.data(format!("recorded as {leaf}"))?;
        for deviation in &marked {
            output.data(format!("  {}", words::deviation::words(deviation)))?;
        }
        if marked.is_empty() {
            output.say("nothing that this spec plans rests on it");
        } else {
            output.say("`avow run` makes anew what rests on it");
        }
    }
    Ok(Exit::Done)
}

/// Withdraws the reading of a claim.
pub fn retract(args: &args::Retract, output: &Output) -> Result<Exit, Failure> {
    reasoned(&args.reason)?;
    let spec = Spec::open(args.spec.as_deref())?;
    let plan = spec.plan_as_run(output)?.plan;
    if plan.claim(&args.claim).is_none() {
        let names: Vec<&str> = plan.claims.iter().map(|claim| claim.name.as_str()).collect();
        return Err(Failure::new(Exit::Usage, format!("no claim is called `{}`", args.claim))
            .hint(format!("the claims are {}", names.join(", "))));
    }
    let leaf = avow_engine::retract(&spec.project, &plan.experiment, &args.claim, &args.reason)
        .map_err(failure::engine)?;
    if args.json {
        output.json(&json!({"entry": leaf, "claim": args.claim}))?;
    } else {
        output.data(format!("withdrew `{}` as {leaf}", args.claim))?;
    }
    Ok(Exit::Done)
}

fn reasoned(reason: &str) -> Result<(), Failure> {
    match reason.trim() {
        "" => {
            Err(Failure::new(Exit::Usage, "a reason is needed")
                .hint("say in a few words why: `--reason TEXT`"))
        }
        _ => Ok(()),
    }
}

/// The attempt or output that is named by digest or member.
fn meant(text: &str, plan: &Plan, reading: &Reading) -> Result<Wrong, Failure> {
    if let Ok(attempt) = text.parse::<AttemptDigest>() {
        if reading.index.attempt(attempt).map_err(failure::store)?.is_some() {
            return Ok(Wrong::Attempt(attempt));
        }
        let blob: BlobDigest = attempt.into();
        if reading.blobs.size(blob).map_err(failure::store)?.is_some() {
            return Ok(Wrong::Blob(blob));
        }
        return Err(Failure::new(Exit::Usage, format!("nothing in the store is called {text}"))
            .hint("`avow lineage` names attempts and outputs"));
    }
    let evidence = Evidence::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let member = evidence.members().find(|member| evidence.label(member.member) == text);
    match member.map(|member| &member.fate) {
        Some(Fate::Stands(stands)) => Ok(Wrong::Attempt(stands.attempt)),
        Some(_) => Err(Failure::new(Exit::Usage, format!("no attempt stands for {text}"))
            .hint("what failed or never ran cannot be declared wrong")),
        None => Err(Failure::new(Exit::Usage, format!("no member is called `{text}`")).hint(
            "name a member with all its axes, e.g. `train[seed=3]`, or a digest; `avow lineage` shows both",
        )),
    }
}
