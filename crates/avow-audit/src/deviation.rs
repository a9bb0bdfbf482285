//! What differs between what was registered and what happened.
//!
//! Everything here is computed: the structural difference of two plans, attempts that are older than their
//! registration by hash links, members without a success, attempts beyond the one that stands, and second
//! successes with other bytes. A deviation is a class, a time and a payload of names and values. Absent: stated
//! reasons and sentences, and damage, which is a finding.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::attempt::Blame;
use avow_model::claim::{Claim, Test};
use avow_model::digest::{Artifact, AttemptDigest, BlobDigest, RegistrationDigest};
use avow_model::expand::{self, Member};
use avow_model::ledger::{Entry, Ledger};
use avow_model::op::Kind;
use avow_model::plan::{Determinism, Plan, Source as From};
use serde::Serialize;

use crate::evidence::{Evidence, Fate, MemberEvidence, Tried, topological};
use crate::holdout::{self, rows::Shared};
use crate::planned::{self, Change};
use crate::same::Sampled;

/// One deviation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// What kind of thing it is.
    pub class: Class,
    /// When it happened.
    pub when: When,
    /// What differs.
    #[serde(flatten)]
    pub what: What,
    /// The reason that the ledger states for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The ledger line that states the reason, or made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<RegistrationDigest>,
}

/// The class of a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The plan or a rule was changed.
    Amendment,
    /// Something was added: a claim, a stage, values of an axis.
    Addition,
    /// Only words changed: what a claim says or means.
    Clarification,
    /// Stages were changed, and a drawn sample gave the same as before.
    Equivalence,
    /// Stages were changed because they were wrong before, as their author says.
    BugFix,
    /// Something planned was left out of the plan.
    Exclusion,
    /// An attempt is older than the registration that covers its member.
    OlderThanRegistration,
    /// A member was not carried out.
    NotRun,
    /// A member failed for good.
    Shortfall,
    /// Attempts failed before one succeeded.
    Incident,
    /// Two successes of one action with different bytes.
    Divergence,
    /// Two registrations of which neither is before the other.
    ConcurrentAmendment,
    /// Values were read before the registered plan was complete.
    Exposure,
    /// Rows of a holdout occur in training data.
    Leakage,
    /// What succeeded was declared wrong.
    Invalidation,
    /// A reading was withdrawn.
    Retraction,
}

