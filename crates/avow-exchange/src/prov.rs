//! PROV-JSON: what was done as entities, activities and agents (W3C PROV-DM in the member submission's JSON form).
//!
//! Bytes are entities named by their BLAKE3 digest, so the same bytes are one entity whatever they were called; attempts
//! are activities, failures included. The plan is what activities were associated under. A folder is a collection of
//! its files, which joins gathered outputs to what was made of them. Nothing is said of who typed a command: that is
//! in no record.

use std::collections::BTreeSet;

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand;
use avow_model::tree::{Entry, Tree};
use avow_model::value::Value as Scalar;
use avow_store::blob::read_record;
use avow_store::materialise::flatten;
use avow_store::{BlobStore, FileBlobs};
use serde_json::{Map, Value, json};

use crate::NAMES;
use crate::account::{Account, Executed};
use crate::digests::Known;
use crate::error::ExchangeError;
use crate::moment::moment;

/// The document.
pub fn document(blobs: &FileBlobs, account: &Account<'_>) -> Result<Value, ExchangeError> {
    let mut writer = Writer { blobs, sections: Map::new(), relations: 0 };
    writer.agents(account);
    let plan = entity(account.digest.into());
    let about = json!({"prov:type": name("prov:Plan"), "prov:label": account.plan.experiment});
    writer.put("entity", &plan, about);
    for executed in &account.executed {
        writer.attempt(account, executed, &plan)?;
    }
    let prefix = json!({"avow": format!("{NAMES}ns:"), "b3": format!("{NAMES}blake3:")});
    let mut document = Map::from_iter([("prefix".to_owned(), prefix)]);
    document.extend(writer.sections);
    Ok(Value::Object(document))
}

struct Writer<'a> {
    blobs: &'a FileBlobs,
    sections: Map<String, Value>,
    relations: usize,
}

fn entity(digest: BlobDigest) -> String {
    format!("b3:{digest}")
}

/// A name that is a value.
fn name(qualified: &str) -> Value {
    typed(qualified, "prov:QUALIFIED_NAME")
}

fn typed(value: impl ToString, kind: &str) -> Value {
    json!({"$": value.to_string(), "type": kind})
}

fn scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Bool(is) => typed(is, "xsd:boolean"),
        Scalar::Int(number) => typed(number, "xsd:long"),
        Scalar::Float(number) => typed(number, "xsd:double"),
        other => json!(other.to_string()),
    }
}

