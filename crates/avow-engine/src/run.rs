//! One run: receive an event, write it down, tell the planner, dispatch what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use avow_exec::{Cancel, ExecError, Execution, Executor, Level, Watch};
use avow_model::action::{Action, ENCODING};
use avow_model::attempt::{Attempt, AttemptId, Outcome, Timestamp};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::expand::{self, Member};
use avow_model::journal::{Closing, Event as JournalEvent, Hit, Opened};
use avow_model::plan::{Plan, Reuse, Terms};
use avow_model::search::searches;
use avow_planner::{Command, Event, Found, Planner, Settings};
use avow_store::journal::{journals, latest};
use avow_store::{Alias, Aliases, BlobStore, JournalWriter, LedgerFile, Observed, Presence};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::{attempt_id, now, random_hex, run_name};
use crate::commit::{Commits, Ended, Station};
use crate::continued::heads_at_beginning;
use crate::error::EngineError;
use crate::judge::{Judge, Phases};
use crate::lookup::Lookup;
use crate::notice::{Notice, Report};
use crate::others::{Others, Turn};
use crate::register::{self, Registration, current_registration, ledger_of};
use crate::session::Session;
use crate::settled::{self, Settled, Settling};
use crate::verify::{Draw, Verification, Verify};

mod verify;

/// How often the ledger notes how far a long run's journal has come, in milliseconds.
const HEAD_INTERVAL: i64 = 10 * 60 * 1000;

/// What a run needs besides the plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the planner is set.
    pub settings: Settings,
    /// The spec's path in the project, for people.
    pub spec: String,
    /// This program's version, for people.
    pub tool: String,
    /// The names of the hosts on which attempts are made.
    pub hosts: Vec<String>,
    /// The name of this host.
    pub here: String,
    /// What is present here for each stage: the digest of a stored `Present` record.
    pub environments: BTreeMap<String, BlobDigest>,
    /// Where this program's own words go, from the project, if not to a terminal.
    pub output: Option<String>,
    /// What of that which is reused is carried out again to be compared, if anything.
    pub verify: Option<Verify>,
}

/// Carries a plan out. Everything that happens is journalled before it is believed; `notify` hears about it.
///
/// A stage that fails is part of the report. `cancel` ends what runs and starts nothing more. The runtime needs timers.
///
/// # Errors
/// [`EngineError::Graph`] and [`EngineError::TooLarge`] before anything is written; after that the faults of
/// store, ledger, executor and operating system. Then the journal stays open, and the next session closes it.
pub async fn run<E: Executor + 'static>(
    session: &Session,
    plan: Arc<Plan>,
    options: Options,
    executor: Arc<E>,
    cancel: Cancel,
    notify: &mut (dyn FnMut(Notice) + Send),
) -> Result<Report, EngineError> {
    run_adaptive(session, plan, options, executor, cancel, None, notify).await
}

/// [`run`] for a plan that may have searches, which `judge` follows.
///
/// # Errors
/// Those of [`run`], and [`EngineError::Judge`].
pub async fn run_adaptive<E: Executor + 'static>(
    session: &Session,
    plan: Arc<Plan>,
    options: Options,
    executor: Arc<E>,
    cancel: Cancel,
    judge: Option<&mut (dyn Judge + 'static)>,
    notify: &mut (dyn FnMut(Notice) + Send),
) -> Result<Report, EngineError> {
    let whole = cancel.level() == Level::Run && options.verify.is_none();
    // A plan of many stages takes as long to write as to look at all that changed: it is written once.
    let bytes = plan.to_bytes();
    let (mut names, digest) = (None, Plan::digest_of(&bytes));
    if let Some(settling) = Settling::of(&plan, digest, &options) {
        let (own, receipt) = settled::standing(session, &settling)?;
        if let Some(receipt) = receipt.filter(|_| whole) {
            return settled::run(session, &settling, &receipt, notify);
        }
        names = Some(own);
    }
    let planner = planner(&plan, options.settings.clone())?;
    let settled = Settled::new(&session.project, names, planner.tally().members);
    let phases = Phases::new(&plan, &options.settings, judge);
    let mut engine =
        Engine::open(session, plan, (digest, &bytes), planner, options, executor, cancel, phases, notify)?;
    engine.settled = settled;
    engine.drive().await?;
    let verification = engine.verify().await?;
    engine.close(verification)
}

fn planner(plan: &Arc<Plan>, settings: Settings) -> Result<Planner, EngineError> {
    let planner = Planner::new(Arc::clone(plan), settings)?;
    if let Some((stage, source)) = planner.too_large() {
        return Err(EngineError::TooLarge { stage: stage.to_owned(), source });
    }
    Ok(planner)
}

