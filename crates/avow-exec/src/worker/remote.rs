//! One worker, seen from a run.
//!
//! A [`Remote`] keeps a session with its worker: it says every so often that it lives, hears from that whether
//! the worker does, and knows which blobs the worker has. An attempt is one request; when its connection breaks the
//! same request is made again and joins the attempt. It is [`Outcome::Lost`] once the worker was started again, or
//! was silent for the time of its lease: by then it has ended the attempt itself.

mod attempt;
mod http;
mod logs;
mod receive;
mod send;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Outcome};
use avow_model::digest::{ActionDigest, Artifact, BlobDigest};
use avow_model::loads::Loads;
use avow_model::plan::Terms;
use avow_store::{BlobStore, Project, StoreError};
use tokio::sync::{OnceCell, watch};

use super::closure::{Closure, artifacts};
use super::demand::Demand;
use super::protocol::{Beat, Description, Difference, PROTOCOL, Part, Stop, decode, differences, encode};
use super::token::Token;
use crate::cancel::{Cancel, Level};
use crate::{ExecError, Execution, Secrets};
use http::{CallError, Http};

/// Where a worker is, and what it wants to see.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address: `http://HOST:PORT`, or `https://…` of a proxy before it.
    pub url: String,
    /// The token.
    pub token: Token,
}

/// Whether a worker answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Up,
    /// It does not, for this reason.
    Down(String),
}

/// Why an attempt was not made on a worker. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It does not answer.
    #[error("the worker `{url}` does not answer: {reason}")]
    Unreachable {
        /// The worker.
        url: String,
        /// What happened.
        reason: String,
    },
    /// It has other operations or programs than the action demands, or these load something else there.
    #[error("the worker `{}` cannot carry it out: {}", .0.url, .0)]
    Unsuitable(Misfit),
    /// It refused for another reason, which would be the same the next time.
    #[error("the worker `{url}` refuses: {reason}")]
    Refused {
        /// The worker.
        url: String,
        /// Its words.
        reason: String,
    },
    /// A fault of our own.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

/// How many differences are told one by one.
const TOLD: usize = 6;

/// What a worker lacks for an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The worker.
    pub url: String,
    /// Each difference.
    pub differences: Vec<Difference>,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let told: Vec<String> = self.differences.iter().take(TOLD).map(Difference::to_string).collect();
        f.write_str(&told.join("; "))?;
        match self.differences.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "; and {more} more differences"),
        }
    }
}

/// One worker as an executor. Clones are the same one.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    http: Http,
    session: String,
    /// Stands for the project.
    project: String,
    secrets: Secrets,
    blobs: Arc<dyn BlobStore>,
    work: PathBuf,
    temporary: PathBuf,
    known: Mutex<Arc<Known>>,
    done: Mutex<Vec<String>>,
    /// Bytes of artifacts.
    sizes: Mutex<HashMap<Artifact, u64>>,
    health: watch::Sender<Health>,
    /// When the worker last said anything.
    heard: Mutex<Instant>,
}

/// What is known of one instance of a worker.
struct Known {
    description: Description,
    programs: Mutex<HashMap<String, Option<BlobDigest>>>,
    /// How what it has differs from what actions load, by what the demand is made of.
    loads: Mutex<HashMap<BlobDigest, Vec<Difference>>>,
    /// Blobs that it has, as far as we know.
    present: Mutex<HashSet<BlobDigest>>,
    /// Artifacts that were sent whole, or are just being sent: each by one attempt, and the others wait.
    artifacts: Mutex<HashMap<Artifact, Arc<OnceCell<()>>>>,
    /// The same for large blobs.
    large: Mutex<HashMap<BlobDigest, Arc<OnceCell<()>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one call, so a panic elsewhere leaves nothing half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    fn new(description: Description) -> Arc<Known> {
        Arc::new(Known {
            description,
            programs: Mutex::default(),
            loads: Mutex::default(),
            present: Mutex::default(),
            artifacts: Mutex::default(),
            large: Mutex::default(),
        })
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.description.lease)
    }
}

impl Remote {
    /// Asks a worker what it is, and keeps a session with it from then on. Attempts' logs are written below the
    /// project's folder of attempts while they grow, blobs go to and come from `blobs`; `secrets` are sent where terms
    /// name them. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`RemoteError::Unreachable`], and [`RemoteError::Refused`] for a wrong token or another protocol.
    pub async fn connect(
        place: &Place,
        project: &Project,
        blobs: Arc<dyn BlobStore>,
        secrets: Secrets,
    ) -> Result<Remote, RemoteError> {
        let http = Http::new(place)?;
        let description = describe(&http).await?;
        let session = avow_store::nonce().map_err(ExecError::Store)?[..32].to_owned();
        let inner = Arc::new(Inner {
            http,
            session,
            project: opaque(project),
            secrets,
            blobs,
            work: project.work(),
            temporary: project.temporary(),
            known: Mutex::new(Known::new(description)),
            done: Mutex::default(),
            sizes: Mutex::default(),
            health: watch::Sender::new(Health::Up),
            heard: Mutex::new(Instant::now()),
        });
        tokio::spawn(beat(Arc::downgrade(&inner)));
        Ok(Remote(inner))
    }

