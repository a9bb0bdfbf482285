//! Bundles for blind review: the same evidence with names, hosts, paths and git's identities taken out.
//!
//! Attempts name their machines, journals are chained over them, and ledgers cite journals: so nothing can be taken
//! out of a history without another history coming of it. What is made here is that other history: each line is
//! written anew in its order, with every digest of a line or an attempt replaced by that of its new form. Plans,
//! actions, code, inputs and outputs keep their bytes and digests, and the claims follow from them as before.
//!
//! The new history is a function of the named bundle, of the texts to take out, and of 32 random bytes. The author
//! keeps those in an *opening*, whose SHA-256 stands in the manifest. Whoever gets the named bundle and the opening
//! later makes the anonymous bundle again and compares: so it is proved whose it was, and that nothing else was
//! changed. What is withheld altogether — signatures, time stamps, commits of git, what programs printed — is counted,
//! each piece behind a salted commitment of its own.

mod history;
mod texts;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::journal::{Event, Journal};
use avow_model::ledger::canonical;
use avow_model::plan::{Plan, Source};
use avow_store::blob::read_record;
use avow_store::collect::Marks;
use avow_store::{BlobStore, FileBlobs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::contents::Contents;
use super::error::BundleError;
use super::manifest::What;
use crate::digests::hex;
use history::History;
pub use texts::Texts;

/// What a manifest says of an anonymous bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anonymous {
    /// The SHA-256 of the opening, in hexadecimal.
    pub commitment: String,
    /// What was withheld, sorted.
    pub withheld: Vec<Withheld>,
}

/// One piece that was withheld.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    /// `signature`, `time-stamp`, `proof`, `git`, `log`, `environment`, `reads`, `citation`, `licence`.
    pub kind: String,
    /// The SHA-256 of `{"body_sha256":…,"kind":"avow-opening","nonce":…,"v":1}` as canonical JSON.
    pub commitment: String,
}

/// What the author keeps, to be shown after the review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The name of the bundle that the anonymous one was made from.
    pub bundle: String,
    /// `avow-opening`.
    pub kind: String,
    /// 32 random bytes, in hexadecimal.
    pub nonce: String,
    /// The texts that were taken out, sorted.
    pub texts: Vec<String>,
    /// 1.
    pub v: u32,
}

impl Opening {
    /// Of a named bundle.
    pub fn new(bundle: String, nonce: String, texts: &Texts) -> Opening {
        Opening { bundle, kind: "avow-opening".to_owned(), nonce, texts: texts.all(), v: 1 }
    }

    /// Its one form, whose SHA-256 is the commitment.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        let invalid = |error: String| BundleError::Opening(error);
        let value = serde_json::to_value(self).map_err(|e| invalid(e.to_string()))?;
        canonical(&value).map(String::into_bytes).map_err(|e| invalid(e.to_string()))
    }

    /// Reads one and insists on its form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Opening, BundleError> {
        let opening: Opening =
            serde_json::from_slice(bytes).map_err(|error| BundleError::Opening(error.to_string()))?;
        if opening.kind != "avow-opening" || opening.v != 1 || opening.to_bytes()? != bytes {
            return Err(BundleError::Opening(
                "it is not in the form in which openings are written".to_owned(),
            ));
        }
        Ok(opening)
    }

    /// What stands in the manifest.
    pub fn commitment(&self) -> Result<String, BundleError> {
        Ok(hex(&Sha256::digest(self.to_bytes()?)))
    }
}

/// A salted digest of something, which nobody can guess who does not have the nonce.
fn salted(nonce: &str, purpose: &str, of: &[u8]) -> String {
    let mut hasher = Sha256::new();
    for part in [nonce.as_bytes(), purpose.as_bytes(), of] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// The commitment to a piece: its own nonce follows from the opening's, its place and its content.
fn withheld(nonce: &str, kind: &str, place: &str, body: &[u8]) -> Result<Withheld, BundleError> {
    let opening = json!({
        "body_sha256": hex(&Sha256::digest(body)), "kind": "avow-opening",
        "nonce": salted(nonce, "piece", place.as_bytes()), "v": 1,
    });
    let text = canonical(&opening).map_err(|error| BundleError::Opening(error.to_string()))?;
    Ok(Withheld { kind: kind.to_owned(), commitment: hex(&Sha256::digest(text)) })
}

/// Takes the texts out of what a bundle holds. Fails with all places where they stand in what may not be changed.
pub fn anonymise(
    contents: &mut Contents,
    blobs: &FileBlobs,
    plan: &Plan,
    nonce: &str,
    texts: &Texts,
) -> Result<Vec<Withheld>, BundleError> {
    let mut out = Vec::new();
    let journals: BTreeMap<String, Journal> = contents
        .journals
        .iter()
        .map(|(run, bytes)| (run.clone(), avow_model::journal::read(bytes)))
        .collect();
    let roles = Roles::of(plan, &journals, blobs)?;
    for (one, bytes) in std::mem::take(&mut contents.beside) {
        // Who is to be cited, and whose licence it is, says whose the work is.
        if one.what == What::Table {
            contents.beside.push((one, bytes));
            continue;
        }
        // What a record names as well stays with the records.
        if roles.names.contains_key(&one.blob) || roles.outputs.contains(&one.blob) {
            contents.blobs.insert(one.blob);
        }
        out.push(withheld(nonce, one.what.word(), &one.path, &bytes)?);
    }
    let found = identifying(contents, blobs, texts)?;
    let bound: Vec<&BlobDigest> = found.iter().filter(|digest| !roles.may_go(**digest)).collect();
    let mut places: BTreeSet<String> = bound.into_iter().map(|digest| roles.called(*digest)).collect();
    if let Some((spec, text)) = &contents.spec {
        places.extend(texts.find(text).map(|_| spec.path.clone()));
        places.extend(texts.find(spec.path.as_bytes()).map(|_| format!("the path `{}`", spec.path)));
    }
    for (one, bytes) in &contents.beside {
        let named = texts.find(bytes).is_some() || texts.find(one.path.as_bytes()).is_some();
        places.extend(named.then(|| one.path.clone()));
    }
    let named = contents.ledgers.keys().chain(contents.journals.keys());
    places.extend(named.filter(|name| texts.find(name.as_bytes()).is_some()).cloned());
    if !places.is_empty() {
        return Err(BundleError::Identifying(places.into_iter().collect()));
    }
    for (name, bytes) in std::mem::take(&mut contents.files) {
        if name.starts_with("proofs/") {
            let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
                Some("sig") => "signature",
                Some("tsr" | "tsq") => "time-stamp",
                _ => "proof",
            };
            out.push(withheld(nonce, kind, &name, &bytes)?);
        } else {
            contents.files.insert(name, bytes);
        }
    }
    let mut history = History::new(nonce, texts, &found);
    history.rewrite(contents, &journals, blobs)?;
    out.append(&mut history.withheld);
    for digest in &found {
        // What is only a log, or beside it, is named by nothing any more.
        if contents.blobs.remove(digest) && roles.outputs.contains(digest) {
            contents.absent.insert(*digest);
        }
    }
    out.sort();
    Ok(out)
}

