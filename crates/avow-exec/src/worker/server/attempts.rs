//! The attempts of a worker: each is started once, whatever is lost or repeated on the way.
//!
//! An attempt belongs to the session that submitted it. A submission of a name that is known joins that attempt.
//! A session that is silent for the time of the lease is over: its attempts are ended with the grace period and
//! forgotten. How an attempt ended is kept until the client says that it has it, or its session is over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Outcome};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, BlobDigest};
use avow_model::plan::Terms;
use avow_model::reads::Reads;
use avow_store::blob::read_record;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use zeroize::Zeroizing;

use super::answer::{Answer, blocking, in_full};
use super::{FRESH_LOADS, Shared, UNIT, follow};
use crate::cancel::{Cancel, Level};
use crate::worker::cache::Pins;
use crate::worker::closure::Closure;
use crate::worker::demand::Demand;
use crate::worker::protocol::{Breakdown, Event, Refusal, Submission, decode, differences, is_attempt};
use crate::{ExecError, Execution, Executor, Given, Secrets, Watch};

/// Everything that runs, and what has ended and was not fetched yet.
#[derive(Default)]
pub(crate) struct Table {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    attempts: HashMap<AttemptId, Arc<Entry>>,
    sessions: HashMap<String, Instant>,
    running: usize,
    stopping: bool,
}

/// One attempt.
pub(crate) struct Entry {
    session: String,
    action: ActionDigest,
    cancel: Cancel,
    /// The last event, once there is one.
    pub(super) end: watch::Sender<Option<Event>>,
    /// Which outputs are kept, by name.
    pub(super) kept: Vec<String>,
    pins: Mutex<Vec<Pins>>,
}

impl Entry {
    /// What it was given may go now; what it wrote stays until it is fetched.
    fn keep_only(&self, pins: Option<Pins>) {
        let mut held = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        *held = pins.into_iter().collect();
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a sign of life.
    pub(super) fn hear(&self, session: &str) {
        self.lock().sessions.insert(session.to_owned(), Instant::now());
    }

    /// Forgets attempts whose end the client has.
    pub(super) fn forget(&self, session: &str, done: &[String]) {
        let mut state = self.lock();
        for id in done {
            let id = AttemptId(id.clone());
            let over = |entry: &Arc<Entry>| entry.session == session && entry.end.borrow().is_some();
            if state.attempts.get(&id).is_some_and(over) {
                state.attempts.remove(&id);
            }
        }
    }

    /// Asks an attempt to end; whether there is one.
    pub(super) fn cancel(&self, id: &AttemptId, level: Level) -> bool {
        let entry = self.lock().attempts.get(id).cloned();
        entry.is_some_and(|entry| {
            entry.raise(level);
            true
        })
    }

    /// The client has gone: everything of it ends.
    pub(super) fn end_session(&self, session: &str) -> usize {
        let mut state = self.lock();
        state.sessions.remove(session);
        let of_session = |entry: &Arc<Entry>| entry.session == session;
        let ended: Vec<Arc<Entry>> =
            state.attempts.values().filter(|entry| of_session(entry)).cloned().collect();
        state.attempts.retain(|_, entry| !of_session(entry));
        drop(state);
        let running = ended.iter().filter(|entry| entry.end.borrow().is_none());
        running.inspect(|entry| entry.raise(Level::Stop)).count()
    }

    /// Ends sessions that were silent for longer than `lease`; how many attempts that ended.
    pub(super) fn expire(&self, lease: Duration) -> usize {
        let silent = |heard: &Instant| heard.elapsed() > lease;
        let gone: Vec<String> = self
            .lock()
            .sessions
            .iter()
            .filter(|(_, heard)| silent(heard))
            .map(|(name, _)| name.clone())
            .collect();
        gone.iter().map(|session| self.end_session(session)).sum()
    }

    /// Starts nothing more, and asks what runs to end.
    pub(super) fn stop(&self, level: Level) {
        let mut state = self.lock();
        state.stopping = true;
        let all: Vec<Arc<Entry>> = state.attempts.values().cloned().collect();
        drop(state);
        all.iter().for_each(|entry| entry.raise(level));
    }

    /// Resolves when nothing runs.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.lock().running == 0 {
                return;
            }
            changed.await;
        }
    }

    fn find(
        &self,
        id: &AttemptId,
        session: &str,
        action: ActionDigest,
    ) -> Result<Option<Arc<Entry>>, Refusal> {
        let state = self.lock();
        match state.attempts.get(id) {
            Some(entry) if entry.action == action && entry.session == session => Ok(Some(Arc::clone(entry))),
            Some(_) => Err(Refusal::Conflict),
            None if state.stopping => Err(Refusal::Stopping),
            None => Ok(None),
        }
    }

    /// The attempt of this name, and whether it is new.
    fn claim(&self, id: &AttemptId, new: Entry) -> Result<(Arc<Entry>, bool), Refusal> {
        if let Some(entry) = self.find(id, &new.session, new.action)? {
            return Ok((entry, false));
        }
        let mut state = self.lock();
        // Another submission of the same name may have come between.
        if let Some(entry) = state.attempts.get(id) {
            return Ok((Arc::clone(entry), false));
        }
        let entry = Arc::new(new);
        state.attempts.insert(id.clone(), Arc::clone(&entry));
        state.running += 1;
        Ok((entry, true))
    }

    fn ended(&self) -> bool {
        let mut state = self.lock();
        state.running -= 1;
        let stopping = state.stopping;
        drop(state);
        self.changed.notify_waiters();
        stopping
    }
}

