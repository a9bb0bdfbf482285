//! What the files of a sandbox say was done: the test's own count, taken from the journals and `/proc` and
//! never from the words of the program under test.
//!
//! Deliberately absent: the index (a test may have deleted it) and every judgement about a number.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use avow_model::attempt::{Attempt, Outcome};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::journal::{self, Event, Journal, RunState};

use crate::Sandbox;

/// The journals of a project, in the order in which their runs began.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The runs.
    pub runs: Vec<Past>,
}

/// One run of the past.
#[derive(Clone, Debug)]
pub struct Past {
    /// Its name, which is its file's.
    pub name: String,
    /// Its journal.
    pub journal: Journal,
    /// What the journal's lines add up to.
    pub state: RunState,
}

impl Past {
    /// The members of which an attempt was started, sorted; a member that was tried twice is there twice.
    pub fn started(&self) -> Vec<String> {
        let started = self.journal.lines.iter().filter_map(|line| match &line.event {
            Event::Started { member, .. } => Some(member.clone()),
            _ => None,
        });
        let mut members: Vec<String> = started.collect();
        members.sort();
        members
    }

    /// How the last attempt at a member ended; panics where there was none.
    #[track_caller]
    pub fn outcome(&self, member: &str) -> &Outcome {
        &self.attempt(member).outcome
    }

    /// The last attempt at a member; panics where there was none.
    #[track_caller]
    pub fn attempt(&self, member: &str) -> &Attempt {
        let found = self.state.attempts.iter().rev().find(|(name, _)| name == member);
        &found.unwrap_or_else(|| panic!("`{member}` was not executed in run {}", self.name)).1
    }
}

impl History {
    /// The run that began last; panics where there was none.
    #[track_caller]
    pub fn latest(&self) -> &Past {
        self.runs.last().expect("nothing was run")
    }

    /// Every attempt that ended, with its member, in order.
    pub fn attempts(&self) -> impl Iterator<Item = &(String, Attempt)> {
        self.runs.iter().flat_map(|run| &run.state.attempts)
    }

    /// How often each member was executed with success.
    pub fn successes(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (member, attempt) in self.attempts() {
            *counts.entry(member.clone()).or_default() += usize::from(attempt.outcome.succeeded());
        }
        counts
    }

    /// What each member wrote when it first succeeded, by member and output.
    pub fn artifacts(&self) -> BTreeMap<(String, String), Artifact> {
        let mut artifacts = BTreeMap::new();
        for (member, attempt) in self.attempts().filter(|(_, attempt)| attempt.outcome.succeeded()) {
            for (output, produced) in &attempt.outputs {
                artifacts.entry((member.clone(), output.clone())).or_insert(produced.artifact);
            }
        }
        artifacts
    }
}

impl Sandbox {
    /// What the journals hold now. Reads what a run in progress has written so far.
    pub fn history(&self) -> History {
        let names = self.list(".avow/journal");
        let mut runs: Vec<Past> = names.iter().filter_map(|name| self.past(name)).collect();
        runs.sort_by_key(|run| run.state.since);
        History { runs }
    }

    fn past(&self, name: &str) -> Option<Past> {
        let run = name.strip_suffix(".jsonl")?;
        let bytes = fs::read(self.path(".avow/journal").join(name)).expect("a journal is readable");
        let mut journal = journal::read(&bytes);
        journal::resolve(&mut journal.lines, |digest| fs::read(self.blob(digest)).ok());
        let state = RunState::of(&journal.lines);
        Some(Past { name: run.to_owned(), journal, state })
    }

    /// Runs the program, which must exit with 0, and gives the members that it executed, sorted.
    #[track_caller]
    pub fn executes(&self, args: &[&str]) -> Vec<String> {
        let before = self.history().runs.len();
        self.avow(args).expect_code(0);
        let history = self.history();
        assert_eq!(history.runs.len(), before + 1, "it opened one run");
        history.latest().started()
    }

    /// Where the store keeps a blob.
    pub fn blob(&self, digest: BlobDigest) -> PathBuf {
        let hex = digest.to_string();
        self.path(".avow/blobs").join(&hex[..2]).join(&hex[2..])
    }

    /// Processes that carry the mark of one of this project's attempts.
    pub fn survivors(&self) -> Vec<u32> {
        let history = self.history();
        let lines = history.runs.iter().flat_map(|run| &run.journal.lines);
        let marks: Vec<String> = lines
            .filter_map(|line| match &line.event {
                Event::Started { attempt, .. } => Some(format!("AVOW_ATTEMPT={attempt}")),
                _ => None,
            })
            .collect();
        let processes = fs::read_dir("/proc").expect("this system has /proc");
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                // A process may end while it is looked at; then there is nothing to read, and no survivor.
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let mut entries = environment.split(|byte| *byte == 0);
                entries.any(|entry| marks.iter().any(|mark| mark.as_bytes() == entry))
            })
            .collect()
    }
}
