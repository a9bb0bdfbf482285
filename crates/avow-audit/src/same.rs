//! Amendments that are said to change nothing: a drawn sample of members is carried out under the new plan and compared
//! with what stood under the old one.
//!
//! The sample is drawn by the digest of the amendment's own line of the ledger, so whoever has the ledger draws it
//! again, and it is not known before the amendment is written. What is compared is every output, by the determinism
//! that its stage declares. Absent: carrying members out, and letting old attempts stand for new members.

use std::collections::BTreeMap;

use avow_model::claim::Tolerance;
use avow_model::digest::{Artifact, BlobDigest, RegistrationDigest};
use avow_model::expand;
use avow_model::ledger::Entry;
use avow_model::plan::{Determinism, Plan};
use serde::Serialize;

use crate::compare;
use crate::evidence::{Evidence, Fate};
use crate::source::{AuditError, Source};

/// What became of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sampled {
    /// From how many members it was drawn: those of changed stages that stood before the amendment.
    pub of: usize,
    /// How many were drawn.
    pub drawn: usize,
    /// Drawn members that gave the same.
    pub same: Vec<String>,
    /// Drawn members that gave something else, or nothing that could be compared.
    pub different: Vec<String>,
    /// Drawn members that were not carried out under the new plan.
    pub open: Vec<String>,
}

impl Sampled {
    /// Whether every drawn member gave the same, and there was one.
    pub fn proves(&self) -> bool {
        self.drawn > 0 && self.same.len() == self.drawn
    }
}

/// The registration that an amendment is said to be the same as, and how many members are to show it.
pub fn claimed(entry: &Entry) -> Option<(RegistrationDigest, usize)> {
    let old = entry.fields.get("same_as")?.as_str()?.parse().ok()?;
    let check = entry.fields.get("check")?.as_u64()?;
    Some((old, usize::try_from(check).ok()?))
}

/// The names of the stages that both plans have and that differ.
pub fn changed<'p>(old: &Plan, new: &'p Plan) -> Vec<&'p str> {
    let differs =
        |stage: &&avow_model::plan::Stage| old.stage(&stage.name).is_some_and(|before| before != *stage);
    new.stages.iter().filter(differs).map(|stage| stage.name.as_str()).collect()
}

/// A member and what stood for it.
type Drawn = (String, BTreeMap<String, Artifact>);

/// Draws a sample: from how many members, and which, with what stood for each.
fn draw(
    old: &Evidence<'_>,
    new: &Plan,
    entry: RegistrationDigest,
    count: usize,
    before: &dyn Fn(&[RegistrationDigest]) -> bool,
) -> (usize, Vec<Drawn>) {
    let changed = changed(old.plan, new);
    let mut ranked = BTreeMap::new();
    for member in old.members() {
        let stage = old.plan.stages[member.member.stage as usize].name.as_str();
        let Fate::Stands(stands) = &member.fate else { continue };
        let heads = member.attempts.iter().find(|tried| tried.attempt == stands.attempt).map(|t| &t.heads);
        if changed.contains(&stage) && heads.is_some_and(|heads| before(heads)) {
            let label = old.label(member.member);
            let rank = BlobDigest::of(format!("avow/same/1 {entry} {label}").as_bytes());
            ranked.insert(rank.as_bytes().to_vec(), (label, stands.outputs.clone()));
        }
    }
    (ranked.len(), ranked.into_values().take(count).collect())
}

/// The labels of the members that an amendment must carry out to show that it changed nothing.
pub fn sample(
    old: &Evidence<'_>,
    new: &Plan,
    entry: RegistrationDigest,
    count: usize,
    before: &dyn Fn(&[RegistrationDigest]) -> bool,
) -> Vec<String> {
    draw(old, new, entry, count, before).1.into_iter().map(|(label, _)| label).collect()
}

/// Compares the sample. `before` says of the heads that an attempt cites whether it was made before the amendment.
pub fn check(
    old: &Evidence<'_>,
    new: &Evidence<'_>,
    (entry, count): (RegistrationDigest, usize),
    before: &dyn Fn(&[RegistrationDigest]) -> bool,
    source: Source<'_>,
) -> Result<Sampled, AuditError> {
    let (of, drawn) = draw(old, new.plan, entry, count, before);
    let mut out = Sampled { of, drawn: drawn.len(), ..Sampled::default() };
    let members: BTreeMap<String, _> =
        new.members().map(|found| (expand::label(new.plan, found.member), found)).collect();
    for (label, reference) in drawn {
        let Some(Fate::Stands(stands)) = members.get(&label).map(|found| &found.fate) else {
            out.open.push(label);
            continue;
        };
        let stage = &new.plan.stages[members[&label].member.stage as usize];
        let same = are_same(&stage.determinism, &reference, &stands.outputs, source)?;
        if same { out.same.push(label) } else { out.different.push(label) }
    }
    [&mut out.same, &mut out.different, &mut out.open].into_iter().for_each(|labels| labels.sort());
    Ok(out)
}

fn are_same(
    declared: &Determinism,
    reference: &BTreeMap<String, Artifact>,
    other: &BTreeMap<String, Artifact>,
    source: Source<'_>,
) -> Result<bool, AuditError> {
    let within: Option<Tolerance> = match declared {
        Determinism::Bytes => return Ok(reference == other),
        Determinism::Tolerance(tolerance) => Some(*tolerance),
        // Two such results differ anyway, so that nothing follows from it.
        Determinism::Distribution | Determinism::Unrepeatable => return Ok(false),
    };
    let names: std::collections::BTreeSet<&String> = reference.keys().chain(other.keys()).collect();
    for name in names {
        let (a, b) = (reference.get(name).copied(), other.get(name).copied());
        let differences = compare::artifacts(source, a, b, within)?;
        if !differences.iter().all(|difference| difference.how.is_within()) {
            return Ok(false);
        }
    }
    Ok(true)
}
