//! From corrected p-values to a decision with one reason, and the qualifiers printed beside it.
//!
//! q̃ ≤ α and p_S < p_R: Supported. q̃ ≤ α and p_R < p_S: Refuted, or Reversed where the estimand also lies
//! beyond the mirrored bound at the same level. Otherwise Inconclusive. Absent: Void, which is no decision but
//! the error of an estimator ([`crate::reason::Void`]); and words for a person.

use crate::claim::{Claim, Evidence, Inference};
use crate::family::Adjusted;
use crate::interval::Interval;
use crate::level::Level;
use crate::reason::Inconclusive;
use crate::region::Region;

/// What a claim comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The data are in the claim region.
    Supported,
    /// The data are in the opposite region.
    Refuted,
    /// Refuted, and in the opposite direction beyond the mirrored bound.
    Reversed,
    /// Neither, for the reason given.
    Inconclusive(Inconclusive),
}

impl Decision {
    /// The decision as one word; the reason of an Inconclusive has its own.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Supported => "supported",
            Decision::Refuted => "refuted",
            Decision::Reversed => "reversed",
            Decision::Inconclusive(_) => "inconclusive",
        }
    }

    /// Whether the decision is not Inconclusive.
    pub fn is_definite(self) -> bool {
        !matches!(self, Decision::Inconclusive(_))
    }
}

/// Decides one member from its evidence and its place in the family, at family level `alpha`.
pub fn decide(evidence: &Evidence, adjusted: &Adjusted, alpha: Level) -> Decision {
    let pair = evidence.pair;
    if !alpha.admits(adjusted.q_tilde) || pair.support == pair.refute {
        return Decision::Inconclusive(reason(evidence, adjusted, alpha));
    }
    if pair.support < pair.refute {
        return Decision::Supported;
    }
    let step = adjusted.level(alpha);
    if evidence.reversal.is_some_and(|q| step.admits(q)) { Decision::Reversed } else { Decision::Refuted }
}

/// The one reason, most specific first: equal units, units that cannot reach α at all, a decision that the
/// correction took away, units that cannot reach this step's level, and otherwise the bound.
fn reason(evidence: &Evidence, adjusted: &Adjusted, alpha: Level) -> Inconclusive {
    if evidence.no_variation {
        Inconclusive::NoVariation
    } else if !alpha.admits(evidence.reach) {
        Inconclusive::NBelowReach
    } else if alpha.admits(evidence.q) && evidence.pair.support != evidence.pair.refute {
        Inconclusive::Correction
    } else if !adjusted.level(alpha).admits(evidence.reach) {
        Inconclusive::NBelowReach
    } else {
        Inconclusive::CrossesBound
    }
}

/// Decides by the position of a point alone (`judge: estimate`, `variation: none`): no p-value, no family.
/// A point on a bound is Inconclusive. `tie` is the margin under which it is on it.
pub fn by_position(claim: &Claim, estimate: f64, tie: f64) -> Decision {
    if claim.region.holds(estimate, tie) {
        return Decision::Supported;
    }
    if !claim.region.opposes(estimate, tie) {
        return Decision::Inconclusive(Inconclusive::CrossesBound);
    }
    let beyond =
        claim.null.and_then(|null| claim.region.mirror(null, claim.multiplicative)).is_some_and(|mirror| {
            match claim.region {
                Region::Above { .. } => estimate < mirror - tie,
                Region::Below { .. } => estimate > mirror + tie,
                Region::Between { .. } | Region::Equivalence { .. } => false,
            }
        });
    if beyond { Decision::Reversed } else { Decision::Refuted }
}

/// A remark that the verdict line carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Qualifier {
    /// Supported, but the interval is not beyond the smallest effect of interest.
    SmallestNotShown {
        /// The smallest effect of interest.
        smallest: f64,
    },
    /// Supported, but the interval is wholly short of the smallest effect of interest.
    BelowSmallest {
        /// The smallest effect of interest.
        smallest: f64,
    },
    /// Decided by a step of the correction while the simultaneous interval still contains a bound.
    IntervalContainsBound {
        /// The step at which the member was decided, from 1.
        step: u32,
        /// The members of the family.
        of: u32,
    },
    /// The Monte Carlo error could have changed which side of α q̃ is on.
    CloseToLevel {
        /// The standard error of q̃.
        error: f64,
    },
}

/// The qualifiers of a decided or undecided test, in the order they are printed.
pub fn qualify(test: &Inference, decision: Decision, adjusted: &Adjusted, alpha: Level) -> Vec<Qualifier> {
    let interval = test.interval(test.claim.interval_error(alpha, adjusted.members));
    let mut found = Vec::new();
    if decision == Decision::Supported {
        found.extend(test.claim.smallest.and_then(|m| size(test.claim.region, &interval, m)));
    }
    let point = test.fit.is_point();
    if decision.is_definite() && adjusted.members > 1 && !point && bound_inside(test, decision, &interval) {
        found.push(Qualifier::IntervalContainsBound { step: adjusted.step, of: adjusted.members });
    }
    if let Some(monte_carlo) = test.monte_carlo {
        let factor = if test.q > 0.0 { adjusted.q_tilde / test.q } else { 1.0 };
        let error = factor * monte_carlo.error;
        if (adjusted.q_tilde - alpha.to_f64()).abs() < 3.0 * error {
            found.push(Qualifier::CloseToLevel { error });
        }
    }
    found
}

/// Whether the interval contains the bound that was decided about.
fn bound_inside(test: &Inference, decision: Decision, interval: &Interval) -> bool {
    match test.claim.region {
        Region::Above { bound, refute } | Region::Below { bound, refute } => {
            interval.contains(if decision == Decision::Supported { bound } else { refute })
        }
        Region::Between { low, high } => two_bounds(decision, interval, low, high),
        Region::Equivalence { target, margin } => {
            // A Refuted equivalence is read off the α/m interval, not the 2α/m one passed here.
            let refuting = test.interval(if decision == Decision::Supported {
                interval.error
            } else {
                interval.error.split(2)
            });
            two_bounds(decision, &refuting, target - margin, target + margin)
        }
    }
}

fn two_bounds(decision: Decision, interval: &Interval, low: f64, high: f64) -> bool {
    if decision == Decision::Supported {
        interval.contains(low) || interval.contains(high)
    } else {
        !interval.below(low) && !interval.above(high)
    }
}

/// How the interval of a supported claim stands to the smallest effect of interest.
fn size(region: Region, interval: &Interval, smallest: f64) -> Option<Qualifier> {
    let (short, beyond) = match region {
        Region::Above { .. } => (interval.below(smallest), interval.above(smallest)),
        Region::Below { .. } => (interval.above(smallest), interval.below(smallest)),
        Region::Between { .. } | Region::Equivalence { .. } => return None,
    };
    match (short, beyond) {
        (true, _) => Some(Qualifier::BelowSmallest { smallest }),
        (false, false) => Some(Qualifier::SmallestNotShown { smallest }),
        (false, true) => None,
    }
}
