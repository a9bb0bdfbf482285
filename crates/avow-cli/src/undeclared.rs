//! What stages read, or were kept from, without declaring it: in words, with the way to declare it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use avow_engine::Notice;
use avow_exec::{Barred, Config, Denial, denials, speaks_of_denial};
use avow_model::action::Action;
use avow_model::attempt::{Attempt, Blame};
use avow_model::digest::BlobDigest;
use avow_model::reads::{Reads, Seen};
use avow_store::blob::read_record;
use avow_store::{BlobStore, Project, StoreError};

use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::spelled;
use crate::words;

/// How much of the end of a log is read for what was denied, in bytes.
const LOG_END: u64 = 64 * 1024;
/// How many failed members are explained after a run.
const EXPLAINED: usize = 5;
/// How many files are named in one line.
const NAMED: usize = 8;

/// What a run's attempts tell about undeclared files.
#[derive(Debug, Default)]
pub struct Undeclared {
    failed: BTreeMap<String, Attempt>,
    observed: BTreeMap<String, BTreeSet<String>>,
}

impl Undeclared {
    /// Takes a notice in.
    ///
    /// # Errors
    /// Where the record of what an attempt read cannot be read.
    pub fn notice(&mut self, notice: &Notice, blobs: &dyn BlobStore) -> Result<(), StoreError> {
        let Notice::Finished { member, attempt, again } = notice else { return Ok(()) };
        let stage = words::stage_of(member).to_owned();
        if attempt.reads.is_some() {
            let files = read_by(attempt, blobs)?;
            if !files.is_empty() {
                self.observed.entry(stage).or_default().extend(files);
            }
        }
        let by_program = attempt.outcome.blame() == Some(Blame::Program);
        if by_program && !again && self.failed.len() < EXPLAINED {
            self.failed.insert(member.clone(), (**attempt).clone());
        }
        Ok(())
    }

    /// Says it after the run.
    pub fn tell(
        &self,
        project: &Project,
        blobs: &dyn BlobStore,
        config: &Config,
        output: &Output,
    ) -> Result<(), Failure> {
        for (member, attempt) in &self.failed {
            for line in barred(member, attempt, project, blobs, config)? {
                output.always(format!("  {line}"));
            }
        }
        for (stage, files) in &self.observed {
            output.say(format!("note: {stage} {}", reads(files)));
        }
        Ok(())
    }
}

/// "reads a, b, which the spec does not declare".
pub fn reads(files: &BTreeSet<String>) -> String {
    let names: Vec<&str> = files.iter().take(NAMED).map(String::as_str).collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("reads {}{more}, which the spec does not declare", names.join(", "))
}

/// The files and folders that an attempt was seen to read, installed software apart.
///
/// # Errors
/// Where the record cannot be read; one that is gone or damaged says nothing.
pub fn read_by(attempt: &Attempt, blobs: &dyn BlobStore) -> Result<BTreeSet<String>, StoreError> {
    let Some(digest) = attempt.reads else { return Ok(BTreeSet::new()) };
    let record: Reads = match read_record(blobs, digest) {
        Err(error) if error.is_unusable_blob() => return Ok(BTreeSet::new()),
        other => other?,
    };
    let there = |seen: &Seen| matches!(seen, Seen::File(_) | Seen::Names(_));
    Ok(record.seen.into_iter().filter(|(_, seen)| there(seen)).map(|(path, _)| path).collect())
}

