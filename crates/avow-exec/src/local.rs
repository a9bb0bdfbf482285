//! Execution of attempts on this machine.
//!
//! One attempt is a straight line on one blocking thread: private folder, code and inputs, process, wait, end of
//! everything it left, logs into the store, outputs into the store, folder away. The async task only hands the
//! line to the thread and waits; dropping the task kills the process.
//!
//! Deliberately absent: scheduling, retries, the journal, and any knowledge of stages and claims. A child that a
//! successful stage leaves behind is ended and the stage still succeeds; `tracing` says so, the log does not,
//! because the log holds what the program wrote.

mod config;
mod process;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Failure, Host, Outcome, Produced, Timestamp, Usage};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, BlobDigest, ReadsDigest};
use avow_model::plan::Terms;
use avow_store::blob::{BlobStore, Intake};
use avow_store::materialise::How as Laid;

pub use self::config::Config;
use crate::abandon::Abandon;
use crate::cancel::Level;
use crate::checkpoint::Checkpoint;
use crate::confine::grants::Book;
use crate::confine::protection::{Allowed, Rules};
use crate::confine::{Confinement, Held};
use crate::environment::{CHECKPOINT, Environment};
use crate::family::become_subreaper;
use crate::fault::{ExecError, Fault, at, machine};
use crate::folder::{Folder, Folders};
use crate::image::{self, Container, Images, Inside};
use crate::inputs;
use crate::observe::{self, Observation, Observer, Purpose};
use crate::program::{self, Program, Shells};
use crate::scrub::Scrubber;
use crate::secret::{self, Secrets};
use crate::streams::Streams;
use crate::supervise::until_end;
use crate::sys::{self, How};
use crate::{Execution, Executor, Given, Watch, host, outputs, proc};

/// Runs actions as processes of this machine.
#[derive(Clone)]
pub struct LocalExecutor(Arc<Shared>);

struct Shared {
    config: Config,
    folders: Folders,
    blobs: Arc<dyn BlobStore>,
    held: Held,
    book: Book,
    observer: Arc<Observer>,
    shells: Shells,
    null: File,
    host: Host,
    images: Images,
}

impl LocalExecutor {
    /// Prepares the folder of attempts, tries Landlock and the shells, and adopts orphans from now on.
    ///
    /// # Errors
    /// [`ExecError::Work`], and [`ExecError::Confinement`] where Landlock was demanded and is not to be had.
    pub fn new(mut config: Config, blobs: Arc<dyn BlobStore>) -> Result<Self, ExecError> {
        let work = config.work.clone();
        let failed = |source| ExecError::Work { path: work.clone(), source };
        fs::create_dir_all(&config.work).map_err(failed)?;
        // Stages get absolute paths, and Landlock opens the real folder.
        config.work = config.work.canonicalize().map_err(failed)?;
        become_subreaper().map_err(failed)?;
        if let Err(error) = sys::close_on_exec() {
            tracing::warn!(%error, "stages inherit what this program's caller left open");
        }
        let null = File::open("/dev/null").map_err(failed)?;
        let asked = config.confinement;
        let held = Held::new(asked, &config.work)
            .map_err(|source| ExecError::Confinement { level: asked.unwrap_or(Confinement::None), source })?;
        if let Some(reason) = &held.fallback {
            tracing::info!(reason, "stages are not confined; inputs are copied");
        }
        let host = Host { confinement: held.words(held.denies_network()), ..host::describe_host() };
        let blobs_folder = config.blobs.canonicalize().unwrap_or_else(|_| config.blobs.clone());
        let observer = Observer::new(
            config.bounds.project.as_deref(),
            &config.base.home,
            &config.work,
            &blobs_folder,
            Arc::clone(&blobs),
        );
        let observer = Arc::new(observer);
        let book = Book::new(Path::new(&config.base.home), &config.bounds, &config.avow, blobs_folder);
        let shells = Shells::probe(&config.base.path);
        let folders = Folders::new(config.work.clone());
        Ok(Self(Arc::new(Shared {
            config,
            folders,
            blobs,
            held,
            book,
            observer,
            shells,
            null,
            host,
            images: Images::default(),
        })))
    }

    /// This machine as it is recorded with every attempt, `confinement` being that of a stage that may not use
    /// the network: a [`Confinement`] and what else the kernel denies, e.g. `deny+offline`.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// The level that holds.
    pub fn confinement(&self) -> Confinement {
        self.0.held.level
    }

    /// Why that is less than the best, where nobody asked for less.
    pub fn fallback(&self) -> Option<&str> {
        self.0.held.fallback.as_deref()
    }

