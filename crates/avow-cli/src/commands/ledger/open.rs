//! `avow ledger open`: what was committed to is shown.

use std::path::Path;

use avow_model::ledger::embargo::Opening;
use serde_json::json;

use super::chosen;
use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::count;

/// Opens every commitment that can be opened here, or the one whose files are given.
pub fn open(args: &args::LedgerOpen, output: &Output) -> Result<Exit, Failure> {
    let (project, experiment) = chosen(args.experiment.as_deref())?;
    let given = match (&args.opening, &args.body) {
        (Some(opening), Some(body)) => Some(Opening { opening: read(opening)?, body: read(body)? }),
        _ => None,
    };
    let (file, opened) = avow_engine::open(&project, &experiment, given).map_err(failure::engine)?;
    let path = file.path();
    let shown = path.strip_prefix(project.root()).unwrap_or(&path).display().to_string();
    if args.json {
        output.json(&json!({"ledger": shown, "opened": opened}))?;
    } else {
        output.data(format!("opened {}", count(opened.len() as u64, "commitment")))?;
        output.data(format!("  ledger {shown}"))?;
        let left = file.read().map_err(failure::store)?.unopened().len() as u64;
        if left > 0 {
            output.data(format!("  {} left, whose openings are not here", count(left, "commitment")))?;
        }
        output.say("commit the ledger: it shows from here on what was registered, and when");
    }
    Ok(Exit::Done)
}

/// The text of a file, without the line feed that an editor may have added.
fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read `{}`", path.display())).because(error)
    })?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
