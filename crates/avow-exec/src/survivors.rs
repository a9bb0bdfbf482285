//! Ending what a dead predecessor left running.
//!
//! After `kill -9` of Avow its stages run on, adopted by someone else. The next run knows their attempts from
//! the journal, mostly with process id and start time. Both ways are used: the recorded group, if the process
//! with that id really started at that time, and every process whose environment names one of the attempts.
//! They are no children of ours, so nobody here can wait for them: they count as gone once they are zombies.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use avow_model::attempt::AttemptId;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::environment::{MARKER, marks};
use crate::proc;

/// How long we wait for the killed to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The main process of an attempt: its id, and its start time in clock ticks since boot.
pub type Recorded = (i32, u64);

/// Kills every process that still belongs to one of these attempts; how many there were.
///
/// Only processes of the same user can be recognised and ended. Call it with the project's lock held, before
/// the first attempt of a resumed run.
pub fn end_survivors(attempts: &[(AttemptId, Option<Recorded>)]) -> usize {
    let mut found = BTreeSet::new();
    let until = Instant::now() + PATIENCE;
    loop {
        let alive = survivors(attempts);
        if alive.is_empty() {
            return found.len();
        }
        for pid in alive {
            end(pid);
            found.insert(pid);
        }
        if Instant::now() > until {
            tracing::warn!("processes of an earlier run do not end");
            return found.len();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn survivors(attempts: &[(AttemptId, Option<Recorded>)]) -> BTreeSet<i32> {
    if attempts.is_empty() {
        return BTreeSet::new();
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let belongs = |pid: i32| {
        let recorded = attempts.iter().any(|(_, main)| main.is_some_and(|main| is(pid, main)));
        recorded
            || proc::variable(pid, MARKER)
                .is_some_and(|marker| attempts.iter().any(|(id, _)| marks(&marker, &id.0)))
    };
    let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| !stat.ended());
    proc::all().into_iter().filter(|pid| *pid != own && belongs(*pid)).filter(alive).collect()
}

fn is(pid: i32, (recorded, start): Recorded) -> bool {
    pid == recorded && proc::stat(pid).is_some_and(|stat| stat.start == start)
}

fn end(pid: i32) {
    let Some(name) = Pid::from_raw(pid) else { return };
    let leads = proc::stat(pid).is_some_and(|stat| stat.group == pid);
    let done = if leads { kill_process_group(name, Signal::KILL) } else { kill_process(name, Signal::KILL) };
    match done {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => tracing::warn!(pid, %error, "a process of an earlier run could not be ended"),
    }
}
