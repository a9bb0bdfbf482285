//! All processes of an attempt, and the certainty that none of them outlives it.
//!
//! Every stage starts in a session of its own, and this process is a *child subreaper*: whatever a stage leaves
//! behind becomes our child. So an orphan is recognised without any cooperation: a child of ours, in a session
//! other than ours, that is not the main process of an attempt. It belongs to the attempt whose session it is
//! in, or whose marker its environment carries ([`crate::environment::MARKER`]). One that left the session *and*
//! cleared its environment cannot be told apart while other attempts run; it is ended as soon as none does.
//!
//! Orphans are killed one generation at a time: killing a parent hands us its children, which the next pass
//! finds. A process id is only signalled while it cannot be reused, because only we take away the records of
//! our children, and each is held by a descriptor.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use avow_model::attempt::AttemptId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitid,
};

use crate::environment::{MARKER, marks};
use crate::proc;
use crate::sys::{self, Ended, How};

/// How long a killed process may take to be gone before we stop waiting for it (it hangs in the kernel then).
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process inherit the orphans of its stages. [`crate::LocalExecutor`] calls it; calling it again
/// does nothing.
///
/// # Errors
/// Where the kernel refuses.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(own_pid()))?)
}

fn own_pid() -> Pid {
    rustix::process::getpid()
}

/// The main processes of all attempts of this process.
#[derive(Debug, Default)]
struct Live {
    starting: usize,
    mains: Option<HashSet<i32>>,
}

static LIVE: Mutex<Live> = Mutex::new(Live { starting: 0, mains: None });

fn live() -> MutexGuard<'static, Live> {
    // The set is consistent at every point at which a thread could panic.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    fn mains(&mut self) -> &mut HashSet<i32> {
        self.mains.get_or_insert_default()
    }
}

/// The processes of one attempt.
#[derive(Debug)]
pub(crate) struct Family {
    attempt: String,
    pid: i32,
    descriptor: OwnedFd,
}

impl Family {
    /// Starts the main process.
    pub(crate) fn start(attempt: &AttemptId, spawn: impl FnOnce() -> io::Result<i32>) -> io::Result<Self> {
        live().starting += 1;
        let spawned = spawn();
        let mut live = live();
        live.starting -= 1;
        let pid = spawned?;
        live.mains().insert(pid);
        drop(live);
        match pidfd_open(as_pid(pid), PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { attempt: attempt.to_string(), pid, descriptor }),
            Err(error) => {
                // Without a descriptor it cannot be watched: it must not run on.
                signal_group(pid, Signal::KILL);
                let mut live = self::live();
                let _record = sys::wait(pid);
                live.mains().remove(&pid);
                Err(error.into())
            }
        }
    }

    /// The main process' id, which is also its group's and its session's.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Readable once the main process has ended.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Signals the main process' group.
    pub(crate) fn signal(&self, signal: Signal) {
        signal_group(self.pid, signal);
    }

    /// Every process of the attempt that can be found now.
    pub(crate) fn members(&self) -> Vec<i32> {
        let mut members = vec![self.pid];
        members.extend(self.orphans(&mut live(), false));
        for known in members.clone() {
            members.extend(proc::descendants(known));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Ends every process that is left; how the main process ended, and how many others there were.
    pub(crate) fn end(self) -> io::Result<(Ended, usize)> {
        self.signal(Signal::KILL);
        let mut waiting = [PollFd::new(&self.descriptor, PollFlags::IN)];
        while let Err(error) = poll(&mut waiting, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let ended = {
            // Both in one step: once the record is taken the id may come back as another attempt's.
            let mut live = live();
            let ended = sys::wait(self.pid);
            live.mains().remove(&self.pid);
            ended?
        };
        Ok((ended, self.sweep()))
    }

    fn sweep(&self) -> usize {
        let mut found = 0;
        loop {
            let mut live = live();
            let orphans = self.orphans(&mut live, true);
            let held: Vec<(i32, OwnedFd)> =
                orphans.into_iter().filter_map(|pid| Some((pid, hold(pid)?))).collect();
            for (pid, descriptor) in &held {
                end_orphan(*pid, descriptor);
            }
            drop(live);
            if held.is_empty() {
                return found;
            }
            found += held.len();
            for (_, descriptor) in &held {
                take_record(descriptor);
            }
        }
    }

    /// Orphans of this attempt; with `idle`, also those of nobody, where nobody else is left.
    fn orphans(&self, live: &mut Live, idle: bool) -> Vec<i32> {
        let own = own_pid().as_raw_nonzero().get();
        let children = proc::children_of_thread(own, own).unwrap_or_else(|| proc::children_by_scan(own));
        let mut orphans = Vec::new();
        let mut session = None;
        for child in children {
            if live.mains().contains(&child) {
                continue;
            }
            let Some(stat) = proc::stat(child) else { continue };
            let session = *session.get_or_insert_with(|| proc::stat(own).map_or(0, |own| own.session));
            if stat.session == session {
                continue;
            }
            let alone = live.starting == 0 && live.mains().is_empty();
            if stat.ended() {
                // While something is being started, this may be its main process, not registered yet.
                if live.starting == 0 {
                    hold(child).iter().for_each(take_record);
                }
                continue;
            }
            let marked = || proc::variable(child, MARKER).is_some_and(|m| marks(&m, &self.attempt));
            if stat.session == self.pid || (idle && alone) || marked() {
                orphans.push(child);
            }
        }
        orphans
    }
}

fn as_pid(pid: i32) -> Pid {
    Pid::from_raw(pid).expect("process ids are positive")
}

fn hold(pid: i32) -> Option<OwnedFd> {
    pidfd_open(as_pid(pid), PidfdFlags::empty()).ok()
}

fn signal_group(group: i32, signal: Signal) {
    match kill_process_group(as_pid(group), signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(group, %error, "a process group could not be signalled"),
    }
}

fn end_orphan(pid: i32, descriptor: &OwnedFd) {
    if let Some(stat) = proc::stat(pid).filter(|stat| stat.group == pid) {
        signal_group(stat.group, Signal::KILL);
    }
    match pidfd_send_signal(descriptor, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(pid, %error, "an orphan could not be killed"),
    }
}

/// Waits for a killed child of ours and takes its record away.
fn take_record(descriptor: &OwnedFd) {
    let until = Instant::now() + PATIENCE;
    let mut waiting = [PollFd::new(descriptor, PollFlags::IN)];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut waiting, Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => {
                tracing::warn!("a killed process does not end; it hangs in the kernel");
                return;
            }
            Ok(_) => break,
            Err(error) => return tracing::warn!(%error, "a killed process cannot be waited for"),
        }
    }
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    if let Err(error) = waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(descriptor)), options)
        && error != rustix::io::Errno::CHILD
    {
        tracing::warn!(%error, "the record of an orphan could not be taken");
    }
}

/// A duration for the kernel.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

/// Whether a process was ended by a signal for exceeding the size of a file.
pub(crate) fn exceeded_file_size(how: How) -> bool {
    how == How::Signal(libc::SIGXFSZ)
}
