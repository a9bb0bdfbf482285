//! The wire between a run and a worker: what is sent and how often, and what happens when it breaks.
#![expect(clippy::unwrap_used, reason = "tests")]

mod suite;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avow_exec::worker::protocol::{self, Submission, Values};
use avow_exec::worker::{Place, Remote, RemoteError, Server, Token, WorkerError};
use avow_exec::{Cancel, ExecError, Execution, Executor, Pool, Secrets, Site, Unplaceable, Watch};
use avow_model::action::{Action, Command};
use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::Terms;
use avow_store::BlobStore;
use suite::{Client, Local, Served, Subject, Worker, setup, token};
use support::{action, alive, attempt, eventually, reads, sh, slot, words, writes};
use zeroize::Zeroizing;

/// Passes everything on to a worker, counts it, and can cut the lines.
struct Proxy {
    address: String,
    up: Arc<AtomicU64>,
    down: Arc<AtomicU64>,
    lines: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(address: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (up, down, lines) = <(Arc<AtomicU64>, Arc<AtomicU64>, Arc<Mutex<Vec<TcpStream>>>)>::default();
        let proxy = Proxy { address: listener.local_addr().unwrap().to_string(), up, down, lines };
        let (up, down, lines) = (Arc::clone(&proxy.up), Arc::clone(&proxy.down), Arc::clone(&proxy.lines));
        let address = address.to_owned();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let Ok(far) = TcpStream::connect(&address) else { continue };
                lines.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                let pump = |mut from: TcpStream, mut to: TcpStream, count: Arc<AtomicU64>| {
                    std::thread::spawn(move || {
                        let mut bytes = [0; 16384];
                        while let Ok(length @ 1..) = from.read(&mut bytes) {
                            count.fetch_add(length as u64, Ordering::SeqCst);
                            if to.write_all(&bytes[..length]).is_err() {
                                break;
                            }
                        }
                        // Either end may be gone already.
                        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                    });
                };
                pump(near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&up));
                pump(far, near, Arc::clone(&down));
            }
        });
        proxy
    }

    fn place(&self) -> Place {
        Place { url: format!("http://{}", self.address), token: token() }
    }

    fn cut(&self) {
        for line in self.lines.lock().unwrap().drain(..) {
            let _ = line.shutdown(Shutdown::Both);
        }
    }

    fn carried(&self) -> (u64, u64) {
        (self.up.load(Ordering::SeqCst), self.down.load(Ordering::SeqCst))
    }
}

/// A worker behind a proxy, and a client of it.
struct Line {
    client: Client,
    elsewhere: tempfile::TempDir,
    served: Served,
    proxy: Proxy,
    remote: Remote,
}

impl Line {
    async fn new() -> Line {
        Line::with(|_| ()).await
    }

    async fn with(change: impl FnOnce(&mut avow_exec::worker::Setup)) -> Line {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut setup = setup(elsewhere.path());
        change(&mut setup);
        let served = Served::start(setup);
        let proxy = Proxy::to(&served.address);
        let client = Client::new();
        let remote = client.connect(&proxy.place()).await;
        Line { client, elsewhere, served, proxy, remote }
    }

    async fn run(&self, action: &Action) -> Execution {
        self.under(action, &Terms::default()).await
    }

    async fn under(&self, action: &Action, terms: &Terms) -> Execution {
        self.remote.attempt(&attempt(), action, terms, &Cancel::new().unwrap()).await.unwrap()
    }

    fn start(&self, action: Action) -> (AttemptId, tokio::task::JoinHandle<Result<Execution, RemoteError>>) {
        let (remote, id) = (self.remote.clone(), attempt());
        let name = id.clone();
        let task = tokio::spawn(async move {
            remote.attempt(&name, &action, &Terms::default(), &Cancel::new().unwrap()).await
        });
        (id, task)
    }

    /// Waits for the first line of its log.
    fn says(&self, id: &AttemptId) -> String {
        let log = self.client.project.work().join(&id.0).join("stdout");
        let read = || fs::read_to_string(&log).unwrap_or_default();
        eventually("it says something", || read().ends_with('\n'));
        read()
    }

