//! The index as seen from a process that does not have it open.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};

use super::IndexCalls;
use super::protocol::{Request, Response, receive, send};
use super::server::address;
use super::silence::{Patient, Silence};
use crate::error::StoreError;
use crate::index::memory_index;
use crate::project::Project;
use crate::record::{RecordStore, Recorded};
use crate::stamp::{FileStamp, StampCache};

/// How long an owner may take for the first answer, and for any other before whoever waits is told.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections to the owner: as many as threads of ours have asked at once.
pub(super) struct Client {
    project: Project,
    idle: Mutex<Vec<UnixStream>>,
    broken: AtomicBool,
    silence: Silence,
}

impl Client {
    pub(super) fn connect(project: &Project, silence: Silence) -> std::io::Result<Client> {
        let client =
            Client { project: project.clone(), idle: Mutex::default(), broken: false.into(), silence };
        let mut stream = client.stream()?;
        // An owner that does not answer, because it is stopped or is something else, is none.
        send(&mut stream, &Request::Hello)?;
        match receive::<Response>(&mut stream)? {
            Some(Response::Done) => {}
            _ => return Err(std::io::ErrorKind::InvalidData.into()),
        }
        client.keep(stream);
        Ok(client)
    }

    /// Whether some call found the owner gone.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    fn stream(&self) -> std::io::Result<UnixStream> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(stream) => Ok(stream),
            None => {
                let (_folder, path) = address(&self.project)?;
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(stream)
            }
        }
    }

    fn keep(&self, stream: UnixStream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    fn ask(&self, request: &Request) -> Result<Response, StoreError> {
        let once = || {
            let mut stream = self.stream()?;
            send(&mut stream, request)?;
            let (project, silence) = (&self.project, &self.silence);
            let answer = receive::<Response>(&mut Patient { stream: &mut stream, project, silence })?;
            let answer = answer.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
            self.keep(stream);
            Ok(answer)
        };
        match once() {
            Ok(Response::Failed(reason)) => Err(StoreError::Owner { reason }),
            Ok(answer) => Ok(answer),
            Err(source) => {
                self.broken.store(true, Ordering::Relaxed);
                Err(StoreError::OwnerGone { source })
            }
        }
    }

    /// For an answer that does not fit its question.
    fn confused<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::Owner { reason: "its answer does not fit the question".to_owned() })
    }

    fn done(&self, request: &Request) -> Result<(), StoreError> {
        match self.ask(request)? {
            Response::Done => Ok(()),
            _ => self.confused(),
        }
    }

    fn digests(&self, request: &Request) -> Result<Vec<AttemptDigest>, StoreError> {
        match self.ask(request)? {
            Response::Digests(digests) => Ok(digests),
            _ => self.confused(),
        }
    }
}

impl RecordStore for Client {
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        match self.ask(&Request::Insert(Box::new(recorded.clone())))? {
            Response::Inserted(digest) => Ok(digest),
            _ => self.confused(),
        }
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        match self.ask(&Request::Attempt(digest))? {
            Response::Attempt(found) => Ok(found.map(|recorded| *recorded)),
            _ => self.confused(),
        }
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        self.digests(&Request::Trace(action))
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        self.digests(&Request::History(experiment.to_owned(), member.to_owned()))
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        match self.ask(&Request::StageHistory(experiment.to_owned(), stage.to_owned()))? {
            Response::Labelled(found) => Ok(found),
            _ => self.confused(),
        }
    }

    /// From the journals: everything at once would be one very long answer.
    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        memory_index(&self.project)?.entries()
    }
}

impl StampCache for Client {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        match self.ask(&Request::CachedDigest(stamp))? {
            Response::CachedDigest(found) => Ok(found),
            _ => self.confused(),
        }
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.done(&Request::RememberDigests(entries.to_vec()))
    }
}

impl IndexCalls for Client {
    fn caught_up(&self, run: &str, length: u64) -> Result<(), StoreError> {
        self.done(&Request::CaughtUp(run.to_owned(), length))
    }

    fn catch_up(&self, run: &str) -> Result<(), StoreError> {
        self.done(&Request::CatchUp(run.to_owned()))
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.done(&Request::Flush)
    }
}
