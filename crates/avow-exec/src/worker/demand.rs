//! What an action demands that its programs load, and what a worker has of it.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use avow_model::action::Action;
use avow_model::digest::BlobDigest;
use avow_model::loads::Loads;
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::{BlobStore, StoreError};
use serde::{Deserialize, Serialize};

use super::protocol::{Difference, Part};
use crate::identity::{Identities, Sought, library_folders};

/// The largest program of a project whose folders of libraries are read.
const PROGRAM: u64 = 256 << 20;

/// What a worker is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// The programs that the command starts, by its words.
    pub words: Vec<String>,
    /// Folders that compiled programs of the project name for their libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// What has to be there, by kind and name.
    pub loads: Loads,
}

impl Demand {
    /// Of an action; `None` where it loads nothing but what it brings along.
    ///
    /// # Errors
    /// Those of the store, where its records cannot be read.
    pub(crate) fn of(blobs: &dyn BlobStore, action: &Action) -> Result<Option<Demand>, StoreError> {
        let Some(record) = action.loads else { return Ok(None) };
        let mut loads: Loads = read_record(blobs, record)?;
        let code = Code::of(blobs, action)?;
        // A library that lies in the project travels with the code.
        loads
            .0
            .retain(|name, loaded| !(name.starts_with("library ") && code.files.contains(&loaded.content)));
        if loads.0.is_empty() {
            return Ok(None);
        }
        let words = action.toolchain.keys().cloned().collect();
        Ok(Some(Demand { words, folders: code.folders, loads }))
    }

    /// What there is of it here.
    pub(crate) fn here(&self, identities: &Identities) -> Loads {
        let words = self.words.iter().map(String::as_str).collect();
        let folders = self.folders.iter().map(PathBuf::from).collect();
        identities.here(&Sought { words, folders, loads: Some(&self.loads) })
    }

    /// How what was found differs from it.
    pub(crate) fn differences(&self, found: &Loads) -> Vec<Difference> {
        let differ = self.loads.0.iter().filter(|(name, wanted)| found.0.get(*name) != Some(wanted));
        let difference = |(name, wanted): (&String, &avow_model::loads::Loaded)| {
            let (kind, bare) = name.split_once(' ').unwrap_or(("program", name));
            let found = found.0.get(name);
            // Two builds of one version differ in content only.
            let same = found.is_some_and(|found| found.version == wanted.version);
            let show = |loaded: &avow_model::loads::Loaded| match &loaded.version {
                Some(version) if same => format!("{version} ({})", loaded.content.short()),
                Some(version) => version.clone(),
                None => loaded.content.to_string(),
            };
            Difference {
                what: Part::of(kind),
                name: bare.to_owned(),
                wanted: show(wanted),
                found: found.map(show),
            }
        };
        differ.map(difference).collect()
    }
}

/// The code that travels with an action.
#[derive(Default)]
struct Code {
    files: HashSet<BlobDigest>,
    folders: Vec<String>,
}

impl Code {
    fn of(blobs: &dyn BlobStore, action: &Action) -> Result<Code, StoreError> {
        let mut code = Code::default();
        let Some(root) = action.code else { return Ok(code) };
        let mut programs = BTreeMap::new();
        let tree: Tree = read_record(blobs, root)?;
        for (path, entry) in tree.entries {
            if let Entry::File { digest, executable } = entry {
                code.files.insert(digest);
                if executable && !path.ends_with(".py") {
                    programs.insert(digest, path);
                }
            }
        }
        for digest in programs.into_keys() {
            if blobs.size(digest)?.is_some_and(|size| size <= PROGRAM) {
                let folders = library_folders(&blobs.read(digest)?);
                code.folders.extend(folders.iter().filter_map(|folder| folder.to_str()).map(str::to_owned));
            }
        }
        Ok(code)
    }
}
