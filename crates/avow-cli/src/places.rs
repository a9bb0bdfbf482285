//! Where a run carries its stages out: this machine, workers, or both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_engine::{EngineError, Session};
use avow_exec::worker::{Place, Remote, RemoteError, Token};
use avow_exec::{AnyExecutor, LocalExecutor, Pool, Secrets, Site};
use avow_model::action::{Action, Command};
use avow_model::digest::Artifact;
use avow_model::plan::{Input, Program, Source, Stage};
use avow_store::Project;
use tokio::runtime::Runtime;

use crate::args;
use crate::context::Planned;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::{Settings, Worker};
use crate::words;

/// The variable that names the token file where neither an option nor `avow.toml` does.
const TOKEN_FILE: &str = "AVOW_WORKER_TOKEN_FILE";

/// One place as it was asked for.
enum Asked {
    Local,
    Worker(Place),
}

/// The executor of a run: the one given, or a pool where `--on` or `avow.toml` names places. Every stage must find
/// a place that can carry it out, before anything is started.
pub fn gather(
    args: &args::Run,
    planned: &Planned,
    session: &Session,
    (local, secrets): (LocalExecutor, Secrets),
    runtime: &Runtime,
    output: &Output,
) -> Result<AnyExecutor, Failure> {
    let asked = asked(args, &session.project)?;
    match asked.as_slice() {
        [] | [Asked::Local] => return Ok(AnyExecutor::Local(local)),
        _ => {}
    }
    let with_local = asked.iter().any(|place| matches!(place, Asked::Local));
    if args.jobs.is_some() && !with_local {
        return Err(Failure::new(
            Exit::Usage,
            "`-j` sets the slots of this machine, which is not among the places",
        )
        .hint("add `--on local`, or give the worker fewer slots with `avow worker -j`"));
    }
    if args.confine.is_some() && !with_local {
        return Err(Failure::new(
            Exit::Usage,
            "`--confine` is for this machine, which is not among the places",
        )
        .hint("a worker is told how to confine stages when it is started: `avow worker --confine LEVEL`"));
    }
    runtime.block_on(async {
        let mut sites = Vec::new();
        for place in asked {
            sites.push(match place {
                Asked::Local => {
                    let cpus = args.jobs.unwrap_or_else(crate::commands::run::cores);
                    Site::Local { executor: local.clone(), cpus, memory: avow_exec::total_memory() }
                }
                Asked::Worker(place) => {
                    warn_of_plain(&place.url, output);
                    let remote =
                        Remote::connect(&place, &session.project, session.blobs.clone(), secrets.clone())
                            .await;
                    let remote = remote.map_err(refused)?;
                    tell(&remote, output);
                    Site::Worker(remote)
                }
            });
        }
        let pool = Pool::new(sites);
        let fit = check(planned, &pool, output).await;
        if fit.is_err() {
            pool.close().await;
        }
        fit.map(|()| AnyExecutor::Pool(pool))
    })
}

fn asked(args: &args::Run, project: &Project) -> Result<Vec<Asked>, Failure> {
    let settings = Settings::of(project)?;
    let names = if args.on.is_empty() { &settings.on } else { &args.on };
    let mut places = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(Failure::new(Exit::Usage, format!("the place `{name}` is named twice")));
        }
        places.push(match name.strip_prefix("worker:") {
            _ if name == "local" => Asked::Local,
            Some(worker) => Asked::Worker(place(worker, args, &settings, project)?),
            None => {
                return Err(Failure::new(Exit::Usage, format!("`{name}` is no place to run"))
                    .hint("places are `local`, `worker:http://HOST:PORT`, and `worker:NAME` for `[workers.NAME]` in avow.toml"));
            }
        });
    }
    Ok(places)
}

