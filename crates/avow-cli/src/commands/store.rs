//! `avow store check` and `avow store rebuild`.

use avow_store::{Project, RecordStore};
use serde_json::json;

use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Looks after the store.
pub fn store(args: &args::Store, output: &Output) -> Result<Exit, Failure> {
    match args {
        args::Store::Check(args) => check(args, output),
        args::Store::Rebuild(args) => rebuild(args, output),
    }
}

fn project(args: &args::StoreArg) -> Result<Project, Failure> {
    let project = Project::discover(&args.folder).map_err(failure::store)?;
    if !project.check_format().map_err(failure::store)? {
        return Err(Failure::new(Exit::Usage, format!("there is no store in `{}`", project.root().display()))
            .hint("the first `avow run` makes one"));
    }
    Ok(project)
}

fn check(args: &args::StoreArg, output: &Output) -> Result<Exit, Failure> {
    let project = project(args)?;
    // The index is compared only where nobody else holds it.
    let lock = avow_store::RunLock::try_acquire(&project);
    let index = match &lock {
        Ok(_) if project.index().is_dir() => {
            Some(avow_store::SledIndex::open(&project.index()).map_err(failure::store)?)
        }
        _ => None,
    };
    let records = index.as_ref().map(|index| index as &dyn RecordStore);
    let report = avow_store::check::check(&project, records, &|_| {}).map_err(failure::store)?;
    if args.json {
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        output.json(&json!({
            "blobs": report.blobs, "bytes": report.bytes, "journals": report.journals,
            "attempts": report.attempts, "ledgers": report.ledgers, "problems": problems,
        }))?;
    } else {
        for problem in &report.problems {
            output.data(format!("{} {problem}", output.coloured("problem:", 31)))?;
        }
        output.data(format!(
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
        ))?;
        if index.is_none() {
            output.say("the index was not compared: there is none, or another command holds it");
        }
    }
    Ok(if report.problems.is_empty() { Exit::Done } else { Exit::Damaged })
}

fn rebuild(args: &args::StoreArg, output: &Output) -> Result<Exit, Failure> {
    let project = project(args)?;
    let session = super::run::session(&project, output)?.rebuild_index().map_err(failure::engine)?;
    let attempts = session.index.entries().map_err(failure::store)?.len() as u64;
    if args.json {
        output.json(&json!({"attempts": attempts}))?;
    } else {
        output.data(format!("the index was built anew: {}", words::count(attempts, "attempt")))?;
    }
    Ok(Exit::Done)
}
