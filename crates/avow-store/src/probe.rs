//! What the file system under a store is and can do, found by trying it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;
use crate::stamp::FileStamp;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The file system's name, e.g. `ext4`; its number in hexadecimal where we know none.
    pub file_system: String,
    /// Whether it lies on another machine.
    pub network: bool,
    /// Bytes free for us.
    pub free: u64,
    /// Whether a file can be written in it, or what the system said.
    pub writable: Result<(), String>,
    /// Whether a lock keeps a second holder away; `None` where nothing could be written.
    pub locks: Option<bool>,
    /// Whether two writes a few milliseconds apart leave different times; `None` where nothing could be written.
    pub fine_times: Option<bool>,
    /// Whether a copy can share its blocks with the original; `None` where nothing could be written.
    pub clones: Option<bool>,
}

/// Names of file systems by the number that the kernel gives, and whether they lie on another machine.
const KNOWN: [(u64, &str, bool); 17] = [
    (0xef53, "ext4", false),
    (0x5846_5342, "xfs", false),
    (0x9123_683e, "btrfs", false),
    (0x2fc1_2fc1, "zfs", false),
    (0xca45_1a4e, "bcachefs", false),
    (0xf2f5_2010, "f2fs", false),
    (0x0102_1994, "tmpfs", false),
    (0x794c_7630, "overlayfs", false),
    (0x4d44, "FAT", false),
    (0x2011_bab0, "exFAT", false),
    (0x6969, "NFS", true),
    (0xff53_4d42, "SMB", true),
    (0xfe53_4d42, "SMB", true),
    (0x0102_1997, "9p", true),
    (0x6573_5546, "FUSE", true),
    (0x0bd0_0bd0, "Lustre", true),
    (0x4750_4653, "GPFS", true),
];

/// Looks at the file system of the store, or of the project where there is no store. Where there is one, a file is
/// written, locked and removed again.
pub fn probe(project: &Project) -> Result<Probe, StoreError> {
    let store = project.store();
    let there = store.is_dir();
    let at = if there { store.as_path() } else { project.root() };
    let about = rustix::fs::statfs(at).context("look at", at)?;
    let number = about.f_type as u64 & 0xffff_ffff;
    let known = KNOWN.iter().find(|(magic, ..)| *magic == number);
    let mut probe = Probe {
        file_system: known.map_or_else(|| format!("{number:#x}"), |(_, name, _)| (*name).to_owned()),
        network: known.is_some_and(|(.., network)| *network),
        free: crate::space::free(project)?,
        writable: Ok(()),
        locks: None,
        fine_times: None,
        clones: None,
    };
    if there {
        let path = files::beside(&store.join("probe"));
        probe.writable = try_out(&path, &mut probe).map_err(|error| error.to_string());
        // What was made is removed in any case; where nothing was, there is nothing to remove.
        let _ = disk::remove_file(&path);
    }
    Ok(probe)
}

fn try_out(path: &Path, probe: &mut Probe) -> io::Result<()> {
    let file = disk::create_new(path)?;
    disk::write(&file, path, b"probe")?;
    let first = FileStamp::of(&file.metadata()?);
    probe.locks = Some(keeps_away(&file, path)?);
    std::thread::sleep(Duration::from_millis(15));
    disk::write(&file, path, b"again")?;
    let second = FileStamp::of(&file.metadata()?);
    probe.fine_times = Some(first.modified != second.modified);
    let copy = files::beside(path);
    let target = disk::create_new(&copy)?;
    probe.clones = Some(disk::clone_blocks(&file, &target, &copy).is_ok());
    disk::remove_file(&copy)
}

fn keeps_away(file: &File, path: &Path) -> io::Result<bool> {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    if rustix::fs::flock(file, exclusive).is_err() {
        return Ok(false);
    }
    let other = File::open(path)?;
    Ok(rustix::fs::flock(&other, exclusive).is_err())
}
