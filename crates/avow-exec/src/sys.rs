//! Starting and waiting: calls to the C library that have no safe binding. ([`crate::notify`] has the only other
//! unsafe code of this crate.)
//!
//! `posix_spawn` rather than a fork of our own, because the C library starts the child on borrowed memory: no
//! page table is copied, so the cost does not grow with what Avow holds in memory. Code between fork and exec
//! would forbid that; whatever must be in force before the program runs (Landlock) is therefore put on the
//! *thread* that calls [`start`], from which the child inherits it. See [`crate::confine`].
#![expect(
    unsafe_code,
    reason = "posix_spawn, wait4, close_range and the Landlock version have no safe binding"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// A process to be started, with everything it inherits.
pub(crate) struct Start<'a> {
    /// The file to execute; no search takes place.
    pub(crate) file: &'a CStr,
    /// `argv`, the name of the program included.
    pub(crate) arguments: &'a [CString],
    /// The whole environment as `NAME=VALUE`.
    pub(crate) environment: &'a [CString],
    /// Its working folder.
    pub(crate) folder: &'a CStr,
    /// Its standard input, output and error.
    pub(crate) streams: [BorrowedFd<'a>; 3],
}

/// How a process ended and what it used, its waited-for children included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Exit code, or the signal that ended it.
    pub(crate) how: How,
    /// User and system time in microseconds.
    pub(crate) cpu: u64,
    /// Largest resident set in bytes, as the kernel counts it (see [`crate::peak`]).
    pub(crate) resident: u64,
}

/// Exit code or signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Signals that a Rust program, or the shell that started it, may have set to be ignored.
const RESET: [libc::c_int; 13] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGXFSZ,
];

/// Starts a process as the leader of a new session, with default signal handling; its id.
///
/// # Errors
/// What `execve` or `chdir` said in the child.
pub(crate) fn start(start: &Start<'_>) -> io::Result<i32> {
    let actions = Actions::new(start)?;
    let attributes = Attributes::new()?;
    let arguments = pointers(start.arguments);
    let environment = pointers(start.environment);
    let mut pid = 0;
    // SAFETY: both arrays end with a null pointer and, like the file name, outlive the call; `actions` and
    // `attributes` are initialised and destroyed only afterwards.
    let error = unsafe {
        libc::posix_spawn(
            &mut pid,
            start.file.as_ptr(),
            &actions.0,
            &attributes.0,
            arguments.as_ptr().cast(),
            environment.as_ptr().cast(),
        )
    };
    checked(error)?;
    Ok(pid)
}

/// Waits until the process `pid`, a child of ours, has ended, and takes its record away.
///
/// # Errors
/// `ECHILD` where it is no child of ours.
pub(crate) fn wait(pid: i32) -> io::Result<Ended> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable values of the right types.
        if unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: all-zero bytes are a valid `rusage`, and `wait4` filled it in.
    let usage = unsafe { usage.assume_init() };
    let micros = |t: libc::timeval| {
        u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_usec).unwrap_or(0)
    };
    let how = if libc::WIFSIGNALED(status) {
        How::Signal(libc::WTERMSIG(status))
    } else {
        How::Exit(libc::WEXITSTATUS(status))
    };
    let resident = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    Ok(Ended { how, cpu: micros(usage.ru_utime) + micros(usage.ru_stime), resident })
}

/// The version of Landlock this kernel offers; `None` where it has none or it is switched off.
pub(crate) fn landlock_abi() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    let nothing: *const libc::c_void = ptr::null();
    // SAFETY: with the version flag the kernel reads no attribute and creates nothing.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}

/// Marks every descriptor that is open now, except the three standard ones, to be closed in programs we start.
///
/// Ours are made that way; this is for those that our own caller left open: a lock, a pipe of `make`.
///
/// # Errors
/// Where the kernel is older than 5.11.
pub(crate) fn close_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: no descriptor is closed in this process, so nobody's ownership is touched.
    match unsafe { libc::close_range(3, libc::c_uint::MAX, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}

fn checked(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new(start: &Start<'_>) -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: `init` makes the value valid; it is read only after it succeeded.
        let mut actions = unsafe {
            checked(libc::posix_spawn_file_actions_init(raw.as_mut_ptr()))?;
            Self(raw.assume_init())
        };
        // SAFETY: the actions are initialised; the C library copies the folder's name; the descriptors are
        // borrowed for longer than the spawn that uses them.
        unsafe {
            checked(libc::posix_spawn_file_actions_addchdir_np(&mut actions.0, start.folder.as_ptr()))?;
            for (number, stream) in (0..).zip(start.streams) {
                let fd = stream.as_raw_fd();
                checked(libc::posix_spawn_file_actions_adddup2(&mut actions.0, fd, number))?;
            }
        }
        Ok(actions)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let flags = libc::POSIX_SPAWN_SETSID
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short;
        let mut raw = MaybeUninit::uninit();
        let mut none = MaybeUninit::uninit();
        let mut reset = MaybeUninit::uninit();
        // SAFETY: each value is initialised by the first call that is given it, before it is read.
        unsafe {
            checked(libc::posix_spawnattr_init(raw.as_mut_ptr()))?;
            let mut attributes = Self(raw.assume_init());
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigemptyset(reset.as_mut_ptr());
            for signal in RESET {
                libc::sigaddset(reset.as_mut_ptr(), signal);
            }
            checked(libc::posix_spawnattr_setflags(&mut attributes.0, flags))?;
            checked(libc::posix_spawnattr_setsigmask(&mut attributes.0, none.as_ptr()))?;
            checked(libc::posix_spawnattr_setsigdefault(&mut attributes.0, reset.as_ptr()))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}
