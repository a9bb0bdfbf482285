//! A fit: an estimate together with the test of every possible bound.
//!
//! Test and interval come from one inversion. A [`Fit`] answers, for any θ₀, how surprising the data are if
//! θ ≤ θ₀ or θ ≥ θ₀, and its interval at error a is the set of θ₀ that neither question rejects at a/2. One
//! fit therefore serves every level a page prints: 1 − α, 1 − 2α, and both over the family size.
//!
//! Rules build fits ([`crate::units`], [`crate::difference`], …); a claim questions them
//! ([`crate::claim`]). Absent: any notion of a claim, a bound or a family.

mod order;
mod student;
mod typical;

use crate::interval::Interval;
use crate::level::Level;
use crate::method::{Method, Sample};
use crate::rng::Draws;
use crate::special::binomial;
use order::Order;
pub(crate) use student::Scale;
use student::Student;
use typical::Typical;

/// The largest n at which all 2ⁿ sign flips are enumerated.
pub const EXACT_SIGNS: usize = 20;

/// An estimate and its tests. Cheap to question, not to copy: a sign-flip fit holds its reference set.
#[derive(Clone, Debug)]
pub struct Fit {
    estimate: f64,
    method: Method,
    sample: Sample,
    tie: f64,
    model: Model,
}

#[derive(Clone, Debug)]
enum Model {
    Student(Student),
    Typical(Typical),
    Order(Order),
    Share {
        successes: u64,
        trials: u64,
    },
    /// All units equal: `tail` is the one-sided p-value on either side of the value.
    Constant {
        value: f64,
        tail: f64,
    },
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
        match &self.model {
            Model::Constant { .. } => true,
            Model::Order(order) => order.is_constant(self.tie),
            _ => false,
        }
    }

    /// Whether the fit is the point law of equal units rather than the method's own.
    pub(crate) fn is_point(&self) -> bool {
        matches!(self.model, Model::Constant { .. })
    }

    /// The number of random draws; `None` where the method is exact or analytic.
    pub fn draws(&self) -> Option<u32> {
        match &self.model {
            Model::Typical(typical) => typical.draws(),
            _ => None,
        }
    }

    /// The p-value of θ ≤ `bound`: small when the data lie well above it.
    pub fn p_at_most(&self, bound: f64) -> f64 {
        match &self.model {
            Model::Student(student) => student.p_at_most(bound),
            Model::Typical(typical) => typical.p_at_most(bound + self.tie),
            Model::Order(order) => order.p_at_most(bound, self.tie),
            // No share is at or below a negative number.
            Model::Share { .. } if bound < 0.0 => 0.0,
            Model::Share { successes, trials } => binomial::at_least(*successes, *trials, bound),
            Model::Constant { value, tail } => {
                if *value > bound + self.tie {
                    *tail
                } else {
                    1.0
                }
            }
        }
    }

    /// The p-value of θ ≥ `bound`: small when the data lie well below it.
    pub fn p_at_least(&self, bound: f64) -> f64 {
        match &self.model {
            Model::Student(student) => student.p_at_least(bound),
            Model::Typical(typical) => typical.p_at_least(bound - self.tie),
            Model::Order(order) => order.p_at_least(bound, self.tie),
            Model::Share { .. } if bound > 1.0 => 0.0,
            Model::Share { successes, trials } => binomial::at_most(*successes, *trials, bound),
            Model::Constant { value, tail } => {
                if *value < bound - self.tie {
                    *tail
                } else {
                    1.0
                }
            }
        }
    }

    /// The two-sided interval at confidence 1 − `error`.
    pub fn interval(&self, error: Level) -> Interval {
        let half = 0.5 * error.to_f64();
        let (low, high) = match &self.model {
            Model::Student(student) => student.interval(half),
            Model::Typical(typical) => typical.interval(error),
            Model::Order(order) => order.interval(error),
            Model::Share { successes, trials } => (
                binomial::lower_limit(*successes, *trials, half),
                binomial::upper_limit(*successes, *trials, half),
            ),
            Model::Constant { value, .. } => (*value, *value),
        };
        Interval { low, high, error, tie: self.tie }
    }

    /// t with a centre and standard error on `scale`; the estimate is the centre carried back.
    pub(crate) fn student(part: StudentPart) -> Fit {
        let StudentPart { method, sample, centre, error, df, scale, tie } = part;
        let student = Student { centre, error, df, scale };
        Fit { estimate: scale.back(centre), method, sample, tie, model: Model::Student(student) }
    }

    /// All units equal to `value`, with the one-sided p-value `tail`.
    pub(crate) fn constant(method: Method, sample: Sample, value: f64, tail: f64, tie: f64) -> Fit {
        Fit { estimate: value, method, sample, tie, model: Model::Constant { value, tail } }
    }

    /// Sign-flip of `values` about their centre of symmetry.
    pub(crate) fn signs(values: &[f64], draws: Draws, tie: f64) -> Fit {
        if values.len() <= EXACT_SIGNS {
            Fit::typical(values, Typical::exact(values), tie)
        } else {
            Fit::random_signs(values, draws, tie)
        }
    }

    /// Sign-flip by random subsets.
    pub(crate) fn random_signs(values: &[f64], draws: Draws, tie: f64) -> Fit {
        Fit::typical(values, Typical::monte_carlo(values, draws), tie)
    }

    fn typical(values: &[f64], typical: Typical, tie: f64) -> Fit {
        let (estimate, sample) = (crate::sum::mean(values), Sample::One(values.len()));
        Fit { estimate, method: Method::SignFlip, sample, tie, model: Model::Typical(typical) }
    }

    /// The median of `values` by order statistics.
    pub(crate) fn median(values: &[f64], tie: f64) -> Fit {
        let order = Order::new(values);
        let sample = Sample::One(values.len());
        Fit {
            estimate: order.median(),
            method: Method::OrderStatistics,
            sample,
            tie,
            model: Model::Order(order),
        }
    }

    /// A share of `successes` in `trials`.
    pub(crate) fn share(successes: u64, trials: u64) -> Fit {
        let sample = Sample::One(usize::try_from(trials).unwrap_or(usize::MAX));
        Fit {
            estimate: successes as f64 / trials as f64,
            method: Method::ClopperPearson,
            sample,
            // The limits are computed, not counted, so an end equals a bound only up to rounding.
            tie: 1e-12,
            model: Model::Share { successes, trials },
        }
    }
}

/// What a t fit is made of.
pub(crate) struct StudentPart {
    pub method: Method,
    pub sample: Sample,
    pub centre: f64,
    pub error: f64,
    pub df: f64,
    pub scale: Scale,
    pub tie: f64,
}
