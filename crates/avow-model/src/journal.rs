//! What one run did, as a chain of lines, and the fold that turns it into the run's state.
//!
//! A journal is JSON Lines. Each line holds the digest of the raw bytes of the line before it, so a line that
//! is changed, removed or inserted breaks the chain. Bytes after the last line feed are a torn write: a
//! reader reports them and changes nothing, the next writer cuts them. Attempts are embedded whole.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::attempt::{Attempt, AttemptId, Outcome, Timestamp};
use crate::digest::{ActionDigest, AttemptDigest, BlobDigest, LineDigest, PlanDigest, RegistrationDigest};
use crate::search::Decision;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The digest of the line before; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<LineDigest>,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What can happen in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Event {
    /// The run began; always the first line.
    Opened(Box<Opened>),
    /// Members whose actions had been carried out before, one wave at a time.
    Reused {
        /// The hits.
        hits: Vec<Hit>,
        /// More hits, kept as a blob because an earlier run had the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cited: Option<Cited>,
    },
    /// An attempt is about to be made.
    Started {
        /// The member's label.
        member: String,
        /// Its action.
        action: ActionDigest,
        /// The attempt.
        attempt: AttemptId,
        /// Whether it is made only to be compared with an earlier success.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        verification: bool,
    },
    /// Reused actions are about to be carried out again, to be compared.
    Verifying {
        /// The sample.
        sample: Sample,
    },
    /// Its process exists.
    Spawned {
        /// The attempt.
        attempt: AttemptId,
        /// Process id, which is also its group's.
        pid: i32,
        /// The process' start time in clock ticks since boot, so that a reused id is not mistaken for it.
        start_ticks: u64,
    },
    /// A search took a step.
    Decided {
        /// The step.
        decision: Box<Decision>,
    },
    /// An attempt ended.
    Finished {
        /// The member's label.
        member: String,
        /// The whole record.
        attempt: Box<Attempt>,
    },
    /// The run ended by itself.
    Closed {
        /// How.
        how: Closing,
    },
}

/// The first line's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Version of the journal's format: 1.
    pub version: u32,
    /// The run's name, also the file's.
    pub run: String,
    /// 32 random bytes in hexadecimal, so that no two journals begin alike.
    pub nonce: String,
    /// The experiment.
    pub experiment: String,
    /// The plan it carries out, stored as a blob.
    pub plan: PlanDigest,
    /// How many members it set out to do.
    pub members: u64,
    /// Whether the plan is exactly one that is registered.
    pub confirmatory: bool,
    /// The ledger's heads, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger_heads: Vec<RegistrationDigest>,
    /// The unfinished run of the same plan that this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The spec's path in the project, for people.
    pub spec: String,
    /// Version of the program that wrote it, for people.
    pub tool: String,
}

/// A member that was reused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The member's label.
    pub member: String,
    /// Its action.
    pub action: ActionDigest,
    /// The attempt whose outputs stand for it.
    pub attempt: AttemptDigest,
}

/// Hits that are the same as an earlier run's: a blob of JSON Lines, one [`Hit`] each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cited {
    /// The blob.
    pub record: BlobDigest,
    /// How many hits it holds.
    pub count: u64,
}

/// Which of the reused actions a run carries out again.
///
/// Nobody chooses them: actions are ranked by [`rank`], over the digest of the journal's first line, which holds 32
/// random bytes. Whoever has the journal can draw the sample again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The share that was asked for, above 0 and at most 1.
    pub share: f64,
    /// From how many distinct actions it was drawn.
    pub of: u64,
    /// The actions, by rank.
    pub chosen: Vec<ActionDigest>,
}

impl Sample {
    /// How many of so many actions a share is: at least one, where there is one.
    pub fn size(share: f64, of: u64) -> u64 {
        // The product of a share and a count is exact enough up to 2^53 actions.
        ((share * of as f64).ceil() as u64).clamp(u64::from(of > 0), of)
    }
}

/// The place of an action in the order in which samples are drawn; the smallest come first. `first` is the digest
/// of the journal's first line.
pub fn rank(first: LineDigest, action: ActionDigest) -> [u8; 32] {
    let text = ["avow/verify/1".as_bytes(), first.as_bytes(), action.as_bytes()].concat();
    *BlobDigest::of(&text).as_bytes()
}

/// The line of a hit in the blob of cited hits, with its line feed.
pub fn hit_line(hit: &Hit) -> Vec<u8> {
    let mut line = serde_json::to_vec(hit).expect("hits hold only JSON values");
    line.push(b'\n');
    line
}

/// The hits in a blob that a line cites.
pub fn hits_of(bytes: &[u8]) -> Result<Vec<Hit>, serde_json::Error> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice).collect()
}

