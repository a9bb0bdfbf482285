//! `avow run`: carry the experiment out, then judge its claims.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use avow_engine::{
    Judge, Notice, Options, Report, Session, Verify, current_registration, ledger_of,
    run_adaptive as carry_out,
};
use avow_exec::fetch::Fetcher;
use avow_exec::{Cancel, Level, LocalExecutor, Secrets};
use avow_model::attempt::Blame;
use avow_model::journal::Closing;
use avow_model::plan::{Plan, Source, Terms};
use avow_planner::{Reason, Settings};
use avow_store::index::Opening;
use avow_store::shared_index::Holder;
use avow_store::{BlobStore, Project, RecordStore};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::args;
use crate::commands::plan::{forecast, show, targets};
use crate::commands::{detach, unchanged, verdict};
use crate::context::{Planned, Reading, Spec};
use crate::diagnostics;
use crate::exit::Exit;
use crate::failure;
use crate::large;
use crate::logging;
use crate::output::{Failure, Output};
use crate::places;
use crate::present;
use crate::progress::Progress;
use crate::search::{self, Auditor};
use crate::secrets::{self, Vault};
use crate::settings;
use crate::space::Space;
use crate::undeclared::Undeclared;
use crate::verification;
use crate::words;
use crate::world::{Depth, ProjectWorld};

/// How far a clock may be behind before it is told, in milliseconds.
const CLOCK: i64 = 2000;

/// Runs a spec.
pub fn run(args: &args::Run, verbose: u8, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    if args.dry_run {
        logging::start(verbose, None);
        let planned = spec.plan(output)?;
        show(&spec, &planned, &args.only, false, args.json, output)?;
        return Ok(Exit::Done);
    }
    if args.detached.is_some() {
        detach::leave_terminal()?;
    }
    // Problems are found before waiting for anybody, and before anything is stored.
    let looked = spec.problems(output)?;
    if !output.quiet && !looked.diagnostics.is_empty() {
        let rendered = diagnostics::render_spec(&spec.shown, &spec.text, &looked.diagnostics, output.colour);
        output.always(rendered.trim_end());
    }
    if args.detach {
        logging::start(verbose, None);
        return detach::detach(args, &spec, output);
    }
    let vault = Vault::open(&spec.project, &looked.terms, args.secrets_file.as_deref())?;
    logging::start(verbose, Some(&spec.project));
    let control = Control::new(args.detached.is_some())?;
    let session = session(&spec.project, output, Some(&control.cancel))?;
    tell_past(&session, output);
    let planned = match begin(args, &spec, &session, &control.cancel, output)? {
        Begun::Planned(planned) => planned,
        Begun::Unchanged(report, plan) => {
            drop(session);
            let exit = tell(&report, output);
            let Some(plan) = plan else {
                verdict::say_no_claims(output);
                return Ok(exit);
            };
            return Ok(exit.worse(verdict::after_run(&spec, &plan, args.peek, args.json, None, output)?));
        }
    };
    // It lasts as long as this process: taking a plan of many stages apart at the end would be time that a user waits.
    std::mem::forget(Arc::clone(&planned.plan));
    tell_registration(&planned.plan, &session, output)?;
    needed(&spec, &planned, &args.only, &vault)?;
    let mut undeclared = Undeclared::default();
    let verify = args.verify.map(|share| Verify { share, except: lacking(&planned, &vault) });
    let secrets = vault.secrets;
    let mut report =
        execute(args, &spec, &planned, &session, &control, secrets, verify, &mut undeclared, output)?;
    let exit = tell(&report, output);
    let config = settings::executor(&session.project, args.confine)?;
    undeclared.tell(&session.project, &*session.blobs, &config, output)?;
    drop(session);
    let verified = verified(&spec, &planned.plan, &mut report, args.verify.is_some(), output)?;
    let exit = exit.worse(verified.as_ref().map_or(Exit::Done, verification::Report::exit));
    if report.closing == Closing::Interrupted {
        return Ok(Exit::Interrupted);
    }
    if report.closing == Closing::Partial && !args.json && large::members(&planned.plan) > large::LARGE {
        // Some members were asked for; going through all the others is not what that may cost.
        output.say("only some of very many members were asked for; `avow verdict` judges what exists");
        return Ok(exit);
    }
    // Claims are judged over whatever exists, also beside failures: a partial run says so in its reasons.
    let plan = search::followed(&spec.project, planned.plan)?;
    let verified = verified.map(|report| report.json());
    let judged = verdict::after_run(&spec, &plan, args.peek, args.json, verified, output)?;
    Ok(exit.worse(judged))
}

