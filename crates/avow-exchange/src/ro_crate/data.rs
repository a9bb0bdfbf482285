//! The files of a crate: where each lies, and what it is.

use std::collections::{BTreeMap, HashMap};

use avow_model::digest::{Artifact, AttemptDigest, BlobDigest};
use avow_model::expand::Member;
use avow_model::plan::Source;
use avow_model::tree::{Entry, Tree, check_path};
use avow_store::FileBlobs;
use avow_store::blob::read_record;
use avow_store::materialise::flatten;
use serde_json::{Value, json};

use super::graph::{Graph, all, to};
use super::words::{file_id, format_of};
use super::{METADATA, Written, credit};
use crate::account::{Account, Executed};
use crate::digests::Known;
use crate::error::ExchangeError;
use crate::project_files::Files;

/// What lies in the crate.
pub(super) struct Data<'a> {
    blobs: &'a FileBlobs,
    files: Files<'a>,
    /// Files that are no blobs, with what they are.
    extra: BTreeMap<String, (Vec<u8>, String)>,
    /// Paths of code, by stage.
    code: HashMap<usize, Vec<String>>,
    /// Where artifacts lie that are no file of the project.
    outputs: BTreeMap<(AttemptDigest, String), (String, Artifact, u64)>,
    /// The same for what was fetched or written for an attempt.
    given: BTreeMap<String, Artifact>,
    /// The attempt that stands for each member.
    standing: HashMap<Member, AttemptDigest>,
    bytes: u64,
}

