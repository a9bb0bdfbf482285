//! Where the programs of a stage have their files: an interpreter's standard library, installed packages, the
//! base of a virtual environment.
//!
//! Everything follows from the file that is started and from the folders of `PATH`, without running anything:
//!
//! - a program in `PREFIX/bin` belongs to the installation `PREFIX` (conda, pyenv, uv, a virtual environment);
//! - a `pyvenv.cfg` names the interpreter that a virtual environment stands on;
//! - a link leads to the real program, which has an installation too;
//! - a script names its interpreter in the first line (`pipx`, version managers);
//! - a folder `shims` belongs to a version manager, which lies around it.
//!
//! The home folder and the project are never opened as a whole, whatever points there. Besides, a few folders
//! of the home are known to hold nothing but installed programs and packages: [`HOMES`].

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::grants::Closed;

/// Folders of the home that hold installed programs and packages of language runtimes.
pub(crate) const HOMES: [&str; 18] = [
    ".local/lib",
    ".local/pipx",
    ".local/share/pipx",
    ".local/share/uv",
    ".local/share/mise",
    ".local/share/virtualenvs",
    ".asdf",
    ".cargo/git",
    ".cargo/registry",
    ".gem",
    ".ghcup",
    ".julia",
    ".nvm",
    ".opam",
    ".pyenv/versions",
    ".rbenv/versions",
    ".rustup",
    "R",
];
/// Files by which version managers choose a program, in the project and in the home.
const CHOICES: [&str; 9] = [
    ".python-version",
    ".tool-versions",
    ".mise.toml",
    "mise.toml",
    ".node-version",
    ".nvmrc",
    ".ruby-version",
    "rust-toolchain",
    "rust-toolchain.toml",
];
/// Folders of programs that stand directly in their installation.
const PROGRAM_FOLDERS: [&str; 6] = ["bin", "sbin", "libexec", "condabin", "shims", ".bin"];
/// How many interpreters of interpreters are followed.
const DEPTH: u32 = 6;

/// What is installed for the named programs and for everything on a `PATH`.
pub(crate) fn installed(
    programs: &BTreeSet<PathBuf>,
    path: &OsStr,
    home: &Path,
    closed: &Closed,
) -> BTreeSet<PathBuf> {
    let mut search = Search { path, closed, home, found: BTreeSet::new() };
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.for_each(|folder| search.folder(&folder, DEPTH));
    programs.iter().for_each(|program| search.program(program, DEPTH));
    for name in ["python3", "python"] {
        if let Some(program) = find(path, name) {
            search.program(&program, DEPTH);
        }
    }
    search.found.extend(HOMES.iter().map(|name| home.join(name)));
    let roots = [Some(home), closed.project()];
    let choices = roots.into_iter().flatten().flat_map(|root| CHOICES.map(|name| root.join(name)));
    search.found.extend(choices);
    search.found.retain(|path| path.exists());
    search.found
}

struct Search<'a> {
    path: &'a OsStr,
    closed: &'a Closed,
    home: &'a Path,
    found: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// Opens it, unless that opened the home or the project as a whole; whether it is new.
    fn open(&mut self, path: PathBuf) -> bool {
        !self.closed.would_open(&path) && self.found.insert(path)
    }

    /// A program with its installation, its real file and its interpreter.
    fn program(&mut self, file: &Path, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        self.open(file.to_owned());
        if let Some(folder) = file.parent() {
            self.folder(folder, depth);
        }
        let Ok(real) = file.canonicalize() else { return };
        if real != file {
            self.program(&real, depth);
            return;
        }
        if let Some(interpreter) = self.interpreter(&real) {
            self.program(&interpreter, depth);
        }
    }

    /// A folder of programs, with the installation around it.
    fn folder(&mut self, folder: &Path, depth: u32) {
        let Ok(real) = folder.canonicalize() else { return };
        if !self.open(real.clone()) {
            return;
        }
        let within = real.file_name().is_some_and(|name| PROGRAM_FOLDERS.iter().any(|known| name == *known));
        let Some(around) = real.parent().filter(|_| within) else { return };
        // What people keep in `~/.local` beside programs is not part of any of them.
        if around != self.home.join(".local") {
            self.open(around.to_owned());
        }
        self.base(around, depth);
    }

    /// The interpreter beneath a virtual environment.
    fn base(&mut self, environment: &Path, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let Ok(text) = fs::read_to_string(environment.join("pyvenv.cfg")) else { return };
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        if let Some((_, home)) = pairs.into_iter().find(|(key, _)| key.trim() == "home") {
            self.folder(Path::new(home.trim()), depth);
        }
        for name in ["python3", "python"] {
            self.program(&environment.join("bin").join(name), depth);
        }
    }

    /// What the first line of a script names.
    fn interpreter(&self, file: &Path) -> Option<PathBuf> {
        let mut start = [0; 256];
        let read = fs::File::open(file).and_then(|mut file| file.read(&mut start)).ok()?;
        let line = start[..read].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let first = Path::new(words.next()?);
        if first.file_name()? != "env" {
            return first.is_absolute().then(|| first.to_owned());
        }
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        find(self.path, name)
    }
}

/// The first executable file of this name on `path`.
pub(crate) fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    crate::program::search(path, name).ok()
}
