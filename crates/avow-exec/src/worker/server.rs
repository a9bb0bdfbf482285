//! The worker's side: who may ask, what can be asked, and where it leads.
//!
//! Every request is refused before anything of it is read unless it carries the token. Whatever else it holds may
//! be wrong: it is limited in size, decoded strictly, and answered with a [`Refusal`].

mod answer;
mod attempts;
mod blobs;
mod follow;
mod routes;

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use avow_model::attempt::AttemptId;
use avow_model::digest::BlobDigest;
use avow_model::loads::Loads;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project, StoreError};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::FlockOperation;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::demand::Demand;
use super::protocol::{Description, PROTOCOL, encode, is_attempt};
use super::token::Token;
use crate::cancel::{Cancel, Level};
use crate::identity::Identities;
use crate::{
    Bounds, Config, Confinement, ExecError, LocalExecutor, attempt_folders, clear_leftovers, end_survivors,
    rescue_checkpoints,
};
use attempts::Table;

/// The most connections at a time.
const CONNECTIONS: usize = 4096;
/// How long a client may take to send the head of a request; also how long an idle connection is kept.
const HEAD: Duration = Duration::from_secs(60);
/// How long the checkpoints of a project are kept in which nothing changes.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the identity of a program is believed.
const FRESH: Duration = Duration::from_secs(10);

/// The same for what programs load, before each attempt.
pub(crate) const FRESH_LOADS: Duration = Duration::from_secs(1);

/// Tells the identity of a program by the word that a command uses for it.
pub type Identify = Arc<dyn Fn(&str) -> Option<BlobDigest> + Send + Sync>;

/// How a worker is set up.
#[derive(Clone)]
pub struct Setup {
    /// What every request must carry.
    pub token: Token,
    /// Its own folder, for cached blobs and attempts. Made if absent; no two workers share one.
    pub folder: PathBuf,
    /// The program `avow`, which executes built-in operations.
    pub avow: PathBuf,
    /// The most bytes of cached blobs.
    pub quota: u64,
    /// CPU slots.
    pub cpus: u32,
    /// Bytes of memory that declared requests share.
    pub memory: u64,
    /// After this time without a word from a client its attempts are ended.
    pub lease: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How stages are confined; `None` is the best that this machine gives.
    pub confinement: Option<Confinement>,
    /// What every stage may read although it does not declare it.
    pub allow: Vec<PathBuf>,
    /// Built-in operations with their identities.
    pub ops: BTreeMap<String, String>,
    /// Identities of other programs.
    pub identify: Identify,
    /// The version of the program, for people.
    pub tool: String,
}

/// Why a worker cannot work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Its folder cannot be used.
    #[error("the folder of the worker `{}` cannot be used", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another worker uses its folder.
    #[error("another worker uses the folder `{}`", path.display())]
    Shared {
        /// The folder.
        path: PathBuf,
    },
    /// The cache of blobs cannot be used.
    #[error("the blobs of the worker cannot be used")]
    Store(#[source] StoreError),
    /// The executor could not be set up.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

/// A worker that is ready to serve.
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) token: Token,
    pub(crate) description: Description,
    pub(crate) project: Project,
    pub(crate) cache: Arc<Cache>,
    pub(crate) executor: LocalExecutor,
    pub(crate) table: Table,
    pub(crate) cpus: Arc<Semaphore>,
    pub(crate) memory: Arc<Semaphore>,
    identify: Identify,
    known: Mutex<HashMap<String, (Instant, Option<BlobDigest>)>>,
    identities: Mutex<Identities>,
    /// What there is of what was demanded, by the digest of the demand.
    loads: Mutex<HashMap<BlobDigest, (Instant, Loads)>>,
    /// Held for as long as the worker lives.
    _lock: std::fs::File,
}

/// Memory is shared out in these units.
pub(crate) const UNIT: u64 = 1 << 20;

impl Server {
    /// Opens the folder, ends what an earlier worker left running there, and removes what it left lying.
    ///
    /// # Errors
    /// See [`WorkerError`].
    pub fn open(setup: Setup) -> Result<Server, WorkerError> {
        let project = Project::at(&setup.folder);
        let lock = lock(&setup.folder)?;
        project.create().map_err(WorkerError::Store)?;
        let left = left_attempts(&project);
        let ended = end_survivors(&left);
        if ended > 0 {
            tracing::info!(ended, "processes that an earlier worker left were ended");
        }
        rescue(&project);
        let blobs = Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
        let cache = Cache::open(Arc::clone(&blobs), setup.quota).map_err(WorkerError::Store)?;
        let bounds = Bounds { project: Some(setup.folder.clone()), allow: setup.allow, network: false };
        let (confinement, grace) = (setup.confinement, setup.grace);
        let config = Config { confinement, bounds, grace, ..Config::new(project.work(), setup.avow) };
        let executor = LocalExecutor::new(config, blobs as Arc<dyn BlobStore>)?;
        // All of them: the lock says that no other worker lives in this folder.
        match attempt_folders(&project.work()) {
            Ok(attempts) => {
                clear_leftovers(&project.work(), attempts);
            }
            Err(error) => tracing::warn!(%error, "folders of an earlier worker stay behind"),
        }
        let identities = Identities::new(&setup.folder, Some(project.cache().join("loads.json")));
        let instance = avow_store::nonce().map_err(WorkerError::Store)?;
        let description = Description {
            protocol: PROTOCOL,
            tool: setup.tool,
            instance,
            host: executor.host().clone(),
            cpus: setup.cpus.max(1),
            memory: setup.memory,
            lease: u64::try_from(setup.lease.as_millis()).unwrap_or(u64::MAX),
            blob_limit: setup.quota,
            ops: setup.ops,
        };
        let units =
            usize::try_from(setup.memory / UNIT).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        Ok(Server(Arc::new(Shared {
            token: setup.token,
            cpus: Arc::new(Semaphore::new(description.cpus as usize)),
            memory: Arc::new(Semaphore::new(units)),
            table: Table::default(),
            description,
            project,
            cache,
            executor,
            identify: setup.identify,
            known: Mutex::default(),
            identities: Mutex::new(identities),
            loads: Mutex::default(),
            _lock: lock,
        })))
    }

