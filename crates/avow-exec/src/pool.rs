//! Several executors as one: this machine and any number of workers.
//!
//! The planner knows the sum of the slots and nothing of where they are; a pool decides that. An attempt goes to
//! the place with most free slots among those that have what the action demands; where none has room, it waits
//! its turn. The oldest that waits reserves the place where it will fit first, so that small attempts cannot
//! starve a large one. A worker that does not answer gets nothing until it answers again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Outcome};
use avow_model::canonical::Record;
use avow_model::plan::Terms;
use tokio::sync::Notify;

use crate::worker::{Health, Misfit, Remote, RemoteError};
use crate::{ExecError, Execution, Executor, LocalExecutor, Watch};

/// How long an attempt waits for any worker to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a waiting attempt looks whether workers came back.
const LOOK: Duration = Duration::from_millis(200);

/// Where attempts can be made.
#[derive(Clone)]
pub enum Site {
    /// On this machine.
    Local {
        /// The executor.
        executor: LocalExecutor,
        /// CPU slots.
        cpus: u32,
        /// Bytes of memory.
        memory: u64,
    },
    /// On a worker, with the slots that it offers.
    Worker(Remote),
}

impl Site {
    /// Its slots: CPUs, and bytes of memory.
    pub fn slots(&self) -> (u32, u64) {
        match self {
            Site::Local { cpus, memory, .. } => (*cpus, *memory),
            Site::Worker(remote) => {
                let description = remote.description();
                (description.cpus, description.memory)
            }
        }
    }

    /// The name of its host.
    pub fn host(&self) -> String {
        match self {
            Site::Local { executor, .. } => executor.host().name.clone(),
            Site::Worker(remote) => remote.description().host.name,
        }
    }

    fn is_up(&self) -> bool {
        match self {
            Site::Local { .. } => true,
            Site::Worker(remote) => *remote.health().borrow() == Health::Up,
        }
    }
}

/// Why no place of a pool can carry an action out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplaceable {
    /// It is larger than each of them.
    #[error("it asks for {cpus} CPU slots and {memory} bytes of memory, and no single place has them")]
    TooLarge {
        /// CPU slots.
        cpus: u32,
        /// Bytes of memory.
        memory: u64,
    },
    /// Each that is large enough lacks something else.
    #[error("{}", .0.iter().map(|misfit| format!("the worker `{}`: {misfit}", misfit.url)).collect::<Vec<_>>().join("; "))]
    Unsuitable(Vec<Misfit>),
}

/// Several places as one executor. Clones are the same one.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    sites: Vec<Site>,
    state: Mutex<State>,
    changed: Notify,
    patience: Duration,
}

#[derive(Default)]
struct State {
    taken: Vec<(u32, u64)>,
    /// Who waits, oldest first, with the places that would do.
    waiting: VecDeque<(u64, Vec<usize>)>,
    next: u64,
}

/// What an attempt asks for.
#[derive(Clone, Copy)]
struct Request {
    cpus: u32,
    memory: u64,
}

impl Request {
    fn of(terms: &Terms) -> Request {
        Request { cpus: terms.cpus.max(1), memory: terms.memory.unwrap_or(0) }
    }

    fn fits(self, (cpus, memory): (u32, u64), (taken_cpus, taken_memory): (u32, u64)) -> bool {
        self.cpus <= cpus.saturating_sub(taken_cpus) && self.memory <= memory.saturating_sub(taken_memory)
    }
}

/// Slots that are given back when dropped.
struct Taken<'a> {
    shared: &'a Shared,
    site: usize,
    request: Request,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let (cpus, memory) = &mut state.taken[self.site];
        *cpus -= self.request.cpus;
        *memory -= self.request.memory;
        drop(state);
        self.shared.changed.notify_waiters();
    }
}

/// A place in the queue that is left when dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    ticket: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.lock().waiting.retain(|(ticket, _)| *ticket != self.ticket);
        self.shared.changed.notify_waiters();
    }
}

impl Pool {
    /// Of these places.
    pub fn new(sites: Vec<Site>) -> Pool {
        let state = State { taken: vec![(0, 0); sites.len()], ..State::default() };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Pool(Arc::new(Shared { sites, state, changed, patience: PATIENCE }))
    }

