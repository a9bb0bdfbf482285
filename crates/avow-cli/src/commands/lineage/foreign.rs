//! What evidence of others says of something that own evidence says nothing of.

use std::collections::BTreeSet;
use std::path::Path;

use avow_audit::lineage::SameBytes;
use avow_model::digest::BlobDigest;
use avow_store::Project;
use avow_store::foreign::{self, Foreign};

use crate::args::LineageForm;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::foreign::{act, said, whose};

/// The most acts of somebody else's that are told of one file.
const MOST: usize = 100;

/// A line about bytes that somebody else has as well.
pub(super) fn line(same: &SameBytes) -> String {
    let import = same.import.get(..8).unwrap_or(&same.import);
    let made: Vec<String> = same.made_by.iter().map(act).collect();
    let made = if made.is_empty() { String::new() } else { format!(", made by {}", made.join("; ")) };
    format!(
        "foreign {} {import} `{}` has the same bytes as {}: `{}`{made}",
        same.form.word(),
        said(&same.title),
        said(&same.node),
        said(&same.path),
    )
}

/// Tells what others say of a digest or a file on the disk; whether any of them says anything.
pub(super) fn told(written: &str, form: LineageForm, output: &Output) -> Result<bool, Failure> {
    let Some(digits) = digits(written)? else { return Ok(false) };
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Machine, "this folder cannot be found").because(error))?;
    let project = Project::discover(&here).map_err(failure::store)?;
    let all = foreign::list(&project).map_err(failure::store)?;
    let held: Vec<(&Foreign, Vec<&str>)> =
        all.iter().map(|one| (one, one.with(&digits))).filter(|(_, paths)| !paths.is_empty()).collect();
    if held.is_empty() {
        return Ok(false);
    }
    if form == LineageForm::Json {
        let one = |(foreign, paths): &(&Foreign, Vec<&str>)| {
            serde_json::json!({
                "foreign": true, "form": foreign.form, "import": foreign.name, "title": foreign.title,
                "paths": paths, "acts": foreign.acts,
            })
        };
        output.json(&serde_json::json!({
            "roots": [], "nodes": {}, "foreign": held.iter().map(one).collect::<Vec<_>>(),
        }))?;
        return Ok(true);
    }
    if form != LineageForm::Text {
        return Err(Failure::new(Exit::Usage, "what others say has no drawing")
            .hint("give `--format text` or `--format json`"));
    }
    output.data("nothing of this project made it; others say of the same bytes:")?;
    for (foreign, paths) in held {
        for path in paths {
            output.data(format!("{}: `{}`", whose(foreign), said(path)))?;
            chain(foreign, path, output)?;
        }
    }
    Ok(true)
}

/// The digits of a digest, or the digest of a file on the disk.
fn digits(written: &str) -> Result<Option<String>, Failure> {
    let path = Path::new(written);
    if path.is_file() {
        let bytes = std::fs::read(path).map_err(|error| {
            Failure::new(Exit::Machine, format!("`{written}` cannot be read")).because(error)
        })?;
        return Ok(Some(BlobDigest::of(&bytes).to_string()));
    }
    let digits = written.strip_prefix("blob:").unwrap_or(written);
    let plain =
        (6..=64).contains(&digits.len()) && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    Ok(plain.then(|| digits.to_owned()))
}

/// What made a file there, and what made what that read, each act once.
fn chain(foreign: &Foreign, path: &str, output: &Output) -> Result<(), Failure> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![(1, path.to_owned())]);
    while let Some((depth, wanted)) = open.pop() {
        for (position, one) in foreign.acts.iter().enumerate() {
            if !one.wrote.contains(&wanted) || seen.len() >= MOST || !seen.insert(position) {
                continue;
            }
            output.data(format!("{}made by {}", "  ".repeat(depth), act(one)))?;
            open.extend(one.read.iter().map(|read| (depth + 1, read.clone())));
        }
    }
    Ok(())
}