/// Puts cited hits into the lines that cite them, so that a fold sees them as it sees the others. `read` gives a
/// blob's bytes; a line whose blob is gone, or is no list of hits, keeps its citation. Returns how many did.
pub fn resolve(lines: &mut [Line], read: impl Fn(BlobDigest) -> Option<Vec<u8>>) -> usize {
    let mut left = 0;
    for line in lines {
        let Event::Reused { hits, cited } = &mut line.event else { continue };
        let Some(Cited { record, .. }) = *cited else { continue };
        match read(record).and_then(|bytes| hits_of(&bytes).ok()) {
            Some(more) => {
                hits.extend(more);
                *cited = None;
            }
            None => left += 1,
        }
    }
    left
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Closing {
    /// Every member succeeded or was reused.
    Complete,
    /// Some member failed, or was not reached because of one that did.
    Failed,
    /// Only some members were asked for (`--only`), and they are done.
    Partial,
    /// Stopped on request.
    Interrupted,
    /// Found unfinished by a later command, which closed it.
    Abandoned,
}

impl Line {
    /// The line as it is written, without its line feed.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("journal lines hold only JSON values")
    }
}

/// A journal as read: its intact lines and what is wrong after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// The lines up to the first damage.
    pub lines: Vec<Line>,
    /// The digest of the last intact line.
    pub head: Option<LineDigest>,
    /// Length in bytes of the intact lines.
    pub intact: usize,
    /// What is wrong, if anything.
    pub damage: Option<Damage>,
}

impl Journal {
    /// The digests of the lines before its first attempt; `None` where it tells of no attempt. A run names one of them in
    /// the ledger before it carries anything out, so a journal with attempts none of whose earlier lines stands there was
    /// put here by other means.
    pub fn before_attempts(&self) -> Option<Vec<LineDigest>> {
        let attempted = |line: &Line| matches!(line.event, Event::Started { .. } | Event::Finished { .. });
        let first = self.lines.iter().position(attempted)?;
        // Each line holds the digest of the one before it.
        Some(self.lines[..=first].iter().filter_map(|line| line.previous).collect())
    }
}

/// What is wrong with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Bytes after the last line feed: a write that was cut off.
    Torn {
        /// How many.
        bytes: usize,
    },
    /// A complete line (counted from 1) that does not belong here.
    Broken {
        /// The line.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// Reads a journal, checking the chain. Stops at the first line that is damaged.
pub fn read(bytes: &[u8]) -> Journal {
    let mut lines = Vec::new();
    let read = walk(bytes, Walked::default(), &mut |_, line| lines.push(line));
    Journal { lines, head: read.head, intact: read.intact as usize, damage: read.damage }
}

/// How far a journal has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Intact lines so far.
    pub lines: u64,
    /// Their length in bytes.
    pub intact: u64,
    /// The digest of the last of them.
    pub head: Option<LineDigest>,
    /// What is wrong behind them, if anything.
    pub damage: Option<Damage>,
}

/// Reads on from where an earlier reading of the same journal came to an end; `bytes` begin there. `visit` gets
/// the place of each intact line in the journal, without its line feed, and the line.
pub fn walk(bytes: &[u8], from: Walked, visit: &mut dyn FnMut(Range<u64>, Line)) -> Walked {
    let (start, mut read) = (from.intact, Walked { damage: None, ..from });
    loop {
        let rest = &bytes[(read.intact - start) as usize..];
        let Some(length) = rest.iter().position(|b| *b == b'\n') else {
            read.damage = (!rest.is_empty()).then_some(Damage::Torn { bytes: rest.len() });
            return read;
        };
        let raw = &rest[..length];
        match parse(raw, read.head, read.lines == 0) {
            Ok(line) => visit(read.intact..read.intact + length as u64, line),
            Err(reason) => {
                read.damage = Some(Damage::Broken { line: read.lines as usize + 1, reason });
                return read;
            }
        }
        read.lines += 1;
        read.head = Some(LineDigest::of(raw));
        read.intact += length as u64 + 1;
    }
}

fn parse(raw: &[u8], head: Option<LineDigest>, first: bool) -> Result<Line, String> {
    let line: Line = serde_json::from_slice(raw).map_err(|e| format!("not a journal line: {e}"))?;
    if line.previous != head {
        return Err("does not follow the line before it".to_owned());
    }
    match (&line.event, first) {
        (Event::Opened(opened), true) if opened.version == 1 => Ok(line),
        (Event::Opened(opened), true) => Err(format!("version {} is not known here", opened.version)),
        (Event::Opened(_), false) => Err("a second beginning".to_owned()),
        (_, true) => Err("the first line does not open a run".to_owned()),
        (_, false) => Ok(line),
    }
}

/// Where a member stands within a run.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberState {
    /// An attempt is under way (or was, when its runner died).
    Running {
        /// The attempt.
        attempt: AttemptId,
        /// Its action.
        action: ActionDigest,
        /// When it started.
        since: Timestamp,
        /// Process id and start ticks, once known.
        process: Option<(i32, u64)>,
    },
    /// An earlier attempt stands for it.
    Reused(Hit),
    /// It was executed.
    Done(Box<Attempt>),
}

