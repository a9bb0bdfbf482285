//! Which installed packages modules come from, and what they are.
//!
//! A package is its version and what its installer recorded of its files (`RECORD`, without what depends on the
//! place: start scripts, compiled caches, the installer's own notes). It brings the packages that its metadata
//! requires. A module that no installer knows is the bytes of its files; so is one that is installed in editable
//! form.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use avow_model::loads::Loaded;
use serde::{Deserialize, Serialize};

use super::Identities;
use super::interpreter::Facts;
use super::memory::Witness;

/// Most files of one module that are hashed.
const MAX_FILES: usize = 20_000;

/// What modules come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packages {
    /// Packages and loose modules.
    pub found: BTreeMap<String, Loaded>,
    /// Modules that are nowhere.
    pub missing: BTreeSet<String>,
    /// What could not be identified, in words.
    pub doubts: Vec<String>,
}

/// An installed package.
struct Distribution {
    name: String,
    version: String,
    /// The folder it is installed in.
    site: PathBuf,
    /// Its own folder or file of metadata.
    about: PathBuf,
}

impl Identities {
    /// What some modules come from under an interpreter.
    pub fn packages(&self, interpreter: &str, modules: &BTreeSet<String>) -> Packages {
        if modules.is_empty() {
            return Packages::default();
        }
        let Some(facts) = self.interpreter(interpreter) else {
            return Packages { missing: modules.clone(), ..Packages::default() };
        };
        let names: Vec<&str> = modules.iter().map(String::as_str).collect();
        let key = format!("packages {} {}", facts.search.len(), names.join(" "));
        let place = facts.search.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(":");
        self.memory.answer(&format!("{key} {place}"), |witness| {
            let mut search = Search::new(&facts, witness);
            modules.iter().for_each(|module| search.module(module));
            search.packages
        })
    }

    /// What packages and loose modules of these names are under an interpreter.
    pub(super) fn named(
        &self,
        interpreter: &str,
        packages: &BTreeSet<String>,
        modules: &BTreeSet<String>,
    ) -> Packages {
        let Some(facts) =
            self.interpreter(interpreter).filter(|_| !(packages.is_empty() && modules.is_empty()))
        else {
            return Packages::default();
        };
        let words = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let place = facts.search.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(":");
        let key = format!("named packages {}, modules {}, in {place}", words(packages), words(modules));
        self.memory.answer(&key, |witness| {
            let mut search = Search::new(&facts, witness);
            packages.iter().for_each(|name| search.package(name));
            modules.iter().for_each(|module| search.module(module));
            search.packages
        })
    }

    /// Versions of everything installed for an interpreter, by normalised name.
    pub fn installed(&self, interpreter: &str) -> Option<BTreeMap<String, String>> {
        let facts = self.interpreter(interpreter)?;
        let place = facts.search.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(":");
        Some(self.memory.answer(&format!("installed {place}"), |witness| {
            let mut all = BTreeMap::new();
            for distribution in distributions(&facts, witness) {
                all.entry(distribution.name).or_insert(distribution.version);
            }
            all
        }))
    }
}

struct Search<'w> {
    witness: &'w mut Witness,
    folders: Vec<PathBuf>,
    all: Vec<Distribution>,
    packages: Packages,
}

