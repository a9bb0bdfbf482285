//! What programs load: shared libraries, installed packages, the shell, and the interpreter behind a script.
//!
//! Nothing is executed but an interpreter that is asked, once for each state it is in, where it searches. Answers
//! are remembered with the stamps of every file and folder they were read from (`memory`), so that an unchanged
//! environment costs a few looks.
//!
//! Identities do not depend on where something is installed: a library is its bytes, a package is its version
//! and what its installer recorded of its files. What a program opens while it runs (`dlopen`, plug-ins) is not
//! seen here; tracing its reads shows it.

mod elf;
mod here;
mod interpreter;
mod memory;
mod packages;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use avow_model::loads::Loaded;

pub use self::elf::Linked;
pub(crate) use self::elf::folders as library_folders;
pub use self::here::Sought;
pub use self::interpreter::Facts;
use self::memory::{Memory, Witness};
pub use self::packages::Packages;
use crate::environment::Base;
use crate::program::{Shells, search};

/// Identifies what programs of one project load.
pub struct Identities {
    root: PathBuf,
    base: Base,
    memory: Memory,
}

/// What identifying found, by kind and name, and what it could not identify.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identified {
    /// What is loaded.
    pub loads: BTreeMap<String, Loaded>,
    /// What could not be identified, in words.
    pub doubts: Vec<String>,
    /// The files of libraries, which a confined stage must be able to read wherever they lie.
    pub paths: Vec<PathBuf>,
}

impl Identified {
    fn extend(&mut self, other: Identified) {
        self.loads.extend(other.loads);
        self.doubts.extend(other.doubts);
        self.paths.extend(other.paths);
    }

    fn add(&mut self, kind: &str, name: &str, content: BlobDigest) {
        self.loads.insert(format!("{kind} {name}"), Loaded::bare(content));
    }
}

impl Identities {
    /// For a project; what is found out is remembered in the file `memory`, where one is given.
    pub fn new(root: impl Into<PathBuf>, memory: Option<PathBuf>) -> Identities {
        Identities { root: root.into(), base: Base::inherited(), memory: Memory::open(memory) }
    }

    /// Writes down what was learnt. To be called once, where the project has a store.
    pub fn remember(&self) {
        self.memory.save();
    }

    /// Where programs are searched.
    fn path(&self) -> &OsStr {
        &self.base.path
    }

    /// The file that a word starts: absolute, or found on `PATH`.
    pub fn find(&self, word: &str) -> Option<PathBuf> {
        if word.contains('/') {
            let path = Path::new(word);
            return (path.is_absolute() && path.is_file()).then(|| path.to_owned());
        }
        search(self.path(), word).ok()
    }

    /// The shell that a text is given to, with its libraries.
    pub fn shell(&self, text: &str) -> Identified {
        let piped = text.replace("||", "").contains('|');
        let shell = if piped { self.shell_for_pipes() } else { self.find("sh") };
        let Some(shell) = shell else { return Identified::default() };
        self.remembered("shell", &shell, |witness| {
            let mut found = Identified::default();
            if let Some(content) = witness.digest(&shell) {
                found.add("program", "sh", content);
            }
            found.extend(libraries(&shell, witness));
            found
        })
    }

    fn shell_for_pipes(&self) -> Option<PathBuf> {
        let sh = self.find("sh")?;
        // Whether a shell has an option is asked of the shell, once.
        let chosen = self.memory.answer(&format!("pipes {}", sh.display()), |witness| {
            witness.look(&sh);
            let shells = Shells::probe(self.path());
            let bash = if shells.pipefail { None } else { shells.bash };
            bash.unwrap_or_else(|| sh.clone())
        });
        Some(chosen)
    }

    /// What a program of this machine loads, found by a word. The program's own bytes are not part of it, but
    /// for a script, whose interpreter is.
    pub fn program(&self, word: &str) -> Identified {
        let Some(file) = self.find(word) else { return Identified::default() };
        self.loaded_by(&file)
    }

    /// The bytes of a program that is found by a word.
    pub fn content(&self, word: &str) -> Identified {
        let Some(file) = self.find(word) else { return Identified::default() };
        self.remembered("content", &file, |witness| {
            let mut found = Identified::default();
            if let Some(content) = witness.digest(&file) {
                found.add("program", word, content);
            }
            found
        })
    }