/// When a deviation happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Before the registration.
    BeforeRegistration,
    /// After it, before the first attempt under it.
    BeforeFirstAttempt,
    /// After the first attempt, and before any value was read through this tool.
    BeforeValues,
    /// After values could be read.
    After,
    /// Nothing is registered.
    Unregistered,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum What {
    /// A value of the plan.
    Plan(Change),
    /// Members of a stage that an older attempt stands for.
    OlderAttempts {
        /// The stage.
        stage: String,
        /// Their labels.
        members: Vec<String>,
    },
    /// Members of a stage without a success.
    Members {
        /// The stage.
        stage: String,
        /// The code of their fate: `not-run`, `blocked`, `unfinished`, `failed`, `unbound`.
        fate: &'static str,
        /// Their labels.
        members: Vec<String>,
    },
    /// Attempts of a stage that failed although one succeeded.
    FailedAttempts {
        /// The stage.
        stage: String,
        /// How many, by member.
        members: BTreeMap<String, usize>,
    },
    /// Successes of one member that differ.
    Outputs {
        /// The stage.
        stage: String,
        /// The member.
        member: String,
        /// The output.
        output: String,
        /// Whether the stage promises that a second execution gives the same, in bytes or nearly.
        promised: bool,
        /// Each artifact with the first attempt that wrote it; the first is the one that stands.
        artifacts: Vec<(Artifact, AttemptDigest)>,
    },
    /// Files that attempts of a stage were seen to read, first after the registration, and that nobody declared.
    Observed {
        /// The stage.
        stage: String,
        /// Their paths.
        files: BTreeSet<String>,
    },
    /// What was read before the registered plan was complete, by command.
    Read {
        /// The commands that showed values, with how often.
        commands: BTreeMap<String, usize>,
    },
    /// A sealed output that commands copied out of the store before the registered plan was complete.
    Copied {
        /// `stage.output`.
        output: String,
        /// The commands, with how often.
        commands: BTreeMap<String, usize>,
    },
    /// Rows of a sealed output that are also rows of what a stage was trained with.
    Leaked {
        /// The stage that trained.
        stage: String,
        /// The sealed output.
        holdout: String,
        /// The training data: an output, a path or an address.
        training: String,
        /// How many rows the sealed output has.
        rows: u64,
        /// How many of them the training data has too.
        shared: u64,
        /// The first of those.
        first: Vec<Shared>,
    },
    /// What was declared wrong, the members that it stood for, and everything that rested on them.
    Invalidated {
        /// `attempt:…` or `blob:…`.
        wrong: String,
        /// The members, by label.
        members: Vec<String>,
        /// The members downstream, by label.
        downstream: Vec<String>,
        /// The stages of both.
        stages: BTreeSet<String>,
    },
    /// A claim whose reading was withdrawn, and the claims that rest on it.
    Retracted {
        /// The claim.
        claim: String,
        /// The claims that require it, follow it, or have it as a part.
        downstream: Vec<String>,
    },
    /// What became of the sample by which an amendment is to show that it changed nothing.
    Sampled {
        /// The amendment.
        entry: RegistrationDigest,
        /// The sample.
        #[serde(flatten)]
        sampled: Sampled,
    },
    /// An amendment of whose plan there is no record here.
    Elsewhere {
        /// Its ledger line.
        entry: RegistrationDigest,
    },
    /// The registrations on the other sides of a fork.
    Registrations {
        /// Their ledger lines.
        entries: Vec<RegistrationDigest>,
    },
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 16] = [
        Class::Amendment,
        Class::Addition,
        Class::Clarification,
        Class::Equivalence,
        Class::BugFix,
        Class::Exclusion,
        Class::OlderThanRegistration,
        Class::NotRun,
        Class::Shortfall,
        Class::Incident,
        Class::Divergence,
        Class::ConcurrentAmendment,
        Class::Exposure,
        Class::Leakage,
        Class::Invalidation,
        Class::Retraction,
    ];

    /// The code of the class.
    pub fn word(self) -> &'static str {
        match self {
            Class::Amendment => "amendment",
            Class::Addition => "addition",
            Class::Clarification => "clarification",
            Class::Equivalence => "equivalence",
            Class::BugFix => "bug-fix",
            Class::Exclusion => "exclusion",
            Class::OlderThanRegistration => "older-than-registration",
            Class::NotRun => "not-run",
            Class::Shortfall => "shortfall",
            Class::Incident => "incident",
            Class::Divergence => "divergence",
            Class::ConcurrentAmendment => "concurrent-amendment",
            Class::Exposure => "exposure",
            Class::Leakage => "leakage",
            Class::Invalidation => "invalidation",
            Class::Retraction => "retraction",
        }
    }
}

impl When {
    /// The code of the time.
    pub fn word(self) -> &'static str {
        match self {
            When::BeforeRegistration => "before-registration",
            When::BeforeFirstAttempt => "before-first-attempt",
            When::BeforeValues => "before-values",
            When::After => "after",
            When::Unregistered => "unregistered",
        }
    }
}

