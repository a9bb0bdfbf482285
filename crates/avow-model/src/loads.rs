//! What the programs of a stage load besides project files: shared libraries, installed packages, the shell.
//!
//! Encoding 1 named a program by the bytes of its file alone. Since encoding 2 an action also names, by the
//! digest of this record, everything that is loaded with it; an action whose programs load nothing has the same
//! bytes under both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::canonical::Record;
use crate::digest::BlobDigest;

/// Everything that a stage's programs load, by kind and name: `library libm.so.6`, `package numpy`, `program sh`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Loads(pub BTreeMap<String, Loaded>);

/// One thing that is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Its version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its content: the file's digest, or that of what the installer recorded of a package's files.
    pub content: BlobDigest,
}

impl Loaded {
    /// Something without a version.
    pub fn bare(content: BlobDigest) -> Loaded {
        Loaded { version: None, content }
    }
}

impl std::fmt::Display for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(version) => f.write_str(version),
            None => f.write_str(&self.content.short()),
        }
    }
}

/// Part and name of a difference, with the earlier and the present value.
pub type LoadChange = (String, Option<Loaded>, Option<Loaded>);

/// Every difference from `old` to `new`, sorted by name.
pub fn load_changes(old: &Loads, new: &Loads) -> Vec<LoadChange> {
    let names: std::collections::BTreeSet<&String> = old.0.keys().chain(new.0.keys()).collect();
    let both = names.into_iter().map(|name| (name, old.0.get(name), new.0.get(name)));
    both.filter(|(_, a, b)| a != b).map(|(name, a, b)| (name.clone(), a.cloned(), b.cloned())).collect()
}

impl Record for Loads {
    const KIND: &'static str = "avow/loads/1";
    type Digest = BlobDigest;

    fn wrap(bytes: [u8; 32]) -> BlobDigest {
        BlobDigest::from_bytes(bytes)
    }
}