    /// Whether a checkpoint is kept here from which the next attempt at an action can go on.
    ///
    /// # Errors
    /// Where what is kept cannot be read.
    pub fn has_checkpoint(&self, action: ActionDigest) -> io::Result<bool> {
        let Some(kept) = &self.0.config.checkpoints else { return Ok(false) };
        Ok(crate::waiting_checkpoint(kept, action)?.is_some())
    }

    /// One attempt, on the calling thread, which sleeps until it is over.
    ///
    /// # Errors
    /// Only for faults of our own, see [`ExecError`].
    pub fn run_blocking(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        self.0.run(attempt, action, terms, watch, &Abandon::default())
    }

    /// Carries an action out once more to see which files it is denied; nothing of it is kept. Blocks.
    ///
    /// # Errors
    /// Faults of our own, and [`ExecError::Confinement`] where this machine cannot observe.
    pub fn explain_denials(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<(Outcome, Vec<PathBuf>), ExecError> {
        observe::available()
            .map_err(|source| ExecError::Confinement { level: Confinement::Observe, source })?;
        let mut draft = Draft { purpose: Some(Purpose::Explain), ..Draft::default() };
        let outcome = match self.0.steps(attempt, action, terms, watch, &Abandon::default(), &mut draft) {
            Ok(()) => Outcome::Succeeded,
            Err(Fault::Outcome(outcome)) => outcome,
            Err(Fault::Ours(error)) => return Err(error),
        };
        Ok((outcome, draft.denied))
    }
}

impl Executor for LocalExecutor {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        let shared = Arc::clone(&self.0);
        let (attempt, action, terms) = (attempt.clone(), action.clone(), terms.clone());
        let abandon = Abandon::default();
        let guard = abandon.guard();
        let thread =
            tokio::task::spawn_blocking(move || shared.run(&attempt, &action, &terms, watch, &abandon));
        let result = thread.await.map_err(ExecError::Thread)?;
        drop(guard);
        result
    }
}

/// What is known of an attempt so far; complete when it is over.
#[derive(Default)]
struct Draft {
    outputs: BTreeMap<String, Produced>,
    stdout: Option<BlobDigest>,
    stderr: Option<BlobDigest>,
    usage: Usage,
    /// Why it is observed, if it is.
    purpose: Option<Purpose>,
    reads: Option<ReadsDigest>,
    denied: Vec<PathBuf>,
    given: Given,
    checkpoint: Option<Checkpoint>,
    continues: Vec<AttemptId>,
    /// How it was confined, where not as this executor confines.
    confinement: Option<String>,
}

