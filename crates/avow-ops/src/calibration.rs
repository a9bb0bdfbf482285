//! From a score and its null values to a p-value, a threshold and a calibrated score.
//!
//! The rule of the permutation null calibration (arXiv 2602.14486): with K null values, p = (1 + #{null >=
//! s})/(K + 1); the threshold τ is the ⌈(1 − α)(K + 1)⌉-th smallest of the null values **and** the score; the
//! calibrated score is (s − τ)/(s_max − τ) cut to [0, 1]. The rank is computed from the decimal text of α as
//! a fraction: in floating point (1 − 0.42)·50 is just above 29 and would give 30.

use avow_model::op::{Parameter, ParameterType};
use avow_model::value::{Value, spell_float};

use crate::call::Invocation;
use crate::declare::{defaulted, int, required};
use crate::error::OpError;
use crate::records::Records;

/// A level α as the exact decimal that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    numerator: u128,
    denominator: u128,
}

impl Level {
    /// The level written as the shortest decimal of `alpha`; `None` unless 1e-9 <= α < 1.
    pub fn new(alpha: f64) -> Option<Level> {
        if !(1e-9..1.0).contains(&alpha) {
            return None;
        }
        let text = spell_float(alpha);
        let (digits, exponent) = match text.split_once('e') {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let numerator = format!("{whole}{fraction}").parse::<u128>().ok()?;
        let places = u32::try_from(i32::try_from(fraction.len()).ok()? - exponent).ok()?;
        Some(Level { numerator, denominator: 10_u128.checked_pow(places)? })
    }

    /// The rank ⌈(1 − α)(K + 1)⌉ of the threshold among K null values and the score.
    pub fn rank(self, permutations: usize) -> usize {
        let product = (self.denominator - self.numerator) * (permutations as u128 + 1);
        usize::try_from(product.div_ceil(self.denominator)).expect("a rank is at most K + 1")
    }

    /// Whether K permutations can ever give a score above its threshold: α(K + 1) >= 1.
    pub fn reachable(self, permutations: usize) -> bool {
        self.numerator * (permutations as u128 + 1) >= self.denominator
    }

    /// The fewest permutations that are enough.
    pub fn fewest(self) -> usize {
        usize::try_from(self.denominator.div_ceil(self.numerator) - 1).expect("α is at least 1e-9")
    }
}

/// A score beside its null distribution. All fields are NaN where the score or a null value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The score s.
    pub score: f64,
    /// p = (1 + #{null >= s})/(K + 1).
    pub p: f64,
    /// τ.
    pub threshold: f64,
    /// s minus the mean of the null values.
    pub excess: f64,
    /// The mean of the null values.
    pub null_mean: f64,
    /// The calibrated score, 0 to 1.
    pub calibrated: f64,
}

impl Calibration {
    /// Applies the rule to a score whose largest possible value is `largest`.
    pub fn new(score: f64, null: &[f64], level: Level, largest: f64) -> Calibration {
        if score.is_nan() || null.iter().any(|v| v.is_nan()) {
            let nan = f64::NAN;
            return Calibration {
                score,
                p: nan,
                threshold: nan,
                excess: nan,
                null_mean: nan,
                calibrated: nan,
            };
        }
        let mut pooled: Vec<f64> = null.iter().copied().chain([score]).collect();
        pooled.sort_by(f64::total_cmp);
        let threshold = pooled[level.rank(null.len()) - 1];
        let null_mean = null.iter().sum::<f64>() / null.len() as f64;
        let reached = null.iter().filter(|&&v| v >= score).count();
        Calibration {
            score,
            p: (1 + reached) as f64 / (null.len() + 1) as f64,
            threshold,
            excess: score - null_mean,
            null_mean,
            calibrated: ((score - threshold) / (largest - threshold).max(1e-12)).clamp(0.0, 1.0),
        }
    }

    /// Records the six values as `{name}-score`, `-p`, `-threshold`, `-excess`, `-null-mean` and `-calibrated`.
    pub(crate) fn record(&self, records: &mut Records, name: &str, keys: &[(&str, Value)]) {
        let values = [
            ("score", self.score),
            ("p", self.p),
            ("threshold", self.threshold),
            ("excess", self.excess),
            ("null-mean", self.null_mean),
            ("calibrated", self.calibrated),
        ];
        for (suffix, value) in values {
            records.add(&format!("{name}-{suffix}"), value, keys);
        }
    }
}

/// The parameters of an operation that draws a null, with its default number of draws.
pub(crate) fn parameters(permutations: i64) -> [Parameter; 3] {
    [
        defaulted(
            "permutations",
            int(1, 10_000_000),
            Value::Int(permutations),
            "the number of random pairings, K",
        ),
        defaulted(
            "alpha",
            ParameterType::Number { low: 1e-6, high: 0.99 },
            Value::Float(0.05),
            "the level; K must be at least 1/alpha - 1",
        ),
        required("seed", ParameterType::Seed, "the seed of the permutations"),
    ]
}

/// Reads `permutations` and `alpha` of a call and refuses a pair that could only ever give a calibrated score
/// of zero.
pub(crate) fn level_of(call: &Invocation<'_>) -> Result<(usize, Level), OpError> {
    let permutations = call.count("permutations");
    let level = Level::new(call.number("alpha"))
        .ok_or_else(|| OpError::parameter("alpha", "must lie between 1e-9 and 1, 1 excluded"))?;
    if !level.reachable(permutations) {
        let problem = format!(
            "{permutations} permutations cannot reach alpha {}: the threshold would never lie below the score; \
             give at least 1/alpha - 1 = {}",
            call.value("alpha"),
            level.fewest()
        );
        return Err(OpError::parameter("permutations", problem));
    }
    Ok((permutations, level))
}
