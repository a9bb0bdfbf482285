//! What an upgrade took for the same: names of actions under an earlier encoding, and the names they have now.
//!
//! ```text
//! .avow/aliases/1.jsonl    one line for each action of encoding 1 that was met again
//! ```
//!
//! Journals and registrations keep the names they were written with, for ever; an alias says where to look. An
//! earlier encoding knew less of an action (encoding 1 did not name libraries and packages), so several actions
//! of today may have had one name. The first that is met after the upgrade takes it, and only that one: a
//! package that is upgraded later is another action. Readers need not believe a line: what an action was called
//! earlier is computed ([`Action::earlier`]), and a line only says which of several it was.

use std::collections::{HashMap, HashSet};
use std::fs;

use avow_model::action::Action;
use avow_model::attempt::Timestamp;
use avow_model::digest::ActionDigest;
use serde::{Deserialize, Serialize};

use crate::error::{Context, StoreError};
use crate::project::Project;
use crate::record::RecordStore;
use crate::{disk, files, lines};

/// One name of the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The name under the earlier encoding.
    pub old: ActionDigest,
    /// The name now.
    pub new: ActionDigest,
    /// When that was decided.
    pub at: Timestamp,
    /// The run that decided it.
    pub run: String,
}

/// All of them, for reading.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    earlier: HashMap<ActionDigest, Vec<(u32, ActionDigest)>>,
    taken: HashSet<ActionDigest>,
}

/// Under which names the attempts at an action are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Its own name, then earlier ones.
    pub all: Vec<ActionDigest>,
    /// Earlier ones that nobody has taken yet, with their encodings.
    pub fresh: Vec<(u32, ActionDigest)>,
}

impl Aliases {
    /// Reads them; none where there is no store or nothing was ever migrated. A line that is torn or unknown
    /// is skipped: without it the alias is decided anew.
    pub fn read(project: &Project) -> Result<Aliases, StoreError> {
        let folder = project.aliases();
        let mut aliases = Aliases::default();
        let list = match fs::read_dir(&folder) {
            Err(error) if files::absent(&error) => return Ok(aliases),
            other => other.context("list", &folder)?,
        };
        for entry in list {
            let path = entry.context("list", &folder)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(encoding) = stem.and_then(|stem| stem.parse().ok()) else { continue };
            let text = fs::read_to_string(&path).context("read", &path)?;
            for alias in text.lines().filter_map(|line| serde_json::from_str::<Alias>(line).ok()) {
                aliases.insert(encoding, &alias);
            }
        }
        Ok(aliases)
    }

    /// Takes one in.
    pub fn insert(&mut self, encoding: u32, alias: &Alias) {
        if self.taken.insert(alias.old) {
            self.earlier.entry(alias.new).or_default().push((encoding, alias.old));
        }
    }

    /// The names under which an action's attempts are found. Where it has none under its own name, earlier names
    /// that nobody has taken are offered, if there are attempts under them.
    pub fn names(
        &self,
        records: &dyn RecordStore,
        action: &Action,
        digest: ActionDigest,
    ) -> Result<Names, StoreError> {
        let mut all = vec![digest];
        let known = self.earlier.get(&digest).map(Vec::as_slice).unwrap_or_default();
        if !known.is_empty() {
            let possible = action.earlier();
            all.extend(known.iter().filter(|name| possible.contains(name)).map(|(_, old)| *old));
            return Ok(Names { all, fresh: Vec::new() });
        }
        let mut fresh = Vec::new();
        if records.trace(digest)?.is_empty() {
            for (encoding, old) in action.earlier() {
                if !self.taken.contains(&old) && made_under(records, old, encoding)? {
                    fresh.push((encoding, old));
                    all.push(old);
                }
            }
        }
        Ok(Names { all, fresh })
    }
}

/// Whether an action has an attempt that was made under an encoding.
fn made_under(records: &dyn RecordStore, action: ActionDigest, encoding: u32) -> Result<bool, StoreError> {
    for digest in records.trace(action)? {
        if records.attempt(digest)?.is_some_and(|recorded| recorded.attempt.encoding == encoding) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes aliases down, durably, before anything rests on them.
pub fn append(project: &Project, encoding: u32, aliases: &[Alias]) -> Result<(), StoreError> {
    let folder = project.aliases();
    disk::create_folders(&folder).context("create", &folder)?;
    lines::append(&folder.join(format!("{encoding}.jsonl")), aliases)
}
