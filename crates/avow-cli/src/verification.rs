//! What carrying some of what was reused out again gave, in words and as an exit code.

use std::collections::BTreeMap;

use avow_audit::compare::{self, Difference};
use avow_audit::{AuditError, Source};
use avow_engine::{Verification, Verified};
use avow_model::attempt::{Blame, Outcome};
use avow_model::canonical::Record;
use avow_model::plan::{Determinism, Plan};
use serde_json::json;

use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// So many of one kind are told one by one.
const TOLD: usize = 10;

/// One action that was carried out again, compared.
pub struct Compared {
    verified: Verified,
    class: &'static str,
    /// What it came to.
    pub result: Judged,
    outputs: BTreeMap<String, Vec<Difference>>,
}

/// What the comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The same bytes.
    Same,
    /// Other bytes, within what the stage declares.
    AsDeclared,
    /// Other bytes than the stage declares.
    Differs,
    /// Its own program did not succeed again.
    NotMade,
    /// Nothing can be said: a machine failed, a person stopped it, it went on from a checkpoint.
    Unknown,
}

impl Judged {
    fn word(self) -> &'static str {
        match self {
            Judged::Same => "same",
            Judged::AsDeclared => "as-declared",
            Judged::Differs => "differs",
            Judged::NotMade => "not-made",
            Judged::Unknown => "unknown",
        }
    }
}

/// The whole comparison.
pub struct Report {
    verification: Verification,
    compared: Vec<Compared>,
}

/// Compares what was made again with what stands.
///
/// # Errors
/// Where the store cannot be read.
pub fn compare(plan: &Plan, source: Source<'_>, mut verification: Verification) -> Result<Report, Failure> {
    let results = std::mem::take(&mut verification.results);
    let mut compared = Vec::with_capacity(results.len());
    for verified in results {
        compared.push(judged(plan, source, verified).map_err(failure::audit)?);
    }
    compared.sort_by(|a, b| a.verified.member.cmp(&b.verified.member));
    Ok(Report { verification, compared })
}

/// Compares one action that was carried out again by what its stage declares.
///
/// # Errors
/// Where the store cannot be read.
pub fn judged(plan: &Plan, source: Source<'_>, verified: Verified) -> Result<Compared, AuditError> {
    let stage = plan.stage(words::stage_of(&verified.member));
    let determinism = stage.map_or(&Determinism::Bytes, |stage| &stage.determinism);
    let (class, within) = match determinism {
        Determinism::Bytes => ("bytes", None),
        Determinism::Tolerance(tolerance) => ("tolerance", Some(*tolerance)),
        Determinism::Distribution => ("distribution", None),
        Determinism::Unrepeatable => ("unrepeatable", None),
    };
    let attempt = &verified.attempt;
    let mut outputs = BTreeMap::new();
    if attempt.outcome.succeeded() {
        let names = verified.outputs.keys().chain(attempt.outputs.keys());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let (first, again) = (verified.outputs.get(name), attempt.outputs.get(name));
            let found = compare::artifacts(source, first.copied(), again.map(|made| made.artifact), within)?;
            if !found.is_empty() {
                outputs.insert(name.clone(), found);
            }
        }
    }
    let differences = || outputs.values().flatten();
    let result = match attempt.outcome.blame() {
        Some(Blame::Program) => Judged::NotMade,
        Some(_) => Judged::Unknown,
        None if !attempt.continues.is_empty() => Judged::Unknown,
        None if outputs.is_empty() => Judged::Same,
        None if class == "distribution" => Judged::AsDeclared,
        None if class == "tolerance" && differences().all(|d| d.how.is_within()) => Judged::AsDeclared,
        None => Judged::Differs,
    };
    Ok(Compared { verified, class, result, outputs })
}

impl Report {
    fn count(&self, result: Judged) -> u64 {
        self.compared.iter().filter(|one| one.result == result).count() as u64
    }

    /// The exit code: what cannot be made again is evidence that does not hold.
    pub fn exit(&self) -> Exit {
        let outcome =
            |test: fn(&Outcome) -> bool| self.compared.iter().any(|one| test(&one.verified.attempt.outcome));
        if outcome(|outcome| *outcome == Outcome::Cancelled) || self.stopped() {
            return Exit::Interrupted;
        }
        if self.count(Judged::Differs) + self.count(Judged::NotMade) > 0 {
            return Exit::Damaged;
        }
        if outcome(|outcome| outcome.blame() == Some(Blame::Machine)) { Exit::Machine } else { Exit::Done }
    }

    fn stopped(&self) -> bool {
        self.verification.skipped.values().any(|reason| reason == "stopped on request")
    }

