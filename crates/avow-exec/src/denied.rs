//! From what a failed program printed to the file that it was denied, or not given.
//!
//! Nobody watched, so this is read from its log: lines that say "permission denied" or "no such file" in one of
//! the usual ways, and the paths they name. A path counts only if the file system agrees: it is there and closed
//! to the stage, or it is in the project and was not given. Nothing is guessed beyond that; where the log names
//! nothing, [`crate::LocalExecutor::explain_denials`] finds out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use avow_model::action::Action;
use avow_model::attempt::AttemptId;

use crate::confine::grants::Book;
use crate::local::Config;

/// What a stage was kept from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// The real path; of a file that was not given, its place in the project. Empty for the network.
    pub path: PathBuf,
    /// From doing what.
    pub how: Barred,
}

/// What a stage was kept from doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Barred {
    /// Reading a file that is there.
    Read,
    /// Writing outside its folder.
    Write,
    /// Finding a file of the project in its own folder.
    NotGiven,
    /// The network.
    Network,
}

/// How programs say that they may not.
const DENIED: [&str; 4] = ["permission denied", "errno 13", "eacces", "permissionerror"];
/// How programs say that something is missing.
const MISSING: [&str; 7] = [
    "no such file",
    "errno 2]",
    "enoent",
    "filenotfound",
    "cannot open",
    "does not exist",
    "no module named",
];
/// Words of a line that is about the network.
const NETWORK: [&str; 7] = ["connect", "socket", "urlopen", "http", "url", "download", "resolve"];

/// Whether a log says that something was denied, though perhaps not what.
pub fn speaks_of_denial(log: &str) -> bool {
    let log = log.to_lowercase();
    DENIED.iter().any(|words| log.contains(words))
}

/// What the log of a failed attempt names as denied or not given. `config` is that of the executor.
pub fn denials(config: &Config, attempt: &AttemptId, action: &Action, log: &str) -> Vec<Denial> {
    let work = config.work.canonicalize().unwrap_or_else(|_| config.work.clone());
    let blobs = config.blobs.canonicalize().unwrap_or_else(|_| config.blobs.clone());
    let book = Book::new(Path::new(&config.base.home), &config.bounds, &config.avow, blobs.clone());
    let path = action.env.get("PATH").map_or(config.base.path.as_os_str(), OsStr::new);
    let grants = book.grants(action, &work.join("none"), &work, path);
    let run = work.join(&attempt.0).join("run");
    let own = |path: &Path| path.starts_with(&work) || path.starts_with(&blobs);
    let mut found = BTreeSet::new();
    for line in log.lines() {
        let lower = line.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if says(&DENIED) {
            let places = named(line).into_iter().map(|name| plain(&run.join(name)));
            let before = found.len();
            found.extend(places.filter(|place| !own(place)).filter_map(|place| denial(&place, &grants)));
            if found.len() == before && says(&NETWORK) {
                found.insert(Denial { path: PathBuf::new(), how: Barred::Network });
            }
        }
        if says(&MISSING) {
            let names = named(line).into_iter().chain(module(line));
            found.extend(names.filter_map(|name| not_given(&name, config, action)));
        }
    }
    found.into_iter().collect()
}

fn denial(place: &Path, grants: &crate::confine::grants::Grants) -> Option<Denial> {
    let read = |path| Denial { path, how: Barred::Read };
    let write = |path| Denial { path, how: Barred::Write };
    match place.canonicalize() {
        Ok(real) if real.parent().is_none() => None,
        Ok(real) if grants.allows(&real) => Some(write(real)),
        Ok(real) => Some(read(real)),
        // What is not there cannot be denied to a reader.
        Err(_) if place.parent().is_some_and(Path::is_dir) => Some(write(place.to_owned())),
        Err(_) => None,
    }
}

fn not_given(name: &str, config: &Config, action: &Action) -> Option<Denial> {
    let project = config.bounds.project.as_deref()?;
    let inside = Path::new(name);
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let inside: PathBuf = inside.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    if !plain || inside.as_os_str().is_empty() {
        return None;
    }
    let given = |mount: &String| inside.starts_with(mount.trim_end_matches('/'));
    let path = project.join(&inside);
    (!action.inputs.keys().any(given) && path.exists()).then_some(Denial { path, how: Barred::NotGiven })
}

/// `folder/module.py` of "No module named 'folder.module'".
fn module(line: &str) -> Vec<String> {
    let Some((_, rest)) = line.split_once("No module named ") else { return Vec::new() };
    let name = rest.trim_matches(|c: char| !c.is_alphanumeric() && c != '_').replace('.', "/");
    vec![format!("{name}.py"), format!("{name}/__init__.py")]
}

/// What may be paths in a line: whatever stands in quotes, and words with a slash or a dot inside.
fn named(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (open, close) in [('\'', '\''), ('"', '"'), ('`', '`'), ('`', '\''), ('‘', '’'), ('“', '”')] {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inner, next)) = after.split_once(close) else { break };
            names.push(inner.to_owned());
            rest = next;
        }
    }
    let trimmed = |word: &str| {
        word.trim_matches(|c: char| "'\"`‘’“”:,;()[]<>".contains(c)).trim_end_matches('.').to_owned()
    };
    let words = line.split_whitespace().map(trimmed);
    names.extend(words.filter(|word| word.contains('/') || word.contains('.')));
    names.retain(|name| !name.is_empty() && !name.contains('\0'));
    names
}

/// A path without `.` and `..`, as the working folder is gone and cannot be asked.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_the_ways_that_programs_print_them() {
        let has = |line: &str, name: &str| {
            let names = named(line);
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        };
        has("cat: /data/x y.csv: Permission denied", "/data/x");
        has("PermissionError: [Errno 13] Permission denied: '/data/x y.csv'", "/data/x y.csv");
        has("cannot open file \"in put.txt\": No such file or directory", "in put.txt");
        has("sh: 1: cannot open ../extra.csv: Permission denied", "../extra.csv");
        has("ls: cannot open directory ‘many’: Permission denied", "many");
        assert_eq!(module("ModuleNotFoundError: No module named 'lib.helper'")[0], "lib/helper.py");
    }
}