impl<'w> Search<'w> {
    fn new(facts: &Facts, witness: &'w mut Witness) -> Search<'w> {
        let all = distributions(facts, witness);
        Search { witness, folders: folders(facts), all, packages: Packages::default() }
    }

    fn module(&mut self, module: &str) {
        let place = self.folders.iter().find_map(|folder| Some((folder.clone(), provides(folder, module)?)));
        let Some((site, at)) = place else { return self.hooked(module) };
        let owners = self.owners(&site, module);
        if owners.is_empty() {
            return self.loose(module, &at);
        }
        owners.into_iter().for_each(|index| self.distribution(index));
    }

    /// The packages of a folder that a module belongs to; several where it is a namespace.
    fn owners(&mut self, site: &Path, module: &str) -> Vec<usize> {
        let same = |d: &Distribution| d.site == site && d.name == normalised(module);
        if let Some(index) = self.all.iter().position(same) {
            return vec![index];
        }
        let here: Vec<usize> = (0..self.all.len()).filter(|i| self.all[*i].site == site).collect();
        let mut owners = Vec::new();
        for index in here {
            let about = self.all[index].about.clone();
            if lists(&about, module, self.witness) {
                owners.push(index);
            }
        }
        owners
    }

    /// A package by its name: the one that is found first.
    fn package(&mut self, name: &str) {
        if let Some(index) = self.all.iter().position(|distribution| distribution.name == name) {
            self.distribution(index);
        }
    }

    /// A package, and what it requires.
    fn distribution(&mut self, index: usize) {
        let Distribution { name, version, site, about } = &self.all[index];
        let key = format!("package {name}");
        if self.packages.found.contains_key(&key) {
            return;
        }
        let (version, site, about) = (version.clone(), site.clone(), about.clone());
        let content = recorded(&about, self.witness).or_else(|| self.provided(&site, &about));
        let content = content.unwrap_or_else(|| BlobDigest::of(version.as_bytes()));
        self.packages.found.insert(key, Loaded { version: Some(version), content });
        for required in requirements(&about, self.witness) {
            if let Some(next) = self.all.iter().position(|d| d.name == required) {
                self.distribution(next);
            }
        }
    }

    /// The bytes of the modules that a package without a record names.
    fn provided(&mut self, site: &Path, about: &Path) -> Option<BlobDigest> {
        let text = self.witness.text(&about.join("top_level.txt"))?;
        let mut hasher = blake3::Hasher::new();
        for module in text.split_whitespace() {
            if let Some(at) = provides(site, module) {
                hasher.update(content(&at, self.witness)?.as_bytes());
            }
        }
        Some(BlobDigest::from_bytes(*hasher.finalize().as_bytes()))
    }

    fn loose(&mut self, module: &str, at: &Path) {
        match content(at, self.witness) {
            Some(content) => {
                self.packages.found.insert(format!("module {module}"), Loaded::bare(content));
            }
            None => self.packages.doubts.push(format!(
                "the module `{module}` in `{}` cannot be read whole, so a change of it is not noticed",
                at.display()
            )),
        }
    }

    /// A module that an editable installation finds by a hook: its folder stands in the hook's text.
    fn hooked(&mut self, module: &str) {
        for folder in self.folders.clone() {
            for name in self.witness.names(&folder) {
                if !(name.starts_with("__editable__") && name.ends_with("_finder.py")) {
                    continue;
                }
                let text = self.witness.text(&folder.join(&name)).unwrap_or_default();
                let target =
                    text.split_once(&format!("'{module}': '")).and_then(|(_, rest)| rest.split('\'').next());
                if let Some(target) = target {
                    let file = PathBuf::from(format!("{target}.py"));
                    let at = if file.is_file() { file } else { PathBuf::from(target) };
                    return self.loose(module, &at);
                }
            }
        }
        self.packages.missing.insert(module.to_owned());
    }
}

/// Where an interpreter searches for what is installed: everything but the standard library.
fn folders(facts: &Facts) -> Vec<PathBuf> {
    let standard = |path: &Path| {
        path == facts.standard
            || path == facts.standard.join("lib-dynload")
            || path.extension().is_some_and(|extension| extension == "zip")
    };
    facts.search.iter().filter(|path| !standard(path)).cloned().collect()
}

fn distributions(facts: &Facts, witness: &mut Witness) -> Vec<Distribution> {
    let mut all = Vec::new();
    for site in folders(facts) {
        for file in witness.names(&site) {
            let stem = file.strip_suffix(".dist-info").or_else(|| file.strip_suffix(".egg-info"));
            let Some(stem) = stem else { continue };
            let about = site.join(&file);
            let (name, rest) = stem.split_once('-').unwrap_or((stem, ""));
            let version = rest.split("-py").next().unwrap_or_default().to_owned();
            let version = if version.is_empty() { stated(&about, witness) } else { version };
            all.push(Distribution { name: normalised(name), version, site: site.clone(), about });
        }
    }
    all
}

/// The version in a package's metadata.
fn stated(about: &Path, witness: &mut Witness) -> String {
    let text = metadata(about, witness);
    let line = text.lines().find_map(|line| line.strip_prefix("Version:"));
    line.unwrap_or_default().trim().to_owned()
}

fn metadata(about: &Path, witness: &mut Witness) -> String {
    let candidates = [about.join("METADATA"), about.join("PKG-INFO"), about.to_owned()];
    let file = candidates.iter().find(|file| file.is_file());
    file.and_then(|file| witness.text(file)).unwrap_or_default()
}

/// `Requires-Dist` without what only extras ask for.
fn requirements(about: &Path, witness: &mut Witness) -> Vec<String> {
    let text = metadata(about, witness);
    let head = text.split("\n\n").next().unwrap_or_default();
    let lines = head.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    let always =
        lines.filter(|line| !line.split_once(';').is_some_and(|(_, marker)| marker.contains("extra")));
    let name = |line: &str| {
        let end = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
        normalised(line.trim().split(end).next().unwrap_or_default())
    };
    always.map(name).filter(|name| !name.is_empty()).collect()
}

/// What an installer recorded of a package's files, without what depends on the place.
fn recorded(about: &Path, witness: &mut Witness) -> Option<BlobDigest> {
    let text = witness.text(&about.join("RECORD"))?;
    let own = about.file_name()?.to_string_lossy().into_owned();
    let of_the_place = |path: &str| {
        let note = path.strip_prefix(&own).and_then(|rest| rest.strip_prefix('/'));
        let note =
            note.is_some_and(|name| matches!(name, "RECORD" | "INSTALLER" | "REQUESTED" | "direct_url.json"));
        // `_virtualenv.py` and the like aside, an editable installation lists a `.pth` that names a folder.
        note || path.starts_with("..")
            || path.starts_with('/')
            || path.contains("__pycache__")
            || path.ends_with(".pth")
    };
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.retain(|line| !of_the_place(line.split(',').next().unwrap_or_default()));
    lines.sort_unstable();
    Some(BlobDigest::of(lines.join("\n").as_bytes()))
}

/// Whether a package's record (or list of modules) names files of a module.
fn lists(about: &Path, module: &str, witness: &mut Witness) -> bool {
    let named = |text: String, separators: &[char]| {
        text.lines().any(|line| {
            let rest = line.trim().strip_prefix(module);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(separators))
        })
    };
    match witness.text(&about.join("RECORD")) {
        Some(text) => named(text, &['/', '.']),
        None => witness.text(&about.join("top_level.txt")).is_some_and(|text| named(text, &[])),
    }
}