/// Every deviation, plan first, then stage by stage. `registered` is the registered plan, where it is another
/// than the one judged and its record exists; `unread` says that values stayed hidden so far.
pub fn deviations(
    evidence: &Evidence<'_>,
    registered: Option<&Plan>,
    ledger: &Ledger,
    unread: bool,
) -> Vec<Deviation> {
    let mut out = Vec::new();
    let started = evidence.members().flat_map(|m| &m.attempts).any(|tried| tried.covered);
    let when = match (started, unread) {
        (false, _) => When::BeforeFirstAttempt,
        (true, true) => When::BeforeValues,
        (true, false) => When::After,
    };
    for change in registered.map(|plan| planned::changes(plan, evidence.plan)).unwrap_or_default() {
        out.push(Deviation::new(planned::class(&change), when, What::Plan(change)));
    }
    let rivals = evidence.registration.as_ref().map(|r| r.concurrent.clone()).unwrap_or_default();
    if !rivals.is_empty() {
        let what = What::Registrations { entries: rivals };
        out.push(Deviation::new(Class::ConcurrentAmendment, When::After, what));
    }
    let covered = covered(evidence.plan);
    for (index, members) in evidence.stages.iter().enumerate() {
        let stage = Stage { evidence, ledger, unread, name: &evidence.plan.stages[index].name, members };
        if evidence.registration.is_some() && covered.contains(&index) {
            out.extend(stage.older());
            out.extend(stage.observed());
        }
        out.extend(stage.without_success());
        out.extend(stage.failures());
        out.extend(stage.divergences());
    }
    out
}

/// What the ledger says was read before the plan was complete. It states what was read through this tool, no
/// more.
pub fn exposures(ledger: &Ledger) -> Option<Deviation> {
    let mut commands: BTreeMap<String, usize> = BTreeMap::new();
    for entry in ledger.entries().iter().filter(|entry| is_peek(entry)) {
        let command = entry.fields.get("command").and_then(|c| c.as_str()).unwrap_or("unknown");
        *commands.entry(command.to_owned()).or_default() += 1;
    }
    let what = What::Read { commands: commands.clone() };
    (!commands.is_empty()).then(|| Deviation::new(Class::Exposure, When::After, what))
}

/// Whether a line of the ledger says that values were read before the plan was complete.
fn is_peek(entry: &Entry) -> bool {
    entry.kind == "exposure" && holdout::copied(entry).is_none()
}

/// Whether an attempt failed through its own program.
fn is_own_failure(tried: &&Tried) -> bool {
    !tried.verification && tried.outcome.blame() == Some(Blame::Program)
}

struct Stage<'a> {
    evidence: &'a Evidence<'a>,
    ledger: &'a Ledger,
    /// Whether values stayed hidden so far.
    unread: bool,
    name: &'a str,
    members: &'a [MemberEvidence],
}

