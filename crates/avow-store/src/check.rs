//! Looking at everything anew, trusting nothing that was remembered.
//!
//! Every blob is hashed; every journal's chain and every ledger's lines are verified; what an attempt promised
//! to keep must be there, and so must every ledger head that somebody cites and every journal that a ledger
//! names: whole lines cut from an end leave no other trace. The index must equal what the journals say. Each
//! problem is a value that names a file and a remedy; nothing is repaired here.
//!
//! Runs may go on meanwhile. What was looked at first is then older than what names it: so whatever seems to be missing is
//! looked for again before it is told, and the last line of a journal whose run lives may still be on its way.

mod needs;
mod problem;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use avow_model::attempt::Timestamp;
use avow_model::digest::{
    ActionDigest, AttemptDigest, BlobDigest, LineDigest, PlanDigest, RegistrationDigest,
};
use avow_model::journal::{Damage, Event, Journal};
use avow_model::ledger::{Finding, Ledger};
use rayon::prelude::*;

pub use problem::Problem;

use crate::blob::FileBlobs;
use crate::collected;
use crate::error::StoreError;
use crate::files;
use crate::index;
use crate::ingest::{Ingest, IngestError};
use crate::journal;
use crate::ledger::{self, LedgerFile};
use crate::project::Project;
use crate::record::{RecordStore, Recorded};
use crate::reference;
use crate::stamp::MemoryStamps;

/// How far the check has come. Hashing takes nearly all of its time, so blobs are what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Blobs hashed.
    pub blobs: u64,
    /// Blobs there are.
    pub of: u64,
    /// Bytes hashed.
    pub bytes: u64,
}

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Blobs hashed.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Journals read.
    pub journals: u64,
    /// Attempts in them.
    pub attempts: u64,
    /// Ledgers read.
    pub ledgers: u64,
    /// What is wrong, in the order: blobs, journals, attempts, ledgers, index.
    pub problems: Vec<Problem>,
}

/// What the parts of the check learn from each other.
#[derive(Default)]
struct Known {
    sound: HashSet<BlobDigest>,
    /// All that were there when the blobs were listed.
    surveyed: HashSet<BlobDigest>,
    runs: HashSet<String>,
    lines: HashSet<LineDigest>,
    /// Journals with attempts, each with the lines before the first of them.
    attempted: Vec<(PathBuf, Vec<LineDigest>)>,
    /// Lines of journals by which runs were announced.
    announced: HashSet<LineDigest>,
    leaves: HashSet<RegistrationDigest>,
    /// Who cites a ledger head first.
    cited: Vec<(RegistrationDigest, PathBuf, String)>,
    recorded: Vec<Recorded>,
    /// The plan of each run.
    plans: Vec<(PlanDigest, String)>,
    /// The action of every attempt that was started, ended or not, with its member.
    started: Vec<(ActionDigest, String)>,
    /// Lists of hits that journals cite, with the run.
    hits: Vec<(BlobDigest, String)>,
    /// The attempts that were collected.
    collected: HashMap<AttemptDigest, Timestamp>,
    /// How many of the blobs are hashed: one in this many.
    sample: Option<f64>,
}

/// Checks a project's store. With `sample`, a share between 0 and 1, that share of the blobs is hashed, drawn anew
/// at each call; of the others it is only seen that they are there. The index is compared where the caller has it open. Errors are only for what could
/// not be looked at because the machine failed.
pub fn check(
    project: &Project,
    index: Option<&dyn RecordStore>,
    sample: Option<f64>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let mut known = Known { collected: collected::dates(project)?, sample, ..Known::default() };
    let blobs = FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default()));
    check_blobs(&blobs, progress, &mut known, &mut report)?;
    check_references(project, &blobs, &mut report)?;
    check_journals(project, &mut known, &mut report)?;
    needs::check_needs(&blobs, &known, &mut report)?;
    check_ledgers(project, &mut known, &mut report)?;
    check_citations(&known, &mut report);
    check_announced(&known, &mut report);
    if let Some(index) = index {
        check_index(project, index, &known, &mut report)?;
    }
    Ok(report)
}

