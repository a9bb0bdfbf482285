//! Evidence of others: what was imported, each in a folder of its own, `.avow/foreign/NAME`.
//!
//! It lies beside the project's own evidence and is never read as such: no blob, journal or attempt of it is in the
//! store, so nothing of it can stand for a member, complete a plan or be reused. `foreign.json` says what it is and what
//! it says of itself; the bytes lie beside it, so that all of it can be read and compared again.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use avow_model::attempt::Timestamp;
use avow_model::digest::BlobDigest;
use serde::{Deserialize, Serialize};

use crate::error::{Context, StoreError};
use crate::project::Project;

/// The name of the record in an import's folder.
pub const RECORD: &str = "foreign.json";

/// One import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// The version of the record: 1.
    pub v: u32,
    /// What it was.
    pub form: Form,
    /// SHA-256 of what describes it: a bundle's manifest, a crate's metadata. 64 digits, and the folder's name.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// The file or folder that was imported, as it was called.
    pub from: String,
    /// When.
    pub at: Timestamp,
    /// The experiment beside whose verdicts it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Profiles that it says it conforms to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conforms: Vec<String>,
    /// What its claims came to, judged here from its bytes when it was imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Claimed>,
    /// What it says was done.
    pub acts: Vec<Act>,
    /// Its files by path, with their content.
    pub files: BTreeMap<String, BlobDigest>,
}

/// What an import was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A bundle of Avow.
    Bundle,
    /// A Run Crate.
    RoCrate,
}

/// A claim of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    /// The claim.
    pub claim: String,
    /// What it came to; `None` while its registered plan is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// Units that were used.
    pub units: u64,
    /// Whether its plan was registered before.
    pub confirmatory: bool,
}

/// Something that was done, by somebody else's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// What it is called.
    pub name: String,
    /// What did it.
    pub tool: String,
    /// What it read: paths of files, values, or names of what is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What it wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<String>,
    /// When it ended, as it is said there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it failed, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Form {
    /// The word for a person.
    pub fn word(self) -> &'static str {
        match self {
            Form::Bundle => "bundle",
            Form::RoCrate => "crate",
        }
    }
}

impl Foreign {
    /// The first digits of its name.
    pub fn short(&self) -> &str {
        self.name.get(..8).unwrap_or(&self.name)
    }

    /// The paths of files with this content, or whose content begins with these digits.
    pub fn with(&self, digits: &str) -> Vec<&str> {
        let held = self.files.iter().filter(|(_, digest)| digest.to_string().starts_with(digits));
        held.map(|(path, _)| path.as_str()).collect()
    }

    /// How many of its acts failed.
    pub fn failed(&self) -> usize {
        self.acts.iter().filter(|act| act.failed.is_some()).count()
    }
}

/// Where imports lie.
pub fn folder(project: &Project) -> PathBuf {
    project.store().join("foreign")
}

/// Every import, by date; none where nothing was imported. Folders without a record are unfinished imports.
pub fn list(project: &Project) -> Result<Vec<Foreign>, StoreError> {
    let folder = folder(project);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.context("list", &folder)?,
    };
    let mut found: Vec<Foreign> = Vec::new();
    for entry in entries {
        let path = entry.context("list", &folder)?.path().join(RECORD);
        let bytes = match fs::read(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            other => other.context("read", &path)?,
        };
        let record = serde_json::from_slice(&bytes);
        found.push(record.map_err(std::io::Error::from).context("understand", &path)?);
    }
    found.sort_by(|a, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
    Ok(found)
}
