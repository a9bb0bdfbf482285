//! One index for all runs of a project.
//!
//! sled lets one process have a database open. So the first run that takes the [`IndexLock`] opens it and answers the
//! others on a socket in the store folder; they are its clients. When it ends or dies, whoever asks next takes
//! the lock, opens the index, brings it up to the journals and answers in turn. Nobody has to notice: a call is
//! made again until somebody has answered it, and every call may be made twice. Nothing can be lost, because a
//! run's attempts are in its own journal before they are told to the index.
//!
//! Deliberately absent: any trust between users. The socket can be used by whoever may write to the store folder,
//! and by nobody else.

mod client;
mod protocol;
mod server;
mod silence;

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};

use crate::error::StoreError;
use crate::index::{self, Opening};
use crate::lock::{IndexLock, LockError, RunLock};
use crate::project::Project;
use crate::record::{RecordStore, Recorded, SledIndex};
use crate::stamp::{FileStamp, StampCache};

pub use silence::{Holder, is_stopped};

use client::Client;
use server::Server;
use silence::Silence;

/// How often a call is made to a new owner before it is given up: an owner that breaks off each time is at fault.
const OWNERS: usize = 50;
/// For how long sled may say that another process has the database: one that died a moment ago.
const HELD: Duration = Duration::from_secs(10);

/// What can be asked of the index, besides records and stamps.
pub(crate) trait IndexCalls: RecordStore + StampCache {
    /// See [`SharedIndex::caught_up`].
    fn caught_up(&self, run: &str, length: u64) -> Result<(), StoreError>;
    /// See [`SharedIndex::catch_up`].
    fn catch_up(&self, run: &str) -> Result<(), StoreError>;
    /// See [`SharedIndex::flush`].
    fn flush(&self) -> Result<(), StoreError>;
}

/// The index of a project, whichever process has it open.
pub struct SharedIndex {
    project: Project,
    role: RwLock<Role>,
    /// The lock of the session, which lives as long as this: an owner needs it.
    runner: RunLock,
    opening: Mutex<Opening>,
    silence: Silence,
}

enum Role {
    /// Nobody yet, or the owner is gone.
    None,
    Client(Client),
    Owner(Owner),
}

/// Fields are dropped in this order: no more answers, no more index, and only then the lock.
struct Owner {
    index: server::Answering,
    _server: Server,
    _lock: IndexLock,
}

impl SharedIndex {
    /// Opens the index, or finds who has it open. `waiting` is asked now and then while neither can be, and may
    /// break off.
    ///
    /// # Errors
    /// [`LockError::GaveUp`] where it did; [`LockError::Store`] where the index cannot be used.
    pub fn open(
        project: &Project,
        runner: RunLock,
        mut waiting: impl FnMut() -> std::ops::ControlFlow<()>,
    ) -> Result<SharedIndex, LockError> {
        let index = SharedIndex {
            project: project.clone(),
            role: RwLock::new(Role::None),
            runner,
            opening: Mutex::new(Opening::Complete),
            silence: Silence::default(),
        };
        while !index.elect()? {
            if waiting().is_break() {
                return Err(LockError::GaveUp { path: project.lock() });
            }
            std::thread::sleep(PAUSE);
        }
        Ok(index)
    }

    /// Has `hook` called every few seconds in which an owner does not answer a call: it may be stopped. The call is
    /// waited for all the same.
    pub fn when_silent(&self, hook: impl Fn(&Holder, Duration) + Send + Sync + 'static) {
        self.silence.tell(Box::new(hook));
    }