/// A run's state: the fold of its lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// The first line.
    pub opened: Option<Opened>,
    /// When it began.
    pub since: Timestamp,
    /// When the last line was written.
    pub until: Timestamp,
    /// Members that have been touched, by label.
    pub members: BTreeMap<String, MemberState>,
    /// Every attempt that ended, in order, with its member.
    pub attempts: Vec<(String, Attempt)>,
    /// How it ended.
    pub closed: Option<Closing>,
    /// The member of each attempt under way, so that a fold over n lines takes n steps.
    running: BTreeMap<AttemptId, String>,
    /// Attempts under way that are made only to be compared: they change no member's state.
    verifying: BTreeMap<AttemptId, Orphan>,
}

/// An attempt that started and did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The member's label.
    pub member: String,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its action.
    pub action: ActionDigest,
    /// When it started.
    pub since: Timestamp,
    /// Process id and start ticks, once known.
    pub process: Option<(i32, u64)>,
    /// Whether it was made only to be compared.
    pub verification: bool,
}

impl RunState {
    /// The fold of some lines.
    pub fn of(lines: &[Line]) -> RunState {
        let mut state = RunState::default();
        lines.iter().for_each(|line| state.apply(line));
        state
    }

    /// Takes one more line in.
    pub fn apply(&mut self, line: &Line) {
        self.until = line.at;
        match &line.event {
            Event::Opened(opened) => {
                self.opened = Some((**opened).clone());
                self.since = line.at;
            }
            Event::Reused { hits, .. } => {
                for hit in hits {
                    self.set(&hit.member, MemberState::Reused(hit.clone()));
                }
            }
            Event::Started { member, action, attempt, verification: true } => {
                let (member, attempt, action) = (member.clone(), attempt.clone(), *action);
                let (since, process, verification) = (line.at, None, true);
                let orphan =
                    Orphan { member, attempt: attempt.clone(), action, since, process, verification };
                self.verifying.insert(attempt, orphan);
            }
            Event::Started { member, action, attempt, verification: false } => {
                let running = MemberState::Running {
                    attempt: attempt.clone(),
                    action: *action,
                    since: line.at,
                    process: None,
                };
                self.set(member, running);
                self.running.insert(attempt.clone(), member.clone());
            }
            Event::Spawned { attempt: id, pid, start_ticks } => {
                let state = self.running.get(id).and_then(|member| self.members.get_mut(member));
                if let Some(MemberState::Running { process, .. }) = state {
                    *process = Some((*pid, *start_ticks));
                } else if let Some(orphan) = self.verifying.get_mut(id) {
                    orphan.process = Some((*pid, *start_ticks));
                }
            }
            Event::Finished { member, attempt } => {
                if attempt.verification {
                    self.verifying.remove(&attempt.id);
                } else {
                    self.set(member, MemberState::Done(attempt.clone()));
                }
                self.attempts.push((member.clone(), (**attempt).clone()));
            }
            // What a search decided is worked out anew from the measurements; the line is for people.
            Event::Decided { .. } | Event::Verifying { .. } => {}
            Event::Closed { how } => self.closed = Some(*how),
        }
    }

    fn set(&mut self, member: &str, state: MemberState) {
        let before = self.members.insert(member.to_owned(), state);
        if let Some(MemberState::Running { attempt, .. }) = before {
            self.running.remove(&attempt);
        }
    }

    /// Attempts that started and never finished: after their runner's death they are lost.
    pub fn orphans(&self) -> impl Iterator<Item = Orphan> {
        let members = self.members.iter().filter_map(|(member, state)| match state {
            MemberState::Running { attempt, action, since, process } => Some(Orphan {
                member: member.clone(),
                attempt: attempt.clone(),
                action: *action,
                since: *since,
                process: *process,
                verification: false,
            }),
            _ => None,
        });
        members.chain(self.verifying.values().cloned())
    }

    /// How many members are in which state.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for state in self.members.values() {
            match state {
                MemberState::Running { .. } => counts.running += 1,
                MemberState::Reused(_) => counts.reused += 1,
                MemberState::Done(attempt) => match &attempt.outcome {
                    Outcome::Succeeded => counts.succeeded += 1,
                    Outcome::Cancelled => counts.cancelled += 1,
                    Outcome::Lost => counts.lost += 1,
                    _ => counts.failed += 1,
                },
            }
        }
        counts.with_rest_waiting(self.opened.as_ref().map_or(0, |o| o.members))
    }
}

/// Members of a run by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Not yet reached.
    pub waiting: u64,
    /// Under way.
    pub running: u64,
    /// Reused.
    pub reused: u64,
    /// Executed, with success.
    pub succeeded: u64,
    /// Executed; the program or the machine failed.
    pub failed: u64,
    /// Executed; nobody knows how it ended.
    pub lost: u64,
    /// Stopped on request.
    pub cancelled: u64,
}

impl Counts {
    /// The same with the rest of so many members waiting.
    pub(crate) fn with_rest_waiting(self, members: u64) -> Counts {
        let known = self.running + self.reused + self.succeeded + self.failed + self.lost + self.cancelled;
        Counts { waiting: members.saturating_sub(known), ..self }
    }
}
