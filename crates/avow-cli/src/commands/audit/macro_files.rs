//! Macro files of the project that are not what the store says now.

use std::path::{Path, PathBuf};

use avow_audit::stock::Stocked;
use avow_manuscript::macros::{self, HEAD, Language};
use avow_store::Project;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::Failure;
use crate::words::manuscript::now;

/// Folders within folders are gone through so far.
const DEPTH: usize = 16;
/// No macro file is larger.
const LARGEST: u64 = 64 << 20;
/// Folders that hold what other tools made.
const PASSED: [&str; 2] = ["target", "node_modules"];

/// A value of a macro file that is not what the store says.
#[derive(Serialize)]
pub(super) struct Stale {
    /// The file, in the project.
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// The key.
    pub(super) key: String,
    /// What it should be.
    pub(super) now: String,
}

/// Every stale value of every macro file. A file that was made from experiments which are not audited here is passed
/// over: nothing can be said of it.
pub(super) fn stale(project: &Project, stocked: &Stocked) -> Result<Vec<Stale>, Failure> {
    let mut files = Vec::new();
    gather(project.root(), 0, &mut files)?;
    files.sort();
    let audited: Vec<&str> = stocked.experiments().chain(stocked.hidden()).collect();
    let mut all = Vec::new();
    for path in files {
        // Bytes that are no text are no macro file, whatever they begin with.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let made_from = experiments(&text);
        if made_from.iter().any(|experiment| !audited.contains(experiment)) {
            continue;
        }
        let file = path.strip_prefix(project.root()).unwrap_or(&path).display().to_string();
        for (key, value, range) in macros::definitions(&text) {
            // A file about one experiment names it in no key.
            let full = match made_from.as_slice() {
                [one] if audited.len() > 1 => qualified(one, &key),
                _ => key.clone(),
            };
            if let Some(now) = now(stocked, &full, &value) {
                let line = text[..range.start].matches('\n').count() + 1;
                all.push(Stale { file: file.clone(), line, key, now });
            }
        }
    }
    Ok(all)
}

/// A key with its experiment; in a summary that stands before the whole.
fn qualified(experiment: &str, key: &str) -> String {
    if key.starts_with(&format!("{experiment}/")) { key.to_owned() } else { format!("{experiment}/{key}") }
}

/// The experiments of which a macro file says that it was made.
fn experiments(text: &str) -> Vec<&str> {
    let comments = text.lines().take_while(|line| line.starts_with('%') || line.starts_with("//"));
    let about =
        comments.filter_map(|line| line.trim_start_matches(['%', '/', ' ']).strip_prefix("experiment "));
    about.filter_map(|line| line.split_once(", plan ").map(|(name, _)| name)).collect()
}

fn gather(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let machine =
        |error| Failure::new(Exit::Machine, format!("cannot list `{}`", folder.display())).because(error);
    let entries = match std::fs::read_dir(folder) {
        // A folder that is closed to us holds nothing that we wrote.
        Err(error) if depth > 0 && error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(()),
        entries => entries.map_err(machine)?,
    };
    for entry in entries {
        let entry = entry.map_err(machine)?;
        let (name, kind) = (entry.file_name(), entry.file_type().map_err(machine)?);
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() && depth < DEPTH && !PASSED.contains(&name.as_ref()) {
            gather(&entry.path(), depth + 1, files)?;
        } else if kind.is_file() && Language::of(&name).is_some() && begins_as_one(&entry.path()) {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a file begins like a macro file and is of a size that one may have.
fn begins_as_one(path: &Path) -> bool {
    use std::io::Read;
    let mut begin = Vec::new();
    let Ok(file) = std::fs::File::open(path) else { return false };
    let small = file.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST);
    let read = file.take(HEAD.len() as u64 + 4).read_to_end(&mut begin);
    small && read.is_ok() && String::from_utf8_lossy(&begin).contains(HEAD)
}
