//! How many actions that do nothing a worker on this machine carries out in a second, beside the local executor.
//!
//! `cargo run --release -p avow-exec --example dispatch -- [ACTIONS] [AT ONCE]`. Both figures are from one run, because
//! absolute times drift. The worker is in this process, and everything goes over the loopback interface.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use avow_exec::worker::{Place, Remote, Server, Setup, Token};
use avow_exec::{Cancel, Config, Executor, LocalExecutor, Pool, Secrets, Site, Watch};
use avow_model::action::{Action, Command};
use avow_model::attempt::AttemptId;
use avow_model::digest::Artifact;
use avow_model::plan::Terms;
use avow_store::{BlobStore, FileBlobs, MemoryStamps, Project};
use tokio::net::TcpListener;

type Failure = Box<dyn std::error::Error>;

async fn rate(
    executor: impl Executor + Clone + 'static,
    action: &Action,
    count: usize,
    at_once: usize,
    round: usize,
) -> Result<f64, Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..at_once {
        let (executor, action, next) = (executor.clone(), action.clone(), Arc::clone(&next));
        tasks.push(tokio::spawn(async move {
            let cancel = Cancel::new().map_err(|error| error.to_string())?;
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= count {
                    return Ok::<(), String>(());
                }
                let attempt = AttemptId(format!("{round:016x}{number:016x}"));
                let watch = Watch::new(cancel.clone());
                let done = executor.run(&attempt, &action, &Terms::default(), watch).await;
                let outcome = done.map_err(|error| error.to_string())?.outcome;
                if !outcome.succeeded() {
                    return Err(outcome.to_string());
                }
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(2000), |n| n.parse())?;
    let at_once: usize = arguments.next().map_or(Ok(4), |n| n.parse())?;
    let folder = tempfile::Builder::new().prefix("dispatch").tempdir_in(".")?;
    let project = Project::at(folder.path().join("client"));
    project.create()?;
    let blobs: Arc<dyn BlobStore> =
        Arc::new(FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())));
    let local = LocalExecutor::new(Config::new(project.work(), "/nonexistent/avow"), Arc::clone(&blobs))?;
    let token = Token::new("the-token-of-an-example").ok_or("no token")?;
    let server = Server::open(Setup {
        token: token.clone(),
        folder: folder.path().join("worker"),
        avow: "/nonexistent/avow".into(),
        quota: 1 << 30,
        cpus: u32::try_from(at_once)?,
        memory: 1 << 30,
        lease: Duration::from_secs(30),
        grace: Duration::from_secs(2),
        confinement: None,
        allow: Vec::new(),
        ops: BTreeMap::new(),
        identify: Arc::new(|_| None),
        tool: "example".to_owned(),
    })?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let stop = Cancel::new()?;
    let served = tokio::spawn(server.serve(listener, stop.clone()));
    let remote =
        Remote::connect(&Place { url, token }, &project, Arc::clone(&blobs), Secrets::default()).await?;
    let pool = Pool::new(vec![Site::Worker(remote)]);
    let action = Action {
        command: Command::Arguments(vec!["true".to_owned()]),
        env: BTreeMap::new(),
        inputs: [("in".to_owned(), Artifact::Blob(blobs.put(b"an input\n")?))].into(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: BTreeMap::new(),
        loads: None,
        outputs: BTreeMap::new(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    };
    for round in 0..3 {
        let here = rate(local.clone(), &action, count, at_once, 2 * round).await?;
        let there = rate(pool.clone(), &action, count, at_once, 2 * round + 1).await?;
        println!(
            "{at_once} at once: worker {there:.0} actions/s, local executor {here:.0} actions/s, {:.2} ms more each",
            (1.0 / there - 1.0 / here) * 1e3
        );
    }
    pool.close().await;
    stop.stop();
    served.await?;
    Ok(())
}
