//! What belongs into the bundle of an experiment.
//!
//! A ledger names the runs of its experiment, a run's attempts cite heads of the ledger, and an attempt may stand
//! for members of several experiments. So a bundle holds whole ledgers with all the journals they name, of every
//! experiment whose attempts were made under the actions of the plan: less would look like a deleted journal.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use avow_model::digest::{ActionDigest, Artifact, BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::journal::{Event, Journal};
use avow_store::collect::Marks;
use avow_store::{BlobStore, FileBlobs, LedgerFile, Project, StoreError, collected, journal};

use super::error::{BundleError, Context};
use super::manifest::{Beside, SpecFile, What};
use super::name::{self, Place};
use super::read::Bundle;

/// What a bundle is asked for.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// Its plan, which must be in the store.
    pub plan: PlanDigest,
    /// The actions of its members, so far as they can be bound.
    pub actions: &'a HashSet<ActionDigest>,
    /// The spec's path in the project.
    pub spec: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Outputs to leave out, since they can be made again.
    pub without: &'a HashSet<Artifact>,
}

/// What a bundle holds.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The spec.
    pub spec: Option<(SpecFile, Vec<u8>)>,
    /// Files of the project that no record names, sorted by path.
    pub beside: Vec<(Beside, Vec<u8>)>,
    /// Runs with the bytes of their journals, by name.
    pub journals: BTreeMap<String, Vec<u8>>,
    /// Ledgers by experiment.
    pub ledgers: BTreeMap<String, Vec<u8>>,
    /// The heads of the ledgers.
    pub heads: BTreeSet<RegistrationDigest>,
    /// Other files, by entry name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Blobs that were made for the bundle and are in no store.
    pub made: BTreeMap<BlobDigest, Vec<u8>>,
    /// Blobs, by digest, as they lie in the store.
    pub blobs: BTreeSet<BlobDigest>,
    /// Blobs that are named and left out.
    pub absent: BTreeSet<BlobDigest>,
}

impl Contents {
    /// Gathers what belongs together.
    pub fn gather(
        project: &Project,
        blobs: &FileBlobs,
        wanted: &Wanted<'_>,
    ) -> Result<Contents, BundleError> {
        let mut runs = Vec::new();
        for file in journal::journals(project)? {
            runs.push((file.run.clone(), file.bytes()?));
        }
        let read: Vec<Journal> = runs.iter().map(|(_, bytes)| avow_model::journal::read(bytes)).collect();
        let experiments = involved(&read, wanted);
        let mut contents = Contents::default();
        let mut marks = Marks::new(blobs);
        marks.plan(wanted.plan);
        for ((run, bytes), journal) in runs.into_iter().zip(&read) {
            if experiment(journal).is_some_and(|name| experiments.contains(name)) {
                mark(&mut marks, journal);
                // A line that is being written is no part of the record yet.
                contents.journals.insert(run, bytes[..journal.intact].to_vec());
            }
        }
        for name in &experiments {
            contents.ledger(project, name)?;
        }
        contents.others(project)?;
        contents.sort(blobs, marks, wanted)?;
        let blob = BlobDigest::of(wanted.text.as_bytes());
        contents.blobs.remove(&blob);
        contents.spec = Some((SpecFile { path: wanted.spec.to_owned(), blob }, wanted.text.into()));
        Ok(contents)
    }

    /// Adds files of the project that no record names.
    pub fn add_beside(&mut self, files: impl IntoIterator<Item = (What, String, Vec<u8>)>) {
        for (what, path, bytes) in files {
            let blob = BlobDigest::of(&bytes);
            // The same bytes may lie in the store as well; one entry holds them.
            self.blobs.remove(&blob);
            self.absent.remove(&blob);
            self.beside.push((Beside { path, what, blob }, bytes));
        }
        self.beside.sort();
        self.beside.dedup_by(|a, b| a.0.path == b.0.path);
    }

    /// What a bundle holds, as it was gathered for it. Its blobs are those of the folder that it was unpacked into.
    pub fn of_bundle(bundle: &Bundle) -> Result<Contents, BundleError> {
        let manifest = bundle.manifest();
        let runs: BTreeMap<BlobDigest, &str> =
            manifest.runs.iter().map(|run| (run.journal, run.run.as_str())).collect();
        let mut contents = Contents {
            heads: manifest.heads.iter().copied().collect(),
            absent: manifest.absent.iter().copied().collect(),
            ..Contents::default()
        };
        let beside = |digest: BlobDigest| manifest.beside.iter().filter(move |one| one.blob == digest);
        for (position, entry) in bundle.entries().enumerate() {
            let bytes = |bundle: &Bundle| -> Result<Vec<u8>, BundleError> {
                let mut bytes = Vec::new();
                bundle.extract(position, &mut bytes)?;
                Ok(bytes)
            };
            match name::place(&entry.name) {
                Some(Place::Blob(digest)) if digest == manifest.spec.blob => {
                    contents.spec = Some((manifest.spec.clone(), bytes(bundle)?));
                }
                Some(Place::Blob(digest)) if beside(digest).next().is_some() => {
                    let bytes = bytes(bundle)?;
                    contents.beside.extend(beside(digest).map(|one| (one.clone(), bytes.clone())));
                }
                Some(Place::Blob(digest)) => drop(contents.blobs.insert(digest)),
                Some(Place::Journal(digest)) => {
                    let run = runs.get(&digest).copied().unwrap_or_default().to_owned();
                    contents.journals.insert(run, bytes(bundle)?);
                }
                Some(Place::Ledger(experiment)) => {
                    contents.ledgers.insert(experiment.to_owned(), bytes(bundle)?);
                }
                Some(Place::Proof(_) | Place::Aliases(_) | Place::Collected) => {
                    contents.files.insert(entry.name.clone(), bytes(bundle)?);
                }
                Some(Place::Manifest) | None => return Err(BundleError::Name(entry.name.clone())),
            }
        }
        contents.beside.sort();
        Ok(contents)
    }

