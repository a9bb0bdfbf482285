//! The record of a reproduction: its form, its signature, and the project that it is about.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use avow_audit::witness::{Outcome, signed};
use avow_model::digest::AttemptDigest;
use avow_model::ledger::canonical;
use avow_proof::namespace;
use avow_store::{Catalogue, Project, RecordStore};
use serde_json::{Value, json};

use crate::args;
use crate::commands::reproduce::record::{KIND, beside};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses;
use crate::words;

/// No record is larger: a million members with their differences.
const LARGEST: u64 = 1 << 30;
/// The words for what members came to, as they stand in the record and as they are said.
const RESULTS: [(&str, &str, &str); 5] = [
    ("same", "same", "the same bytes"),
    ("as-declared", "as-declared", "different as declared"),
    ("differs", "differs", "different"),
    ("not-made", "not-made", "not made again"),
    ("not-compared", "unknown", "not compared"),
];

/// Whether a file begins as canonical JSON does and names the kind; what it then is, the verification says.
pub(super) fn is_one(path: &Path) -> bool {
    let Ok(mut file) = std::fs::File::open(path) else { return false };
    let mut first = [0];
    // A bundle may be large, and begins otherwise.
    if file.read_exact(&mut first).is_err() || first != *b"{" {
        return false;
    }
    let mut rest = Vec::new();
    let kind = format!("\"{KIND}\"");
    file.take(LARGEST).read_to_end(&mut rest).is_ok()
        && rest.windows(kind.len()).any(|part| part == kind.as_bytes())
}

/// Verifies a record.
pub(super) fn verify(args: &args::Verify, output: &Output) -> Result<Exit, Failure> {
    let path = &args.bundle;
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot read `{}`", path.display())).because(error)
    })?;
    let record = read(&bytes).map_err(|why| {
        Failure::new(Exit::Damaged, format!("`{}` is no record of a reproduction: {why}", path.display()))
            .hint("`avow reproduce --record FILE` writes one")
    })?;
    let mut faults = recounted(&record);
    let signature = signature(args, &bytes)?;
    if let Some(Outcome::Refused { why }) = &signature {
        faults.push(format!("its signature proves nothing: {why}"));
    }
    let beside = compared(&record)?;
    faults.extend(beside.iter().flat_map(|(_, faults)| faults.clone()));
    let exit = if faults.is_empty() { Exit::Done } else { Exit::Damaged };
    if args.json {
        output.json(&json!({
            "record": record, "signature": signature, "compared": beside.as_ref().map(|(count, _)| count), "faults": faults,
        }))?;
        return Ok(exit.worse(checked(args, &record)));
    }
    told(&record, signature.as_ref(), beside.as_ref(), output)?;
    for fault in &faults {
        output.always(format!("{} {}", output.coloured("damaged:", 31), words::plain(fault)));
    }
    Ok(exit.worse(checked(args, &record)))
}

/// With `--check`: whether everything came out as declared.
fn checked(args: &args::Verify, record: &Value) -> Exit {
    let count = |key: &str| record["result"][key].as_u64().unwrap_or(0);
    match args.check && count("differs") + count("not-made") > 0 {
        true => Exit::Damaged,
        false => Exit::Done,
    }
}

fn read(bytes: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if value["kind"] != KIND || value["v"] != 1 {
        return Err(format!("it is {} version {}, not `{KIND}` version 1", value["kind"], value["v"]));
    }
    match canonical(&value) {
        Ok(text) if text.as_bytes() == bytes => {}
        Ok(_) => return Err("it is not in canonical form".to_owned()),
        Err(error) => return Err(error.to_string()),
    }
    let texts = ["experiment", "plan", "of"].iter().all(|key| value[*key].is_string());
    match texts && value["result"]["members"].is_array() {
        true => Ok(value),
        false => Err("a part of it is missing".to_owned()),
    }
}

