//! Rule sets of Landlock, made once for each folder and put on the thread that starts a stage.
//!
//! A protected stage may create, change, remove and move files beneath its own attempt folder, use `/dev/shm`
//! (semaphores of multiprocessing libraries live there) and write to the harmless devices and to graphics cards
//! that exist; everywhere else the kernel answers `EACCES`, to root too. Where grants are given, reading and
//! executing is limited to them and to the attempt folder in the same way. What Landlock cannot deny is a change
//! of mode, owner or times ([`crate::inputs`] notices and undoes those where they touch a blob), and to ask
//! whether a file exists.
//!
//! A Landlock domain belongs to a thread and is inherited by what the thread starts. So the rule set is put on
//! a short-lived thread, which then starts the program the fast way: no code of ours runs between fork and
//! exec, and a thread costs a tenth of a copied page table. Everything that is named is opened once and shared.
//! A rule holds for an inode, so the rule set of an attempt folder serves the next attempt that is given the
//! same folder ([`crate::folder`]), and most stages make none at all.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags, open};

use super::grants::Grants;
use crate::sys;

/// The oldest version that also denies `truncate`.
pub(crate) const NEEDED: u32 = 3;
/// The oldest version that denies TCP.
pub(crate) const NETWORK_NEEDED: u32 = 4;

/// The oldest version that keeps abstract Unix sockets apart.
const SCOPES_NEEDED: u32 = 6;

/// The part of a rule set that all attempts share.
#[derive(Debug)]
pub(crate) struct Protection {
    devices: Vec<Opened>,
    network: bool,
    /// Whether it can deny abstract Unix sockets of others.
    scopes: bool,
}

/// An opened path and what may be done beneath it.
#[derive(Debug)]
pub(crate) struct Opened {
    handle: OwnedFd,
    access: BitFlags<AccessFs>,
}

/// What the rule set of an attempt allows beyond its own folder.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    /// What may be read; everything, where there are none.
    pub(crate) reads: Option<Arc<Grants>>,
    /// Files and folders outside the blobs that are inputs of this attempt.
    pub(crate) inputs: Vec<PathBuf>,
    /// Whether the network is denied: TCP here, all else by [`super::sockets`].
    pub(crate) offline: bool,
}

impl Allowed {
    /// Whether one rule set serves both.
    fn same(&self, other: &Allowed) -> bool {
        let reads = match (&self.reads, &other.reads) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        reads && self.offline == other.offline && self.inputs == other.inputs
    }
}

/// The rule set of one attempt folder.
#[derive(Debug)]
pub(crate) struct Rules {
    set: RulesetCreated,
    allowed: Allowed,
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

impl Opened {
    /// A path for reading: files, lists of folders, and execution. `None` where there is nothing to open.
    pub(crate) fn for_reading(path: &Path) -> Option<Self> {
        let file = AccessFs::ReadFile | AccessFs::Execute;
        let access = if fs::metadata(path).ok()?.is_dir() { file | AccessFs::ReadDir } else { file };
        Self::new(path, access).ok()
    }

    /// A folder in which files can be read by whoever knows their names.
    pub(crate) fn for_known_names(path: &Path) -> Option<Self> {
        Self::new(path, AccessFs::ReadFile.into()).ok()
    }

    fn new(path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        let handle = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { handle, access })
    }
}

impl Protection {
    /// Opens what all attempts share.
    fn new(abi: u32) -> Self {
        let write = AccessFs::WriteFile | AccessFs::Truncate;
        let mut paths: Vec<(String, BitFlags<AccessFs>)> = Vec::new();
        paths.extend(DEVICES.map(|path| (path.to_owned(), write)));
        paths.extend(DEVICE_FOLDERS.map(|path| (path.to_owned(), write)));
        // Nor sockets, pipes or links: what is shared is memory, and no meeting place of stages.
        let meeting = AccessFs::MakeSock
            | AccessFs::MakeFifo
            | AccessFs::MakeSym
            | AccessFs::MakeChar
            | AccessFs::MakeBlock;
        paths.push(("/dev/shm".to_owned(), AccessFs::from_write(ABI::V3) & !meeting));
        let cards = fs::read_dir("/dev").into_iter().flatten().flatten();
        let nvidia = cards.filter(|e| e.file_name().as_encoded_bytes().starts_with(b"nvidia"));
        paths.extend(nvidia.map(|e| (e.path().to_string_lossy().into_owned(), write)));
        // A device that does not exist here needs no rule.
        let devices =
            paths.into_iter().filter_map(|(path, access)| Opened::new(Path::new(&path), access).ok());
        Self { devices: devices.collect(), network: abi >= NETWORK_NEEDED, scopes: abi >= SCOPES_NEEDED }
    }

