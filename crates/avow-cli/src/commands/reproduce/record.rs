//! What making results again came to, as a record that a reader can sign and hand on.
//!
//! One line of canonical JSON (RFC 8785, in the restricted form of the ledger: numbers that are no integers are texts),
//! so that its bytes are what is signed, under the namespace `avow-reproduction`. It names the plan, the heads of the
//! ledger and each attempt by digest: it can be held against the project or the bundle that it is about.

use std::path::{Path, PathBuf};

use avow_model::canonical::Record as _;
use avow_model::ledger::canonical;
use avow_model::plan::Plan;
use avow_proof::namespace;
use serde_json::{Value, json};

use super::told::Comparison;
use super::{Original, Wanted};
use crate::args;
use crate::context::Reading;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses;

/// The kind of the record.
pub(in crate::commands) const KIND: &str = "avow-reproduction";

/// Writes the record, and signs it, where that is asked for.
pub(super) fn write(
    args: &args::Reproduce,
    original: &Original,
    plan: &Plan,
    reading: &Reading,
    wanted: &Wanted,
    result: &Comparison,
    output: &Output,
) -> Result<(), Failure> {
    let Some(path) = &args.record else { return Ok(()) };
    let record = record(args, original, plan, reading, wanted, result);
    let text = canonical(&record)
        .map_err(|error| Failure::new(Exit::Internal, "the record has no canonical form").because(error))?;
    crate::commands::page::write(path, text.as_bytes())?;
    output.say(format!("the record is `{}`", path.display()));
    if args.sign || args.key.is_some() {
        let project = &original.spec().project;
        // The reader's settings, which are not those of a bundle: it could name a key.
        let settings = if original.name().is_some() { Settings::default() } else { Settings::of(project)? };
        let key = args.key.as_deref();
        let here = Path::new(".");
        let (signature, key) = witnesses::sign_file(key, &settings, here, path, namespace::REPRODUCTION)?;
        let beside = beside(path);
        crate::commands::page::write(&beside, &signature)?;
        output.say(format!("signed with {}: `{}`", key.display(), beside.display()));
    }
    Ok(())
}

/// Where a record's signature lies.
pub(in crate::commands) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sig");
    PathBuf::from(name)
}

fn record(
    args: &args::Reproduce,
    original: &Original,
    plan: &Plan,
    reading: &Reading,
    wanted: &Wanted,
    result: &Comparison,
) -> Value {
    let machine = |[system, cpu, confinement]: [String; 3]| json!({"confinement": confinement, "cpu": cpu, "system": system});
    let machines: Vec<Value> = result.machines().into_iter().map(machine).collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut record = json!({
        "kind": KIND,
        "v": 1,
        "experiment": plan.experiment,
        "plan": plan.digest(),
        "of": original.target(),
        "whole": wanted.whole,
        "heads": reading.ledger.heads(),
        "made": {
            "at": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            "machines": machines,
            "tool": env!("CARGO_PKG_VERSION"),
        },
        "result": result.json(),
    });
    if let Some(bundle) = original.name() {
        record["bundle"] = bundle.into();
    }
    if let (Some(count), Some(nonce)) = (args.sample, &args.nonce) {
        record["sample"] = json!({"count": count, "nonce": nonce});
    }
    exact(&mut record);
    record
}

/// Numbers that are no integers become texts in the shortest spelling that reads back as them.
fn exact(value: &mut Value) {
    match value {
        Value::Number(number) if !(number.is_u64() || number.is_i64()) => {
            *value = Value::String(number.as_f64().map_or_else(|| number.to_string(), |x| x.to_string()));
        }
        Value::Array(items) => items.iter_mut().for_each(exact),
        Value::Object(fields) => fields.values_mut().for_each(exact),
        _ => {}
    }
}
