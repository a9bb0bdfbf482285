//! `avow ledger log` and `heads`.

use avow_model::digest::RegistrationDigest;
use avow_model::ledger::{Entry, Finding, Ledger};
use serde_json::{Value, json};

use super::Chain;
use crate::args;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::words::columns;

/// Lists the lines in canonical order.
pub fn log(args: &args::LedgerArg, output: &Output) -> Result<Exit, Failure> {
    let chain = Chain::open(args.experiment.as_deref())?;
    let ledger = &chain.ledger;
    if args.json {
        let entry = |entry: &&Entry| {
            let mut said = json!({"leaf": entry.leaf, "depth": entry.depth, "line": entry.line()});
            if entry.line() != &entry.fields {
                said["stands_for"] = json!(entry.fields);
            }
            said
        };
        output.json(&ledger.entries().iter().map(entry).collect::<Vec<Value>>())?;
    } else {
        let rows: Vec<Vec<String>> = ledger.entries().iter().map(|entry| row(ledger, entry)).collect();
        output.data(columns(&rows).trim_end())?;
        for line in rivals(ledger) {
            output.data(line)?;
        }
    }
    Ok(damage(ledger, output))
}

/// Prints the statement about each head, as it is signed and stamped: a line each, or as JSON.
pub fn heads(args: &args::LedgerArg, output: &Output) -> Result<Exit, Failure> {
    let chain = Chain::open(args.experiment.as_deref())?;
    let statements: Vec<String> =
        chain.ledger.heads().iter().filter_map(|head| chain.ledger.head_statement(*head)).collect();
    if args.json {
        let parsed: Vec<Value> =
            statements.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        output.json(&parsed)?;
    } else {
        output.data(statements.join("\n"))?;
    }
    Ok(damage(&chain.ledger, output))
}

fn row(ledger: &Ledger, entry: &Entry) -> Vec<String> {
    let head = if ledger.heads().contains(&entry.leaf) { "head" } else { "" };
    let after: Vec<String> = entry.parents.iter().map(RegistrationDigest::short).collect();
    let closed = ledger.unopened().iter().any(|(leaf, _)| *leaf == entry.leaf);
    let kind = match (closed, entry.kind.as_str()) {
        (true, "commit") | (false, _) => entry.kind.clone(),
        (true, kind) => format!("{kind} (under embargo)"),
    };
    vec![
        entry.leaf.short(),
        kind,
        said(entry),
        format!("after {}", if after.is_empty() { "nothing".to_owned() } else { after.join(" and ") }),
        head.to_owned(),
    ]
}

/// What an entry says, in short.
fn said(entry: &Entry) -> String {
    let text = |key: &str| entry.fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let short = |key: &str| text(key).chars().take(8).collect::<String>();
    let said = match entry.kind.as_str() {
        "register" => format!("plan {}", short("plan")),
        "amend" => format!("plan {}: {}", short("plan"), text("reason")),
        "adopt" => format!("{}: {}", short("adopts"), text("reason")),
        "run-opened" | "run-head" | "run-closed" => format!("run {}", text("run")),
        "exposure" => format!("{} by `{}`", text("read"), text("command")),
        "open" => format!("opens {}", short("opens")),
        "invalidate" | "retract" => format!("{}: {}", text("what"), text("reason")),
        _ => String::new(),
    };
    said.trim_end_matches([':', ' ']).to_owned()
}

/// What stands against the registration in force.
fn rivals(ledger: &Ledger) -> Vec<String> {
    let Some(force) = ledger.in_force().0.filter(|force| !force.rivals.is_empty()) else { return Vec::new() };
    let all: Vec<String> =
        std::iter::once(&force.registered).chain(&force.rivals).map(|r| r.leaf.short()).collect();
    vec![
        format!("concurrent amendments: {}; neither is before the other", all.join(", ")),
        "decide with `avow amend --adopt ENTRY --reason TEXT`; claims that they disagree about are void until then"
            .to_owned(),
    ]
}

/// Says what does not verify.
pub fn damage(ledger: &Ledger, output: &Output) -> Exit {
    let mut exit = Exit::Done;
    for finding in ledger.findings() {
        match finding {
            Finding::Line { line, reason } => {
                output.always(format!("{} line {line}: {reason}", output.coloured("damaged:", 31)));
                exit = Exit::Damaged;
            }
            Finding::Torn { bytes } => {
                output.say(format!(
                    "the last {bytes} bytes are a write that was cut off; the next entry cuts them"
                ));
            }
        }
    }
    exit
}
