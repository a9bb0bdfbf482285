//! Being asked by the kernel before a program opens, executes or looks for a file.
//!
//! A seccomp filter stops these calls and hands them to a listener (`SECCOMP_RET_USER_NOTIF`, Linux 5.5), which
//! looks at the arguments and lets the kernel go on. The filter belongs to the thread that asks for it and to
//! everything it starts: forks, threads, `vfork`, static programs. Nothing is attached to the processes, so exit
//! codes, signals, debuggers and the time limit stay as they are, and there is nothing to detach at the end.
//!
//! Refused while this filter is in force: `io_uring` (it opens files without a call), opening by file handle, and
//! every call of another architecture, of which 32-bit programs are one.
#![expect(unsafe_code, reason = "seccomp, its ioctls and process_vm_readv have no safe binding")]

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::event::{PollFd, PollFlags, poll};

/// `AUDIT_ARCH_X86_64`, `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: u32 = 0xc000_00b7;
/// No other machine is known to us.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const ARCHITECTURE: u32 = 0;

/// Calls of x86-64's other size of pointer carry this bit.
#[cfg(target_arch = "x86_64")]
pub(crate) const OTHER_SIZE: Option<u32> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const OTHER_SIZE: Option<u32> = None;

// `_IOWR('!', 0, struct seccomp_notif)`, `_IOWR('!', 1, struct seccomp_notif_resp)`, `_IOW('!', 2, __u64)`.
const RECEIVE: u32 = ioctl(3, 0, size_of::<libc::seccomp_notif>());
const SEND: u32 = ioctl(3, 1, size_of::<libc::seccomp_notif_resp>());
const VALID: u32 = ioctl(1, 2, size_of::<u64>());

const fn ioctl(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'!' as u32) << 8 | number
}

/// Where calls arrive.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Its name with the kernel.
    pub(crate) id: u64,
    /// The thread that makes it.
    pub(crate) task: i32,
    /// Which call.
    pub(crate) number: i64,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
}

/// A call to be stopped. One whose flags hold `AT_EMPTY_PATH` names no path and is left alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// Which call.
    pub(crate) number: libc::c_long,
    /// Which argument holds such flags, if any.
    pub(crate) flags: Option<usize>,
}