    /// What it tells clients of itself.
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// Serves until `cancel` is raised; then attempts are ended with the grace period, and clients are told. A
    /// second request ends them at once.
    pub async fn serve(self, listener: TcpListener, cancel: Cancel) {
        let shared = self.0;
        let mut reaper = tokio::spawn(reap(Arc::clone(&shared)));
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let mut open = tokio::task::JoinSet::new();
        loop {
            // Whoever comes when all places are taken waits in the queue of the system.
            let place = Arc::clone(&connections).acquire_owned();
            let accepted = tokio::select! {
                _ = cancel.cancelled() => break,
                place = place => tokio::select! {
                    _ = cancel.cancelled() => break,
                    accepted = listener.accept() => accepted.map(|(stream, _)| (stream, place)),
                },
            };
            match accepted {
                Ok((stream, place)) => {
                    let shared = Arc::clone(&shared);
                    open.spawn(async move {
                        connection(shared, stream).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Too many open files, mostly: others end, and then it goes on.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            while open.try_join_next().is_some() {}
        }
        shared.table.stop(Level::Stop);
        tokio::select! {
            () = shared.table.idle() => {}
            () = cancel.reached(Level::Kill) => {
                shared.table.stop(Level::Kill);
                shared.table.idle().await;
            }
        }
        // What was just told gets a moment to leave.
        tokio::time::sleep(Duration::from_millis(50)).await;
        reaper.abort();
        // An aborted task has no result.
        let _ = (&mut reaper).await;
    }
}

/// Ends the attempts of clients that are silent for too long.
async fn reap(shared: Arc<Shared>) {
    let lease = Duration::from_millis(shared.description.lease);
    loop {
        tokio::time::sleep((lease / 5).max(Duration::from_millis(10))).await;
        let ended = shared.table.expire(lease);
        if ended > 0 {
            tracing::info!(ended, "attempts of clients that are gone were ended");
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    // Answers are small and wait for nobody.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without TCP_NODELAY");
    }
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(routes::answer(&shared, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(64).half_close(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended");
    }
}

impl Shared {
    /// The identity of a program. Asks the file system, and at most every few seconds.
    pub(crate) fn program(&self, word: &str) -> Option<BlobDigest> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, known)) = lock().get(word)
            && at.elapsed() < FRESH
        {
            return *known;
        }
        let found = (self.identify)(word);
        let mut known = lock();
        if known.len() > 10_000 {
            known.clear();
        }
        known.insert(word.to_owned(), (Instant::now(), found));
        found
    }
}

impl Shared {
    /// What there is here of what an action's programs load. An answer that is not older than `age` will do; a new
    /// one costs a look at each file that it rests on.
    pub(crate) fn loads(&self, demand: &Demand, age: Duration) -> Loads {
        let name = BlobDigest::of(&encode(demand));
        let lock = || self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, known)) = lock().get(&name)
            && at.elapsed() < age
        {
            return known.clone();
        }
        let identities = self.identities.lock().unwrap_or_else(PoisonError::into_inner);
        let found = demand.here(&identities);
        identities.remember();
        drop(identities);
        let mut known = lock();
        if known.len() > 1_000 {
            known.clear();
        }
        known.insert(name, (Instant::now(), found.clone()));
        found
    }
}

fn lock(folder: &std::path::Path) -> Result<std::fs::File, WorkerError> {
    let failed = |source| WorkerError::Folder { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = std::fs::File::options().create(true).truncate(false).write(true).open(folder.join("lock"));
    let file = file.map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(WorkerError::Shared { path: folder.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// Takes back the checkpoints of attempts that an earlier worker left, and removes those that nobody came back for.
fn rescue(project: &Project) {
    for entry in std::fs::read_dir(project.checkpoints()).into_iter().flatten().flatten() {
        let folder = entry.path();
        let old = entry
            .metadata()
            .and_then(|about| about.modified())
            .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > FORGOTTEN));
        let done = if old {
            crate::folder::remove(&folder)
        } else {
            rescue_checkpoints(&folder, &project.work()).map(drop)
        };
        if let Err(error) = done {
            tracing::warn!(folder = %folder.display(), %error, "checkpoints of an earlier worker");
        }
    }
}

/// Attempts whose folders an earlier worker left.
fn left_attempts(project: &Project) -> Vec<(AttemptId, Option<(i32, u64)>)> {
    let entries = std::fs::read_dir(project.work()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_attempt(name)).map(|name| (AttemptId(name), None)).collect()
}
