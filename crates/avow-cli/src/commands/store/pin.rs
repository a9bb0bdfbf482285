//! `avow store pin` and `avow store unpin`: what a person wants kept.

use std::sync::Arc;

use avow_model::digest::{AttemptDigest, BlobDigest};
use avow_store::pins::{self, Pin};
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, RecordStore, Recorded, index};
use serde_json::json;

use super::project;
use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

fn here() -> Result<Project, Failure> {
    project(&args::StoreArg { folder: ".".into(), json: false })
}

/// Sets a pin, or lists all.
pub fn pin(args: &args::StorePin, output: &Output) -> Result<Exit, Failure> {
    let project = here()?;
    let (Some(name), Some(what)) = (&args.name, &args.what) else { return list(&project, args.json, output) };
    let (attempts, blobs) = match what.parse::<BlobDigest>() {
        Ok(digest) => by_digest(&project, digest)?,
        Err(_) => (vec![by_member(&project, what)?], Vec::new()),
    };
    let pin = Pin { at: super::collect::now(), what: what.clone(), attempts, blobs };
    pins::set(&project, name, &pin).map_err(failure::store)?;
    if args.json {
        output.json(&json!({"name": name, "pin": pin}))?;
    } else {
        output.data(format!("{name}: {what} is kept until `avow store unpin {name}`"))?;
    }
    Ok(Exit::Done)
}

fn list(project: &Project, json: bool, output: &Output) -> Result<Exit, Failure> {
    let all = pins::read(project).map_err(failure::store)?;
    if json {
        let rows: Vec<_> = all.iter().map(|(name, pin)| json!({"name": name, "pin": pin})).collect();
        output.json(&rows)?;
        return Ok(Exit::Done);
    }
    for (name, pin) in &all {
        output.data(format!("{name}: {} (since {})", pin.what, words::moment(pin.at)))?;
    }
    if all.is_empty() {
        output
            .say("nothing is pinned; `avow store pin NAME 'train[seed=3]'` keeps a member's latest success");
    }
    Ok(Exit::Done)
}

/// An attempt or a blob.
fn by_digest(
    project: &Project,
    digest: BlobDigest,
) -> Result<(Vec<AttemptDigest>, Vec<BlobDigest>), Failure> {
    let index = index::memory_index(project).map_err(failure::store)?;
    let attempt = AttemptDigest::from_bytes(*digest.as_bytes());
    if index.attempt(attempt).map_err(failure::store)?.is_some() {
        return Ok((vec![attempt], Vec::new()));
    }
    let blobs = FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default()));
    if blobs.size(digest).map_err(failure::store)?.is_none() {
        return Err(Failure::new(Exit::Usage, format!("the store holds nothing called `{digest}`"))
            .hint("`avow lineage` and `avow get --json` print digests"));
    }
    Ok((Vec::new(), vec![digest]))
}

/// The latest success at a member, `MEMBER` or `EXPERIMENT/MEMBER`.
fn by_member(project: &Project, what: &str) -> Result<AttemptDigest, Failure> {
    let (experiment, member) = match what.split_once('/').filter(|(before, _)| !before.contains('[')) {
        Some((experiment, member)) => (Some(experiment), member),
        None => (None, what),
    };
    let index = index::memory_index(project).map_err(failure::store)?;
    let entries = index.entries().map_err(failure::store)?;
    let fits = |recorded: &&Recorded| {
        recorded.member == member
            && experiment.is_none_or(|name| name == recorded.experiment)
            && recorded.attempt.outcome.succeeded()
            && !recorded.attempt.verification
    };
    let found: Vec<&Recorded> = entries.iter().filter(fits).collect();
    let Some(last) = found.last() else {
        return Err(Failure::new(Exit::Usage, format!("nothing called `{what}` succeeded in this store"))
            .hint("a member looks like `train[seed=3]`; `avow table` shows members"));
    };
    if found.iter().any(|recorded| recorded.experiment != last.experiment) {
        return Err(Failure::new(Exit::Usage, format!("several experiments have a member `{member}`"))
            .hint(format!("name one: `{}/{member}`", last.experiment)));
    }
    Ok(last.digest())
}

/// Removes a pin.
pub fn unpin(args: &args::StoreUnpin, output: &Output) -> Result<Exit, Failure> {
    if !pins::remove(&here()?, &args.name).map_err(failure::store)? {
        return Err(Failure::new(Exit::Usage, format!("there is no pin `{}`", args.name))
            .hint("`avow store pin` lists all"));
    }
    output.data(format!("{}: no longer kept", args.name))?;
    Ok(Exit::Done)
}
