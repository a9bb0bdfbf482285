//! `avow bundle`: an experiment's evidence as one file.

mod anonymous;

use std::collections::HashSet;
use std::path::PathBuf;

use avow_audit::{Audit, Evidence};
use avow_exchange::bundle::{Contents, Wanted, What, write};
use avow_model::canonical::Record;
use avow_model::digest::Artifact;
use avow_model::plan::Determinism;
use avow_store::BlobStore;
use serde_json::json;

use super::export::account::credits;
use crate::args;
use crate::context::{Reading, Spec};
use crate::embargo;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

pub(super) use anonymous::opened;

/// Writes a bundle.
pub fn bundle(args: &args::Bundle, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    // They follow from the registration's line, which has names in it.
    if args.anonymous && avow_model::seed::is_fresh(plan) {
        return Err(Failure::new(Exit::Usage, "fresh seeds show whose registration they come from")
            .hint("a bundle for blind review needs seeds that the spec lists or counts: `{seeds: 8}`"));
    }
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    embargo::closed_to(&spec.project, &plan.experiment, "a bundle")?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    super::verdict::guard(&spec, &reading, &audit, args.peek, ("bundle", "the whole experiment"))?;
    let evidence = audit.evidence();
    let digest = plan.digest();
    if reading.blobs.size(digest.into()).map_err(failure::store)?.is_none() {
        return Err(never_run(plan.experiment.as_str(), &reading));
    }
    let actions: HashSet<_> = evidence.members().filter_map(|member| member.action).collect();
    let without = if args.thin { repeatable(evidence) } else { HashSet::new() };
    let wanted = Wanted {
        experiment: &plan.experiment,
        plan: digest,
        actions: &actions,
        spec: &spec.path,
        text: &spec.text,
        without: &without,
    };
    let mut contents = Contents::gather(&spec.project, &reading.blobs, &wanted).map_err(failure::bundle)?;
    contents.add_beside(beside(&spec)?);
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.avow.zip", plan.experiment)));
    if args.anonymous {
        let blind = anonymous::Blind { path: &path, plan, spec: &spec, reading: &reading, contents };
        blind.write(args, output)?;
        return Ok(super::verdict::damage_of(&evidence.findings, &[], output));
    }
    let written =
        write(&path, &reading.blobs, &contents, &plan.experiment, digest, None).map_err(failure::bundle)?;
    let (entries, absent) = (written.manifest.entries.len(), written.manifest.absent.len());
    if args.json {
        output.json(&json!({
            "bundle": path, "name": written.name, "bytes": written.bytes, "entries": entries,
            "unpacked": written.manifest.size(), "absent": absent, "runs": written.manifest.runs.len(),
        }))?;
    } else {
        output.data(format!("wrote `{}` ({})", path.display(), words::bytes(written.bytes)))?;
        output.data(format!("  name     {}", written.name))?;
        output.data(format!(
            "  holds    {entries} entries, {}",
            words::count(written.manifest.runs.len() as u64, "run")
        ))?;
        if absent > 0 {
            output
                .data(format!("  without  {} that the records name", words::count(absent as u64, "blob")))?;
        }
        output.say(format!("whoever gets it checks it with `avow verify {}`", path.display()));
    }
    // Damaged evidence is bundled as it is, for others to look at, and not without a word.
    Ok(super::verdict::damage_of(&evidence.findings, &[], output))
}

/// What travels along although no record names it: tables that axes are read from, citation and licences.
fn beside(spec: &Spec) -> Result<Vec<(What, String, Vec<u8>)>, Failure> {
    let tables = spec.tables()?.into_iter().map(|(path, bytes)| (What::Table, path, bytes));
    let credits = credits(spec.project.root())?;
    let credits = credits.into_iter().filter_map(|paper| {
        let plain = paper.path != spec.path;
        What::of_name(&paper.path).filter(|_| plain).map(|what| (what, paper.path, paper.bytes))
    });
    Ok(tables.chain(credits).collect())
}

/// The plan as it stands was never carried out, so there is nothing to bundle under it.
pub fn never_run(experiment: &str, reading: &Reading) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("`{experiment}` was never run as the spec stands now"));
    match reading.index.latest(Some(experiment)) {
        Some(run) => failure.hint(format!(
            "`avow run` carries it out; the latest run, {}, carried out another plan: `avow explain` says what changed",
            run.run
        )),
        None => failure.hint("`avow run` carries it out"),
    }
}

/// The outputs that can be made again, those that hold measurements apart: claims rest on them.
fn repeatable(evidence: &Evidence<'_>) -> HashSet<Artifact> {
    let (mut without, mut needed) = (HashSet::new(), HashSet::new());
    for member in evidence.members() {
        let stage = &evidence.plan.stages[member.member.stage as usize];
        let again = !matches!(stage.determinism, Determinism::Unrepeatable | Determinism::Distribution);
        for (name, artifact) in member.attempts.iter().flat_map(|attempt| &attempt.outputs) {
            let measured = stage.measurements.iter().any(|file| file.output == *name);
            if again && !measured {
                without.insert(*artifact)
            } else {
                needed.insert(*artifact)
            };
        }
    }
    without.retain(|artifact| !needed.contains(artifact));
    without
}
