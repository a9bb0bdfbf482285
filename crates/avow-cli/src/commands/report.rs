//! `avow report`: a page about an experiment; stored values as macros of a manuscript, or filled into one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use avow_audit::stock::Stocked;
use avow_manuscript::class::Resolved;
use avow_manuscript::macros::{self, Language};
use avow_manuscript::{Stock, binding};
use avow_model::digest::BlobDigest;

use crate::args;
use crate::commands::audit::{open, text_of};
use crate::commands::verdict::damage_of;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::stocks::{self, Stocks};

/// Writes a page or macros, or fills a manuscript in.
pub fn report(args: &args::Report, output: &Output) -> Result<Exit, Failure> {
    if args.macros.is_none() && args.fill.is_none() {
        let [_, more, ..] = args.specs.as_slice() else {
            let spec = args.specs.first().map(PathBuf::as_path);
            return super::page::page(spec, args.html.as_deref(), args.peek, output);
        };
        return Err(Failure::new(
            Exit::Usage,
            format!("a page is about one experiment, and `{}` is a second", more.display()),
        )
        .hint("give the command once for each spec"));
    }
    let stocks = stocks::gather(&args.specs, args.peek.then_some("report"), output)?;
    let damage = damage_of(&stocks.findings, &stocks.problems, output);
    if damage != Exit::Done {
        return Err(Failure::new(damage, "nothing is written while evidence is damaged"));
    }
    match (&args.macros, &args.fill, &args.output) {
        (Some(file), _, _) => write_macros(file, args, &stocks, output)?,
        (None, Some(from), Some(to)) => fill(from, to, &stocks.stocked, output)?,
        // The parser of arguments asks for the second path.
        _ => {
            return Err(Failure::new(Exit::Usage, "where the filled file goes is not said")
                .hint("give `--fill FILE -o FILE`"));
        }
    }
    Ok(Exit::Done)
}

/// So a value is printed in each format that a macro file has by itself, besides the one without a name.
const FORMATS: [&str; 7] = [".0", ".1", ".2", ".3", ".4", ".1%", ".2%"];

fn write_macros(file: &Path, args: &args::Report, stocks: &Stocks, output: &Output) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let language = Language::of(&shown).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{shown}` is no macro file"))
            .hint("its name ends in .tex, .sty or .typ")
    })?;
    let stocked = &stocks.stocked;
    if stocked.experiments().next().is_none() {
        return Err(hidden(stocked));
    }
    let mut keys: BTreeSet<String> = BTreeSet::new();
    for key in stocked.listed() {
        if matches!(stocked.resolve(&key), Resolved::Values(_)) {
            keys.extend(FORMATS.map(|format| format!("{key}:{format}")));
        }
        keys.insert(key);
    }
    for paper in &args.papers {
        keys.extend(macros::keys(&open(paper)?.flat));
    }
    let mut values = Vec::new();
    for key in keys {
        match rendered(stocked, &key) {
            Ok(value) => values.push((key, value)),
            // What a manuscript names and nobody has, the audit tells with its place.
            Err(Lacking::Unknown) => output.always(format!("warning: nothing stored is called `{key}`")),
            Err(Lacking::Hidden(experiment)) => {
                output.say(format!("`{key}` is left out: the values of `{experiment}` stay hidden"));
            }
            Err(Lacking::Format(bad)) => output.always(format!("warning: `{key}`: {bad}")),
        }
    }
    let text = macros::write(language, &about(stocks)?, &values);
    save(file, &text)?;
    output.say(format!("{} in `{shown}`", crate::words::count(values.len() as u64, "value")));
    Ok(())
}

/// What the file was made from.
fn about(stocks: &Stocks) -> Result<Vec<String>, Failure> {
    let mut lines =
        vec!["Written by `avow report`; `avow audit PAPER` says when it is stale. Do not edit.".to_owned()];
    for report in &stocks.reports {
        let verdicts = serde_json::to_vec(&report.verdicts)
            .map_err(|error| Failure::new(Exit::Internal, "a verdict has no JSON form").because(error))?;
        let verdicts = BlobDigest::of(&verdicts);
        lines.push(format!("experiment {}, plan {}, verdicts {verdicts}", report.experiment, report.plan));
    }
    Ok(lines)
}

enum Lacking {
    Unknown,
    Hidden(String),
    Format(binding::BadFormat),
}

fn rendered(stocked: &Stocked, written: &str) -> Result<String, Lacking> {
    let (key, format) = binding::split(written);
    let resolved = stocked.resolve(key);
    match &resolved {
        Resolved::Unknown => Err(Lacking::Unknown),
        Resolved::Hidden { experiment } => Err(Lacking::Hidden(experiment.clone())),
        Resolved::Values(_) | Resolved::Words(_) => {
            binding::render(&resolved, key, format).map_err(Lacking::Format)
        }
    }
}

fn fill(from: &Path, to: &Path, stocked: &Stocked, output: &Output) -> Result<(), Failure> {
    let text = text_of(from)?;
    let notebook = from.extension().is_some_and(|extension| extension == "ipynb");
    let mut count = 0u64;
    let filled = macros::fill(&text, |key, at| {
        count += 1;
        let line_start = text[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let (line, column) = (text[..at].matches('\n').count() + 1, text[line_start..at].chars().count() + 1);
        let place = format!("{}:{line}:{column}", from.display());
        let value = rendered(stocked, key).map_err(|lacking| match lacking {
            Lacking::Unknown => {
                Failure::new(Exit::Usage, format!("{place}: nothing stored is called `{key}`"))
                    .hint("`avow report --macros FILE` lists the keys of claims")
            }
            Lacking::Hidden(_) => hidden(stocked),
            Lacking::Format(bad) => {
                Failure::new(Exit::Usage, format!("{place}: `{key}` cannot be printed")).because(bad)
            }
        })?;
        // In a notebook the value stands in a JSON string.
        Ok(if notebook { value.replace('\\', "\\\\").replace('"', "\\\"") } else { value })
    })?;
    save(to, &filled)?;
    output.say(format!("{} filled in `{}`", crate::words::count(count, "value"), to.display()));
    Ok(())
}

fn hidden(stocked: &Stocked) -> Failure {
    let experiments: Vec<String> = stocked.hidden().map(|name| format!("`{name}`")).collect();
    Failure::new(
        Exit::Undecided,
        format!("values stay hidden until the registered plan of {} is complete", experiments.join(", ")),
    )
    .hint("go on with `avow run`; `--peek` writes values now and records that they were seen")
}

fn save(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", file.display())).because(error)
    })
}
