//! What amendments changed, when, and the reasons that the ledger states.
//!
//! Each amendment on the way to the registration in force is compared with the plan before it, and its time is
//! computed from the ledger: before the first attempt where no run had begun by then, before any value was read where
//! the values of the plan were hidden all along and nobody peeked, else after. "Before" means "is an ancestor of".
//! It is a statement about what was read through this tool.

use std::collections::BTreeSet;

use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::ledger::{Entry, Ledger};
use avow_model::plan::Plan;

use crate::deviation::{Class, Deviation, What, When};
use crate::evidence::{Evidence, Fate, MemberEvidence, Tried};
use crate::finding::Finding;
use crate::holdout;
use crate::planned;
use crate::registration::descendants;
use crate::same::{self, Sampled};
use crate::source::{AuditError, Source};

/// The changes that each amendment made, oldest first. A plan that was registered in another clone may have no record
/// here; then it is said that nobody can tell what it changed.
pub fn amendments(
    evidence: &Evidence<'_>,
    ledger: &Ledger,
    source: Source<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Deviation>, AuditError> {
    let mut out = Vec::new();
    let Some(registration) = &evidence.registration else { return Ok(out) };
    let mut known = |digest: PlanDigest| -> Result<Option<Plan>, AuditError> {
        if evidence.plan.is_named(digest) {
            return Ok(Some(evidence.plan.clone()));
        }
        Ok(match plan(digest, source)? {
            Ok(plan) => Some(plan),
            Err(Finding::MissingBlob { .. }) => None,
            Err(damage) => {
                findings.push(damage);
                None
            }
        })
    };
    for pair in registration.history.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let made = |class, when, what| {
            let (reason, entry) = (after.reason.clone(), Some(after.leaf));
            Deviation { reason, entry, ..Deviation::new(class, when, what) }
        };
        let (Some(old), Some(new)) = (known(before.plan)?, known(after.plan)?) else {
            out.push(made(Class::Amendment, When::After, What::Elsewhere { entry: after.leaf }));
            continue;
        };
        let when = time(after.leaf, &old, registration.first, ledger, source)?;
        let sampled = sampled(evidence, (after.leaf, &old, &new), ledger, source)?;
        let of_stages = match &sampled {
            Some(sampled) if sampled.proves() => Some(Class::Equivalence),
            None if is_bug_fix(ledger, after.leaf) => Some(Class::BugFix),
            _ => None,
        };
        for change in planned::changes(&old, &new) {
            let class = of_stages.filter(|_| change.subject == planned::Subject::Stage);
            out.push(made(class.unwrap_or_else(|| planned::class(&change)), when, What::Plan(change)));
        }
        if let Some(sampled) = sampled {
            let class = if sampled.proves() { Class::Equivalence } else { Class::Amendment };
            let proved = made(class, when, What::Sampled { entry: after.leaf, sampled });
            // The reason of the amendment says why it should be the same, not why it is not.
            let reason = proved.reason.clone().filter(|_| class == Class::Equivalence);
            out.push(Deviation { reason, ..proved });
        }
    }
    Ok(out)
}

/// Takes back what older attempts are blamed for where the amendment in force was shown to change nothing, and they were
/// made under the registration before it: they are as good as made under this one.
pub fn absolve(deviations: &mut Vec<Deviation>, evidence: &Evidence<'_>, ledger: &Ledger) {
    let Some(registration) = &evidence.registration else { return };
    let [.., before, after] = registration.history.as_slice() else { return };
    let by = |deviation: &&Deviation| deviation.entry == Some(after.leaf);
    let proved = deviations.iter().filter(by).any(|deviation| {
        deviation.class == Class::Equivalence && matches!(deviation.what, What::Sampled { .. })
    });
    let harmless = [Class::Equivalence, Class::Clarification, Class::Addition];
    let only = deviations.iter().filter(by).all(|deviation| harmless.contains(&deviation.class));
    if !proved || !only {
        return;
    }
    let standing = |member: &MemberEvidence| match &member.fate {
        Fate::Stands(stands) => member.attempts.iter().find(|tried| tried.attempt == stands.attempt).cloned(),
        _ => None,
    };
    let made_under = |tried: &Tried| tried.heads.iter().any(|head| ledger.precedes(before.leaf, *head));
    deviations.retain(|deviation| {
        let What::OlderAttempts { stage, .. } = &deviation.what else { return true };
        let Some(index) = evidence.plan.stage_index(stage) else { return true };
        let older = evidence.stages[index].iter().filter_map(standing).filter(|tried| !tried.covered);
        !older.into_iter().all(|tried| made_under(&tried))
    });
}