    fn text(&self, digest: Option<BlobDigest>) -> String {
        digest.map_or(String::new(), |digest| {
            String::from_utf8(self.client.blobs.read(digest).unwrap()).unwrap()
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_gives_the_same_bytes_as_this_machine() {
    let (local, worker) = (Local::new().await, Worker::new().await);
    let mut actions = Vec::new();
    for subject in [local.blobs(), worker.blobs()] {
        let input = Artifact::Blob(subject.put(b"some numbers\n1\n2\n3\n").unwrap());
        let script = "import random, json; random.seed(3); print(sum(map(len, open('in'))));\n\
            json.dump({'x': random.gauss(0, 1), 's': list({'a', 'b', 'c'})}, open('out/r.json', 'w'))";
        let action = reads(words(&["python3", "-c", script]), "in", input);
        actions.push(writes(action, "out", slot("out/r.json")));
    }
    assert_eq!(actions[0], actions[1]);
    let (here, there) = (local.run(&actions[0]).await, worker.run(&actions[1]).await);
    assert_eq!(here.outcome, Outcome::Succeeded, "{}", local.text(here.stderr));
    assert_eq!((&here.outcome, &here.outputs, here.stdout), (&there.outcome, &there.outputs, there.stdout));
    assert_eq!(here.host, there.host, "it is the same machine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_twice_in_either_direction() {
    const SIZE: u64 = 6 << 20;
    let line = Line::new().await;
    let noise: Vec<u8> = (0..SIZE as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let input = Artifact::Blob(line.client.blobs.put(&noise).unwrap());
    let reader =
        |n: u32| writes(reads(sh(&format!("tail -c +{n} in > out")), "in", input), "out", slot("out"));
    // Four at once need the same input, which is not there yet.
    let tasks: Vec<_> = (1..5).map(|n| line.start(reader(n)).1).collect();
    let mut made = Vec::new();
    for task in tasks {
        made.push(task.await.unwrap().unwrap());
    }
    let (up, down) = line.proxy.carried();
    assert!((SIZE..SIZE + SIZE / 8).contains(&up), "{up} bytes up");
    // The first wrote what it read, which is here already.
    assert!((3 * SIZE..3 * SIZE + SIZE / 8).contains(&down), "{down} bytes down");
    // What a worker wrote is not sent to it, and a repetition brings nothing new.
    let next = reads(sh("wc -c < in; cat in > out"), "in", made[2].outputs["out"].artifact);
    let done = line.run(&writes(next, "out", slot("out"))).await;
    assert_eq!(line.text(done.stdout).trim(), (SIZE - 2).to_string());
    let (more_up, more_down) = line.proxy.carried();
    assert!(
        more_up - up < 20_000 && more_down - down < 20_000,
        "{} up, {} down",
        more_up - up,
        more_down - down
    );
    // Another run finds it there.
    let remote = line.client.connect(&line.proxy.place()).await;
    remote.attempt(&attempt(), &reader(7), &Terms::default(), &Cancel::new().unwrap()).await.unwrap();
    assert!(line.proxy.carried().0 - more_up < 20_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_is_joined_when_its_connection_breaks_and_not_started_twice() {
    let line = Line::new().await;
    let (id, task) =
        line.start(sh("echo one $$; while [ ! -e ../tmp/go ]; do sleep 0.02; done; echo two; echo 3 >&2"));
    let said = line.says(&id);
    for _ in 0..3 {
        line.proxy.cut();
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    let go = line.elsewhere.path().join(".avow/work").join(&id.0).join("tmp/go");
    fs::write(go, "").unwrap();
    let done = task.await.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!((line.text(done.stdout), line.text(done.stderr)), (format!("{said}two\n"), "3\n".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_ran_is_lost_and_can_be_made_again_when_it_is_back() {
    let mut line = Line::with(|setup| setup.lease = Duration::from_secs(1)).await;
    let (id, task) = line.start(sh("echo $$; sleep 60"));
    line.says(&id);
    let address = line.served.address.clone();
    line.served.kill();
    let done = task.await.unwrap().unwrap();
    assert_eq!((&done.outcome, done.outputs.len()), (&Outcome::Lost, 0));
    assert!(!done.host.name.is_empty(), "where it was lost");
    let gone = line.remote.attempt(&attempt(), &sh("true"), &Terms::default(), &Cancel::new().unwrap()).await;
    assert!(matches!(gone, Err(RemoteError::Unreachable { .. })), "{gone:?}");
    // The pool waits until it is back.
    let pool = Pool::new(vec![Site::Worker(line.remote.clone())]);
    let waiting = tokio::spawn(async move {
        pool.run(&attempt(), &sh("echo back"), &Terms::default(), Watch::new(Cancel::new().unwrap())).await
    });
    eventually("the folder is free", || Server::open(setup(line.elsewhere.path())).is_ok());
    let _served = Served::start_at(setup(line.elsewhere.path()), &address);
    assert_eq!(waiting.await.unwrap().unwrap().outcome, Outcome::Succeeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_told_to_stop_gives_its_attempts_back() {
    let line = Line::new().await;
    let (id, task) = line.start(sh("echo $$; sleep 60"));
    let pid = line.says(&id);
    line.served.cancel.stop();
    assert_eq!(task.await.unwrap().unwrap().outcome, Outcome::Lost, "nobody asked for it to be cancelled");
    eventually("it has ended", || !alive(&pid));
}

#[test]
fn a_client_that_falls_silent_is_forgotten_with_its_processes() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut setup = setup(elsewhere.path());
    setup.lease = Duration::from_millis(600);
    let served = Served::start(setup);
    let client = Client::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let id = attempt();
    let remote = runtime.block_on(client.connect(&served.place()));
    let name = id.clone();
    runtime.spawn(async move {
        let action = sh("echo $$; sleep 60");
        remote.attempt(&name, &action, &Terms::default(), &Cancel::new().unwrap()).await
    });
    let log = client.project.work().join(&id.0).join("stdout");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    eventually("it says something", || read().ends_with('\n'));
    let pid = read();
    // As if the client's machine had gone: nothing is said any more, not even that it goes.
    runtime.shutdown_background();
    eventually("its lease has run out", || !alive(&pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_operations_and_programs_are_refused_before_the_start() {
    let there = BlobDigest::of(b"the interpreter there");
    let line = Line::with(|setup| {
        setup.ops = [("a/b".to_owned(), "11".to_owned())].into();
        setup.identify = Arc::new(move |word| (word == "python3").then_some(there));
    })
    .await;
    let op = |identity: &str| {
        let (name, identity) = ("a/b".to_owned(), identity.to_owned());
        action(Command::Op { name, identity, with: BTreeMap::new(), inputs: BTreeMap::new() })
    };
    let mut python = words(&["python3", "-c", "pass"]);
    python.toolchain = [("python3".to_owned(), BlobDigest::of(b"the interpreter here"))].into();
    let mut ours = python.clone();
    ours.toolchain = [("python3".to_owned(), there)].into();
    let pool = Pool::new(vec![Site::Worker(line.remote.clone())]);
    for (action, said) in [(op("22"), "operation `a/b`"), (python, "program `python3`")] {
        let watch = Watch::new(Cancel::new().unwrap());
        let error = pool.run(&attempt(), &action, &Terms::default(), watch).await.unwrap_err();
        assert!(matches!(error, ExecError::Unplaceable(Unplaceable::Unsuitable(_))), "{error:?}");
        assert!(error.to_string().contains(said), "{error}");
        // The worker looks too, whatever the client thinks.
        let direct =
            line.remote.attempt(&attempt(), &action, &Terms::default(), &Cancel::new().unwrap()).await;
        assert!(matches!(direct, Err(RemoteError::Unsuitable(_))), "{direct:?}");
    }
    assert_eq!(pool.admits(&op("11"), &Terms::default()).await.unwrap(), []);
    assert_eq!(line.run(&ours).await.outcome, Outcome::Succeeded);
    let large = Terms { cpus: 9, ..Terms::default() };
    let error = pool.admits(&ours, &large).await.unwrap_err();
    assert!(matches!(error, ExecError::Unplaceable(Unplaceable::TooLarge { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_reach_the_stage_and_nothing_else() {
    let line = Line::new().await;
    let secret = "correct-horse-battery";
    let values = [("API".to_owned(), Zeroizing::new(secret.to_owned()))].into();
    let (place, project, blobs) = (line.served.place(), &line.client.project, line.client.blobs.clone());
    let remote = Remote::connect(&place, project, blobs, Secrets::new(values).unwrap()).await.unwrap();
    let terms = Terms { secrets: vec!["API".to_owned()], ..Terms::default() };
    let action = writes(sh("echo $API; printf %s $API | wc -c > n"), "n", slot("n"));
    let done = remote.attempt(&attempt(), &action, &terms, &Cancel::new().unwrap()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Succeeded);
    assert_eq!(line.text(Some(done.outputs["n"].artifact.blob())).trim(), secret.len().to_string());
    assert!(!line.text(done.stdout).contains(secret), "{}", line.text(done.stdout));
    let mut pending = vec![line.elsewhere.path().to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            } else {
                let bytes = fs::read(entry.path()).unwrap();
                assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{entry:?}");
            }
        }
    }
    // Without the value it is not started.
    let done = line.under(&action, &terms).await;
    assert!(matches!(done.outcome, Outcome::Failed(Failure::Start(_))), "{:?}", done.outcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_cache_forgets_and_asks_again() {
    let line = Line::with(|setup| setup.quota = 3 << 20).await;
    let inputs: Vec<Artifact> =
        (0..4_u8).map(|n| Artifact::Blob(line.client.blobs.put(&vec![n; 1 << 20]).unwrap())).collect();
    for _ in 0..2 {
        for input in &inputs {
            let done = line.run(&reads(sh("wc -c < in"), "in", *input)).await;
            assert_eq!(
                (done.outcome.clone(), line.text(done.stdout)),
                (Outcome::Succeeded, "1048576\n".into())
            );
        }
    }
    // What is larger than the cache as a whole is refused, not tried for ever.
    let large = Artifact::Blob(line.client.blobs.put(&vec![9; 4 << 20]).unwrap());
    let action = reads(sh("true"), "in", large);
    let refused = line.remote.attempt(&attempt(), &action, &Terms::default(), &Cancel::new().unwrap()).await;
    assert!(matches!(refused, Err(RemoteError::Refused { .. })));
}

/// One raw request; the status and the body of the answer.
fn raw(address: &str, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The worker may answer and hang up before it has read all of it.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned());
    (status, body)
}

fn request(head: &str, token: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut text =
        format!("{head} HTTP/1.1\r\nHost: w\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if let Some(token) = token {
        text += &format!("Authorization: {token}\r\n");
    }
    [text.as_bytes(), b"\r\n", body].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_needs_the_token() {
    let line = Line::new().await;
    let at = &line.served.address;
    for head in ["GET /v1/worker", "POST /v1/blobs", "DELETE /v1/sessions/x", "GET /", "PUT /v1/blobs/00"] {
        for token in [
            None,
            Some("Bearer wrong-wrong-wrong-wrong"),
            Some("Basic x"),
            Some("a-token-that-is-long-enough"),
        ] {
            let (status, body) = raw(at, &request(head, token, b""));
            assert_eq!((status, body.contains("\"refused\":\"token\"")), (401, true), "{head} {token:?}");
        }
    }
    let wrong = Place { token: Token::new("0123456789abcdef").unwrap(), ..line.served.place() };
    let (project, blobs) = (&line.client.project, line.client.blobs.clone());
    let refused = Remote::connect(&wrong, project, blobs, Secrets::default()).await;
    assert!(refused.err().unwrap().to_string().contains("does not accept the token"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_refused_and_the_worker_goes_on() {
    let line = Line::with(|setup| setup.quota = 1 << 20).await;
    let at = &line.served.address;
    let bearer = format!("Bearer {}", suite::TOKEN.replace(' ', "-"));
    let id = "0".repeat(32);
    let attempts = format!("POST /v1/attempts/{id}");
    let large = vec![0; (1 << 20) + 1];
    let cases: &[(&str, &[u8], u16)] = &[
        ("GET /v1/nothing", b"", 404),
        ("GET /elsewhere", b"", 404),
        ("POST /v1/attempts/short", b"", 400),
        ("POST /v1/attempts/../../etc/passwd", b"", 404),
        (&attempts, b"", 400),
        (&attempts, b"\xa0", 400),
        (&attempts, &[0x9b; 2000], 400),
        (&attempts, b"{\"session\": 1}", 400),
        (&attempts, &[0xbf, 0x9f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 400),
        ("POST /v1/attempts/00000000000000000000000000000000/stop", b"\x68politely", 404),
        ("POST /v1/attempts/00000000000000000000000000000000/stop", b"\x64what", 400),
        ("POST /v1/sessions/00000000000000000000000000000000", b"\xff", 400),
        ("POST /v1/blobs/lacking", b"not whole digests", 400),
        ("POST /v1/blobs/pack", b"x", 400),
        ("POST /v1/blobs", b"\x00\x00\x00\x09short", 400),
        ("POST /v1/programs", b"\x81\x01", 400),
        ("PUT /v1/blobs/nothex", b"x", 400),
        (&format!("PUT /v1/blobs/{}", "0".repeat(64)), b"other bytes", 400),
        (&format!("PUT /v1/blobs/{}", "0".repeat(64)), &large, 413),
        (&format!("GET /v1/blobs/{}", "0".repeat(64)), b"", 404),
    ];
    for (head, body, expected) in cases {
        let (status, text) = raw(at, &request(head, Some(&bearer), body));
        assert_eq!(status, *expected, "{head}: {text}");
        assert!(text.contains("\"refused\""), "{head}: {text}");
    }
    let cut = request("POST /v1/blobs", Some(&bearer), b"abc");
    raw(at, &cut[..cut.len() - 2]);
    raw(at, b"\x00\x01\x02 nonsense\r\n\r\n");
    assert_eq!(line.run(&sh("true")).await.outcome, Outcome::Succeeded, "it serves on");
    assert_eq!(line.client.blobs.list().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_joined_is_never_started_again() {
    let line = Line::new().await;
    let bearer = format!("Bearer {}", suite::TOKEN.replace(' ', "-"));
    let mut submission = Submission {
        session: "1".repeat(32),
        instance: line.remote.description().instance,
        action: sh("echo started"),
        terms: Terms::default(),
        joins: true,
        have: [0; 2],
        done: Vec::new(),
        project: "2".repeat(32),
        secrets: Values::default(),
    };
    let head = format!("POST /v1/attempts/{}", attempt());
    let ask = |submission: &Submission| {
        raw(&line.served.address, &request(&head, Some(&bearer), &protocol::encode(submission)))
    };
    // As after a suspended laptop: the lease ran out, and the attempt was ended and forgotten.
    let (status, body) = ask(&submission);
    assert_eq!((status, body.contains("\"unknown\"")), (404, true), "{body}");
    submission.joins = false;
    let (status, first) = ask(&submission);
    assert_eq!((status, first.contains("started\n")), (200, true), "{first}");
    // The same name again gives the same end, also when it is over; for another action it is taken.
    assert_eq!(ask(&submission), (200, first));
    submission.action = sh("echo another");
    assert_eq!(ask(&submission).0, 409);
    submission.instance = "an earlier one".to_owned();
    assert_eq!(ask(&submission).0, 410);
}

#[test]
fn two_workers_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = Server::open(setup(folder.path())).unwrap();
    assert!(matches!(Server::open(setup(folder.path())), Err(WorkerError::Shared { .. })));
    drop(first);
    assert!(Server::open(setup(folder.path())).is_ok());
}
