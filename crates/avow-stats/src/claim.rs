//! A claim questions a fit: the law that turns two one-sided p-values into one decision p-value.
//!
//! | side | q |
//! |---|---|
//! | two (default) | min(1, 2·min(p_S, p_R)) |
//! | one | min(p_S, p_R) |
//! | equivalence | min(1, p_S, 2·p_R) |
//!
//! For a family of one, q ≤ α with p_S < p_R says the same as "the interval lies strictly inside the claim
//! region". Absent: families ([`crate::family`]) and verdicts ([`crate::decide()`]).

use crate::fit::Fit;
use crate::interval::Interval;
use crate::level::Level;
use crate::reach;
use crate::reference::Reference;
use crate::region::{Pair, Region};

/// How the two one-sided p-values are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Each direction at α/2: any wrong definite verdict has probability at most α.
    #[default]
    Two,
    /// Each direction at α.
    One,
}

/// What is claimed about one estimand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Claim region and opposite region.
    pub region: Region,
    /// One- or two-sided; an equivalence has its own law and ignores it.
    pub side: Side,
    /// The null value ν of the estimand: 0 for a difference, slope or trend; `None` for a level.
    pub null: Option<f64>,
    /// The smallest effect of interest, as a value of θ on the claim's side of its bound.
    pub smallest: Option<f64>,
    /// Whether θ is a ratio, whose bound b is mirrored as 1/b.
    pub multiplicative: bool,
}

/// Which law joins a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    Two,
    One,
    Equivalence,
}

impl Law {
    pub(crate) fn q(self, pair: Pair) -> f64 {
        match self {
            Law::Two => (2.0 * pair.support.min(pair.refute)).min(1.0),
            Law::One => pair.support.min(pair.refute).min(1.0),
            Law::Equivalence => pair.support.min(2.0 * pair.refute).min(1.0),
        }
    }
}

impl Claim {
    /// A two-sided claim with no null value and no smallest effect.
    pub fn new(region: Region) -> Claim {
        Claim { region, side: Side::Two, null: None, smallest: None, multiplicative: false }
    }

    /// The same claim about an estimand whose null value is `null`.
    #[must_use]
    pub fn with_null(self, null: f64) -> Claim {
        Claim { null: Some(null), ..self }
    }

    /// The same claim about a ratio, whose null value is 1.
    #[must_use]
    pub fn of_ratio(self) -> Claim {
        Claim { null: Some(1.0), multiplicative: true, ..self }
    }

    /// The same claim under `side`.
    #[must_use]
    pub fn with_side(self, side: Side) -> Claim {
        Claim { side, ..self }
    }

    pub(crate) fn law(&self) -> Law {
        match (self.region, self.side) {
            (Region::Equivalence { .. }, _) => Law::Equivalence,
            (_, Side::Two) => Law::Two,
            (_, Side::One) => Law::One,
        }
    }

    /// Whether q does not double p_S (an equivalence or `side: one`): its interval is 1 − 2α, and in a
    /// combination of only such parts the combination follows the equivalence law.
    pub fn one_sided(&self) -> bool {
        self.law() != Law::Two
    }

    /// The decision p-value of a pair.
    pub fn q(&self, pair: Pair) -> f64 {
        self.law().q(pair)
    }

    /// (p_S, p_R) of `fit`. Where all units are equal, q is to be 2^(1−n) under every law, so the p-values that
    /// the law does not double are doubled here.
    pub fn pair(&self, fit: &Fit) -> Pair {
        let pair = self.region.pair(fit);
        if !fit.is_point() {
            return pair;
        }
        let doubled = |p: f64| (2.0 * p).min(1.0);
        match self.law() {
            Law::Two => pair,
            Law::One => Pair { support: doubled(pair.support), refute: doubled(pair.refute) },
            Law::Equivalence => Pair { support: doubled(pair.support), ..pair },
        }
    }

    /// The error of the interval whose position decides Supported, in a family of `members`: α/m, or 2α/m for
    /// equivalence and `side: one`. An equivalence prints the α/m interval too.
    pub fn interval_error(&self, alpha: Level, members: u32) -> Level {
        let share = alpha.split(members);
        if self.one_sided() { share.doubled() } else { share }
    }

    /// Tests the claim on a fit.
    pub fn test(self, fit: Fit) -> Inference {
        let pair = self.pair(&fit);
        let q = self.q(pair);
        let mirror = self.null.and_then(|null| self.region.mirror(null, self.multiplicative));
        let reversal = mirror.and_then(|mirror| self.region.beyond(&fit, mirror)).map(|p| {
            let refute = if fit.is_point() && self.law() == Law::One { (2.0 * p).min(1.0) } else { p };
            self.q(Pair { support: 1.0, refute })
        });
        let reach = reach::smallest_q(&self, fit.method(), fit.sample(), fit.draws());
        let monte_carlo = fit.draws().map(|draws| MonteCarlo::of(draws, pair, q));
        Inference { claim: self, pair, q, reversal, reach, monte_carlo, fit }
    }
}

/// The randomness left in a Monte Carlo p-value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarlo {
    /// The number of draws.
    pub draws: u32,
    /// The standard error of q.
    pub error: f64,
}

impl MonteCarlo {
    /// √(p(1 − p)/B), the standard error of a p-value from `draws` draws.
    pub fn standard_error(p: f64, draws: u32) -> f64 {
        (p * (1.0 - p) / f64::from(draws)).sqrt()
    }

    fn of(draws: u32, pair: Pair, q: f64) -> MonteCarlo {
        // q is one or two times the p-value that decides; its error carries the same factor.
        let p = pair.support.min(pair.refute);
        let factor = if p > 0.0 { q / p } else { 1.0 };
        MonteCarlo { draws, error: factor * MonteCarlo::standard_error(p, draws) }
    }
}

/// The test of one claim on one fit: all that a verdict needs, before correction.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The claim.
    pub claim: Claim,
    /// The fit: estimate, intervals, method, units.
    pub fit: Fit,
    /// (p_S, p_R).
    pub pair: Pair,
    /// The decision p-value before correction.
    pub q: f64,
    /// The decision p-value of lying beyond the mirrored bound, where that is defined.
    pub reversal: Option<f64>,
    /// The smallest q that this method can give at this n.
    pub reach: f64,
    /// Draws and error, where the p-value is a Monte Carlo estimate.
    pub monte_carlo: Option<MonteCarlo>,
}

impl Inference {
    /// The interval at confidence 1 − `error`.
    pub fn interval(&self, error: Level) -> Interval {
        self.fit.interval(error)
    }

    /// How the estimate would be spread where the claim's bound is true, for claims with one bound.
    pub fn reference(&self) -> Option<Reference> {
        match self.claim.region {
            Region::Above { bound, .. } | Region::Below { bound, .. } => self.fit.reference(bound),
            Region::Between { .. } | Region::Equivalence { .. } => None,
        }
    }

    /// What the decision needs of this test.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            pair: self.pair,
            q: self.q,
            reversal: self.reversal,
            reach: self.reach,
            no_variation: self.fit.no_variation(),
        }
    }
}

/// The numbers a decision rests on, from one test or from a combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// (p_S, p_R).
    pub pair: Pair,
    /// The decision p-value before correction.
    pub q: f64,
    /// See [`Inference::reversal`].
    pub reversal: Option<f64>,
    /// See [`Inference::reach`].
    pub reach: f64,
    /// Whether all units were equal.
    pub no_variation: bool,
}
