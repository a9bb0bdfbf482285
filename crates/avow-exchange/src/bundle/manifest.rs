//! The manifest of a bundle: canonical JSON (RFC 8785), whose SHA-256 is the bundle's name.

use avow_model::digest::{BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::ledger::canonical;
use avow_model::tree::check_path;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::anonymous::Anonymous;
use super::error::BundleError;
use super::name::{self, Place};
use crate::citation;
use crate::digests::hex;

/// What a bundle holds and how it belongs together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What was taken out, where names were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Anonymous>,
    /// `avow-bundle`.
    pub kind: String,
    /// The version of the form: 1.
    pub v: u32,
    /// The experiment that it was made for.
    pub experiment: String,
    /// The plan that was judged.
    pub plan: PlanDigest,
    /// The text of the spec.
    pub spec: SpecFile,
    /// Files of the project that no record names, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// The runs whose journals travel along.
    pub runs: Vec<Run>,
    /// The heads of the ledgers, sorted: what a signature of the bundle says about them.
    pub heads: Vec<RegistrationDigest>,
    /// Blobs that the records name and that were left out, sorted.
    pub absent: Vec<BlobDigest>,
    /// Every other entry of the archive, in its order.
    pub entries: Vec<Entry>,
}

/// The spec, as a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecFile {
    /// Its path in the project.
    pub path: String,
    /// Its text.
    pub blob: BlobDigest,
}

/// A file of the project that travels along although no record names it, as a blob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Its path in the project.
    pub path: String,
    /// What it is.
    pub what: What,
    /// Its content.
    pub blob: BlobDigest,
}

/// What a file beside the records is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A table that an axis is read from: without it the spec makes no plan.
    Table,
    /// How the work is to be cited.
    Citation,
    /// A licence of the project.
    Licence,
}

impl What {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            What::Table => "table",
            What::Citation => "citation",
            What::Licence => "licence",
        }
    }

    /// What a file in the root of a project is by its name; `None` where it does not say whose the work is.
    pub fn of_name(name: &str) -> Option<What> {
        let upper = name.to_uppercase();
        match name {
            citation::FILE => Some(What::Citation),
            _ => ["LICENSE", "LICENCE", "COPYING"]
                .iter()
                .any(|word| upper.starts_with(word))
                .then_some(What::Licence),
        }
    }

    /// Whether a file of this kind may lie at a path: a bundle can put nothing else beside its records, least of all
    /// settings.
    fn may_lie_at(self, path: &str) -> bool {
        let lower = path.to_ascii_lowercase();
        let plain = check_path(path).is_ok() && !path.split('/').any(|name| name.starts_with('.'));
        plain
            && match self {
                What::Table => lower.ends_with(".csv") || lower.ends_with(".tsv"),
                other => !path.contains('/') && What::of_name(path) == Some(other),
            }
    }
}

/// A run and its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The run's name.
    pub run: String,
    /// The digest of its journal, as it lies in the archive.
    pub journal: BlobDigest,
}

/// One entry of the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its BLAKE3 digest.
    pub blake3: BlobDigest,
    /// Its SHA-256 digest, for readers that have no BLAKE3.
    pub sha256: String,
}

impl Manifest {
    /// The one form of the manifest's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        let invalid = |error: String| BundleError::Manifest(error);
        let value = serde_json::to_value(self).map_err(|e| invalid(e.to_string()))?;
        canonical(&value).map(String::into_bytes).map_err(|e| invalid(e.to_string()))
    }

    /// Reads a manifest and insists on its one form; what it says of entries is compared by the reader.
    pub fn from_bytes(bytes: &[u8]) -> Result<Manifest, BundleError> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|e| BundleError::Manifest(e.to_string()))?;
        if manifest.kind != "avow-bundle" || manifest.v != 1 {
            let reason =
                format!("it is `{}` version {}, not `avow-bundle` version 1", manifest.kind, manifest.v);
            return Err(BundleError::Manifest(reason));
        }
        if manifest.to_bytes()? != bytes {
            return Err(BundleError::Manifest("it is not in canonical form".to_owned()));
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Names are sorted, distinct and ones that bundles have, and those with digests agree with them.
    fn check(&self) -> Result<(), BundleError> {
        let mut last: Option<&str> = None;
        for entry in &self.entries {
            let wrong = |reason: &str| {
                Err(BundleError::Entry { name: entry.name.clone(), reason: reason.to_owned() })
            };
            if last.is_some_and(|before| before >= entry.name.as_str()) {
                return wrong("the names are not sorted and distinct");
            }
            last = Some(&entry.name);
            match name::place(&entry.name) {
                None | Some(Place::Manifest) => return wrong("no entry may be called so"),
                Some(Place::Blob(digest) | Place::Journal(digest)) if digest != entry.blake3 => {
                    return wrong("its name is not its digest");
                }
                Some(_) => {}
            }
        }
        let has = |name: String| self.entries.binary_search_by(|e| e.name.as_str().cmp(&name)).is_ok();
        if let Some(run) = self.runs.iter().find(|run| !has(format!("journal/{}", run.journal))) {
            return Err(BundleError::Manifest(format!("the journal of run `{}` is not listed", run.run)));
        }
        if !has(format!("blobs/{}", self.spec.blob)) {
            return Err(BundleError::Manifest("the text of the spec is not listed".to_owned()));
        }
        let distinct = self.beside.windows(2).all(|pair| pair[0].path < pair[1].path);
        let unfit = |one: &&Beside| !one.what.may_lie_at(&one.path) || one.path == self.spec.path;
        if let Some(one) = self.beside.iter().find(unfit) {
            return Err(BundleError::Manifest(format!(
                "no {} may lie at `{}`",
                one.what.word(),
                one.path.escape_debug()
            )));
        }
        match self.beside.iter().find(|one| !has(format!("blobs/{}", one.blob))) {
            Some(one) => {
                return Err(BundleError::Manifest(format!("the content of `{}` is not listed", one.path)));
            }
            None if !distinct => {
                return Err(BundleError::Manifest("the files beside the records are not sorted".to_owned()));
            }
            None => {}
        }
        Ok(())
    }

    /// The name of the bundle: the SHA-256 of its manifest, in hexadecimal.
    pub fn name(&self) -> Result<String, BundleError> {
        Ok(hex(&Sha256::digest(self.to_bytes()?)))
    }

    /// Bytes of all entries together.
    pub fn size(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.size))
    }
}
