//! Watching one main process until it ends or has to be ended.
//!
//! The thread of an attempt sleeps in `poll` on the process and the cancel token, with a deadline only where
//! there is one. Limits are sampled only where they were declared: every 20 ms close to a limit, up to every
//! 200 ms far from it. A program faster than that may exceed a limit between two samples; what is reported as
//! exceeded was exceeded. Memory is first summed with shared pages counted twice; only if that is too much, the
//! exact share of each process is asked for, so that workers that share their parent's memory are not blamed.
//!
//! The largest resident set comes from the kernel's record of the ended process. That record is never smaller
//! than what *this* process held when it started the stage, because the kernel counts the memory that a child
//! borrows before it executes its program. So a small program is also looked at after 20, 40, 80 ms …, at most
//! once a second, until it has shown more than that; see [`Peak::of`].

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::cancel::{Cancel, Level};
use crate::family::{Family, timespec};
use crate::folder::Folder;
use crate::proc;

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(200);
const LONGEST_PEAK: Duration = Duration::from_secs(1);

/// What an attempt may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Wall time.
    pub(crate) timeout: Option<Duration>,
    /// Resident memory of all its processes.
    pub(crate) memory: Option<u64>,
    /// Bytes on disk beyond what it was given.
    pub(crate) disk: Option<u64>,
    /// Bytes on disk that it was given.
    pub(crate) given: u64,
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
}

/// Why the main process ended, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Itself,
    /// It had used its time.
    Timeout,
    /// Somebody asked for it.
    Cancelled,
    /// It had more memory than declared.
    Memory,
    /// It had more on disk than declared.
    Disk,
}

/// Sleeps until the main process has ended, or must be killed now; why, and the largest resident set seen.
pub(crate) fn until_end(
    family: &Family,
    folder: &Folder<'_>,
    limits: &Limits,
    cancel: &Cancel,
) -> io::Result<(End, Peak)> {
    let now = Instant::now();
    let mut watch = Watch {
        family,
        folder,
        limits,
        cancel,
        timeout: limits.timeout.and_then(|timeout| now.checked_add(timeout)),
        sample: (limits.memory.is_some() || limits.disk.is_some()).then_some(now),
        pause: SHORTEST,
        suspect: false,
        peak: Peak::new(now),
        asked: None,
    };
    let end = watch.run()?;
    Ok((end, watch.peak))
}

struct Watch<'a> {
    family: &'a Family,
    folder: &'a Folder<'a>,
    limits: &'a Limits,
    cancel: &'a Cancel,
    timeout: Option<Instant>,
    sample: Option<Instant>,
    pause: Duration,
    /// The last sample showed too much memory.
    suspect: bool,
    peak: Peak,
    /// It was asked to end, for this reason, and is killed then.
    asked: Option<(End, Instant)>,
}

