//! `avow log`: what a stage's attempts printed.

use std::collections::BTreeMap;
use std::io::Write;

use avow_audit::Audit;
use avow_engine::record_exposure;
use avow_model::attempt::Attempt;
use avow_model::digest::{AttemptDigest, BlobDigest};
use avow_model::label;
use avow_store::{BlobStore, RecordStore, Recorded};
use serde_json::json;

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Prints the logs of every attempt at the members that the name covers.
pub fn log(args: &args::Log, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    if args.follow
        && let Some(exit) = super::follow::follow(args, &spec, output)?
    {
        return Ok(exit);
    }
    let experiment = name_of(&spec)?;
    let reading = Reading::open(&spec.project, &experiment)?;
    let mut found = attempts(&reading, &experiment, &args.member)?;
    if !found.is_empty() {
        found = permitted(args, &spec, &reading, found, output)?;
    }
    if found.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("nothing called `{}` has been executed", args.member))
            .hint("`avow status` shows the latest run; names look like `train` or `train[seed=3]`"));
    }
    if args.json {
        let rows = found.iter().map(|r| row(&reading, r)).collect::<Result<Vec<_>, _>>()?;
        output.json(&rows)?;
    } else {
        for recorded in &found {
            print(&reading, recorded, output)?;
        }
    }
    Ok(Exit::Done)
}

/// While a registered plan is incomplete, only what failed attempts printed is shown, and that it was read is
/// recorded.
fn permitted(
    args: &args::Log,
    spec: &Spec,
    reading: &Reading,
    found: Vec<Recorded>,
    output: &Output,
) -> Result<Vec<Recorded>, Failure> {
    if reading.ledger.entries().iter().all(|entry| entry.kind != "register") {
        return Ok(found);
    }
    let planned = spec.plan_as_run(output)?;
    let audit = Audit::gather(&planned.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let failed: Vec<Recorded> = found.iter().filter(|r| !r.attempt.outcome.succeeded()).cloned().collect();
    if audit.hiding(&[]).map_err(failure::audit)?.is_empty() {
        return Ok(found);
    }
    if failed.is_empty() || args.peek {
        super::verdict::guard(spec, reading, &audit, args.peek, ("log", &args.member))?;
        return Ok(found);
    }
    let what = format!("failed attempts of {}", args.member);
    record_exposure(&spec.project, &planned.plan.experiment, "log", &what).map_err(failure::engine)?;
    Ok(failed)
}

/// The experiment's name.
pub fn name_of(spec: &Spec) -> Result<String, Failure> {
    spec.name().map(str::to_owned).ok_or_else(|| {
        Failure::new(Exit::SpecInvalid, format!("the spec `{}` names no experiment", spec.shown))
            .hint("`avow check` shows every problem")
    })
}

/// Every attempt at each member, in order of members, then of attempts: also those that failed before one
/// succeeded.
fn attempts(reading: &Reading, experiment: &str, name: &str) -> Result<Vec<Recorded>, Failure> {
    let stage = words::stage_of(name);
    let history = reading.index.stage_history(experiment, stage).map_err(failure::store)?;
    let mut by_member: BTreeMap<String, Vec<AttemptDigest>> = BTreeMap::new();
    for (member, digest) in history {
        if covers(name, &member) {
            by_member.entry(member).or_default().push(digest);
        }
    }
    let mut found = Vec::new();
    for digest in by_member.into_values().flatten() {
        found.extend(reading.index.attempt(digest).map_err(failure::store)?);
    }
    Ok(found)
}

/// Whether a name covers a member: the stage alone covers all; brackets must agree in every pair named.
pub fn covers(name: &str, member: &str) -> bool {
    let pairs = |text: &str| -> Vec<(String, String)> {
        let inner = text.split_once('[').map_or("", |(_, rest)| rest.strip_suffix(']').unwrap_or(rest));
        // What is no point of a member covers what has exactly that name.
        label::pairs(inner).unwrap_or_else(|_| vec![(inner.to_owned(), String::new())])
    };
    let of_member = pairs(member);
    words::stage_of(name) == words::stage_of(member)
        && pairs(name).iter().all(|pair| of_member.contains(pair))
}

fn print(reading: &Reading, recorded: &Recorded, output: &Output) -> Result<(), Failure> {
    let attempt = &recorded.attempt;
    output.say(output.bold(&format!(
        "{}: {}, {} in {} (run {}{})",
        recorded.member,
        attempt.outcome,
        words::moment(attempt.started),
        words::seconds(attempt.usage.wall as f64 / 1e6),
        attempt.run,
        if attempt.verification { ", made to verify" } else { "" },
    )));
    if attempt.stdout.is_none() && attempt.stderr.is_none() {
        output.say("  (it printed nothing)");
    }
    if let Some(at) = reading.index.collected_on(recorded.digest()) {
        output.say(format!("  (what it printed was collected on {})", words::moment(at)));
        return Ok(());
    }
    // Both are data here: what the program wrote, first its output, then its errors.
    for digest in [attempt.stdout, attempt.stderr].into_iter().flatten() {
        let path = reading.blobs.open_path(digest).map_err(failure::store)?;
        let mut out = std::io::stdout().lock();
        // A log may be larger than the memory.
        let copied = match path {
            Some(path) => {
                std::fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut out).map(drop))
            }
            None => out.write_all(&reading.blobs.read(digest).map_err(failure::store)?),
        };
        match copied.and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Err(Failure::quiet(Exit::Done));
            }
            other => other.map_err(|error| {
                Failure::new(Exit::Machine, "cannot write to standard output").because(error)
            })?,
        }
    }
    Ok(())
}

fn row(reading: &Reading, recorded: &Recorded) -> Result<serde_json::Value, Failure> {
    let collected = reading.index.collected_on(recorded.digest());
    let text = |digest: Option<BlobDigest>| -> Result<Option<String>, Failure> {
        let Some(digest) = digest.filter(|_| collected.is_none()) else { return Ok(None) };
        let bytes = reading.blobs.read(digest).map_err(failure::store)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    };
    let attempt: &Attempt = &recorded.attempt;
    Ok(json!({
        "member": recorded.member, "run": attempt.run, "outcome": attempt.outcome,
        "started": attempt.started, "usage": attempt.usage, "verification": attempt.verification, "collected": collected,
        "stdout": text(attempt.stdout)?, "stderr": text(attempt.stderr)?,
    }))
}
