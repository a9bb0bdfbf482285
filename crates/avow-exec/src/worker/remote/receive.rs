//! Taking over what an attempt wrote: each blob once, and only those that are not here. Every byte is hashed on
//! arrival; nothing enters the store under a name that is not its own.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

use avow_model::action::Action;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::reads::Reads;
use avow_model::tree::{Entry, Tree};
use avow_store::blob::read_record;
use avow_store::{BlobStore, Intake, StoreError};
use reqwest::Method;

use super::http::{self, CallError};
use super::logs::Logs;
use super::send::{self, blocking};
use super::{Inner, Known};
use crate::worker::pack;
use crate::worker::protocol::{Ending, join};

/// How many small blobs are asked for at once.
const ASKED: usize = 4096;
/// The largest record of a folder.
const RECORD: u64 = 256 << 20;
/// The most trees inside one another.
const DEPTH: usize = 32;

/// Why something could not be taken over.
#[derive(Debug)]
pub(super) enum Unreceived {
    /// The worker or the way to it.
    Call(CallError),
    /// Our own store.
    Ours(StoreError),
    /// It is not what it should be.
    Wrong(String),
}

impl From<CallError> for Unreceived {
    fn from(error: CallError) -> Unreceived {
        Unreceived::Call(error)
    }
}

impl From<StoreError> for Unreceived {
    fn from(error: StoreError) -> Unreceived {
        Unreceived::Ours(error)
    }
}

/// Takes over logs and outputs. `small` are blobs that came with the end of the attempt.
pub(super) async fn take_over(
    inner: &Inner,
    known: &Known,
    action: &Action,
    ending: &Ending,
    logs: &mut Logs,
    small: HashMap<BlobDigest, Vec<u8>>,
) -> Result<(), Unreceived> {
    check(action, ending).map_err(Unreceived::Wrong)?;
    for (stream, digest) in [(0, ending.stdout), (1, ending.stderr)] {
        let Some(digest) = digest else { continue };
        if !logs.keep(stream, digest, &inner.blobs).await? {
            fetch(inner, digest, u64::MAX).await?;
        }
    }
    if let Some(reads) = ending.reads {
        fetch(inner, reads.into(), RECORD).await?;
        // The part that many attempts share is there already, mostly.
        let record: Reads = read_record(inner.blobs.as_ref(), reads)?;
        if let Some(installed) = record.installed {
            fetch(inner, installed.into(), RECORD).await?;
        }
    }
    let mut receiver = Receiver { inner, small, took: Vec::new() };
    for (name, produced) in &ending.outputs {
        if action.outputs.get(name).is_some_and(|slot| slot.keep.is_content()) {
            receiver.took.clear();
            receiver.artifact(produced.artifact, produced.size).await?;
            send::has(known, produced.artifact, receiver.took.drain(..));
        }
    }
    Ok(())
}

/// Whether the outputs are those that were declared.
fn check(action: &Action, ending: &Ending) -> Result<(), String> {
    for (name, produced) in &ending.outputs {
        let slot =
            action.outputs.get(name).ok_or_else(|| format!("an output `{name}` that was not declared"))?;
        if slot.folder != matches!(produced.artifact, Artifact::Tree(_)) {
            return Err(format!("another kind of thing for the output `{name}`"));
        }
    }
    let needed = action.outputs.iter().filter(|(_, slot)| !slot.optional && ending.outcome.succeeded());
    match needed.into_iter().find(|(name, _)| !ending.outputs.contains_key(*name)) {
        Some((name, _)) => Err(format!("a success without the output `{name}`")),
        None => Ok(()),
    }
}

struct Receiver<'a> {
    inner: &'a Inner,
    small: HashMap<BlobDigest, Vec<u8>>,
    took: Vec<BlobDigest>,
}