    /// The places.
    pub fn sites(&self) -> &[Site] {
        &self.0.sites
    }

    /// The sum of their slots: CPUs, and bytes of memory.
    pub fn slots(&self) -> (u32, u64) {
        self.0.sites.iter().map(Site::slots).fold((0, 0), |(cpus, memory), (more, bytes)| {
            (cpus.saturating_add(more), memory.saturating_add(bytes))
        })
    }

    /// Whether any place can carry such an action out, when it is free; what each of the workers that cannot
    /// lacks.
    ///
    /// # Errors
    /// [`ExecError::Unplaceable`] where none can, and faults of workers that are more than silence.
    pub async fn admits(&self, action: &Action, terms: &Terms) -> Result<Vec<Misfit>, ExecError> {
        self.0.suitable(action, Request::of(terms)).await.map(|(_, misfits)| misfits)
    }

    /// Ends the sessions with all workers.
    pub async fn close(&self) {
        for site in &self.0.sites {
            if let Site::Worker(remote) = site {
                remote.close().await;
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places that would do, and what the others lack.
    async fn suitable(
        &self,
        action: &Action,
        request: Request,
    ) -> Result<(Vec<usize>, Vec<Misfit>), ExecError> {
        let large = |site: &Site| request.fits(site.slots(), (0, 0));
        let (mut suitable, mut misfits) = (Vec::new(), Vec::new());
        for (index, site) in self.sites.iter().enumerate().filter(|(_, site)| large(site)) {
            match site {
                Site::Local { .. } => suitable.push(index),
                Site::Worker(remote) => match remote.misfit(action).await {
                    Ok(None) => suitable.push(index),
                    Ok(Some(misfit)) => misfits.push(misfit),
                    // It is asked again when its turn comes.
                    Err(RemoteError::Unreachable { .. }) => suitable.push(index),
                    Err(error) => return Err(ours(error)),
                },
            }
        }
        if !suitable.is_empty() {
            return Ok((suitable, misfits));
        }
        Err(ExecError::Unplaceable(if misfits.is_empty() {
            Unplaceable::TooLarge { cpus: request.cpus, memory: request.memory }
        } else {
            Unplaceable::Unsuitable(misfits)
        }))
    }

    /// Of these places those that keep a checkpoint of the action, where any does: what was done there need not be
    /// done again. One that does not answer now has none.
    async fn with_checkpoint(&self, action: &Action, terms: &Terms, places: Vec<usize>) -> Vec<usize> {
        if terms.checkpoint.is_none() || places.len() < 2 {
            return places;
        }
        let action = action.digest();
        let mut keeping = Vec::new();
        for site in &places {
            let found = match &self.sites[*site] {
                Site::Local { executor, .. } => {
                    executor.has_checkpoint(action).map_err(|error| error.to_string())
                }
                Site::Worker(remote) => {
                    remote.has_checkpoint(action).await.map_err(|error| error.to_string())
                }
            };
            match found {
                Ok(true) => keeping.push(*site),
                Ok(false) => {}
                Err(error) => tracing::info!(error, "whether there is a checkpoint is not known"),
            }
        }
        if keeping.is_empty() { places } else { keeping }
    }

    /// Waits for room at one of these places.
    async fn take(&self, request: Request, suitable: Vec<usize>) -> Result<Taken<'_>, ExecError> {
        let ticket = {
            let mut state = self.lock();
            let ticket = state.next;
            state.next += 1;
            state.waiting.push_back((ticket, suitable.clone()));
            ticket
        };
        let waiting = Waiting { shared: self, ticket };
        let mut seen = Instant::now();
        loop {
            let changed = self.changed.notified();
            if let Some(taken) = self.try_take(request, ticket) {
                drop(waiting);
                return Ok(taken);
            }
            if suitable.iter().any(|site| self.sites[*site].is_up()) {
                seen = Instant::now();
            } else if seen.elapsed() > self.patience {
                return Err(self.nobody(&suitable));
            }
            // Whether a worker is there is looked at from time to time.
            let _ = tokio::time::timeout(LOOK, changed).await;
        }
    }

    fn try_take(&self, request: Request, ticket: u64) -> Option<Taken<'_>> {
        let mut state = self.lock();
        let free = |state: &State, site: usize| {
            let (cpus, memory) = self.sites[site].slots();
            let (taken_cpus, taken_memory) = state.taken[site];
            (cpus.saturating_sub(taken_cpus), memory.saturating_sub(taken_memory))
        };
        let mut reserved = Vec::new();
        for (other, sites) in &state.waiting {
            let most = sites
                .iter()
                .filter(|site| self.sites[**site].is_up() && !reserved.contains(*site))
                .max_by_key(|site| (free(&state, **site), std::cmp::Reverse(**site)));
            let Some(site) = most.copied() else { continue };
            if *other != ticket {
                // Older ones first: where it will go is not for those behind it.
                reserved.push(site);
                continue;
            }
            let fits = request.fits(self.sites[site].slots(), state.taken[site]);
            if !fits {
                return None;
            }
            let (cpus, memory) = &mut state.taken[site];
            *cpus += request.cpus;
            *memory += request.memory;
            return Some(Taken { shared: self, site, request });
        }
        None
    }

    fn nobody(&self, suitable: &[usize]) -> ExecError {
        let down = suitable.iter().filter_map(|site| match &self.sites[*site] {
            Site::Worker(remote) => match &*remote.health().borrow() {
                Health::Down(reason) => Some(format!("`{}`: {reason}", remote.url())),
                Health::Up => None,
            },
            Site::Local { .. } => None,
        });
        ExecError::NoWorker { reasons: down.collect::<Vec<_>>().join("; ") }
    }
}

impl Executor for Pool {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        let request = Request::of(terms);
        loop {
            let (suitable, _) = self.0.suitable(action, request).await?;
            let suitable = self.0.with_checkpoint(action, terms, suitable).await;
            let taken = tokio::select! {
                taken = self.0.take(request, suitable) => taken?,
                _ = watch.cancel.cancelled() => {
                    return Ok(Execution::ended(Outcome::Cancelled, crate::host::describe_host()));
                }
            };
            let remote = match &self.0.sites[taken.site] {
                Site::Local { executor, .. } => return executor.run(attempt, action, terms, watch).await,
                Site::Worker(remote) => remote,
            };
            match remote.attempt(attempt, action, terms, &watch.cancel).await {
                Ok(execution) => return Ok(execution),
                // Nothing was started: somewhere else, or here when it answers again.
                Err(RemoteError::Unreachable { url, reason }) => {
                    tracing::info!(worker = url, reason, "not started there");
                    drop(taken);
                    tokio::time::sleep(LOOK).await;
                }
                // It was replaced by another program since it was asked; the next look finds that out.
                Err(RemoteError::Unsuitable(misfit)) => tracing::warn!(%misfit, "a worker has changed"),
                Err(error) => return Err(ours(error)),
            }
        }
    }
}

