//! What is really present for the stages of a plan: recorded with every attempt, and compared by `explain`.

use std::collections::BTreeMap;

use avow_model::canonical::Record;
use avow_model::digest::BlobDigest;
use avow_model::plan::{Plan, Stage};
use avow_model::present::{Difference, Interpreter, Present};
use avow_model::template::Piece;
use avow_spec::lock::Lock;
use avow_store::blob::read_record;
use avow_store::{BlobStore, StoreError};

use crate::context::Spec;
use crate::world::is_python;

/// The most differences that are told one by one.
const LISTED: usize = 12;

/// Stores what is present for each stage; attempts name it by its digest. Most stages share one record.
pub fn store(
    spec: &Spec,
    plan: &Plan,
    blobs: &dyn BlobStore,
) -> Result<BTreeMap<String, BlobDigest>, StoreError> {
    let machine = avow_exec::machine();
    let mut known: BTreeMap<_, BlobDigest> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for stage in &plan.stages {
        let named = stage.environment.as_ref().map(|named| format!("{named:?}"));
        let told: (Vec<_>, Vec<_>, _) =
            (interpreters(stage).collect(), threads(&machine, stage).collect(), named);
        let digest = match known.get(&told) {
            Some(digest) => *digest,
            None => {
                let digest = blobs.put(&of_stage(spec, &machine, stage).to_bytes())?;
                known.insert(told, digest);
                digest
            }
        };
        all.insert(stage.name.clone(), digest);
    }
    Ok(all)
}

fn interpreters(stage: &Stage) -> impl Iterator<Item = &String> {
    stage.toolchain.keys().filter(|word| is_python(word))
}

/// The variables about threads that a stage sets to a plain value.
fn threads<'a>(machine: &'a Present, stage: &'a Stage) -> impl Iterator<Item = (&'a String, &'a String)> {
    stage.env.iter().filter_map(|(name, template)| match template.pieces.as_slice() {
        [Piece::Text(value)] if machine.threads.contains_key(name) => Some((name, value)),
        _ => None,
    })
}

/// The machine, with the interpreters that a stage starts and the threads that it declares.
fn of_stage(spec: &Spec, machine: &Present, stage: &Stage) -> Present {
    let mut present = machine.clone();
    for word in interpreters(stage) {
        if let Some(facts) = spec.identities().interpreter(word) {
            let packages = spec.identities().installed(word).unwrap_or_default();
            present.interpreters.insert(word.clone(), Interpreter { version: facts.version, packages });
        }
    }
    present.disagreements = disagreements(spec, stage, &present);
    present.threads.extend(threads(machine, stage).map(|(name, value)| (name.clone(), value.clone())));
    present
}

/// Where the lock file and what is installed disagree. Where the spec names the lock, nothing runs then.
fn disagreements(spec: &Spec, stage: &Stage, present: &Present) -> Vec<String> {
    let Some(environment) = &stage.environment else { return Vec::new() };
    // It was read a moment ago; one that is gone since says nothing.
    let text = std::fs::read_to_string(spec.project.root().join(&environment.path)).unwrap_or_default();
    let lock = Lock::read(&environment.manager, &text);
    let mut all = Vec::new();
    for (word, interpreter) in &present.interpreters {
        for mismatch in lock.mismatches(&interpreter.packages) {
            if let Some(found) = mismatch.found {
                let (package, wanted) = (mismatch.package, mismatch.wanted);
                all.push(format!("{word}: {package} {found} where {} wants {wanted}", environment.path));
            }
        }
    }
    all
}

/// How what is present differs from what an attempt was made with, in words; nothing where that is not known.
pub fn notes(spec: &Spec, stage: &Stage, blobs: &dyn BlobStore, then: Option<BlobDigest>) -> Vec<String> {
    let Some(then) = then.and_then(|digest| read_record::<Present>(blobs, digest).ok()) else {
        return Vec::new();
    };
    let now = of_stage(spec, &avow_exec::machine(), stage);
    let differences = now.since(&then);
    let mut told: Vec<String> = differences.iter().take(LISTED).map(sentence).collect();
    if differences.len() > LISTED {
        told.push(format!("… and {} more differences of the environment", differences.len() - LISTED));
    }
    told
}

fn sentence(difference: &Difference) -> String {
    let Difference { what, then, now } = difference;
    match (then, now) {
        (Some(then), Some(now)) => format!("made with {what} {then}, now {now}"),
        (Some(then), None) => format!("made with {what} {then}, which is not there now"),
        (None, Some(now)) => format!("made without {what} {now}"),
        (None, None) => format!("made with {what} in another order"),
    }
}