fn place(worker: &str, args: &args::Run, settings: &Settings, project: &Project) -> Result<Place, Failure> {
    let by_address = || Worker { url: worker.to_owned(), token_file: None };
    let known = match settings.workers.get(worker) {
        Some(known) => known.clone(),
        None if worker.contains("://") => by_address(),
        None => {
            return Err(Failure::new(Exit::Usage, format!("no worker is called `{worker}`"))
                .hint(format!("give its address, `worker:http://HOST:PORT`, or write `[workers.{worker}]` with `url = \"…\"` in avow.toml")));
        }
    };
    let in_project = known.token_file.map(|file| at_home(&file).unwrap_or_else(|| project.root().join(file)));
    let from_environment = || std::env::var_os(TOKEN_FILE).filter(|file| !file.is_empty()).map(PathBuf::from);
    let file = args.token_file.clone().or(in_project).or_else(from_environment).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("no token for the worker `{worker}`"))
            .hint("name the file that `avow worker` was started with: `--token-file FILE`")
    })?;
    let token = Token::read(&file).map_err(|error| {
        Failure::new(Exit::Usage, format!("no token for the worker `{worker}`")).because(error)
    })?;
    Ok(Place { url: known.url, token })
}

/// A path that begins with `~/`.
fn at_home(file: &Path) -> Option<PathBuf> {
    let inside = file.strip_prefix("~").ok()?;
    Some(PathBuf::from(std::env::var_os("HOME")?).join(inside))
}

/// Plain HTTP over a network shows the token and all data to whoever listens.
fn warn_of_plain(url: &str, output: &Output) {
    let Some(rest) = url.strip_prefix("http://") else { return };
    let host = rest.split('/').next().unwrap_or(rest);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    let loopback =
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    if !loopback {
        output.always(format!(
            "warning: the worker `{url}` is reached over plain HTTP, so others on the way can read the token and all \
             data; see docs/worker.md for a tunnel"
        ));
    }
}

fn tell(remote: &Remote, output: &Output) {
    let about = remote.description();
    output.say(format!(
        "worker {} on {}: {}, {} of memory",
        remote.url(),
        about.host.name,
        words::count(u64::from(about.cpus), "CPU slot"),
        words::bytes(about.memory)
    ));
}

fn refused(error: RemoteError) -> Failure {
    let hint = match &error {
        RemoteError::Unreachable { .. } => "start it with `avow worker`, or leave it out",
        _ => "the token file must be the worker's, and both sides the same version of avow",
    };
    Failure::new(Exit::Machine, "a worker cannot be used").because(error).hint(hint)
}

/// Looks for a place for every stage, and says which workers are left out of which stages.
async fn check(planned: &Planned, pool: &Pool, output: &Output) -> Result<(), Failure> {
    let mut left_out: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for stage in &planned.plan.stages {
        let terms = planned.terms.get(&stage.name).cloned().unwrap_or_default();
        match pool.admits(&demands(stage), &terms).await {
            Ok(misfits) => {
                for misfit in misfits {
                    let text = format!("worker {}: {misfit}", misfit.url);
                    left_out.entry(text).or_default().push(&stage.name);
                }
            }
            Err(error) => {
                let told = failure::engine(EngineError::Exec(error));
                return Err(told.after(format!("the stage `{}` finds no place", stage.name)));
            }
        }
    }
    for (text, stages) in left_out {
        output.say(format!("note: {text}; it gets no attempts of {}", stages.join(", ")));
    }
    Ok(())
}

/// What every action of a stage demands of a machine.
fn demands(stage: &Stage) -> Action {
    let command = match &stage.program {
        Program::Op { name, identity, .. } => Command::Op {
            name: name.clone(),
            identity: identity.clone(),
            with: BTreeMap::new(),
            inputs: BTreeMap::new(),
        },
        Program::Shell(_) | Program::Arguments(_) => Command::Shell(String::new()),
    };
    Action {
        command,
        env: BTreeMap::new(),
        inputs: stage.inputs.values().filter_map(known).collect(),
        code: stage.code,
        environment: None,
        lock_as_written: None,
        toolchain: stage.toolchain.clone(),
        loads: stage.loads,
        outputs: BTreeMap::new(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    }
}

/// An input that is known before anything runs.
fn known(input: &Input) -> Option<(String, Artifact)> {
    match &input.from {
        Source::Path { artifact, .. } => Some((input.mount.clone(), *artifact)),
        Source::Url { .. } | Source::Output { .. } | Source::Probes { .. } => None,
    }
}
