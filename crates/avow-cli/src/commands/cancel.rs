//! `avow cancel`: ask a run to stop, wherever it was started.

use std::time::Duration;

use avow_model::journal::{Closing, RunState};
use avow_store::presence::{self, Presence};
use avow_store::{Project, journal};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// Between two looks whether it has ended.
const POLL: Duration = Duration::from_millis(50);

/// Stops one living run of the project.
pub fn cancel(args: &args::Cancel, output: &Output) -> Result<Exit, Failure> {
    let project = Project::discover(std::path::Path::new(".")).map_err(failure::store)?;
    let run = chosen(args, presence::living(&project).map_err(failure::store)?)?;
    ask(&run)?;
    if args.kill {
        // The second request takes the first one's patience away.
        ask(&run)?;
    }
    output.say(format!(
        "run {} is asked to stop; Ctrl-C stops waiting for it, `avow cancel {} --kill` does not let it end in order",
        run.run, run.run
    ));
    let how = end_of(&project, &run)?;
    if args.json {
        output.json(&json!({"run": run.run, "closed": how}))?;
    } else {
        output.data(match how {
            Some(Closing::Complete | Closing::Partial) => {
                format!("run {} was complete before it could stop", run.run)
            }
            Some(_) => format!("run {} has stopped; `avow run {}` goes on", run.run, run.spec),
            None => format!("run {} died; `avow run {}` goes on", run.run, run.spec),
        })?;
    }
    Ok(Exit::Done)
}

fn chosen(args: &args::Cancel, mut living: Vec<Presence>) -> Result<Presence, Failure> {
    let list: Vec<String> = living.iter().map(|one| format!("{} ({})", one.run, one.spec)).collect();
    let hint = match list.as_slice() {
        [] => "no run lives in this project".to_owned(),
        _ => format!("these live: {}", list.join(", ")),
    };
    match &args.run {
        Some(name) => living
            .into_iter()
            .find(|one| one.run == *name)
            .ok_or_else(|| Failure::new(Exit::Usage, format!("no run `{name}` lives here")).hint(hint)),
        None if living.len() == 1 => Ok(living.remove(0)),
        None if living.is_empty() => Err(Failure::new(Exit::Usage, "no run lives in this project")
            .hint("`avow status` shows how the last one ended")),
        None => Err(Failure::new(Exit::Usage, "several runs live in this project")
            .hint(format!("name one, e.g. `avow cancel {}`; {hint}", living[0].run))),
    }
}

/// Sends the signal, once it is certain that the process is the run's: in another container or on another host
/// the same number is somebody else.
fn ask(run: &Presence) -> Result<(), Failure> {
    let elsewhere = || {
        Failure::new(Exit::Machine, format!("run {} is no process that can be seen from here", run.run))
            .hint("give the command on the host, and in the container, in which it was started")
    };
    if avow_exec::process_start(run.pid) != Some(run.start_ticks) {
        return Err(elsewhere());
    }
    let pid = i32::try_from(run.pid).ok().and_then(Pid::from_raw).ok_or_else(elsewhere)?;
    match kill_process(pid, Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(Failure::new(Exit::Machine, format!("run {} cannot be signalled", run.run))
            .because(std::io::Error::from(error))),
    }
}

fn end_of(project: &Project, run: &Presence) -> Result<Option<Closing>, Failure> {
    let Some(file) = journal::journal(project, &run.run).map_err(failure::store)? else { return Ok(None) };
    while file.is_live().map_err(failure::store)? {
        std::thread::sleep(POLL);
    }
    Ok(RunState::of(&file.read().map_err(failure::store)?.lines).closed)
}
