//! Combinations of claims: `all`, `any`, k of m.
//!
//! With parts' p-values sorted, p_S(k) = min(1, (m − k + 1)·p_S,(k)) and p_R(k) = min(1, k·p_R,(m−k+1)): the
//! partial-conjunction test of Benjamini and Heller (2008) in its Bonferroni form, valid under any dependence.
//! `all` (k = m) needs no correction to be Supported and `any` (k = 1) none to be Refuted. A combination gives
//! a pair again, so combinations nest. It has no interval, so it is never Reversed.
//!
//! Absent: weights, and `count` of unit conditions, which is arithmetic and no test.

use crate::claim::{Evidence, Law};
use crate::decide::{Decision, decide};
use crate::family::Adjusted;
use crate::level::Level;
use crate::reason::{Inconclusive, Void};
use crate::region::Pair;

/// One part of a combination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// A tested part, with the pair of smallest p-values it could have given.
    Tested {
        /// (p_S, p_R).
        pair: Pair,
        /// The smallest p_S and p_R that its method can give.
        reach: Pair,
    },
    /// A part without p-values (`every`, `exact`): certain, either way.
    Certain(bool),
    /// A part without a number.
    Void(Void),
}

impl Part {
    fn pair(self) -> Pair {
        match self {
            Part::Tested { pair, .. } => pair,
            Part::Certain(supported) => Pair::certain(supported),
            Part::Void(_) => Pair::SILENT,
        }
    }

    fn reach(self) -> Pair {
        match self {
            Part::Tested { reach, .. } => reach,
            // A certain part has what it has; a Void one could have been anything.
            Part::Certain(supported) => Pair::certain(supported),
            Part::Void(_) => Pair { support: 0.0, refute: 0.0 },
        }
    }
}

/// A combination of parts, k wanted of m.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// (p_S, p_R) of the combination.
    pub pair: Pair,
    /// Its decision p-value.
    pub q: f64,
    /// The smallest pair its parts' methods can give, for nesting.
    pub reach_pair: Pair,
    /// The smallest q.
    pub reach: f64,
    /// The first Void part's reason, if any part is Void.
    pub void: Option<Void>,
    /// The smallest q that any value of the Void parts could have left.
    pub best_q: f64,
}

impl Combination {
    /// `wanted` of `parts`; `one_sided` when every part is an equivalence or `side: one`, which leaves p_S
    /// undoubled.
    ///
    /// No parts: [`Void::NoUnits`]. `wanted` is brought into 1 … m.
    pub fn new(parts: &[Part], wanted: usize, one_sided: bool) -> Result<Combination, Void> {
        if parts.is_empty() {
            return Err(Void::NoUnits);
        }
        let wanted = wanted.clamp(1, parts.len());
        let law = if one_sided { Law::Equivalence } else { Law::Two };
        let join = |pair_of: &dyn Fn(Part) -> Pair| join(parts.iter().map(|p| pair_of(*p)), wanted);
        let pair = join(&Part::pair);
        let reach_pair = join(&Part::reach);
        let filled = |supported: bool| {
            law.q(join(&|part| match part {
                Part::Void(_) => Pair::certain(supported),
                _ => part.pair(),
            }))
        };
        let void = parts.iter().find_map(|p| if let Part::Void(void) = p { Some(*void) } else { None });
        let best_q = filled(true).min(filled(false));
        Ok(Combination { pair, q: law.q(pair), reach: law.q(reach_pair), reach_pair, void, best_q })
    }

    /// All parts: the claim side is an intersection and needs no correction.
    pub fn all(parts: &[Part], one_sided: bool) -> Result<Combination, Void> {
        Combination::new(parts, parts.len(), one_sided)
    }

    /// At least one part.
    pub fn any(parts: &[Part], one_sided: bool) -> Result<Combination, Void> {
        Combination::new(parts, 1, one_sided)
    }

    /// This combination as a part of another.
    pub fn part(&self) -> Part {
        match self.void {
            // An undecided combination with a Void part passes its pair, which already counts it as silent.
            Some(void) if self.pair == Pair::SILENT => Part::Void(void),
            _ => Part::Tested { pair: self.pair, reach: self.reach_pair },
        }
    }

    /// What the decision needs.
    pub fn evidence(&self) -> Evidence {
        Evidence { pair: self.pair, q: self.q, reversal: None, reach: self.reach, no_variation: false }
    }

    /// Decides the combination. Undecided with a Void part, it is Void if no value of that part could have
    /// left it decided at α, and otherwise Inconclusive `void-part`.
    pub fn decide(&self, adjusted: &Adjusted, alpha: Level) -> Result<Decision, Void> {
        let decision = decide(&self.evidence(), adjusted, alpha);
        match self.void {
            Some(void) if !decision.is_definite() => {
                if alpha.admits(self.best_q) {
                    Ok(Decision::Inconclusive(Inconclusive::VoidPart))
                } else {
                    Err(void)
                }
            }
            _ => Ok(decision),
        }
    }
}

/// (p_S, p_R) of k wanted of the pairs.
fn join(pairs: impl Iterator<Item = Pair>, wanted: usize) -> Pair {
    let (mut support, mut refute): (Vec<f64>, Vec<f64>) = pairs.map(|p| (p.support, p.refute)).unzip();
    support.sort_unstable_by(f64::total_cmp);
    refute.sort_unstable_by(f64::total_cmp);
    let spare = support.len() - wanted;
    Pair {
        support: ((spare + 1) as f64 * support[wanted - 1]).min(1.0),
        refute: (wanted as f64 * refute[spare]).min(1.0),
    }
}
