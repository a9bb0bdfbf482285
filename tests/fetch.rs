//! An input that is an address: brought in once, known by its digest, refused where the bytes are others.
//!
//! The server is this test's own, on the loopback interface, the one place where plain `http://` is allowed;
//! TLS is tested beside the fetcher.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use avow_testkit::Sandbox;

const BODY: &str = "1.5\n2.5\n";

/// Answers every request with the body and counts them.
struct Server {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(status: &'static str, body: &'static str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/data.csv", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        // It ends with the process; nobody waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|n| n > 2) {
                    line.clear();
                }
                counter.fetch_add(1, Ordering::SeqCst);
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                // A client that hangs up early is the client's affair.
                let _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
            }
        });
        Server { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn project(url: &str, digest: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1\nexperiment: fetched\nstages:\n  measure:\n    \
         run: [sh, measure.sh, '${{inputs.data}}', '${{outputs.result}}']\n    \
         inputs: {{data: {{url: '{url}', digest: {digest}}}}}\n    measurements: {{result: result.json}}\n"
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    sandbox.file("measure.sh", "printf '{\"first\": %s}\\n' \"$(head -n 1 \"$1\")\" > \"$2\"\n");
    sandbox
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_string()
}

/// The blobs in the store.
fn blobs(sandbox: &Sandbox) -> Vec<String> {
    let folders = sandbox.list(".avow/blobs").into_iter();
    folders.flat_map(|folder| sandbox.list(&format!(".avow/blobs/{folder}"))).collect()
}

#[test]
fn an_address_is_fetched_once() {
    let server = Server::start("200 OK", BODY);
    let sandbox = project(&server.url, &digest(BODY));
    sandbox.avow(&["check"]).expect_code(0);
    sandbox.avow(&["plan"]).expect_code(0);
    assert_eq!(server.requests(), 0, "looking fetches nothing");
    assert_eq!(sandbox.executes(&["run"]), ["measure"]);
    assert_eq!(server.requests(), 1);
    let table = sandbox.avow(&["table", "--json"]).with_code(0).json();
    assert_eq!(table["value"], 1.5);
    // The bytes are in the store under their digest, and the lineage names the address.
    let lineage = sandbox.avow(&["lineage", "measure.first"]).with_code(0);
    assert!(
        lineage.stdout.contains(&server.url) && lineage.stdout.contains(&digest(BODY)[..8]),
        "{}",
        lineage.stdout
    );
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    sandbox.replace("measure.sh", "head", "tail");
    assert_eq!(sandbox.executes(&["run"]), ["measure"]);
    assert_eq!(server.requests(), 1, "what is in the store is not fetched again");
}

#[test]
fn where_the_bytes_come_from_is_no_part_of_the_result() {
    let (one, two) = (Server::start("200 OK", BODY), Server::start("200 OK", BODY));
    let sandbox = project(&one.url, &digest(BODY));
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.replace("spec.yaml", &one.url, &two.url);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    assert_eq!(two.requests(), 0);
}

#[test]
fn other_bytes_are_refused_and_not_stored() {
    let server = Server::start("200 OK", "something else\n");
    let sandbox = project(&server.url, &digest(BODY));
    let run = sandbox.avow(&["run"]).with_code(8);
    assert!(run.stderr.contains(&server.url) && run.stderr.contains("hint: "), "{}", run.stderr);
    assert!(run.stderr.contains(&digest("something else\n")[..8]), "it says what came: {}", run.stderr);
    let other = digest("something else\n");
    assert!(!blobs(&sandbox).iter().any(|name| other.ends_with(name.as_str())), "nothing of it is stored");
    assert_eq!(sandbox.list(".avow/work/tmp"), [""; 0], "no piece is left");
    assert!(sandbox.history().runs.iter().all(|run| run.started().is_empty()), "nothing was executed");
}

#[test]
fn a_server_that_refuses_is_a_failure_of_the_network() {
    let server = Server::start("404 Not Found", "no\n");
    let sandbox = project(&server.url, &digest("no\n"));
    let run = sandbox.avow(&["run"]).with_code(8);
    assert!(run.stderr.contains("404"), "{}", run.stderr);
    // And one that is not there.
    let sandbox = project("http://127.0.0.1:9/data.csv", &digest(BODY));
    sandbox.avow(&["run"]).expect_code(8);
}

#[test]
fn an_address_needs_a_digest_and_a_safe_way() {
    for (url, reason) in [
        ("http://example.org/data.csv", "not secure"),
        ("http://127.example.org/data.csv", "not secure"),
        ("ftp://example.org/data.csv", "https://"),
        ("https://me:secret@example.org/data.csv", "password"),
    ] {
        let run = project(url, &digest(BODY)).avow(&["check"]).with_code(3);
        assert!(run.stderr.contains(reason), "{}", run.stderr);
    }
    let sandbox = project("https://example.org/data.csv", &digest(BODY));
    sandbox.avow(&["check"]).expect_code(0);
    sandbox.replace("spec.yaml", &format!(", digest: {}", digest(BODY)), "");
    let run = sandbox.avow(&["check"]).with_code(3);
    assert!(run.stderr.contains("digest"), "{}", run.stderr);
}