struct Finished {
    member: Member,
    id: AttemptId,
    digest: ActionDigest,
    number: u32,
    terms: Terms,
    execution: Result<Execution, ExecError>,
}

struct Engine<'s, E> {
    session: &'s Session,
    plan: Arc<Plan>,
    /// That of the plan as declared, whatever searches have found since.
    digest: PlanDigest,
    planner: Planner,
    options: Options,
    executor: Arc<E>,
    cancel: Cancel,
    phases: Phases<'s>,
    notify: &'s mut (dyn FnMut(Notice) + Send),
    journal: JournalWriter,
    others: Others,
    ledger_file: LedgerFile,
    registration: Option<Registration>,
    invalid: avow_model::ledger::invalid::Invalids,
    heads: Vec<RegistrationDigest>,
    announced: bool,
    last_head: Timestamp,
    runs: Vec<String>,
    observed: Observed,
    tasks: JoinSet<Finished>,
    commits: Commits,
    settled: Settled,
    /// What may be carried out again, where that was asked for.
    draw: Option<Draw>,
    /// Looks whose answer is not in the index yet, and members whose last attempt is not in the journal yet.
    deferred: Vec<Command>,
    spawned: (mpsc::UnboundedSender<Spawn>, mpsc::UnboundedReceiver<Spawn>),
    failures: BTreeMap<String, Outcome>,
    aliases: Aliases,
    adopted: BTreeMap<u32, Vec<Alias>>,
    migrated: u64,
    began: Timestamp,
    cpu: u64,
}

struct Spawn {
    id: AttemptId,
    pid: i32,
    start_ticks: u64,
}

