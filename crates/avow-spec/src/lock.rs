//! What a lock file pins, and where that is not what is installed.
//!
//! Read are `uv.lock`, requirements files, and conda's environment, explicit and lock files, each as far as it pins
//! versions by name. A package that a lock knows in several versions, for several systems, is well with any of
//! them. Names and versions are compared as PEP 503 and PEP 440 say: `Foo_Bar` is `foo-bar`, `1.0` is `1.0.0`, and a
//! local part (`2.1+cpu`) matters only where the lock has one.

mod conda;
mod open;
mod plain;

use std::collections::{BTreeMap, BTreeSet};

pub use open::{Open, open};
pub use plain::plain;

/// The packages that a lock file pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// Versions by normalised name.
    packages: BTreeMap<String, Pin>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pin {
    versions: BTreeSet<String>,
    /// Whether it is wanted on every system.
    always: bool,
}

/// A package that is installed in another version than the lock wants, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Its normalised name.
    pub package: String,
    /// The versions wanted.
    pub wanted: String,
    /// The version found; `None` where it is not installed.
    pub found: Option<String>,
}

impl Lock {
    /// Reads a lock file of a manager (`uv`, `pip`, `conda`). Lines that pin nothing are passed over.
    pub fn read(manager: &str, text: &str) -> Lock {
        let mut lock = Lock::default();
        // As the plain form says it, so that the two never say different things.
        let form = plain(manager, text);
        let text = form.as_deref().unwrap_or(text);
        match manager {
            "uv" => lock.uv(text),
            "pip" => text.lines().for_each(|line| lock.requirement(line, true)),
            "conda" => lock.conda(text),
            _ => {}
        }
        lock
    }

    fn pin(&mut self, name: &str, version: &str, always: bool) {
        let (name, version) = (name.trim(), version.trim().trim_matches(['"', '\'']));
        let wild = version.contains('*') || !version.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
        // Anything else is the name of no package and no version of one.
        let word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+!".contains(c));
        if name.is_empty() || wild || !word(name) || !word(version) {
            return;
        }
        let pin = self.packages.entry(normalised(name)).or_default();
        pin.versions.insert(version.to_owned());
        pin.always |= always;
    }

    /// Packages of the project itself (`editable`, `virtual`, …) pin nothing; markers make any of them optional.
    fn uv(&mut self, text: &str) {
        let Ok(lock) = toml::from_str::<toml::Table>(text) else { return };
        for package in lock.get("package").and_then(|packages| packages.as_array()).into_iter().flatten() {
            let source = package.get("source").and_then(|source| source.as_table());
            let own = source.is_some_and(|source| {
                ["editable", "virtual", "directory", "path"].iter().any(|kind| source.contains_key(*kind))
            });
            let value = |key| package.get(key).and_then(|value| value.as_str());
            if let (Some(name), Some(version), false) = (value("name"), value("version"), own) {
                self.pin(name, version, false);
            }
        }
    }

