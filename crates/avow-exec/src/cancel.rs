//! A request to stop, seen by threads that sleep in the kernel and by tasks alike.
//!
//! Two levels, because a person who presses `Ctrl-C` twice means it: [`Level::Stop`] lets a program end itself
//! within the grace period, [`Level::Kill`] does not. A level is never taken back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::watch;

/// How urgently an attempt should end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not at all.
    #[default]
    Run,
    /// SIGTERM, and SIGKILL after the grace period.
    Stop,
    /// SIGKILL at once.
    Kill,
}

/// A token that many attempts may share; clones are the same token.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    level: watch::Sender<Level>,
    stop: OwnedFd,
    kill: OwnedFd,
}

impl Cancel {
    /// A token that nobody has used yet.
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self(Arc::new(Inner { level: watch::Sender::new(Level::Run), stop: event()?, kill: event()? })))
    }

    /// Asks every attempt that holds this token to end in good order.
    pub fn stop(&self) {
        self.raise(Level::Stop);
    }

    /// Ends every attempt that holds this token at once.
    pub fn kill(&self) {
        self.raise(Level::Kill);
    }

    /// What was asked for so far.
    pub fn level(&self) -> Level {
        *self.0.level.borrow()
    }

    /// Resolves as soon as anything but [`Level::Run`] was asked for, with that level.
    pub async fn cancelled(&self) -> Level {
        let mut receiver = self.0.level.subscribe();
        let level = receiver.wait_for(|level| *level != Level::Run).await;
        *level.expect("the sender lives as long as this token")
    }

    /// Resolves as soon as this level was reached.
    pub async fn reached(&self, wanted: Level) {
        let mut receiver = self.0.level.subscribe();
        // The sender lives as long as this token.
        let _ = receiver.wait_for(|level| *level >= wanted).await;
    }

    /// Readable from the moment `level` was reached.
    pub(crate) fn descriptor(&self, level: Level) -> BorrowedFd<'_> {
        if level == Level::Kill { self.0.kill.as_fd() } else { self.0.stop.as_fd() }
    }

    fn raise(&self, level: Level) {
        self.0.level.send_if_modified(|now| {
            let higher = level > *now;
            *now = level.max(*now);
            higher
        });
        let mut events = vec![&self.0.stop];
        if level == Level::Kill {
            events.push(&self.0.kill);
        }
        for event in events {
            // A full counter is already readable, which is all that matters.
            if let Err(error) = rustix::io::write(event, &1_u64.to_ne_bytes()) {
                tracing::debug!(%error, "an event that was already raised");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_never_taken_back() {
        let cancel = Cancel::new().unwrap();
        assert_eq!(cancel.level(), Level::Run);
        cancel.kill();
        cancel.clone().stop();
        assert_eq!(cancel.level(), Level::Kill);
    }

    #[tokio::test]
    async fn a_waiting_task_sees_a_level_raised_before_and_after() {
        let cancel = Cancel::new().unwrap();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        tokio::task::yield_now().await;
        cancel.stop();
        assert_eq!(waiting.await.unwrap(), Level::Stop);
        assert_eq!(cancel.cancelled().await, Level::Stop);
    }
}
