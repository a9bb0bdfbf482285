//! Commands of the planner: looks are answered, what has to run is started.

use std::collections::BTreeMap;

use avow_exec::Executor;
use avow_model::action::Action;
use avow_model::attempt::{Attempt, Outcome};
use avow_model::canonical::Record;
use avow_model::digest::ActionDigest;
use avow_model::expand::{self, Member};
use avow_model::journal::{Event as JournalEvent, Hit};
use avow_planner::{Command, Event, Found};
use avow_store::{Alias, BlobStore};

use super::Engine;
use crate::clock::now;
use crate::error::EngineError;
use crate::lookup::Lookup;
use crate::notice::Notice;

impl<E: Executor + 'static> Engine<'_, E> {
    /// Carries commands out until only running members are left. All looks of one wave share one journal
    /// line and one sync.
    pub(super) fn dispatch(&mut self, mut commands: Vec<Command>) -> Result<(), EngineError> {
        while !commands.is_empty() {
            let mut hits = Vec::new();
            let mut next = Vec::new();
            for command in commands {
                match command {
                    // Its answer is on its way to the index.
                    Command::Look { digest, .. } if self.commits.holds(digest) => self.deferred.push(command),
                    Command::Look { member, action, digest, blobs } => {
                        let (found, record) = self.look(member, &action, digest, &blobs)?;
                        if let Found::Hit { attempt, outputs } = &found {
                            let label = expand::label(&self.plan, member);
                            if !self.phases.done(&label, false) {
                                let hit = Hit { member: label, action: digest, attempt: *attempt };
                                let stage = &self.plan.stages[member.stage as usize];
                                let observed = record.as_ref().is_some_and(|record| record.reads.is_some());
                                self.settled.add(stage, &hit, outputs, observed);
                                if let (Some(draw), Some(record)) = (&mut self.draw, &record) {
                                    draw.add(stage, member, &hit, record, self.journal.run());
                                }
                                hits.push(hit);
                            }
                        }
                        next.extend(self.planner.handle(Event::Looked { member, found }));
                    }
                    Command::Run { member, .. } if self.commits.retries(member) => {
                        self.deferred.push(command)
                    }
                    Command::Run { member, action, digest, number } => match self.failed_before(member) {
                        Some(outcome) => {
                            let outputs = BTreeMap::new();
                            next.extend(self.planner.handle(Event::Finished { member, outcome, outputs }));
                        }
                        None => next.extend(self.start(member, *action, digest, number)?),
                    },
                }
            }
            self.save_aliases()?;
            if !hits.is_empty() {
                let members = hits.iter().map(|hit| hit.member.clone()).collect();
                self.journal.append(now(), JournalEvent::Reused { hits, cited: None })?;
                (self.notify)(Notice::Reused { members });
            }
            commands = next;
        }
        (self.notify)(Notice::Tally(self.phases.tally(self.planner.tally())));
        Ok(())
    }

    /// How a member failed in an earlier phase of this run: the next run tries it again, not the next phase.
    pub(super) fn failed_before(&self, member: Member) -> Option<Outcome> {
        let earlier = self.phases.adaptive() && !self.failures.is_empty();
        earlier.then(|| self.failures.get(&expand::label(&self.plan, member)).cloned())?
    }

    /// Whether an attempt stands for a member, and its record where that had to be looked up.
    pub(super) fn look(
        &mut self,
        member: Member,
        action: &Action,
        digest: ActionDigest,
        blobs: &[Vec<u8>],
    ) -> Result<(Found, Option<Attempt>), EngineError> {
        let stage = &self.plan.stages[member.stage as usize];
        // Whoever draws a sample of what is reused wants the records.
        if self.draw.is_none()
            && let Some(found) = self.settled.known(&self.session.blobs, stage, digest)
        {
            return Ok((found, None));
        }
        let registered = |attempt: &Attempt| self.registration.as_ref().is_some_and(|r| r.covers(attempt));
        let lookup = Lookup {
            records: &*self.session.index,
            blobs: &*self.session.blobs,
            hosts: &self.options.hosts,
            aliases: &self.aliases,
            runs: &self.runs,
            observed: &self.observed,
            stamps: &*self.session.index,
            registered: &registered,
            invalid: &self.invalid,
        };
        let sought = lookup.find(stage, action, digest)?;
        let (found, stands) = (sought.found, sought.stands);
        self.adopt(digest, &sought.adopted);
        if matches!(found, Found::Miss(_)) {
            for blob in blobs {
                self.session.blobs.put(blob)?;
            }
            self.session.blobs.put(&action.to_bytes())?;
        } else {
            self.may_be_drawn(action)?;
        }
        Ok((found, stands))
    }

    /// Writes down which names of earlier encodings an action of this run has taken.
    pub(super) fn adopt(&mut self, new: ActionDigest, names: &[(u32, ActionDigest)]) {
        for (encoding, old) in names {
            let alias = Alias { old: *old, new, at: now(), run: self.journal.run().to_owned() };
            self.aliases.insert(*encoding, &alias);
            self.adopted.entry(*encoding).or_default().push(alias);
        }
    }

    /// Makes them durable, before a hit that rests on them is written down.
    pub(super) fn save_aliases(&mut self) -> Result<(), EngineError> {
        for (encoding, aliases) in std::mem::take(&mut self.adopted) {
            avow_store::aliases::append(&self.session.project, encoding, &aliases)?;
            // Encoding 2 named what is named now, in other words: nothing of it is in doubt.
            self.migrated += if encoding == 1 { aliases.len() as u64 } else { 0 };
        }
        Ok(())
    }
}
