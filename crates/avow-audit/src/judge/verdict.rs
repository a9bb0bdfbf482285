//! What a claim came to, as a value that says everything behind it.
//!
//! Codes, numbers and digests only; the sentences are the tool's. Numbers that JSON lacks are written as the
//! words `NaN`, `Infinity`, `-Infinity`.

use std::collections::BTreeMap;
use std::sync::Arc;

use avow_model::claim::{Correction, Tier};
use avow_model::digest::RegistrationDigest;
use avow_model::value::Value;
use avow_stats as stats;
use serde::{Serialize, Serializer};

use super::reason::Reason;
use crate::measure::{Origin, table};
use crate::registration::Standing;

/// The verdict on one family member of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The claim.
    pub claim: String,
    /// The values of `per` that this member stands for.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "pairs")]
    pub member: Vec<(String, Value)>,
    /// The rule's word; `all` for a combination, `none` for a claim that nothing measures.
    pub rule: &'static str,
    /// The tier.
    pub tier: Tier,
    /// The verdict; absent for descriptive and exploratory claims, which have none.
    pub word: Option<Word>,
    /// Why it is Void or Inconclusive.
    pub reason: Option<Reason>,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The point estimate.
    #[serde(serialize_with = "maybe")]
    pub estimate: Option<f64>,
    /// The interval whose position decides, simultaneous over the family.
    pub interval: Option<Interval>,
    /// For an equivalence, the wider interval that refutes it.
    pub refuting_interval: Option<Interval>,
    /// The interval for this member alone.
    pub marginal_interval: Option<Interval>,
    /// The decision p-value.
    pub q: Option<f64>,
    /// The decision p-value corrected in its family, which decides.
    pub q_corrected: Option<f64>,
    /// The two one-sided p-values.
    pub p: Option<Pair>,
    /// The smallest q that the method can give at this n.
    pub smallest_q: Option<f64>,
    /// The word of the method.
    pub method: Option<&'static str>,
    /// The claim's level, as registered.
    pub alpha: String,
    /// Its place in the family.
    pub family: Family,
    /// Units planned, used and missing.
    pub units: Units,
    /// Draws and their error, where p is a Monte Carlo estimate.
    pub monte_carlo: Option<MonteCarlo>,
    /// Remarks that the line carries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qualifiers: Vec<Qualifier>,
    /// Parts of a combination, points of a curve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Piece>,
    /// What refuted it: parts, points or units.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refuted_by: Vec<Culprit>,
    /// Positions in the audit's list of deviations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<usize>,
    /// Members that it may rest on and whose attempts diverged: two successes of one action, different bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diverged: Vec<String>,
    /// Every file it rests on.
    pub evidence: Vec<Origin>,
    /// Whether the plan is the registered one.
    pub standing: Standing,
    /// The registered text for this verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
    /// What the claim does not speak about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_on: Option<String>,
    /// The test that it was read from, for what is drawn of it; no part of the record.
    #[serde(skip)]
    pub behind: Behind,
}

/// The test behind a verdict. Verdicts are compared by what they say, so two of these are always equal.
#[derive(Clone, Debug, Default)]
pub struct Behind(pub(super) Option<Arc<stats::Inference>>);

impl PartialEq for Behind {
    fn eq(&self, _: &Behind) -> bool {
        true
    }
}

impl Behind {
    /// How the estimate would be spread where the claim's bound is true. Computed at each call.
    pub fn reference(&self) -> Option<stats::Reference> {
        self.0.as_ref()?.reference()
    }
}

impl Verdict {
    /// Makes the claim void, because another registration disagrees about it.
    pub fn dispute(&mut self, rival: RegistrationDigest) {
        if self.word.is_some() {
            self.word = Some(Word::Void);
        }
        (self.reason, self.decided_by) = (Some(Reason::Disputed(rival)), DecidedBy::Nothing);
        self.means = None;
    }
}

impl Verdict {
    /// Takes out intervals that are the whole line: a test without an interval has none, and says nothing by it.
    pub(super) fn drop_unbounded(&mut self) {
        let bounded = |interval: &Interval| interval.low.is_finite() || interval.high.is_finite();
        self.refuting_interval = self.refuting_interval.filter(bounded);
        self.marginal_interval = self.marginal_interval.filter(bounded);
        if self.interval.is_some_and(|interval| !bounded(&interval)) {
            self.interval = None;
            self.qualifiers.retain(|qualifier| !matches!(qualifier, Qualifier::IntervalContainsBound { .. }));
        }
    }

    /// Whether an interval that there should be has an end that is no number.
    pub(super) fn has_no_interval(&self) -> bool {
        let all = [self.interval, self.refuting_interval, self.marginal_interval];
        all.into_iter().flatten().any(|interval| interval.low.is_nan() || interval.high.is_nan())
    }
}

/// The verdict's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The data are in the claim region.
    Supported,
    /// The data are in the opposite region.
    Refuted,
    /// Refuted, and in the opposite direction beyond the mirrored bound.
    Reversed,
    /// Neither.
    Inconclusive,
    /// The plan was not carried out, or a gate was unmet.
    Void,
}

