//! Reach: the smallest p-value that a method can give at a number of units, before any data.
//!
//! What `check` prints at registration. An exact method over few units cannot reach a small level whatever the
//! data say, and a plan that cannot be decided should be known before it is run. Absent: power, which needs an
//! effect ([`crate::power`]).

use crate::claim::{Claim, Inference};
use crate::fit::EXACT_SIGNS;
use crate::level::Level;
use crate::method::{Method, Sample};
use crate::proportion::{self, Arm, Pairs};
use crate::region::{Pair, Region};
use crate::rng::Draws;
use crate::special::{binomial, student};

/// The smallest q that `method` can give for `claim`; `draws` as the fit reports them (`None` if exact).
pub fn smallest_q(claim: &Claim, method: Method, sample: Sample, draws: Option<u32>) -> f64 {
    if method == Method::ClopperPearson {
        return share_reach(claim, sample.total() as u64);
    }
    claim.q(two_shares_pair(claim, method, sample).unwrap_or_else(|| smallest_pair(method, sample, draws)))
}

/// Smallest tails of a difference of two shares against another bound than 0, where an interval is inverted instead of an
/// exact test: over tables from "only the first succeeds" to "only the second does".
fn two_shares_pair(claim: &Claim, method: Method, sample: Sample) -> Option<Pair> {
    if claim.region.ends() == [0.0, 0.0] {
        return None;
    }
    // Enough to come as near to the best table as a warning needs.
    const TABLES: u64 = 200;
    let fit = |share: u64| -> Option<crate::fit::Fit> {
        let part = |n: usize| (n as u64 * share).div_ceil(TABLES).min(n as u64);
        match (method, sample) {
            (Method::McNemar, Sample::One(n)) => {
                let (only_first, n) = (part(n), n as u64);
                let pairs = Pairs { both: 0, only_first, only_second: n - only_first, neither: 0 };
                proportion::paired(pairs, true).ok()
            }
            (Method::Newcombe, Sample::Two(n, m)) => {
                let first = Arm { successes: part(n), trials: n as u64 };
                let second = Arm { successes: m as u64 - part(m), trials: m as u64 };
                proportion::two_arms(first, second, true).ok()
            }
            _ => None,
        }
    };
    let pairs = (0..=TABLES).filter_map(|share| Some(claim.region.pair(&fit(share)?)));
    pairs.reduce(|a, b| Pair { support: a.support.min(b.support), refute: a.refute.min(b.refute) })
}

/// The smallest p_S and p_R, each at its own best data, of a method other than the exact share.
fn smallest_pair(method: Method, sample: Sample, draws: Option<u32>) -> Pair {
    let n = sample.total();
    let ways = match sample {
        Sample::Two(first, second) => crate::difference::relabellings(first, second),
        Sample::One(_) => 1.0,
    };
    let tail = match (method, draws) {
        (Method::SignFlip | Method::Permutation | Method::CorrelationPermutation, Some(draws)) => {
            1.0 / (f64::from(draws) + 1.0)
        }
        (
            Method::Percentile | Method::Bca | Method::BootstrapT | Method::WorstGroup | Method::Consistency,
            draws,
        ) => 1.0 / (f64::from(draws.unwrap_or(Draws::REFITTED)) + 1.0),
        (Method::SignFlip | Method::OrderStatistics | Method::Wilcoxon | Method::McNemar, _) => {
            crate::units::equal_signs(n)
        }
        (Method::Permutation | Method::MannWhitney | Method::Newcombe, _) => 1.0 / ways,
        (Method::CorrelationPermutation, _) => (1..=n).map(|i| 1.0 / i as f64).product(),
        _ => 0.0,
    };
    Pair { support: tail, refute: tail }
}

/// The smallest p_S and p_R of a test's method, for a combination of tests.
pub fn smallest_pair_of(test: &Inference) -> Pair {
    if test.fit.method() == Method::ClopperPearson {
        return share_pair(&test.claim, test.fit.sample().total() as u64);
    }
    two_shares_pair(&test.claim, test.fit.method(), test.fit.sample())
        .unwrap_or_else(|| smallest_pair(test.fit.method(), test.fit.sample(), test.fit.draws()))
}

fn share_reach(claim: &Claim, trials: u64) -> f64 {
    claim.q(share_pair(claim, trials))
}

/// Smallest tails over the number of successes. Both sides of a one-bounded region are smallest at no or only
/// successes; between two bounds p_S is smallest where its two tails cross.
fn share_pair(claim: &Claim, trials: u64) -> Pair {
    let at = |k: u64| claim.region.pair(&crate::fit::Fit::share(k, trials));
    let (none, all) = (at(0), at(trials));
    let refute = none.refute.min(all.refute);
    match claim.region {
        Region::Above { .. } | Region::Below { .. } => {
            Pair { support: none.support.min(all.support), refute }
        }
        Region::Between { .. } | Region::Equivalence { .. } => {
            let [low, high] = claim.region.ends();
            // P(X ≥ k; low) falls with k and P(X ≤ k; high) rises: find the first k where the second is larger.
            let rising = |k: u64| binomial::at_most(k, trials, high) >= binomial::at_least(k, trials, low);
            let (mut before, mut from) = (0, trials);
            while from - before > 1 {
                let middle = before + (from - before) / 2;
                if rising(middle) { from = middle } else { before = middle }
            }
            let support = at(before).support.min(at(from).support);
            Pair { support, refute }
        }
    }
}

