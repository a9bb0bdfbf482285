//! `avow amend --same-as`: a change that is said to change nothing is tried on a drawn sample.

use std::process::{Command, Stdio};

use avow_audit::evidence::Evidence;
use avow_audit::{amended, same};
use avow_model::digest::{PlanDigest, RegistrationDigest};
use avow_model::plan::{Determinism, Plan};
use avow_store::blob::read_record;
use serde_json::json;

use crate::commands::ledger;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::deviation;

/// The registration that a spec is said to be the same as, if its changes can be tried at all.
pub fn comparable(spec: &Spec, old: &str, output: &Output) -> Result<RegistrationDigest, Failure> {
    let new = spec.plan_as_run(output)?.plan;
    let reading = Reading::open(&spec.project, &new.experiment)?;
    let in_force = reading.ledger.in_force().0;
    let leaf = match (old, &in_force) {
        ("registered", Some(force)) => force.registered.leaf,
        ("registered", None) => return Err(failure::engine(avow_engine::EngineError::NotRegistered)),
        (digits, _) => ledger::entry(&reading.ledger, digits)?,
    };
    if in_force.is_none_or(|force| force.registered.leaf != leaf) {
        return Err(Failure::new(Exit::Usage, format!("{} is not the registration in force", leaf.short()))
            .hint("an amendment follows the one in force: `--same-as registered`"));
    }
    let before = registered(&reading, leaf)?;
    let changed = same::changed(&before, &new);
    if changed.is_empty() {
        return Err(Failure::new(Exit::Usage, "no stage differs from what is registered")
            .hint("leave `--same-as` out: there is nothing to try"));
    }
    for name in changed {
        let declared = new.stage(name).map(|stage| &stage.determinism);
        if matches!(declared, Some(Determinism::Distribution | Determinism::Unrepeatable)) {
            return Err(Failure::new(
                Exit::Usage,
                format!("`{name}` does not promise to give the same twice"),
            )
            .hint("what varies anyway proves nothing; amend without `--same-as`"));
        }
    }
    Ok(leaf)
}

fn registered(reading: &Reading, leaf: RegistrationDigest) -> Result<Plan, Failure> {
    let entry = reading.ledger.entry(leaf);
    let digest = entry.and_then(|entry| entry.fields.get("plan")?.as_str()?.parse::<PlanDigest>().ok());
    let digest = digest.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} is no registration", leaf.short()))
            .hint("`avow ledger log` lists them")
    })?;
    read_record::<Plan>(&reading.blobs, digest).map_err(failure::store)
}

/// Carries the drawn members out, in a process of their own like any run, and says what came of them.
pub fn carry_out(
    spec: &Spec,
    entry: RegistrationDigest,
    json: bool,
    output: &Output,
) -> Result<Exit, Failure> {
    let plan = spec.plan_as_run(output)?.plan;
    let labels = {
        let reading = Reading::open(&spec.project, &plan.experiment)?;
        let claimed = reading.ledger.entry(entry).and_then(same::claimed);
        let Some((old, count)) = claimed else { return Ok(Exit::Done) };
        let old = registered(&reading, old)?;
        let old = Evidence::gather(&old, reading.source(), &reading.ledger).map_err(failure::audit)?;
        let before =
            |heads: &[RegistrationDigest]| !heads.iter().any(|head| reading.ledger.precedes(entry, *head));
        same::sample(&old, &plan, entry, count, &before)
    };
    if labels.is_empty() {
        output.always("nothing of the changed stages stood before, so that there is nothing to compare");
        return Ok(Exit::Done);
    }
    run(spec, &labels)?;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let (source, ledger) = (reading.source(), &reading.ledger);
    let evidence = Evidence::gather(&plan, source, ledger).map_err(failure::audit)?;
    let all = amended::amendments(&evidence, ledger, source, &mut Vec::new()).map_err(failure::audit)?;
    let told = |one: &&avow_audit::Deviation| matches!(&one.what, avow_audit::deviation::What::Sampled { entry: of, .. } if *of == entry);
    let Some(found) = all.iter().find(told) else { return Ok(Exit::Done) };
    if json {
        output.json(&json!({"entry": entry, "sampled": found}))?;
    } else {
        output.data(format!("  {}", deviation::words(found)))?;
    }
    Ok(if found.is_unexplained() { Exit::Deviation } else { Exit::Done })
}

fn run(spec: &Spec, labels: &[String]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Machine, "the drawn members could not be carried out").because(error)
    };
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["run", "-q", "-k", &spec.shown]).stdout(Stdio::null());
    labels.iter().for_each(|label| {
        command.args(["--only", label]);
    });
    // Members that fail are told below as not carried out.
    command.status().map(|_| ()).map_err(failed)
}