impl Writer<'_> {
    /// Writes an element or relation, unless it is there.
    fn put(&mut self, section: &str, id: &str, properties: Value) {
        let section = self.sections.entry(section).or_insert_with(|| json!({}));
        if let Value::Object(section) = section {
            section.entry(id).or_insert(properties);
        }
    }

    fn has(&self, section: &str, id: &str) -> bool {
        self.sections.get(section).is_some_and(|section| section.get(id).is_some())
    }

    fn relate(&mut self, section: &str, properties: Value) {
        self.relations += 1;
        let id = format!("_:r{}", self.relations);
        self.put(section, &id, properties);
    }

    fn agents(&mut self, account: &Account<'_>) {
        let about = json!({
            "prov:type": name("prov:SoftwareAgent"), "prov:label": "Avow", "avow:version": account.tool,
        });
        self.put("agent", "avow:avow", about);
        let authors = account.citation.iter().flat_map(|citation| &citation.authors);
        for (position, author) in authors.enumerate() {
            let kind = if author.is_body() { "prov:Organization" } else { "prov:Person" };
            let mut about = json!({"prov:type": name(kind), "prov:label": author.whole_name()});
            if let Some(orcid) = &author.orcid {
                about["avow:orcid"] = json!(orcid);
            }
            self.put("agent", &format!("avow:author-{}", position + 1), about);
            let plan = entity(account.digest.into());
            self.relate(
                "wasAttributedTo",
                json!({"prov:entity": plan, "prov:agent": format!("avow:author-{}", position + 1)}),
            );
        }
    }

    fn attempt(
        &mut self,
        account: &Account<'_>,
        executed: &Executed,
        plan: &str,
    ) -> Result<(), ExchangeError> {
        let attempt = &executed.attempt;
        let id = format!("avow:attempt-{}", executed.digest);
        let mut about = json!({
            "prov:type": name("avow:Attempt"), "prov:label": executed.label(),
            "prov:startTime": moment(attempt.started), "prov:endTime": moment(attempt.finished),
            "avow:outcome": attempt.outcome.to_string(), "avow:stands": typed(executed.stands, "xsd:boolean"),
            "avow:command": executed.action.command.to_string(), "avow:run": attempt.run,
            "avow:action": name(&entity(attempt.action.into())),
        });
        for (axis, value) in expand::cell(account.plan, executed.member()).values() {
            about[format!("avow:axis-{axis}")] = scalar(&value);
        }
        for (variable, text) in &executed.action.env {
            about[format!("avow:env-{variable}")] = json!(text);
        }
        self.put("activity", &id, about);
        let association = json!({"prov:activity": id, "prov:agent": "avow:avow", "prov:plan": plan});
        self.relate("wasAssociatedWith", association);
        let used = self.used(executed, &id)?;
        for (output, produced) in &attempt.outputs {
            let path = executed.action.outputs.get(output).map_or(output.as_str(), |slot| slot.path.as_str());
            let made = self.artifact(produced.artifact, path)?;
            let role = json!({"prov:entity": made, "prov:activity": id, "prov:role": output});
            self.relate("wasGeneratedBy", role);
            for from in &used {
                let derived =
                    json!({"prov:generatedEntity": made, "prov:usedEntity": from, "prov:activity": id});
                self.relate("wasDerivedFrom", derived);
            }
        }
        Ok(())
    }

    /// What an attempt read: inputs by the place where it found them, code, lock file. Returns the inputs.
    fn used(&mut self, executed: &Executed, activity: &str) -> Result<BTreeSet<String>, ExchangeError> {
        let mut inputs = BTreeSet::new();
        for (mount, artifact) in &executed.action.inputs {
            let read = self.artifact(*artifact, mount)?;
            self.relate(
                "used",
                json!({"prov:activity": activity, "prov:entity": read, "prov:role": format!("input {mount}")}),
            );
            inputs.insert(read);
        }
        let code = executed.action.code.map(|code| (Artifact::Tree(code), "code"));
        let lock = executed.action.environment.map(|lock| (Artifact::Blob(lock), "environment"));
        for (artifact, role) in code.into_iter().chain(lock) {
            let read = self.artifact(artifact, role)?;
            self.relate("used", json!({"prov:activity": activity, "prov:entity": read, "prov:role": role}));
        }
        Ok(inputs)
    }

    /// Describes a file, or a folder with its files; its id. Bytes that are here are hashed by SHA-256 as well.
    fn artifact(&mut self, artifact: Artifact, path: &str) -> Result<String, ExchangeError> {
        let id = entity(artifact.blob());
        if self.has("entity", &id) {
            return Ok(id);
        }
        match artifact {
            Artifact::Blob(digest) => {
                let mut about = json!({"prov:label": path});
                if self.blobs.size(digest)?.is_some() && self.blobs.path(digest).is_file() {
                    let known = Known::of_blob(self.blobs, digest)?;
                    about["avow:sha256"] = json!(known.sha256);
                    about["avow:size"] = typed(known.size, "xsd:long");
                }
                self.put("entity", &id, about);
            }
            Artifact::Tree(digest) => {
                self.put("entity", &id, json!({"prov:type": name("prov:Collection"), "prov:label": path}));
                if self.blobs.size(digest.into())?.is_some() {
                    let flat = flatten(self.blobs, &read_record::<Tree>(self.blobs, digest)?)?;
                    self.members(&id, path, &flat)?;
                }
            }
        }
        Ok(id)
    }

    fn members(&mut self, folder: &str, path: &str, flat: &Tree) -> Result<(), ExchangeError> {
        for (inner, entry) in &flat.entries {
            let Entry::File { digest, .. } = entry else { continue };
            let member = self.artifact(Artifact::Blob(*digest), &format!("{path}/{inner}"))?;
            self.relate("hadMember", json!({"prov:collection": folder, "prov:entity": member}));
        }
        Ok(())
    }
}