    /// `name[extra]==1.2; marker --hash=…`
    fn requirement(&mut self, line: &str, always: bool) {
        if !line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return;
        }
        let (wanted, marker) = line.split_once(';').map_or((line, None), |(a, b)| (a, Some(b)));
        let Some((name, version)) = wanted.split_once("==") else { return };
        let name = name.split(['[', '(']).next().unwrap_or(name);
        let ends = |c: char| c.is_whitespace() || c == ',' || c == ')';
        let version = version.trim_start_matches('=').split(ends).find(|part| !part.is_empty());
        self.pin(name, version.unwrap_or_default(), always && marker.is_none());
    }

    /// What conda installs may be no Python package at all, so nothing of it has to be found.
    fn conda(&mut self, text: &str) {
        if text.lines().any(|line| line.trim() == plain::EXPLICIT) {
            return text
                .lines()
                .map(str::trim)
                .filter(|line| line.contains("://"))
                .for_each(|line| self.archive(line));
        }
        let wanted = conda::wanted(text);
        for line in &wanted.dependencies {
            match line.contains("==") {
                true => self.requirement(line, false),
                false => self.spaced(line),
            }
        }
        wanted.pip.iter().for_each(|line| self.requirement(line, false));
        wanted.locked.iter().for_each(|(name, version)| self.pin(name, version, false));
    }

    /// `name=1.2=build`
    fn spaced(&mut self, wanted: &str) {
        let mut parts = wanted.split('=');
        let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        // A channel may stand before the name. `python` is the interpreter, which is identified by itself.
        let name = name.rsplit("::").next().unwrap_or(name);
        if name != "python" {
            self.pin(name, version, false);
        }
    }

    /// `https://…/name-1.2-build.conda#digest`
    fn archive(&mut self, line: &str) {
        let file = line.split('#').next().unwrap_or(line).rsplit('/').next().unwrap_or_default();
        let mut parts = file.rsplitn(3, '-');
        if let (Some(_build), Some(version), Some(name)) = (parts.next(), parts.next(), parts.next())
            && name != "python"
        {
            self.pin(name, version, false);
        }
    }

    /// What is installed otherwise than this lock wants, by name.
    pub fn mismatches(&self, installed: &BTreeMap<String, String>) -> Vec<Mismatch> {
        let mut all = Vec::new();
        for (package, Pin { versions, always }) in &self.packages {
            let found = installed.get(package);
            let well = match found {
                Some(found) => versions.iter().any(|wanted| same_version(wanted, found)),
                None => !always,
            };
            if !well {
                let wanted: Vec<&str> = versions.iter().map(String::as_str).collect();
                let (package, wanted) = (package.clone(), wanted.join(" or "));
                all.push(Mismatch { package, wanted, found: found.cloned() });
            }
        }
        all
    }
}

/// Lines without comments, continued ones joined.
fn logical(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let bare = |line: &str| {
        let blank = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
        let comment = line.match_indices('#').map(|(at, _)| at).find(|at| blank(*at));
        let said = comment.map_or(line, |at| &line[..at]);
        // What looks as if it went on and does not would swallow the next line of a plain form.
        said.trim_end_matches(|c: char| c == '\\' || c.is_whitespace()).trim_start().to_owned()
    };
    joined.lines().map(bare).filter(|line| !line.is_empty()).collect()
}

/// A name as indexes compare it.
fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

fn same_version(wanted: &str, found: &str) -> bool {
    let lower = |version: &str| version.trim().trim_start_matches(['v', 'V']).to_ascii_lowercase();
    let (wanted, mut found) = (lower(wanted), lower(found));
    if !wanted.contains('+')
        && let Some(plus) = found.find('+')
    {
        found.truncate(plus);
    }
    parts(&wanted) == parts(&found)
}

