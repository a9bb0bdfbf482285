//! Files that spare a command work: each may be deleted at any time, and none is believed unless its digest fits.
//!
//! They lie in `.avow/cache`, are replaced as a whole and never synced. A file that is missing, torn or changed is a
//! miss; one that cannot be written costs the next command what it cost this one. Nothing is created where there is
//! no store yet.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};

use avow_model::digest::BlobDigest;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;
use crate::stamp::{FileStamp, StampCache};

const DIGEST: usize = 32;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// What is kept under a name; `None` where nothing is, or something that does not verify.
pub fn get(project: &Project, name: &str) -> Option<Vec<u8>> {
    let mut file = files::open_plain(&project.cache().join(name)).ok()?;
    let length = file.metadata().ok()?.len();
    if !(DIGEST as u64..LARGEST).contains(&length) {
        return None;
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.read_to_end(&mut bytes).ok()?;
    let content = bytes.len().checked_sub(DIGEST)?;
    if blake3::hash(&bytes[..content]).as_bytes() != &bytes[content..] {
        return None;
    }
    bytes.truncate(content);
    Some(bytes)
}

/// Keeps bytes under a name, where there is a store.
pub fn put(project: &Project, name: &str, mut bytes: Vec<u8>) {
    if !project.store().is_dir() {
        return;
    }
    let digest = blake3::hash(&bytes);
    bytes.extend(digest.as_bytes());
    if let Err(error) = write(project, name, &bytes) {
        tracing::debug!(name, %error, "a cache could not be written");
    }
}

fn write(project: &Project, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = project.cache();
    disk::create_folders(&folder).context("create", &folder)?;
    files::replace(&folder.join(name), bytes)
}

/// Removes all but the latest files whose names begin alike.
pub fn trim(project: &Project, prefix: &str, keep: usize) {
    let Ok(entries) = fs::read_dir(project.cache()) else { return };
    let begins = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut found: Vec<_> = entries
        .flatten()
        .filter(begins)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    let older = found.len().saturating_sub(keep);
    for (_, path) in found.into_iter().take(older) {
        // Whoever reads it at this moment has it open; whoever comes later makes it again.
        let _ = disk::remove_file(&path);
    }
}

/// Digests of files by stamp for commands that do not own the index.
#[derive(Debug)]
pub struct FileStamps {
    project: Project,
    states: Mutex<States>,
}

#[derive(Debug, Default)]
struct States {
    known: HashMap<[u8; 16], ([u8; 24], BlobDigest)>,
    learnt: bool,
}

const NAME: &str = "stamps";
const STATE: usize = 16 + 24 + 32;
/// The most files that are remembered; more are hashed each time.
const MOST: usize = 1_000_000;

impl FileStamps {
    /// What earlier commands learnt in a project.
    pub fn open(project: &Project) -> FileStamps {
        let mut states = States::default();
        for state in get(project, NAME).unwrap_or_default().chunks_exact(STATE) {
            let (identity, rest) = state.split_at(16);
            let (metadata, digest) = rest.split_at(24);
            let parts = (identity.try_into(), metadata.try_into(), <[u8; 32]>::try_from(digest));
            if let (Ok(identity), Ok(metadata), Ok(digest)) = parts {
                states.known.insert(identity, (metadata, BlobDigest::from_bytes(digest)));
            }
        }
        FileStamps { project: project.clone(), states: Mutex::new(states) }
    }

    fn states(&self) -> MutexGuard<'_, States> {
        // Every change is one call on the map, so a panic elsewhere cannot leave it half changed.
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was learnt for the next command.
    pub fn save(&self) {
        let mut states = self.states();
        if !std::mem::take(&mut states.learnt) {
            return;
        }
        let mut bytes = Vec::with_capacity(states.known.len() * STATE + DIGEST);
        for (identity, (metadata, digest)) in states.known.iter().take(MOST) {
            bytes.extend(identity);
            bytes.extend(metadata);
            bytes.extend(digest.as_bytes());
        }
        put(&self.project, NAME, bytes);
    }
}

impl StampCache for FileStamps {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let states = self.states();
        let known = states.known.get(&stamp.identity()).filter(|(state, _)| *state == stamp.state());
        Ok(known.map(|(_, digest)| *digest))
    }

    fn earlier_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        let states = self.states();
        let earlier = states.known.get(&stamp.identity()).filter(|(state, _)| stamp.is_as_large(state));
        Ok(earlier.map(|(_, digest)| *digest))
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        let mut states = self.states();
        states.learnt |= !entries.is_empty();
        states
            .known
            .extend(entries.iter().map(|(stamp, digest)| (stamp.identity(), (stamp.state(), *digest))));
        Ok(())
    }
}