/// What decided a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// The corrected p-value.
    Inference,
    /// The estimate alone (`judge: estimate`).
    Estimate,
    /// The position of a quantity registered as deterministic.
    Position,
    /// Every unit (`every`, `exact`): a statement about these units.
    Units,
    /// Nothing could.
    Nothing,
}

/// An interval with its confidence level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    #[serde(serialize_with = "table::number")]
    pub low: f64,
    /// Upper end.
    #[serde(serialize_with = "table::number")]
    pub high: f64,
    /// 1 − error.
    pub level: f64,
}

/// The two one-sided p-values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Small when the data support the claim.
    pub support: f64,
    /// Small when the data support the opposite.
    pub refute: f64,
}

/// A member's place in its family.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Family {
    /// The family's name; claims of different tiers never share one.
    pub name: String,
    /// How it is corrected, as registered.
    pub correct: Correction,
    /// How it was corrected, where that could not be done: one permutation of all members needs the same units in each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<Correction>,
    /// Its inferential members, Void ones included; 0 where this claim is outside families.
    pub members: u32,
    /// The step of the correction at which this member came up, from 1.
    pub step: u32,
    /// The level of that step.
    pub step_level: Option<f64>,
}

/// Units planned, used and missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Units {
    /// Units planned (pairs, where arms pair).
    pub planned: usize,
    /// Units used.
    pub used: usize,
    /// Clusters that they lie in and that are drawn as one, where the claim has clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
    /// By arm.
    pub arms: Vec<ArmUnits>,
}

/// What is missing in one arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArmUnits {
    /// Units planned.
    pub planned: usize,
    /// Units without a number.
    pub missing: usize,
    /// Units with a number that is not finite.
    pub non_finite: usize,
}

/// Randomness left in a p-value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MonteCarlo {
    /// Draws.
    pub draws: u32,
    /// Standard error of q.
    pub error: f64,
}

/// A remark beside a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Qualifier {
    /// Of two kinds of sampled units the claim is about, the one whose test decides.
    OverUnits {
        /// The dimension of these units.
        over: String,
    },
    /// Scores of forecasts beside their calibration error.
    Forecasts {
        /// Mean squared distance of forecast and outcome.
        brier: f64,
        /// Mean −ln of the probability given to what happened.
        #[serde(serialize_with = "table::number")]
        log_score: f64,
    },
    /// Supported, but not shown to reach the smallest effect of interest.
    SmallestNotShown {
        /// That effect.
        smallest: f64,
    },
    /// Supported, but below the smallest effect of interest.
    BelowSmallest {
        /// That effect.
        smallest: f64,
    },
    /// Decided by a step of the correction; the simultaneous interval still contains the bound.
    IntervalContainsBound {
        /// The step.
        step: u32,
        /// Of how many.
        of: u32,
    },
    /// q̃ is within three Monte Carlo errors of the level.
    CloseToLevel {
        /// The standard error of q̃.
        error: f64,
    },
    /// A log-log slope: the quadratic term beside the line.
    Curvature {
        /// Its t.
        t: f64,
        /// Its two-sided p.
        p: f64,
    },
    /// An equivalence at n < 20: its size is not nominal for skewed values.
    EquivalenceAtFewUnits {
        /// The units.
        units: usize,
    },
    /// A statement about these units; the exact lower end for the share of future units that pass.
    TheseUnits {
        /// The units.
        units: usize,
        /// The lower end at the claim's level.
        share: f64,
    },
    /// Compared values of an `exact` claim.
    Compared {
        /// How many pairs.
        values: usize,
        /// How many differ.
        unequal: usize,
        /// The largest deviation; absent where bytes were compared.
        #[serde(serialize_with = "maybe")]
        largest: Option<f64>,
    },
    /// Values at which watching ended are among those used.
    Censored {
        /// How many, over all arms.
        units: usize,
        /// The common budget; absent where budgets may differ.
        #[serde(skip_serializing_if = "Option::is_none")]
        budget: Option<f64>,
    },
    /// The arms were proved to rest on the same, but for what is named.
    Matched {
        /// The stage from which upwards they are equal.
        of: String,
        /// What may differ.
        except: Vec<String>,
        /// How many pairs of members of the stage were compared.
        pairs: usize,
    },
    /// How much the measurement varies where nothing was changed, by repeated attempts.
    Noise {
        /// The standard deviation of repetitions.
        sd: f64,
        /// The ends of its 95 % interval, which assumes normal values.
        low: f64,
        /// The upper end.
        #[serde(serialize_with = "table::number")]
        high: f64,
        /// Repetitions beyond the first of each group.
        repetitions: usize,
        /// The claimed effect: the difference, or the distance of a level from its bound.
        effect: f64,
        /// Whether the effect is smaller than the standard deviation.
        below: bool,
    },
}

