//! What the program says about itself: `tracing` to a file per run, and to the terminal with `-v`.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use avow_store::Project;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::args::{Cli, Command};

/// Starts the log. `run` writes to a file of its own in the store folder; other commands, and a dry run, which
/// leaves no trace, only to the terminal.
pub fn start(cli: &Cli) {
    let terminal = (cli.verbose > 0).then(|| {
        let level = if cli.verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
        fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false).with_filter(level)
    });
    let file = match &cli.command {
        Command::Run(args) if !args.dry_run => file_for(args.spec.spec.as_deref()),
        _ => None,
    };
    let file = file.map(|file| {
        fmt::layer().with_writer(Mutex::new(file)).with_ansi(false).with_filter(LevelFilter::DEBUG)
    });
    if terminal.is_some() || file.is_some() {
        tracing_subscriber::registry().with(terminal).with(file).init();
    }
}

/// `.avow/log/<time>-<pid>.log` of the spec's project. A log that cannot be had is no reason not to run.
fn file_for(spec: Option<&std::path::Path>) -> Option<fs::File> {
    let folder = match spec {
        Some(spec) => spec.canonicalize().ok()?.parent()?.to_owned(),
        None => PathBuf::from("."),
    };
    let project = Project::discover(&folder).ok()?;
    project.create().ok()?;
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    fs::File::create(project.logs().join(format!("{time}-{}.log", std::process::id()))).ok()
}
