//! Where a stage's standard output and error go: straight into the log files, or, where the stage has secrets,
//! through a pipe from which they are taken out before anything reaches a disk.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

use crate::fault::{Fault, at, machine};
use crate::folder::Folder;
use crate::scrub::Scrubber;

/// How long a reader sleeps before it looks whether the stage is over, in milliseconds.
const LOOK: i64 = 100;

/// Both streams of one attempt, before its process is started.
pub(crate) struct Streams {
    ends: [OwnedFd; 2],
    logging: Logging,
}

/// What still writes logs while a stage runs.
#[derive(Default)]
pub(crate) struct Logging {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Streams {
    /// Opens the logs of an attempt.
    pub(crate) fn open(folder: &Folder<'_>, secrets: Option<&Arc<Scrubber>>) -> Result<Streams, Fault> {
        let logs = folder.logs();
        let mut logging = Logging::default();
        let [stdout, stderr] = [0, 1].map(|which| -> Result<OwnedFd, Fault> {
            let log = Folder::log(&logs[which]).map_err(at("create", &logs[which]))?;
            match secrets {
                None => Ok(log.into()),
                Some(secrets) => logging
                    .pipe(log, Arc::clone(secrets))
                    .map_err(|error| machine("a log could not be opened", &error)),
            }
        });
        Ok(Streams { ends: [stdout?, stderr?], logging })
    }

    /// What the process gets as standard output and error.
    pub(crate) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.ends[0].as_fd(), self.ends[1].as_fd()]
    }

    /// Once the process has its own.
    pub(crate) fn close(self) -> Logging {
        self.logging
    }
}

impl Logging {
    fn pipe(&mut self, log: File, secrets: Arc<Scrubber>) -> io::Result<OwnedFd> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        let source = Source { pipe: reader, over: Arc::clone(&self.over) };
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut log = Log { file: log, failed: None };
            let read = secrets.stream(source, &mut log);
            log.failed.map_or(read, Err)
        })?;
        self.threads.push(thread);
        Ok(writer.into())
    }

    /// Waits until everything that was printed is written. To be called when no process of the attempt is left.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.over.store(true, Ordering::Release);
        let ends = self.threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of a log ended early")))
        });
        ends.fold(Ok(()), Result::and)
    }
}

/// The pipe, until its other end is closed or, where something we cannot end holds it open, until the attempt is
/// over and nothing more is in it.
struct Source {
    pipe: PipeReader,
    over: Arc<AtomicBool>,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let over = self.over.load(Ordering::Acquire);
            match self.pipe.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && over => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK * 1_000_000 };
                    match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&wait)) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                other => return other,
            }
        }
    }
}

/// A log file that swallows what comes after a failure, so that the stage is not held up by a full disk.
struct Log {
    file: File,
    failed: Option<io::Error>,
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.failed = Some(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
