//! What this machine has of the things that a stage's programs loaded where it was planned.
//!
//! The record of what was loaded has names and contents, and no places. Each name is looked for in the way in which it
//! was found there: libraries as the loader finds them for the programs that the stage starts, packages under its
//! interpreters.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use avow_model::loads::{Loaded, Loads};

use super::{Identified, Identities};

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sought<'a> {
    /// The programs that the stage starts, by the words of its command.
    pub words: Vec<&'a str>,
    /// Folders in which compiled programs of the project look for libraries.
    pub folders: Vec<PathBuf>,
    /// What was loaded there.
    pub loads: Option<&'a Loads>,
}

/// What was found so far.
struct Here<'a> {
    wanted: &'a Loads,
    found: BTreeMap<String, Loaded>,
}

impl Here<'_> {
    fn wants(&self, name: &str) -> bool {
        self.wanted.0.contains_key(name)
    }

    /// Later ones replace earlier ones, as where the record was made. Packages are sought under every interpreter of
    /// the stage, and the one that fits is the one that was meant.
    fn add(&mut self, found: Identified) {
        for (name, loaded) in found.loads {
            let Some(wanted) = self.wanted.0.get(&name) else { continue };
            let package = name.starts_with("package ") || name.starts_with("module ");
            if !(package && self.found.get(&name) == Some(wanted)) {
                self.found.insert(name, loaded);
            }
        }
    }

    /// The names of one kind that are wanted.
    fn named(&self, kind: &str) -> BTreeSet<String> {
        let names = self.wanted.0.keys().filter_map(|name| name.strip_prefix(kind)?.strip_prefix(' '));
        names.map(str::to_owned).collect()
    }
}

impl Identities {
    /// For each name that is sought what is here; nothing for what is not here at all.
    pub fn here(&self, sought: &Sought<'_>) -> Loads {
        let Some(wanted) = sought.loads else { return Loads::default() };
        let mut here = Here { wanted, found: BTreeMap::new() };
        if here.wants("program sh") {
            here.add(self.shell_like(wanted));
        }
        let named: BTreeSet<String> = here.named("program");
        let words = sought.words.iter().copied().chain(named.iter().map(String::as_str));
        let (pythons, others): (BTreeSet<&str>, BTreeSet<&str>) = words.partition(|word| is_python(word));
        for word in others.iter().filter(|word| **word != "sh") {
            here.add(self.content(word));
            here.add(self.program(word));
        }
        for word in &pythons {
            // One that was called through a script's first line has no version in the record.
            let plain = wanted.0.get(&format!("program {word}")).is_some_and(|known| known.version.is_none());
            here.add(if plain { self.content(word) } else { self.python(word) });
            here.add(self.program(word));
            let packages = self.named(word, &here.named("package"), &here.named("module"));
            here.add(Identified { loads: packages.found, ..Identified::default() });
        }
        for name in here.named("library") {
            if !here.found.contains_key(&format!("library {name}")) {
                here.add(self.library(&name, &sought.folders));
            }
        }
        Loads(here.found)
    }

    /// The shell that fits: which of the two a stage gets depends on whether its text has a pipe.
    fn shell_like(&self, wanted: &Loads) -> Identified {
        let shell = self.shell("");
        let same = |shell: &Identified| shell.loads.get("program sh") == wanted.0.get("program sh");
        if same(&shell) {
            return shell;
        }
        let piped = self.shell("|");
        if same(&piped) { piped } else { shell }
    }
}

/// Whether a word starts an interpreter of Python.
fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}
