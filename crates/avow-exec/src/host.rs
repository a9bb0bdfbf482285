//! What is worth recording of the machine, and what it can do.

use std::ffi::OsStr;
use std::fs;

use avow_model::attempt::Host;

use crate::confine::{Confinement, NEEDED, NETWORK_NEEDED};
use crate::program::Shells;
use crate::{environment, proc, sys};

/// Name, system and processor of this machine; `confinement` is `none` until an executor says more.
pub fn describe_host() -> Host {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let kernel = format!("{} {} {}", text(system.sysname()), text(system.release()), text(system.machine()));
    let system_name = match distribution() {
        Some(name) => format!("{name}, {kernel}"),
        None => kernel,
    };
    Host {
        name: text(system.nodename()),
        system: system_name,
        cpu: processor().unwrap_or_else(|| "unknown".to_owned()),
        confinement: "none".to_owned(),
    }
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Memory of this machine in bytes.
pub fn total_memory() -> u64 {
    let about = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the width of the field differs between targets")]
    let units = u64::try_from(about.totalram).unwrap_or(u64::MAX);
    units.saturating_mul(u64::from(about.mem_unit))
}

/// What this machine offers to the local executor, for `avow doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The version of Landlock; `None` where there is none.
    pub landlock: Option<u32>,
    /// Whether stages are write-protected by it: it works, and is version 3 or newer.
    pub write_protection: bool,
    /// Why not, where not.
    pub without: Option<String>,
    /// Whether TCP can be denied.
    pub network: bool,
    /// Why reads cannot be observed, where they cannot.
    pub unobserved: Option<String>,
    /// Whether orphans can be adopted.
    pub subreaper: bool,
    /// Whether the kernel lists a process' children; without, all processes are looked at.
    pub child_lists: bool,
    /// The shells.
    pub shells: Shells,
    /// Processors that may be used.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory: u64,
}

/// Tries everything once, on a temporary folder.
pub fn probe() -> Probe {
    let tried = tempfile::tempdir().and_then(|folder| crate::confine::available(folder.path()).map(drop));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let path: &OsStr = &environment::Base::inherited().path;
    Probe {
        landlock: sys::landlock_abi(),
        write_protection: tried.is_ok(),
        without: tried.err().map(|error| error.to_string()),
        network: sys::landlock_abi().is_some_and(|abi| abi >= NETWORK_NEEDED),
        unobserved: crate::observe::available().err().map(|error| error.to_string()),
        subreaper: crate::family::become_subreaper().is_ok(),
        child_lists: proc::children_of_thread(own, own).is_some(),
        shells: Shells::probe(path),
        cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory: total_memory(),
    }
}

impl Probe {
    /// The version of Landlock that write protection needs.
    pub const LANDLOCK_NEEDED: u32 = NEEDED;

    /// The level of confinement that stages get where nobody asks for another.
    pub fn confinement(&self) -> Confinement {
        if self.write_protection { Confinement::Deny } else { Confinement::Declared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_described() {
        let host = describe_host();
        assert!(!host.name.is_empty() && host.system.contains("Linux"));
        assert_eq!(host.confinement, "none");
    }

    #[test]
    fn the_probe_explains_missing_protection() {
        let probe = probe();
        assert_eq!(probe.write_protection, probe.without.is_none());
        assert!(probe.cpus > 0 && probe.memory > 0 && probe.shells.sh.is_some());
    }
}