/// Compares what was carried out again with what stands, and says it.
fn verified(
    spec: &Spec,
    plan: &Plan,
    report: &mut Report,
    asked: bool,
    output: &Output,
) -> Result<Option<verification::Report>, Failure> {
    let Some(verification) = report.verification.take() else {
        if asked {
            output.say("nothing was verified, because the run did not come to its end");
        }
        return Ok(None);
    };
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let compared = verification::compare(plan, reading.source(), verification)?;
    compared.tell(output);
    Ok(Some(compared))
}

/// The stages that cannot be executed now, because a secret has no value.
fn lacking(planned: &Planned, vault: &Vault) -> BTreeMap<String, String> {
    let lacks =
        |terms: &Terms| vault.missing.iter().map(|(name, _)| name).find(|name| terms.secrets.contains(name));
    let stages = planned.terms.iter().filter_map(|(stage, terms)| Some((stage.clone(), lacks(terms)?)));
    stages.map(|(stage, name)| (stage, format!("needs the secret `{name}`, which has no value"))).collect()
}

/// What the beginning of a run came to.
enum Begun {
    /// There is something to do, or to find out.
    Planned(Planned),
    /// Nothing changed. The plan is there where something is to be made of its numbers.
    Unchanged(Report, Option<Arc<Plan>>),
}

/// Makes the plan, or finds that it is not needed.
fn begin(
    args: &args::Run,
    spec: &Spec,
    session: &Session,
    cancel: &Cancel,
    output: &Output,
) -> Result<Begun, Failure> {
    let (blobs, stamps) = (&*session.blobs, &*session.index);
    let world = ProjectWorld::new(spec, Depth::Store { blobs, stamps });
    let compiled = spec.compile_with(&world, output)?;
    let report = match &compiled.brief {
        Some(brief) => unchanged::run(args, spec, brief, session, cancel, output)?,
        None => None,
    };
    spec.identities().remember();
    let Some(report) = report else { return Ok(Begun::Planned(spec.plan_of(&world, compiled, output)?)) };
    let judged = compiled.brief.as_ref().is_none_or(|brief| brief.claims) || args.json;
    let wanted = judged || verdict::goes_on_without_claims(spec)?;
    let planned = wanted.then(|| spec.plan_of(&world, compiled, output)).transpose()?;
    Ok(Begun::Unchanged(report, planned.map(|planned| planned.plan)))
}

/// The threads of a run, and the token that signals raise. It is there before the run waits for anything, so
/// that a run that waits can be interrupted as well.
pub struct Control {
    runtime: Runtime,
    /// What signals raise.
    pub cancel: Cancel,
}

impl Control {
    /// Starts the threads and listens to signals; in the background not to the end of a terminal.
    pub fn new(detached: bool) -> Result<Control, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Machine, "no threads could be started").because(error))?;
        let cancel = Cancel::new().map_err(no_descriptor)?;
        let entered = runtime.enter();
        listen(&cancel, detached)?;
        drop(entered);
        Ok(Control { runtime, cancel })
    }
}