impl Shared {
    fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
        abandon: &Abandon,
    ) -> Result<Execution, ExecError> {
        let started = now();
        let observed = self.held.level == Confinement::Observe;
        let mut draft = Draft { purpose: observed.then_some(Purpose::Record), ..Draft::default() };
        let outcome = match self.steps(attempt, action, terms, watch, abandon, &mut draft) {
            Ok(()) => Outcome::Succeeded,
            Err(Fault::Outcome(outcome)) => outcome,
            Err(Fault::Ours(error)) => return Err(error),
        };
        let Draft { outputs, stdout, stderr, usage, reads, continues, confinement, .. } = draft;
        let confinement = confinement.unwrap_or_else(|| self.held.words(self.offline(action)));
        let host = Host { confinement, ..self.host.clone() };
        let finished = now();
        Ok(Execution { outcome, outputs, stdout, stderr, reads, usage, host, started, finished, continues })
    }

    fn steps(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
        abandon: &Abandon,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        if watch.cancel.level() != Level::Run {
            return Err(Fault::Outcome(Outcome::Cancelled));
        }
        avow_model::tree::check_path(&attempt.0)
            .map_err(|error| ExecError::Action { reason: error.to_string() })?;
        let root = self.config.work.join(&attempt.0);
        draft.given = watch.given.clone().unwrap_or_else(|| self.own());
        if watch.fresh {
            draft.given.checkpoints = None;
        }
        let secrets = scrubber(terms, &draft.given.secrets)?;
        let mut folder = self
            .folders
            .take(attempt, inputs::are_in_their_folder(action))
            .map_err(at("create the folder", &root))?;
        let mut result =
            self.in_folder(&mut folder, attempt, action, terms, watch, abandon, draft, secrets.as_ref());
        if let Some(checkpoint) = draft.checkpoint.take() {
            secret::settle_checkpoint(checkpoint, result.is_ok(), secrets.as_deref());
        }
        if let (Err(Fault::Outcome(outcome)), Some(secrets)) = (&mut result, &secrets) {
            secret::clean(outcome, secrets);
        }
        let explained = draft.purpose == Some(Purpose::Explain);
        if result.is_err() && self.config.keep_failed && !explained && secrets.is_none() {
            folder.keep();
        }
        result
    }

    /// What this executor itself gives to attempts.
    fn own(&self) -> Given {
        Given { secrets: self.config.secrets.clone(), checkpoints: self.config.checkpoints.clone() }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one attempt, used once")]
    fn in_folder(
        &self,
        folder: &mut Folder<'_>,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
        abandon: &Abandon,
        draft: &mut Draft,
        secrets: Option<&Arc<Scrubber>>,
    ) -> Result<(), Fault> {
        let run = folder.run();
        let container = self.container(action, terms, attempt, draft)?;
        // Inside an image what a link leads to is mounted so that it cannot be written.
        let guarded = self.held.protection.is_some() || container.is_some();
        let laid = if guarded { Laid::Link } else { Laid::Copy };
        let linked = inputs::lay(&run, action, self.blobs.as_ref(), laid)?;
        let mut limits = self.limits(terms);
        if limits.disk.is_some() {
            limits.given = folder.occupied().bytes;
        }
        // After the measure of what was given: what a stage put aside earlier counts as its own.
        self.give_checkpoint(&run, attempt, action, terms, draft)?;
        let temporary = folder.temporary();
        let mut environment = Environment::new(&self.config.base, &action.env, attempt, &temporary);
        if let Some(checkpoint) = &draft.checkpoint {
            environment.set(CHECKPOINT, checkpoint.inside());
        }
        let path = environment.path();
        let program = match &container {
            Some(container) => {
                let inside = self.inside([&run, &temporary], &linked, action, terms, &environment);
                Container::variables().for_each(|(name, value)| environment.set(name, Path::new(&value)));
                container.program(&action.command, inside)
            }
            None => program::resolve(action, &run, &path, &self.shells, &self.config.avow),
        };
        let program = program.map_err(not_started)?;
        let clock = Instant::now();
        let known = folder.take_rules();
        let rules = match container {
            None => self.rules(known, folder, action, &program, &path, &linked)?,
            Some(_) => None,
        };
        folder.set_rules(rules);
        let grants = || self.book.grants(action, &program.file, &self.config.work, &path);
        let observe = |purpose| self.observer.begin(grants(), purpose);
        let observation = draft.purpose.map(observe).transpose();
        let observation = observation.map_err(|error| machine("an attempt could not be observed", &error))?;
        let streams = Streams::open(folder, secrets)?;
        let watched_by = observation.as_ref();
        let (family, logging) = self.spawn(
            folder,
            attempt,
            &program,
            &environment,
            (terms, &draft.given),
            &limits,
            watched_by,
            streams,
        )?;
        let seen = abandon.follow(&family);
        if let Some(on_spawn) = watch.on_spawn {
            let start = proc::stat(family.pid()).map_or(0, |stat| stat.start);
            on_spawn(family.pid(), start);
        }
        let watched = seen.and_then(|()| until_end(&family, folder, &limits, &watch.cancel));
        let ended = family.end();
        let logged = logging.finish();
        let (ended, others) = ended.map_err(|source| lost(attempt, source))?;
        if let (Some(container), How::Signal(_)) = (&container, ended.how) {
            container.remove(&path);
        }
        let wall = clock.elapsed();
        if let Some(observation) = observation {
            self.seen(observation, draft)?;
        }
        let (end, peak) = watched.map_err(|source| lost(attempt, source))?;
        if others > 0 {
            tracing::info!(%attempt, others, "processes that a stage left behind were ended");
        }
        draft.usage = Usage {
            wall: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
            cpu: ended.cpu,
            peak_memory: peak.of(ended.resident),
        };
        let kept = draft.purpose != Some(Purpose::Explain);
        if kept {
            let [stdout, stderr] = &folder.logs();
            (draft.stdout, draft.stderr) = (self.log(stdout)?, self.log(stderr)?);
            logged.map_err(|error| machine("what the stage printed could not be written", &error))?;
        }
        inputs::verify(&linked)?;
        self.judge(folder, end, ended.how, &limits)?;
        if !kept {
            return Ok(());
        }
        if let Some(secrets) = secrets {
            secret::refuse_outputs(&run, &action.outputs, secrets)?;
        }
        draft.outputs = outputs::publish(&run, &action.outputs, self.blobs.as_ref())?;
        Ok(())
    }

    /// What runs the image of an action; `None` where it names none. The runtime confines such an attempt, and what it
    /// does inside is not observed.
    fn container(
        &self,
        action: &Action,
        terms: &Terms,
        attempt: &AttemptId,
        draft: &mut Draft,
    ) -> Result<Option<Container>, Fault> {
        let Some(identity) = &action.image else { return Ok(None) };
        let (source, project) = (terms.image.as_deref(), self.config.bounds.project.as_deref());
        let container = self.images.container(identity, source, project, &self.config.base.path, attempt);
        let container =
            container.map_err(|reason| Fault::Outcome(Outcome::Failed(Failure::Machine(reason))))?;
        draft.confinement = Some(container.words(action.network || self.config.bounds.network));
        draft.purpose = None;
        Ok(Some(container))
    }

    /// What passes from an attempt into its container.
    fn inside<'a>(
        &'a self,
        folders: [&'a Path; 2],
        linked: &'a [inputs::Linked],
        action: &Action,
        terms: &Terms,
        environment: &Environment,
    ) -> Inside<'a> {
        let outside =
            linked.iter().map(inputs::Linked::target).filter(|path| !path.starts_with(self.book.blobs()));
        let blobs = (!linked.is_empty()).then(|| self.book.blobs());
        let secrets = terms.secrets.iter().map(Into::into);
        Inside {
            folders,
            reads: blobs.into_iter().chain(outside).collect(),
            variables: image::passed(environment.names().chain(secrets), &action.env),
            network: action.network || self.config.bounds.network,
        }
    }

    /// Takes in what was seen of an attempt.
    fn seen(&self, observation: Observation, draft: &mut Draft) -> Result<(), Fault> {
        let seen = observation.end();
        let mut seen = seen.map_err(|error| machine("an attempt could not be observed", &error))?;
        draft.denied = std::mem::take(&mut seen.denied);
        if draft.purpose == Some(Purpose::Record) {
            draft.reads = Some(self.observer.store(seen)?);
        }
        Ok(())
    }

    /// Whether the stage is kept from the network.
    fn offline(&self, action: &Action) -> bool {
        self.held.denies_network() && !action.network && !self.config.bounds.network
    }

    /// The rule set of the attempt, where there is protection.
    fn rules(
        &self,
        known: Option<Rules>,
        folder: &Folder<'_>,
        action: &Action,
        program: &Program,
        path: &OsStr,
        linked: &[inputs::Linked],
    ) -> Result<Option<Rules>, Fault> {
        let Some(protection) = &self.held.protection else { return Ok(None) };
        let reads = || self.book.grants(action, &program.file, &self.config.work, path);
        let outside = linked.iter().map(inputs::Linked::target);
        let allowed = Allowed {
            reads: self.held.denies_reads().then(reads),
            inputs: outside.filter(|path| !path.starts_with(self.book.blobs())).map(Path::to_owned).collect(),
            offline: self.offline(action),
        };
        let made = protection.rules(known, folder.root(), allowed);
        made.map(Some).map_err(|error| machine("a stage could not be confined", &error.into_io()))
    }

    fn give_checkpoint(
        &self,
        run: &Path,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let Some(place) = &terms.checkpoint else { return Ok(()) };
        if avow_model::tree::check_path(place).is_err() || run.join(place).symlink_metadata().is_ok() {
            return Err(not_started(format!(
                "the checkpoint folder `{place}/` cannot be made: something is there"
            )));
        }
        // Carrying something out once more to explain it leaves what was kept alone.
        let explains = draft.purpose == Some(Purpose::Explain);
        let kept = draft.given.checkpoints.clone().filter(|_| !explains);
        let kept = kept.as_deref();
        let checkpoint = Checkpoint::give(kept, action.digest(), attempt, run, place)
            .map_err(|error| machine("the checkpoint folder could not be given", &error))?;
        draft.continues.clone_from(&checkpoint.before);
        draft.checkpoint = Some(checkpoint);
        Ok(())
    }

    /// The log as a blob; `None` where nothing was written.
    fn log(&self, path: &Path) -> Result<Option<BlobDigest>, Fault> {
        let empty = fs::symlink_metadata(path).map_or(true, |about| !about.is_file() || about.len() == 0);
        if empty {
            return Ok(None);
        }
        Ok(Some(self.blobs.put_file(path, Intake::Move)?.0))
    }
}

/// What finds the secrets of an attempt; `None` where it has none.
fn scrubber(terms: &Terms, secrets: &Secrets) -> Result<Option<Arc<Scrubber>>, Fault> {
    if let Some(missing) = terms.secrets.iter().find(|name| !secrets.has(name)) {
        return Err(not_started(format!("the secret `{missing}` has no value here")));
    }
    let some = !terms.secrets.is_empty();
    Ok(some.then(|| Arc::new(Scrubber::new(secrets, &terms.secrets))))
}

fn not_started(reason: String) -> Fault {
    Fault::Outcome(Outcome::Failed(Failure::Start(reason)))
}

fn lost(attempt: &AttemptId, source: io::Error) -> ExecError {
    ExecError::Wait { attempt: attempt.to_string(), source }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| Timestamp::try_from(since.as_millis()).unwrap_or(Timestamp::MAX))
}
