//! An owner of the index that does not answer: stopped, or busy for very long. Nothing is taken from it, because it
//! may go on at any moment; whoever waits is told.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::IndexLock;
use crate::presence;
use crate::project::Project;

/// Who has the index open, as far as can be seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: Option<u32>,
    /// Its run, where it carries one out.
    pub run: Option<String>,
    /// Whether the process is stopped (`SIGSTOP`, Ctrl-Z).
    pub stopped: bool,
}

impl Holder {
    /// Of a project's index.
    pub fn of(project: &Project) -> Holder {
        let Some(pid) = IndexLock::holder(project) else { return Holder::default() };
        // For people only: a run whose presence cannot be read is told without its name.
        let living = presence::living(project).unwrap_or_default();
        let run = living.into_iter().find(|presence| presence.pid == pid).map(|presence| presence.run);
        Holder { pid: Some(pid), run, stopped: is_stopped(pid) }
    }
}

/// Whether a process is stopped by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything; the state is the first word behind it.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Called from time to time while an answer is waited for, with how long that has taken.
pub(super) type Hook = Box<dyn Fn(&Holder, Duration) + Send + Sync>;

/// Who is told.
#[derive(Clone, Default)]
pub(super) struct Silence(Arc<Mutex<Option<Hook>>>);

impl Silence {
    pub(super) fn tell(&self, hook: Hook) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
    }

    fn told(&self, project: &Project, silent: Duration) {
        if let Some(hook) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            hook(&Holder::of(project), silent);
        }
    }
}

/// A stream with a time limit for each read, which is read until there is something all the same.
pub(super) struct Patient<'a> {
    pub(super) stream: &'a mut UnixStream,
    pub(super) project: &'a Project,
    pub(super) silence: &'a Silence,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    self.silence.told(self.project, began.elapsed());
                }
                other => return other,
            }
        }
    }
}