/// What is planned for one claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// The claim.
    pub claim: Claim,
    /// The resolved method.
    pub method: Method,
    /// Planned units.
    pub sample: Sample,
    /// Registered inferential members of its family, m.
    pub members: u32,
    /// The family's level.
    pub alpha: Level,
    /// A standard deviation from a pilot, if there is one.
    pub pilot_sd: Option<f64>,
}

/// What `check` prints about the reach of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The smallest q.
    pub smallest_q: f64,
    /// α/m, the level of the first step.
    pub first_level: Level,
    /// Whether the smallest q is at or below that level.
    pub reachable: bool,
    /// Everything else worth a warning.
    pub warnings: Vec<Warning>,
}

impl Reach {
    /// Whether the claim cannot be decided as planned.
    pub fn is_undecidable(&self) -> bool {
        !self.reachable || self.warnings.iter().any(|w| w.is_undecidable())
    }
}

/// A warning at registration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning {
    /// Fewer units than the method is defined for or, for an exact method, than can reach the first level.
    BelowMinimumN {
        /// The planned units of the smaller arm.
        planned: usize,
        /// The least that would do.
        least: usize,
        /// Of the methods that exist for this kind of data, one that would work at the planned n.
        instead: Option<Method>,
    },
    /// t over fewer than five units: valid only if the values are close to normal.
    FewUnits {
        /// The planned units of the smaller arm.
        planned: usize,
    },
    /// The region is narrower than the interval can be at the pilot's standard deviation.
    RegionTooNarrow {
        /// The half-width of the region.
        half_width: f64,
        /// The half-width of the interval.
        needed: f64,
    },
    /// A true value on the bound stays Inconclusive in 1 − α of repetitions, because no gap is declared.
    NoGap,
}

impl Warning {
    /// Whether the warning means that the claim cannot be decided.
    pub fn is_undecidable(self) -> bool {
        matches!(self, Warning::BelowMinimumN { .. } | Warning::RegionTooNarrow { .. })
    }
}

/// The reach of a planned claim.
pub fn at_registration(planned: &Planned) -> Reach {
    let n = planned.sample.total();
    let draws = match (planned.method, planned.sample) {
        (Method::SignFlip, _) if n > EXACT_SIGNS => Some(Draws::STANDARD),
        (Method::CorrelationPermutation, _) if n > crate::correlation::EXACT_ORDERS => Some(Draws::STANDARD),
        (Method::Permutation, Sample::Two(first, second))
            if crate::difference::relabellings(first, second) > crate::difference::EXACT_RELABELLINGS =>
        {
            Some(Draws::STANDARD)
        }
        _ => None,
    };
    let smallest_q = smallest_q(&planned.claim, planned.method, planned.sample, draws);
    let first_level = planned.alpha.split(planned.members);
    let warnings =
        [minimum(planned), few(planned), width(planned), gap(planned)].into_iter().flatten().collect();
    Reach { smallest_q, first_level, reachable: first_level.admits(smallest_q), warnings }
}

fn minimum(planned: &Planned) -> Option<Warning> {
    let smallest = planned.sample.smallest();
    let least = match planned.method {
        Method::SignFlip | Method::OrderStatistics | Method::Wilcoxon => least_exact(planned)?,
        Method::Newcombe | Method::McNemar if planned.claim.region.ends() != [0.0, 0.0] => {
            usize::try_from(proportion::LEAST_FOR_NEWCOMBE).unwrap_or(usize::MAX)
        }
        other => other.minimum_n(),
    };
    let instead = match planned.method {
        Method::SignFlip | Method::Wilcoxon if smallest >= 2 => Some(Method::T),
        Method::Percentile | Method::Bca | Method::BootstrapT if smallest >= 2 => match planned.sample {
            Sample::One(_) => Some(Method::T),
            Sample::Two(..) => Some(Method::Welch),
        },
        Method::Permutation | Method::MannWhitney if smallest >= 2 => Some(Method::Welch),
        _ => None,
    };
    (smallest < least).then_some(Warning::BelowMinimumN { planned: smallest, least, instead })
}

/// The least n at which 2^−n tails reach the first level, if an enumerated n does.
fn least_exact(planned: &Planned) -> Option<usize> {
    let first_level = planned.alpha.split(planned.members);
    (2..=EXACT_SIGNS)
        .find(|n| first_level.admits(smallest_q(&planned.claim, planned.method, Sample::One(*n), None)))
}

fn few(planned: &Planned) -> Option<Warning> {
    let smallest = planned.sample.smallest();
    let is_t = matches!(planned.method, Method::T | Method::Welch);
    (is_t && (2..5).contains(&smallest)).then_some(Warning::FewUnits { planned: smallest })
}

/// t_{1−a/2}·s/√n against the half-width of a two-bounded region, with the error that its law uses.
fn width(planned: &Planned) -> Option<Warning> {
    let (Region::Between { .. } | Region::Equivalence { .. }) = planned.claim.region else { return None };
    let Sample::One(n) = planned.sample else { return None };
    let deviation = planned.pilot_sd.filter(|_| n >= 2)?;
    let [low, high] = planned.claim.region.ends();
    let half_width = 0.5 * (high - low);
    let error = planned.claim.interval_error(planned.alpha, 1).to_f64();
    let needed = student::upper_quantile(0.5 * error, (n - 1) as f64) * deviation / (n as f64).sqrt();
    (half_width < needed).then_some(Warning::RegionTooNarrow { half_width, needed })
}

fn gap(planned: &Planned) -> Option<Warning> {
    match planned.claim.region {
        Region::Above { bound, refute } | Region::Below { bound, refute } if bound != refute => None,
        _ => Some(Warning::NoGap),
    }
}