/// Whether an amendment says that the stages it changes were wrong before.
fn is_bug_fix(ledger: &Ledger, entry: RegistrationDigest) -> bool {
    let fields = ledger.entry(entry).map(|entry| &entry.fields);
    fields.and_then(|fields| fields.get("class")?.as_str()) == Some("bug-fix")
}

/// What became of the sample by which an amendment is to show that it changed nothing.
fn sampled(
    evidence: &Evidence<'_>,
    (entry, old, new): (RegistrationDigest, &Plan, &Plan),
    ledger: &Ledger,
    source: Source<'_>,
) -> Result<Option<Sampled>, AuditError> {
    let Some((_, count)) = ledger.entry(entry).and_then(same::claimed) else { return Ok(None) };
    let before = |heads: &[RegistrationDigest]| !heads.iter().any(|head| ledger.precedes(entry, *head));
    let old = Evidence::gather(old, source, ledger)?;
    let sampled = if evidence.plan.is_named(new.digest()) {
        same::check(&old, evidence, (entry, count), &before, source)?
    } else {
        let new = Evidence::gather(new, source, ledger)?;
        same::check(&old, &new, (entry, count), &before, source)?
    };
    Ok(Some(sampled))
}

/// The record of a registered plan.
pub(crate) fn plan(digest: PlanDigest, source: Source<'_>) -> Result<Result<Plan, Finding>, AuditError> {
    let blob = BlobDigest::from(digest);
    let missing = || Finding::MissingBlob { blob, used: "registered plan".to_owned() };
    let read = source.record::<Plan>(blob, "registered plan")?;
    Ok(read.and_then(|plan| if plan.digest() == digest { Ok(plan) } else { Err(missing()) }))
}

/// When an entry was made, in the course of the plan that was registered until then.
fn time(
    entry: RegistrationDigest,
    old: &Plan,
    first: RegistrationDigest,
    ledger: &Ledger,
    source: Source<'_>,
) -> Result<When, AuditError> {
    let entries = ledger.entries();
    let of_kind = |kind: &'static str| entries.iter().filter(move |e| e.kind == kind);
    let before = |e: &&&Entry| ledger.precedes(e.leaf, entry);
    let after_first = |e: &&&Entry| ledger.precedes(first, e.leaf);
    if !of_kind("run-opened").filter(before).any(|e| after_first(&e)) {
        return Ok(When::BeforeFirstAttempt);
    }
    // Runs that were not registered showed what they measured.
    let shown = of_kind("run-opened").filter(before).any(|e| !after_first(&e));
    let peeked = of_kind("exposure").filter(|e| holdout::copied(e).is_none()).any(|e| before(&e));
    if shown || peeked {
        return Ok(When::After);
    }
    let later = descendants(&entries, entry);
    let evidence = Evidence::gather(old, source, ledger)?;
    let complete = evidence.members().all(|member| was_final(member, &later));
    Ok(if complete { When::After } else { When::BeforeValues })
}

/// Whether a member had come to its end before these entries.
fn was_final(member: &MemberEvidence, later: &BTreeSet<RegistrationDigest>) -> bool {
    let earlier = member.attempts.iter().filter(|tried| tried.heads.iter().all(|head| !later.contains(head)));
    earlier.into_iter().any(|tried| !tried.invalid && tried.outcome.is_final())
}

/// Gives deviations the reasons that `amend` lines state for exactly them.
pub fn explain(deviations: &mut [Deviation], ledger: &Ledger) {
    for entry in ledger.entries().into_iter().filter(|entry| entry.kind == "amend") {
        let reason = entry.fields.get("reason").and_then(|reason| reason.as_str());
        let explained = entry.fields.get("explains").and_then(|explains| explains.as_array());
        let (Some(reason), Some(explained)) = (reason, explained) else { continue };
        let of = explained.iter().filter_map(|one| one.get("of")?.as_str()?.parse::<BlobDigest>().ok());
        let of: BTreeSet<BlobDigest> = of.collect();
        for deviation in deviations.iter_mut().filter(|d| d.reason.is_none() && of.contains(&d.digest())) {
            deviation.reason = Some(reason.to_owned());
            deviation.entry = Some(entry.leaf);
        }
    }
}
