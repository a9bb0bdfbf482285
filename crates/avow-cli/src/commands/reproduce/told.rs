//! The comparison, and what it comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use avow_audit::evidence::{self, Fate, MemberEvidence};
use avow_audit::measure::{self, Measurement};
use avow_audit::noise::{self, Floor};
use avow_audit::{Audit, Evidence, Source};
use avow_engine::Verified;
use avow_model::action::{Action, changes};
use avow_model::digest::{ActionDigest, BlobDigest};
use avow_store::blob::read_record;
use avow_store::{BlobStore, FileBlobs, Intake, RecordStore, StoreError};
use serde_json::json;

use super::Wanted;
use super::distributions::{self, Distribution};
use crate::context::Reading;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::verification::{Compared, Judged, judged};
use crate::words;

/// So many members and differences are told one by one.
const TOLD: usize = 10;

/// What making it again came to.
pub(super) struct Comparison {
    members: Vec<Compared>,
    /// Members that the run did not come to, by label.
    missing: Vec<String>,
    /// The first member, producers first, that came out otherwise from the same inputs.
    first: Option<String>,
    /// Why stages are not the same work here: by stage, what differs.
    other: BTreeMap<String, Vec<String>>,
    /// The claims, judged anew, with the verdicts of the record: name, before, now.
    verdicts: Vec<(String, String, String)>,
    /// Claims whose measurements came out otherwise: name, claimed effect, how much they vary.
    noise: Vec<(String, f64, Floor)>,
    /// Measurements of stages that promise a distribution.
    distributions: Vec<Distribution>,
}

/// Compares member by member.
pub(super) fn compare(
    wanted: &Wanted,
    before: &Evidence<'_>,
    now: &Evidence<'_>,
    reading: &Reading,
    rereading: &Reading,
) -> Result<Comparison, Failure> {
    let both = Both { first: &rereading.blobs, second: &reading.blobs };
    let source = Source::new(&both, &rereading.index);
    let made: BTreeMap<String, &MemberEvidence> = now.members().map(|m| (now.label(m.member), m)).collect();
    let mut found = Comparison {
        members: Vec::new(),
        missing: Vec::new(),
        first: None,
        other: BTreeMap::new(),
        verdicts: Vec::new(),
        noise: Vec::new(),
        distributions: distributions::compare(wanted, (before, reading), (now, rereading))?,
    };
    let drawn = distributions::drawn(before.plan);
    for stage in evidence::topological(before.plan).map_err(failure::audit)? {
        for member in &before.stages[stage] {
            let label = before.label(member.member);
            let Fate::Stands(stands) = &member.fate else { continue };
            if !wanted.labels.contains(&label) {
                continue;
            }
            let attempt = match made.get(&label) {
                Some(again) => attempt_of(again, rereading)?,
                None => None,
            };
            let Some(attempt) = attempt else {
                found.missing.push(label);
                continue;
            };
            let outputs = stands.outputs.clone();
            let verified = Verified { member: label.clone(), first: stands.attempt, outputs, attempt };
            let same_work = member.action == Some(verified.attempt.action);
            if let (Some(old), false) = (member.action, same_work) {
                found.note_other(&before.plan.stages[stage].name, (old, verified.attempt.action), &both);
            }
            let mut compared = judged(before.plan, source, verified).map_err(failure::audit)?;
            // From inputs that are drawn anew nothing more than a distribution comes.
            if !same_work && compared.result == Judged::Differs && drawn.contains(&stage) {
                compared.result = Judged::AsDeclared;
            }
            let bad = matches!(compared.result, Judged::Differs | Judged::NotMade);
            if bad && found.first.is_none() {
                found.first = Some(label);
            }
            found.members.push(compared);
        }
    }
    if wanted.whole {
        let (before_words, estimates) = words(before, reading)?;
        found.verdicts = verdicts(before_words, words(now, rereading)?.0);
        found.noise = noise((before, reading), (now, rereading), &estimates)?;
    }
    Ok(found)
}

/// The attempt that speaks for a member of the new project: the one that stands, else the last that failed.
fn attempt_of(
    member: &MemberEvidence,
    rereading: &Reading,
) -> Result<Option<avow_model::attempt::Attempt>, Failure> {
    let digest = match &member.fate {
        Fate::Stands(stands) => stands.attempt,
        Fate::Failed { attempt, .. } | Fate::Unfinished { attempt, .. } => *attempt,
        _ => return Ok(None),
    };
    let recorded = rereading.index.attempt(digest).map_err(failure::store)?;
    Ok(recorded.map(|recorded| recorded.attempt))
}

/// Verdicts by name, in order.
type Words = Vec<(String, String)>;

