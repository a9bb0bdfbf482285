//! in-toto Statements (v1) with SLSA provenance (v1): one for each attempt that stands.
//!
//! The subjects are the files that the attempt wrote, those of folders one by one, so that whoever holds a file can
//! ask for its statement by digest. `sha256` is what verifiers match by; `blake3` stands beside it. Additions of our
//! own live in `predicate` only, because readers refuse others at the top.

use std::collections::BTreeMap;

use avow_model::action::Command;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand;
use avow_model::plan::Source;
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::materialise::flatten;
use avow_store::{BlobStore, FileBlobs};
use serde_json::{Map, Value, json};

use crate::NAMES;
use crate::account::{Account, Executed};
use crate::digests::Known;
use crate::error::ExchangeError;
use crate::moment::moment;

/// The media type of a statement, which a signature covers.
pub const MEDIA_TYPE: &str = "application/vnd.in-toto+json";

/// The kind of digest that tells programs apart: of what they are made of, not of one file.
const IDENTITY: &str = "avow-identity";

/// The statement about an attempt; `None` where it wrote nothing, since a statement is about something.
pub fn of(
    blobs: &FileBlobs,
    account: &Account<'_>,
    executed: &Executed,
) -> Result<Option<Value>, ExchangeError> {
    let mut subjects = Vec::new();
    for (output, produced) in &executed.attempt.outputs {
        let path = executed.action.outputs.get(output).map_or(output.as_str(), |slot| slot.path.as_str());
        for (name, digest) in files(blobs, path, produced.artifact)? {
            subjects.push(json!({"name": name, "digest": digests(blobs, digest)?}));
        }
    }
    if subjects.is_empty() {
        return Ok(None);
    }
    let attempt = &executed.attempt;
    let mut byproducts = Vec::new();
    for (name, printed) in [("stdout", attempt.stdout), ("stderr", attempt.stderr)] {
        if let Some(digest) = printed {
            byproducts.push(json!({"name": name, "digest": digests(blobs, digest)?}));
        }
    }
    Ok(Some(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{NAMES}action:{}", attempt.encoding),
                "externalParameters": external(account, executed),
                "internalParameters": internal(account, executed),
                "resolvedDependencies": dependencies(blobs, account, executed)?,
            },
            "runDetails": {
                "builder": {
                    "id": format!("{NAMES}executor"),
                    "version": {"avow": account.tool},
                },
                "metadata": {
                    "invocationId": format!("{NAMES}attempt:{}", executed.digest),
                    "startedOn": moment(attempt.started), "finishedOn": moment(attempt.finished),
                },
                "byproducts": byproducts,
            },
        },
    })))
}

/// What the author chose: the point of the sweep, parameters, the command.
fn external(account: &Account<'_>, executed: &Executed) -> Value {
    let axes: BTreeMap<&str, Value> = expand::cell(account.plan, executed.member())
        .values()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    let params: BTreeMap<&String, Value> =
        account.plan.params.iter().map(|(name, value)| (name, json!(value))).collect();
    json!({
        "experiment": account.plan.experiment, "member": executed.label(), "axes": axes, "params": params,
        "command": executed.action.command.to_string(), "env": executed.action.env,
    })
}

/// What follows from it, by which records of Avow are found.
fn internal(account: &Account<'_>, executed: &Executed) -> Value {
    json!({
        "plan": account.digest.to_string(), "action": executed.attempt.action.to_string(),
        "run": executed.attempt.run, "confinement": executed.attempt.host.confinement,
        "ledgerHeads": executed.attempt.ledger_heads.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Everything that the attempt rests on: inputs, code, lock file, programs, operation.
fn dependencies(
    blobs: &FileBlobs,
    account: &Account<'_>,
    executed: &Executed,
) -> Result<Vec<Value>, ExchangeError> {
    let (action, mut all) = (&executed.action, Vec::new());
    let stage = account.stage(executed.member());
    for (mount, artifact) in &action.inputs {
        let input = stage.inputs.values().find(|input| input.mount == *mount);
        for (name, digest) in files(blobs, mount, *artifact)? {
            let mut one = json!({"name": name, "digest": digests(blobs, digest)?});
            if let Some(Source::Url { url, .. }) = input.map(|input| &input.from) {
                one["uri"] = json!(url);
            }
            if let Some(licence) = input.and_then(|input| input.licence.as_ref()) {
                one["annotations"] = json!({"licence": licence});
            }
            all.push(one);
        }
    }
    if let Some(code) = action.code {
        // The files of a code folder lie at their paths in the project.
        for (name, digest) in files(blobs, "", Artifact::Tree(code))? {
            all.push(json!({"name": name, "digest": digests(blobs, digest)?}));
        }
    }
    if let Some(lock) = action.environment {
        let path = stage.environment.as_ref().map_or("environment", |environment| &environment.path);
        all.push(json!({"name": path, "digest": digests(blobs, lock)?}));
    }
    for (word, digest) in &action.toolchain {
        all.push(json!({"name": word, "digest": {IDENTITY: digest.to_string()}}));
    }
    if let Command::Op { name, identity, .. } = &action.command {
        all.push(json!({"name": format!("avow op {name}"), "digest": {IDENTITY: identity}}));
    }
    Ok(all)
}

/// A file by its path, or the files of a folder by theirs; a folder whose record is not here is one thing.
fn files(
    blobs: &FileBlobs,
    path: &str,
    artifact: Artifact,
) -> Result<Vec<(String, BlobDigest)>, ExchangeError> {
    let Artifact::Tree(digest) = artifact else { return Ok(vec![(path.to_owned(), artifact.blob())]) };
    if blobs.size(digest.into())?.is_none() {
        return Ok(vec![(format!("{path}/"), digest.into())]);
    }
    let flat = flatten(blobs, &read_record::<Tree>(blobs, digest)?)?;
    let file = |(inner, entry): (String, Entry)| match entry {
        Entry::File { digest, .. } if path.is_empty() => Some((inner, digest)),
        Entry::File { digest, .. } => Some((format!("{path}/{inner}"), digest)),
        _ => None,
    };
    Ok(flat.entries.into_iter().filter_map(file).collect())
}

/// Both digests of bytes that are here, BLAKE3 alone of others.
fn digests(blobs: &FileBlobs, digest: BlobDigest) -> Result<Value, ExchangeError> {
    let mut all = Map::new();
    if blobs.size(digest)?.is_some() && blobs.path(digest).is_file() {
        all.insert("sha256".to_owned(), json!(Known::of_blob(blobs, digest)?.sha256));
    }
    all.insert("blake3".to_owned(), json!(digest.to_string()));
    Ok(Value::Object(all))
}
