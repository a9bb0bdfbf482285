//! A worker in this process, reached over the loopback interface, as one place of a pool.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avow_exec::worker::{Place, Remote, Server, Setup, Token};
use avow_exec::{Cancel, Pool, Secrets, Site};
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::Subject;

pub const TOKEN: &str = "a token that is long enough";

/// A token without spaces.
pub fn token() -> Token {
    Token::new(&TOKEN.replace(' ', "-")).unwrap()
}

/// How a worker is set up in tests.
pub fn setup(folder: &Path) -> Setup {
    Setup {
        token: token(),
        folder: folder.to_owned(),
        avow: folder.join("no-avow"),
        quota: 1 << 30,
        cpus: 8,
        memory: 64 << 30,
        lease: Duration::from_secs(20),
        grace: Duration::from_millis(300),
        confinement: None,
        allow: Vec::new(),
        ops: BTreeMap::new(),
        identify: Arc::new(|_| None),
        tool: "test".to_owned(),
    }
}

/// A worker that serves until it is dropped.
pub struct Served {
    pub address: String,
    pub cancel: Cancel,
    /// Threads of its own, so that it can be stopped as if it had been killed.
    runtime: Option<Runtime>,
}

impl Served {
    pub fn start(setup: Setup) -> Served {
        Self::start_at(setup, "127.0.0.1:0")
    }

    pub fn start_at(setup: Setup, address: &str) -> Served {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let cancel = Cancel::new().unwrap();
        let server = Server::open(setup).unwrap();
        let address = address.to_owned();
        // Not on a thread of the caller's runtime, which must not wait.
        let listener = std::thread::scope(|scope| {
            scope.spawn(|| runtime.block_on(TcpListener::bind(&address)).unwrap()).join().unwrap()
        });
        let address = listener.local_addr().unwrap().to_string();
        runtime.spawn(server.serve(listener, cancel.clone()));
        Served { address, cancel, runtime: Some(runtime) }
    }

    pub fn place(&self) -> Place {
        Place { url: format!("http://{}", self.address), token: token() }
    }

    /// Ends it without a word to anybody.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A project with a store, the client's side.
pub struct Client {
    pub folder: tempfile::TempDir,
    pub project: Project,
    pub blobs: Arc<FileBlobs>,
}

impl Client {
    pub fn new() -> Client {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        project.create().unwrap();
        let blobs = Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
        Client { folder, project, blobs }
    }

    pub async fn connect(&self, place: &Place) -> Remote {
        Remote::connect(place, &self.project, self.blobs.clone(), Secrets::default()).await.unwrap()
    }
}

/// A pool of one worker.
pub struct Worker {
    pub client: Client,
    pub elsewhere: tempfile::TempDir,
    pub served: Served,
    pub pool: Pool,
}

impl Subject for Worker {
    type Executor = Pool;

    async fn new() -> Self {
        let elsewhere = tempfile::tempdir().unwrap();
        let served = Served::start(setup(elsewhere.path()));
        let client = Client::new();
        let remote = client.connect(&served.place()).await;
        let pool = Pool::new(vec![Site::Worker(remote)]);
        Worker { client, elsewhere, served, pool }
    }

    fn executor(&self) -> Pool {
        self.pool.clone()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.client.blobs.clone()
    }

    fn work(&self) -> PathBuf {
        self.client.project.work()
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let here = fs::read_dir(self.work()).unwrap().map(|entry| entry.unwrap().path());
        here.filter(|path| path.file_name().unwrap().len() == 32).collect()
    }
}
