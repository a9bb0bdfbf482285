//! Giving a worker the blobs that an action needs: each once, and only those that it lacks.
//!
//! What an action needs is known by its artifacts. One that was sent whole needs no look any more; of the others,
//! one request says which of their blobs the worker lacks. Small blobs travel many to a request. Attempts that
//! need the same artifact, or the same large blob, wait for the one that sends it.

use std::fs::File;
use std::sync::Arc;

use avow_model::action::Action;
use avow_model::digest::{Artifact, BlobDigest};
use avow_store::{BlobStore, StoreError};
use tokio::sync::OnceCell;

use super::http::CallError;
use super::{Inner, Known, RemoteError, lock};
use crate::ExecError;
use crate::worker::body::Sent;
use crate::worker::closure::{Closure, artifacts};
use crate::worker::pack;
use crate::worker::protocol::{DIGESTS_LIMIT, PACK_LIMIT, Refusal, SMALL, join, split};

/// Why blobs could not be sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The worker or the way to it.
    Call(CallError),
    /// Our own store.
    Ours(StoreError),
}

impl From<CallError> for Unsent {
    fn from(error: CallError) -> Unsent {
        Unsent::Call(error)
    }
}

impl From<StoreError> for Unsent {
    fn from(error: StoreError) -> Unsent {
        Unsent::Ours(error)
    }
}

/// Makes sure that the worker has everything that an action lays out.
pub(super) async fn provide(inner: &Inner, known: &Known, action: &Action) -> Result<(), Unsent> {
    let cells: Vec<(Artifact, Arc<OnceCell<()>>)> = {
        let mut all = lock(&known.artifacts);
        artifacts(action).map(|artifact| (artifact, Arc::clone(all.entry(artifact).or_default()))).collect()
    };
    let wanted: Vec<_> = cells.into_iter().filter(|(_, cell)| !cell.initialized()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut closures = Vec::new();
    for (artifact, cell) in wanted {
        closures.push((closure(inner, artifact).await?, cell));
    }
    ask(inner, known, closures.iter().flat_map(|(blobs, _)| blobs)).await?;
    for (blobs, cell) in closures {
        cell.get_or_try_init(|| send(inner, known, blobs)).await?;
    }
    Ok(())
}

/// What a worker said that it lacks is not known to be there any more.
pub(super) fn lacking(known: &Known, blobs: &[BlobDigest]) {
    let mut present = lock(&known.present);
    let mut large = lock(&known.large);
    for digest in blobs {
        present.remove(digest);
        large.remove(digest);
    }
    lock(&known.artifacts).clear();
}

/// Notes what the worker has because it wrote it.
pub(super) fn has(known: &Known, artifact: Artifact, blobs: impl IntoIterator<Item = BlobDigest>) {
    lock(&known.present).extend(blobs);
    lock(&known.artifacts).insert(artifact, Arc::new(OnceCell::new_with(Some(()))));
}

async fn closure(inner: &Inner, artifact: Artifact) -> Result<Vec<BlobDigest>, Unsent> {
    let blobs = Arc::clone(&inner.blobs);
    let found = blocking(move || {
        let closure = Closure::of_artifact(blobs.as_ref(), artifact)?;
        match closure.missing.first() {
            Some(digest) => Err(StoreError::Missing { digest: *digest }),
            None => Ok(closure.blobs),
        }
    });
    Ok(found.await?)
}

/// Learns which of these the worker has.
async fn ask(
    inner: &Inner,
    known: &Known,
    blobs: impl Iterator<Item = &BlobDigest>,
) -> Result<(), CallError> {
    let mut unknown: Vec<BlobDigest> = {
        let present = lock(&known.present);
        blobs.filter(|digest| !present.contains(digest)).copied().collect()
    };
    unknown.sort_unstable();
    unknown.dedup();
    for some in unknown.chunks(DIGESTS_LIMIT / 32) {
        let answer = inner.http.post("/blobs/lacking", join(some)).await?;
        let strange = || CallError::Broken("its list of blobs has no whole digests".to_owned());
        let lacking: std::collections::HashSet<BlobDigest> =
            split(&answer).ok_or_else(strange)?.into_iter().collect();
        lock(&known.present).extend(some.iter().filter(|digest| !lacking.contains(digest)));
    }
    Ok(())
}

/// Sends those that are not known to be there.
async fn send(inner: &Inner, known: &Known, blobs: Vec<BlobDigest>) -> Result<(), Unsent> {
    let mut pack = Vec::new();
    let mut packed = Vec::new();
    for digest in blobs {
        if lock(&known.present).contains(&digest) {
            continue;
        }
        let store = Arc::clone(&inner.blobs);
        let small = blocking(move || {
            let small = store.size(digest)?.is_some_and(|size| size <= SMALL);
            small.then(|| store.read(digest)).transpose()
        });
        match small.await? {
            Some(bytes) => {
                if pack.len() + bytes.len() + 4 > PACK_LIMIT {
                    send_pack(inner, known, &mut pack, &mut packed).await?;
                }
                pack::add(&mut pack, &bytes);
                packed.push(digest);
            }
            None => send_large(inner, known, digest).await?,
        }
    }
    send_pack(inner, known, &mut pack, &mut packed).await
}

async fn send_pack(
    inner: &Inner,
    known: &Known,
    pack: &mut Vec<u8>,
    packed: &mut Vec<BlobDigest>,
) -> Result<(), Unsent> {
    if !packed.is_empty() {
        inner.http.post("/blobs", std::mem::take(pack)).await?;
        lock(&known.present).extend(packed.drain(..));
    }
    Ok(())
}

async fn send_large(inner: &Inner, known: &Known, digest: BlobDigest) -> Result<(), Unsent> {
    let cell = Arc::clone(lock(&known.large).entry(digest).or_default());
    let sent = cell.get_or_try_init(|| async {
        let store = Arc::clone(&inner.blobs);
        let limit = known.description.blob_limit;
        let size = blocking({
            let store = Arc::clone(&store);
            move || store.size(digest)
        });
        if size.await?.is_some_and(|size| size > limit) {
            return Err(Unsent::Call(CallError::Refused(Refusal::TooLarge { limit })));
        }
        let body = blocking(move || body(store.as_ref(), digest)).await?;
        inner.http.put(&format!("/blobs/{digest}"), body).await?;
        Ok::<_, Unsent>(())
    });
    sent.await?;
    lock(&known.present).insert(digest);
    Ok(())
}

fn body(store: &dyn BlobStore, digest: BlobDigest) -> Result<Sent, StoreError> {
    let Some(path) = store.open_path(digest)? else { return Ok(Sent::whole(store.read(digest)?)) };
    let failed = |source| StoreError::Io { action: "open", path: path.clone(), source };
    let file = File::open(&path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok(Sent::file(file, size))
}

/// Work on the store, on a thread that may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => {
            let path = std::path::PathBuf::from("a thread");
            Err(StoreError::Io { action: "start", path, source: std::io::Error::other(error) })
        }
    }
}

/// A failure to send as a reason not to start.
pub(super) fn not_sent(inner: &Inner, error: Unsent) -> RemoteError {
    match error {
        Unsent::Call(error) => inner.http.failed(error),
        Unsent::Ours(error) => RemoteError::Exec(ExecError::Store(error)),
    }
}
