//! The answer to a submission: what happens to an attempt, as frames, until it has ended.
//!
//! Logs are read from the attempt's folder while they grow. When it is over they are blobs, and what is left of
//! them is read from there. A program may cut its log short; then what was sent of it is void.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avow_model::attempt::AttemptId;
use avow_model::digest::{Artifact, BlobDigest};
use avow_store::BlobStore;
use hyper::body::Bytes;
use tokio::sync::mpsc;

use super::Shared;
use super::answer::{Answer, pieces};
use super::attempts::Entry;
use crate::folder;
use crate::worker::body::Sent;
use crate::worker::frame::{Frame, LOG_PIECE};
use crate::worker::protocol::{Ending, Event, INLINE_LIMIT};

/// What has ended within this time is answered in one piece.
const SOON: Duration = Duration::from_millis(25);
/// How often logs are looked at.
const LOOK: Duration = Duration::from_millis(150);

/// The stream of an attempt for a client that has so much of its logs.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    id: &AttemptId,
    entry: Arc<Entry>,
    have: [u64; 2],
) -> Answer {
    let (sender, receiver) = mpsc::channel(16);
    let work = shared.project.work();
    let follower =
        Follower { shared: Arc::clone(shared), logs: Logs::new(folder::logs(&work, id), have), sender };
    let mut end = entry.end.subscribe();
    // The end of a short attempt leaves together with the head of the answer.
    let _ = tokio::time::timeout(SOON, end.wait_for(Option::is_some)).await;
    tokio::spawn(follower.follow(entry));
    pieces(Sent::Pieces(receiver, None))
}

struct Follower {
    shared: Arc<Shared>,
    logs: Logs,
    sender: mpsc::Sender<Bytes>,
}

/// The client has gone.
struct Gone;

impl Follower {
    async fn follow(mut self, entry: Arc<Entry>) {
        // A client that has gone comes back, or its lease runs out.
        let _ = self.stream(&entry).await;
    }

    async fn stream(&mut self, entry: &Entry) -> Result<(), Gone> {
        let mut end = entry.end.subscribe();
        let pulse = Duration::from_millis(self.shared.description.lease / 5).max(LOOK);
        let mut silent = tokio::time::Instant::now();
        let event = loop {
            let ended = async { end.wait_for(Option::is_some).await.ok().and_then(|event| event.clone()) };
            tokio::select! {
                event = ended => break event,
                () = self.sender.closed() => return Err(Gone),
                () = tokio::time::sleep(LOOK) => {}
            }
            if self.send_growth().await? {
                silent = tokio::time::Instant::now();
            } else if silent.elapsed() >= pulse {
                self.send(&Frame::Alive).await?;
                silent = tokio::time::Instant::now();
            }
        };
        let Some(event) = event else { return Ok(()) };
        if let Event::Finished(ending) = &event {
            self.send_rest(0, ending.stdout).await?;
            self.send_rest(1, ending.stderr).await?;
            self.send_small_outputs(entry, ending).await?;
        }
        self.send(&Frame::Event(event)).await
    }

    async fn send(&self, frame: &Frame) -> Result<(), Gone> {
        self.sender.send(frame.to_bytes().into()).await.map_err(|_| Gone)
    }

    /// Sends what the logs have grown by; whether that was anything.
    async fn send_growth(&mut self) -> Result<bool, Gone> {
        let mut any = false;
        loop {
            let mut logs = std::mem::take(&mut self.logs);
            let read = tokio::task::spawn_blocking(move || {
                let frames = logs.grown();
                (logs, frames)
            });
            let Ok((logs, frames)) = read.await else { return Ok(any) };
            self.logs = logs;
            if frames.is_empty() {
                return Ok(any);
            }
            any = true;
            for frame in frames {
                self.send(&frame).await?;
            }
        }
    }

    /// Sends the part of a whole log that the client does not have.
    async fn send_rest(&mut self, stream: u8, log: Option<BlobDigest>) -> Result<(), Gone> {
        let Some(log) = log else { return Ok(()) };
        let path = self.shared.cache.blobs().path(log);
        let have = self.logs.have[usize::from(stream)];
        let size = std::fs::metadata(&path).map_or(0, |about| about.len());
        let mut from = have;
        if size < have {
            self.send(&Frame::Event(Event::Reset(stream))).await?;
            from = 0;
        }
        while from < size {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || piece(&path, from));
            let Ok(Ok(bytes)) = read.await else { return Ok(()) };
            if bytes.is_empty() {
                break;
            }
            from += bytes.len() as u64;
            self.send(&Frame::Log(stream, bytes)).await?;
        }
        Ok(())
    }

    /// Sends small files with the end of the attempt, which saves the client a request for them.
    async fn send_small_outputs(&self, entry: &Entry, ending: &Ending) -> Result<(), Gone> {
        let mut left = INLINE_LIMIT;
        for (name, produced) in &ending.outputs {
            let Artifact::Blob(digest) = produced.artifact else { continue };
            if produced.size > left || !entry.kept.contains(name) {
                continue;
            }
            let cache = Arc::clone(&self.shared.cache);
            let read = tokio::task::spawn_blocking(move || cache.blobs().read(digest));
            // What cannot be read here is asked for by its name, and refused with the reason.
            if let Ok(Ok(bytes)) = read.await {
                left = left.saturating_sub(bytes.len() as u64);
                self.send(&Frame::Blob(bytes)).await?;
            }
        }
        Ok(())
    }
}

/// How far the logs of an attempt were sent.
#[derive(Default)]
struct Logs {
    paths: [PathBuf; 2],
    have: [u64; 2],
}

impl Logs {
    fn new(paths: [PathBuf; 2], have: [u64; 2]) -> Logs {
        Logs { paths, have }
    }

    /// The next piece of each.
    fn grown(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for stream in [0, 1] {
            let at = usize::from(stream);
            // There is none before the program starts, nor after it has ended.
            let Ok(about) = std::fs::metadata(&self.paths[at]) else { continue };
            if about.len() < self.have[at] {
                self.have[at] = 0;
                frames.push(Frame::Event(Event::Reset(stream)));
            }
            match piece(&self.paths[at], self.have[at]) {
                Ok(bytes) if !bytes.is_empty() => {
                    self.have[at] += bytes.len() as u64;
                    frames.push(Frame::Log(stream, bytes));
                }
                _ => {}
            }
        }
        frames
    }
}

fn piece(path: &Path, from: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_PIECE as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