/// Digits and words apart, separators and trailing zeros of the release left out: `1.0.0rc1` is `1 rc 1`.
fn parts(version: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut kind = None;
    for c in version.chars() {
        let now = c.is_ascii_digit();
        if !c.is_ascii_alphanumeric() && c != '+' && c != '!' {
            kind = None;
            continue;
        }
        if kind == Some(now)
            && let Some(last) = all.last_mut()
        {
            last.push(c);
        } else {
            all.push(c.to_string());
        }
        kind = Some(now);
    }
    for part in &mut all {
        let bare = part.trim_start_matches('0');
        if part.starts_with('0') {
            *part = if bare.is_empty() { "0".to_owned() } else { bare.to_owned() };
        }
    }
    let is_number = |part: &String| part.starts_with(|c: char| c.is_ascii_digit());
    let release = all.iter().position(|part| !is_number(part)).unwrap_or(all.len());
    let zeros = all[..release].iter().rev().take_while(|part| *part == "0").count();
    all.drain(release - zeros..release);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(manager: &str, text: &str, installed: &[(&str, &str)]) -> Vec<String> {
        let installed = installed.iter().map(|(name, version)| (name.to_string(), version.to_string()));
        let found = Lock::read(manager, text).mismatches(&installed.collect());
        let found = found.into_iter().map(|m| format!("{} {} {:?}", m.package, m.wanted, m.found));
        found.map(|line| line.replace("Some(\"", "").replace("\")", "")).collect()
    }

    #[test]
    fn requirements_are_read_with_hashes_markers_and_continued_lines() {
        let text = "# made by a tool\n--index-url https://example.org\nNumPy==1.26.4 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd\n\
                    torch[cuda]==2.1.0  # via x\nwin-only==1.0; sys_platform == 'win32'\nopen>=1\nfile @ https://example.org/f.whl\n";
        let well = [("numpy", "1.26.4"), ("torch", "2.1.0+cpu"), ("open", "3")];
        assert_eq!(told("pip", text, &well), [""; 0]);
        assert_eq!(told("pip", text, &[("numpy", "1.26.3"), ("torch", "2.1")]), ["numpy 1.26.4 1.26.3"]);
        assert_eq!(told("pip", text, &[("torch", "2.1.0")]), ["numpy 1.26.4 None"]);
        assert_eq!(told("pip", "a==1.*\nb===2.0\n", &[("a", "2"), ("b", "2")]), [""; 0]);
        assert_eq!(
            told("pip", "a (==1)\nb c==1\nd == 1{\ne\rf==1\ng==2\t# b\n", &[]),
            ["a 1 None", "g 2 None"]
        );
    }

    #[test]
    fn a_uv_lock_may_have_several_versions_and_the_project_itself() {
        let text = "version = 1\n\n[[package]]\nname = \"mine\"\nversion = \"0.1\"\nsource = { editable = \".\" }\n\n\
                    [[package]]\nname = \"numpy\"\nversion = \"1.26.4\"\nsource = { registry = \"https://packages.example.org/simple\" }\n\
                    dependencies = [\n    { name = \"other\" },\n]\n\n[package.metadata]\nversion = \"9\"\n\n\
                    [[package]]\nname = \"numpy\"\nversion = \"2.0.0\"\n";
        assert_eq!(told("uv", text, &[("numpy", "2.0"), ("mine", "7")]), [""; 0]);
        assert_eq!(told("uv", text, &[("numpy", "1.25")]), ["numpy 1.26.4 or 2.0.0 1.25"]);
        assert_eq!(told("uv", text, &[]), [""; 0]);
    }

    #[test]
    fn three_kinds_of_conda_file_are_read() {
        let installed = [("numpy", "1.0"), ("scikit-learn", "1.4.0"), ("python", "3.11")];
        let yaml = "dependencies:\n  - python=3.12\n  - conda-forge::numpy=1.26.4=py311\n  - pip:\n    - scikit_learn==1.5\n";
        assert_eq!(told("conda", yaml, &installed), ["numpy 1.26.4 1.0", "scikit-learn 1.5 1.4.0"]);
        let explicit = "@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/linux-64/scikit-learn-1.5.0-py311_0.conda#abc\n";
        assert_eq!(told("conda", explicit, &installed), ["scikit-learn 1.5.0 1.4.0"]);
        let lock = "package:\n- name: numpy\n  version: 1.26.4\n  manager: conda\n";
        assert_eq!(told("conda", lock, &installed), ["numpy 1.26.4 1.0"]);
    }

    #[test]
    fn versions_are_compared_as_installers_do() {
        for (wanted, found) in [
            ("1.0", "1.0.0"),
            ("1.0", "1"),
            ("v2.1", "2.1+cu121"),
            ("1.0rc1", "1.0.0-RC.1"),
            ("2024.01", "2024.1"),
        ] {
            assert!(same_version(wanted, found), "{wanted} {found}");
        }
        for (wanted, found) in [("1.0", "1.0.1"), ("2.1+cpu", "2.1+cu121"), ("1.0", "1.0rc1"), ("10", "1")] {
            assert!(!same_version(wanted, found), "{wanted} {found}");
        }
    }
}