impl Receiver<'_> {
    async fn artifact(&mut self, artifact: Artifact, size: u64) -> Result<(), Unreceived> {
        match artifact {
            Artifact::Blob(digest) => self.blobs(vec![digest], size).await,
            Artifact::Tree(digest) => self.tree(digest.into(), size).await,
        }
    }

    /// A folder: level by level its records, and then all files of it.
    async fn tree(&mut self, root: BlobDigest, size: u64) -> Result<(), Unreceived> {
        let mut level = vec![root];
        let mut seen = HashSet::from([root]);
        let mut files = HashSet::new();
        for _ in 0..DEPTH {
            if level.is_empty() {
                break;
            }
            self.blobs(level.clone(), RECORD).await?;
            let mut next = Vec::new();
            for digest in level {
                let tree = self.record(digest).await?;
                for entry in tree.entries.into_values() {
                    match entry {
                        Entry::File { digest, .. } => drop(files.insert(digest)),
                        Entry::Tree { digest } if seen.insert(digest.into()) => next.push(digest.into()),
                        _ => {}
                    }
                }
            }
            level = next;
        }
        self.blobs(files.into_iter().collect(), size).await
    }

    async fn record(&self, digest: BlobDigest) -> Result<Tree, Unreceived> {
        let blobs = Arc::clone(&self.inner.blobs);
        let bytes = blocking(move || blobs.read(digest)).await?;
        Tree::from_bytes(&bytes).map_err(|error| Unreceived::Wrong(format!("a folder that is none: {error}")))
    }

    /// Takes over blobs, none larger than `limit` bytes.
    async fn blobs(&mut self, wanted: Vec<BlobDigest>, limit: u64) -> Result<(), Unreceived> {
        self.took.extend(&wanted);
        let mut missing = self.unpack(wanted).await?;
        let mut alone = Vec::new();
        if missing.len() == 1 {
            alone.append(&mut missing);
        }
        while !missing.is_empty() {
            let asked = &missing[..missing.len().min(ASKED)];
            let answer = self.inner.http.post("/blobs/pack", join(asked)).await?;
            let got = self.keep_pack(asked, answer, &mut alone).await?;
            missing.drain(..got);
        }
        for digest in alone {
            fetch(self.inner, digest, limit).await?;
        }
        Ok(())
    }

    /// Stores those that have come already; the others, without those that were here before.
    async fn unpack(&mut self, wanted: Vec<BlobDigest>) -> Result<Vec<BlobDigest>, Unreceived> {
        let arrived: Vec<Option<Vec<u8>>> = wanted.iter().map(|digest| self.small.remove(digest)).collect();
        let blobs = Arc::clone(&self.inner.blobs);
        let missing = blocking(move || {
            let mut missing = Vec::new();
            for (digest, bytes) in wanted.into_iter().zip(arrived) {
                match bytes {
                    Some(bytes) => drop(blobs.put(&bytes)?),
                    None if !here(blobs.as_ref(), digest)? => missing.push(digest),
                    None => {}
                }
            }
            Ok(missing)
        });
        Ok(missing.await?)
    }

    async fn keep_pack(
        &self,
        asked: &[BlobDigest],
        answer: Vec<u8>,
        alone: &mut Vec<BlobDigest>,
    ) -> Result<usize, Unreceived> {
        let (asked, blobs) = (asked.to_vec(), Arc::clone(&self.inner.blobs));
        let kept = tokio::task::spawn_blocking(move || {
            let pack = pack::blobs(&answer).map_err(|error| Unreceived::Wrong(error.to_string()))?;
            let mut alone = Vec::new();
            let got = pack.len();
            for (digest, bytes) in asked.into_iter().zip(pack) {
                match bytes {
                    Some(bytes) if BlobDigest::of(bytes) == digest => drop(blobs.put(bytes)?),
                    Some(_) => return Err(Unreceived::Wrong(format!("other bytes for the blob {digest}"))),
                    None => alone.push(digest),
                }
            }
            if got == 0 { Err(Unreceived::Wrong("an empty pack".to_owned())) } else { Ok((got, alone)) }
        });
        let kept = kept.await.map_err(|error| Unreceived::Wrong(error.to_string()))?;
        kept.map(|(got, more)| {
            alone.extend(more);
            got
        })
    }
}

/// Whether a sound blob is here already. A damaged one is replaced by what arrives.
fn here(blobs: &dyn BlobStore, digest: BlobDigest) -> Result<bool, StoreError> {
    match blobs.contains(digest) {
        Err(error) if error.is_unusable_blob() => Ok(false),
        other => other,
    }
}

/// Fetches one blob, unless it is here.
async fn fetch(inner: &Inner, digest: BlobDigest, limit: u64) -> Result<(), Unreceived> {
    let blobs = Arc::clone(&inner.blobs);
    if blocking(move || here(blobs.as_ref(), digest)).await? {
        return Ok(());
    }
    let mut response = inner.http.open(Method::GET, &format!("/blobs/{digest}"), Vec::new()).await?;
    let folder = inner.temporary.clone();
    let failed = |source| StoreError::Io { action: "write in", path: folder.clone(), source };
    let made = tempfile::Builder::new().prefix("fetch-").tempfile_in(&folder).map_err(failed)?;
    let (mut file, path) = made.into_parts();
    let mut hasher = blake3::Hasher::new();
    let mut size = 0;
    while let Some(piece) = http::piece(&mut response).await? {
        size += piece.len() as u64;
        if size > limit {
            return Err(Unreceived::Wrong(format!("the blob {digest} is longer than it was said to be")));
        }
        let folder = folder.clone();
        (file, hasher) = blocking(move || {
            hasher.update(&piece);
            file.write_all(&piece).map_err(|source| StoreError::Io {
                action: "write in",
                path: folder,
                source,
            })?;
            Ok((file, hasher))
        })
        .await?;
    }
    if BlobDigest::from_bytes(*hasher.finalize().as_bytes()) != digest {
        return Err(Unreceived::Wrong(format!("other bytes for the blob {digest}")));
    }
    let blobs = Arc::clone(&inner.blobs);
    blocking(move || {
        drop(file);
        blobs.put_file(&path, Intake::Move).map(drop)
    })
    .await?;
    Ok(())
}
