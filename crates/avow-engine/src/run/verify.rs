//! The part of a run in which it carries out some of what it reused again.

use std::collections::VecDeque;

use avow_exec::{ExecError, Execution, Executor, Level};
use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Outcome};
use avow_model::canonical::Record;
use avow_model::journal::{Closing, Event};
use avow_model::plan::Terms;
use avow_planner::{Request, Slots};
use avow_store::BlobStore;
use avow_store::blob::read_record;
use tokio::task::{JoinError, JoinSet};

use super::Engine;
use crate::clock::{attempt_id, now};
use crate::commit::Ended;
use crate::error::EngineError;
use crate::notice::Notice;
use crate::verify::{Candidate, Draw, Verification, Verified};

/// One action that was carried out again.
struct Again {
    candidate: Candidate,
    id: AttemptId,
    terms: Terms,
    execution: Result<Execution, ExecError>,
}

/// What is still to be done, and what is under way.
struct Work {
    waiting: VecDeque<Candidate>,
    tasks: JoinSet<Again>,
    slots: Slots,
    done: Verification,
}

impl<E: Executor + 'static> Engine<'_, E> {
    /// Carries out a sample of what was reused, where that was asked for and the run came to its end.
    pub(super) async fn verify(&mut self) -> Result<Option<Verification>, EngineError> {
        let Some(draw) = self.draw.take() else { return Ok(None) };
        if !matches!(self.closing(), Closing::Complete | Closing::Partial) {
            return Ok(None);
        }
        let (sample, waiting, excluded) = Draw::drawn(draw);
        let done =
            Verification { of: sample.of, drawn: waiting.len() as u64, excluded, ..Default::default() };
        if waiting.is_empty() {
            return Ok(Some(done));
        }
        (self.notify)(Notice::Verifying { drawn: done.drawn, of: done.of });
        self.journal.append(now(), Event::Verifying { sample })?;
        let slots = Slots::new(self.options.settings.cpus, self.options.settings.memory);
        let mut work = Work { waiting: waiting.into(), tasks: JoinSet::new(), slots, done };
        self.carry_out_again(&mut work).await?;
        Ok(Some(work.done))
    }

    async fn carry_out_again(&mut self, work: &mut Work) -> Result<(), EngineError> {
        let mut stopping = false;
        loop {
            if self.cancel.level() != Level::Run {
                self.leave_out(work, "stopped on request");
            }
            self.start_again(work)?;
            if work.tasks.is_empty() && self.commits.is_empty() {
                return Ok(());
            }
            let hurry = work.tasks.is_empty();
            tokio::select! {
                biased;
                _ = self.cancel.cancelled(), if !stopping => {
                    stopping = true;
                    (self.notify)(Notice::Stopping);
                }
                Some(spawn) = self.spawned.1.recv() => self.note_spawn(spawn)?,
                station = self.commits.station(hurry), if !self.commits.is_empty() => {
                    self.reached(station?)?;
                }
                Some(joined) = work.tasks.join_next() => {
                    if let Err(fault) = self.ended_again(work, joined) {
                        self.write_down().await?;
                        return Err(fault);
                    }
                }
            }
        }
    }

    fn leave_out(&mut self, work: &mut Work, reason: &str) {
        for candidate in work.waiting.drain(..) {
            work.done.skipped.insert(candidate.hit.member, reason.to_owned());
        }
    }

    /// Starts what fits into the free slots, in the order of the sample.
    fn start_again(&mut self, work: &mut Work) -> Result<(), EngineError> {
        while let Some(candidate) = work.waiting.front() {
            let terms = self.terms_of(candidate);
            let free = work.tasks.is_empty();
            // A stage that asks for more than there is was refused before anything ran.
            if !work.slots.take(request(&terms)) {
                debug_assert!(!free, "nothing runs, and still nothing fits");
                return Ok(());
            }
            let Some(candidate) = work.waiting.pop_front() else { return Ok(()) };
            if let Some(reason) = self.start_one_again(work, candidate.clone(), terms.clone())? {
                work.slots.give_back(request(&terms));
                work.done.skipped.insert(candidate.hit.member, reason);
            }
        }
        Ok(())
    }

    fn terms_of(&self, candidate: &Candidate) -> Terms {
        let stage = candidate.hit.member.split('[').next().unwrap_or_default();
        self.options.settings.terms.get(stage).cloned().unwrap_or_default()
    }

    /// Starts one; otherwise the reason why not.
    fn start_one_again(
        &mut self,
        work: &mut Work,
        candidate: Candidate,
        terms: Terms,
    ) -> Result<Option<String>, EngineError> {
        let digest = candidate.hit.action;
        let action: Action = match read_record(&*self.session.blobs, digest) {
            Err(error) if error.is_unusable_blob() => {
                return Ok(Some("the record of its action is gone; `avow store check` says more".to_owned()));
            }
            other => other?,
        };
        if !self.others.take(digest)? {
            return Ok(Some("another run executes it now".to_owned()));
        }
        self.announce()?;
        let (id, at, member) = (attempt_id()?, now(), candidate.hit.member.clone());
        let started = Event::Started {
            member: member.clone(),
            action: digest,
            attempt: id.clone(),
            verification: true,
        };
        self.journal.append(at, started)?;
        tracing::info!(member, attempt = %id, "started to verify");
        (self.notify)(Notice::Started { member, at });
        let executor = std::sync::Arc::clone(&self.executor);
        let watch = self.watch(&id).fresh();
        work.tasks.spawn(async move {
            let execution = executor.run(&id, &action, &terms, watch).await;
            Again { candidate, id, terms, execution }
        });
        Ok(None)
    }

    fn ended_again(&mut self, work: &mut Work, joined: Result<Again, JoinError>) -> Result<(), EngineError> {
        let again = joined.map_err(|error| EngineError::Panic(error.to_string()))?;
        let Again { candidate, id, terms, execution } = again;
        work.slots.give_back(request(&terms));
        let label = candidate.hit.member.clone();
        let stage = label.split('[').next().unwrap_or_default();
        let mut attempt = self.record(stage, id, candidate.hit.action, 1, terms, execution?)?;
        attempt.verification = true;
        self.cpu += attempt.usage.cpu;
        let same = attempt.outcome == Outcome::Succeeded
            && candidate.outputs.iter().eq(attempt.outputs.iter().map(|(name, made)| (name, &made.artifact)));
        tracing::info!(member = label, attempt = %attempt.id, outcome = %attempt.outcome, same, "verified");
        (self.notify)(Notice::Verified {
            member: label.clone(),
            same,
            done: work.done.results.len() as u64 + 1,
        });
        let (first, outputs) = (candidate.hit.attempt, candidate.outputs);
        let verified = Verified { member: label.clone(), first, outputs, attempt: attempt.clone() };
        work.done.results.push(verified);
        self.commits.add(Ended { at: candidate.member, member: label, attempt, again: false });
        Ok(())
    }

    /// What is needed to carry an action out again is stored: a hit that was recorded under an earlier encoding
    /// names an action that was never executed under its present name.
    pub(super) fn may_be_drawn(&mut self, action: &Action) -> Result<(), EngineError> {
        if self.draw.is_some() {
            self.session.blobs.put(&action.to_bytes())?;
        }
        Ok(())
    }
}

fn request(terms: &Terms) -> Request {
    Request { cpus: terms.cpus.max(1), memory: terms.memory.unwrap_or(0) }
}
