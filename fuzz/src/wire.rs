//! The wire between a run and a worker, as either side hears it from anybody.

use avow_exec::worker::frame::{Frame, Frames};
use avow_exec::worker::pack;
use avow_exec::worker::protocol::{
    Beat, Demand, Description, Event, Refusal, Stop, Submission, decode, encode, join, split,
};
use avow_model::loads::Loads;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message is refused, or is the one form of what was read from it. Frames are the same however their bytes arrive;
/// no length is believed before its bytes are there.
pub fn wire(bytes: &[u8]) {
    message::<Submission>(bytes);
    message::<Demand>(bytes);
    message::<Loads>(bytes);
    message::<Event>(bytes);
    message::<Beat>(bytes);
    message::<Stop>(bytes);
    message::<Vec<String>>(bytes);
    if let Some(digests) = split(bytes) {
        assert_eq!(join(&digests), bytes);
    }
    if let Ok(blobs) = pack::blobs(bytes) {
        let held: usize = blobs.iter().map(|blob| 4 + blob.map_or(0, <[u8]>::len)).sum();
        assert_eq!(held, bytes.len());
    }
    frames(bytes);
    said::<Description>(bytes);
    said::<Refusal>(bytes);
}

fn message<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    if let Ok(message) = decode::<T>(bytes) {
        assert_eq!(encode(&message), bytes);
    }
}

/// What is JSON reads back as it was written.
fn said<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(said) = serde_json::from_slice::<T>(bytes) {
        let text = serde_json::to_vec(&said).expect("it was read from JSON");
        assert_eq!(serde_json::from_slice::<T>(&text).expect("it reads back"), said);
    }
}

fn frames(bytes: &[u8]) {
    let whole = taken(bytes, bytes.len().max(1));
    let cut = usize::from(bytes.first().copied().unwrap_or(1)).max(1);
    assert_eq!(taken(bytes, cut), whole);
    let (frames, _) = whole;
    let again: Vec<u8> = frames.iter().flat_map(Frame::to_bytes).collect();
    assert!(bytes.starts_with(&again));
}

/// The frames of a stream that arrives in pieces of this size, and whether it is refused.
fn taken(bytes: &[u8], size: usize) -> (Vec<Frame>, bool) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in bytes.chunks(size) {
        frames.push(piece);
        loop {
            match frames.pull() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}
