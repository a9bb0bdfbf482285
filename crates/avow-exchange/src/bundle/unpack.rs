//! From a bundle to a project that every command can read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_model::digest::Artifact;
use avow_model::plan::{Plan, Source};
use avow_model::tree::{Entry, Tree, check_path};
use avow_store::blob::read_record;
use avow_store::materialise::{How, flatten, materialise, place};
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, StoreError, collected};

use super::error::{BundleError, Context};
use super::name::{self, Place};
use super::read::Bundle;

/// A bundle as a project.
pub struct Unpacked {
    /// The project.
    pub project: Project,
    /// Its blobs.
    pub blobs: FileBlobs,
    /// The spec, in the project.
    pub spec: PathBuf,
    /// Files of the project that could not be laid out because their blobs were left out.
    pub without: Vec<String>,
}

/// Unpacks a whole bundle into a folder that is empty or does not exist yet. Every byte is compared with the
/// manifest; nothing in the bundle is run, followed or believed. On an error the folder must not be used.
pub fn unpack(bundle: &Bundle, folder: &Path) -> Result<Unpacked, BundleError> {
    fs::create_dir_all(folder).context("create", folder)?;
    let project = Project::at(folder);
    project.create()?;
    let journals: BTreeMap<_, _> =
        bundle.manifest().runs.iter().map(|run| (run.journal, run.run.as_str())).collect();
    for (position, entry) in bundle.entries().enumerate() {
        let target = match name::place(&entry.name) {
            Some(Place::Blob(digest)) => project.blob(digest),
            Some(Place::Journal(digest)) => match journals.get(&digest) {
                Some(run) if is_run(run) => project.journal(run),
                _ => return Err(BundleError::Manifest(format!("no run has the journal `{digest}`"))),
            },
            Some(Place::Ledger(experiment)) => project.registrations().join(format!("{experiment}.jsonl")),
            Some(Place::Proof(path)) => project.registrations().join(path),
            Some(Place::Aliases(file)) => project.aliases().join(file),
            Some(Place::Collected) => collected::file(&project),
            None | Some(Place::Manifest) => return Err(BundleError::Name(entry.name.clone())),
        };
        write_entry(bundle, position, &target)?;
    }
    let blobs = FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default()));
    let plan: Plan = read_record(&blobs, bundle.manifest().plan)?;
    let spec = &bundle.manifest().spec;
    let without = lay_out(&blobs, &plan, folder)?;
    if !folder.join(&spec.path).exists() {
        place(&blobs, Artifact::Blob(spec.blob), folder, &spec.path, How::Copy)?;
    }
    Ok(Unpacked { spec: folder.join(&spec.path), project, blobs, without })
}

/// A run's name is a file's name: one component, not hidden.
fn is_run(run: &str) -> bool {
    !run.contains('/') && !run.starts_with('.') && check_path(run).is_ok()
}

fn write_entry(bundle: &Bundle, position: usize, target: &Path) -> Result<(), BundleError> {
    let folder = target.parent().unwrap_or(target);
    fs::create_dir_all(folder).context("create", folder)?;
    let file = File::create_new(target).context("create", target)?;
    let mut buffered = BufWriter::new(file);
    bundle.extract(position, &mut buffered)?;
    buffered.flush().context("write", target)
}

/// Writes the project's own files of a plan into a folder: code, inputs and locks, so that the plan can be
/// carried out there once the spec is beside them. Returns the paths whose blobs are not there.
pub fn lay_out(blobs: &FileBlobs, plan: &Plan, folder: &Path) -> Result<Vec<String>, BundleError> {
    let mut files = Files { blobs, tree: Tree::default(), without: Vec::new() };
    for stage in &plan.stages {
        if let Some(code) = stage.code {
            files.folder("", Artifact::Tree(code))?;
        }
        if let Some(environment) = &stage.environment {
            files.artifact(&environment.path, Artifact::Blob(environment.lock))?;
        }
        for input in stage.inputs.values() {
            if let Source::Path { path, artifact } = &input.from
                && !path.starts_with('/')
            {
                files.artifact(path, *artifact)?;
            }
        }
    }
    if !folder.join("avow.toml").exists() {
        let text = "# The root of a project that was unpacked.\n";
        fs::write(folder.join("avow.toml"), text).context("write", folder)?;
    }
    materialise(blobs, &files.tree, folder, How::Copy)?;
    Ok(files.without)
}

/// The files of a project, gathered into one tree.
struct Files<'a> {
    blobs: &'a FileBlobs,
    tree: Tree,
    without: Vec<String>,
}

impl Files<'_> {
    fn artifact(&mut self, path: &str, artifact: Artifact) -> Result<(), BundleError> {
        match artifact {
            Artifact::Tree(_) => self.folder(path, artifact),
            Artifact::Blob(digest) => self.entry(path, Entry::File { digest, executable: false }),
        }
    }

    fn folder(&mut self, path: &str, artifact: Artifact) -> Result<(), BundleError> {
        let Artifact::Tree(digest) = artifact else { return self.artifact(path, artifact) };
        let tree: Tree = match read_record(self.blobs, digest) {
            Err(StoreError::Missing { .. }) => {
                self.without.push(path.to_owned());
                return Ok(());
            }
            other => other?,
        };
        for (inner, entry) in flatten(self.blobs, &tree)?.entries {
            let inner = if path.is_empty() { inner } else { format!("{path}/{inner}") };
            self.entry(&inner, entry)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &str, entry: Entry) -> Result<(), BundleError> {
        if let Entry::File { digest, .. } = entry
            && self.blobs.size(digest)?.is_none()
        {
            self.without.push(path.to_owned());
            return Ok(());
        }
        match (self.tree.entries.get(path), &entry) {
            // As code a file may be executable, as an input it is not: the same bytes are one file.
            (Some(Entry::File { digest: a, executable: true }), Entry::File { digest: b, .. }) if a == b => {
                return Ok(());
            }
            (Some(Entry::File { digest: a, .. }), Entry::File { digest: b, .. }) if a == b => {}
            (Some(before), _) if *before != entry => return Err(BundleError::Twice(path.to_owned())),
            _ => {}
        }
        self.tree.insert(path, entry).map_err(|error| BundleError::Materialise(error.into()))
    }
}
