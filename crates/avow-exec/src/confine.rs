//! Write protection of a stage by Landlock.
//!
//! A confined stage may create, change, remove and move files beneath its own attempt folder, use `/dev/shm`
//! (semaphores of multiprocessing libraries live there) and write to the harmless devices and to graphics cards
//! that exist; everywhere else the kernel answers `EACCES`, to root too. Reading is not restricted yet. What
//! Landlock cannot deny is a change of mode, owner or times; [`crate::inputs`] notices and undoes those where
//! they touch a blob.
//!
//! A Landlock domain belongs to a thread and is inherited by what the thread starts. So the rule set is put on
//! a short-lived thread, which then starts the program the fast way: no code of ours runs between fork and
//! exec, and a thread costs a tenth of a copied page table. The devices are opened once and shared; only the
//! attempt folder is added per attempt.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError,
};
use rustix::fs::{Mode, OFlags, open};

use crate::sys;

/// How the local executor protects what a stage should not write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// By Landlock where the kernel has version 3 or newer, otherwise only by copying inputs.
    #[default]
    Auto,
    /// By Landlock, or not at all: the executor refuses to be made without it.
    Landlock,
    /// Not: inputs are copied.
    Off,
}

/// The oldest version that also denies `truncate`.
pub(crate) const NEEDED: u32 = 3;

/// The part of a rule set that all attempts share.
#[derive(Debug)]
pub(crate) struct Protection {
    shared: Vec<(OwnedFd, BitFlags<AccessFs>)>,
}

/// Why a stage could not be confined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    /// The rule set was refused.
    #[error("the kernel refused the Landlock rule set")]
    Rules(#[source] RulesetError),
    /// A folder could not be opened, or the thread not be started.
    #[error("a stage could not be confined")]
    System(#[source] io::Error),
}

impl ConfineError {
    /// The error as one of the operating system.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            ConfineError::Rules(error) => io::Error::other(error),
            ConfineError::System(error) => error,
        }
    }
}

/// Devices that programs write to without doing harm, and accelerators.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/kfd",
    "/dev/fuse",
];
/// Folders of devices.
const DEVICE_FOLDERS: [&str; 2] = ["/dev/pts", "/dev/dri"];

impl Protection {
    /// Opens what all attempts share.
    pub(crate) fn new() -> Self {
        let write = AccessFs::WriteFile | AccessFs::Truncate;
        let mut paths: Vec<(String, BitFlags<AccessFs>)> = Vec::new();
        paths.extend(DEVICES.map(|path| (path.to_owned(), write)));
        paths.extend(DEVICE_FOLDERS.map(|path| (path.to_owned(), write)));
        paths.push(("/dev/shm".to_owned(), AccessFs::from_write(ABI::V3)));
        let cards = fs::read_dir("/dev").into_iter().flatten().flatten();
        let nvidia = cards.filter(|e| e.file_name().as_encoded_bytes().starts_with(b"nvidia"));
        paths.extend(nvidia.map(|e| (e.path().to_string_lossy().into_owned(), write)));
        // A device that does not exist here needs no rule.
        let shared =
            paths.into_iter().filter_map(|(path, access)| Some((handle(Path::new(&path)).ok()?, access)));
        Self { shared: shared.collect() }
    }

    /// Runs `work` on a thread that, like all it starts, may write only beneath `folder`.
    pub(crate) fn within<T: Send>(
        &self,
        folder: &Path,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, ConfineError> {
        let rules = self.rules(folder)?;
        thread::scope(|scope| {
            let confined = thread::Builder::new()
                .name("confined".to_owned())
                .stack_size(128 * 1024)
                .spawn_scoped(scope, move || {
                    rules.restrict_self().map_err(ConfineError::Rules)?;
                    Ok(work())
                })
                .map_err(ConfineError::System)?;
            confined.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn rules(&self, folder: &Path) -> Result<landlock::RulesetCreated, ConfineError> {
        let all = AccessFs::from_write(ABI::V3);
        let own = handle(folder).map_err(ConfineError::System)?;
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)
            .and_then(|rules| rules.create())
            .and_then(|rules| rules.add_rule(PathBeneath::new(&own, all)))
            .map_err(ConfineError::Rules)?;
        for (path, access) in &self.shared {
            rules = rules.add_rule(PathBeneath::new(path, *access)).map_err(ConfineError::Rules)?;
        }
        Ok(rules)
    }
}

fn handle(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Tries the whole way on a folder that exists; the reason where it does not work.
pub(crate) fn available(folder: &Path) -> Result<Protection, io::Error> {
    match sys::landlock_abi() {
        None => return Err(io::Error::other("this kernel has no Landlock, or it is switched off")),
        Some(abi) if abi < NEEDED => {
            return Err(io::Error::other(format!(
                "this kernel has Landlock version {abi}; {NEEDED} is needed"
            )));
        }
        Some(_) => {}
    }
    let protection = Protection::new();
    protection.within(folder, || ()).map_err(ConfineError::into_io)?;
    Ok(protection)
}
