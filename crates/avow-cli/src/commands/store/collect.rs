//! `avow store collect`: let go of what nothing holds.

use std::collections::BTreeMap;

use avow_store::collect::{self, Proposal};
use avow_store::{Project, RunLock};
use serde_json::json;

use super::project;
use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::policy::age;
use crate::settings::Settings;
use crate::words;

/// The most members that are listed one by one.
const LISTED: usize = 40;

/// Shows what would go, or lets it go.
pub fn collect(args: &args::StoreCollect, output: &Output) -> Result<Exit, Failure> {
    let project = project(&args.store)?;
    let keep = keep(args, &project)?;
    let lock = RunLock::try_acquire(&project).map_err(failure::lock)?;
    let now = now();
    let since = now.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX));
    let proposal = collect::propose(&project, &lock, since).map_err(failure::store)?;
    if !args.dry_run {
        collect::carry_out(&project, &lock, &proposal, now).map_err(failure::store)?;
    }
    if args.store.json {
        output.json(&as_json(&proposal, args.dry_run))?;
    } else {
        print(&proposal, args.dry_run, output)?;
    }
    Ok(Exit::Done)
}

fn keep(args: &args::StoreCollect, project: &Project) -> Result<u64, Failure> {
    match &args.keep {
        Some(text) => age(text).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("`{text}` is no age"))
                .hint("write `--keep 90d`, or `--keep 0d` for none")
        }),
        None => Ok(Settings::of(project)?.store.keep),
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// How many attempts at a member go, and their bytes.
type Members<'a> = BTreeMap<(&'a str, &'a str), (u64, u64)>;

fn members(proposal: &Proposal) -> Members<'_> {
    let mut members = Members::new();
    for doomed in &proposal.attempts {
        let name = (doomed.recorded.experiment.as_str(), doomed.recorded.member.as_str());
        let (count, bytes) = members.entry(name).or_default();
        *count += 1;
        *bytes += doomed.bytes;
    }
    members
}

fn print(proposal: &Proposal, dry: bool, output: &Output) -> Result<(), Failure> {
    let members = members(proposal);
    for ((experiment, member), (count, bytes)) in members.iter().take(LISTED) {
        let attempts = words::count(*count, "attempt");
        output.data(format!("{experiment}/{member}: {attempts}, {}", words::bytes(*bytes)))?;
    }
    if members.len() > LISTED {
        output.data(format!("… and {} more members; `--json` lists all", members.len() - LISTED))?;
    }
    let (unnamed, bytes) = proposal.unnamed;
    if unnamed > 0 {
        output.data(format!(
            "{} that no record names, {}",
            words::count(unnamed, "blob"),
            words::bytes(bytes)
        ))?;
    }
    let (would, could) =
        if dry { ("would go", "could then not be shown again") } else { ("went", "cannot be shown again") };
    output.data(format!(
        "{} ({}) {would}; {} {could} without being executed anew, {} kept",
        words::count(proposal.blobs.len() as u64, "blob"),
        words::bytes(proposal.bytes()),
        words::count(proposal.attempts.len() as u64, "attempt"),
        words::count(proposal.kept, "attempt"),
    ))?;
    if dry && !proposal.attempts.is_empty() {
        output.say("hint: `avow store pin NAME MEMBER` keeps one of them; without `--dry-run` they go");
    }
    Ok(())
}

fn as_json(proposal: &Proposal, dry: bool) -> serde_json::Value {
    let attempt = |doomed: &collect::Doomed| {
        let recorded = &doomed.recorded;
        json!({
            "experiment": recorded.experiment, "member": recorded.member, "attempt": recorded.digest(),
            "run": recorded.position.run, "finished": recorded.attempt.finished, "bytes": doomed.bytes,
        })
    };
    json!({
        "dry_run": dry, "attempts": proposal.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "kept": proposal.kept, "blobs": proposal.blobs.len(), "bytes": proposal.bytes(),
        "unnamed": {"blobs": proposal.unnamed.0, "bytes": proposal.unnamed.1},
    })
}