impl Stage<'_> {
    fn after(&self) -> When {
        if self.evidence.registration.is_some() { When::After } else { When::Unregistered }
    }

    /// When these attempts were made. Values of a registered plan are hidden until it is complete, so what was tried before
    /// that was tried unread, unless somebody peeked before.
    fn tried_when<'t>(&self, mut attempts: impl Iterator<Item = &'t Tried>) -> When {
        if self.evidence.registration.is_none() {
            return When::Unregistered;
        }
        let peeks: Vec<RegistrationDigest> = self
            .ledger
            .entries()
            .into_iter()
            .filter(|entry| is_peek(entry))
            .map(|entry| entry.leaf)
            .collect();
        // Attempts of one run cite the same heads, and what is asked depends on nothing else.
        let mut known: BTreeMap<&[RegistrationDigest], bool> = BTreeMap::new();
        let unread = |tried: &'t Tried| {
            let heads = tried.heads.as_slice();
            let peeked = || {
                let cites =
                    |peek: &RegistrationDigest| heads.iter().any(|head| self.ledger.precedes(*peek, *head));
                peeks.iter().any(cites)
            };
            tried.covered
                && *known.entry(heads).or_insert_with(|| !peeked() && !self.was_complete_before(heads))
        };
        if attempts.all(unread) { When::BeforeValues } else { When::After }
    }

    /// Whether every member had come to its end in runs before the one whose attempts cite these heads.
    fn was_complete_before(&self, heads: &[RegistrationDigest]) -> bool {
        let plan = self.evidence.plan;
        let mut known: BTreeMap<&[RegistrationDigest], bool> = BTreeMap::new();
        let earlier = |other: &[RegistrationDigest]| {
            let before = |head: &RegistrationDigest| {
                heads.iter().any(|later| later != head && self.ledger.precedes(*head, *later))
            };
            !other.is_empty() && other.iter().all(before)
        };
        let Ok(order) = topological(plan) else { return false };
        let mut failed: BTreeSet<Member> = BTreeSet::new();
        for member in order.into_iter().flat_map(|stage| &self.evidence.stages[stage]) {
            let mut ends = member.attempts.iter().filter(|tried| {
                let heads = tried.heads.as_slice();
                let before = *known.entry(heads).or_insert_with(|| earlier(heads));
                before && tried.covered && tried.outcome.is_final() && !tried.verification
            });
            let first = ends.next().map(|tried| tried.outcome.succeeded());
            let ended = first.map(|first| first || ends.any(|tried| tried.outcome.succeeded()));
            let cell = expand::cell(plan, member.member);
            let blocked = || {
                let inputs = plan.stages[member.member.stage as usize].producers();
                let mut producers = inputs
                    .flat_map(|(_, input, _)| expand::producers(&cell, &input.from).unwrap_or_default());
                producers.any(|producer| failed.contains(&producer))
            };
            match ended {
                Some(true) => {}
                None if !blocked() => return false,
                Some(false) | None => {
                    failed.insert(member.member);
                }
            }
        }
        true
    }

    fn labels<'m>(&self, members: impl Iterator<Item = &'m MemberEvidence>) -> Vec<String> {
        members.map(|m| self.evidence.label(m.member)).collect()
    }

    fn older(&self) -> Option<Deviation> {
        let older = |m: &&MemberEvidence| matches!(&m.fate, Fate::Stands(stands) if !stands.covered);
        let members = self.labels(self.members.iter().filter(older));
        let what = What::OlderAttempts { stage: self.name.to_owned(), members: members.clone() };
        let (class, when) = (Class::OlderThanRegistration, When::BeforeRegistration);
        (!members.is_empty()).then(|| Deviation::new(class, when, what))
    }

    /// What was first seen to be read after the registration: an addition to what was declared then.
    fn observed(&self) -> Option<Deviation> {
        let tried = || self.members.iter().flat_map(|member| &member.attempts);
        let read = |covered: bool| {
            let those = tried().filter(move |tried| tried.covered == covered);
            those.flat_map(|tried| tried.undeclared.keys().cloned()).collect::<BTreeSet<String>>()
        };
        let files: BTreeSet<String> = read(true).difference(&read(false)).cloned().collect();
        let (empty, what) = (files.is_empty(), What::Observed { stage: self.name.to_owned(), files });
        (!empty).then(|| Deviation::new(Class::Addition, When::After, what))
    }

    fn without_success(&self) -> Vec<Deviation> {
        let mut by_fate: BTreeMap<&'static str, Vec<&MemberEvidence>> = BTreeMap::new();
        for member in self.members.iter().filter(|m| !matches!(m.fate, Fate::Stands(_))) {
            by_fate.entry(member.fate.word()).or_default().push(member);
        }
        let deviation = |(fate, members): (&'static str, Vec<&MemberEvidence>)| {
            let failed = fate == "failed";
            let when = match (failed, self.unread) {
                (true, _) => {
                    self.tried_when(members.iter().flat_map(|member| &member.attempts).filter(is_own_failure))
                }
                (false, true) if self.evidence.registration.is_some() => When::BeforeValues,
                (false, _) => self.after(),
            };
            let class = if failed { Class::Shortfall } else { Class::NotRun };
            let members = self.labels(members.into_iter());
            let what = What::Members { stage: self.name.to_owned(), fate, members };
            Deviation::new(class, when, what)
        };
        by_fate.into_iter().map(deviation).collect()
    }

    fn failures(&self) -> Option<Deviation> {
        // Only what the program itself did may be a way of choosing; a machine that failed chose nothing.
        let count = |m: &MemberEvidence| m.attempts.iter().filter(is_own_failure).count();
        let stands = |m: &&MemberEvidence| matches!(m.fate, Fate::Stands(_)) && count(m) > 0;
        let stands: Vec<&MemberEvidence> = self.members.iter().filter(stands).collect();
        let members: BTreeMap<String, usize> =
            stands.iter().map(|m| (self.evidence.label(m.member), count(m))).collect();
        // What came after a failure is the trying again.
        let again = stands.iter().flat_map(|m| {
            let first = m.attempts.iter().position(|tried| is_own_failure(&tried)).unwrap_or(0);
            &m.attempts[first..]
        });
        let when = self.tried_when(again.filter(|tried| !tried.verification));
        let what = What::FailedAttempts { stage: self.name.to_owned(), members: members.clone() };
        (!members.is_empty()).then(|| Deviation::new(Class::Incident, when, what))
    }

    fn divergences(&self) -> Vec<Deviation> {
        let mut out = Vec::new();
        for member in self.members {
            let Fate::Stands(stands) = &member.fate else { continue };
            for (output, artifact) in &stands.outputs {
                let mut artifacts = vec![(*artifact, stands.attempt)];
                for tried in member.attempts.iter().filter(|t| t.outcome.succeeded() && !t.invalid) {
                    if let Some(other) = tried.outputs.get(output)
                        && artifacts.iter().all(|(known, _)| known != other)
                    {
                        artifacts.push((*other, tried.attempt));
                    }
                }
                if artifacts.len() > 1 {
                    let (stage, label) = (self.name.to_owned(), self.evidence.label(member.member));
                    let declared = self.evidence.plan.stage(self.name).map(|stage| &stage.determinism);
                    let promised =
                        !matches!(declared, Some(Determinism::Distribution | Determinism::Unrepeatable));
                    let (member, output) = (label, output.clone());
                    let what = What::Outputs { stage, member, output, promised, artifacts };
                    out.push(Deviation::new(Class::Divergence, self.after(), what));
                }
            }
        }
        out
    }
}