    /// Whether it can deny TCP.
    pub(crate) fn has_network(&self) -> bool {
        self.network
    }

    /// The rule set for a folder; `known`, where it was made for this folder and the same is allowed.
    pub(crate) fn rules(
        &self,
        known: Option<Rules>,
        folder: &Path,
        allowed: Allowed,
    ) -> Result<Rules, ConfineError> {
        match known.filter(|known| known.allowed.same(&allowed)) {
            Some(known) => Ok(known),
            None => self.make(folder, &allowed).map(|set| Rules { set, allowed }),
        }
    }

    fn make(&self, folder: &Path, allowed: &Allowed) -> Result<RulesetCreated, ConfineError> {
        let reads = allowed.reads.is_some();
        let all = if reads { AccessFs::from_all(ABI::V3) } else { AccessFs::from_write(ABI::V3) };
        let own = Opened::new(folder, all).map_err(ConfineError::System)?;
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(all)
            .map_err(ConfineError::Rules)?;
        if allowed.offline && self.network {
            rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(ConfineError::Rules)?;
        }
        if allowed.offline && self.scopes {
            rules = rules.scope(Scope::AbstractUnixSocket).map_err(ConfineError::Rules)?;
        }
        let inputs: Vec<Opened> = match &allowed.reads {
            Some(_) => allowed.inputs.iter().filter_map(|path| Opened::for_reading(path)).collect(),
            None => Vec::new(),
        };
        let granted = allowed.reads.as_deref().map_or(&[][..], Grants::opened);
        let named = [&own].into_iter().chain(&self.devices).chain(granted).chain(&inputs);
        let mut set = rules.create().map_err(ConfineError::Rules)?;
        for Opened { handle, access } in named {
            set = set.add_rule(PathBeneath::new(handle, *access)).map_err(ConfineError::Rules)?;
        }
        Ok(set)
    }
}

/// Runs `work` on a thread of its own that, like all it starts, can gain no privileges and is bound by the rules.
pub(crate) fn within<T: Send>(
    rules: Option<&Rules>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, ConfineError> {
    let offline = rules.is_some_and(|rules| rules.allowed.offline);
    let set = rules.map(|rules| rules.set.try_clone()).transpose().map_err(ConfineError::System)?;
    thread::scope(|scope| {
        let confined = thread::Builder::new()
            .name("confined".to_owned())
            .stack_size(128 * 1024)
            .spawn_scoped(scope, move || {
                match set {
                    Some(set) => set.restrict_self().map(drop).map_err(ConfineError::Rules)?,
                    None => {
                        rustix::thread::set_no_new_privs(true).map_err(|e| ConfineError::System(e.into()))?
                    }
                }
                if offline {
                    super::sockets::deny().map_err(ConfineError::System)?;
                }
                Ok(work())
            })
            .map_err(ConfineError::System)?;
        confined.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Tries the whole way on a folder that exists; the reason where it does not work.
pub(crate) fn available(folder: &Path) -> Result<Protection, io::Error> {
    let abi = match sys::landlock_abi() {
        None => return Err(io::Error::other("this kernel has no Landlock, or it is switched off")),
        Some(abi) if abi < NEEDED => {
            return Err(io::Error::other(format!(
                "this kernel has Landlock version {abi}; {NEEDED} is needed"
            )));
        }
        Some(abi) => abi,
    };
    let protection = Protection::new(abi);
    let allowed = Allowed { reads: None, inputs: Vec::new(), offline: true };
    let rules = protection.rules(None, folder, allowed).map_err(ConfineError::into_io)?;
    within(Some(&rules), || ()).map_err(ConfineError::into_io)?;
    Ok(protection)
}