/// The words of all verdicts, with the estimate of each claim that has one verdict.
fn words(evidence: &Evidence<'_>, reading: &Reading) -> Result<(Words, BTreeMap<String, f64>), Failure> {
    let audit = Audit::gather(evidence.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let report = audit.report(None, true).map_err(failure::audit)?;
    let one = |verdict: &avow_audit::Verdict| {
        let at: Vec<String> = verdict.member.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let at = if at.is_empty() { String::new() } else { format!("[{}]", at.join(",")) };
        let word = verdict.word.map_or("Estimate".to_owned(), |word| words::verdict::capital(word.word()));
        (format!("{}{at}", verdict.claim), word)
    };
    let single = report.verdicts.iter().filter(|verdict| verdict.member.is_empty());
    let estimates = single.filter_map(|verdict| Some((verdict.claim.clone(), verdict.estimate?))).collect();
    Ok((report.verdicts.iter().map(one).collect(), estimates))
}

/// The words before and now, side by side.
fn verdicts(before: Words, now: Words) -> Vec<(String, String, String)> {
    let now: BTreeMap<String, String> = now.into_iter().collect();
    let joined = before.into_iter();
    joined.map(|(name, word)| (name.clone(), word, now.get(&name).cloned().unwrap_or_default())).collect()
}

/// How much the measurements of claims vary between the record and what was made now, where they do.
fn noise(
    before: (&Evidence<'_>, &Reading),
    now: (&Evidence<'_>, &Reading),
    estimates: &BTreeMap<String, f64>,
) -> Result<Vec<(String, f64, Floor)>, Failure> {
    let values = |(evidence, reading): (&Evidence<'_>, &Reading), stage: &str, name: &str| {
        let Some(index) = evidence.plan.stage_index(stage) else { return Ok(BTreeMap::new()) };
        let read = measure::read_stage(evidence, reading.source(), index).map_err(failure::audit)?;
        let keyed = |one: &Measurement| ((evidence.label(one.member), format!("{:?}", one.keys)), one.value);
        let of_name = read.values.iter().filter(|one| one.name == name && one.value.is_finite());
        Ok::<BTreeMap<_, _>, Failure>(of_name.map(keyed).collect())
    };
    let mut found = Vec::new();
    for claim in &before.0.plan.claims {
        let (Some((part, name)), Some(estimate)) = (noise::selected(claim), estimates.get(&claim.name))
        else {
            continue;
        };
        let Some(effect) = noise::effect(part, *estimate) else { continue };
        let (old, new) = (values(before, &part.select.stage, name)?, values(now, &part.select.stage, name)?);
        let pairs: Vec<Vec<f64>> =
            old.iter().filter_map(|(key, value)| Some(vec![*value, *new.get(key)?])).collect();
        let floor = noise::floor(&pairs).filter(|floor| floor.sd > 0.0);
        found.extend(floor.map(|floor| (claim.name.clone(), effect, floor)));
    }
    Ok(found)
}

impl Comparison {
    /// Says why a stage is other work here, inputs apart: those follow from what diverged before.
    fn note_other(&mut self, stage: &str, (old, new): (ActionDigest, ActionDigest), both: &Both<'_>) {
        if self.other.contains_key(stage) {
            return;
        }
        let read = |digest| read_record::<Action>(both, digest).ok();
        let (Some(old), Some(new)) = (read(old), read(new)) else { return };
        let told: Vec<String> = changes(&old, &new)
            .into_iter()
            .filter(|change| change.part != "input")
            .map(|change| {
                let name = change.name.map(|name| format!(" `{name}`")).unwrap_or_default();
                let (old, new) = (change.old.unwrap_or_default(), change.new.unwrap_or_default());
                format!("{}{name}: {old} → {new}", change.part)
            })
            .collect();
        if !told.is_empty() {
            self.other.insert(stage.to_owned(), told);
        }
    }

    fn count(&self, result: Judged) -> usize {
        self.members.iter().filter(|one| one.result == result).count()
    }

    /// The exit code: a record that cannot be made again does not hold.
    pub(super) fn exit(&self) -> Exit {
        let bad = self.count(Judged::Differs) + self.count(Judged::NotMade);
        if bad > 0 || self.distributions.iter().any(Distribution::differs) {
            Exit::Damaged
        } else if self.count(Judged::Unknown) + self.missing.len() > 0 {
            Exit::Machine
        } else {
            Exit::Done
        }
    }

    pub(super) fn tell(&self, as_json: bool, output: &Output) -> Result<(), Failure> {
        if as_json {
            return output.json(&self.json());
        }
        output.data(self.summary())?;
        for (stage, what) in &self.other {
            output.data(format!("{stage} is not the same work here:"))?;
            what.iter().take(TOLD).try_for_each(|line| output.data(format!("  {line}")))?;
        }
        if let Some(first) = &self.first {
            output.data(format!("first to diverge: {first}"))?;
        }
        let bad = |one: &&Compared| !matches!(one.result, Judged::Same);
        for one in self.members.iter().filter(bad).take(TOLD) {
            one.told(output).into_iter().try_for_each(|line| output.data(line))?;
        }
        let more = self.members.iter().filter(bad).count().saturating_sub(TOLD);
        if more > 0 {
            output.data(format!("  … and {more} more; `--json` lists all"))?;
        }
        for label in self.missing.iter().take(TOLD) {
            output.data(format!("  {label} was not reached"))?;
        }
        self.distributions.iter().try_for_each(|one| output.data(one.words()))?;
        for (name, before, now) in &self.verdicts {
            output.data(if before == now {
                format!("{name}: {now}, as before")
            } else {
                format!("{name}: {now}; before: {before}")
            })?;
        }
        for (name, effect, floor) in &self.noise {
            let below = if *effect < floor.sd { "; the claimed effect is below it" } else { "" };
            let (sd, effect) = (words::number(floor.sd), words::number(*effect));
            output.data(format!(
                "{name}: made again, its numbers vary by {sd}, beside an effect of {effect}{below}"
            ))?;
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let words = [
            (Judged::Same, "the same bytes"),
            (Judged::AsDeclared, "different as declared"),
            (Judged::Differs, "different"),
            (Judged::NotMade, "not made again"),
            (Judged::Unknown, "not compared"),
        ];
        let mut parts: Vec<String> = words
            .iter()
            .filter(|(result, _)| self.count(*result) > 0)
            .map(|(result, word)| format!("{} {word}", self.count(*result)))
            .collect();
        if !self.missing.is_empty() {
            parts.push(format!("{} not reached", self.missing.len()));
        }
        let all = (self.members.len() + self.missing.len()) as u64;
        format!("{} made again: {}", words::count(all, "member"), parts.join(", "))
    }

    /// The machines on which it was made again: system, processor, confinement.
    pub(super) fn machines(&self) -> BTreeSet<[String; 3]> {
        let host = |one: &Compared| {
            let host = &one.attempt().host;
            [host.system.clone(), host.cpu.clone(), host.confinement.clone()]
        };
        self.members.iter().map(host).collect()
    }

    /// Everything as JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        let members: Vec<_> = self.members.iter().map(Compared::json).collect();
        let noise = |(name, effect, floor): &(String, f64, Floor)| json!({"claim": name, "effect": effect, "noise": floor, "below": *effect < floor.sd});
        let verdict = |(name, before, now): &(String, String, String)| json!({"claim": name, "before": before, "now": now});
        let mut all = json!({
            "same": self.count(Judged::Same), "as-declared": self.count(Judged::AsDeclared),
            "differs": self.count(Judged::Differs), "not-made": self.count(Judged::NotMade),
            "not-compared": self.count(Judged::Unknown), "not-reached": self.missing,
            "first": self.first, "other-work": self.other, "members": members,
            "verdicts": self.verdicts.iter().map(verdict).collect::<Vec<_>>(),
            "noise": self.noise.iter().map(noise).collect::<Vec<_>>(),
        });
        if !self.distributions.is_empty() {
            all["distributions"] = self.distributions.iter().map(Distribution::json).collect();
        }
        all
    }
}

/// Blobs of two stores, to be read only.
struct Both<'a> {
    first: &'a FileBlobs,
    second: &'a FileBlobs,
}

impl Both<'_> {
    /// The store that has a blob; the second where none has, so that it says so.
    fn store(&self, digest: BlobDigest) -> &FileBlobs {
        if matches!(self.first.size(digest), Ok(Some(_))) { self.first } else { self.second }
    }

    fn refused(&self) -> StoreError {
        StoreError::Name { name: "a view of two stores".to_owned() }
    }
}

impl BlobStore for Both<'_> {
    fn contains(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        self.store(digest).contains(digest)
    }

    fn read(&self, digest: BlobDigest) -> Result<Vec<u8>, StoreError> {
        self.store(digest).read(digest)
    }

    fn open_path(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        self.store(digest).open_path(digest)
    }

    fn put(&self, _: &[u8]) -> Result<BlobDigest, StoreError> {
        Err(self.refused())
    }

    fn put_file(&self, _: &Path, _: Intake) -> Result<(BlobDigest, u64), StoreError> {
        Err(self.refused())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn size(&self, digest: BlobDigest) -> Result<Option<u64>, StoreError> {
        self.store(digest).size(digest)
    }

    fn list(&self) -> Result<Vec<BlobDigest>, StoreError> {
        let all: BTreeSet<BlobDigest> = self.first.list()?.into_iter().chain(self.second.list()?).collect();
        Ok(all.into_iter().collect())
    }

    fn quarantine(&self, _: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        Err(self.refused())
    }
}
