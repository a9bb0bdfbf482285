//! Which registration of a ledger is in force, and how it came to be.
//!
//! It is the last `register` or `amend` entry in canonical order. Two such entries of which neither is before the
//! other stand against each other until an `adopt` entry that follows both names one; where two `adopt` entries
//! stand against each other in turn, neither counts. Registering the same plan again changes nothing.

use serde_json::Value;

use super::{Entry, Ledger};
use crate::digest::{PlanDigest, RegistrationDigest};

/// A `register` or `amend` entry that names a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The entry.
    pub leaf: RegistrationDigest,
    /// `register` or `amend`.
    pub kind: String,
    /// The plan it froze.
    pub plan: PlanDigest,
    /// Why it was made, where it says so.
    pub reason: Option<String>,
}

/// The registration in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The entry whose plan it is; the first of those that name this plan in a row.
    pub registered: Registered,
    /// The first registration of the chain.
    pub first: RegistrationDigest,
    /// What was registered before it on its own side, oldest first, itself last.
    pub history: Vec<Registered>,
    /// The other sides of a fork that nobody has decided.
    pub rivals: Vec<Registered>,
}

impl Ledger {
    /// The registration in force, and every entry that should be a registration and names no plan.
    pub fn in_force(&self) -> (Option<InForce>, Vec<(RegistrationDigest, String)>) {
        let (mut sound, mut faults) = (Vec::new(), self.faults.clone());
        for entry in self.entries() {
            match registered(entry) {
                None => {}
                Some(Ok(one)) => sound.push(one),
                Some(Err(reason)) => faults.push((entry.leaf, reason)),
            }
        }
        let Some(first) = sound.first().map(|one| one.leaf) else { return (None, faults) };
        let live = self.not_overruled(&sound);
        let Some(last) = live.last() else { return (None, faults) };
        let before = |one: &&Registered| self.precedes(one.leaf, last.leaf);
        let mut history: Vec<Registered> = live.iter().filter(before).cloned().collect();
        let rivals = live.iter().filter(|one| !before(one)).cloned().collect();
        let same = history.iter().rev().take_while(|one| one.plan == last.plan).count();
        let registered = history[history.len() - same].clone();
        history.dedup_by(|later, earlier| later.plan == earlier.plan);
        (Some(InForce { registered, first, history, rivals }), faults)
    }

    /// The registrations that no decision between rivals has passed over.
    fn not_overruled(&self, sound: &[Registered]) -> Vec<Registered> {
        let decisions: Vec<(RegistrationDigest, RegistrationDigest)> =
            self.entries().into_iter().filter_map(|entry| Some((entry.leaf, adopted(entry)?))).collect();
        let latest: Vec<&(RegistrationDigest, RegistrationDigest)> = decisions
            .iter()
            .filter(|(leaf, _)| {
                !decisions.iter().any(|(other, _)| other != leaf && self.precedes(*leaf, *other))
            })
            .collect();
        let agreed = latest.iter().all(|(_, chosen)| *chosen == latest[0].1);
        // A decision that a later one follows holds for what it decided, all the same.
        let counting = |leaf: &RegistrationDigest| agreed || !latest.iter().any(|(other, _)| other == leaf);
        let overruled = |one: &Registered| {
            decisions.iter().filter(|(leaf, _)| counting(leaf)).any(|(leaf, chosen)| {
                self.precedes(one.leaf, *leaf)
                    && !self.precedes(one.leaf, *chosen)
                    && self.precedes(*chosen, *leaf)
            })
        };
        sound.iter().filter(|one| !overruled(one)).cloned().collect()
    }
}

/// The entry that a decision names.
fn adopted(entry: &Entry) -> Option<RegistrationDigest> {
    (entry.kind == "adopt").then(|| entry.fields.get("adopts")?.as_str()?.parse().ok()).flatten()
}

/// The registration that an entry is.
fn registered(entry: &Entry) -> Option<Result<Registered, String>> {
    if !matches!(entry.kind.as_str(), "register" | "amend") {
        return None;
    }
    let text = |key: &str| entry.fields.get(key).and_then(Value::as_str);
    let Some(plan) = text("plan") else { return Some(Err("no `plan`".to_owned())) };
    let Ok(plan) = plan.parse() else { return Some(Err(format!("`{plan}` is not a plan's digest"))) };
    let reason = text("reason").map(str::to_owned);
    Some(Ok(Registered { leaf: entry.leaf, kind: entry.kind.clone(), plan, reason }))
}
