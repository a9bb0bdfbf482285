//! What a run that came to its end had settled, so that the same run again need not work it out again.
//!
//! A receipt is a file among the caches ([`crate::cache`]), named by everything that decides which attempts stand: plan, members
//! asked for, registration, host. It lists the hits as journals write them, and the stamp that every promised
//! blob had when it was last known to be sound and durable. It stands as long as every stamp is still the same,
//! which one look at each file shows. Whatever could make an earlier attempt stand instead (a journal that was
//! brought in, an index built anew) removes all receipts; removing them by hand costs time and nothing else.

use std::fs;
use std::thread;

use avow_model::digest::BlobDigest;

use crate::blob::FileBlobs;
use crate::cache;
use crate::hits;
use crate::project::Project;
use crate::stamp::FileStamp;

const FORM: &[u8; 16] = b"avow settled 1\n\0";
const BLOB: usize = 32 + 16 + 24;
const PREFIX: &str = "settled-";
/// Each belongs to one plan and one set of members asked for.
const KEPT: usize = 16;
/// With fewer files than this a second thread costs more than it saves.
const SHARED: usize = 2_000;

/// What a run had settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// How many members.
    pub members: u64,
    /// Their hits, one JSON object a line, as in [`avow_model::journal::hits_of`].
    pub hits: Vec<u8>,
    /// Every blob that must be there for them to stand.
    pub blobs: Vec<(BlobDigest, FileStamp)>,
}

impl Receipt {
    /// The receipt with this name; `None` where there is none that is whole.
    pub fn open(project: &Project, name: BlobDigest) -> Option<Receipt> {
        let bytes = cache::get(project, &file(name))?;
        let rest = bytes.strip_prefix(FORM)?;
        let (members, rest) = number(rest)?;
        let (length, rest) = number(rest)?;
        let (hits, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        if rest.len() % BLOB != 0 {
            return None;
        }
        let blobs = rest.chunks_exact(BLOB).map(blob).collect::<Option<_>>()?;
        Some(Receipt { members, hits: hits.to_vec(), blobs })
    }

    /// Keeps it under a name, and only the latest of all.
    pub fn keep(&self, project: &Project, name: BlobDigest) {
        let mut bytes = Vec::with_capacity(self.hits.len() + self.blobs.len() * BLOB + 64);
        bytes.extend(FORM);
        bytes.extend(self.members.to_be_bytes());
        bytes.extend((self.hits.len() as u64).to_be_bytes());
        bytes.extend(&self.hits);
        for (digest, stamp) in &self.blobs {
            bytes.extend(digest.as_bytes());
            bytes.extend(stamp.to_bytes());
        }
        cache::put(project, &file(name), bytes);
        cache::trim(project, PREFIX, KEPT);
    }

    /// Whether every promised blob is as it was when it was last compared with its name.
    pub fn stands(&self, blobs: &FileBlobs) -> bool {
        let same = |part: &[(BlobDigest, FileStamp)]| {
            part.iter().all(|(digest, stamp)| {
                fs::symlink_metadata(blobs.path(*digest))
                    .is_ok_and(|about| about.is_file() && FileStamp::of(&about) == *stamp)
            })
        };
        let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(8);
        if self.blobs.len() < SHARED || threads == 1 {
            return same(&self.blobs);
        }
        thread::scope(|scope| {
            let parts = self.blobs.chunks(self.blobs.len().div_ceil(threads));
            let looks: Vec<_> = parts.map(|part| scope.spawn(move || same(part))).collect();
            looks.into_iter().all(|look| look.join().unwrap_or(false))
        })
    }
}

/// Removes all receipts, and what rests on the same.
pub(crate) fn forget(project: &Project) {
    cache::trim(project, PREFIX, 0);
    hits::forget(project);
}

fn file(name: BlobDigest) -> String {
    format!("{PREFIX}{name}")
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

fn blob(bytes: &[u8]) -> Option<(BlobDigest, FileStamp)> {
    let (digest, rest) = bytes.split_first_chunk::<32>()?;
    Some((BlobDigest::from_bytes(*digest), FileStamp::from_bytes(*rest.first_chunk()?)))
}
