//! Which attempt stands for each member of a plan.
//!
//! Stages are walked in topological order. Each member is bound to its action from the outputs of the attempts
//! that stand for its producers, and the action's trace is looked up. The first success under the registration
//! stands; failing that, the first success at all, which is then older than the registration. One that was seen to
//! read what has changed since stands only where no other does, and then the latest of them: so the engine sees
//! it, which makes such a member again. Every other
//! attempt is kept beside it: failures are counted, a second success with other outputs is a divergence.
//!
//! Nothing is taken from a run's own account of what it did: a member has a result iff its action, computed
//! anew from the plan, has an attempt. Absent: blobs, but for asking whether the promised ones are there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use avow_model::attempt::{Attempt, Outcome, Timestamp};
use avow_model::bind::{BindError, bind};
use avow_model::canonical::Record;
use avow_model::claim::Tier;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest, BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::expand::{self, Member};
use avow_model::ledger::Ledger;
use avow_model::ledger::invalid::Invalids;
use avow_model::plan::{Keep, Plan};
use avow_store::{Recorded, meter};
use serde::Serialize;

use crate::finding::Finding;
use crate::registration::{Registration, Standing};
use crate::source::{AuditError, Source};

/// Everything that exists for a plan.
#[derive(Debug)]
pub struct Evidence<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// Its digest; where an earlier encoding registered it, the digest it had there.
    pub digest: PlanDigest,
    /// The registration in force, whether of this plan or another.
    pub registration: Option<Registration>,
    /// Members by stage, as the plan lists stages, each in the order of its cells.
    pub stages: Vec<Vec<MemberEvidence>>,
    /// What does not verify.
    pub findings: Vec<Finding>,
}

/// What exists for one member.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberEvidence {
    /// The member.
    pub member: Member,
    /// Its action; `None` where inputs are missing.
    pub action: Option<ActionDigest>,
    /// How it stands.
    pub fate: Fate,
    /// Every sound attempt at its action, in order.
    pub attempts: Vec<Tried>,
}

/// How a member stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// An attempt stands for it.
    Stands(Stands),
    /// The program failed, and no attempt succeeded.
    Failed {
        /// The last attempt that failed by the program's doing.
        attempt: AttemptDigest,
        /// How.
        outcome: Outcome,
        /// Whether that is the member's outcome under a registered plan: a failure from before the registration
        /// is not, because a run tries it again.
        counts: bool,
    },
    /// It was tried, and cancelled or lost each time.
    Unfinished {
        /// The last attempt.
        attempt: AttemptDigest,
        /// How it ended.
        outcome: Outcome,
    },
    /// It succeeded, and every success was declared wrong since.
    Invalidated {
        /// The last of them.
        attempt: AttemptDigest,
    },
    /// Nobody tried.
    NotRun,
    /// Its inputs do not exist.
    Blocked {
        /// Their names.
        inputs: Vec<String>,
        /// Whether they never will under this plan: a producer failed for good.
        forever: bool,
    },
    /// It cannot be bound at all.
    Unbound {
        /// Why.
        reason: String,
    },
}

/// The attempt that stands for a member.
#[derive(Clone, Debug, PartialEq)]
pub struct Stands {
    /// The attempt.
    pub attempt: AttemptDigest,
    /// What it wrote.
    pub outputs: BTreeMap<String, Artifact>,
    /// Whether it was started under the registration; true where there is none.
    pub covered: bool,
}

/// One attempt, in short.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The attempt.
    pub attempt: AttemptDigest,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it was declared wrong since.
    pub invalid: bool,
    /// Whether it was started under the registration; true where there is none.
    pub covered: bool,
    /// The ledger's heads at its start.
    pub heads: Vec<RegistrationDigest>,
    /// What it wrote.
    pub outputs: BTreeMap<String, Artifact>,
    /// When it was started, by its own clock.
    pub started: Timestamp,
    /// Whether it was made only to be compared: then it stands for nothing and is no trying again.
    pub verification: bool,
    /// What it was seen to read that nobody declared, by path.
    pub undeclared: BTreeMap<String, BlobDigest>,
}

/// How far a plan has been carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// Members with a final outcome.
    pub done: u64,
    /// Members without one.
    pub open: u64,
}

impl Completeness {
    /// Whether every member has a final outcome.
    pub fn is_complete(&self) -> bool {
        self.open == 0
    }
}