    /// Its address.
    pub fn url(&self) -> &str {
        self.0.http.url()
    }

    /// What it said of itself last.
    pub fn description(&self) -> Description {
        self.0.known().description.clone()
    }

    /// Whether it answers, and changes of that.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.health.subscribe()
    }

    /// What it lacks for an action; `None` where nothing is lacking. Asks for programs, and for what they load, where it
    /// was not asked before.
    ///
    /// # Errors
    /// [`RemoteError::Unreachable`].
    pub async fn misfit(&self, action: &Action) -> Result<Option<Misfit>, RemoteError> {
        let known = self.0.known();
        let unknown: Vec<String> = {
            let programs = lock(&known.programs);
            action.toolchain.keys().filter(|word| !programs.contains_key(*word)).cloned().collect()
        };
        if !unknown.is_empty() {
            let body = encode(&unknown);
            let answer =
                self.0.http.post("/programs", body).await.map_err(|error| self.0.http.failed(error))?;
            let found: Vec<Option<BlobDigest>> = decode(&answer).map_err(|error| RemoteError::Refused {
                url: self.url().to_owned(),
                reason: error.to_string(),
            })?;
            lock(&known.programs).extend(unknown.into_iter().zip(found));
        }
        let loads = self.lacking_loads(&known, action).await?;
        let room = self.lacking_room(&known, action).await?;
        let programs = lock(&known.programs);
        let op = |name: &str| known.description.ops.get(name).cloned();
        let mut differences = differences(action, op, |word| programs.get(word).copied().flatten());
        differences.extend(loads.into_iter().chain(room));
        let misfit = Misfit { url: self.url().to_owned(), differences };
        Ok((!misfit.differences.is_empty()).then_some(misfit))
    }

    /// How what the worker has differs from what the action's programs load.
    async fn lacking_loads(&self, known: &Known, action: &Action) -> Result<Vec<Difference>, RemoteError> {
        if action.loads.is_none() {
            return Ok(Vec::new());
        }
        let words: Vec<&String> = action.toolchain.keys().collect();
        let name = BlobDigest::of(&encode(&(action.loads, action.code, words)));
        if let Some(differences) = lock(&known.loads).get(&name) {
            return Ok(differences.clone());
        }
        let (blobs, of) = (Arc::clone(&self.0.blobs), action.clone());
        let demand = send::blocking(move || Demand::of(blobs.as_ref(), &of)).await;
        let Some(demand) = demand.map_err(|error| RemoteError::Exec(ExecError::Store(error)))? else {
            return Ok(Vec::new());
        };
        let answer = self.0.http.post("/loads", encode(&demand)).await;
        let answer = answer.map_err(|error| self.0.http.failed(error))?;
        let found: Loads = decode(&answer).map_err(|error| RemoteError::Refused {
            url: self.url().to_owned(),
            reason: error.to_string(),
        })?;
        let differences = demand.differences(&found);
        lock(&known.loads).insert(name, differences.clone());
        Ok(differences)
    }

    /// Whether code and inputs are more than the worker's cache can hold. What was sent before fits.
    async fn lacking_room(&self, known: &Known, action: &Action) -> Result<Option<Difference>, RemoteError> {
        let sent =
            |artifact: &Artifact| lock(&known.artifacts).get(artifact).is_some_and(|cell| cell.initialized());
        if artifacts(action).all(|artifact| sent(&artifact)) {
            return Ok(None);
        }
        let (inner, of) = (Arc::clone(&self.0), action.clone());
        let size = send::blocking(move || {
            artifacts(&of).map(|artifact| inner.size(artifact)).sum::<Result<u64, _>>()
        });
        let size = size.await.map_err(|error| RemoteError::Exec(ExecError::Store(error)))?;
        let limit = known.description.blob_limit;
        Ok((size > limit).then(|| Difference {
            what: Part::Room,
            name: String::new(),
            wanted: size.to_string(),
            found: Some(limit.to_string()),
        }))
    }

    /// Whether it keeps a checkpoint from which the next attempt at an action can go on.
    ///
    /// # Errors
    /// Where it does not answer.
    pub async fn has_checkpoint(&self, action: ActionDigest) -> Result<bool, RemoteError> {
        match self.0.http.get(&format!("/checkpoints/{}/{action}", self.0.project)).await {
            Ok(_) => Ok(true),
            Err(CallError::Refused(super::protocol::Refusal::Unknown)) => Ok(false),
            Err(error) => Err(self.0.http.failed(error)),
        }
    }

    /// Carries an action out there. Dropping the future ends the attempt.
    ///
    /// # Errors
    /// See [`RemoteError`]. Once it may have been started, whatever goes wrong is an [`Outcome`].
    pub async fn attempt(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        cancel: &Cancel,
    ) -> Result<Execution, RemoteError> {
        attempt::carry_out(&self.0, attempt, action, terms, cancel).await
    }

    /// Ends the session: the worker ends what still runs, and forgets. Bounded in time; a worker that does not
    /// answer ends it by itself when the lease is over.
    pub async fn close(&self) {
        let path = format!("/sessions/{}", self.0.session);
        if let Err(error) = self.0.http.delete(&path).await {
            tracing::debug!(worker = self.url(), ?error, "the session ends by itself");
        }
    }
}

