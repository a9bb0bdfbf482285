//! The beginning of an attempt, and members that another run executes.

use std::sync::Arc;

use avow_exec::{Executor, Watch};
use avow_model::action::Action;
use avow_model::attempt::AttemptId;
use avow_model::digest::ActionDigest;
use avow_model::expand::{self, Member};
use avow_model::journal::Event as JournalEvent;
use avow_planner::{Command, Event, Found};

use super::{Engine, Finished, Spawn};
use crate::clock::{attempt_id, now};
use crate::error::EngineError;
use crate::notice::Notice;
use crate::others::Turn;
use crate::register;

impl<E: Executor + 'static> Engine<'_, E> {
    /// Before its first execution a run is announced in the ledger, so that a journal deleted later is missed.
    pub(super) fn announce(&mut self) -> Result<(), EngineError> {
        if !self.announced {
            let first = self.journal.head().expect("a journal has a first line");
            let leaf = self
                .ledger_file
                .run_opened(self.journal.run(), self.digest, first)
                .map_err(register::appended)?;
            self.heads = vec![leaf];
            self.announced = true;
        }
        Ok(())
    }

    pub(super) fn start(
        &mut self,
        member: Member,
        action: Action,
        digest: ActionDigest,
        number: u32,
    ) -> Result<Vec<Command>, EngineError> {
        if !self.is_ours(member, &action, digest)? {
            let label = expand::label(&self.plan, member);
            if let Some(run) = self.others.tell_wait(member, &label)? {
                (self.notify)(Notice::Waiting { member: label, run });
            }
            return Ok(self.planner.handle(Event::Elsewhere { member }));
        }
        self.announce()?;
        let id = attempt_id()?;
        let label = expand::label(&self.plan, member);
        let at = now();
        let event = JournalEvent::Started {
            member: label.clone(),
            action: digest,
            attempt: id.clone(),
            verification: false,
        };
        self.journal.append(at, event)?;
        tracing::info!(member = label, attempt = %id, number, "started");
        (self.notify)(Notice::Started { member: label, at });
        let stage = &self.plan.stages[member.stage as usize].name;
        let terms = self.options.settings.terms.get(stage).cloned().unwrap_or_default();
        let executor = Arc::clone(&self.executor);
        let watch = self.watch(&id);
        self.tasks.spawn(async move {
            let execution = executor.run(&id, &action, &terms, watch).await;
            Finished { member, id, digest, number, terms, execution }
        });
        Ok(Vec::new())
    }

    /// Whether this run may execute an action now: no other run does, and none has since it was looked up. What
    /// another has made meanwhile is found as soon as the member looks again.
    pub(super) fn is_ours(
        &mut self,
        member: Member,
        action: &Action,
        digest: ActionDigest,
    ) -> Result<bool, EngineError> {
        match self.others.turn(self.session, member, digest)? {
            Turn::Ours => return Ok(true),
            Turn::Theirs => return Ok(false),
            Turn::Look => {}
        }
        if matches!(self.look(member, action, digest, &[])?.0, Found::Miss(_)) {
            return Ok(true);
        }
        self.others.give_up(member, digest)?;
        Ok(false)
    }

    pub(super) fn freed(&mut self) -> Result<Vec<Command>, EngineError> {
        let freed = self.others.freed()?;
        Ok(freed.into_iter().flat_map(|member| self.planner.handle(Event::Free { member })).collect())
    }

    pub(super) fn watch(&self, id: &AttemptId) -> Watch {
        let (sender, id) = (self.spawned.0.clone(), id.clone());
        Watch::new(self.cancel.clone()).on_spawn(move |pid, start_ticks| {
            // The receiver lives as long as the run; at its end nobody needs to know.
            let _ = sender.send(Spawn { id: id.clone(), pid, start_ticks });
        })
    }

    pub(super) fn note_spawn(&mut self, spawn: Spawn) -> Result<(), EngineError> {
        let Spawn { id, pid, start_ticks } = spawn;
        self.journal.append(now(), JournalEvent::Spawned { attempt: id, pid, start_ticks })?;
        Ok(())
    }
}
