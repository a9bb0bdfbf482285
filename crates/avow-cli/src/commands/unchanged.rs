//! A run in which nothing changed, by what was kept of the spec: its plan is not even read.

use avow_engine::{Report, Session, Settling, current_registration, ledger_of, run_unchanged};
use avow_exec::{Cancel, Level};

use crate::args;
use crate::compiled::Brief;
use crate::context::Spec;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::space::Space;

/// Carries out a run of a whole plan on this machine where everything is as the run before left it. `None`, and
/// nothing done, where it is not, or where anything but the usual is asked for.
pub fn run(
    args: &args::Run,
    spec: &Spec,
    brief: &Brief,
    session: &Session,
    cancel: &Cancel,
    output: &Output,
) -> Result<Option<Report>, Failure> {
    let settings = Settings::of(&session.project)?;
    let places = !args.on.is_empty() || !settings.on.is_empty();
    let usual = args.only.is_empty() && args.confine.is_none() && args.verify.is_none() && !places;
    if !usual || cancel.level() != Level::Run {
        return Ok(None);
    }
    // Whoever registered something is told how this run stands to it, for which the plan is needed.
    let (_, ledger) = ledger_of(&session.project, &brief.experiment).map_err(failure::engine)?;
    if current_registration(&ledger).is_some() {
        return Ok(None);
    }
    let mut space = Space::watch(&session.project, &settings.store, *output).map_err(failure::store)?;
    let settling = Settling {
        experiment: &brief.experiment,
        plan: brief.plan,
        only: &[],
        spec: &spec.path,
        tool: env!("CARGO_PKG_VERSION"),
        hosts: &[avow_exec::describe_host().name],
    };
    run_unchanged(session, &settling, &mut |notice| space.notice(&notice)).map_err(failure::engine)
}