/// Counts that do not follow from the members, and a first member that is none of them.
fn recounted(record: &Value) -> Vec<String> {
    let members = record["result"]["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for member in members {
        *counts.entry(member["result"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let mut faults = Vec::new();
    for (key, word, _) in RESULTS {
        let (said, found) = (&record["result"][key], counts.get(word).copied().unwrap_or(0));
        if *said != found {
            faults.push(format!("it says that {said} members are `{key}`, and lists {found}"));
        }
    }
    let bad = members.iter().find(|member| member["result"] == "differs" || member["result"] == "not-made");
    let first = bad.map_or(&Value::Null, |member| &member["member"]);
    if record["result"]["first"] != *first {
        faults.push(format!("the first to diverge is {first} and not {}", record["result"]["first"]));
    }
    faults
}

/// What the signature beside it comes to, where there is one.
fn signature(args: &args::Verify, bytes: &[u8]) -> Result<Option<Outcome>, Failure> {
    let path = beside(&args.bundle);
    let file = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| {
            Failure::new(Exit::Machine, format!("cannot read `{}`", path.display())).because(error)
        })?,
    };
    let project = Project::discover(Path::new(".")).map_err(failure::store)?;
    let trust = witnesses::trust(&project, &Settings::of(&project)?, Some(&args.trust))?;
    Ok(Some(signed(&file, namespace::REPRODUCTION, bytes, None, &trust)))
}

/// How many of its members this project has, and those that are not as it says; nothing where this is no project, or
/// one that never carried out the plan.
fn compared(record: &Value) -> Result<Option<(u64, Vec<String>)>, Failure> {
    let project = Project::discover(Path::new(".")).map_err(failure::store)?;
    if !project.check_format().map_err(failure::store)? {
        return Ok(None);
    }
    let catalogue = Catalogue::open(&project).map_err(failure::store)?;
    let (mut count, mut faults) = (0, Vec::new());
    let members = record["result"]["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    for member in members {
        let label = member["member"].as_str().unwrap_or_default();
        let Some(first) = member["first"].as_str().and_then(|hex| hex.parse::<AttemptDigest>().ok()) else {
            faults.push(format!("`{label}` names no attempt"));
            continue;
        };
        let Some(recorded) = catalogue.attempt(first).map_err(failure::store)? else { continue };
        count += 1;
        if recorded.member != label {
            faults.push(format!(
                "attempt {} is one at `{}`, not at `{label}`",
                first.short(),
                recorded.member
            ));
        }
    }
    Ok((count > 0).then_some((count, faults)))
}

fn told(
    record: &Value,
    signature: Option<&Outcome>,
    compared: Option<&(u64, Vec<String>)>,
    output: &Output,
) -> Result<(), Failure> {
    let text = |value: &Value| words::plain(value.as_str().unwrap_or_default());
    let result = &record["result"];
    let plan = text(&record["plan"]);
    output.data(format!(
        "reproduction of {}, plan {}",
        text(&record["experiment"]),
        plan.get(..8).unwrap_or(&plan)
    ))?;
    output.data(format!("  of          {}", text(&record["of"])))?;
    if record["bundle"].is_string() {
        output.data(format!("  bundle      {}", text(&record["bundle"])))?;
    }
    if record["sample"].is_object() {
        let (count, nonce) = (&record["sample"]["count"], text(&record["sample"]["nonce"]));
        output.data(format!("  sample      {count}, drawn by `{nonce}`"))?;
    }
    let count = |key: &str| result[key].as_u64().unwrap_or(0);
    let parts: Vec<String> = RESULTS
        .iter()
        .filter(|(key, _, _)| count(key) > 0)
        .map(|(key, _, word)| format!("{} {word}", count(key)))
        .collect();
    output.data(format!("  members     {}", parts.join(", ")))?;
    if result["first"].is_string() {
        output.data(format!("  first to diverge: {}", text(&result["first"])))?;
    }
    for verdict in result["verdicts"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let (claim, now, before) = (text(&verdict["claim"]), text(&verdict["now"]), text(&verdict["before"]));
        let as_before = if now == before { "as before".to_owned() } else { format!("before: {before}") };
        output.data(format!("  {claim}: {now}, {as_before}"))?;
    }
    output.data(format!("  {}", who(signature)))?;
    output.data(match compared {
        Some((count, _)) => {
            format!("  {} of it are attempts of this project", words::count(*count, "member"))
        }
        None => "  nothing of it is in a store here, so it was compared with none".to_owned(),
    })
}

fn who(signature: Option<&Outcome>) -> String {
    match signature {
        None => "nobody signed it".to_owned(),
        Some(Outcome::Signed { by, key, .. }) => format!("signed by {} ({key})", words::plain(by)),
        Some(Outcome::Unknown { why }) => format!("signed {}", words::plain(why)),
        Some(Outcome::Refused { .. } | Outcome::Stamped { .. } | Outcome::Attached) => {
            "its signature does not hold".to_owned()
        }
    }
}