    /// Says it.
    pub fn tell(&self, output: &Output) {
        let Verification { of, drawn, skipped, excluded, .. } = &self.verification;
        output.say(self.summary(*of, *drawn));
        for (stage, (count, reason)) in excluded {
            output.say(format!("  {} of `{stage}` left out: it {reason}", words::count(*count, "member")));
        }
        for (member, reason) in skipped.iter().take(TOLD) {
            output.always(format!("  {member} was not executed again: {reason}"));
        }
        let bad = |one: &&Compared| !matches!(one.result, Judged::Same | Judged::AsDeclared);
        for one in self.compared.iter().filter(bad).take(TOLD) {
            one.told(output).into_iter().for_each(|line| output.always(line));
        }
        for one in self.compared.iter().filter(|one| one.result == Judged::AsDeclared).take(TOLD) {
            one.told(output).into_iter().for_each(|line| output.say(line));
        }
        let more = self.compared.iter().filter(bad).count().saturating_sub(TOLD);
        if more > 0 {
            output.always(format!("  … and {more} more; `avow run --verify --json` lists all"));
        }
        if self.count(Judged::Differs) > 0 {
            output.say(format!(
                "{} mend what makes it differ (a seed, threads, a time, an order), or declare what a second \
                 execution promises: `determinism: {{class: tolerance, relative: 1e-5}}`, `determinism: distribution`",
                output.coloured("hint:", 36)
            ));
        }
    }

    fn summary(&self, of: u64, drawn: u64) -> String {
        if of == 0 {
            return "nothing was verified: no action was reused that may be executed again".to_owned();
        }
        let words = [
            (Judged::Same, "the same bytes"),
            (Judged::AsDeclared, "different as declared"),
            (Judged::Differs, "different"),
            (Judged::NotMade, "not made again"),
            (Judged::Unknown, "not compared"),
        ];
        let parts = words.iter().filter(|(result, _)| self.count(*result) > 0);
        let parts: Vec<String> =
            parts.map(|(result, word)| format!("{} {word}", self.count(*result))).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        format!("verified {drawn} of {}{parts}", words::count(of, "reused action"))
    }

    /// As JSON.
    pub fn json(&self) -> serde_json::Value {
        let results: Vec<_> = self.compared.iter().map(Compared::json).collect();
        let excluded = self.verification.excluded.iter();
        let excluded: Vec<_> = excluded
            .map(|(stage, (members, reason))| json!({"stage": stage, "members": members, "reason": reason}))
            .collect();
        json!({
            "of": self.verification.of, "drawn": self.verification.drawn, "results": results,
            "skipped": self.verification.skipped, "excluded": excluded,
        })
    }
}

impl Compared {
    /// The attempt that was made again.
    pub fn attempt(&self) -> &avow_model::attempt::Attempt {
        &self.verified.attempt
    }

    /// It in words, a line each; nothing where the bytes are the same.
    pub fn told(&self, output: &Output) -> Vec<String> {
        let Verified { member, first, attempt, .. } = &self.verified;
        let mut lines = Vec::new();
        lines.push(match self.result {
            Judged::Same => return lines,
            Judged::AsDeclared => format!("  {member} differs as declared (class {})", self.class),
            Judged::Differs => {
                format!("{} {member} (class {})", output.coloured("differs:", 31), self.class)
            }
            Judged::NotMade => {
                format!("{} {member}: {}", output.coloured("not made again:", 31), attempt.outcome)
            }
            Judged::Unknown if !attempt.continues.is_empty() => {
                format!("  {member} was not compared: it went on from a checkpoint")
            }
            Judged::Unknown => format!("  {member} was not compared: {}", attempt.outcome),
        });
        for (name, differences) in &self.outputs {
            lines.extend(listed(name, differences).into_iter().map(|line| format!("  {line}")));
        }
        let again = attempt.digest();
        if matches!(self.result, Judged::Differs | Judged::NotMade) {
            let (again, first) = (again.short(), first.short());
            lines.push(format!("  attempt {again} was made to verify; attempt {first} stays the evidence"));
        }
        lines
    }

    /// It as JSON.
    pub fn json(&self) -> serde_json::Value {
        json!({
            "member": self.verified.member, "action": self.verified.attempt.action, "class": self.class,
            "result": self.result.word(), "outcome": self.verified.attempt.outcome,
            "first": self.verified.first, "attempt": self.verified.attempt.digest(), "outputs": self.outputs,
        })
    }
}

/// The differences of one output, a line each.
pub fn listed(name: &str, differences: &[Difference]) -> Vec<String> {
    let shown = differences.iter().take(TOLD);
    let mut lines: Vec<String> = shown.map(|one| words::difference::words(name, one)).collect();
    if differences.len() > TOLD {
        lines.push(format!("{name}: … and {} more files", differences.len() - TOLD));
    }
    lines
}
