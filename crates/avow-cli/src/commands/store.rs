//! `avow store check` and `avow store rebuild`; the other verbs are beside this file.

mod collect;
mod pin;

use std::panic::{AssertUnwindSafe, catch_unwind};

use avow_store::check::{self, Problem};
use avow_store::{Project, RecordStore, RunLock, SledIndex};
use serde_json::json;

use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Looks after the store.
pub fn store(args: &args::Store, output: &Output) -> Result<Exit, Failure> {
    match args {
        args::Store::Check(args) => verify(args, output),
        args::Store::Rebuild(args) => rebuild(args, output),
        args::Store::Collect(args) => collect::collect(args, output),
        args::Store::Pin(args) => pin::pin(args, output),
        args::Store::Unpin(args) => pin::unpin(args, output),
    }
}

fn project(args: &args::StoreArg) -> Result<Project, Failure> {
    let project = Project::discover(&args.folder).map_err(failure::store)?;
    if !project.check_format().map_err(failure::store)? {
        return Err(Failure::new(
            Exit::Usage,
            format!("there is no store in `{}`", project.root().display()),
        )
        .hint("the first `avow run` makes one"));
    }
    Ok(project)
}

fn verify(args: &args::StoreCheck, output: &Output) -> Result<Exit, Failure> {
    let sample = args.sample.as_deref().map(share).transpose()?;
    let args = &args.store;
    let project = project(args)?;
    // The index is compared only where nobody else holds it.
    let lock = RunLock::try_acquire(&project);
    let index = match &lock {
        Ok(_) if project.index().is_dir() => open_index(&project, output),
        _ => {
            output.say("the index was not compared: there is none, or another command holds it");
            None
        }
    };
    let records = index.as_ref().map(|index| index as &dyn RecordStore);
    let report = check::check(&project, records, sample, &|_| {}).map_err(failure::store)?;
    let damaged = report.problems.iter().any(Problem::is_damage);
    if args.json {
        let problem = |problem: &Problem| {
            json!({
                "file": shown(&project, problem), "problem": problem.to_string(), "damage": problem.is_damage(),
                "remedy": problem.remedy(),
            })
        };
        let problems: Vec<_> = report.problems.iter().map(problem).collect();
        output.json(&json!({
            "blobs": report.blobs, "bytes": report.bytes, "journals": report.journals,
            "attempts": report.attempts, "ledgers": report.ledgers, "sample": sample, "problems": problems,
        }))?;
    } else {
        for problem in &report.problems {
            let (word, colour) = if problem.is_damage() { ("damaged:", 31) } else { ("problem:", 33) };
            output.data(format!(
                "{} {}: {problem}",
                output.coloured(word, colour),
                shown(&project, problem)
            ))?;
            output.data(format!("  {}", problem.remedy()))?;
        }
        output.data(summary(&report))?;
    }
    // What heals with the next command is told and is no damage.
    Ok(if damaged { Exit::Damaged } else { Exit::Done })
}

/// A share as a number from 0 to 1.
fn share(text: &str) -> Result<f64, Failure> {
    let read = avow_spec::units::share(text).and_then(|decimal| decimal.parse().ok());
    read.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{text}` is no share of the blobs")).hint("write `--sample 5%`")
    })
}

/// The index, where it can be opened; one that cannot is no evidence and is made again.
pub(crate) fn open_index(project: &Project, output: &Output) -> Option<SledIndex> {
    // sled meets some damage with a panic instead of an error.
    let opened = catch_unwind(AssertUnwindSafe(|| SledIndex::open(&project.index())));
    match opened {
        Ok(Ok(index)) => return Some(index),
        Ok(Err(error)) => output.say(format!("the index was not compared: {error}")),
        Err(_) => output.say("the index was not compared: it cannot be opened"),
    }
    output.say("hint: the next command that needs it builds it anew, or `avow store rebuild`");
    None
}

/// The file of a problem, as seen from the project.
pub(crate) fn shown(project: &Project, problem: &Problem) -> String {
    problem.file().strip_prefix(project.root()).unwrap_or(problem.file()).display().to_string()
}

fn summary(report: &check::Report) -> String {
    format!(
        "{} ({}), {}, {}, {}: {}",
        words::count(report.blobs, "blob"),
        words::bytes(report.bytes),
        words::count(report.journals, "journal"),
        words::count(report.attempts, "attempt"),
        words::count(report.ledgers, "ledger"),
        if report.problems.is_empty() {
            "all sound".to_owned()
        } else {
            words::count(report.problems.len() as u64, "problem")
        },
    )
}

fn rebuild(args: &args::StoreArg, output: &Output) -> Result<Exit, Failure> {
    let project = project(args)?;
    let index = avow_engine::rebuild_index(&project, super::run::patience(output, None));
    let attempts = index.map_err(failure::engine)?.entries().map_err(failure::store)?.len() as u64;
    if args.json {
        output.json(&json!({"attempts": attempts}))?;
    } else {
        output.data(format!("the index was built anew: {}", words::count(attempts, "attempt")))?;
    }
    Ok(Exit::Done)
}
