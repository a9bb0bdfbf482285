//! `avow worker`: carry out attempts of runs elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use avow_exec::Cancel;
use avow_exec::worker::{Identify, Server, Setup, Token, TokenError, WorkerError};
use avow_store::{BlobStore, MemoryBlobs, MemoryStamps};
use tokio::net::TcpListener;

use crate::args;
use crate::commands::run::{cores, listen};
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::words;
use crate::world;

/// The shortest lease: below, a busy machine would end what runs well.
const SHORTEST_LEASE: Duration = Duration::from_millis(500);

/// Serves until it is interrupted.
pub fn worker(args: &args::Worker, output: &Output) -> Result<Exit, Failure> {
    if !args.listen.ip().is_loopback() {
        if !args.plain_network {
            return Err(Failure::new(Exit::Usage, format!("other machines can reach `{}`, and the traffic is plain HTTP", args.listen))
                .hint("listen on 127.0.0.1 and use an SSH tunnel or a TLS proxy (docs/worker.md); `--plain-network` insists"));
        }
        output.always("warning: token, code and data cross the network as plain HTTP; whoever reads the token can run programs here");
    }
    let setup = setup(args, output)?;
    let folder = setup.folder.clone();
    let server = Server::open(setup).map_err(not_opened)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Machine, "no threads could be started").because(error))?;
    runtime.block_on(async {
        let cancel = Cancel::new()
            .map_err(|error| Failure::new(Exit::Machine, "no file descriptor is left").because(error))?;
        listen(&cancel, false)?;
        let refused = |error| {
            Failure::new(Exit::Machine, format!("cannot listen on `{}`", args.listen))
                .because(error)
                .hint("another program may use the port; choose one with `--listen ADDRESS:PORT`")
        };
        let listener = TcpListener::bind(args.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let about = server.description();
        output.data(format!("http://{address}"))?;
        output.say(format!(
            "worker ready: {}, {} of memory, cache in {}",
            words::count(u64::from(about.cpus), "CPU slot"),
            words::bytes(about.memory),
            folder.display()
        ));
        let token = args.token_file.display();
        output.say(format!("use it with: avow run --on worker:http://{address} --token-file {token}"));
        server.serve(listener, cancel).await;
        output.say("worker ended");
        Ok(Exit::Done)
    })
}

fn setup(args: &args::Worker, output: &Output) -> Result<Setup, Failure> {
    let size = |text: &str| {
        avow_spec::units::size(text).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("`{text}` is no size"))
                .hint("sizes look like `500MB` or `20GiB`")
        })
    };
    let lease = avow_spec::units::duration(&args.lease).map(Duration::from_millis).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{}` is no duration", args.lease))
            .hint("durations look like `30s` or `2m`")
    })?;
    let avow = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Machine, "avow cannot find its own program file").because(error)
    })?;
    let ops = avow_ops::signatures().iter().map(|op| (op.name.to_owned(), op.identity.to_owned())).collect();
    Ok(Setup {
        token: token(&args.token_file, output)?,
        folder: args.folder.clone().map_or_else(usual_folder, Ok)?,
        avow,
        quota: size(&args.cache)?,
        cpus: args.jobs.unwrap_or_else(cores),
        memory: args.memory.as_deref().map_or_else(|| Ok(avow_exec::total_memory()), size)?,
        lease: lease.max(SHORTEST_LEASE),
        grace: Duration::from_secs(2),
        confinement: args.confine,
        allow: args.allow.clone(),
        ops,
        identify: identities(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// What identifies programs here, in the way in which a run identifies them there.
fn identities() -> Identify {
    let (blobs, stamps) = (MemoryBlobs::new(), MemoryStamps::default());
    Arc::new(move |word| {
        world::identify(word, &blobs as &dyn BlobStore, &stamps).unwrap_or_else(|error| {
            tracing::warn!(program = word, %error, "a program cannot be read");
            None
        })
    })
}

fn token(file: &Path, output: &Output) -> Result<Token, Failure> {
    let shown = file.display();
    let absent = matches!(file.try_exists(), Ok(false));
    if absent {
        output.say(format!("made a new token in {shown}; runs elsewhere need a copy of that file"));
    }
    let token = if absent { Token::create(file) } else { Token::read(file) };
    if Token::is_open(file) {
        output.always(format!(
            "warning: others may read the token in `{shown}`; make it yours alone: chmod 600 {shown}"
        ));
    }
    token.map_err(|error: TokenError| Failure::new(Exit::Usage, "there is no token").because(error))
}

fn usual_folder() -> Result<PathBuf, Failure> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("avow/worker")).ok_or_else(|| {
        Failure::new(Exit::Usage, "there is no home folder to keep blobs in")
            .hint("name a folder with `--folder`")
    })
}

fn not_opened(error: WorkerError) -> Failure {
    let hint = match &error {
        WorkerError::Shared { .. } => "stop the other one, or name another folder with `--folder`",
        _ => "name another folder with `--folder`; `avow doctor` says what this machine offers",
    };
    Failure::new(Exit::Machine, "the worker cannot start").because(error).hint(hint)
}
