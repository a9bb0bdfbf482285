//! Faults on request, for tests: the k-th act on the disk fails, is torn, is slow, or is the last of this process.
//!
//! Only debug builds have this; in release builds `crate::disk` calls the operating system and asks nobody. A
//! request is one line of text, `MODE@K`, with what the mode needs and, after `~`, a part of the paths that count:
//!
//! | request | at the k-th act that counts |
//! |---|---|
//! | `crash@7` | the process ends as by `kill -9`, before the act |
//! | `tear@7` | half of what it writes is written, then the process ends; another act is carried out first |
//! | `fail@7=EIO` | it fails with this error, the others do not |
//! | `short@7=ENOSPC` | half of what it writes is written, then it fails with this error |
//! | `full@7=ENOSPC` | it fails, and so does every later one that needs space |
//! | `slow@7=200` | it waits so many milliseconds first |
//! | `trace@0=FILE` | nothing, ever; acts are listed in the file |
//!
//! Several requests stand with `;` between them, each with a count of its own.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;

/// What an act on the disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Create,
    Write,
    Sync,
    Rename,
    Link,
    Remove,
    Shorten,
    Protect,
    Index,
}

impl Act {
    /// Whether a full disk refuses it.
    fn needs_space(self) -> bool {
        matches!(self, Act::Create | Act::Write | Act::Rename | Act::Link | Act::Index)
    }
}

/// How an act goes on after [`before`].
pub(crate) enum Go {
    /// As if nothing had been asked.
    Whole,
    /// Half of it; then this happens.
    Half(After),
}

/// What comes after half an act.
pub(crate) enum After {
    End,
    Fail(io::Error),
}

impl After {
    /// Carries it out.
    pub(crate) fn result(self) -> io::Result<()> {
        match self {
            After::End => end(),
            After::Fail(error) => Err(error),
        }
    }
}

#[derive(Debug)]
enum Mode {
    Crash,
    Tear,
    Fail(Errno),
    Short(Errno),
    Full(Errno),
    Slow(Duration),
    Trace(Mutex<File>),
}

#[derive(Debug)]
struct Request {
    mode: Mode,
    at: u64,
    part: String,
    count: AtomicU64,
}

static REQUESTS: OnceLock<Vec<Request>> = OnceLock::new();

/// A request that cannot be read.
#[derive(Debug)]
pub struct BadRequest(String);

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no request for a fault: `{}`", self.0)
    }
}

impl std::error::Error for BadRequest {}

/// Takes requests for this process, once.
pub fn install(text: &str) -> Result<(), BadRequest> {
    let bad = || BadRequest(text.to_owned());
    let requests = text.split(';').map(parse).collect::<Option<Vec<Request>>>().ok_or_else(bad)?;
    REQUESTS.set(requests).map_err(|_| bad())
}

fn parse(text: &str) -> Option<Request> {
    let (text, part) = text.split_once('~').unwrap_or((text, ""));
    let (mode, rest) = text.split_once('@')?;
    let (at, value) = rest.split_once('=').unwrap_or((rest, ""));
    let mode = match mode {
        "crash" => Mode::Crash,
        "tear" => Mode::Tear,
        "fail" => Mode::Fail(errno(value)?),
        "short" => Mode::Short(errno(value)?),
        "full" => Mode::Full(errno(value)?),
        "slow" => Mode::Slow(Duration::from_millis(value.parse().ok()?)),
        "trace" => Mode::Trace(Mutex::new(File::options().create(true).append(true).open(value).ok()?)),
        _ => return None,
    };
    Some(Request { mode, at: at.parse().ok()?, part: part.to_owned(), count: AtomicU64::new(0) })
}

fn errno(name: &str) -> Option<Errno> {
    Some(match name {
        "EIO" => Errno::IO,
        "ENOSPC" => Errno::NOSPC,
        "EDQUOT" => Errno::DQUOT,
        "EROFS" => Errno::ROFS,
        "EMFILE" => Errno::MFILE,
        "EACCES" => Errno::ACCESS,
        _ => return None,
    })
}

/// To be called before each act. Acts are counted from 1.
pub(crate) fn before(act: Act, path: &Path) -> io::Result<Go> {
    let Some(requests) = REQUESTS.get() else { return Ok(Go::Whole) };
    let name = path.to_string_lossy();
    let mut go = Go::Whole;
    for request in requests.iter().filter(|request| name.contains(&request.part)) {
        if let half @ Go::Half(_) = request.meet(act, path)? {
            go = half;
        }
    }
    Ok(go)
}

impl Request {
    fn meet(&self, act: Act, path: &Path) -> io::Result<Go> {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if let Mode::Trace(file) = &self.mode {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(file, "{number} {act:?} {}", path.display())?;
            return Ok(Go::Whole);
        }
        match &self.mode {
            Mode::Full(error) if number >= self.at && act.needs_space() => Err((*error).into()),
            Mode::Full(_) => Ok(Go::Whole),
            _ if number != self.at => Ok(Go::Whole),
            Mode::Crash => end(),
            Mode::Tear => Ok(Go::Half(After::End)),
            Mode::Fail(error) => Err((*error).into()),
            Mode::Short(error) if act == Act::Write => Ok(Go::Half(After::Fail((*error).into()))),
            Mode::Short(error) => Err((*error).into()),
            Mode::Slow(time) => {
                std::thread::sleep(*time);
                Ok(Go::Whole)
            }
            Mode::Trace(_) => Ok(Go::Whole),
        }
    }
}

/// Ends this process as `kill -9` does.
fn end() -> ! {
    // Nothing of this process must act any more, not even to say that it ends.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
