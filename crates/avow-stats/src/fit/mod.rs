//! A fit: an estimate together with the test of every possible bound.
//!
//! Test and interval come from one inversion. A [`Fit`] answers, for any θ₀, how surprising the data are if
//! θ ≤ θ₀ or θ ≥ θ₀, and its interval at error a is the set of θ₀ that neither question rejects at a/2. One
//! fit therefore serves every level a page prints: 1 − α, 1 − 2α, and both over the family size. Each way to answer is
//! a `Model` in a file of its own.
//!
//! Rules build fits ([`crate::units`], [`crate::difference`], …); a claim questions them
//! ([`crate::claim`]). Absent: any notion of a claim, a bound or a family.

mod anytime;
mod bca;
mod binomial;
mod constant;
mod counted;
mod fieller;
mod logged;
mod model;
mod negated;
mod order;
mod profile;
mod relabelled;
mod student;
mod tabled;
mod two_shares;
mod typical;
mod unbounded;
mod worst;

use crate::interval::Interval;
use crate::level::Level;
use crate::method::{Method, Sample};
use crate::reference::Reference;
use crate::rng::Draws;
pub(crate) use anytime::{Anytime, Betting};
pub(crate) use bca::Bca;
pub(crate) use binomial::{Score, Share};
use constant::Constant;
pub(crate) use counted::{Counted, Counts};
pub(crate) use fieller::Fieller;
use logged::Logged;
pub(crate) use model::Model;
use negated::Negated;
use order::Order;
pub(crate) use profile::Profile;
use std::sync::Arc;
pub(crate) use student::Scale;
use student::Student;
pub(crate) use tabled::AtNull;
pub(crate) use two_shares::Newcombe;
pub(crate) use typical::Typical;
pub(crate) use unbounded::Unbounded;
pub(crate) use worst::Worst;

/// The largest n at which all 2ⁿ sign flips are enumerated.
pub const EXACT_SIGNS: usize = 20;

/// An estimate and its tests. Cheap to copy: copies share the reference set.
#[derive(Clone, Debug)]
pub struct Fit {
    estimate: f64,
    method: Method,
    sample: Sample,
    tie: f64,
    model: Arc<dyn Model>,
    /// The distribution of the estimate under the bound for which `model` has only a p-value.
    reference: Option<Arc<Reference>>,
}

impl Fit {
    /// The point estimate, on the scale of θ.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// How p-values and intervals are made.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The units used.
    pub fn sample(&self) -> Sample {
        self.sample
    }

    /// The margin ε under which values of this claim are equal.
    pub fn tie(&self) -> f64 {
        self.tie
    }

    /// Whether all units were equal (s = 0), so that only their number speaks.
    pub fn no_variation(&self) -> bool {
        self.model.no_variation(self.tie)
    }

    /// Whether the fit is the point law of equal units rather than the method's own.
    pub(crate) fn is_point(&self) -> bool {
        self.model.is_point()
    }

    /// Whether the interval is an approximation beside a p-value from another test, so that at the null value
    /// the p decides even where the interval disagrees.
    pub fn interval_is_approximate(&self) -> bool {
        self.model.is_approximate()
    }

    /// The number of random draws; `None` where the method is exact or analytic.
    pub fn draws(&self) -> Option<u32> {
        self.model.draws()
    }

    /// The p-value of θ ≤ `bound`: small when the data lie well above it.
    pub fn p_at_most(&self, bound: f64) -> f64 {
        self.model.p_at_most(bound, self.tie)
    }

    /// The p-value of θ ≥ `bound`: small when the data lie well below it.
    pub fn p_at_least(&self, bound: f64) -> f64 {
        self.model.p_at_least(bound, self.tie)
    }

    /// The two-sided interval at confidence 1 − `error`.
    pub fn interval(&self, error: Level) -> Interval {
        let (low, high) = self.model.interval(error);
        Interval { low, high, error, tie: self.tie }
    }

    /// How the estimate would be spread where `bound` is true: what the p-value is a tail of. `None` where the method
    /// has no such distribution, or where nothing varies.
    pub fn reference(&self, bound: f64) -> Option<Reference> {
        match &self.reference {
            Some(kept) if kept.bound == bound => Some(Reference::clone(kept)),
            _ => self.model.reference(bound, self.estimate),
        }
    }

    /// The same fit with the distribution of its estimate under one bound.
    #[must_use]
    pub(crate) fn with_reference(self, reference: Option<Reference>) -> Fit {
        Fit { reference: reference.map(Arc::new), ..self }
    }