/// What a folder on the search path has for a module: a package, a source, a compiled module.
fn provides(folder: &Path, module: &str) -> Option<PathBuf> {
    let (package, source) = (folder.join(module), folder.join(format!("{module}.py")));
    if package.join("__init__.py").is_file() {
        return Some(package);
    }
    if source.is_file() {
        return Some(source);
    }
    let compiled = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name()).find(|name| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(module)?.strip_suffix(".so"));
        rest.is_some_and(|tag| tag.is_empty() || tag.starts_with('.'))
    });
    compiled.map(|name| folder.join(name)).or_else(|| package.is_dir().then_some(package))
}

/// The bytes of a file, or of all files of a folder with their paths, caches aside.
fn content(at: &Path, witness: &mut Witness) -> Option<BlobDigest> {
    if at.is_file() {
        return witness.digest(at);
    }
    let mut hasher = blake3::Hasher::new();
    let (mut open, mut files) = (vec![at.to_owned()], 0);
    while let Some(folder) = open.pop() {
        for name in witness.names(&folder) {
            let path = folder.join(&name);
            if path.is_dir() {
                if name != "__pycache__" && !name.starts_with('.') && !path.is_symlink() {
                    open.push(path);
                }
                continue;
            }
            files += 1;
            if files > MAX_FILES {
                return None;
            }
            let inner = path.strip_prefix(at).ok()?.to_string_lossy().into_owned();
            hasher.update(&(inner.len() as u64).to_le_bytes()).update(inner.as_bytes());
            hasher.update(witness.digest(&path)?.as_bytes());
        }
    }
    Some(BlobDigest::from_bytes(*hasher.finalize().as_bytes()))
}

/// The one spelling of a package's name: `Foo._Bar` is `foo-bar`.
pub(super) fn normalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.trim().chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}