/// Opens the store beside other runs. A token that is raised ends the waiting for a command that is alone in it.
pub fn session(project: &Project, output: &Output, cancel: Option<&Cancel>) -> Result<Session, Failure> {
    let mut patience = patience(output, cancel);
    let mut told = false;
    let waiting = |holder: Option<u32>| {
        let index = if holder.is_none() && !told { Holder::of(project) } else { Holder::default() };
        if index.stopped {
            told = true;
            output.always(words::silent(&index, None));
        }
        patience(holder)
    };
    let session = Session::open(project.clone(), waiting).map_err(failure::engine)?;
    let (output, last) = (*output, Mutex::new(None));
    session.index.when_silent(move |holder, silent| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads that wait for the same answer say it once, and again only where something else is to be said.
        if last.as_ref() != Some(holder) {
            *last = Some(holder.clone());
            output.always(words::silent(holder, Some(silent)));
        }
    });
    Ok(session)
}

/// Waits for another command until the token is raised, and says so once.
pub fn patience(output: &Output, cancel: Option<&Cancel>) -> impl FnMut(Option<u32>) -> ControlFlow<()> {
    let mut told = false;
    move |holder| {
        if !told {
            told = true;
            let who = holder.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            output
                .always(format!("waiting: another command{who} uses this project's store; Ctrl-C gives up"));
        }
        match cancel {
            Some(cancel) if cancel.level() != Level::Run => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn tell_past(session: &Session, output: &Output) {
    for run in &session.recovered {
        let survivors = match run.survivors {
            0 => String::new(),
            n => format!("; {} of it still alive were ended", words::count(n as u64, "process")),
        };
        output.say(format!(
            "run {} had died; {} lost{survivors}",
            run.run,
            words::count(run.lost.len() as u64, "attempt")
        ));
    }
    // A journal that cannot be read is told by what reads it for its content.
    let latest = avow_store::journal::latest(&session.project).ok().flatten();
    let behind = latest.map_or(0, |latest| latest - avow_engine::now());
    if behind > CLOCK {
        output.say(format!(
            "note: the clock is {} behind the end of the latest run, so it was set back; this run is dated after \
             that one, and nothing depends on times",
            words::seconds(behind as f64 / 1e3)
        ));
    }
    if let Opening::Rebuilt { reason } = &session.opening
        && reason != "there was none"
    {
        output.say(format!("the index was built anew from the journals: {reason}"));
    }
}

/// Says beforehand that what is about to run is not what was registered.
fn tell_registration(plan: &Plan, session: &Session, output: &Output) -> Result<(), Failure> {
    let (_, ledger) = ledger_of(&session.project, &plan.experiment).map_err(failure::engine)?;
    if let Some(registration) = current_registration(&ledger)
        && !plan.is_named(registration.plan)
    {
        output.say(format!(
            "note: this is not the plan registered as {}, so results are exploratory; `avow verdict` lists what \
             differs, `avow amend --reason TEXT` registers the change",
            registration.leaf.short()
        ));
    }
    Ok(())
}

/// A secret without a value ends a run before anything is executed, unless what names it is all reused.
fn needed(spec: &Spec, planned: &Planned, only: &[String], vault: &Vault) -> Result<(), Failure> {
    if vault.missing.is_empty() {
        return Ok(());
    }
    let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
    let forecast = forecast(planned, &reading, targets(planned, only)?)?;
    let mut runs = forecast.reasons().filter(|(_, reason)| !matches!(reason, Reason::Reused { .. }));
    let lacks = runs.find_map(|(member, _)| {
        let stage = &planned.plan.stages[member.stage as usize].name;
        let secrets = &planned.terms.get(stage)?.secrets;
        Some((stage, vault.missing.iter().find(|(name, _)| secrets.contains(name))?))
    });
    match lacks {
        Some((stage, (name, _))) => Err(secrets::lacking(name, stage)),
        None => Ok(()),
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of one run, used once")]
fn execute(
    args: &args::Run,
    spec: &Spec,
    planned: &Planned,
    session: &Session,
    control: &Control,
    secrets: Secrets,
    verify: Option<Verify>,
    undeclared: &mut Undeclared,
    output: &Output,
) -> Result<Report, Failure> {
    let slots = args.jobs.unwrap_or_else(cores).max(1);
    let mut settings = Settings {
        cpus: slots,
        memory: avow_exec::total_memory(),
        keep_going: args.keep_going,
        only: targets(planned, &args.only)?,
        terms: planned.terms.clone(),
    };
    let mut config = settings::executor(&session.project, args.confine)?;
    config.keep_failed = args.keep_failed;
    config.bounds.allow.extend(planned.libraries.iter().cloned());
    config.checkpoints = Some(session.project.checkpoints());
    config.secrets = secrets.clone();
    let machine = |error| failure::engine(avow_engine::EngineError::Exec(error));
    let executor = LocalExecutor::new(config, session.blobs.clone()).map_err(machine)?;
    if let Some(reason) = executor.fallback() {
        output.say(format!(
            "note: {reason}, so stages can read what they do not declare; their attempts record `{}`",
            executor.host().confinement
        ));
    }
    let executor = places::gather(args, planned, session, (executor, secrets), &control.runtime, output)?;
    let slots = executor.slots().map_or(slots, |(cpus, memory)| {
        (settings.cpus, settings.memory) = (cpus, memory);
        cpus
    });
    let executor = Arc::new(executor);
    let options = Options {
        settings,
        spec: spec.path.clone(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        hosts: executor.hosts(),
        here: avow_exec::describe_host().name,
        environments: present::store(spec, &planned.plan, &*session.blobs).map_err(failure::store)?,
        output: args.detached.clone(),
        verify,
    };
    let mut progress =
        Progress::new(*output, slots, &terms_of(planned), |stage| earlier(session, planned, stage));
    let cancel = control.cancel.clone();
    let policy = settings::Settings::of(&session.project)?.store;
    let mut space = Space::watch(&session.project, &policy, *output).map_err(failure::store)?;
    let mut auditor = Auditor {
        project: session.project.clone(),
        blobs: session.blobs.clone(),
        index: session.index.clone(),
    };
    let result = control.runtime.block_on(async {
        fetch(&planned.plan, session).await?;
        let mut notify = |notice: Notice| {
            if let Err(error) = undeclared.notice(&notice, &*session.blobs) {
                tracing::warn!(%error, "what an attempt read cannot be told");
            }
            space.notice(&notice);
            progress.notice(notice);
        };
        let plan = Arc::clone(&planned.plan);
        let judge: &mut dyn Judge = &mut auditor;
        let places = Arc::clone(&executor);
        let report = carry_out(session, plan, options, places, cancel, Some(judge), &mut notify).await;
        executor.close().await;
        report.map_err(failure::engine)
    });
    progress.clear();
    result
}

fn terms_of(planned: &Planned) -> BTreeMap<String, Terms> {
    let of = |name: &String| planned.terms.get(name).cloned().unwrap_or_default();
    planned.plan.stages.iter().map(|stage| (stage.name.clone(), of(&stage.name))).collect()
}

/// Mean wall seconds of a stage in earlier runs, for the time left.
fn earlier(session: &Session, planned: &Planned, stage: &str) -> Option<f64> {
    let history = session.index.latest_of_stage(&planned.plan.experiment, stage, 20).ok()?;
    let seconds: Vec<f64> = history
        .iter()
        .filter_map(|(_, digest)| session.index.attempt(*digest).ok().flatten())
        .map(|recorded| recorded.attempt.usage.wall as f64 / 1e6)
        .collect();
    (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
}

/// CPU slots where nothing is said.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

/// Brings in inputs that are addresses and not yet in the store.
async fn fetch(plan: &Plan, session: &Session) -> Result<(), Failure> {
    let urls =
        plan.stages.iter().flat_map(|stage| stage.inputs.values()).filter_map(|input| match &input.from {
            Source::Url { url, digest } => Some((url, *digest)),
            _ => None,
        });
    let wanted: BTreeMap<_, _> = urls.map(|(url, digest)| (digest, url)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let refused = |url: &str, error| {
        Failure::new(Exit::Machine, format!("the input `{url}` could not be fetched"))
            .because(error)
            .hint("check the address and the digest in the spec; nothing was stored")
    };
    let blobs: Arc<dyn BlobStore> = session.blobs.clone();
    let fetcher = Fetcher::new(session.project.temporary())
        .map_err(|error| Failure::new(Exit::Machine, "nothing can be fetched").because(error))?;
    for (digest, url) in wanted {
        fetcher.fetch(url, digest, blobs.clone(), |_| {}).await.map_err(|error| refused(url, error))?;
    }
    Ok(())
}

/// The first signal stops in good order, the second kills. A terminal that is closed may say so several times, so
/// that never kills; a run in the background, and one that was started to survive it (`nohup`), does not listen.
pub fn listen(cancel: &Cancel, detached: bool) -> Result<(), Failure> {
    on(SignalKind::interrupt(), cancel, Cancel::kill)?;
    on(SignalKind::terminate(), cancel, Cancel::kill)?;
    if detached {
        // To be received and passed over: unheard it would end the process.
        return on(SignalKind::hangup(), &Cancel::new().map_err(no_descriptor)?, Cancel::stop);
    }
    if hangup_is_ignored() { Ok(()) } else { on(SignalKind::hangup(), cancel, Cancel::stop) }
}

fn on(kind: SignalKind, cancel: &Cancel, again: fn(&Cancel)) -> Result<(), Failure> {
    let mut stream = signal(kind)
        .map_err(|error| Failure::new(Exit::Machine, "signals cannot be received").because(error))?;
    let cancel = cancel.clone();
    tokio::spawn(async move {
        while stream.recv().await.is_some() {
            match cancel.level() {
                Level::Run => cancel.stop(),
                _ => again(&cancel),
            }
        }
    });
    Ok(())
}

/// Whether whoever started this process made it deaf to the end of the terminal.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is that of the first signal, SIGHUP.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

fn no_descriptor(error: std::io::Error) -> Failure {
    Failure::new(Exit::Machine, "no file descriptor is left").because(error)
}

/// Says how a run ended; gives the exit code of its failures.
fn tell(report: &Report, output: &Output) -> Exit {
    let tally = report.tally;
    let mut parts = vec![format!("{} executed", tally.succeeded), format!("{} reused", tally.reused)];
    for (count, word) in [(tally.failed, "failed"), (tally.blocked + tally.waiting, "not reached")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    output.say(format!(
        "run {}: {} in {} ({} of CPU time)",
        report.run,
        parts.join(", "),
        words::seconds(report.wall as f64 / 1e3),
        words::seconds(report.cpu as f64 / 1e6),
    ));
    if report.migrated > 0 {
        output.say(format!(
            "note: {} recorded under encoding 1, which named neither shared libraries nor packages; those present \
             now are taken to be the ones that were used (`avow explain` names each)",
            if report.migrated == 1 { "1 action was".to_owned() } else { format!("{} actions were", report.migrated) }
        ));
    }
    let mut exit = Exit::Done;
    for (member, outcome) in report.failures.iter().take(10) {
        let (whose, code) = match outcome.blame() {
            Some(Blame::Machine) => ("the machine's", Exit::Machine),
            Some(Blame::Person) => ("stopped on request", Exit::Interrupted),
            _ => ("its own program's", Exit::StageFailed),
        };
        exit = exit.worse(code);
        output.always(format!("{} {member} {outcome} ({whose})", output.coloured("error:", 31)));
    }
    if report.failures.len() > 10 {
        output.always(format!("  … and {} more", report.failures.len() - 10));
    }
    if let Some((member, _)) = report.failures.first().filter(|(_, o)| o.blame() == Some(Blame::Program)) {
        output.say(format!("{} avow log '{member}' shows what it printed", output.coloured("hint:", 36)));
    }
    if let Some((_, outcome)) = report.failures.iter().find(|(_, o)| o.blame() == Some(Blame::Machine)) {
        output.say(format!("{} {}", output.coloured("hint:", 36), words::mending(&outcome.to_string())));
    }
    exit
}
