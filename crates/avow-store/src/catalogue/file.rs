//! The catalogue as a file: a line that names the form, a verified head, then pages and summaries.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use avow_model::attempt::Timestamp;
use avow_model::digest::{LineDigest, PlanDigest};
use avow_model::summary::RunSummary;
use serde::{Deserialize, Serialize};

use super::table::{Head, TABLES};
use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;
use crate::stamp::FileStamp;

const FORM: &[u8; 16] = b"avow journals 1\n";
/// The largest head that is believed; it holds a few hundred bytes a run.
const LARGEST: u64 = 1 << 30;

/// How far a journal was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Covered {
    /// The run.
    pub(super) run: String,
    /// When it began; 0 where the first line is unreadable.
    pub(super) at: Timestamp,
    /// The experiment; empty where the first line is unreadable.
    pub(super) experiment: String,
    /// The plan; absent where the first line is unreadable.
    pub(super) plan: Option<PlanDigest>,
    /// Intact lines.
    pub(super) lines: u64,
    /// Their length in bytes.
    pub(super) length: u64,
    /// Where the last of them begins.
    pub(super) last: u64,
    /// Its digest.
    pub(super) head: Option<LineDigest>,
    /// The file's stamp; another one proves that the file was written to.
    pub(super) stamp: Option<FileStamp>,
    /// Whether the same stamp proves that it was not.
    pub(super) settled: bool,
    /// Where its summary lies behind the head: offset and length.
    pub(super) summary: (u64, u64),
    /// The digest of the summary's bytes.
    pub(super) sealed: Option<LineDigest>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Contents {
    /// In the order in which the runs began.
    pub(super) journals: Vec<Covered>,
    pub(super) tables: [Head; TABLES],
}

/// A catalogue whose head verified.
#[derive(Debug)]
pub(super) struct CatalogueFile {
    pub(super) file: File,
    pub(super) contents: Contents,
    /// Where what stands behind the head begins.
    pub(super) base: u64,
}

pub(super) fn path(project: &Project) -> PathBuf {
    project.cache().join("journals")
}

/// Opens the catalogue; `None` where there is none that verifies.
pub(super) fn open(project: &Project) -> Option<CatalogueFile> {
    let file = files::open_plain(&path(project)).ok()?;
    let mut start = [0; 24];
    file.read_exact_at(&mut start, 0).ok()?;
    let length = u64::from_be_bytes(start[16..].try_into().expect("eight bytes"));
    let there = file.metadata().ok()?.len();
    if &start[..16] != FORM || length > LARGEST.min(there) {
        return None;
    }
    let mut bytes = vec![0; length as usize + 32];
    file.read_exact_at(&mut bytes, 24).ok()?;
    let (head, digest) = bytes.split_at(length as usize);
    if blake3::hash(head).as_bytes() != digest {
        return None;
    }
    let contents = serde_json::from_slice(head).ok()?;
    Some(CatalogueFile { file, contents, base: 24 + length + 32 })
}

impl CatalogueFile {
    /// A run's summary; `None` where it does not verify.
    pub(super) fn summary(&self, covered: &Covered) -> Option<RunSummary> {
        let (offset, length) = covered.summary;
        let mut bytes = vec![0; usize::try_from(length).ok().filter(|n| *n as u64 <= LARGEST)?];
        self.file.read_exact_at(&mut bytes, self.base + offset).ok()?;
        if Some(LineDigest::of(&bytes)) != covered.sealed {
            return None;
        }
        serde_json::from_slice(&bytes).ok()
    }
}

/// Removes a catalogue that is damaged, so that the next command builds it anew.
pub(super) fn forget(project: &Project) {
    if let Err(error) = disk::remove_file(&path(project)) {
        tracing::debug!(%error, "a damaged catalogue could not be removed");
    }
}

/// Writes a catalogue in one act. It is not synced: what a power cut leaves of it does not verify.
pub(super) fn write(project: &Project, contents: &Contents, behind: &[u8]) -> Result<(), StoreError> {
    let path = path(project);
    let folder = project.cache();
    disk::create_folders(&folder).context("create", &folder)?;
    let head = serde_json::to_vec(contents).expect("heads hold only JSON values");
    let mut bytes = Vec::with_capacity(64 + head.len() + behind.len());
    bytes.extend(FORM);
    bytes.extend((head.len() as u64).to_be_bytes());
    bytes.extend(&head);
    bytes.extend(blake3::hash(&head).as_bytes());
    bytes.extend(behind);
    files::replace(&path, &bytes)
}
