//! Freezing a plan in the ledger, and the registration in force.

use std::cell::RefCell;
use std::collections::HashMap;

use avow_model::attempt::Attempt;
use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::ledger::Ledger;
use avow_model::ledger::embargo::Opening;
use avow_model::ledger::invalid::Wrong;
use avow_model::plan::Plan;
use avow_store::ledger::AppendError;
use avow_store::{BlobStore, LedgerFile, Project};
use serde_json::{Map, Value, json};

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

/// The registration of a ledger that is in force, if there is one.
pub fn current_registration(ledger: &Ledger) -> Option<Registration> {
    let registered = ledger.in_force().0?.registered;
    let (leaf, plan) = (registered.leaf, registered.plan);
    Some(Registration { leaf, plan, ledger: ledger.clone(), known: RefCell::default() })
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

/// What to freeze, and what is said about it.
#[derive(Clone, Debug)]
pub struct Freeze<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The text of the spec.
    pub spec: &'a [u8],
    /// What else the line records of the moment: the state of the version control, what existed before.
    pub circumstances: Map<String, Value>,
}

/// Registers a plan for the first time: its record and the spec's text become blobs, then the ledger gets its line.
///
/// # Errors
/// [`EngineError::AlreadyRegistered`] where this plan is the one in force, [`EngineError::OtherRegistered`] where
/// another one is, [`EngineError::Ledger`] where the ledger is damaged and takes no line, [`EngineError::Store`]
/// where a file cannot be read or written.
pub fn register(session: &Session, freeze: Freeze<'_>) -> Result<Registered, EngineError> {
    let (file, ledger) = ledger_of(&session.project, &freeze.plan.experiment)?;
    ledger.sound()?;
    match current_registration(&ledger) {
        Some(current) if freeze.plan.is_named(current.plan) => Err(EngineError::AlreadyRegistered),
        Some(_) => Err(EngineError::OtherRegistered),
        None => write(session, freeze, |fields| file.append("register", fields)),
    }
}

/// Registers a plan under embargo: the ledger shows a commitment and nothing else, until [`open`].
///
/// # Errors
/// [`EngineError::Begun`] where the ledger has lines, which name what was run; otherwise as [`register`].
pub fn embargo(session: &Session, freeze: Freeze<'_>) -> Result<Registered, EngineError> {
    let (mut file, ledger) = ledger_of(&session.project, &freeze.plan.experiment)?;
    if ledger.chain().is_some() {
        return Err(EngineError::Begun);
    }
    write(session, freeze, |fields| file.embargo(fields))
}

/// Opens what a ledger committed to: with the openings that are kept here, or with one that is given. Returns the file
/// as it is called from then on, and the lines that were opened.
///
/// # Errors
/// [`EngineError::NoCommitment`] where nothing is closed, [`EngineError::Mismatch`] where what is given opens nothing.
pub fn open(
    project: &Project,
    experiment: &str,
    given: Option<Opening>,
) -> Result<(LedgerFile, Vec<RegistrationDigest>), EngineError> {
    let mut file = LedgerFile::of(project, experiment)?;
    let opened = file.open(given).map_err(appended)?;
    Ok((file, opened))
}

/// Registers a changed plan in place of the one in force, for a stated reason. With the plan in force it states the
/// reason alone: `circumstances` then say of what.
///
/// # Errors
/// [`EngineError::NotRegistered`] where nothing is in force; otherwise as [`register`].
pub fn amend(session: &Session, mut freeze: Freeze<'_>, reason: &str) -> Result<Registered, EngineError> {
    let (file, ledger) = ledger_of(&session.project, &freeze.plan.experiment)?;
    ledger.sound()?;
    let current = current_registration(&ledger).ok_or(EngineError::NotRegistered)?;
    if freeze.plan.is_named(current.plan) && !freeze.circumstances.contains_key("explains") {
        return Err(EngineError::AlreadyRegistered);
    }
    freeze.circumstances.insert("amends".to_owned(), json!(current.leaf));
    freeze.circumstances.insert("reason".to_owned(), json!(reason));
    write(session, freeze, |fields| file.append("amend", fields))
}