impl Watch<'_> {
    fn run(&mut self) -> io::Result<End> {
        loop {
            let (ended, cancelled) = self.sleep()?;
            if ended {
                let Some((end, at)) = self.asked else { return Ok(End::Itself) };
                self.linger(at);
                return Ok(end);
            }
            let now = Instant::now();
            if cancelled {
                if self.cancel.level() == Level::Kill {
                    return Ok(End::Cancelled);
                }
                self.ask(End::Cancelled, now);
            }
            if self.timeout.is_some_and(|at| at <= now) {
                self.ask(End::Timeout, now);
            }
            if let Some((end, _)) = self.asked.filter(|(_, at)| *at <= now) {
                return Ok(end);
            }
            if self.sample.is_some_and(|at| at <= now)
                && let Some(end) = self.exceeded(now)
            {
                return Ok(end);
            }
            self.peak.look(self.family, now);
        }
    }

    /// Whether the process has ended, and whether a higher level of the token was reached.
    fn sleep(&self) -> io::Result<(bool, bool)> {
        let deadlines = [self.timeout, self.sample, self.peak.next, self.asked.map(|(_, at)| at)];
        let deadline = deadlines.into_iter().flatten().min();
        let level = if self.asked.is_some() { Level::Kill } else { Level::Stop };
        let descriptor = self.cancel.descriptor(level);
        let mut events =
            [PollFd::new(self.family.descriptor(), PollFlags::IN), PollFd::new(&descriptor, PollFlags::IN)];
        let left = deadline.map(|at| timespec(at.saturating_duration_since(Instant::now())));
        match poll(&mut events, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => Ok((false, false)),
            Err(error) => Err(error.into()),
            Ok(_) => Ok((!events[0].revents().is_empty(), !events[1].revents().is_empty())),
        }
    }

    fn ask(&mut self, end: End, now: Instant) {
        self.timeout = None;
        if self.asked.is_none() {
            self.family.signal(Signal::TERM);
            // A stopped process would not notice.
            self.family.signal(Signal::CONT);
            self.asked = Some((end, now + self.limits.grace));
        }
    }

    /// The grace period is the whole family's. A shell dies of the signal at once, and the program that it
    /// started may still be saving its work.
    fn linger(&self, until: Instant) {
        let alive = |pid: &i32| proc::stat(*pid).is_some_and(|stat| !stat.ended());
        while Instant::now() < until
            && self.cancel.level() != Level::Kill
            && self.family.members().iter().any(alive)
        {
            thread::sleep(SHORTEST);
        }
    }

    fn exceeded(&mut self, now: Instant) -> Option<End> {
        let limits = *self.limits;
        let memory = limits.memory.map_or(0.0, |limit| self.memory_share(limit));
        let disk = limits.disk.map_or(0.0, |limit| {
            let used = self.folder.occupied().bytes.saturating_sub(limits.given);
            used as f64 / limit as f64
        });
        // Processes are looked at one after the other. When some that share memory end meanwhile, their shares
        // are counted again in the others, so only what two looks show is believed.
        if memory > 1.0 && self.suspect {
            return Some(End::Memory);
        }
        self.suspect = memory > 1.0;
        if disk > 1.0 {
            return Some(End::Disk);
        }
        let far = memory.max(disk) < 0.5;
        self.pause = if far { (self.pause * 3 / 2).min(LONGEST) } else { SHORTEST };
        // Looking must stay cheap beside working, however many files or processes there are.
        let cost = now.elapsed() * 10;
        self.sample = Some(Instant::now() + self.pause.max(cost));
        None
    }

    fn memory_share(&mut self, limit: u64) -> f64 {
        let members = self.family.members();
        let resident: Vec<u64> = members.iter().map(|pid| proc::resident(*pid)).collect();
        self.peak.saw(&resident);
        let mut sum: u64 = resident.iter().sum();
        if sum > limit {
            let shares = members.iter().zip(&resident);
            let alive = |pid| proc::stat(pid).is_some_and(|stat| !stat.ended());
            let share = |(pid, resident): (&i32, &u64)| match proc::proportional(*pid) {
                Some(share) => share,
                None if alive(*pid) => *resident,
                None => 0,
            };
            sum = shares.map(share).sum();
        }
        sum as f64 / limit as f64
    }
}

/// The largest resident set of one process of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    next: Option<Instant>,
    pause: Duration,
    seen: u64,
}

impl Peak {
    fn new(now: Instant) -> Self {
        Self { next: Some(now + SHORTEST), pause: SHORTEST, seen: 0 }
    }

    fn look(&mut self, family: &Family, now: Instant) {
        if self.next.is_none_or(|at| at > now) {
            return;
        }
        let members = [family.pid()].into_iter().chain(proc::descendants(family.pid()));
        self.saw(&members.map(proc::largest_resident).collect::<Vec<_>>());
        self.pause = (self.pause * 2).min(LONGEST_PEAK);
        self.next = (!proc::exceeds_own(self.seen)).then(|| now + self.pause);
    }

    fn saw(&mut self, resident: &[u64]) {
        self.seen = resident.iter().copied().fold(self.seen, u64::max);
    }

    /// Bytes: the kernel's `record` where it is more than our own largest resident set, otherwise what was seen;
    /// 0 for a process that was both smaller than this one and gone within 20 ms.
    pub(crate) fn of(&self, record: u64) -> u64 {
        if proc::exceeds_own(record) { record } else { self.seen }
    }
}