impl<'a> Data<'a> {
    /// Decides where everything lies.
    pub fn gather(blobs: &'a FileBlobs, account: &Account<'_>) -> Result<Data<'a>, ExchangeError> {
        let mut data = Data {
            blobs,
            files: Files::own(blobs),
            extra: BTreeMap::new(),
            code: HashMap::new(),
            outputs: BTreeMap::new(),
            given: BTreeMap::new(),
            standing: HashMap::new(),
            bytes: 0,
        };
        data.files.plan(account.plan)?;
        for (index, stage) in account.plan.stages.iter().enumerate() {
            if let Some(code) = stage.code {
                let flat = flatten(blobs, &read_record::<Tree>(blobs, code)?)?;
                let files = flat.entries.into_iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
                data.code.insert(index, files.map(|(path, _)| path).collect());
            }
        }
        for executed in &account.executed {
            if executed.stands {
                data.standing.extend(executed.members.iter().map(|(member, _)| (*member, executed.digest)));
            }
            data.attempt(account, executed)?;
        }
        data.extra(account.spec.path, account.spec.text.as_bytes(), "The spec of the experiment.")?;
        for paper in &account.papers {
            data.extra(&paper.path, &paper.bytes, &paper.about)?;
        }
        if data.files.tree.entries.contains_key(METADATA) || data.extra.contains_key(METADATA) {
            return Err(ExchangeError::Twice(METADATA.to_owned()));
        }
        Ok(data)
    }

    fn attempt(&mut self, account: &Account<'_>, executed: &Executed) -> Result<(), ExchangeError> {
        let (stage, member) = (account.stage(executed.member()), executed.member());
        let mut folder = format!("results/{}/{:04}", stage.name, member.cell);
        if !executed.stands {
            folder = format!("{folder}-{}", executed.digest.short());
        }
        for (name, produced) in &executed.attempt.outputs {
            let Some(slot) = executed.action.outputs.get(name) else { continue };
            let path = format!("{folder}/{}", slot.path);
            self.files.artifact(&path, produced.artifact)?;
            let place = (path, produced.artifact, produced.size);
            self.outputs.insert((executed.digest, name.clone()), place);
        }
        for (_, input, artifact) in executed.inputs(stage) {
            if matches!(input.from, Source::Url { .. } | Source::Probes { .. }) {
                let path = given(&input.mount, artifact);
                self.files.artifact(&path, artifact)?;
                self.given.insert(path, artifact);
            }
        }
        Ok(())
    }

    /// A file beside the blobs. What a stage read at its path is what counts there.
    fn extra(&mut self, path: &str, bytes: &[u8], about: &str) -> Result<(), ExchangeError> {
        if self.files.tree.entries.contains_key(path) {
            return Ok(());
        }
        check_path(path).map_err(|error| ExchangeError::Materialise(error.into()))?;
        self.extra.insert(path.to_owned(), (bytes.to_vec(), about.to_owned()));
        Ok(())
    }

    /// The files that are blobs.
    pub fn tree(&self) -> &Tree {
        &self.files.tree
    }

    /// The files that are not.
    pub fn extra_files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.extra.iter().map(|(path, (bytes, _))| (path.as_str(), bytes.as_slice()))
    }

    /// The ids of a stage's code.
    pub fn code(&self, stage: usize) -> Vec<String> {
        let paths = self.code.get(&stage).map(Vec::as_slice).unwrap_or_default();
        paths
            .iter()
            .filter(|path| self.files.tree.entries.contains_key(*path))
            .map(|path| file_id(path))
            .collect()
    }

    /// The attempt that stands for a member.
    pub fn standing(&self, member: Member) -> Option<AttemptDigest> {
        self.standing.get(&member).copied()
    }

    /// The id of an output of an attempt; `None` where it wrote no such thing.
    pub fn output(&self, attempt: AttemptDigest, name: &str) -> Option<String> {
        let (path, artifact, _) = self.outputs.get(&(attempt, name.to_owned()))?;
        Some(self.id(path, *artifact))
    }

    /// The id of an input that is no output: a path of the project or of the machine, or what was fetched.
    pub fn input(&self, source: &Source, mount: &str, artifact: Artifact) -> String {
        match source {
            Source::Path { path, .. } => self.id(path, artifact),
            _ => self.id(&given(mount, artifact), artifact),
        }
    }

    /// A file or folder of the crate, or what is known of it.
    fn id(&self, path: &str, artifact: Artifact) -> String {
        match artifact {
            Artifact::Blob(_) if self.files.tree.entries.contains_key(path) => file_id(path),
            Artifact::Tree(_) if self.has_folder(path) => format!("{}/", file_id(path)),
            _ => format!("#content-{}", artifact.blob()),
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        let mut below = self.files.tree.entries.range(inside.clone()..);
        self.files.tree.entries.contains_key(path)
            || below.next().is_some_and(|(found, _)| found.starts_with(&inside))
    }

    /// What was written, once everything is described.
    pub fn written(&self, metadata: u64, entities: usize) -> Written {
        let files =
            self.files.tree.entries.values().filter(|entry| matches!(entry, Entry::File { .. })).count();
        Written {
            files: files + self.extra.len() + 1,
            bytes: self.bytes + metadata,
            entities,
            without: self.files.without.clone(),
        }
    }

    /// Describes every file and folder, each blob hashed on the way, and what is left out.
    pub fn describe(&mut self, graph: &mut Graph, account: &Account<'_>) -> Result<(), ExchangeError> {
        let mut known: HashMap<BlobDigest, Known> = HashMap::new();
        for (path, entry) in &self.files.tree.entries {
            let Entry::File { digest, .. } = entry else { continue };
            if !known.contains_key(digest) {
                known.insert(*digest, Known::of_blob(self.blobs, *digest)?);
            }
            let is_code = self.code.values().any(|paths| paths.binary_search(path).is_ok());
            let kind = if is_code { json!(["File", "SoftwareSourceCode"]) } else { json!("File") };
            self.bytes += known[digest].size;
            file(graph, path, kind, &known[digest], None);
        }
        for (path, (bytes, about)) in &self.extra {
            self.bytes += bytes.len() as u64;
            file(graph, path, json!("File"), &Known::of(bytes), Some(about));
        }
        for stage in &account.plan.stages {
            for input in stage.inputs.values() {
                if let Source::Path { path, artifact } = &input.from {
                    self.artifact(graph, path, *artifact, None);
                }
            }
        }
        for (path, artifact) in &self.given {
            self.artifact(graph, path, *artifact, None);
        }
        for (path, artifact, size) in self.outputs.values() {
            self.artifact(graph, path, *artifact, Some(*size));
        }
        self.licences(graph, account);
        Ok(())
    }

    /// The licences that the spec names for data from outside.
    fn licences(&self, graph: &mut Graph, account: &Account<'_>) {
        for executed in &account.executed {
            for (_, input, artifact) in executed.inputs(account.stage(executed.member())) {
                if let Some(named) = &input.licence {
                    let licence = credit::licence(graph, named);
                    graph.say(&self.input(&input.from, &input.mount, artifact), "license", to(&licence));
                }
            }
        }
    }

    /// Describes a folder with what is in it, or what is known of something that is not in the crate.
    fn artifact(&self, graph: &mut Graph, path: &str, artifact: Artifact, size: Option<u64>) {
        let id = self.id(path, artifact);
        let name = path.rsplit('/').next().unwrap_or(path);
        if id.ends_with('/') {
            let inside = format!("{path}/");
            let within = self.files.tree.entries.range(inside.clone()..);
            let within = within.take_while(|(path, _)| path.starts_with(&inside));
            let parts = within.filter(|(_, entry)| matches!(entry, Entry::File { .. }));
            let parts = all(parts.map(|(path, _)| file_id(path)));
            graph.put(&id, "Dataset", json!({"name": name, "hasPart": parts}));
        } else if !graph.has(&id) {
            let digest = artifact.blob();
            identifier(graph, digest);
            let about = match artifact {
                Artifact::Blob(_) => "A file that is known by its digest and is not part of this crate.",
                Artifact::Tree(_) => "A folder that is known by its digest and is not part of this crate.",
            };
            graph.put(
                &id,
                "CreativeWork",
                json!({
                    "name": name, "description": about, "identifier": to(&blake3_id(digest)),
                    "contentSize": size.map(|size| size.to_string()),
                }),
            );
        }
    }

    /// The ids of all files and folders that lie in no other folder that is described, for the root.
    pub fn parts(&self, graph: &Graph) -> Vec<String> {
        let files = self.files.tree.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
        let mut ids: Vec<String> = files.map(|(path, _)| file_id(path)).collect();
        ids.extend(self.extra.keys().map(|path| file_id(path)));
        let folders = graph.ids().filter(|id| id.ends_with('/') && !id.starts_with('#'));
        ids.extend(folders.map(str::to_owned));
        ids.sort();
        ids.dedup();
        ids
    }
}

/// Where something lies that was fetched or written for an attempt.
fn given(mount: &str, artifact: Artifact) -> String {
    let name = mount.rsplit('/').next().unwrap_or(mount);
    format!("given/{}/{name}", artifact.short())
}

fn file(graph: &mut Graph, path: &str, kind: Value, known: &Known, about: Option<&str>) {
    identifier(graph, known.blake3);
    graph.put(
        &file_id(path),
        kind,
        json!({
            "name": path.rsplit('/').next().unwrap_or(path),
            "description": about,
            "encodingFormat": format_of(path),
            "contentSize": known.size.to_string(),
            "sha256": known.sha256,
            "identifier": to(&blake3_id(known.blake3)),
        }),
    );
}

fn blake3_id(digest: BlobDigest) -> String {
    format!("#blake3-{digest}")
}

/// The BLAKE3 digest, for which the contexts have no term.
fn identifier(graph: &mut Graph, digest: BlobDigest) {
    let properties = json!({
        "name": "BLAKE3", "propertyID": "https://github.com/BLAKE3-team/BLAKE3", "value": digest.to_string(),
    });
    graph.put(&blake3_id(digest), "PropertyValue", properties);
}
