//! The other runs of the project, as far as one run has to know of them.
//!
//! Before an attempt starts, three questions are asked in this order, and the order is what makes the answer
//! right. *Has another run the lock of the action?* Then it is being made, and we wait. *Did a run die that may
//! have been making it?* Then what it left is put in order first. *Was it made since we looked?* Then we look
//! again. Where no other run was ever seen, the last two cost one look at the folder of journals.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use avow_model::digest::ActionDigest;
use avow_model::expand::Member;
use avow_store::journal::{self, JournalFile};
use avow_store::presence::{Presence, PresenceFile, Wait};
use avow_store::stamp::FileStamp;
use avow_store::{ActionLocks, Project, StoreError};

use crate::error::EngineError;
use crate::recover;
use crate::session::Session;

/// Bounds of the time between two looks whether an action has become free.
const SOONEST: Duration = Duration::from_millis(5);
const LATEST: Duration = Duration::from_millis(250);

/// What may be done about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is ours to execute; nobody can have made it since it was looked up.
    Ours,
    /// It is ours, but may have been made since it was looked up.
    Look,
    /// Another run executes it.
    Theirs,
}

/// Locks on actions, and what is known of other runs.
pub(crate) struct Others {
    project: Project,
    locks: ActionLocks,
    /// The folder of journals when it was last listed, if nothing can have changed since without a trace.
    listed: Option<FileStamp>,
    /// Runs that are known; of these only the open ones are looked at again.
    known: HashSet<String>,
    open: Vec<JournalFile>,
    /// Whether there ever was another run beside this one.
    seen: bool,
    waiting: Vec<Waiting>,
    /// What this run says about itself.
    presence: Presence,
    /// Nothing where it could not be written, which is no reason not to run.
    file: Option<PresenceFile>,
}

struct Waiting {
    member: Member,
    action: ActionDigest,
    since: Instant,
    /// What others are told of it; nothing where the wait is over before anybody could read it.
    told: Option<Wait>,
}

impl Others {
    /// What a run, which has its journal, has to know, and says of itself.
    pub(crate) fn new(session: &Session, presence: Presence) -> Result<Others, EngineError> {
        let census = session.census.clone();
        Ok(Others {
            file: PresenceFile::create(&session.project, &presence).inspect_err(unsaid).ok(),
            presence,
            project: session.project.clone(),
            locks: ActionLocks::open(&session.project)?,
            listed: None,
            known: census.known,
            seen: !census.living.is_empty(),
            open: census.living,
            waiting: Vec::new(),
        })
    }

    /// Asks for the right to execute an action.
    pub(crate) fn turn(
        &mut self,
        session: &Session,
        member: Member,
        action: ActionDigest,
    ) -> Result<Turn, EngineError> {
        let ours = self.locks.try_take(action)?;
        self.notice_new()?;
        if !ours {
            self.waiting.push(Waiting { member, action, since: Instant::now(), told: None });
            return Ok(Turn::Theirs);
        }
        self.close_dead(session)?;
        Ok(if self.seen { Turn::Look } else { Turn::Ours })
    }

    /// Takes the right to execute an action, if no other run has it; nobody waits for it.
    pub(crate) fn take(&self, action: ActionDigest) -> Result<bool, EngineError> {
        Ok(self.locks.try_take(action)?)
    }

    /// Gives the right back: the attempt is in the index, or is not made.
    pub(crate) fn release(&self, action: ActionDigest) -> Result<(), EngineError> {
        Ok(self.locks.release(action)?)
    }

    /// Gives the right back unused, because the action turned out to be made; the member is to look again.
    pub(crate) fn give_up(&mut self, member: Member, action: ActionDigest) -> Result<(), EngineError> {
        self.locks.release(action)?;
        self.waiting.push(Waiting { member, action, since: Instant::now(), told: None });
        Ok(())
    }

    /// Tells others for which run a member waits, and returns that run where it could be found out.
    pub(crate) fn tell_wait(&mut self, member: Member, label: &str) -> Result<Option<String>, EngineError> {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.member == member) else {
            return Ok(None);
        };
        let run = self.maker(self.waiting[at].action)?;
        self.waiting[at].told = Some(Wait { member: label.to_owned(), run: run.clone() });
        self.say();
        Ok(run)
    }

    fn say(&mut self) {
        self.presence.waits = self.waiting.iter().filter_map(|waiting| waiting.told.clone()).collect();
        if let Some(file) = &self.file {
            let _ = file.write(&self.presence).inspect_err(unsaid);
        }
    }

    /// The run that last started an attempt at an action and is alive.
    fn maker(&self, action: ActionDigest) -> Result<Option<String>, EngineError> {
        let action = action.to_string();
        for file in &self.open {
            let text = String::from_utf8_lossy(&file.bytes()?).into_owned();
            let last = text.lines().rev().find(|line| line.contains(&action));
            if last.is_some_and(|line| line.contains("\"started\"")) && file.is_live()? {
                return Ok(Some(file.run.clone()));
            }
        }
        Ok(None)
    }

    /// When to look again whether something has become free; `None` where nothing is waited for. What has been
    /// waited for long is looked at less often.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let soonest = self.waiting.iter().map(|waiting| waiting.since.elapsed() / 20).min();
        soonest.map(|pause| pause.clamp(SOONEST, LATEST))
    }

    /// Members whose action has become free, which are waited for no longer.
    pub(crate) fn freed(&mut self) -> Result<Vec<Member>, EngineError> {
        let mut freed = Vec::new();
        let mut waiting = Vec::new();
        for entry in std::mem::take(&mut self.waiting) {
            if self.locks.is_taken(entry.action)? {
                waiting.push(entry);
            } else {
                freed.push(entry.member);
            }
        }
        self.waiting = waiting;
        if !freed.is_empty() && !self.presence.waits.is_empty() {
            self.say();
        }
        Ok(freed)
    }

    /// Takes in runs that have begun since.
    fn notice_new(&mut self) -> Result<(), EngineError> {
        let folder = self.project.journals();
        let begun = avow_store::stamp::now();
        let now = FileStamp::of_folder(&folder)?;
        if self.listed == Some(now) {
            return Ok(());
        }
        for file in journal::journals(&self.project)? {
            if self.known.insert(file.run.clone()) && file.run != self.presence.run {
                self.seen = true;
                self.open.push(file);
            }
        }
        self.listed = now.settled(begun).then_some(now);
        Ok(())
    }

    /// Puts in order what runs left that died beside this one.
    fn close_dead(&mut self, session: &Session) -> Result<(), EngineError> {
        let mut dead = Vec::new();
        let mut open = Vec::new();
        for file in self.open.drain(..) {
            if file.is_live()? {
                open.push(file);
            } else if file.closing()?.is_none() {
                dead.push(file);
            }
        }
        self.open = open;
        let recovered = recover::close_all(&self.project, &session.index, &dead)?;
        for recovered in &recovered {
            tracing::warn!(run = recovered.run, lost = ?recovered.lost, "a run died beside this one");
        }
        Ok(())
    }
}

fn unsaid(error: &StoreError) {
    tracing::warn!(%error, "other runs are not told about this one");
}