impl Entry {
    fn raise(&self, level: Level) {
        match level {
            Level::Run => {}
            Level::Stop => self.cancel.stop(),
            Level::Kill => self.cancel.kill(),
        }
    }
}

/// Starts an attempt or joins it, and answers with the stream of what happens to it.
pub(super) async fn submit(shared: &Arc<Shared>, id: AttemptId, body: &[u8]) -> Result<Answer, Refusal> {
    let submission: Submission = decode(body)?;
    shared.same_instance(&submission.instance)?;
    if !is_attempt(&submission.session) || !is_attempt(&submission.project) {
        return Err(Refusal::Malformed {
            reason: "sessions and projects have 32 hexadecimal digits".to_owned(),
        });
    }
    let given = given(shared, &submission)?;
    let Submission { session, action, terms, joins, have, done, .. } = submission;
    shared.table.hear(&session);
    shared.table.forget(&session, &done);
    let digest = action.digest();
    let entry = match shared.table.find(&id, &session, digest)? {
        Some(entry) => entry,
        None if joins => return Err(Refusal::Unknown),
        None => start(shared, &id, (session, digest), action, terms, given).await?,
    };
    Ok(follow::answer(shared, &id, entry, have).await)
}

async fn start(
    shared: &Arc<Shared>,
    id: &AttemptId,
    (session, digest): (String, ActionDigest),
    action: Action,
    terms: Terms,
    given: Given,
) -> Result<Arc<Entry>, Refusal> {
    let (action, pins) = {
        let shared = Arc::clone(shared);
        blocking(move || prepare(&shared, &action).map(|pins| (action, pins))).await?
    };
    let machine = |error: std::io::Error| Refusal::Machine { reason: error.to_string() };
    let cancel = Cancel::new().map_err(machine)?;
    let kept = action.outputs.iter().filter(|(_, slot)| slot.keep.is_content()).map(|(name, _)| name.clone());
    let (kept, end) = (kept.collect(), watch::Sender::new(None));
    let new = Entry { session, action: digest, cancel, end, kept, pins: Mutex::new(vec![pins]) };
    let (entry, fresh) = shared.table.claim(id, new)?;
    if fresh {
        tokio::spawn(carry_out(Arc::clone(shared), id.clone(), Arc::clone(&entry), action, terms, given));
    }
    Ok(entry)
}

/// What the client lends to the attempt: secrets, and the checkpoints of its project.
fn given(shared: &Shared, submission: &Submission) -> Result<Given, Refusal> {
    let values =
        submission.secrets.0.iter().map(|(name, value)| (name.clone(), Zeroizing::new(value.clone())));
    let secrets =
        Secrets::new(values.collect()).map_err(|error| Refusal::Malformed { reason: error.to_string() })?;
    Ok(Given { secrets, checkpoints: Some(shared.project.checkpoints().join(&submission.project)) })
}