    fn ledger(&mut self, project: &Project, experiment: &str) -> Result<(), BundleError> {
        let file = LedgerFile::of(project, experiment)?;
        let path = file.path();
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.context("read", &path)?,
        };
        let ledger = avow_model::ledger::Ledger::read(&bytes);
        self.heads.extend(ledger.heads());
        self.ledgers.insert(experiment.to_owned(), bytes[..ledger.intact()].to_vec());
        let proofs = project.registrations().join(format!("{experiment}.proofs"));
        for (name, bytes) in files_of(&proofs)? {
            self.files.insert(format!("proofs/{experiment}.proofs/{name}"), bytes);
        }
        Ok(())
    }

    /// Names of actions under earlier encodings, and what was collected.
    fn others(&mut self, project: &Project) -> Result<(), BundleError> {
        for (name, bytes) in files_of(&project.aliases())? {
            self.files.insert(format!("aliases/{name}"), bytes);
        }
        let path = collected::file(project);
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => drop(self.files.insert(name::COLLECTED.to_owned(), other.context("read", &path)?)),
        }
        Ok(())
    }

    /// Tells the blobs that travel along from those that do not.
    fn sort(&mut self, blobs: &FileBlobs, marks: Marks<'_>, wanted: &Wanted<'_>) -> Result<(), BundleError> {
        let left_out = parts(blobs, wanted.without)?;
        for digest in marks.into_blobs() {
            let there = match blobs.size(digest) {
                Err(error) if error.is_unusable_blob() => false,
                size => size?.is_some(),
            };
            // What is kept by reference has a size here and no file among the blobs.
            if there && !left_out.contains(&digest) && blobs.path(digest).is_file() {
                self.blobs.insert(digest);
            } else {
                self.absent.insert(digest);
            }
        }
        Ok(())
    }
}

/// The ledger of an experiment and the proofs beside it, by their paths among the registrations; nothing where it was
/// never registered. A line that is being written is no part of the ledger yet.
pub fn registrations(project: &Project, experiment: &str) -> Result<Vec<(String, Vec<u8>)>, BundleError> {
    let name = format!("{experiment}.jsonl");
    let path = project.registrations().join(&name);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.context("read", &path)?,
    };
    let intact = avow_model::ledger::Ledger::read(&bytes).intact();
    let proofs = format!("{experiment}.proofs");
    let mut files = vec![(name, bytes[..intact].to_vec())];
    for (name, bytes) in files_of(&project.registrations().join(&proofs))? {
        files.push((format!("{proofs}/{name}"), bytes));
    }
    files.sort();
    Ok(files)
}

/// The experiments whose attempts or runs have to do with the plan.
fn involved(journals: &[Journal], wanted: &Wanted<'_>) -> BTreeSet<String> {
    let concerned = |journal: &&Journal| {
        journal.lines.iter().any(|line| match &line.event {
            Event::Finished { attempt, .. } => wanted.actions.contains(&attempt.action),
            Event::Started { action, .. } => wanted.actions.contains(action),
            _ => false,
        })
    };
    let named = journals.iter().filter(concerned).filter_map(experiment).map(str::to_owned);
    named.chain([wanted.experiment.to_owned()]).collect()
}

fn experiment(journal: &Journal) -> Option<&str> {
    match &journal.lines.first()?.event {
        Event::Opened(opened) => Some(&opened.experiment),
        _ => None,
    }
}

/// Everything that a journal's lines rest on.
fn mark(marks: &mut Marks<'_>, journal: &Journal) {
    for line in &journal.lines {
        match &line.event {
            Event::Opened(opened) => marks.plan(opened.plan),
            Event::Started { action, .. } => marks.action(*action),
            Event::Finished { attempt, .. } => marks.attempt(attempt),
            Event::Reused { cited: Some(cited), .. } => marks.blob(cited.record),
            _ => {}
        }
    }
}

/// The blobs of these artifacts alone, folders' records kept: they say what was there.
fn parts(blobs: &FileBlobs, artifacts: &HashSet<Artifact>) -> Result<HashSet<BlobDigest>, StoreError> {
    let mut marks = Marks::new(blobs);
    artifacts.iter().for_each(|artifact| marks.artifact(*artifact));
    let trees = marks.opened().collect::<HashSet<_>>();
    Ok(marks.into_blobs().filter(|digest| !trees.contains(digest)).collect())
}

/// The plain files of a folder, by name; nothing where there is none.
fn files_of(folder: &std::path::Path) -> Result<Vec<(String, Vec<u8>)>, BundleError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.context("list", folder)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.context("list", folder)?.path();
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).context("read", &path)?));
        }
    }
    Ok(found)
}
