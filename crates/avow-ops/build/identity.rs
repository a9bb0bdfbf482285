//! The identity of an operation: one digest over everything it is compiled from.
//!
//! | enters | why |
//! |---|---|
//! | the bytes of every source file reached in workspace crates | the code |
//! | name, version and checksum of every locked package reached | the code of others |
//! | the workspace's requirement line of each package used directly | its features |
//! | `rustc -vV`, target, target features, optimisation level | the same code may give other bytes |
//!
//! Absent on purpose: paths outside the crates, the profile's debug settings, the crate's version, times.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use super::closure::{Reached, Sources};
use super::lock::Lock;

/// Where sources and locked packages are looked up.
pub struct Workspace {
    /// The workspace crates.
    pub sources: Sources,
    /// The locked packages.
    pub lock: Lock,
    /// The text of the workspace's manifest.
    pub requirements: String,
}

/// What compiles.
pub struct Machine {
    /// What `rustc -vV` says.
    pub compiler: String,
    /// The target triple.
    pub target: String,
    /// The target features that the compiler may assume.
    pub features: String,
    /// The optimisation level.
    pub optimisation: String,
}

/// The identity, in hexadecimal.
pub fn of(workspace: &Workspace, reached: &Reached, machine: &Machine) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut enter = |kind: &str, bytes: &[u8]| {
        for part in [kind.as_bytes(), bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    };
    enter("encoding", b"avow-op/1");
    enter("compiler", machine.compiler.as_bytes());
    enter("target", machine.target.as_bytes());
    enter("features", machine.features.as_bytes());
    enter("optimisation", machine.optimisation.as_bytes());
    for file in &reached.files {
        enter("module", format!("{}::{}", file.krate, file.module.join("::")).as_bytes());
        enter("source", &fs::read(&file.path)?);
    }
    let mut packages = BTreeSet::new();
    for (krate, name) in &reached.outside {
        if let Some(package) = workspace.lock.dependency(krate, name) {
            packages.extend(workspace.lock.closure(krate, name));
            if let Some(line) = requirement(&workspace.requirements, package) {
                enter("requirement", line.as_bytes());
            }
        }
    }
    for package in &packages {
        enter("package", package.as_bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The line of the workspace's manifest that asks for a package.
fn requirement<'a>(manifest: &'a str, package: &str) -> Option<&'a str> {
    manifest.lines().find(|line| line.split_once(" = ").is_some_and(|(key, _)| key == package))
}
