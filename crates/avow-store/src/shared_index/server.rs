//! The owner's side: the index that is open here, and a thread for each client that asks.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest};

use super::IndexCalls;
use super::protocol::{Request, Response, receive, send};
use crate::disk;
use crate::error::StoreError;
use crate::index;
use crate::project::Project;
use crate::record::{RecordStore, Recorded, SledIndex};
use crate::stamp::{FileStamp, StampCache};

/// The name of the socket in the store folder.
const SOCKET: &str = "index.sock";

/// The address of the socket. The name of a socket may have 107 bytes, so it is named through a descriptor of its
/// folder, which has to stay open meanwhile.
pub(super) fn address(project: &Project) -> io::Result<(File, PathBuf)> {
    let folder = File::open(project.store())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
    Ok((folder, path))
}

/// The index that this process has open, with the project it belongs to.
#[derive(Clone)]
pub(super) struct Answering(Arc<Opened>);

pub(super) struct Opened {
    project: Project,
    index: SledIndex,
}

impl Answering {
    pub(super) fn new(project: Project, index: SledIndex) -> Answering {
        Answering(Arc::new(Opened { project, index }))
    }
}

impl Deref for Answering {
    type Target = Opened;
    fn deref(&self) -> &Opened {
        &self.0
    }
}

impl RecordStore for Opened {
    fn insert(&self, recorded: &Recorded) -> Result<AttemptDigest, StoreError> {
        self.index.insert(recorded)
    }

    fn attempt(&self, digest: AttemptDigest) -> Result<Option<Recorded>, StoreError> {
        self.index.attempt(digest)
    }

    fn trace(&self, action: ActionDigest) -> Result<Vec<AttemptDigest>, StoreError> {
        self.index.trace(action)
    }

    fn history(&self, experiment: &str, member: &str) -> Result<Vec<AttemptDigest>, StoreError> {
        self.index.history(experiment, member)
    }

    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, AttemptDigest)>, StoreError> {
        self.index.stage_history(experiment, stage)
    }

    fn entries(&self) -> Result<Vec<Recorded>, StoreError> {
        self.index.entries()
    }
}

impl StampCache for Opened {
    fn cached_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        self.index.cached_digest(stamp)
    }

    fn earlier_digest(&self, stamp: FileStamp) -> Result<Option<BlobDigest>, StoreError> {
        self.index.earlier_digest(stamp)
    }

    fn remember_digests(&self, entries: &[(FileStamp, BlobDigest)]) -> Result<(), StoreError> {
        self.index.remember_digests(entries)
    }
}

impl IndexCalls for Opened {
    fn caught_up(&self, run: &str, length: u64) -> Result<(), StoreError> {
        self.index.caught_up(run, length)
    }

    fn catch_up(&self, run: &str) -> Result<(), StoreError> {
        index::catch_up_run(&self.project, &self.index, run)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.index.flush()
    }
}

/// Answers clients until it is dropped.
pub(super) struct Server {
    project: Project,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    ending: AtomicBool,
    clients: Mutex<Vec<(UnixStream, JoinHandle<()>)>>,
}

impl Server {
    /// Starts to answer. Where the file system has no sockets nobody is answered, and other runs wait for the
    /// index until this one has ended.
    pub(super) fn start(project: &Project, index: &Answering) -> Server {
        let shared = Arc::new(Shared::default());
        let listener = listen(project);
        let accepting = listener.and_then(|listener| {
            let (shared, index) = (Arc::clone(&shared), index.clone());
            thread::Builder::new().name("index".to_owned()).spawn(move || accept(&listener, &shared, &index))
        });
        if let Err(error) = &accepting {
            tracing::warn!(%error, "other runs in this project have to wait for the end of this one");
        }
        Server { project: project.clone(), shared, accepting: accepting.ok() }
    }
}

fn listen(project: &Project) -> io::Result<UnixListener> {
    let (_folder, path) = address(project)?;
    // A dead owner's; we hold the lock, so no living one answers there.
    match disk::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(&path)
}

fn accept(listener: &UnixListener, shared: &Shared, index: &Answering) {
    for stream in listener.incoming() {
        if shared.ending.load(Ordering::SeqCst) {
            return;
        }
        let served = stream.and_then(|stream| {
            let (index, other) = (index.clone(), stream.try_clone()?);
            let thread = thread::Builder::new().name("index client".to_owned());
            let thread = thread.spawn(move || serve(stream, &index))?;
            let mut clients = shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
            clients.retain(|(_, thread)| !thread.is_finished());
            clients.push((other, thread));
            Ok(())
        });
        if let Err(error) = served {
            // The client finds nobody and asks again.
            tracing::warn!(%error, "a client of the index could not be served");
            thread::sleep(super::PAUSE);
        }
    }
}

fn serve(mut stream: UnixStream, index: &Answering) {
    loop {
        let request = match receive::<Request>(&mut stream) {
            Ok(Some(request)) => request,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "a client of the index broke off");
                break;
            }
        };
        // sled meets some damage with a panic instead of an error.
        let answer = catch_unwind(AssertUnwindSafe(|| answer(index, request)));
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Response::Failed(words(&error)),
            Err(_) => Response::Failed("the index is damaged".to_owned()),
        };
        if let Err(error) = send(&mut stream, &answer) {
            tracing::debug!(%error, "a client of the index is gone");
            break;
        }
    }
    // The accepting thread keeps a second descriptor; without this the client would wait for it.
    let _ = stream.shutdown(Shutdown::Both);
}

fn answer(index: &Opened, request: Request) -> Result<Response, StoreError> {
    Ok(match request {
        Request::Hello => Response::Done,
        Request::Insert(recorded) => Response::Inserted(index.insert(&recorded)?),
        Request::Attempt(digest) => Response::Attempt(index.attempt(digest)?.map(Box::new)),
        Request::Trace(action) => Response::Digests(index.trace(action)?),
        Request::History(experiment, member) => Response::Digests(index.history(&experiment, &member)?),
        Request::StageHistory(experiment, stage) => {
            Response::Labelled(index.stage_history(&experiment, &stage)?)
        }
        Request::CachedDigest(stamp) => Response::CachedDigest(index.cached_digest(stamp)?),
        Request::RememberDigests(entries) => index.remember_digests(&entries).map(|()| Response::Done)?,
        Request::CaughtUp(run, length) => index.caught_up(&run, length).map(|()| Response::Done)?,
        Request::CatchUp(run) => index.catch_up(&run).map(|()| Response::Done)?,
        Request::Flush => index.flush().map(|()| Response::Done)?,
    })
}

fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        if let Some(accepting) = self.accepting.take() {
            // Wakes the accepting thread. Where even that fails it stays, and with it the open index: then the
            // lock's next holder waits for the end of this process.
            let woken = address(&self.project).and_then(|(_folder, path)| UnixStream::connect(path));
            match woken {
                Ok(_) => {
                    // A panic in it is told by its message; there is nothing to undo.
                    let _ = accepting.join();
                }
                Err(error) => tracing::warn!(%error, "the index cannot be handed over before the end"),
            }
        }
        let clients =
            std::mem::take(&mut *self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner));
        // Whoever opens the index next makes its own; one that stays is in nobody's way.
        let _ = disk::remove_file(&self.project.store().join(SOCKET));
        for (stream, thread) in clients {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}
