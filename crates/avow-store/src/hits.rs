//! Which attempt stood for an action in the last run that came to its end, so that a run of a changed plan need
//! not look up again what did not change.
//!
//! It is a cache like a receipt ([`crate::receipt`]), named by what decides which attempts stand beside the action
//! itself: experiment, registration, hosts. Each entry has the outputs of the attempt and the stamps that their
//! blobs had when they were last known to be sound and durable; it stands while every stamp is still the same. It
//! goes whenever receipts go.

use std::collections::HashMap;
use std::fs;

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};

use crate::blob::FileBlobs;
use crate::cache;
use crate::project::Project;
use crate::stamp::FileStamp;

const FORM: &[u8; 16] = b"avow hits 1\0\0\0\0\0";
const PREFIX: &str = "hits-";
/// One for each experiment and place is enough; more are those of yesterday.
const KEPT: usize = 8;

/// An attempt that stood for an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stood {
    /// The attempt.
    pub attempt: AttemptDigest,
    /// All its outputs, which are files, with the stamps of their blobs.
    pub outputs: Vec<(String, BlobDigest, FileStamp)>,
}

/// The attempts that stood for actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits(HashMap<ActionDigest, Stood>);

impl Hits {
    /// What was kept under a name; none where nothing is, or something that is not whole.
    pub fn open(project: &Project, name: BlobDigest) -> Hits {
        let read = || {
            let bytes = cache::get(project, &file(name))?;
            Reader(bytes.strip_prefix(FORM)?).all()
        };
        read().unwrap_or_default()
    }

    /// Keeps them under a name.
    pub fn keep(&self, project: &Project, name: BlobDigest) {
        let mut bytes = FORM.to_vec();
        for (action, stood) in &self.0 {
            write(&mut bytes, *action, stood);
        }
        cache::put(project, &file(name), bytes);
        cache::trim(project, PREFIX, KEPT);
    }

    /// Notes which attempt stands for an action; one with very many or very long names is not noted.
    pub fn insert(&mut self, action: ActionDigest, stood: Stood) {
        let short = |text: &str| u8::try_from(text.len()).is_ok();
        if short_enough(stood.outputs.len()) && stood.outputs.iter().all(|(name, _, _)| short(name)) {
            self.0.insert(action, stood);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The attempt that stood for an action, where the blobs of the outputs that `wanted` names are as they were.
    pub fn standing(
        &self,
        blobs: &FileBlobs,
        action: ActionDigest,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<&Stood> {
        let stood = self.0.get(&action)?;
        let same = |digest: BlobDigest, stamp: FileStamp| {
            crate::meter::look();
            fs::symlink_metadata(blobs.path(digest))
                .is_ok_and(|about| about.is_file() && FileStamp::of(&about) == stamp)
        };
        let mut wanted = stood.outputs.iter().filter(|(name, _, _)| wanted(name));
        wanted.all(|(_, digest, stamp)| same(*digest, *stamp)).then_some(stood)
    }
}

/// Removes all of them.
pub(crate) fn forget(project: &Project) {
    cache::trim(project, PREFIX, 0);
}

fn file(name: BlobDigest) -> String {
    format!("{PREFIX}{name}")
}

fn short_enough(count: usize) -> bool {
    u8::try_from(count).is_ok()
}

fn write(bytes: &mut Vec<u8>, action: ActionDigest, stood: &Stood) {
    bytes.extend(action.as_bytes());
    bytes.extend(stood.attempt.as_bytes());
    bytes.push(stood.outputs.len() as u8);
    for (name, digest, stamp) in &stood.outputs {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
        bytes.extend(digest.as_bytes());
        bytes.extend(stamp.to_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn all(mut self) -> Option<Hits> {
        let mut hits = HashMap::new();
        while !self.0.is_empty() {
            let action = ActionDigest::from_bytes(self.take()?);
            let attempt = AttemptDigest::from_bytes(self.take()?);
            let [count] = self.take()?;
            let outputs = (0..count).map(|_| self.output()).collect::<Option<_>>()?;
            hits.insert(action, Stood { attempt, outputs });
        }
        Some(Hits(hits))
    }

    fn output(&mut self) -> Option<(String, BlobDigest, FileStamp)> {
        let [length] = self.take()?;
        let (name, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        Some((name, BlobDigest::from_bytes(self.take()?), FileStamp::from_bytes(self.take()?)))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*part)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::blob::BlobStore;
    use crate::stamp::MemoryStamps;

    #[test]
    fn what_was_kept_is_found_and_stands_while_its_blobs_are_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path().canonicalize().unwrap());
        project.create().unwrap();
        let blobs = FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default()));
        let digest = blobs.put(b"x").unwrap();
        let stamp = FileStamp::of(&fs::metadata(blobs.path(digest)).unwrap());
        let (action, attempt) = (ActionDigest::from_bytes([1; 32]), AttemptDigest::from_bytes([2; 32]));
        let stood = Stood { attempt, outputs: vec![("out".to_owned(), digest, stamp)] };
        let mut hits = Hits::default();
        hits.insert(action, stood.clone());
        let name = BlobDigest::of(b"name");
        hits.keep(&project, name);
        let found = Hits::open(&project, name);
        assert_eq!(found, hits);
        assert_eq!(found.standing(&blobs, action, |_| true), Some(&stood));
        assert_eq!(found.standing(&blobs, ActionDigest::from_bytes([3; 32]), |_| true), None);
        fs::remove_file(blobs.path(digest)).unwrap();
        assert_eq!(found.standing(&blobs, action, |_| true), None);
        assert_eq!(found.standing(&blobs, action, |name| name != "out"), Some(&stood), "it is not wanted");
        crate::receipt::forget(&project);
        assert!(Hits::open(&project, name).is_empty());
    }
}