fn check_blobs(
    blobs: &FileBlobs,
    progress: &(dyn Fn(Progress) + Sync),
    known: &mut Known,
    report: &mut Report,
) -> Result<(), StoreError> {
    let (digests, foreign) = blobs.survey()?;
    report.problems.extend(foreign.into_iter().map(stranger));
    let (count, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    known.surveyed.extend(&digests);
    let digests = drawn(digests, known)?;
    let of = digests.len() as u64;
    let checked = digests.par_iter().map(|digest| {
        let verified = blobs.verify(*digest);
        let size = verified.as_ref().copied().unwrap_or(0);
        let bytes = bytes.fetch_add(size, Ordering::Relaxed) + size;
        progress(Progress { blobs: count.fetch_add(1, Ordering::Relaxed) + 1, of, bytes });
        (*digest, verified)
    });
    for (digest, verified) in checked.collect::<Vec<_>>() {
        let file = blobs.path(digest);
        match verified {
            Ok(_) => drop(known.sound.insert(digest)),
            Err(StoreError::Corrupt { found, .. }) => {
                report.problems.push(Problem::CorruptBlob { file, digest, found });
            }
            Err(StoreError::NotAFile { .. }) => report.problems.push(stranger(file)),
            // Collected since the survey; who needs it will miss it.
            Err(StoreError::Missing { .. }) => {}
            // Not readable for us.
            Err(error) => report.problems.push(Problem::Unreadable { file, reason: chain(&error) }),
        }
    }
    report.blobs = of;
    report.bytes = bytes.into_inner();
    Ok(())
}

/// The blobs that are to be hashed; the others of a sample are taken to be sound.
fn drawn(digests: Vec<BlobDigest>, known: &mut Known) -> Result<Vec<BlobDigest>, StoreError> {
    let Some(share) = known.sample else { return Ok(digests) };
    let salt = files::nonce()?;
    let below = share.clamp(0.0, 1.0) * (u64::from(u32::MAX) + 1) as f64;
    let (mut chosen, mut rest) = (Vec::new(), Vec::new());
    for digest in digests {
        let drawn = BlobDigest::of(&[salt.as_bytes(), digest.as_bytes()].concat());
        let [a, b, c, d, ..] = *drawn.as_bytes();
        let number = u32::from_be_bytes([a, b, c, d]);
        if f64::from(number) < below { chosen.push(digest) } else { rest.push(digest) }
    }
    known.sound.extend(rest);
    Ok(chosen)
}

/// Something among the blobs that is no blob. In a blob's own place it means that the blob is gone.
fn stranger(file: PathBuf) -> Problem {
    let part = |path: Option<&std::ffi::OsStr>| path.and_then(|p| p.to_str()).unwrap_or_default().to_owned();
    let name = part(file.parent().and_then(|p| p.file_name())) + &part(file.file_name());
    match name.parse::<BlobDigest>() {
        Ok(_) => {
            Problem::Unreadable { file, reason: "the blob's place is taken by something else".to_owned() }
        }
        Err(_) => Problem::Foreign { file },
    }
}

/// Data by reference are hashed again where they lie. What a later reference replaced is not looked for.
fn check_references(project: &Project, blobs: &FileBlobs, report: &mut Report) -> Result<(), StoreError> {
    let stamps = MemoryStamps::default();
    for reference::Reference { path: file, artifact, .. } in reference::latest(project)? {
        let how = match Ingest::new(blobs, &stamps).hash(&file) {
            Ok(found) if found == artifact => continue,
            Ok(_) => "was changed since it was recorded",
            Err(IngestError::Absent { .. }) => "is gone",
            Err(_) => "cannot be read",
        };
        report.problems.push(Problem::Origin { file, how });
    }
    Ok(())
}

fn check_journals(project: &Project, known: &mut Known, report: &mut Report) -> Result<(), StoreError> {
    for file in journal::journals(project)? {
        // Asked first: one that ends meanwhile has written its last line when it is read.
        let live = file.is_live()?;
        let journal = file.read()?;
        report.journals += 1;
        match &journal.damage {
            None => {}
            Some(Damage::Torn { .. }) if live => {}
            Some(Damage::Torn { bytes }) => {
                report.problems.push(Problem::TornJournal { file: file.path.clone(), bytes: *bytes });
            }
            Some(Damage::Broken { line, reason }) => report.problems.push(Problem::BrokenJournal {
                file: file.path.clone(),
                line: *line,
                reason: reason.clone(),
            }),
        }
        if let Some(Event::Opened(opened)) = journal.lines.first().map(|line| &line.event) {
            if opened.run != file.run {
                let run = opened.run.clone();
                report.problems.push(Problem::RenamedJournal { file: file.path.clone(), run });
            }
            let who = || format!("run `{}`", opened.run);
            known.plans.push((opened.plan, who()));
            known.cited.extend(opened.ledger_heads.iter().map(|head| (*head, file.path.clone(), who())));
        }
        known.lines.extend(digests(&journal));
        known.attempted.extend(journal.before_attempts().map(|lines| (file.path.clone(), lines)));
        known.hits.extend(journal.lines.iter().filter_map(|line| match &line.event {
            Event::Reused { cited: Some(cited), .. } => Some((cited.record, file.run.clone())),
            _ => None,
        }));
        known.started.extend(journal.lines.iter().filter_map(|line| match &line.event {
            Event::Started { member, action, .. } => Some((*action, member.clone())),
            _ => None,
        }));
        known.runs.insert(file.run.clone());
        let attempts = index::attempts(&journal);
        report.attempts += attempts.len() as u64;
        for recorded in &attempts {
            let who = || format!("the attempt at `{}`", recorded.member);
            let heads = recorded.attempt.ledger_heads.iter();
            known.cited.extend(heads.map(|head| (*head, file.path.clone(), who())));
        }
        known.recorded.extend(attempts);
    }
    Ok(())
}

/// The digests of a journal's intact lines: each is stated by its successor.
fn digests(journal: &Journal) -> impl Iterator<Item = LineDigest> {
    journal.lines.iter().filter_map(|line| line.previous).chain(journal.head)
}

fn check_ledgers(project: &Project, known: &mut Known, report: &mut Report) -> Result<(), StoreError> {
    for experiment in ledger::experiments(project)? {
        let file = LedgerFile::of(project, &experiment)?;
        let path = file.path();
        let ledger = file.read()?;
        report.ledgers += 1;
        for finding in ledger.findings() {
            report.problems.push(match finding {
                Finding::Torn { bytes } => Problem::TornLedger { file: path.clone(), bytes: *bytes },
                Finding::Line { line, reason } => {
                    Problem::LedgerLine { file: path.clone(), line: *line, reason: reason.clone() }
                }
            });
        }
        take_ledger(project, &ledger, &path, known, report)?;
        if let Some(stray) = file.stray()? {
            report.problems.push(Problem::StrayLedger { file: path.clone(), entries: stray.entries().len() });
            take_ledger(project, &stray, &path, known, report)?;
        }
    }
    Ok(())
}

fn take_ledger(
    project: &Project,
    ledger: &Ledger,
    path: &std::path::Path,
    known: &mut Known,
    report: &mut Report,
) -> Result<(), StoreError> {
    known.announced.extend(ledger.announced());
    let mut missing = HashSet::new();
    for entry in ledger.entries() {
        known.leaves.insert(entry.leaf);
        let text = |key: &str| entry.fields.get(key).and_then(|value| value.as_str());
        if !entry.kind.starts_with("run-") {
            continue;
        }
        let (Some(run), Some(line)) = (text("run"), text("journal").and_then(|hex| hex.parse().ok())) else {
            continue;
        };
        if !known.lines.contains(&line) {
            read_again(project, run, known)?;
        }
        if known.lines.contains(&line) || !missing.insert(run.to_owned()) {
            continue;
        }
        let file = path.to_owned();
        report.problems.push(if known.runs.contains(run) {
            Problem::CutJournal { file, run: run.to_owned(), line }
        } else {
            Problem::MissingJournal { file, run: run.to_owned() }
        });
    }
    Ok(())
}

/// Takes in the lines that a run has written since its journal was read: the ledger may name one of them.
fn read_again(project: &Project, run: &str, known: &mut Known) -> Result<(), StoreError> {
    // A name that no run has is no file.
    let file = files::check_name(run).is_ok().then(|| journal::journal(project, run)).transpose()?.flatten();
    if let Some(file) = file {
        known.lines.extend(digests(&file.read()?));
        known.runs.insert(run.to_owned());
    }
    Ok(())
}

/// Ledgers are read after journals, so a run that begins meanwhile is announced by then.
fn check_announced(known: &Known, report: &mut Report) {
    let missed =
        known.attempted.iter().filter(|(_, lines)| !lines.iter().any(|l| known.announced.contains(l)));
    report.problems.extend(missed.map(|(file, _)| Problem::UnannouncedJournal { file: file.clone() }));
}

fn check_citations(known: &Known, report: &mut Report) {
    let mut told = HashSet::new();
    for (head, file, who) in &known.cited {
        if !known.leaves.contains(head) && told.insert(head) {
            report.problems.push(Problem::MissingHead {
                file: file.clone(),
                head: *head,
                cited_by: who.clone(),
            });
        }
    }
}

fn check_index(
    project: &Project,
    index: &dyn RecordStore,
    known: &Known,
    report: &mut Report,
) -> Result<(), StoreError> {
    let key = |recorded: &Recorded| (recorded.digest(), recorded.position.clone());
    let indexed = match index.entries() {
        Ok(entries) => entries,
        Err(error @ (StoreError::Index { .. } | StoreError::IndexValue { .. })) => {
            let file = project.index();
            report.problems.push(Problem::Unreadable { file, reason: chain(&error) });
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let said: HashMap<_, _> = known.recorded.iter().map(|recorded| (key(recorded), recorded)).collect();
    let mut surplus = 0;
    let mut equal = 0;
    for recorded in &indexed {
        if said.get(&key(recorded)) == Some(&recorded) { equal += 1 } else { surplus += 1 }
    }
    let mut lacking = said.len() - equal;
    for recorded in &known.recorded {
        let digest = recorded.digest();
        let traced =
            known.collected.contains_key(&digest) || index.trace(recorded.attempt.action)?.contains(&digest);
        let remembered = index.history(&recorded.experiment, &recorded.member)?.contains(&digest);
        if index.attempt(digest)?.is_some() && !(traced && remembered) {
            lacking += 1;
        }
    }
    if surplus > 0 || lacking > 0 {
        report.problems.push(Problem::IndexDiffers { file: project.index(), lacking, surplus });
    }
    Ok(())
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
