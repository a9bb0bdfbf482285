//! The shared libraries of a compiled program, found as the loader finds them and without running anything.
//!
//! Searched are the folders that the file names (`DT_RPATH`, `DT_RUNPATH`, with `$ORIGIN`), then those that
//! `/etc/ld.so.conf` lists, then the usual ones. `LD_LIBRARY_PATH` does not reach a stage unless it is declared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goblin::elf::Elf;
use serde::{Deserialize, Serialize};

use super::memory::Witness;

/// Most libraries that are followed.
const MAX: usize = 1_000;

/// Where the loader looks last.
const USUAL: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

/// The libraries of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linked {
    /// Where each one lies, by the name it is asked for.
    pub found: BTreeMap<String, PathBuf>,
    /// Names that are nowhere.
    pub missing: Vec<String>,
}

/// What a file says about what it needs.
struct Needs {
    wide: bool,
    machine: u16,
    libraries: Vec<String>,
    loader: Option<PathBuf>,
    /// Folders for its own needs and for those of everything below it.
    inherited: Vec<PathBuf>,
    /// Folders for its own needs alone.
    own: Vec<PathBuf>,
}

/// Follows the libraries of a program; nothing where it is no compiled program or is linked statically.
pub(super) fn linked(program: &Path, witness: &mut Witness) -> Linked {
    let mut linked = Linked::default();
    let Some(first) = needs(program, witness) else { return linked };
    if let Some(loader) = first.loader.as_ref().filter(|loader| loader.is_file()) {
        let name = loader.file_name().unwrap_or_default().to_string_lossy().into_owned();
        linked.found.insert(name, loader.clone());
    }
    let system = system_folders(witness);
    let target = (first.wide, first.machine);
    let mut open = vec![(first, Vec::new())];
    while let Some((file, above)) = open.pop() {
        let inherited: Vec<PathBuf> = file.inherited.iter().chain(&above).cloned().collect();
        let folders = || inherited.iter().chain(&file.own).chain(&system);
        for name in &file.libraries {
            if linked.found.contains_key(name) || linked.missing.contains(name) || linked.found.len() > MAX {
                continue;
            }
            match folders().find_map(|folder| fitting(&folder.join(name), target, witness)) {
                Some((path, needs)) => {
                    linked.found.insert(name.clone(), path);
                    open.push((needs, inherited.clone()));
                }
                None => linked.missing.push(name.clone()),
            }
        }
    }
    linked
}

/// The library of a name that the loader finds for a program which names these folders.
pub(super) fn named(name: &str, folders: &[PathBuf], witness: &mut Witness) -> Option<PathBuf> {
    let own = needs(&std::env::current_exe().ok()?, witness)?;
    let target = (own.wide, own.machine);
    let system = system_folders(witness);
    let mut all = folders.iter().chain(&system);
    all.find_map(|folder| fitting(&folder.join(name), target, witness)).map(|(path, _)| path)
}

/// The absolute folders in which the bytes of a compiled program tell the loader to look.
pub(crate) fn folders(bytes: &[u8]) -> Vec<PathBuf> {
    let Ok(elf) = Elf::parse(bytes) else { return Vec::new() };
    let lists = if elf.runpaths.is_empty() { &elf.rpaths } else { &elf.runpaths };
    let all = lists.iter().flat_map(|list| list.split(':'));
    all.filter(|folder| folder.starts_with('/')).map(PathBuf::from).collect()
}

/// The file itself, where it is there and made for this machine.
fn fitting(path: &Path, target: (bool, u16), witness: &mut Witness) -> Option<(PathBuf, Needs)> {
    // Also where nothing is: it may come to be there.
    if !witness.look(path) {
        return None;
    }
    let needs = needs(path, witness)?;
    ((needs.wide, needs.machine) == target).then(|| (path.to_owned(), needs))
}

fn needs(path: &Path, witness: &mut Witness) -> Option<Needs> {
    use std::io::Read;
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).ok()?;
    if &magic != b"\x7fELF" {
        return None;
    }
    let bytes = witness.read(path)?;
    let elf = Elf::parse(&bytes).ok()?;
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let origin = real.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let folders = |lists: &[&str]| -> Vec<PathBuf> {
        let all = lists.iter().flat_map(|list| list.split(':')).filter(|folder| !folder.is_empty());
        all.map(|f| PathBuf::from(f.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))).collect()
    };
    // The loader ignores the older field where the newer one is there.
    let inherited = if elf.runpaths.is_empty() { folders(&elf.rpaths) } else { Vec::new() };
    Some(Needs {
        wide: elf.is_64,
        machine: elf.header.e_machine,
        libraries: elf.libraries.iter().map(|name| (*name).to_owned()).collect(),
        loader: elf.interpreter.map(PathBuf::from),
        inherited,
        own: folders(&elf.runpaths),
    })
}

/// The folders that the system's configuration lists, then the usual ones.
fn system_folders(witness: &mut Witness) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    listed(Path::new("/etc/ld.so.conf"), 0, &mut folders, witness);
    // What `ldconfig` found changes this file.
    witness.look(Path::new("/etc/ld.so.cache"));
    folders.extend(USUAL.map(PathBuf::from));
    folders
}

fn listed(file: &Path, depth: u32, folders: &mut Vec<PathBuf>, witness: &mut Witness) {
    let Some(text) = witness.text(file) else { return };
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include ") {
            // The one pattern in use is `FOLDER/*.conf`.
            Some(pattern) if depth < 4 => {
                let Some((folder, pattern)) = pattern.trim().rsplit_once('/') else { continue };
                let suffix = pattern.trim_start_matches('*');
                for name in witness.names(Path::new(folder)).iter().filter(|name| name.ends_with(suffix)) {
                    listed(&Path::new(folder).join(name), depth + 1, folders, witness);
                }
            }
            None if line.starts_with('/') => folders.push(line.into()),
            _ => {}
        }
    }
}