impl MemberEvidence {
    /// The successes that wrote other bytes than the one that stands, in order.
    pub fn diverged(&self) -> impl Iterator<Item = &Tried> {
        let stands = match &self.fate {
            Fate::Stands(stands) => Some(stands),
            _ => None,
        };
        let differs = move |tried: &&Tried| {
            stands.is_some_and(|s| s.attempt != tried.attempt && s.outputs != tried.outputs)
        };
        self.attempts.iter().filter(|tried| tried.outcome.succeeded()).filter(differs)
    }
}

impl Fate {
    /// The code of the fate.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Stands(_) => "stands",
            Fate::Failed { .. } => "failed",
            Fate::Unfinished { .. } => "unfinished",
            Fate::Invalidated { .. } => "invalidated",
            Fate::NotRun => "not-run",
            Fate::Blocked { .. } => "blocked",
            Fate::Unbound { .. } => "unbound",
        }
    }

    /// Whether nothing more can come of the member: it succeeded, its program failed, or a producer's did.
    /// Cancelled and lost attempts are not final, so nobody completes a plan by killing members.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Fate::Stands(_) | Fate::Failed { counts: true, .. } | Fate::Blocked { forever: true, .. }
        )
    }
}

/// Visits every member of a plan, stage by stage in topological order; only the outputs of standing attempts
/// are kept between stages. Returns what does not verify. `ledger` is the experiment's, empty where it has none.
pub fn walk(
    plan: &Plan,
    source: Source<'_>,
    ledger: &Ledger,
    registration: Option<&Registration>,
    visit: &mut dyn FnMut(MemberEvidence),
) -> Result<Vec<Finding>, AuditError> {
    let (made, findings) = (HashMap::new(), BTreeSet::new());
    let registered = registration.is_some_and(|r| plan.is_named(r.plan));
    let invalid = ledger.invalids();
    let mut walker = Walker { plan, source, ledger, registration, registered, invalid, made, findings };
    for stage in topological(plan)? {
        for member in expand::members(plan, stage) {
            meter::members(1);
            let evidence = walker.member(member)?;
            visit(evidence);
        }
    }
    Ok(walker.findings.into_iter().collect())
}

/// The positions of a plan's stages, producers first, otherwise as listed.
pub fn topological(plan: &Plan) -> Result<Vec<usize>, AuditError> {
    let mut waits = vec![0usize; plan.stages.len()];
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); plan.stages.len()];
    for (index, stage) in plan.stages.iter().enumerate() {
        for producer in stage.producers().filter_map(|(_, _, name)| plan.stage_index(name)) {
            waits[index] += 1;
            consumers[producer].push(index);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..waits.len()).filter(|index| waits[*index] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(plan.stages.len());
    while let Some(Reverse(next)) = ready.pop() {
        order.push(next);
        for consumer in &consumers[next] {
            waits[*consumer] -= 1;
            if waits[*consumer] == 0 {
                ready.push(Reverse(*consumer));
            }
        }
    }
    if order.len() < plan.stages.len() { Err(AuditError::Cycle) } else { Ok(order) }
}

impl<'p> Evidence<'p> {
    /// Gathers everything for a plan; `ledger` is the experiment's, empty where it has none.
    pub fn gather(plan: &'p Plan, source: Source<'_>, ledger: &Ledger) -> Result<Evidence<'p>, AuditError> {
        let (registration, mut findings) = Registration::latest(ledger);
        let mut stages = vec![Vec::new(); plan.stages.len()];
        let mut keep = |evidence: MemberEvidence| stages[evidence.member.stage as usize].push(evidence);
        findings.extend(walk(plan, source, ledger, registration.as_ref(), &mut keep)?);
        // A registration names its plan as the encoding of its time did.
        let registered = registration.as_ref().map(|r| r.plan).filter(|name| plan.is_named(*name));
        let digest = registered.unwrap_or_else(|| plan.digest());
        Ok(Evidence { plan, digest, registration, stages, findings })
    }

    /// What exists for a member.
    pub fn member(&self, member: Member) -> Option<&MemberEvidence> {
        let stage = self.stages.get(member.stage as usize)?;
        stage.binary_search_by_key(&member.cell, |e| e.member.cell).ok().map(|i| &stage[i])
    }

    /// Every member, stage by stage as listed.
    pub fn members(&self) -> impl Iterator<Item = &MemberEvidence> {
        self.stages.iter().flatten()
    }

    /// Confirmatory iff the plan is exactly the registered one.
    pub fn standing(&self) -> Standing {
        Registration::standing(self.registration.as_ref(), self.digest)
    }

    /// How far the plan has been carried out.
    pub fn completeness(&self) -> Completeness {
        let done = self.members().filter(|e| e.fate.is_final()).count() as u64;
        // A search that is not over will still ask for members.
        let searching =
            avow_model::search::searches(self.plan).filter(|(_, s)| !s.state.is_over()).count() as u64;
        Completeness { done, open: self.members().count() as u64 - done + searching }
    }

    /// Whether values must stay hidden: the plan is registered and not complete. A plan all of whose deciding claims
    /// are sequential may be looked at at any time, which is what its level pays for.
    pub fn hidden(&self) -> bool {
        self.hides() && !self.completeness().is_complete()
    }

    /// Whether values of this plan are hidden until it is complete: it is the registered one, and was not made to be looked
    /// at meanwhile.
    pub fn hides(&self) -> bool {
        let mut deciding =
            self.plan.claims.iter().filter(|c| matches!(c.tier, Tier::Primary | Tier::Secondary)).peekable();
        let looks = deciding.peek().is_some() && deciding.all(|claim| claim.sequential);
        !looks && self.registration.as_ref().is_some_and(|r| r.plan == self.digest)
    }

    /// The label of a member, e.g. `train[seed=3]`.
    pub fn label(&self, member: Member) -> String {
        expand::label(self.plan, member)
    }
}