/// What a failed attempt's log says it was kept from, one line each, with hints.
///
/// # Errors
/// Where the store cannot be read; a log or an action that is gone says nothing.
pub fn barred(
    member: &str,
    attempt: &Attempt,
    project: &Project,
    blobs: &dyn BlobStore,
    config: &Config,
) -> Result<Vec<String>, Failure> {
    let action: Action = match read_record(blobs, attempt.action) {
        Err(error) if error.is_unusable_blob() => return Ok(Vec::new()),
        other => other.map_err(failure::store)?,
    };
    let mut log = String::new();
    for digest in [attempt.stdout, attempt.stderr].into_iter().flatten() {
        log.push_str(&end_of(digest, blobs)?);
        log.push('\n');
    }
    let denied = attempt.host.confinement.starts_with("deny");
    let offline = attempt.host.confinement.contains("+offline");
    let holds = |denial: &Denial| match denial.how {
        Barred::Read => denied,
        Barred::Write => attempt.host.confinement.contains("landlock") || denied,
        Barred::Network => offline,
        Barred::NotGiven => true,
    };
    let found: Vec<Denial> = denials(config, &attempt.id, &action, &log).into_iter().filter(holds).collect();
    let mut lines = told(member, &found, project);
    if found.is_empty() && denied && speaks_of_denial(&log) {
        lines.push(format!(
            "hint: avow explain '{member}' --trace runs it once more and names what it is denied"
        ));
    }
    Ok(lines)
}

/// Denials in words, then how to mend the first.
pub fn told(member: &str, found: &[Denial], project: &Project) -> Vec<String> {
    let mut lines: Vec<String> =
        found.iter().take(NAMED).map(|denial| sentence(member, denial, project)).collect();
    lines.extend(found.first().map(|denial| format!("hint: {}", hint(member, denial, project))));
    lines
}

fn sentence(member: &str, denial: &Denial, project: &Project) -> String {
    let path = spelled(&denial.path, project);
    match denial.how {
        Barred::Read => format!("{member} was denied reading {path}: it is not among its inputs"),
        Barred::Write => format!("{member} was denied writing {path}: a stage writes only in its own folder"),
        Barred::NotGiven => {
            format!("{member} did not find {path}: the project has it, but it is not among its inputs")
        }
        Barred::Network => format!("{member} was denied the network: only a stage of `kind: capture` has it"),
    }
}

fn hint(member: &str, denial: &Denial, project: &Project) -> String {
    let (stage, path) = (words::stage_of(member), spelled(&denial.path, project));
    let inside = denial.path.starts_with(project.root());
    match denial.how {
        Barred::Read | Barred::NotGiven if inside => format!(
            "declare it under `stages: {stage}`: `inputs: {{{}: {path}}}`, or `code: [{path}]` where it is code",
            name_for(&path)
        ),
        Barred::Read | Barred::NotGiven => format!(
            "copy it into the project and declare it under `inputs`, or open it to every stage: `[confine]` \
             `allow = [\"{path}\"]` in `avow.toml`"
        ),
        Barred::Write => format!("declare what `{stage}` writes under `outputs`, and write it there"),
        Barred::Network => {
            "fetch in a stage of `kind: capture`, give the address as an input with its digest, or set \
             `network = true` under `[confine]` in `avow.toml`"
                .to_owned()
        }
    }
}

/// A name for an input that is a path.
fn name_for(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split('.').find(|part| !part.is_empty()).unwrap_or("file").to_lowercase();
    let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

/// The end of a log.
fn end_of(digest: BlobDigest, blobs: &dyn BlobStore) -> Result<String, Failure> {
    let bytes = match blobs.open_path(digest) {
        Ok(Some(path)) => tail(&path).unwrap_or_default(),
        Ok(None) => blobs.read(digest).map_err(failure::store)?,
        Err(error) if error.is_unusable_blob() => Vec::new(),
        Err(error) => return Err(failure::store(error)),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn tail(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_gives_a_name_that_a_spec_takes() {
        for (path, name) in
            [("data/extra.csv", "extra"), ("2023-a.csv", "_2023_a"), (".env", "env"), ("X", "x")]
        {
            assert_eq!(name_for(path), name);
        }
    }

    #[test]
    fn many_files_are_counted() {
        let files: BTreeSet<String> = (0..10).map(|i| format!("f{i}")).collect();
        assert!(reads(&files).contains("f7 and 2 more, which"));
    }
}