impl Deviation {
    /// A deviation without a stated reason.
    pub fn new(class: Class, when: When, what: What) -> Deviation {
        Deviation { class, when, what, reason: None, entry: None }
    }

    /// The name of what it says, by which a later line of the ledger explains exactly this and nothing that
    /// happens afterwards.
    pub fn digest(&self) -> BlobDigest {
        let said = serde_json::json!({"class": self.class, "what": self.what});
        BlobDigest::of(said.to_string().as_bytes())
    }

    /// Whether `--check` answers it with its own code: anything but words and additions that nobody has given a
    /// reason for. Failed attempts count where something is registered: trying until it works is a choice.
    pub fn is_unexplained(&self) -> bool {
        let counts = match self.class {
            Class::Addition | Class::Clarification | Class::Equivalence => false,
            // What a stage never promised to repeat is shown, and is no fault of anybody.
            Class::Divergence => !matches!(self.what, What::Outputs { promised: false, .. }),
            Class::Incident => self.when != When::Unregistered,
            _ => true,
        };
        counts && self.reason.is_none()
    }

    /// The stage that it is about, where it is about one.
    pub fn stage(&self) -> Option<&str> {
        match &self.what {
            What::OlderAttempts { stage, .. }
            | What::Members { stage, .. }
            | What::FailedAttempts { stage, .. }
            | What::Outputs { stage, .. }
            | What::Leaked { stage, .. }
            | What::Observed { stage, .. } => Some(stage),
            What::Plan(_)
            | What::Read { .. }
            | What::Copied { .. }
            | What::Sampled { .. }
            | What::Registrations { .. }
            | What::Elsewhere { .. }
            | What::Invalidated { .. }
            | What::Retracted { .. } => None,
        }
    }

    /// Whether it concerns a claim: its own text or rule, the whole plan, a stage it rests on, or an axis or
    /// parameter, of which any stage may depend.
    pub fn concerns(&self, plan: &Plan, claim: &Claim) -> bool {
        match &self.what {
            What::Plan(change) => planned::concerns(change, &claim.name, &rests_on(plan, claim)),
            What::Invalidated { stages, .. } => {
                rests_on(plan, claim).into_iter().any(|stage| stages.contains(stage))
            }
            What::Retracted { claim: retracted, downstream } => {
                *retracted == claim.name || downstream.contains(&claim.name)
            }
            _ => self.stage().is_none_or(|stage| rests_on(plan, claim).contains(stage)),
        }
    }
}

