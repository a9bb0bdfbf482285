//! What the program says about itself: `tracing` to a file per run, and to the terminal with `-v`.

use std::fs;
use std::sync::Mutex;

use avow_store::Project;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts the log: on the terminal with `-v`, and in a file of its own for a run in a project.
pub fn start(verbose: u8, project: Option<&Project>) {
    let terminal = (verbose > 0).then(|| {
        let level = if verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
        fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false).with_filter(level)
    });
    let file = project.and_then(file).map(|file| {
        fmt::layer().with_writer(Mutex::new(file)).with_ansi(false).with_filter(LevelFilter::DEBUG)
    });
    if terminal.is_some() || file.is_some() {
        tracing_subscriber::registry().with(terminal).with(file).init();
    }
}

/// `.avow/log/<time>-<pid>.log`. A log that cannot be had is no reason not to run.
fn file(project: &Project) -> Option<fs::File> {
    project.create().ok()?;
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    fs::File::create(project.logs().join(format!("{time}-{}.log", std::process::id()))).ok()
}

/// Tells how much this process read: in the log, and as JSON in the file that the variable `AVOW_COUNTS` names. Tests
/// compare a small project with a large one by it.
pub fn counts() {
    let counts = avow_store::meter::counts();
    tracing::debug!(?counts, "read");
    let Some(path) = std::env::var_os("AVOW_COUNTS") else { return };
    let written = serde_json::to_vec(&counts).map_err(std::io::Error::other);
    if let Err(error) = written.and_then(|json| fs::write(&path, json)) {
        tracing::warn!(%error, "the counts could not be written");
    }
}