/// One part of a combination, or one point of a curve, decided by itself at the claim's level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Piece {
    /// The rule's word; `point` for a point of a curve, `all` for a combination.
    pub rule: &'static str,
    /// The values of `per`, or the level along the curve.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "pairs")]
    pub at: Vec<(String, Value)>,
    /// What it would be alone.
    pub word: Word,
    /// Why it is Void or Inconclusive.
    pub reason: Option<Reason>,
    /// The estimate.
    #[serde(serialize_with = "maybe")]
    pub estimate: Option<f64>,
    /// What a curve's formula says here.
    #[serde(serialize_with = "maybe")]
    pub expected: Option<f64>,
    /// The half-width allowed about it.
    #[serde(serialize_with = "maybe")]
    pub margin: Option<f64>,
    /// The interval; simultaneous over the points of a curve, otherwise for the part alone.
    pub interval: Option<Interval>,
    /// The two one-sided p-values.
    pub p: Option<Pair>,
    /// The word of the method.
    pub method: Option<&'static str>,
    /// Units.
    pub units: Units,
    /// Its own parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Piece>,
}

/// What refuted a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// The position of the part, outermost first; empty where the claim is no combination.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub part: Vec<usize>,
    /// Where: values of `per`, the level along the rule's dimension, the unit.
    #[serde(serialize_with = "pairs")]
    pub at: Vec<(String, Value)>,
    /// What was found.
    #[serde(serialize_with = "maybe")]
    pub found: Option<f64>,
    /// What was expected, where that is one number.
    #[serde(serialize_with = "maybe")]
    pub expected: Option<f64>,
    /// How far it might have been.
    #[serde(serialize_with = "maybe")]
    pub margin: Option<f64>,
}

impl Word {
    /// The word in lower case, as in `means:`.
    pub fn word(self) -> &'static str {
        match self {
            Word::Supported => "supported",
            Word::Refuted => "refuted",
            Word::Reversed => "reversed",
            Word::Inconclusive => "inconclusive",
            Word::Void => "void",
        }
    }

    /// The word of a decision, with its reason.
    pub(super) fn of(decision: stats::Decision) -> (Word, Option<Reason>) {
        match decision {
            stats::Decision::Supported => (Word::Supported, None),
            stats::Decision::Refuted => (Word::Refuted, None),
            stats::Decision::Reversed => (Word::Reversed, None),
            stats::Decision::Inconclusive(why) => (Word::Inconclusive, Some(Reason::Inconclusive(why))),
        }
    }

    /// Whether the claim was refuted in either way.
    pub fn is_against(self) -> bool {
        matches!(self, Word::Refuted | Word::Reversed)
    }
}

impl DecidedBy {
    /// The code of what decided.
    pub fn word(self) -> &'static str {
        match self {
            DecidedBy::Inference => "inference",
            DecidedBy::Estimate => "estimate",
            DecidedBy::Position => "position",
            DecidedBy::Units => "units",
            DecidedBy::Nothing => "nothing",
        }
    }
}

impl Qualifier {
    /// The code of the remark.
    pub fn word(&self) -> &'static str {
        match self {
            Qualifier::SmallestNotShown { .. } => "smallest-not-shown",
            Qualifier::BelowSmallest { .. } => "below-smallest",
            Qualifier::IntervalContainsBound { .. } => "interval-contains-bound",
            Qualifier::CloseToLevel { .. } => "close-to-level",
            Qualifier::Curvature { .. } => "curvature",
            Qualifier::EquivalenceAtFewUnits { .. } => "equivalence-at-few-units",
            Qualifier::TheseUnits { .. } => "these-units",
            Qualifier::Compared { .. } => "compared",
            Qualifier::Censored { .. } => "censored",
            Qualifier::Matched { .. } => "matched",
            Qualifier::OverUnits { .. } => "over-units",
            Qualifier::Forecasts { .. } => "forecasts",
            Qualifier::Noise { below: true, .. } => "below-noise",
            Qualifier::Noise { .. } => "noise",
        }
    }
}

impl From<stats::Interval> for Interval {
    fn from(interval: stats::Interval) -> Interval {
        Interval { low: interval.low, high: interval.high, level: interval.confidence() }
    }
}

impl From<stats::Pair> for Pair {
    fn from(pair: stats::Pair) -> Pair {
        Pair { support: pair.support, refute: pair.refute }
    }
}

impl From<stats::Qualifier> for Qualifier {
    fn from(qualifier: stats::Qualifier) -> Qualifier {
        match qualifier {
            stats::Qualifier::SmallestNotShown { smallest } => Qualifier::SmallestNotShown { smallest },
            stats::Qualifier::BelowSmallest { smallest } => Qualifier::BelowSmallest { smallest },
            stats::Qualifier::IntervalContainsBound { step, of } => {
                Qualifier::IntervalContainsBound { step, of }
            }
            stats::Qualifier::CloseToLevel { error } => Qualifier::CloseToLevel { error },
        }
    }
}

fn pairs<S: Serializer>(pairs: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    pairs.iter().map(|(name, value)| (name, value)).collect::<BTreeMap<_, _>>().serialize(serializer)
}

fn maybe<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => table::number(value, serializer),
        None => serializer.serialize_none(),
    }
}