    /// The interpreter behind a word, whatever launcher stands in between, with its libraries.
    pub fn python(&self, word: &str) -> Identified {
        let Some(facts) = self.interpreter(word) else { return Identified::default() };
        let mut found = self.remembered(&format!("python {word}"), &facts.executable, |witness| {
            let mut found = Identified::default();
            if let Some(content) = witness.digest(&facts.executable) {
                let name = word.rsplit('/').next().unwrap_or(word);
                let loaded = Loaded { version: Some(facts.version.clone()), content };
                found.loads.insert(format!("program {name}"), loaded);
            }
            found
        });
        found.extend(self.loaded_by(&facts.executable));
        found
    }

    /// What a file that is started loads: a compiled program its libraries, a script its interpreter.
    pub fn loaded_by(&self, file: &Path) -> Identified {
        match first_line(file) {
            Some(line) => self.script(file, &line),
            None => self.remembered("libraries", file, |witness| libraries(file, witness)),
        }
    }

    /// The interpreter in a script's first line, and for Python what the script imports.
    fn script(&self, file: &Path, line: &str) -> Identified {
        let mut words =
            line.split_whitespace().skip_while(|word| word.ends_with("/env") || word.starts_with('-'));
        let Some(interpreter) = words.next() else { return Identified::default() };
        let name = interpreter.rsplit('/').next().unwrap_or(interpreter).to_owned();
        let Some(program) = self.find(interpreter) else { return Identified::default() };
        let mut found = self.remembered("interpreter", &program, |witness| {
            let mut found = Identified::default();
            if let Some(content) = witness.digest(&program) {
                found.add("program", &name, content);
            }
            if first_line(&program).is_none() {
                found.extend(libraries(&program, witness));
            }
            found
        });
        // An installed command is three lines that import what it is made of.
        if name.starts_with("python") && !file.starts_with(&self.root) {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let modules: BTreeSet<String> = text.lines().filter_map(imported).collect();
            let packages = self.packages(&program.to_string_lossy(), &modules);
            found.loads.extend(packages.found);
            found.doubts.extend(packages.doubts);
        }
        found
    }

    /// A library by its name alone, as the loader finds it for a program of this machine that names these folders.
    fn library(&self, name: &str, folders: &[PathBuf]) -> Identified {
        let at: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        self.memory.answer(&format!("named library {name} {}", at.join(":")), |witness| {
            let mut found = Identified::default();
            if let Some(path) = elf::named(name, folders, witness)
                && let Some(content) = witness.digest(&path)
            {
                found.add("library", name, content);
                found.paths.push(path);
            }
            found
        })
    }

    /// The libraries of a compiled program that lie in the project, by path from its root.
    pub fn inside(&self, program: &Path) -> Vec<String> {
        if first_line(program).is_some() {
            return Vec::new();
        }
        let linked: Linked = self.memory.answer(&format!("linked {}", program.display()), |witness| {
            witness.look(program);
            elf::linked(program, witness)
        });
        let inside = linked.found.values().filter_map(|path| path.strip_prefix(&self.root).ok());
        inside.filter_map(|path| path.to_str().map(str::to_owned)).collect()
    }

    fn remembered(
        &self,
        what: &str,
        file: &Path,
        find: impl FnOnce(&mut Witness) -> Identified,
    ) -> Identified {
        self.memory.answer(&format!("{what} {}", file.display()), |witness| {
            witness.look(file);
            find(witness)
        })
    }

    /// The environment in which interpreters are asked: that of a stage.
    fn asking(&self) -> [(OsString, OsString); 3] {
        [
            ("PATH".into(), self.base.path.clone()),
            ("HOME".into(), self.base.home.clone()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ]
    }
}

/// The libraries of a compiled program, by their bytes.
fn libraries(program: &Path, witness: &mut Witness) -> Identified {
    let linked = elf::linked(program, witness);
    let mut found = Identified::default();
    for (name, path) in &linked.found {
        if let Some(content) = witness.digest(path) {
            found.add("library", name, content);
            found.paths.push(path.clone());
        }
    }
    found
}

/// The first line of a script, behind its `#!`; `None` for anything else.
fn first_line(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(file).ok()?.take(512).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// The top-level module that a line imports.
fn imported(line: &str) -> Option<String> {
    let words = line.trim_start();
    let rest = words.strip_prefix("from ").or_else(|| words.strip_prefix("import "))?;
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    let name = rest.trim_start().split(end).next().filter(|name| !name.is_empty())?;
    (!matches!(name, "sys" | "re" | "os" | "importlib")).then(|| name.to_owned())
}
