//! Making the ends of attempts last, beside the work.
//!
//! An end passes three stations, always in this order: its blobs are flushed, its journal line is written and
//! flushed, the index learns of it. Flushing is waiting for a disk, so it happens on a thread of its own while
//! other members run, and all ends that came meanwhile go together: the cost per stage falls as stages get
//! shorter. The planner hears of an outcome at once, so that the next member starts without waiting for a disk.
//! What a member rests on still is journalled before its own end, because ends are journalled in their order;
//! and what a power cut takes away was then `Lost`, which is what the next run makes again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use avow_model::attempt::Attempt;
use avow_model::digest::ActionDigest;
use avow_model::expand::Member;
use avow_model::journal::Event;
use avow_store::{BlobStore, FileBlobs, JournalWriter, Project, Recorded, SharedIndex, StoreError};
use tokio::task::JoinHandle;

use crate::clock::now;
use crate::error::EngineError;
use crate::recover::learn;

/// Ends within this time of the last flush wait for each other while something runs: a flush costs about as much
/// as a short member, whether it is for one end or for a hundred. A kill of this process loses what ended since.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the index notes how much of the journal it holds. Each note costs a flush; without it a journal is
/// read again after a crash.
const NOTE: Duration = Duration::from_secs(1);

/// An attempt that has ended.
pub(crate) struct Ended {
    /// Its member.
    pub(crate) at: Member,
    /// The member's label.
    pub(crate) member: String,
    /// The record.
    pub(crate) attempt: Attempt,
    /// Whether its member is tried again.
    pub(crate) again: bool,
}

/// A station that some ends have reached.
pub(crate) enum Station {
    /// Their blobs last; their lines may be written.
    Flushed,
    /// Their lines last, and the index knows them.
    Learned(Vec<Ended>),
}

/// The ends that do not last yet.
pub(crate) struct Commits {
    project: Project,
    blobs: Arc<FileBlobs>,
    index: Arc<SharedIndex>,
    experiment: String,
    waiting: Vec<Ended>,
    flushing: Vec<Ended>,
    task: Option<JoinHandle<Result<Station, StoreError>>>,
    /// Actions with a success among them.
    actions: HashSet<ActionDigest>,
    /// Members that are tried again.
    retried: HashSet<Member>,
    began: Option<Instant>,
    noted: Instant,
}

impl Commits {
    /// None yet.
    pub(crate) fn new(
        project: Project,
        blobs: Arc<FileBlobs>,
        index: Arc<SharedIndex>,
        experiment: String,
    ) -> Commits {
        Commits {
            project,
            blobs,
            index,
            experiment,
            waiting: Vec::new(),
            flushing: Vec::new(),
            task: None,
            actions: HashSet::new(),
            retried: HashSet::new(),
            began: None,
            noted: Instant::now(),
        }
    }

    /// Takes one more end in.
    pub(crate) fn add(&mut self, ended: Ended) {
        if ended.attempt.outcome.succeeded() {
            self.actions.insert(ended.attempt.action);
        }
        if ended.again {
            self.retried.insert(ended.at);
        }
        self.waiting.push(ended);
    }

    /// Whether everything lasts.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.task.is_none()
    }

    /// Whether an action has succeeded and the index does not know it yet.
    pub(crate) fn holds(&self, action: ActionDigest) -> bool {
        self.actions.contains(&action)
    }

    /// Whether a member's last attempt is not journalled yet. A journal tells the attempts of one member in their
    /// order: its fold knows one at a time.
    pub(crate) fn retries(&self, member: Member) -> bool {
        self.retried.contains(&member)
    }

    /// Waits for the next station; may be dropped and called again. `hurry`: nothing else is under way, so
    /// nothing is gained by waiting for more.
    pub(crate) async fn station(&mut self, hurry: bool) -> Result<Station, EngineError> {
        if self.task.is_none() {
            if let Some(began) = self.began.filter(|_| !hurry) {
                tokio::time::sleep_until((began + PAUSE).into()).await;
            }
            self.began = Some(Instant::now());
            self.flushing = std::mem::take(&mut self.waiting);
            let blobs = Arc::clone(&self.blobs);
            self.task = Some(tokio::task::spawn_blocking(move || blobs.sync().map(|()| Station::Flushed)));
        }
        let Some(task) = &mut self.task else { return Ok(Station::Learned(Vec::new())) };
        let reached = task.await.map_err(|error| EngineError::Panic(error.to_string()));
        self.task = None;
        let station = reached??;
        if let Station::Learned(ends) = &station {
            self.settle(ends);
        }
        Ok(station)
    }

    /// Nothing waits any more for these.
    fn settle(&mut self, ends: &[Ended]) {
        for ended in ends {
            self.actions.remove(&ended.attempt.action);
            self.retried.remove(&ended.at);
        }
        // One action may have succeeded twice, where its first blobs went missing meanwhile.
        let again = self.waiting.iter().filter(|ended| ended.attempt.outcome.succeeded());
        self.actions.extend(again.map(|ended| ended.attempt.action));
    }

    /// Writes the lines of the ends whose blobs last, and goes on to the next station.
    pub(crate) fn write(&mut self, journal: &mut JournalWriter) -> Result<(), StoreError> {
        let ends = std::mem::take(&mut self.flushing);
        let at = now();
        let event = |ended: &Ended| Event::Finished {
            member: ended.member.clone(),
            attempt: Box::new(ended.attempt.clone()),
        };
        let positions = journal.append_all(at, ends.iter().map(event))?;
        let records: Vec<Recorded> = positions
            .into_iter()
            .zip(&ends)
            .map(|(position, ended)| Recorded {
                position,
                experiment: self.experiment.clone(),
                member: ended.member.clone(),
                attempt: ended.attempt.clone(),
            })
            .collect();
        let (sync, project, index) = (journal.syncer(), self.project.clone(), Arc::clone(&self.index));
        let noted = (self.noted.elapsed() >= NOTE).then(|| (journal.run().to_owned(), journal.length()));
        if noted.is_some() {
            self.noted = Instant::now();
        }
        self.task = Some(tokio::task::spawn_blocking(move || {
            sync.sync()?;
            learn(&project, &index, &records, noted)?;
            Ok(Station::Learned(ends))
        }));
        Ok(())
    }
}