struct Walker<'a> {
    plan: &'a Plan,
    source: Source<'a>,
    ledger: &'a Ledger,
    registration: Option<&'a Registration>,
    /// Whether the registration is of this plan.
    registered: bool,
    /// What is declared wrong, and stands for nothing.
    invalid: Invalids,
    /// What stands for the members walked so far; `Err` says whether that is final.
    made: HashMap<Member, Result<BTreeMap<String, Artifact>, bool>>,
    findings: BTreeSet<Finding>,
}

impl Walker<'_> {
    fn member(&mut self, member: Member) -> Result<MemberEvidence, AuditError> {
        let evidence = self.look(member)?;
        let made = match &evidence.fate {
            Fate::Stands(stands) => Ok(stands.outputs.clone()),
            other => Err(other.is_final()),
        };
        self.made.insert(member, made);
        Ok(evidence)
    }

    fn look(&mut self, member: Member) -> Result<MemberEvidence, AuditError> {
        let without = |fate| Ok(MemberEvidence { member, action: None, fate, attempts: Vec::new() });
        if let Some(blocked) = self.blocked(member) {
            return without(blocked);
        }
        let made = |producer: Member, output: &str| {
            self.made.get(&producer).and_then(|made| made.as_ref().ok()?.get(output).copied())
        };
        let action = match bind(self.plan, member, &made) {
            Ok(bound) => bound.action,
            Err(BindError::NotMade(input)) => {
                return without(Fate::Blocked { inputs: vec![input], forever: false });
            }
            Err(error) => return without(Fate::Unbound { reason: error.to_string() }),
        };
        let digest = action.digest();
        let (attempts, findings) = self.source.attempts(&action, digest)?;
        self.findings.extend(findings);
        let fate = self.fate(member, &attempts)?;
        let attempts = attempts.iter().map(|(digest, recorded)| self.tried(*digest, recorded));
        let attempts = attempts.collect::<Result<Vec<_>, _>>()?;
        Ok(MemberEvidence { member, action: Some(digest), fate, attempts })
    }

    /// The inputs whose producers have made nothing, if any.
    fn blocked(&self, member: Member) -> Option<Fate> {
        let cell = expand::cell(self.plan, member);
        let (mut inputs, mut forever) = (Vec::new(), false);
        for (name, input, _) in self.plan.stages[member.stage as usize].producers() {
            let producers = expand::producers(&cell, &input.from).unwrap_or_default();
            let unmade = |p: &Member| match self.made.get(p) {
                Some(Ok(_)) => None,
                Some(Err(is_final)) => Some(*is_final),
                None => Some(false),
            };
            let unmade: Vec<bool> = producers.iter().filter_map(unmade).collect();
            if !unmade.is_empty() {
                inputs.push(name.to_owned());
                forever |= unmade.into_iter().any(|is_final| is_final);
            }
        }
        (!inputs.is_empty()).then_some(Fate::Blocked { inputs, forever })
    }

    fn tried(&mut self, digest: AttemptDigest, recorded: &Recorded) -> Result<Tried, AuditError> {
        let attempt = &recorded.attempt;
        // Attempts of other experiments cite the heads of other ledgers.
        if recorded.experiment == self.plan.experiment {
            let unknown = attempt.ledger_heads.iter().filter(|head| self.ledger.entry(**head).is_none());
            let cited = |head| Finding::MissingHead { head, cited_by: digest.to_string() };
            self.findings.extend(unknown.copied().map(cited));
        }
        Ok(Tried {
            attempt: digest,
            outcome: attempt.outcome.clone(),
            invalid: self.invalid.of(digest, attempt).is_some(),
            covered: self.registration.is_none_or(|r| r.covers(attempt)),
            heads: attempt.ledger_heads.clone(),
            outputs: artifacts(attempt),
            started: attempt.started,
            verification: attempt.verification,
            undeclared: self.source.undeclared(attempt)?,
        })
    }

    fn fate(&mut self, member: Member, attempts: &[(AttemptDigest, Recorded)]) -> Result<Fate, AuditError> {
        if let Some(stands) = self.stands(member, attempts)? {
            return Ok(Fate::Stands(stands));
        }
        let counts =
            |r: &Recorded| !self.registered || self.registration.is_none_or(|x| x.covers(&r.attempt));
        let own = || attempts.iter().rev().filter(|(_, r)| !r.attempt.verification);
        let failed = |r: &Recorded| r.attempt.outcome.is_final() && !r.attempt.outcome.succeeded();
        let by_program = || own().filter(|(_, r)| failed(r));
        if let Some((digest, recorded)) =
            by_program().find(|(_, r)| counts(r)).or_else(|| by_program().next())
        {
            let (attempt, outcome) = (*digest, recorded.attempt.outcome.clone());
            return Ok(Fate::Failed { attempt, outcome, counts: counts(recorded) });
        }
        Ok(match own().next() {
            Some((digest, Recorded { attempt, .. })) if attempt.outcome.succeeded() => {
                Fate::Invalidated { attempt: *digest }
            }
            Some((digest, Recorded { attempt, .. })) => {
                Fate::Unfinished { attempt: *digest, outcome: attempt.outcome.clone() }
            }
            None => Fate::NotRun,
        })
    }

    /// The first success under the registration, else the first success. Where nothing is registered, one whose
    /// promised blobs are gone stands only where no other does. Under a registration it stands all the same, and
    /// the loss is a finding: otherwise deleting a blob would draw the number again. What was made only to be
    /// compared never stands, whatever became of the others.
    fn stands(
        &mut self,
        member: Member,
        attempts: &[(AttemptDigest, Recorded)],
    ) -> Result<Option<Stands>, AuditError> {
        let mut best: Option<([bool; 3], AttemptDigest, &Attempt)> = None;
        for (digest, Recorded { attempt, .. }) in
            attempts.iter().filter(|(_, r)| r.attempt.outcome.succeeded() && !r.attempt.verification)
        {
            if self.invalid.of(*digest, attempt).is_some() {
                continue;
            }
            let whole = self.is_whole(member, attempt)?;
            let covered = self.registration.is_none_or(|r| r.covers(attempt));
            let counts = self.registration.is_some() || whole;
            let holds = self.source.reads_hold(attempt)?;
            let rank = [covered, counts, holds];
            if best.is_none_or(|(best, ..)| rank > best || rank == best && !holds) {
                best = Some((rank, *digest, attempt));
            }
        }
        let stands = |([covered, ..], attempt, record): ([bool; 3], _, _)| Stands {
            attempt,
            outputs: artifacts(record),
            covered,
        };
        Ok(best.map(stands))
    }

    fn is_whole(&mut self, member: Member, attempt: &Attempt) -> Result<bool, AuditError> {
        let stage = &self.plan.stages[member.stage as usize];
        let mut whole = true;
        for (name, produced) in &attempt.outputs {
            let kept = stage.outputs.get(name).is_none_or(|o| o.keep == Keep::Content);
            let used = || format!("{}.{name}", expand::label(self.plan, member));
            if kept && let Err(finding) = self.source.has(produced.artifact, used)? {
                whole = false;
                self.findings.insert(finding);
            }
        }
        Ok(whole)
    }
}

fn artifacts(attempt: &Attempt) -> BTreeMap<String, Artifact> {
    attempt.outputs.iter().map(|(name, produced)| (name.clone(), produced.artifact)).collect()
}