/// Decides between registrations on two sides of a fork: the one named is in force from here on.
///
/// # Errors
/// [`EngineError::NoRival`] where no other registration stands against the one named.
pub fn adopt(
    project: &Project,
    experiment: &str,
    chosen: RegistrationDigest,
    reason: &str,
) -> Result<RegistrationDigest, EngineError> {
    let (file, ledger) = ledger_of(project, experiment)?;
    let rivals = ledger.in_force().0.map(|force| (force.registered.leaf, force.rivals));
    let known = rivals.is_some_and(|(leaf, rivals)| {
        !rivals.is_empty() && (leaf == chosen || rivals.iter().any(|rival| rival.leaf == chosen))
    });
    if !known {
        return Err(EngineError::NoRival(chosen));
    }
    file.append("adopt", object(json!({"adopts": chosen, "reason": reason}))).map_err(appended)
}

/// Stores what a registration names, and has its line appended.
fn write(
    session: &Session,
    freeze: Freeze<'_>,
    append: impl FnOnce(Map<String, Value>) -> Result<RegistrationDigest, AppendError>,
) -> Result<Registered, EngineError> {
    let plan = freeze.plan;
    let digest = plan.digest();
    session.blobs.put(&plan.to_bytes())?;
    let text: BlobDigest = session.blobs.put(freeze.spec)?;
    session.blobs.sync()?;
    let mut fields = object(json!({
        "experiment": plan.experiment,
        "plan": digest,
        "spec": text,
        "claims": plan.claims.len(),
        "stages": plan.stages.len(),
    }));
    fields.extend(freeze.circumstances);
    let leaf = append(fields).map_err(appended)?;
    // An embargo has given the file another name.
    let file = LedgerFile::of(&session.project, &plan.experiment)?;
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

/// Records that a command copied a sealed output out of the store, and whether the registered plan was complete by
/// then.
///
/// # Errors
/// As [`record_exposure`].
pub fn record_copy(
    project: &Project,
    experiment: &str,
    by: &str,
    output: &str,
    complete: bool,
) -> Result<(), EngineError> {
    let file = LedgerFile::of(project, experiment)?;
    let fields = json!({"command": by, "read": output, "sealed": output, "complete": complete});
    file.append("exposure", object(fields)).map_err(appended)?;
    Ok(())
}

/// Records that something which succeeded is wrong: an attempt, or what it wrote.
///
/// # Errors
/// As [`record_exposure`].
pub fn invalidate(
    project: &Project,
    experiment: &str,
    what: Wrong,
    reason: &str,
) -> Result<RegistrationDigest, EngineError> {
    let file = LedgerFile::of(project, experiment)?;
    file.append("invalidate", object(json!({"what": what.to_string(), "reason": reason}))).map_err(appended)
}

/// Records that the reading of a claim is withdrawn.
///
/// # Errors
/// As [`record_exposure`].
pub fn retract(
    project: &Project,
    experiment: &str,
    claim: &str,
    reason: &str,
) -> Result<RegistrationDigest, EngineError> {
    let file = LedgerFile::of(project, experiment)?;
    file.append("retract", object(json!({"claim": claim, "reason": reason}))).map_err(appended)
}

pub(crate) fn appended(error: AppendError) -> EngineError {
    match error {
        AppendError::Ledger(error) => EngineError::Ledger(error),
        AppendError::Store(error) => EngineError::Store(error),
        AppendError::Begun => EngineError::Begun,
        AppendError::NoCommitment => EngineError::NoCommitment,
        AppendError::Lost(closed) => EngineError::Lost(closed),
        AppendError::Mismatch(mismatch) => EngineError::Mismatch(mismatch),
        AppendError::Taken(name) => EngineError::Taken(name),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("callers pass objects"),
    }
}
