//! Values that an executor holds and nobody may read anywhere else.
//!
//! Terms name secrets; the executor that runs the attempt looks the values up here. They are wiped from memory
//! when the last holder goes, and printing shows names only. What the operating system keeps of a started
//! program's environment is out of reach.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use avow_model::action::Slot;
use avow_model::attempt::{Failure, Outcome};
use zeroize::Zeroizing;

use crate::checkpoint::Checkpoint;
use crate::fault::{Fault, at};
use crate::scrub::Scrubber;

/// The shortest value that can be told from ordinary text, in bytes.
pub const SHORTEST_SECRET: usize = 8;

/// Secrets by name.
#[derive(Clone, Default)]
pub struct Secrets(Arc<BTreeMap<String, Zeroizing<String>>>);

/// Why a value cannot be a secret. Says nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Too short to be found again in a log without finding ordinary text too.
    #[error(
        "the value of the secret `{0}` is shorter than {SHORTEST_SECRET} bytes, so that it could not be told from ordinary text"
    )]
    Short(String),
    /// No environment variable can hold it.
    #[error("the value of the secret `{0}` holds a NUL byte")]
    Nul(String),
}

impl Secrets {
    /// Takes values in.
    ///
    /// # Errors
    /// A value that cannot be protected.
    pub fn new(values: BTreeMap<String, Zeroizing<String>>) -> Result<Secrets, SecretError> {
        for (name, value) in &values {
            if value.trim().len() < SHORTEST_SECRET {
                return Err(SecretError::Short(name.clone()));
            }
            if value.contains('\0') {
                return Err(SecretError::Nul(name.clone()));
            }
        }
        Ok(Secrets(Arc::new(values)))
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of this name. Whoever reads it answers for it.
    pub fn reveal(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.as_str())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Takes secrets out of what is recorded of an outcome.
pub(crate) fn clean(outcome: &mut Outcome, secrets: &Scrubber) {
    if let Outcome::Failed(Failure::BadOutput(text) | Failure::Start(text) | Failure::Machine(text)) = outcome
    {
        *text = secrets.text(text);
    }
}

/// Keeps or forgets a checkpoint; one that holds a secret is not kept. A fault here costs the next attempt time,
/// never a result.
pub(crate) fn settle_checkpoint(checkpoint: Checkpoint, succeeded: bool, secrets: Option<&Scrubber>) {
    let place = checkpoint.inside().to_owned();
    let leak = secrets.filter(|_| !succeeded).map(|secrets| holds(&place, secrets));
    let kept = match leak {
        _ if succeeded => checkpoint.forget(),
        None | Some(Ok(None)) => checkpoint.keep(),
        Some(Ok(Some(name))) => {
            tracing::warn!(secret = name, "a checkpoint holds the value of a secret and is not kept");
            checkpoint.forget()
        }
        Some(Err(error)) => {
            tracing::warn!(%error, "a checkpoint cannot be searched for secrets and is not kept");
            checkpoint.forget()
        }
    };
    if let Err(error) = kept {
        tracing::warn!(folder = %place.display(), %error, "a checkpoint could not be kept or removed");
    }
}

/// Refuses outputs that hold the value of a secret: what is stored can be published.
pub(crate) fn refuse_outputs(
    run: &Path,
    slots: &BTreeMap<String, Slot>,
    secrets: &Scrubber,
) -> Result<(), Fault> {
    for (output, slot) in slots {
        let path = run.join(slot.path.trim_end_matches('/'));
        let found = holds(&path, secrets).map_err(at("search", &path))?;
        if let Some(name) = found {
            tracing::warn!(output, secret = name, "an output holds the value of a secret");
            let reason = format!("`{output}` holds the value of the secret `{name}`; nothing of it was kept");
            return Err(Fault::Outcome(Outcome::Failed(Failure::BadOutput(reason))));
        }
    }
    Ok(())
}

/// The first secret in a file or folder: in bytes, names and targets of links. What is not there holds none.
fn holds<'s>(path: &Path, secrets: &'s Scrubber) -> io::Result<Option<&'s str>> {
    let mut waiting = vec![path.to_owned()];
    while let Some(next) = waiting.pop() {
        // An output may itself be a link to what the stage wrote elsewhere; links inside a folder stay links.
        let about = if next == path { fs::metadata(&next) } else { fs::symlink_metadata(&next) };
        let about = match about {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let name = next.strip_prefix(path).unwrap_or(&next).as_os_str().as_bytes();
        let found = if about.is_dir() {
            for entry in fs::read_dir(&next)? {
                waiting.push(entry?.path());
            }
            None
        } else if about.is_symlink() {
            secrets.find(fs::read_link(&next)?.as_os_str().as_bytes())?
        } else if about.is_file() {
            secrets.find(fs::File::open(&next)?)?
        } else {
            None
        };
        if let Some(secret) = found.or(secrets.find(name)?) {
            return Ok(Some(secret));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(value: &str) -> Result<Secrets, SecretError> {
        Secrets::new([("TOKEN".to_owned(), Zeroizing::new(value.to_owned()))].into())
    }

    #[test]
    fn printing_shows_names_only() {
        let shown = format!("{:?}", secrets("correct horse").unwrap());
        assert_eq!(shown, r#"{"TOKEN"}"#);
    }

    #[test]
    fn what_cannot_be_protected_is_refused_without_being_told() {
        for value in ["", "seven77", "   short   ", "long enough\0"] {
            let told = secrets(value).unwrap_err().to_string();
            assert!(told.contains("TOKEN") && !told.contains("seven77") && !told.contains("long"), "{told}");
        }
    }
}