fn ours(error: RemoteError) -> ExecError {
    match error {
        RemoteError::Exec(error) => error,
        other => ExecError::Worker { reason: other.to_string() },
    }
}

/// One machine, or several.
#[derive(Clone)]
pub enum AnyExecutor {
    /// This one.
    Local(LocalExecutor),
    /// Several places.
    Pool(Pool),
}

impl AnyExecutor {
    /// The sum of the slots of a pool; `None` where this machine is all there is.
    pub fn slots(&self) -> Option<(u32, u64)> {
        match self {
            AnyExecutor::Local(_) => None,
            AnyExecutor::Pool(pool) => Some(pool.slots()),
        }
    }

    /// The names of all hosts on which attempts can be made.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            AnyExecutor::Local(executor) => vec![executor.host().name.clone()],
            AnyExecutor::Pool(pool) => pool.sites().iter().map(Site::host).collect(),
        }
    }

    /// Ends the sessions with workers.
    pub async fn close(&self) {
        if let AnyExecutor::Pool(pool) = self {
            pool.close().await;
        }
    }
}

impl Executor for AnyExecutor {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        match self {
            AnyExecutor::Local(executor) => executor.run(attempt, action, terms, watch).await,
            AnyExecutor::Pool(pool) => pool.run(attempt, action, terms, watch).await,
        }
    }
}