/// Whether a deviation concerns anything that was made by these stages, whatever claims select it.
pub(crate) fn touches(deviation: &Deviation, stages: &BTreeSet<&str>) -> bool {
    match &deviation.what {
        // No claim has an empty name, so changes of claims concern no stage.
        What::Plan(change) => planned::concerns(change, "", stages),
        What::Invalidated { stages: theirs, .. } => {
            theirs.iter().any(|stage| stages.contains(stage.as_str()))
        }
        What::Retracted { .. } => false,
        _ => deviation.stage().is_none_or(|stage| stages.contains(stage)),
    }
}

/// The stages that a claim selects from, and everything upstream of them, what searches measure included.
pub fn rests_on<'p>(plan: &'p Plan, claim: &Claim) -> BTreeSet<&'p str> {
    let mut stages = BTreeSet::new();
    let mut open: Vec<&str> = stages_of(&claim.test).collect();
    while let Some(name) = open.pop() {
        if let Some(stage) = plan.stage(name)
            && stages.insert(stage.name.as_str())
        {
            open.extend(stage.producers().map(|(_, _, producer)| producer));
            let searched = stage.scope.iter().filter_map(|axis| plan.axis(axis)?.search());
            open.extend(searched.flat_map(|search| search.stages()));
        }
    }
    stages
}

/// The stages that a test selects from.
fn stages_of(test: &Test) -> impl Iterator<Item = &str> {
    test.parts().into_iter().flat_map(|part| part.selections().map(|select| select.stage.as_str()))
}

/// The parts of a test, however nested.
pub(crate) fn parts(test: &Test) -> Vec<&avow_model::claim::Part> {
    test.parts()
}

/// The stages whose attempts a registration covers: those that claims select from, and upstream of them those
/// that have a replicate axis, read results, or follow such a stage. What remains is preparation, which may be
/// older than the registration.
pub fn covered(plan: &Plan) -> BTreeSet<usize> {
    let all: Vec<_> = plan.claims.iter().flat_map(|claim| parts(&claim.test)).collect();
    let replicates: BTreeSet<&str> = all.iter().filter_map(|part| part.replicate.as_deref()).collect();
    let selected: BTreeSet<&str> = plan.claims.iter().flat_map(|claim| stages_of(&claim.test)).collect();
    let upstream: BTreeSet<&str> = plan.claims.iter().flat_map(|claim| rests_on(plan, claim)).collect();
    let mut covered: BTreeSet<usize> = BTreeSet::new();
    loop {
        let before = covered.len();
        for (index, stage) in
            plan.stages.iter().enumerate().filter(|(_, s)| upstream.contains(s.name.as_str()))
        {
            let repeated = stage.scope.iter().any(|axis| replicates.contains(axis.as_str()));
            let follows = stage.producers().any(|(_, input, name)| {
                let producer = plan.stage_index(name);
                producer.is_some_and(|i| covered.contains(&i)) || reads_results(plan, &input.from)
            });
            let searched = !avow_model::search::behind(plan, &stage.name).is_empty();
            let calibrates = stage.kind == Some(Kind::Calibrate) || searched;
            if selected.contains(stage.name.as_str()) || repeated || follows || calibrates {
                covered.insert(index);
            }
        }
        if covered.len() == before {
            return covered;
        }
    }
}

/// Whether an input is a measurement file or a holdout.
fn reads_results(plan: &Plan, from: &From) -> bool {
    let From::Output { stage, output, .. } = from else { return false };
    let Some(producer) = plan.stage(stage) else { return false };
    let holdout = producer.outputs.get(output).is_some_and(|o| o.holdout);
    holdout || producer.measurements.iter().any(|file| file.output == *output)
}
