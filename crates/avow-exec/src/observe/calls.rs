//! Which calls say what a program reads, and what their arguments mean.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use crate::notify::{self, Call, Stop};

/// What a program is about to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Read a file, or list a folder.
    Read,
    /// Write a file that need not be there.
    Write,
    /// Execute a file.
    Execute,
    /// See whether something is there.
    Look,
}

/// A call in words: an absolute path, not yet followed, and what is to happen.
#[derive(Debug)]
pub(crate) struct Access {
    /// The path.
    pub(crate) path: PathBuf,
    /// What is to happen.
    pub(crate) kind: Kind,
}

/// Where a call keeps folder, path and flags.
struct Shape {
    number: libc::c_long,
    folder: Option<usize>,
    path: usize,
    what: What,
}

enum What {
    /// The flags of `open`.
    Open(usize),
    /// A pointer to `struct open_how`, which begins with the flags.
    OpenHow(usize),
    Execute,
    Look,
}

const fn shape(number: libc::c_long, folder: Option<usize>, path: usize, what: What) -> Shape {
    Shape { number, folder, path, what }
}

/// Calls that every architecture has.
const COMMON: [Shape; 9] = [
    shape(libc::SYS_openat, Some(0), 1, What::Open(2)),
    shape(libc::SYS_openat2, Some(0), 1, What::OpenHow(2)),
    shape(libc::SYS_execve, None, 0, What::Execute),
    shape(libc::SYS_execveat, Some(0), 1, What::Execute),
    shape(libc::SYS_newfstatat, Some(0), 1, What::Look),
    shape(libc::SYS_statx, Some(0), 1, What::Look),
    shape(libc::SYS_faccessat, Some(0), 1, What::Look),
    shape(libc::SYS_faccessat2, Some(0), 1, What::Look),
    shape(libc::SYS_readlinkat, Some(0), 1, What::Look),
];
/// Calls that only x86-64 has kept.
#[cfg(target_arch = "x86_64")]
const OLD: [Shape; 5] = [
    shape(libc::SYS_open, None, 0, What::Open(1)),
    shape(libc::SYS_stat, None, 0, What::Look),
    shape(libc::SYS_lstat, None, 0, What::Look),
    shape(libc::SYS_access, None, 0, What::Look),
    shape(libc::SYS_readlink, None, 0, What::Look),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: [Shape; 0] = [];

/// All of them, for the filter. `fstat` is often `newfstatat` without a path: it is not worth a stop.
pub(crate) fn stops() -> Vec<Stop> {
    let flags = |number| match number {
        libc::SYS_newfstatat => Some(3),
        libc::SYS_statx => Some(2),
        _ => None,
    };
    COMMON.iter().chain(&OLD).map(|s| Stop { number: s.number, flags: flags(s.number) }).collect()
}

/// What a call is about to do; `None` where that is nothing to us, or its arguments are nonsense.
pub(crate) fn access(call: &Call) -> Option<Access> {
    let shape = COMMON.iter().chain(&OLD).find(|shape| shape.number == call.number)?;
    let text = notify::text(call.task, call.arguments[shape.path])?;
    let kind = match shape.what {
        What::Open(at) => opened(call.arguments[at])?,
        What::OpenHow(at) => {
            let mut flags = [0; 8];
            notify::bytes(call.task, call.arguments[at], &mut flags).filter(|read| *read == 8)?;
            opened(u64::from_le_bytes(flags))?
        }
        What::Execute => Kind::Execute,
        What::Look => Kind::Look,
    };
    let base = || match shape.folder.map(|at| call.arguments[at] as i32) {
        None | Some(libc::AT_FDCWD) => link(format!("/proc/{}/cwd", call.task)),
        Some(number) => link(format!("/proc/{}/fd/{number}", call.task)),
    };
    if text.is_empty() {
        // `fexecve`: the descriptor itself is executed.
        return (kind == Kind::Execute).then(base)?.map(|path| Access { path, kind });
    }
    let path = PathBuf::from(OsString::from_vec(text));
    let path = if path.is_absolute() { own(path, call.task) } else { base()?.join(path) };
    Some(Access { path: plain(&path), kind })
}

fn opened(flags: u64) -> Option<Kind> {
    let flags = i32::try_from(flags & 0xffff_ffff).unwrap_or(flags as u32 as i32);
    if flags & libc::O_PATH != 0 {
        return None;
    }
    let written = flags & libc::O_ACCMODE == libc::O_WRONLY;
    let emptied = flags & libc::O_TRUNC != 0 || flags & libc::O_EXCL != 0 && flags & libc::O_CREAT != 0;
    // A temporary file without a name.
    let nameless = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    Some(if written || emptied || nameless { Kind::Write } else { Kind::Read })
}

fn link(path: String) -> Option<PathBuf> {
    fs::read_link(path).ok().filter(|target| target.is_absolute())
}

/// A path through `/proc/self` is meant from the program's side.
fn own(path: PathBuf, task: i32) -> PathBuf {
    for name in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(name) {
            return Path::new("/proc").join(task.to_string()).join(rest);
        }
    }
    path
}

/// The path without `.` and doubled slashes. `..` stays: what it means depends on links.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_whether_bytes_are_read() {
        let kind = |flags: i32| opened(flags as u64);
        assert_eq!(kind(libc::O_RDONLY | libc::O_CLOEXEC), Some(Kind::Read));
        assert_eq!(kind(libc::O_RDONLY | libc::O_DIRECTORY), Some(Kind::Read));
        assert_eq!(kind(libc::O_RDWR | libc::O_CREAT), Some(Kind::Read));
        assert_eq!(kind(libc::O_WRONLY | libc::O_APPEND), Some(Kind::Write));
        assert_eq!(kind(libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC), Some(Kind::Write));
        assert_eq!(kind(libc::O_RDWR | libc::O_TMPFILE), Some(Kind::Write));
        assert_eq!(kind(libc::O_PATH), None);
    }
}
