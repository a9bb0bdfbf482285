//! Fetching from a real server on this machine, plain and over TLS.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avow_exec::fetch::{FetchError, Fetched, Fetcher, Progress};
use avow_model::digest::BlobDigest;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project};
use reqwest::Certificate;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const BODY: &[u8] = b"six plain bytes, more or less\n";

/// Answers each request as its path says; counts them.
struct Server {
    address: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (tls, counter) = (tls.clone(), Arc::clone(&counter));
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    match tls {
                        None => answer(stream, &counter),
                        Some(config) => {
                            answer(StreamOwned::new(ServerConnection::new(config).unwrap(), stream), &counter)
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(stream: impl Read + Write, counter: &AtomicUsize) {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    // A client that does not trust us hangs up here.
    if stream.read_line(&mut request).is_err() || request.is_empty() {
        return;
    }
    let mut header = String::new();
    while stream.read_line(&mut header).unwrap() > 2 {
        header.clear();
    }
    let number = counter.fetch_add(1, Ordering::SeqCst);
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let mut say = |head: &str, body: &[u8], length: usize| {
        let text = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        stream.get_mut().write_all(body).unwrap();
        stream.get_mut().flush().unwrap();
    };
    match path.as_str() {
        "/good" => say("200 OK", BODY, BODY.len()),
        "/redirect" => say("302 Found\r\nLocation: /good", b"", 0),
        "/away" => say("302 Found\r\nLocation: http://192.0.2.1/good", b"", 0),
        "/circle" => say("302 Found\r\nLocation: /circle", b"", 0),
        "/short" => say("200 OK", BODY, BODY.len() + 5),
        "/busy-once" if number == 0 => say("503 Service Unavailable", b"", 0),
        "/broken-once" if number == 0 => say("200 OK", &BODY[..9], BODY.len()),
        "/busy-once" | "/broken-once" => say("200 OK", BODY, BODY.len()),
        "/large" => say("200 OK", &vec![7; 8 << 20], 8 << 20),
        _ => say("404 Not Found", b"nothing", 7),
    }
}

struct Place {
    _folder: tempfile::TempDir,
    project: Project,
    blobs: Arc<FileBlobs>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        project.create().unwrap();
        std::fs::create_dir_all(project.work()).unwrap();
        let blobs = Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
        Self { _folder: folder, project, blobs }
    }

    async fn fetch(&self, url: &str, expected: BlobDigest) -> Result<Fetched, FetchError> {
        let fetcher = Fetcher::new(self.project.work()).unwrap().patience(3, Duration::from_millis(1));
        self.with(&fetcher, url, expected).await
    }

    async fn with(&self, fetcher: &Fetcher, url: &str, expected: BlobDigest) -> Result<Fetched, FetchError> {
        let blobs = Arc::clone(&self.blobs) as Arc<dyn BlobStore>;
        let result = fetcher.fetch(url, expected, blobs, |_| ()).await;
        let fetched = std::fs::read_dir(self.project.work()).unwrap().flatten();
        let left = fetched.filter(|entry| entry.file_name().to_string_lossy().starts_with("fetch-"));
        assert_eq!(left.count(), 0, "a temporary file was left");
        result
    }
}

#[tokio::test]
async fn the_expected_bytes_are_stored_and_not_fetched_twice() {
    let (server, place) = (Server::start(None), Place::new());
    let digest = BlobDigest::of(BODY);
    assert_eq!(place.fetch(&server.url("/redirect"), digest).await.unwrap(), Fetched::Stored(30));
    assert_eq!(place.blobs.read(digest).unwrap(), BODY);
    assert_eq!(place.fetch(&server.url("/good"), digest).await.unwrap(), Fetched::Present);
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn other_bytes_are_refused_and_never_stored() {
    let (server, place) = (Server::start(None), Place::new());
    let expected = BlobDigest::of(b"something else");
    match place.fetch(&server.url("/good"), expected).await {
        Err(FetchError::Digest { found, size: 30, .. }) => assert_eq!(found, BlobDigest::of(BODY)),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.blobs.list().unwrap(), []);
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_not() {
    let expected = BlobDigest::of(BODY);
    for (path, requests) in [("/busy-once", 2), ("/broken-once", 2)] {
        let (server, place) = (Server::start(None), Place::new());
        assert_eq!(place.fetch(&server.url(path), expected).await.unwrap(), Fetched::Stored(30), "{path}");
        assert_eq!(server.requests(), requests, "{path}");
    }
    let (server, place) = (Server::start(None), Place::new());
    let error = place.fetch(&server.url("/none"), expected).await.unwrap_err();
    assert!(matches!(error, FetchError::Status { status, .. } if status == 404), "{error:?}");
    assert_eq!(server.requests(), 1);
    let error = place.fetch(&server.url("/short"), expected).await.unwrap_err();
    assert!(matches!(error, FetchError::Connection { tries: 3, .. }), "{error:?}");
    assert_eq!(server.requests(), 4);
}

#[tokio::test]
async fn nobody_at_the_address_is_a_connection_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Place::new().fetch(&format!("http://{free}/x"), BlobDigest::of(BODY)).await.unwrap_err();
    assert!(matches!(error, FetchError::Connection { tries: 3, .. }), "{error:?}");
}

#[tokio::test]
async fn a_redirect_may_not_leave_https_nor_go_round_for_ever() {
    let (server, place) = (Server::start(None), Place::new());
    for path in ["/away", "/circle"] {
        let error = place.fetch(&server.url(path), BlobDigest::of(BODY)).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { .. }), "{path}: {error:?}");
    }
}

#[tokio::test]
async fn progress_is_told_up_to_the_whole() {
    let (server, place) = (Server::start(None), Place::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let fetcher = Fetcher::new(place.project.work()).unwrap();
    let blobs = Arc::clone(&place.blobs) as Arc<dyn BlobStore>;
    let told = Arc::clone(&seen);
    let expected = BlobDigest::of(&vec![7; 8 << 20]);
    let done =
        fetcher.fetch(&server.url("/large"), expected, blobs, move |p| told.lock().unwrap().push(p)).await;
    assert_eq!(done.unwrap(), Fetched::Stored(8 << 20));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.last(), Some(&Progress { received: 8 << 20, total: Some(8 << 20) }));
    assert!(seen.len() > 1 && seen.is_sorted_by_key(|progress| progress.received));
}

#[tokio::test]
async fn a_certificate_is_checked() {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let (server, place) = (Server::start(Some(Arc::new(config))), Place::new());
    let digest = BlobDigest::of(BODY);

    let error = place.fetch(&server.url("/good"), digest).await.unwrap_err();
    assert!(matches!(error, FetchError::Connection { .. }), "an unknown issuer is not trusted: {error:?}");
    assert_eq!(server.requests(), 0);

    let root = Certificate::from_pem(key.cert.pem().as_bytes()).unwrap();
    let fetcher = Fetcher::trusting(place.project.work(), vec![root]).unwrap();
    assert_eq!(place.with(&fetcher, &server.url("/good"), digest).await.unwrap(), Fetched::Stored(30));
}
