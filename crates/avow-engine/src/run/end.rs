//! The end of an attempt: recorded, told to the planner, made durable.

use std::collections::BTreeMap;

use avow_exec::{Execution, Executor};
use avow_model::action::ENCODING;
use avow_model::attempt::{Attempt, AttemptId};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact};
use avow_model::expand::{self, Member};
use avow_model::journal::Hit;
use avow_model::plan::Terms;
use avow_planner::{Command, Event};

use super::{Engine, Finished, HEAD_INTERVAL, joined};
use crate::clock::now;
use crate::commit::{Ended, Station};
use crate::continued::heads_at_beginning;
use crate::error::EngineError;
use crate::notice::Notice;
use crate::register;

impl<E: Executor + 'static> Engine<'_, E> {
    pub(super) async fn write_down(&mut self) -> Result<(), EngineError> {
        while !self.commits.is_empty() {
            let station = self.commits.station(true).await?;
            self.reached(station)?;
        }
        Ok(())
    }

    /// Ends reached a station on their way to durability; looks that waited for them can be answered at the last.
    pub(super) fn reached(&mut self, station: Station) -> Result<Vec<Command>, EngineError> {
        match station {
            Station::Flushed => {
                // A process is announced before its attempt ends, so its line can stand before that of the end.
                while let Ok(spawn) = self.spawned.1.try_recv() {
                    self.note_spawn(spawn)?;
                }
                self.commits.write(&mut self.journal)?;
                Ok(Vec::new())
            }
            Station::Learned(ends) => {
                for ended in &ends {
                    self.others.release(ended.attempt.action)?;
                }
                self.note_head()?;
                for Ended { at, member, attempt, again } in ends {
                    if attempt.verification {
                        continue;
                    }
                    if attempt.outcome.succeeded() {
                        let hit =
                            Hit { member: member.clone(), action: attempt.action, attempt: attempt.digest() };
                        let made = attempt.outputs.iter().map(|(name, made)| (name.clone(), made.artifact));
                        let stage = &self.plan.stages[at.stage as usize];
                        self.settled.add(stage, &hit, &made.collect(), attempt.reads.is_some());
                    }
                    (self.notify)(Notice::Finished { member, attempt: Box::new(attempt), again });
                }
                Ok(std::mem::take(&mut self.deferred))
            }
        }
    }

    /// Takes in everything that has arrived, and tells the planner.
    pub(super) fn arrived(
        &mut self,
        first: Result<Finished, tokio::task::JoinError>,
    ) -> Result<Vec<Command>, EngineError> {
        let mut arrived = vec![joined(first)?];
        while let Some(more) = self.tasks.try_join_next() {
            arrived.push(joined(more)?);
        }
        arrived.sort_by_key(|finished| finished.execution.is_err());
        let mut commands = Vec::new();
        for finished in arrived {
            commands.extend(self.ended(finished)?);
        }
        Ok(commands)
    }

    pub(super) fn ended(&mut self, finished: Finished) -> Result<Vec<Command>, EngineError> {
        let Finished { member, id, digest, number, terms, execution } = finished;
        let stage = self.plan.stages[member.stage as usize].name.clone();
        let attempt = self.record(&stage, id, digest, number, terms, execution?)?;
        let label = expand::label(&self.plan, member);
        tracing::info!(member = label, attempt = %attempt.id, outcome = %attempt.outcome, wall = attempt.usage.wall, "finished");
        let (commands, again) = self.tell(member, &label, &attempt);
        self.commits.add(Ended { at: member, member: label, attempt, again });
        Ok(commands)
    }

    /// What happened, as it is written down.
    pub(super) fn record(
        &self,
        stage: &str,
        id: AttemptId,
        digest: ActionDigest,
        number: u32,
        terms: Terms,
        execution: Execution,
    ) -> Result<Attempt, EngineError> {
        let index = &*self.session.index;
        let ledger_heads = heads_at_beginning(index, digest, &execution.continues, &self.heads)?;
        // It describes this machine; what another one had, that one must say.
        let here = execution.host.name == self.options.here;
        let environment = self.options.environments.get(stage).copied().filter(|_| here);
        Ok(Attempt {
            id,
            action: digest,
            run: self.journal.run().to_owned(),
            outcome: execution.outcome,
            outputs: execution.outputs,
            stdout: execution.stdout,
            stderr: execution.stderr,
            reads: execution.reads,
            started: execution.started,
            finished: execution.finished,
            usage: execution.usage,
            host: execution.host,
            environment,
            encoding: ENCODING,
            terms,
            ledger_heads,
            number,
            continues: execution.continues,
            verification: false,
        })
    }

    pub(super) fn note_head(&mut self) -> Result<(), EngineError> {
        let at = now();
        if at - self.last_head >= HEAD_INTERVAL
            && let Some(head) = self.journal.head()
        {
            self.last_head = at;
            let leaf = self.ledger_file.run_head(self.journal.run(), head).map_err(register::appended)?;
            self.heads = vec![leaf];
        }
        Ok(())
    }

    /// Tells the planner; also returns whether the member is tried again.
    pub(super) fn tell(&mut self, member: Member, label: &str, attempt: &Attempt) -> (Vec<Command>, bool) {
        self.cpu += attempt.usage.cpu;
        let outputs: BTreeMap<String, Artifact> =
            attempt.outputs.iter().map(|(name, produced)| (name.clone(), produced.artifact)).collect();
        let outcome = attempt.outcome.clone();
        let before = self.planner.tally();
        let commands = self.planner.handle(Event::Finished { member, outcome: outcome.clone(), outputs });
        let again = !outcome.succeeded() && self.planner.tally().failed == before.failed;
        if outcome.succeeded() {
            self.phases.done(label, true);
            self.failures.remove(label);
        } else if !again {
            self.failures.insert(label.to_owned(), outcome);
        }
        (commands, again)
    }
}