    /// The same fit of logarithms, read on the scale of the values: of their geometric mean.
    #[must_use]
    pub fn of_logarithms(self) -> Fit {
        let estimate = self.estimate.exp();
        let model = Logged { inner: self.model, tie: self.tie };
        Fit { estimate, tie: 1e-12 * estimate, model: Arc::new(model), reference: None, ..self }
    }

    /// The same fit of the negated values.
    #[must_use]
    pub(crate) fn negated(self) -> Fit {
        Fit { estimate: -self.estimate, model: Arc::new(Negated { inner: self.model }), ..self }
    }

    /// The same fit with the p-values of another test where the question is about the null value 0; its interval is
    /// then marked as approximate.
    #[must_use]
    pub fn tested_at_zero(self, method: Method, at_most: f64, at_least: f64) -> Fit {
        Fit { method, ..self.with_test_at(0.0, at_most, at_least, None) }
    }

    /// A fit from its parts.
    pub(crate) fn new(estimate: f64, method: Method, sample: Sample, tie: f64, model: impl Model) -> Fit {
        Fit { estimate, method, sample, tie, model: Arc::new(model), reference: None }
    }

    /// The same fit with the p-values of `null` taken from another test.
    pub(crate) fn with_test_at(self, null: f64, at_most: f64, at_least: f64, draws: Option<u32>) -> Fit {
        let model = AtNull { null, at_most, at_least, draws, beside: Arc::clone(&self.model) };
        Fit { model: Arc::new(model), ..self }
    }

    /// t with a centre and standard error on `scale`; the estimate is the centre carried back.
    pub(crate) fn student(part: StudentPart) -> Fit {
        let StudentPart { method, sample, centre, error, df, scale, tie } = part;
        let student = Student { centre, error, df, scale };
        Fit::new(scale.back(centre), method, sample, tie, student)
    }

    /// All units equal to `value`, with the one-sided p-value `tail`.
    pub(crate) fn constant(method: Method, sample: Sample, value: f64, tail: f64, tie: f64) -> Fit {
        Fit::new(value, method, sample, tie, Constant { value, tail })
    }

    /// Sign-flip of `values` about their centre of symmetry.
    pub(crate) fn signs(values: &[f64], draws: Draws, tie: f64) -> Fit {
        if values.len() <= EXACT_SIGNS {
            Fit::typical(values, Typical::exact(values), tie)
        } else {
            Fit::random_signs(values, draws, tie)
        }
    }

    /// Sign-flip of `values` that count by `weights`.
    pub(crate) fn weighted_signs(values: &[f64], weights: &[f64], draws: Draws, tie: f64) -> Fit {
        let all = crate::sum::sum(weights.iter().copied());
        let estimate = crate::sum::sum(values.iter().zip(weights).map(|(v, w)| v * w)) / all;
        let typical = Typical::weighted(values, weights, draws);
        Fit::new(estimate, Method::SignFlip, Sample::One(values.len()), tie, typical)
    }

    /// Sign-flip by random subsets.
    pub(crate) fn random_signs(values: &[f64], draws: Draws, tie: f64) -> Fit {
        Fit::typical(values, Typical::monte_carlo(values, draws), tie)
    }

    fn typical(values: &[f64], typical: Typical, tie: f64) -> Fit {
        let (estimate, sample) = (crate::sum::mean(values), Sample::One(values.len()));
        Fit::new(estimate, Method::SignFlip, sample, tie, typical)
    }

    /// The median of `values` by order statistics.
    pub(crate) fn median(values: &[f64], tie: f64) -> Fit {
        let order = Order::new(values);
        Fit::new(order.median(), Method::OrderStatistics, Sample::One(values.len()), tie, order)
    }

    /// A share of `successes` in `trials`.
    pub(crate) fn share(successes: u64, trials: u64) -> Fit {
        let sample = Sample::One(usize::try_from(trials).unwrap_or(usize::MAX));
        let estimate = successes as f64 / trials as f64;
        // The limits are computed, not counted, so an end equals a bound only up to rounding.
        Fit::new(estimate, Method::ClopperPearson, sample, 1e-12, Share { successes, trials })
    }
}

/// What a t fit is made of; infinite `df` is the normal distribution.
pub(crate) struct StudentPart {
    pub method: Method,
    pub sample: Sample,
    pub centre: f64,
    pub error: f64,
    pub df: f64,
    pub scale: Scale,
    pub tie: f64,
}
