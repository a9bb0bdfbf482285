//! What clients and owner say to each other: frames of a version, a length, and one CBOR value.

use std::io::{self, Read, Write};

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::Recorded;
use crate::stamp::FileStamp;

/// Changes with every change of what follows. Programs of different versions do not talk; the later one waits.
const VERSION: u32 = 1;
/// The longest value. The largest are lists of digests: about 100 bytes for each member of a stage.
const LONGEST: u32 = 1 << 30;

/// A call on the index.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Whether somebody is there who understands.
    Hello,
    Insert(Box<Recorded>),
    Attempt(AttemptDigest),
    Trace(ActionDigest),
    History(String, String),
    StageHistory(String, String),
    CachedDigest(FileStamp),
    RememberDigests(Vec<(FileStamp, BlobDigest)>),
    CaughtUp(String, u64),
    CatchUp(String),
    Flush,
}

/// Its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Response {
    Attempt(Option<Box<Recorded>>),
    Digests(Vec<AttemptDigest>),
    Labelled(Vec<(String, AttemptDigest)>),
    CachedDigest(Option<BlobDigest>),
    Inserted(AttemptDigest),
    Done,
    /// The index failed, in words.
    Failed(String),
}

/// Writes one value.
pub(super) fn send(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 8];
    ciborium::into_writer(value, &mut frame).map_err(io::Error::other)?;
    let length = u32::try_from(frame.len() - 8).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    frame[..4].copy_from_slice(&VERSION.to_be_bytes());
    frame[4..8].copy_from_slice(&length.to_be_bytes());
    to.write_all(&frame)
}

/// Reads one value; `None` where the other side has ended.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; 8];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let [a, b, c, d, e, f, g, h] = head;
    let (version, length) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
    if version != VERSION || length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "another version of avow"));
    }
    // Memory grows with what really arrives, not with what a length promises.
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let value = ciborium::from_reader(bytes.as_slice());
    value.map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}