/// Puts a filter on this thread and all that it starts from now on; where its calls arrive. The thread must have
/// given up new privileges, as Landlock demands too, or have `CAP_SYS_ADMIN`.
///
/// # Errors
/// Where the kernel is too old, the machine is unknown, or somebody observes this process already.
pub(crate) fn listen(stops: &[Stop]) -> io::Result<Listener> {
    if ARCHITECTURE == 0 {
        return Err(io::Error::other("this kind of processor is not known"));
    }
    let mut filter = program(stops);
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A signal must not interrupt a call that is being looked at, where the kernel can do that (5.19).
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let descriptor = match install(&mut filter, flags | WAIT_KILLABLE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(&mut filter, flags)?,
        other => other?,
    };
    // SAFETY: the kernel just made the descriptor for us.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Puts a filter on this thread; what the kernel answers.
pub(crate) fn install(filter: &mut [libc::sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_int> {
    let length = libc::c_ushort::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let at: *const libc::sock_fprog = &program;
    // SAFETY: `program` and the filter it points to outlive the call, which copies them.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, at) };
    let answer = libc::c_int::try_from(answer).unwrap_or(-1);
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

pub(crate) const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
pub(crate) const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
pub(crate) const HAS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
pub(crate) const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
pub(crate) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// One instruction of a filter: `k` its number, `jt` and `jf` how many to skip where it holds and where not.
pub(crate) fn step(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// The answer that lets a call fail.
pub(crate) fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// The filter: allow, but ask for `stops` and refuse what cannot be observed.
fn program(stops: &[Stop]) -> Vec<libc::sock_filter> {
    const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    let mut all = vec![
        step(LOAD, offset_of!(libc::seccomp_data, arch) as u32, 0, 0),
        step(EQUAL, ARCHITECTURE, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        step(LOAD, number, 0, 0),
    ];
    if let Some(bit) = OTHER_SIZE {
        all.extend([step(AT_LEAST, bit, 0, 1), step(RETURN, refuse(libc::ENOSYS), 0, 0)]);
    }
    let refused = [(libc::SYS_io_uring_setup, libc::ENOSYS), (libc::SYS_open_by_handle_at, libc::EPERM)];
    for (call, errno) in refused {
        all.extend([step(EQUAL, call as u32, 0, 1), step(RETURN, refuse(errno), 0, 0)]);
    }
    for stop in stops {
        match stop.flags {
            None => all.extend([
                step(EQUAL, stop.number as u32, 0, 1),
                step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
            ]),
            Some(argument) => {
                // The lower half of the argument; both architectures are little-endian.
                let at = offset_of!(libc::seccomp_data, args) as u32 + 8 * argument as u32;
                all.extend([
                    step(EQUAL, stop.number as u32, 0, 4),
                    step(LOAD, at, 0, 0),
                    step(HAS, libc::AT_EMPTY_PATH.cast_unsigned(), 1, 0),
                    step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
                    step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
                ]);
            }
        }
    }
    all.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    all
}

impl Listener {
    /// The next call; `None` once everything under the filter is gone, or `stop` is readable.
    ///
    /// # Errors
    /// What the kernel says, other than that the caller was killed meanwhile.
    pub(crate) fn next(&self, stop: &OwnedFd) -> io::Result<Option<Call>> {
        loop {
            let mut events = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            match poll(&mut events, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let here = events[0].revents();
            if !events[1].revents().is_empty() || !here.contains(PollFlags::IN) && !here.is_empty() {
                return Ok(None);
            }
            if here.is_empty() {
                continue;
            }
            // SAFETY: all-zero bytes are a valid value, and what the kernel wants to be given.
            let mut got: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            match self.ioctl(RECEIVE, ptr::from_mut(&mut got).cast()) {
                Ok(()) => {
                    let (number, arguments) = (i64::from(got.data.nr), got.data.args);
                    return Ok(Some(Call { id: got.id, task: got.pid.cast_signed(), number, arguments }));
                }
                // The caller is gone, or a signal came.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the call still waits, so that what was read of its process was its own.
    pub(crate) fn waits(&self, call: &Call) -> bool {
        let mut id = call.id;
        self.ioctl(VALID, ptr::from_mut(&mut id).cast()).is_ok()
    }

    /// Lets the kernel carry the call out.
    pub(crate) fn go_on(&self, call: &Call) {
        self.answer(call, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Lets the call fail.
    pub(crate) fn refuse(&self, call: &Call, errno: i32) {
        self.answer(call, -errno, 0);
    }

    fn answer(&self, call: &Call, error: i32, flags: u32) {
        let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        // A caller that is gone waits for no answer.
        if let Err(error) = self.ioctl(SEND, ptr::from_mut(&mut answer).cast()) {
            tracing::trace!(%error, task = call.task, "nobody waits for an answer");
        }
    }

    fn ioctl(&self, request: u32, value: *mut libc::c_void) -> io::Result<()> {
        // SAFETY: each request is used with a pointer to the live value that its number was made from.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::Ioctl::from(request), value) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Reads a text that ends with a NUL byte from the memory of a thread; `None` where it has none there, or where
/// we may not look.
pub(crate) fn text(task: i32, address: u64) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut all = Vec::new();
    let mut at = address;
    while all.len() <= libc::PATH_MAX as usize {
        // Never beyond a page: the next one may not be there, and the text may end before it.
        let mut part = vec![0; (PAGE - at % PAGE).min(256) as usize];
        let read = bytes(task, at, &mut part)?;
        if let Some(end) = part[..read].iter().position(|b| *b == 0) {
            all.extend_from_slice(&part[..end]);
            return Some(all);
        }
        all.extend_from_slice(&part[..read]);
        at = at.checked_add(read as u64)?;
    }
    None
}

/// Reads memory of a thread; how much of it was there.
pub(crate) fn bytes(task: i32, address: u64, into: &mut [u8]) -> Option<usize> {
    let here = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = libc::iovec { iov_base: usize::try_from(address).ok()? as *mut _, iov_len: into.len() };
    // SAFETY: `here` describes memory that is ours to write; the kernel checks the other side.
    let read = unsafe { libc::process_vm_readv(task, &here, 1, &there, 1, 0) };
    usize::try_from(read).ok().filter(|read| *read > 0)
}
