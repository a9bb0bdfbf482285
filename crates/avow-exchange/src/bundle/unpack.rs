//! From a bundle to a project that every command can read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_model::digest::Artifact;
use avow_model::plan::Plan;
use avow_model::tree::check_path;
use avow_store::blob::read_record;
use avow_store::materialise::{How, materialise, place};
use avow_store::{FileBlobs, MemoryStamps, Project, collected};

use super::error::{BundleError, Context};
use super::name::{self, Place};
use super::read::Bundle;
use crate::project_files::Files;

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
    for one in &bundle.manifest().beside {
        if !folder.join(&one.path).exists() {
            place(&blobs, Artifact::Blob(one.blob), folder, &one.path, How::Copy)?;
        }
    }
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
    let mut files = Files::new(blobs);
    files.plan(plan)?;
    if !folder.join("avow.toml").exists() {
        let text = "# The root of a project that was unpacked.\n";
        fs::write(folder.join("avow.toml"), text).context("write", folder)?;
    }
    materialise(blobs, &files.tree, folder, How::Copy)?;
    Ok(files.without)
}