impl Inner {
    fn known(&self) -> Arc<Known> {
        Arc::clone(&lock(&self.known))
    }

    /// Learns anew what the worker is, after it was started again.
    async fn learn(&self) -> Result<Arc<Known>, RemoteError> {
        let description = describe(&self.http).await?;
        let mut known = lock(&self.known);
        if known.description != description {
            *known = Known::new(description);
        }
        Ok(Arc::clone(&known))
    }

    /// The bytes of an artifact, as far as they are here.
    fn size(&self, artifact: Artifact) -> Result<u64, StoreError> {
        if let Some(size) = lock(&self.sizes).get(&artifact) {
            return Ok(*size);
        }
        let blobs = Closure::of_artifact(self.blobs.as_ref(), artifact)?.blobs;
        let mut size = 0_u64;
        for digest in blobs {
            size = size.saturating_add(self.blobs.size(digest)?.unwrap_or(0));
        }
        lock(&self.sizes).insert(artifact, size);
        Ok(size)
    }

    fn hear(&self) {
        *lock(&self.heard) = Instant::now();
    }

    /// For how long nothing was heard.
    fn silent(&self) -> Duration {
        lock(&self.heard).elapsed()
    }

    fn set(&self, health: Health) {
        if health == Health::Up {
            self.hear();
        }
        self.health.send_if_modified(|now| {
            let changed = *now != health;
            if changed {
                tracing::info!(worker = self.http.url(), ?health, "a worker");
            }
            *now = health;
            changed
        });
    }

    /// Tells the worker that an attempt is to end, in the background: again and again where it does not hear.
    fn ask_to_stop(self: &Arc<Self>, attempt: &AttemptId, level: Level) {
        let stop = if level == Level::Kill { Stop::AtOnce } else { Stop::Politely };
        let (inner, path) = (Arc::clone(self), format!("/attempts/{attempt}/stop"));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let until = Instant::now() + inner.known().lease();
            let mut unknown = 0;
            while let Err(error) = inner.http.post(&path, encode(&stop)).await {
                // The submission may still be on its way. After that it is over.
                unknown += u32::from(matches!(error, CallError::Refused(_)));
                if unknown > 20 || Instant::now() > until {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }

    fn ended(&self, known: &Known, outcome: Outcome) -> Execution {
        Execution::ended(outcome, known.description.host.clone())
    }
}

/// A name for a project that is the same in each run and says nothing.
fn opaque(project: &Project) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("avow 2026 worker: name of a project");
    hasher.update(crate::host::describe_host().name.as_bytes());
    hasher.update(project.root().as_os_str().as_encoded_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

async fn describe(http: &Http) -> Result<Description, RemoteError> {
    let answer = http.get("/worker").await.map_err(|error| http.failed(error))?;
    let refused = |reason: String| RemoteError::Refused { url: http.url().to_owned(), reason };
    let description: Description = serde_json::from_slice(&answer)
        .map_err(|error| refused(format!("it does not describe itself as a worker of avow does: {error}")))?;
    if description.protocol == PROTOCOL {
        Ok(description)
    } else {
        let (theirs, tool) = (description.protocol, &description.tool);
        Err(refused(format!("it is avow {tool} with protocol {theirs}, and this program has {PROTOCOL}")))
    }
}

/// Says that the run lives, until it does not.
async fn beat(run: Weak<Inner>) {
    loop {
        let Some(inner) = run.upgrade() else { return };
        let lease = inner.known().lease();
        // Once it is not heard it is asked more often, so that work goes on soon after it is back.
        let up = *inner.health.borrow() == Health::Up;
        let pause = if up { lease / 5 } else { (lease / 20).min(Duration::from_secs(1)) };
        let pause = pause.max(Duration::from_millis(20));
        drop(inner);
        tokio::time::sleep(pause).await;
        let Some(inner) = run.upgrade() else { return };
        let done = std::mem::take(&mut *lock(&inner.done));
        let instance = inner.known().description.instance.clone();
        let beat = Beat { instance, done };
        let path = format!("/sessions/{}", inner.session);
        match inner.http.post(&path, encode(&beat)).await {
            Ok(_) => inner.set(Health::Up),
            Err(CallError::Refused(super::protocol::Refusal::OtherInstance { .. })) => {
                match inner.learn().await {
                    Ok(_) => inner.set(Health::Up),
                    Err(error) => inner.set(Health::Down(error.to_string())),
                }
            }
            Err(error) => {
                lock(&inner.done).extend(beat.done);
                inner.set(Health::Down(error.to_string()));
            }
        }
    }
}