impl<'s, E: Executor + 'static> Engine<'s, E> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one run, used once")]
    fn open(
        session: &'s Session,
        plan: Arc<Plan>,
        (digest, bytes): (PlanDigest, &[u8]),
        planner: Planner,
        options: Options,
        executor: Arc<E>,
        cancel: Cancel,
        phases: Phases<'s>,
        notify: &'s mut (dyn FnMut(Notice) + Send),
    ) -> Result<Self, EngineError> {
        let (ledger_file, ledger) = ledger_of(&session.project, &plan.experiment)?;
        let registration = current_registration(&ledger);
        // Runs are told apart by when they began, also where the clock was set back meanwhile.
        let began = now().max(latest(&session.project)?.unwrap_or_default());
        let unfinished = unfinished(session, &plan)?;
        session.blobs.put(bytes)?;
        session.blobs.sync()?;
        let opened = Opened {
            version: 1,
            run: String::new(),
            nonce: random_hex(32)?,
            experiment: plan.experiment.clone(),
            plan: digest,
            members: planner.tally().members,
            confirmatory: registration.as_ref().is_some_and(|r| plan.is_named(r.plan)),
            ledger_heads: ledger.heads(),
            continues: unfinished.first().cloned(),
            spec: options.spec.clone(),
            tool: options.tool.clone(),
        };
        let journal = create_journal(session, began, opened)?;
        let run = journal.run().to_owned();
        let first = journal.head().expect("a journal has a first line");
        // A search may come to ask for more members than there are now.
        let most = if phases.adaptive() { u64::MAX } else { planner.tally().members };
        let draw = options.verify.clone().map(|verify| Draw::new(verify, first, most));
        let others = Others::new(session, presence(&run, &plan, &options))?;
        let (blobs, index) = (Arc::clone(&session.blobs), Arc::clone(&session.index));
        let commits = Commits::new(session.project.clone(), blobs, index, plan.experiment.clone());
        notify(Notice::Opened { run: run.clone(), members: planner.members_by_stage() });
        Ok(Engine {
            session,
            plan,
            digest,
            planner,
            options,
            executor,
            cancel,
            phases,
            notify,
            journal,
            others,
            ledger_file,
            registration,
            invalid: ledger.invalids(),
            heads: ledger.heads(),
            announced: false,
            last_head: began,
            runs: std::iter::once(run).chain(unfinished).collect(),
            observed: Observed::here(&session.project),
            tasks: JoinSet::new(),
            commits,
            settled: Settled::new(&session.project, None, 0),
            draw,
            deferred: Vec::new(),
            spawned: mpsc::unbounded_channel(),
            failures: BTreeMap::new(),
            aliases: Aliases::read(&session.project)?,
            adopted: BTreeMap::new(),
            migrated: 0,
            began,
            cpu: 0,
        })
    }

    /// Phase after phase, until the searches want nothing more; one phase where there are none.
    async fn drive(&mut self) -> Result<(), EngineError> {
        if !self.phases.adaptive() {
            return self.phase().await;
        }
        self.follow()?;
        loop {
            let settings = self.phases.enter(&self.plan, &self.options.settings);
            self.planner = planner(&self.plan, settings)?;
            self.phase().await?;
            let moved = self.follow()?;
            let halted = !self.failures.is_empty() && !self.options.settings.keep_going;
            if !moved || halted || self.cancel.level() != Level::Run {
                self.phases.unsettled = searches(&self.plan).any(|(_, search)| !search.state.is_over());
                return Ok(());
            }
        }
    }

    /// Lets the searches take the steps they can; whether the plan is another now.
    fn follow(&mut self) -> Result<bool, EngineError> {
        let (plan, decisions) = self.phases.follow(&self.plan)?;
        for decision in decisions {
            self.journal.append(now(), JournalEvent::Decided { decision: Box::new(decision.clone()) })?;
            (self.notify)(Notice::Decided(decision));
        }
        let moved = *plan != *self.plan;
        self.plan = plan;
        Ok(moved)
    }

    async fn phase(&mut self) -> Result<(), EngineError> {
        let mut stopping = self.cancel.level() != Level::Run;
        let commands = if stopping { self.stop() } else { self.planner.owed() };
        self.dispatch(commands)?;
        while !(self.planner.is_done() && self.tasks.is_empty() && self.commits.is_empty()) {
            let pause = self.others.pause();
            let hurry = self.tasks.is_empty();
            let commands = tokio::select! {
                biased;
                _ = self.cancel.cancelled(), if !stopping => {
                    stopping = true;
                    self.stop()
                }
                Some(spawn) = self.spawned.1.recv() => {
                    self.note_spawn(spawn)?;
                    Vec::new()
                }
                station = self.commits.station(hurry), if !self.commits.is_empty() => self.reached(station?)?,
                Some(joined) = self.tasks.join_next() => match self.arrived(joined) {
                    Ok(commands) => commands,
                    // A fault of ours ends the run, but not before what went well beside it is written down.
                    Err(fault) => {
                        self.write_down().await?;
                        return Err(fault);
                    }
                },
                () = nap(pause), if pause.is_some() => self.freed()?,
            };
            self.dispatch(commands)?;
        }
        Ok(())
    }

    async fn write_down(&mut self) -> Result<(), EngineError> {
        while !self.commits.is_empty() {
            let station = self.commits.station(true).await?;
            self.reached(station)?;
        }
        Ok(())
    }

    /// Ends reached a station on their way to durability; looks that waited for them can be answered at the last.
    fn reached(&mut self, station: Station) -> Result<Vec<Command>, EngineError> {
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

    fn stop(&mut self) -> Vec<Command> {
        (self.notify)(Notice::Stopping);
        self.planner.handle(Event::Stop)
    }

    /// Carries commands out until only running members are left. All looks of one wave share one journal
    /// line and one sync.
    fn dispatch(&mut self, mut commands: Vec<Command>) -> Result<(), EngineError> {
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
    fn failed_before(&self, member: Member) -> Option<Outcome> {
        let earlier = self.phases.adaptive() && !self.failures.is_empty();
        earlier.then(|| self.failures.get(&expand::label(&self.plan, member)).cloned())?
    }

    /// Whether an attempt stands for a member, and its record where that had to be looked up.
    fn look(
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
    fn adopt(&mut self, new: ActionDigest, names: &[(u32, ActionDigest)]) {
        for (encoding, old) in names {
            let alias = Alias { old: *old, new, at: now(), run: self.journal.run().to_owned() };
            self.aliases.insert(*encoding, &alias);
            self.adopted.entry(*encoding).or_default().push(alias);
        }
    }

    /// Makes them durable, before a hit that rests on them is written down.
    fn save_aliases(&mut self) -> Result<(), EngineError> {
        for (encoding, aliases) in std::mem::take(&mut self.adopted) {
            avow_store::aliases::append(&self.session.project, encoding, &aliases)?;
            // Encoding 2 named what is named now, in other words: nothing of it is in doubt.
            self.migrated += if encoding == 1 { aliases.len() as u64 } else { 0 };
        }
        Ok(())
    }

    /// Before its first execution a run is announced in the ledger, so that a journal deleted later is missed.
    fn announce(&mut self) -> Result<(), EngineError> {
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

    fn start(
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
    fn is_ours(
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

    fn freed(&mut self) -> Result<Vec<Command>, EngineError> {
        let freed = self.others.freed()?;
        Ok(freed.into_iter().flat_map(|member| self.planner.handle(Event::Free { member })).collect())
    }

    fn watch(&self, id: &AttemptId) -> Watch {
        let (sender, id) = (self.spawned.0.clone(), id.clone());
        Watch::new(self.cancel.clone()).on_spawn(move |pid, start_ticks| {
            // The receiver lives as long as the run; at its end nobody needs to know.
            let _ = sender.send(Spawn { id: id.clone(), pid, start_ticks });
        })
    }

    fn note_spawn(&mut self, spawn: Spawn) -> Result<(), EngineError> {
        let Spawn { id, pid, start_ticks } = spawn;
        self.journal.append(now(), JournalEvent::Spawned { attempt: id, pid, start_ticks })?;
        Ok(())
    }

    /// Takes in everything that has arrived, and tells the planner.
    fn arrived(
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

    fn ended(&mut self, finished: Finished) -> Result<Vec<Command>, EngineError> {
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
    fn record(
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

    fn note_head(&mut self) -> Result<(), EngineError> {
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
    fn tell(&mut self, member: Member, label: &str, attempt: &Attempt) -> (Vec<Command>, bool) {
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

    /// A request to stop that came when everything was done changes nothing.
    fn closing(&self) -> Closing {
        let tally = self.planner.tally();
        if tally.reused + tally.succeeded == tally.members && !self.phases.unsettled {
            let partial = !self.options.settings.only.is_empty();
            return if partial { Closing::Partial } else { Closing::Complete };
        }
        if self.cancel.level() == Level::Run { Closing::Failed } else { Closing::Interrupted }
    }

    fn close(mut self, verification: Option<Verification>) -> Result<Report, EngineError> {
        let tally = self.phases.tally(self.planner.tally());
        let closing = self.closing();
        // Also where nothing was executed: what was verified may then be remembered as verified.
        self.session.blobs.sync()?;
        self.journal.append(now(), JournalEvent::Closed { how: closing })?;
        self.journal.sync()?;
        self.session.index.caught_up(self.journal.run(), self.journal.length())?;
        self.session.index.flush()?;
        if self.announced
            && let Some(head) = self.journal.head()
        {
            self.ledger_file.run_closed(self.journal.run(), head).map_err(register::appended)?;
        }
        if matches!(closing, Closing::Complete | Closing::Partial) {
            self.settled.keep(self.session, self.digest, tally.members);
        }
        Ok(Report {
            run: self.journal.run().to_owned(),
            closing,
            tally,
            failures: self.failures.into_iter().collect(),
            migrated: self.migrated,
            wall: now() - self.began,
            cpu: self.cpu,
            unchanged: false,
            verification,
        })
    }
}

/// What a run says about itself to others.
fn presence(run: &str, plan: &Plan, options: &Options) -> Presence {
    let pid = std::process::id();
    Presence {
        run: run.to_owned(),
        experiment: plan.experiment.clone(),
        spec: options.spec.clone(),
        pid,
        start_ticks: avow_exec::process_start(pid).unwrap_or_default(),
        output: options.output.clone(),
        waits: Vec::new(),
    }
}

/// Only polled where there is a pause, because then there is a timer to ask.
async fn nap(pause: Option<Duration>) {
    tokio::time::sleep(pause.unwrap_or_default()).await;
}

/// The journal of a run whose name nobody else has: two may begin within the same second.
pub(crate) fn create_journal(
    session: &Session,
    began: Timestamp,
    mut opened: Opened,
) -> Result<JournalWriter, EngineError> {
    loop {
        opened.run = run_name(began)?;
        match JournalWriter::create(&session.project, began, opened.clone()) {
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::AlreadyExists) => {}
            created => return Ok(created?),
        }
    }
}

fn joined(result: Result<Finished, tokio::task::JoinError>) -> Result<Finished, EngineError> {
    result.map_err(|error| EngineError::Panic(error.to_string()))
}

/// The runs of exactly this plan since one of them last came to the end it was asked for, latest first: their
/// volatile attempts still count, so that a run that was killed goes on where it was. Nothing is read where nothing is volatile.
fn unfinished(session: &Session, plan: &Plan) -> Result<Vec<String>, EngineError> {
    if plan.stages.iter().all(|stage| stage.reuse != Reuse::Never) {
        return Ok(Vec::new());
    }
    let names: Vec<_> = plan.earlier().into_iter().chain([plan.digest()]).collect();
    let mut runs = Vec::new();
    for file in journals(&session.project)? {
        match file.opening()? {
            Some((at, opened)) if names.contains(&opened.plan) => runs.push((at, file)),
            _ => {}
        }
    }
    runs.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut names = Vec::new();
    for (_, file) in runs {
        match file.closing()? {
            Some(Closing::Complete | Closing::Partial) => break,
            // One that lives goes on by itself.
            None if file.is_live()? => {}
            _ => names.push(file.run),
        }
    }
    Ok(names)
}