    /// What opening the index took, where this process opened it last.
    pub fn opening(&self) -> Opening {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether this process has the index open and answers the others.
    pub fn is_owner(&self) -> bool {
        matches!(&*self.role(), Role::Owner(_))
    }

    /// Notes that everything in the first `length` bytes of a run's journal is in the index, so that the next
    /// owner need not read it again.
    pub fn caught_up(&self, run: &str, length: u64) -> Result<(), StoreError> {
        self.ask(|index| index.caught_up(run, length))
    }

    /// Reads a run's journal where it is longer than what was noted of it, and takes in what is new.
    pub fn catch_up(&self, run: &str) -> Result<(), StoreError> {
        self.ask(|index| index.catch_up(run))
    }

    /// Hands everything to the operating system; a crash of the owner then loses nothing.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.ask(|index| index.flush())
    }

    fn role(&self) -> RwLockReadGuard<'_, Role> {
        self.role.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn role_to_change(&self) -> RwLockWriteGuard<'_, Role> {
        self.role.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, to one owner after another until one has answered.
    fn ask<T>(&self, call: impl Fn(&dyn IndexCalls) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut broken = 0;
        loop {
            let answer = match &*self.role() {
                Role::Owner(owner) => return call(&*owner.index),
                Role::Client(client) => Some(call(client)),
                Role::None => None,
            };
            match answer {
                Some(Err(error @ StoreError::OwnerGone { .. })) => {
                    broken += 1;
                    if broken > OWNERS {
                        return Err(error);
                    }
                    self.leave();
                    if broken > 1 {
                        std::thread::sleep(PAUSE);
                    }
                }
                Some(other) => return other,
                None => {}
            }
            while !self.elect().map_err(unlocked)? {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// The owner that we were clients of is gone; another thread may have found a new one already.
    fn leave(&self) {
        let mut role = self.role_to_change();
        if matches!(&*role, Role::Client(client) if client.is_broken()) {
            *role = Role::None;
        }
    }

    /// Becomes owner or client; false where neither can be just now.
    fn elect(&self) -> Result<bool, LockError> {
        let mut role = self.role_to_change();
        if !matches!(&*role, Role::None) {
            return Ok(true);
        }
        if let Some(lock) = IndexLock::try_acquire(&self.project)? {
            let (index, opening) = self.open_here()?;
            *self.opening.lock().unwrap_or_else(PoisonError::into_inner) = opening;
            let index = server::Answering::new(self.project.clone(), index);
            let server = Server::start(&self.project, &index);
            *role = Role::Owner(Owner { index, _server: server, _lock: lock });
            return Ok(true);
        }
        match Client::connect(&self.project, self.silence.clone()) {
            Ok(client) => {
                *role = Role::Client(client);
                Ok(true)
            }
            // It has not begun to answer, or has just ended.
            Err(error) => {
                tracing::debug!(%error, "the owner of the index cannot be reached yet");
                Ok(false)
            }
        }
    }

    fn open_here(&self) -> Result<(SledIndex, Opening), StoreError> {
        let until = Instant::now() + HELD;
        loop {
            match index::open_index(&self.project, &self.runner) {
                Err(StoreError::Index { source }) if Instant::now() < until => {
                    tracing::debug!(%source, "the index cannot be opened yet");
                    std::thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }
}

/// Between two looks for an owner.
const PAUSE: Duration = Duration::from_millis(10);

/// Locks worked when the session was opened, so what fails now is the machine.
fn unlocked(error: LockError) -> StoreError {
    match error {
        LockError::Store(error) => error,
        LockError::Held { path, .. } | LockError::Unsupported { path } | LockError::GaveUp { path } => {
            let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
            StoreError::Io { action: "lock", path, source }
        }
    }
}

impl RecordStore for SharedIndex {
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        self.ask(|index| index.insert(recorded))
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        self.ask(|index| index.attempt(digest))
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        self.ask(|index| index.trace(action))
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        self.ask(|index| index.history(experiment, member))
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        self.ask(|index| index.stage_history(experiment, stage))
    }

    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        self.ask(|index| index.entries())
    }
}

impl StampCache for SharedIndex {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        self.ask(|index| index.cached_digest(stamp))
    }

    fn earlier_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        self.ask(|index| index.earlier_digest(stamp))
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.ask(|index| index.remember_digests(entries))
    }
}
