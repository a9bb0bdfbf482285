//! A future that is dropped takes its process with it.
//!
//! The thread of an attempt cannot be cancelled, but the process it waits for can be killed; the thread then
//! cleans up as after any other end, and nobody reads its result.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, pidfd_send_signal};

use crate::family::Family;

/// Shared by the task that waits and the thread that works.
#[derive(Clone, Debug, Default)]
pub(crate) struct Abandon(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    /// No process yet.
    #[default]
    Before,
    /// This is the main process.
    Running(OwnedFd),
    /// Nobody waits any more.
    Abandoned,
}

/// Abandons the attempt when dropped.
pub(crate) struct Guard(Abandon);

impl Abandon {
    /// For the task that waits.
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    /// Names the process to kill; kills it at once where nobody waits any more.
    pub(crate) fn follow(&self, family: &Family) -> io::Result<()> {
        let mut state = self.lock();
        if matches!(*state, State::Abandoned) {
            family.signal(Signal::KILL);
            return Ok(());
        }
        *state = State::Running(family.descriptor().try_clone()?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if let State::Running(process) = &*state
            && let Err(error) = pidfd_send_signal(process, Signal::KILL)
        {
            // The usual case: the attempt is over and its process gone.
            tracing::trace!(%error, "an abandoned process is gone already");
        }
        *state = State::Abandoned;
    }
}