/// Makes sure that this is the right worker for an action and that everything it needs is here, and stays.
fn prepare(shared: &Arc<Shared>, action: &Action) -> Result<Pins, Refusal> {
    let op = |name: &str| shared.description.ops.get(name).cloned();
    let differences = differences(action, op, |word| shared.program(word));
    if !differences.is_empty() {
        return Err(Refusal::Mismatch { differences });
    }
    let Closure { blobs, .. } = Closure::of_action(shared.cache.blobs().as_ref(), action)?;
    // Pinned first and looked at then: nothing can go between.
    let pins = shared.cache.pin(blobs);
    let Closure { missing, .. } = Closure::of_action(shared.cache.blobs().as_ref(), action)?;
    if !missing.is_empty() {
        return Err(Refusal::Lacking { blobs: missing });
    }
    // What it says that it loads came along.
    let demand = Demand::of(shared.cache.blobs().as_ref(), action)?;
    let differences =
        demand.map(|demand| demand.differences(&shared.loads(&demand, FRESH_LOADS))).unwrap_or_default();
    if differences.is_empty() { Ok(pins) } else { Err(Refusal::Mismatch { differences }) }
}

async fn carry_out(
    shared: Arc<Shared>,
    id: AttemptId,
    entry: Arc<Entry>,
    action: Action,
    terms: Terms,
    given: Given,
) {
    let slots = tokio::select! {
        slots = slots(&shared, &terms) => Some(slots),
        // Asked to end before its turn came: the executor does not start it then.
        _ = entry.cancel.cancelled() => None,
    };
    let watch = Watch::new(entry.cancel.clone()).given(given);
    let result = shared.executor.run(&id, &action, &terms, watch).await;
    drop(slots);
    entry.keep_only(result.as_ref().ok().map(|execution| shared.cache.pin(written(&shared, execution))));
    let stopping = shared.table.ended();
    let event = match result {
        Ok(execution) if stopping && execution.outcome == Outcome::Cancelled => {
            Event::Broken(Breakdown::Stopping)
        }
        Ok(execution) => Event::Finished(Box::new(execution.into())),
        Err(ExecError::Action { reason }) => Event::Broken(Breakdown::Action(reason)),
        Err(error) => Event::Broken(Breakdown::Machine(in_full(&error))),
    };
    entry.end.send_replace(Some(event));
}

/// Waits until the attempt has its slots. Two clients that share a worker take turns.
async fn slots(shared: &Shared, terms: &Terms) -> [Option<OwnedSemaphorePermit>; 2] {
    let cpus = terms.cpus.clamp(1, shared.description.cpus);
    let units = |bytes: u64| u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    let memory = units(terms.memory.unwrap_or(0)).min(units(shared.description.memory / UNIT * UNIT));
    // Neither is ever closed.
    let cpus = Arc::clone(&shared.cpus).acquire_many_owned(cpus).await.ok();
    let memory = Arc::clone(&shared.memory).acquire_many_owned(memory).await.ok();
    [cpus, memory]
}

/// Every blob that an attempt wrote.
fn written(shared: &Shared, execution: &Execution) -> Vec<BlobDigest> {
    let reads = execution.reads.map(BlobDigest::from);
    let record = |digest| read_record::<Reads>(shared.cache.blobs().as_ref(), digest).ok();
    let installed = execution.reads.and_then(record).and_then(|record| record.installed);
    let records = [reads, installed.map(BlobDigest::from)];
    let logs = [execution.stdout, execution.stderr];
    let mut blobs: Vec<BlobDigest> = logs.into_iter().chain(records).flatten().collect();
    for produced in execution.outputs.values() {
        match Closure::of_artifact(shared.cache.blobs().as_ref(), produced.artifact) {
            Ok(closure) => blobs.extend(closure.blobs),
            Err(error) => tracing::warn!(%error, "an output cannot be looked at"),
        }
    }
    blobs
}