/// The blobs in which one of the texts stands.
fn identifying(
    contents: &Contents,
    blobs: &FileBlobs,
    texts: &Texts,
) -> Result<HashSet<BlobDigest>, BundleError> {
    let mut found = HashSet::new();
    for digest in &contents.blobs {
        let path = blobs.open_path(*digest)?.unwrap_or_else(|| blobs.path(*digest));
        if texts.stands_in(&path)? {
            found.insert(*digest);
        }
    }
    Ok(found)
}

/// What blobs are to the evidence.
struct Roles {
    /// What attempts carry beside their results: logs, what was present, what was read.
    incidental: HashSet<BlobDigest>,
    /// Outputs that hold no measurements, with whatever is in them.
    outputs: HashSet<BlobDigest>,
    /// What everything else is called.
    names: BTreeMap<BlobDigest, String>,
}

impl Roles {
    fn of(
        plan: &Plan,
        journals: &BTreeMap<String, Journal>,
        blobs: &FileBlobs,
    ) -> Result<Roles, BundleError> {
        let mut roles = Roles { incidental: HashSet::new(), outputs: HashSet::new(), names: BTreeMap::new() };
        let mut measured = HashSet::new();
        let lines = journals.values().flat_map(|journal| &journal.lines);
        for line in lines {
            let Event::Finished { member, attempt } = &line.event else { continue };
            let beside = [attempt.stdout, attempt.stderr, attempt.environment];
            roles.incidental.extend(beside.into_iter().flatten());
            roles.incidental.extend(attempt.reads.map(BlobDigest::from));
            let stage = plan.stage(member.split('[').next().unwrap_or(member));
            for (name, produced) in &attempt.outputs {
                let numbers =
                    stage.is_none_or(|stage| stage.measurements.iter().any(|file| file.output == *name));
                let all = parts(blobs, produced.artifact);
                if numbers {
                    let called = || format!("{member}.{name}");
                    all.iter().for_each(|digest| drop(roles.names.insert(*digest, called())));
                    measured.extend(all);
                } else {
                    roles.outputs.extend(all);
                }
            }
        }
        roles.outputs.retain(|digest| !measured.contains(digest));
        roles.incidental.retain(|digest| !measured.contains(digest));
        for stage in &plan.stages {
            for input in stage.inputs.values() {
                if let Source::Path { path, artifact } = &input.from {
                    roles.keep(blobs, path, *artifact);
                }
            }
            if let Some(environment) = &stage.environment {
                roles.keep(blobs, &environment.path, Artifact::Blob(environment.lock));
            }
            if let Some(code) = stage.code {
                let tree: avow_model::tree::Tree = read_record(blobs, code)?;
                for (path, entry) in avow_store::materialise::flatten(blobs, &tree)?.entries {
                    if let avow_model::tree::Entry::File { digest, .. } = entry {
                        roles.keep(blobs, &path, Artifact::Blob(digest));
                    }
                }
                roles.keep(blobs, "the code", Artifact::Tree(code));
            }
        }
        Ok(roles)
    }

    /// Notes what may not be changed, whatever else has the same bytes.
    fn keep(&mut self, blobs: &FileBlobs, name: &str, artifact: Artifact) {
        for digest in parts(blobs, artifact) {
            self.outputs.remove(&digest);
            self.incidental.remove(&digest);
            self.names.entry(digest).or_insert_with(|| name.to_owned());
        }
    }

    fn may_go(&self, digest: BlobDigest) -> bool {
        self.incidental.contains(&digest) || self.outputs.contains(&digest)
    }

    fn called(&self, digest: BlobDigest) -> String {
        self.names.get(&digest).cloned().unwrap_or_else(|| format!("the record {}", digest.short()))
    }
}

/// An artifact's blobs, those of the files in it included.
fn parts(blobs: &FileBlobs, artifact: Artifact) -> HashSet<BlobDigest> {
    let mut marks = Marks::new(blobs);
    marks.artifact(artifact);
    marks.into_blobs().collect()
}
