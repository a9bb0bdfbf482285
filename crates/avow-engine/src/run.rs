//! One run: receive an event, write it down, tell the planner, dispatch what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use avow_exec::{Cancel, ExecError, Execution, Executor, Level};
use avow_model::attempt::{AttemptId, Outcome, Timestamp};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::expand::Member;
use avow_model::journal::{Closing, Event as JournalEvent, Opened};
use avow_model::plan::{Plan, Reuse, Terms};
use avow_model::search::searches;
use avow_planner::{Command, Event, Planner, Settings};
use avow_store::journal::{journals, latest};
use avow_store::{Alias, Aliases, BlobStore, JournalWriter, LedgerFile, Observed, Presence};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::{now, random_hex, run_name};
use crate::commit::Commits;
use crate::error::EngineError;
use crate::judge::{Judge, Phases};
use crate::notice::{Notice, Report};
use crate::others::Others;
use crate::register::{self, Registration, current_registration, ledger_of};
use crate::session::Session;
use crate::settled::{self, Settled, Settling};
use crate::verify::{Draw, Verification, Verify};

mod end;
mod look;
mod start;
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

    fn stop(&mut self) -> Vec<Command> {
        (self.notify)(Notice::Stopping);
        self.planner.handle(Event::Stop)
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
