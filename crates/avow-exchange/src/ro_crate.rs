//! Run Crates: a folder of files with `ro-crate-metadata.json`, which says what each is and what made it.
//!
//! Three profiles, each with everything of the one before: *Process* has the attempts with what they read and wrote,
//! *Workflow* the spec as a workflow with its parameters, *Provenance* the steps and which run carried out which.
//! Run Crate 0.5 on RO-Crate 1.1 is what public validators know; 0.6 on RO-Crate 1.3 is written as well.
//!
//! A stage is a tool and a step, an attempt an action of that tool. Every attempt is there, failures included; only
//! those that stand made the results of the whole. The files of the project lie at their own paths, outputs at
//! `results/STAGE/CELL/PATH`: no path is made from an axis' value. Ids are checked before anything is published: no
//! entity names one that is not described.
//!
//! Absent: host names, absolute paths and what programs printed. They are in bundles, for those who check evidence;
//! a crate is for everybody.

mod actions;
mod credit;
mod data;
mod graph;
mod parameters;
mod root;
mod steps;
mod words;

use std::path::Path;

use avow_store::FileBlobs;
use avow_store::materialise::{How, materialise};

use crate::account::Account;
use crate::error::{Context, ExchangeError};
use data::Data;
use graph::Graph;

/// The name of the file that makes a folder a crate.
pub const METADATA: &str = "ro-crate-metadata.json";

/// Which profile of Run Crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Actions with what they read and wrote.
    Process,
    /// The spec as a workflow, too.
    Workflow,
    /// Steps and runs, too.
    Provenance,
}

/// Which edition of the profiles, each with the RO-Crate that it builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// Run Crate 0.5 on RO-Crate 1.1.
    Half,
    /// Run Crate 0.6 on RO-Crate 1.3.
    Six,
}

/// The form of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The profile.
    pub profile: Profile,
    /// The edition.
    pub edition: Edition,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Files, the metadata included.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Entities that are described.
    pub entities: usize,
    /// Paths of files that are described and left out: kept by digest or by reference only, or gone.
    pub without: Vec<String>,
}

/// Writes a crate into a folder that does not exist yet; it appears at once or not at all.
pub fn write(
    folder: &Path,
    blobs: &FileBlobs,
    account: &Account<'_>,
    form: Form,
) -> Result<Written, ExchangeError> {
    if folder.symlink_metadata().is_ok() {
        return Err(ExchangeError::Exists(folder.to_owned()));
    }
    let mut graph = Graph::default();
    let mut data = Data::gather(blobs, account)?;
    data.describe(&mut graph, account)?;
    if form.profile >= Profile::Workflow {
        parameters::describe(&mut graph, &data, account);
        steps::describe(&mut graph, account, form.profile);
    }
    actions::describe(&mut graph, &data, account, form.profile);
    root::describe(&mut graph, &data, account, form);
    graph.check()?;
    let metadata = graph.document(form.edition);
    let written = data.written(metadata.len() as u64, graph.len());
    publish(folder, blobs, &data, metadata.as_bytes())?;
    Ok(written)
}

fn publish(folder: &Path, blobs: &FileBlobs, data: &Data<'_>, metadata: &[u8]) -> Result<(), ExchangeError> {
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(beside).context("create", beside)?;
    let partial =
        tempfile::Builder::new().prefix(".avow-crate-").tempdir_in(beside).context("create", beside)?;
    materialise(blobs, data.tree(), partial.path(), How::Copy)?;
    for (path, bytes) in data.extra_files() {
        put(partial.path(), path, bytes)?;
    }
    put(partial.path(), METADATA, metadata)?;
    // A temporary folder is closed to others; a crate is as open as any folder of its owner's.
    let usual = std::fs::metadata(beside).context("look at", beside)?.permissions();
    std::fs::set_permissions(partial.path(), usual).context("open", partial.path())?;
    std::fs::rename(partial.path(), folder).context("name", folder)?;
    let _gone = partial.keep();
    Ok(())
}

fn put(folder: &Path, path: &str, bytes: &[u8]) -> Result<(), ExchangeError> {
    let target = folder.join(path);
    let parent = target.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).context("create", parent)?;
    let mut file = std::fs::File::create_new(&target).context("create", &target)?;
    std::io::Write::write_all(&mut file, bytes).context("write", &target)
}
