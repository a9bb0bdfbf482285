//! What is left of the network where Landlock denies TCP: sockets of every other kind.
//!
//! Landlock knows TCP by `bind` and `connect`. UDP, raw sockets, SCTP, MPTCP and families such as `AF_VSOCK` go past it, and so
//! does a connection that is opened by sending (`MSG_FASTOPEN`). A seccomp filter refuses these with `EACCES`; what
//! programs need without any network stays: Unix sockets and pairs, netlink (which tells the own interfaces), and plain
//! TCP sockets, whose use Landlock denies. `io_uring` makes sockets without a call and is refused as on a kernel
//! without it.
//!
//! Programs of another architecture (32 bits) are not filtered.

use std::io;
use std::mem::offset_of;

use crate::notify::{ALLOW, ARCHITECTURE, EQUAL, HAS, LOAD, OTHER_SIZE, RETURN, install, refuse, step};

/// Families that lead nowhere else: Unix, netlink, the kernel's cryptography.
const INSIDE: [i32; 3] = [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_ALG];

/// Calls that can open a connection by sending, with the place of their flags.
const SENDING: [(libc::c_long, usize); 3] =
    [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// The kind of a socket without its flags.
const KIND: u32 = 0xf;

/// Puts the filter on this thread and all that it starts. The thread must have given up new privileges.
///
/// # Errors
/// Where the kernel has no filters.
pub(crate) fn deny() -> io::Result<()> {
    // A processor whose calls are not known here keeps what Landlock gives.
    if ARCHITECTURE == 0 { Ok(()) } else { install(&mut program(), 0).map(drop) }
}

fn argument(index: usize) -> u32 {
    // The lower half; both architectures are little-endian.
    offset_of!(libc::seccomp_data, args) as u32 + 8 * index as u32
}

fn program() -> Vec<libc::sock_filter> {
    const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
    const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let denied = || step(RETURN, refuse(libc::EACCES), 0, 0);
    let allowed = || step(RETURN, ALLOW, 0, 0);
    let mut all = vec![
        step(LOAD, offset_of!(libc::seccomp_data, arch) as u32, 0, 0),
        step(EQUAL, ARCHITECTURE, 1, 0),
        allowed(),
        step(LOAD, offset_of!(libc::seccomp_data, nr) as u32, 0, 0),
    ];
    if let Some(bit) = OTHER_SIZE {
        all.extend([step(AT_LEAST, bit, 0, 1), step(RETURN, refuse(libc::ENOSYS), 0, 0)]);
    }
    all.extend([
        step(EQUAL, libc::SYS_io_uring_setup as u32, 0, 1),
        step(RETURN, refuse(libc::ENOSYS), 0, 0),
    ]);
    for (call, flags) in SENDING {
        all.extend([
            step(EQUAL, call as u32, 0, 4),
            step(LOAD, argument(flags), 0, 0),
            step(HAS, libc::MSG_FASTOPEN.cast_unsigned(), 0, 1),
            denied(),
            allowed(),
        ]);
    }
    all.extend([step(EQUAL, libc::SYS_socket as u32, 1, 0), allowed(), step(LOAD, argument(0), 0, 0)]);
    for family in INSIDE {
        all.extend([step(EQUAL, family.cast_unsigned(), 0, 1), allowed()]);
    }
    all.extend([
        step(EQUAL, libc::AF_INET.cast_unsigned(), 2, 0),
        step(EQUAL, libc::AF_INET6.cast_unsigned(), 1, 0),
        denied(),
        step(LOAD, argument(1), 0, 0),
        step(AND, KIND, 0, 0),
        step(EQUAL, libc::SOCK_STREAM.cast_unsigned(), 1, 0),
        denied(),
        step(LOAD, argument(2), 0, 0),
        step(EQUAL, 0, 1, 0),
        step(EQUAL, libc::IPPROTO_TCP.cast_unsigned(), 0, 1),
        allowed(),
        denied(),
    ]);
    all
}
