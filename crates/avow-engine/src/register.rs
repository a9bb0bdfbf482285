//! Freezing a plan in the ledger, and the registration in force.

use std::cell::RefCell;
use std::collections::HashMap;

use avow_model::attempt::Attempt;
use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_store::ledger::AppendError;
use avow_store::{BlobStore, LedgerFile, Project};
use serde_json::{Map, json};

use crate::error::EngineError;
use crate::session::Session;

/// The registration in force for an experiment.
#[derive(Debug)]
pub struct Registration {
    /// Its ledger line.
    pub leaf: RegistrationDigest,
    /// The plan it froze.
    pub plan: PlanDigest,
    ledger: Ledger,
    known: RefCell<HashMap<RegistrationDigest, bool>>,
}

impl Registration {
    /// Whether an attempt was started under it: some ledger head it cites descends from the registration.
    pub fn covers(&self, attempt: &Attempt) -> bool {
        attempt.ledger_heads.iter().any(|head| {
            *self.known.borrow_mut().entry(*head).or_insert_with(|| self.ledger.precedes(self.leaf, *head))
        })
    }
}

/// The last `register` or `amend` line of a ledger, if there is one.
pub fn current_registration(ledger: &Ledger) -> Option<Registration> {
    let entries = ledger.entries();
    let last = entries.into_iter().rev().find(|e| matches!(e.kind.as_str(), "register" | "amend"))?;
    let plan = last.fields.get("plan")?.as_str()?.parse().ok()?;
    Some(Registration { leaf: last.leaf, plan, ledger: ledger.clone(), known: RefCell::default() })
}

/// An experiment's ledger file and what it holds; nothing where it has none yet.
///
/// # Errors
/// [`EngineError::Store`] where the experiment's name cannot name a file or the file cannot be read. Damage in
/// the ledger is a finding in it.
pub fn ledger_of(project: &Project, experiment: &str) -> Result<(LedgerFile, Ledger), EngineError> {
    let file = LedgerFile::of(project, experiment)?;
    let ledger = file.read()?;
    Ok((file, ledger))
}

/// What a registration wrote.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The ledger line.
    pub leaf: RegistrationDigest,
    /// The chain's name.
    pub chain: RegistrationDigest,
    /// The plan.
    pub plan: PlanDigest,
    /// Where the ledger lies.
    pub path: std::path::PathBuf,
}

/// Registers a plan: its record and the spec's text become blobs, then the ledger gets its line. An exact
/// repetition of the registration in force is refused.
///
/// # Errors
/// [`EngineError::AlreadyRegistered`] for such a repetition, [`EngineError::Ledger`] where the ledger is damaged
/// and takes no line, [`EngineError::Store`] where a file cannot be read or written.
pub fn register(session: &Session, plan: &Plan, spec: &[u8]) -> Result<Registered, EngineError> {
    let (file, ledger) = ledger_of(&session.project, &plan.experiment)?;
    let digest = plan.digest();
    if current_registration(&ledger).is_some_and(|r| plan.is_named(r.plan)) {
        return Err(EngineError::AlreadyRegistered);
    }
    session.blobs.put(&plan.to_bytes())?;
    let text: BlobDigest = session.blobs.put(spec)?;
    session.blobs.sync()?;
    let kind = if current_registration(&ledger).is_some() { "amend" } else { "register" };
    let fields = json!({
        "experiment": plan.experiment,
        "plan": digest,
        "spec": text,
        "claims": plan.claims.len(),
        "stages": plan.stages.len(),
    });
    let leaf = file.append(kind, object(fields)).map_err(appended)?;
    let chain = file.read()?.chain().unwrap_or(leaf);
    Ok(Registered { leaf, chain, plan: digest, path: file.path() })
}

/// Records that values were read before a registered plan was complete: by which command, and what.
///
/// # Errors
/// [`EngineError::Ledger`] where the ledger is damaged and takes no line, [`EngineError::Store`] where its file
/// cannot be read or written.
pub fn record_exposure(project: &Project, experiment: &str, by: &str, what: &str) -> Result<(), EngineError> {
    let file = LedgerFile::of(project, experiment)?;
    file.append("exposure", object(json!({"command": by, "read": what}))).map_err(appended)?;
    Ok(())
}

pub(crate) fn appended(error: AppendError) -> EngineError {
    match error {
        AppendError::Ledger(error) => EngineError::Ledger(error),
        AppendError::Store(error) => EngineError::Store(error),
    }
}

fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => map,
        _ => unreachable!("callers pass objects"),
    }
}
