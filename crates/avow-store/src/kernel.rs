//! Two questions to the kernel that have no safe binding; neither changes anything on a disk.
#![expect(unsafe_code, reason = "leases and sync_file_range have no safe binding")]

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::libc::{F_RDLCK, F_SETLEASE, F_UNLCK, SIGURG, SYNC_FILE_RANGE_WRITE, c_int, fcntl, sync_file_range};

/// Which signal tells of a lease: the same number on every architecture that this program is built for.
const F_SETSIG: c_int = 10;

/// Whether certainly nobody has a file open for writing; false also where the file system cannot tell. The file is
/// open for reading only.
///
/// The kernel grants a read lease only while nobody does, a writable memory map included. The lease is given back
/// at once: this is asked about a file that nobody can find by name any more.
pub(crate) fn nobody_writes(file: &File) -> bool {
    let call = |command: c_int, argument: c_int| {
        // SAFETY: these commands take a number and touch no memory of ours; the descriptor is open as long as
        // `file` lives.
        unsafe { fcntl(file.as_raw_fd(), command, argument) == 0 }
    };
    // Whoever opens the file while we hold the lease has a signal sent to us. This one is ignored by default; the
    // usual one would end the process.
    let granted = call(F_SETSIG, SIGURG) && call(F_SETLEASE, F_RDLCK);
    granted && call(F_SETLEASE, F_UNLCK)
}

/// Asks that a part of a file be on its way to the disk, without waiting: a later sync finds less to do. A system
/// that does not listen makes that sync as long as it was.
pub(crate) fn begin_writing_back(file: &File, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
    // SAFETY: numbers alone; the descriptor is open as long as `file` lives.
    let _ = unsafe { sync_file_range(file.as_raw_fd(), offset, length, SYNC_FILE_RANGE_WRITE) };
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    use super::*;

    #[test]
    fn a_writer_is_seen_and_a_reader_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        let file = File::open(&path).unwrap();
        let _reader = File::open(&path).unwrap();
        assert!(nobody_writes(&file));
        let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(!nobody_writes(&file));
        writer.write_all(b"y").unwrap();
        drop(writer);
        assert!(nobody_writes(&file) && nobody_writes(&file), "the lease was given back");
        OpenOptions::new().append(true).open(&path).unwrap();
    }
}
