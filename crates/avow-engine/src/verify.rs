//! Which reused actions a run carries out again, and what that gave.
//!
//! The sample is not chosen by anybody: it is ranked over the first line of the run's journal (see
//! [`avow_model::journal::rank`]), so it cannot be known before the run has begun, and can be drawn again by whoever
//! has the journal. What a stage declares to be different each time is not drawn.

use std::collections::{BTreeMap, HashSet};

use avow_model::attempt::Attempt;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest, LineDigest};
use avow_model::expand::Member;
use avow_model::journal::{Hit, Sample, rank};
use avow_model::plan::{Determinism, Reuse, Stage};

/// What is to be verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Verify {
    /// The share of the reused actions, above 0 and at most 1.
    pub share: f64,
    /// Stages that cannot be executed now, with the reason.
    pub except: BTreeMap<String, String>,
}

/// What verifying gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verification {
    /// From how many distinct reused actions the sample was drawn.
    pub of: u64,
    /// How many were drawn.
    pub drawn: u64,
    /// Those that were carried out again, in the order in which they ended.
    pub results: Vec<Verified>,
    /// Those that were not, by label, with the reason.
    pub skipped: BTreeMap<String, String>,
    /// Reused members of stages that are not drawn, by stage, with the reason.
    pub excluded: BTreeMap<String, (u64, String)>,
}

/// An action that was carried out again.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The label of a member that has it.
    pub member: String,
    /// The attempt that stands for it.
    pub first: AttemptDigest,
    /// What that attempt wrote.
    pub outputs: BTreeMap<String, Artifact>,
    /// The attempt made to be compared.
    pub attempt: Attempt,
}

/// A reused action that may be drawn.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) member: Member,
    pub(crate) hit: Hit,
    pub(crate) outputs: BTreeMap<String, Artifact>,
}

/// The drawing of a sample while members are reused. It keeps no more candidates than can be drawn in the end.
pub(crate) struct Draw {
    verify: Verify,
    first: LineDigest,
    most: u64,
    seen: HashSet<ActionDigest>,
    ranked: BTreeMap<[u8; 32], Candidate>,
    excluded: BTreeMap<String, (u64, String)>,
}

impl Draw {
    /// Nothing yet; `members` is how many can be reused at most.
    pub(crate) fn new(verify: Verify, first: LineDigest, members: u64) -> Draw {
        let most = Sample::size(verify.share, members);
        let (seen, ranked, excluded) = (HashSet::new(), BTreeMap::new(), BTreeMap::new());
        Draw { verify, first, most, seen, ranked, excluded }
    }

    /// One more reused member. An attempt that `run` made itself was not reused from before.
    pub(crate) fn add(&mut self, stage: &Stage, member: Member, hit: &Hit, stands: &Attempt, run: &str) {
        if stands.run == run {
            return;
        }
        if let Some(reason) = self.excludes(stage) {
            self.excluded.entry(stage.name.clone()).or_insert((0, reason)).0 += 1;
            return;
        }
        if !self.seen.insert(hit.action) {
            return;
        }
        let outputs = stands.outputs.iter().map(|(name, made)| (name.clone(), made.artifact)).collect();
        let candidate = Candidate { member, hit: hit.clone(), outputs };
        self.ranked.insert(rank(self.first, hit.action), candidate);
        if self.ranked.len() as u64 > self.most {
            self.ranked.pop_last();
        }
    }

    fn excludes(&self, stage: &Stage) -> Option<String> {
        if stage.reuse == Reuse::Never {
            return Some("declares `reuse: never`".to_owned());
        }
        if stage.determinism == Determinism::Unrepeatable {
            return Some("declares that it is unrepeatable".to_owned());
        }
        self.verify.except.get(&stage.name).cloned()
    }

    /// The sample, with its candidates by rank.
    pub(crate) fn drawn(self) -> (Sample, Vec<Candidate>, BTreeMap<String, (u64, String)>) {
        let of = self.seen.len() as u64;
        let size = usize::try_from(Sample::size(self.verify.share, of)).unwrap_or(usize::MAX);
        let candidates: Vec<Candidate> = self.ranked.into_values().take(size).collect();
        let chosen = candidates.iter().map(|candidate| candidate.hit.action).collect();
        (Sample { share: self.verify.share, of, chosen }, candidates, self.excluded)
    }
}
