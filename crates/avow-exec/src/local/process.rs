//! The process of an attempt: how it is started, within which limits, and what its end means.

use std::ffi::CString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, thread};

use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::plan::Terms;
use rustix::process::{Resource, Rlimit, prlimit};

use super::{Shared, not_started};
use crate::Given;
use crate::confine::protection::within;
use crate::environment::Environment;
use crate::family::{Family, exceeded_file_size};
use crate::fault::{Fault, machine};
use crate::folder::Folder;
use crate::observe::Observation;
use crate::program::{self, Program};
use crate::streams::{Logging, Streams};
use crate::supervise::{End, Limits};
use crate::sys::{self, How, Start};

/// How long a program is started again that another thread still holds open for writing.
const BUSY: Duration = Duration::from_secs(1);
/// A disk with less than this free is full.
const FULL: u64 = 1 << 20;

impl Shared {
    pub(super) fn limits(&self, terms: &Terms) -> Limits {
        Limits {
            timeout: terms.timeout.map(Duration::from_millis),
            memory: terms.memory,
            disk: terms.disk,
            given: 0,
            grace: self.config.grace,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one process, used once")]
    pub(super) fn spawn(
        &self,
        folder: &Folder<'_>,
        attempt: &AttemptId,
        program: &Program,
        environment: &Environment,
        (terms, given): (&Terms, &Given),
        limits: &Limits,
        observation: Option<&Observation>,
        streams: Streams,
    ) -> Result<(Family, Logging), Fault> {
        let arguments = program::strings(&program.arguments).map_err(not_started)?;
        let environment = environment
            .strings(
                terms.secrets.iter().filter_map(|name| Some((name.as_str(), given.secrets.reveal(name)?))),
            )
            .ok_or_else(|| not_started("a variable of the environment holds a NUL byte".to_owned()))?;
        let file = c_path(&program.file).map_err(not_started)?;
        let run = c_path(&folder.run()).map_err(not_started)?;
        let [stdout, stderr] = streams.ends();
        let start = Start {
            file: &file,
            arguments: &arguments,
            environment: &environment,
            folder: &run,
            streams: [self.null.as_fd(), stdout, stderr],
        };
        let begin = || {
            observation.map_or(Ok(()), Observation::enter)?;
            sys::start(&start)
        };
        let once = || match (folder.rules(), observation) {
            (None, None) => sys::start(&start),
            (rules, _) => within(rules, begin).unwrap_or_else(|error| Err(error.into_io())),
        };
        let family = Family::start(attempt, || patiently(once)).map_err(|error| {
            match (observation.and_then(Observation::refused), program::refusal(program, &error)) {
                (Some(file), _) => not_started(format!(
                    "`{}` is a 32-bit program, which cannot be observed; `--confine deny` can run it",
                    file.display()
                )),
                (None, Some(reason)) => not_started(reason),
                (None, None) => machine("a process could not be started", &error),
            }
        })?;
        if let Some(disk) = limits.disk {
            self.limit_files(&family, disk);
        }
        Ok((family, streams.close()))
    }

    /// One file alone cannot grow past the limit, however fast it is written.
    pub(super) fn limit_files(&self, family: &Family, disk: u64) {
        let limit = Rlimit { current: Some(disk), maximum: Some(disk) };
        let pid = rustix::process::Pid::from_raw(family.pid());
        if let Err(error) = prlimit(pid, Resource::Fsize, limit) {
            // The program may be gone already; the samples hold in any case.
            tracing::debug!(%error, "the size of files is not limited");
        }
    }

    /// The outcome, as far as the process decides it.
    pub(super) fn judge(
        &self,
        folder: &Folder<'_>,
        end: End,
        how: How,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let failed = |failure| Err(Fault::Outcome(Outcome::Failed(failure)));
        match end {
            End::Timeout => return Err(Fault::Outcome(Outcome::TimedOut)),
            End::Cancelled => return Err(Fault::Outcome(Outcome::Cancelled)),
            End::Memory => return Err(Fault::Outcome(Outcome::OutOfMemory)),
            End::Disk => return failed(Failure::Disk),
            End::Itself if how == How::Exit(0) => return Ok(()),
            End::Itself => {}
        }
        if let Some(disk) = limits.disk {
            let occupied = folder.occupied();
            let full = occupied.longest >= disk || occupied.bytes.saturating_sub(limits.given) >= disk;
            if full || exceeded_file_size(how) {
                return failed(Failure::Disk);
            }
        }
        if self.disk_is_full() {
            return failed(Failure::Machine(format!("the disk of `{}` is full", self.config.work.display())));
        }
        match how {
            How::Exit(code) => failed(Failure::Exit(code)),
            How::Signal(signal) => failed(Failure::Signal(signal)),
        }
    }

    /// A program that failed on a full disk was not at fault.
    pub(super) fn disk_is_full(&self) -> bool {
        rustix::fs::statvfs(&self.config.work)
            .is_ok_and(|about| about.f_bavail.saturating_mul(about.f_frsize) < FULL || about.f_favail == 0)
    }
}

fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().to_owned().into_vec())
        .map_err(|_| format!("the path `{}` holds a NUL byte", path.display()))
}

/// Starts again while the program is open for writing: a process that another thread is just starting holds a
/// copy of every descriptor of ours until it executes its own program, also of the file we wrote a moment ago.
fn patiently(once: impl Fn() -> io::Result<i32>) -> io::Result<i32> {
    let until = Instant::now() + BUSY;
    loop {
        match once() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}
