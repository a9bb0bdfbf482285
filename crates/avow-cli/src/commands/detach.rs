//! `avow run --detach`: the same run in a session of its own, which outlives the terminal.

use std::fs::File;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use avow_store::presence::{self, Presence};
use serde_json::json;

use crate::args;
use crate::context::Spec;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// How long to wait for the name of the run.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks for it.
const POLL: Duration = Duration::from_millis(20);

/// Starts the run and says its name and how to follow it. The spec has been checked.
pub fn detach(args: &args::Run, spec: &Spec, output: &Output) -> Result<Exit, Failure> {
    spec.project.create().map_err(failure::store)?;
    let (shown, mut child) = start(args, spec)?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(run) = begun(spec, &child)? {
            tell(&run, &shown, args, output)?;
            return Ok(Exit::Done);
        }
        if let Some(status) = child.try_wait().map_err(lost)? {
            // It was done, or failed, before anybody could look.
            let text = std::fs::read_to_string(spec.project.root().join(&shown)).unwrap_or_default();
            output.always(text.trim_end());
            let code = status.code().unwrap_or_default();
            return if code == 0 { Ok(Exit::Done) } else { Err(ended(status, &shown)) };
        }
        if Instant::now() > until {
            output.data(format!(
                "process {} has not begun its run yet; what it says is in {shown}",
                child.id()
            ))?;
            return Ok(Exit::Done);
        }
        std::thread::sleep(POLL);
    }
}

/// The path of its output, from the project, and its process.
fn start(args: &args::Run, spec: &Spec) -> Result<(String, Child), Failure> {
    let this = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Machine, "avow cannot find its own program file").because(error)
    })?;
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let file = spec.project.logs().join(format!("{time}-{}.out", std::process::id()));
    let shown = file.strip_prefix(spec.project.root()).unwrap_or(&file).display().to_string();
    let unwritable = |error| Failure::new(Exit::Machine, format!("cannot write `{shown}`")).because(error);
    let out = File::create(&file).map_err(unwritable)?;
    let err = out.try_clone().map_err(unwritable)?;
    let mut command = Command::new(this);
    command.arg("run").args(spec_and_flags(args)).arg("--detached").arg(&shown);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let child = command.spawn();
    Ok((
        shown,
        child.map_err(|error| Failure::new(Exit::Machine, "the run could not be started").because(error))?,
    ))
}

/// The command line again, but for what concerns the terminal.
fn spec_and_flags(args: &args::Run) -> Vec<std::ffi::OsString> {
    let given: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let verb = given.iter().position(|word| word == "run").unwrap_or_default();
    let skipped = ["--detach", "--json"];
    let kept = given.into_iter().enumerate();
    let kept = kept.filter(|(at, word)| *at != verb && !skipped.iter().any(|flag| word == flag));
    debug_assert!(args.detach, "called for runs in the background only");
    kept.map(|(_, word)| word).collect()
}

fn begun(spec: &Spec, child: &Child) -> Result<Option<Presence>, Failure> {
    let living = presence::living(&spec.project).map_err(failure::store)?;
    Ok(living.into_iter().find(|run| run.pid == child.id()))
}

fn tell(run: &Presence, shown: &str, args: &args::Run, output: &Output) -> Result<(), Failure> {
    if args.json {
        return output.json(&json!({"run": run.run, "pid": run.pid, "output": shown}));
    }
    output.data(format!("run {} goes on in the background (process {})", run.run, run.pid))?;
    output.say(format!(
        "  avow status                 where it stands\n  \
         avow log --follow MEMBER    what a stage prints\n  \
         avow cancel {}\n  \
         {shown}   what the run itself says",
        run.run
    ));
    Ok(())
}

fn ended(status: std::process::ExitStatus, shown: &str) -> Failure {
    let exit = match status.code() {
        Some(1) => Exit::StageFailed,
        Some(2) => Exit::Usage,
        Some(3) => Exit::SpecInvalid,
        Some(6) => Exit::Damaged,
        Some(8) | None => Exit::Machine,
        Some(130) => Exit::Interrupted,
        Some(_) => Exit::Internal,
    };
    Failure::new(exit, format!("the run ended at once ({status})"))
        .hint(format!("it said what is in {shown}"))
}

fn lost(error: io::Error) -> Failure {
    Failure::new(Exit::Machine, "the run in the background cannot be waited for").because(error)
}

/// In the run itself: leaves the session of the terminal that started it.
pub fn leave_terminal() -> Result<(), Failure> {
    match rustix::process::setsid() {
        // Started by hand as the leader of a group: then there is nobody to leave.
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => {
            Err(Failure::new(Exit::Machine, "no session of its own can be had")
                .because(io::Error::from(error)))
        }
    }
}
