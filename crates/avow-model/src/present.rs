//! What was really present where an attempt ran: recorded to be compared, never part of a digest that decides
//! about reuse. One record is shared by all attempts that found the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::canonical::Record;
use crate::digest::BlobDigest;

/// A machine with the interpreters of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// Facts by name: `system`, `kernel`, `libc`, `cpu`, `gpu driver`…
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Features of the processor that change which instructions libraries choose, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// GPUs, in the order of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Variables that say how many threads libraries use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, String>,
    /// Interpreters by the word that the command uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub interpreters: BTreeMap<String, Interpreter>,
    /// Where the lock file and what was installed disagreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<String>,
}

/// An interpreter with everything that is installed for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// `cpython 3.11.7`.
    pub version: String,
    /// Versions of the installed packages, by normalised name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

/// One difference between two environments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs: `numpy`, `kernel`, `CPU features`…
    pub what: String,
    /// What an attempt was made with; `None` where it was not there.
    pub then: Option<String>,
    /// What is there now.
    pub now: Option<String>,
}

impl Present {
    /// Every difference from an earlier environment to this one.
    pub fn since(&self, then: &Present) -> Vec<Difference> {
        let mut all = Vec::new();
        maps("", &then.facts, &self.facts, &mut all);
        lists("CPU features", &then.features, &self.features, &mut all);
        lists("GPUs", &then.gpus, &self.gpus, &mut all);
        maps("", &then.threads, &self.threads, &mut all);
        each(&then.disagreements, &self.disagreements, &mut all);
        for (word, now) in &self.interpreters {
            let Some(then) = then.interpreters.get(word) else { continue };
            if then.version != now.version {
                let (a, b) = (Some(then.version.clone()), Some(now.version.clone()));
                all.push(Difference { what: word.clone(), then: a, now: b });
            }
            maps("", &then.packages, &now.packages, &mut all);
        }
        all
    }
}

fn maps(
    prefix: &str,
    then: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
    all: &mut Vec<Difference>,
) {
    let names: std::collections::BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    for name in names {
        let (a, b) = (then.get(name), now.get(name));
        if a != b {
            let what = format!("{prefix}{name}");
            all.push(Difference { what, then: a.cloned(), now: b.cloned() });
        }
    }
}

/// Each disagreement with a lock file that is in one of them alone.
fn each(then: &[String], now: &[String], all: &mut Vec<Difference>) {
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|one| !those.contains(one)).cloned().collect()
    };
    let what = || "the lock file not installed:".to_owned();
    all.extend(only(then, now).into_iter().map(|a| Difference { what: what(), then: Some(a), now: None }));
    all.extend(only(now, then).into_iter().map(|b| Difference { what: what(), then: None, now: Some(b) }));
}

/// Only what is not in both is told: lists of features are long.
fn lists(what: &str, then: &[String], now: &[String], all: &mut Vec<Difference>) {
    let only = |these: &[String], those: &[String]| -> Option<String> {
        let only: Vec<&str> = these.iter().filter(|x| !those.contains(x)).map(String::as_str).collect();
        (!only.is_empty()).then(|| only.join(" "))
    };
    if then != now {
        all.push(Difference { what: what.to_owned(), then: only(then, now), now: only(now, then) });
    }
}

impl Record for Present {
    const KIND: &'static str = "avow/present/1";
    type Digest = BlobDigest;

    fn wrap(bytes: [u8; 32]) -> BlobDigest {
        BlobDigest::from_bytes(bytes)
    }
}
