//! Blobs in and out.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, Intake};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};

use super::Shared;
use super::answer::{Answer, blocking, bytes, nothing, pieces};
use crate::worker::body::Sent;
use crate::worker::pack;
use crate::worker::protocol::{PACK_LIMIT, Refusal, SMALL, join, split};

/// The digest in a path.
pub(super) fn named(text: &str) -> Result<BlobDigest, Refusal> {
    text.parse().map_err(|error: avow_model::digest::ParseDigestError| Refusal::Malformed {
        reason: error.to_string(),
    })
}

fn listed(body: &[u8]) -> Result<Vec<BlobDigest>, Refusal> {
    split(body).ok_or_else(|| Refusal::Malformed { reason: "digests have 32 bytes each".to_owned() })
}

/// Which of these are not here.
pub(super) async fn lacking(shared: &Arc<Shared>, body: Bytes) -> Result<Answer, Refusal> {
    let asked = listed(&body)?;
    let cache = Arc::clone(&shared.cache);
    let lacking = blocking(move || {
        let mut lacking = Vec::new();
        for digest in asked {
            if !cache.has(digest)? {
                lacking.push(digest);
            }
        }
        Ok(lacking)
    });
    Ok(bytes(join(&lacking.await?), "application/octet-stream"))
}

/// Takes many small blobs in.
pub(super) async fn put_pack(shared: &Arc<Shared>, body: Bytes) -> Result<Answer, Refusal> {
    let cache = Arc::clone(&shared.cache);
    blocking(move || {
        for blob in pack::blobs(&body)?.into_iter().flatten() {
            let digest = cache.blobs().put(blob)?;
            cache.came(digest, blob.len() as u64);
        }
        Ok(nothing())
    })
    .await
}

/// Takes one blob in, under the name that its bytes must have.
pub(super) async fn put(
    shared: &Arc<Shared>,
    digest: BlobDigest,
    mut body: Incoming,
) -> Result<Answer, Refusal> {
    let limit = shared.description.blob_limit;
    if body.size_hint().lower() > limit {
        return Err(Refusal::TooLarge { limit });
    }
    let folder = shared.project.temporary();
    let machine = |error: std::io::Error| Refusal::Machine { reason: error.to_string() };
    let (mut file, path) =
        tempfile::Builder::new().prefix("put-").tempfile_in(&folder).map_err(machine)?.into_parts();
    let mut hasher = blake3::Hasher::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| Refusal::Malformed { reason: format!("the blob ended too early: {error}") })?;
        let Ok(piece) = frame.into_data() else { continue };
        size += piece.len() as u64;
        if size > limit {
            return Err(Refusal::TooLarge { limit });
        }
        (file, hasher) = blocking(move || {
            hasher.update(&piece);
            file.write_all(&piece).map_err(machine)?;
            Ok((file, hasher))
        })
        .await?;
    }
    let found = BlobDigest::from_bytes(*hasher.finalize().as_bytes());
    if found != digest {
        return Err(Refusal::Malformed { reason: format!("the bytes have the digest {found}") });
    }
    let cache = Arc::clone(&shared.cache);
    blocking(move || {
        drop(file);
        let (stored, size) = cache.blobs().put_file(&path, Intake::Move)?;
        cache.came(stored, size);
        // It may have been moved, and then its temporary name stands for nothing.
        drop(path);
        Ok(nothing())
    })
    .await
}

/// One blob.
pub(super) async fn get(shared: &Arc<Shared>, digest: BlobDigest) -> Result<Answer, Refusal> {
    let cache = Arc::clone(&shared.cache);
    let (file, size) = blocking(move || {
        if !cache.has(digest)? {
            return Err(Refusal::Unknown);
        }
        let machine = |error: std::io::Error| Refusal::Machine { reason: error.to_string() };
        let file = File::open(cache.blobs().path(digest)).map_err(machine)?;
        let size = file.metadata().map_err(machine)?.len();
        Ok((file, size))
    })
    .await?;
    Ok(pieces(Sent::file(file, size)))
}

/// As many of these as are small and fit into one answer, from the first on.
pub(super) async fn get_pack(shared: &Arc<Shared>, body: Bytes) -> Result<Answer, Refusal> {
    let asked = listed(&body)?;
    let cache = Arc::clone(&shared.cache);
    let pack = blocking(move || {
        let mut pack = Vec::new();
        for digest in asked {
            let size = cache.blobs().size(digest)?;
            if size.is_some_and(|size| size <= SMALL) && cache.has(digest)? {
                let blob = cache.blobs().read(digest)?;
                if pack.len() + blob.len() + 4 > PACK_LIMIT {
                    break;
                }
                pack::add(&mut pack, &blob);
            } else if pack.len() + 4 > PACK_LIMIT {
                break;
            } else {
                pack::add_alone(&mut pack);
            }
        }
        Ok(pack)
    });
    Ok(bytes(pack.await?, "application/octet-stream"))
}
