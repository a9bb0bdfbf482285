//! One number per unit: what every one-sample rule works on.
//!
//! Units are in planned order, reduced to one number each: a value, a paired difference, a within-unit
//! correlation, a slope. With them goes the margin ε under which they are equal, because the rounding of a
//! difference or slope scales with what it was made from. Absent: what a unit is and how it was reduced.

use crate::fit::{Anytime, Betting, Counted, Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::Draws;
use crate::{ranks, sum, ties};

/// One finite number per unit, at least one, in planned order.
#[derive(Clone, Debug, PartialEq)]
pub struct Units {
    values: Vec<f64>,
    tie: f64,
}

impl Units {
    /// Values as they are; ε = 1e-12 times the largest magnitude.
    pub fn of(values: &[f64]) -> Result<Units, Void> {
        Units::with_tie(values.to_vec(), ties::margin(values.iter().copied()))
    }

    /// first − second, position by position. Arms of different length: [`Void::Unpaired`].
    pub fn paired(first: &[f64], second: &[f64]) -> Result<Units, Void> {
        if first.len() != second.len() {
            return Err(Void::Unpaired);
        }
        let differences = first.iter().zip(second).map(|(a, b)| a - b).collect();
        Units::with_tie(differences, ties::margin(first.iter().chain(second).copied()))
    }

    /// Values derived from others, with the margin that their rounding asks for.
    pub fn with_tie(values: Vec<f64>, tie: f64) -> Result<Units, Void> {
        require(&values, 1)?;
        // Finite values whose sum overflows have no mean.
        if sum::sum(values.iter().copied()).is_finite() {
            Ok(Units { values, tie })
        } else {
            Err(Void::NonFinite)
        }
    }

    /// The values, in planned order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The margin ε.
    pub fn tie(&self) -> f64 {
        self.tie
    }

    /// Whether all units are equal under ε.
    pub fn all_equal(&self) -> bool {
        ties::all_equal(&self.values, self.tie)
    }

    /// The mean by Student's t; n ≥ 2.
    pub fn t(&self) -> Result<Fit, Void> {
        if let Some(point) = self.point(Method::T)? {
            return Ok(point);
        }
        let n = self.values.len();
        let error = sum::deviation(&self.values) / (n as f64).sqrt();
        if !error.is_finite() {
            return Err(Void::NonFinite);
        }
        Ok(Fit::student(StudentPart {
            method: Method::T,
            sample: Sample::One(n),
            centre: sum::mean(&self.values),
            error,
            df: (n - 1) as f64,
            scale: Scale::Identity,
            tie: self.tie,
        }))
    }

    /// The centre of symmetry by sign-flip: exact to n = 20, random subsets from `draws` beyond; n ≥ 2.
    pub fn signs(&self, draws: Draws) -> Result<Fit, Void> {
        match self.point(Method::SignFlip)? {
            Some(point) => Ok(point),
            None => Ok(Fit::signs(&self.values, draws, self.tie)),
        }
    }

    /// The centre of symmetry by `draws` random subsets at any n, to check the exact enumeration against.
    pub fn signs_by_draws(&self, draws: Draws) -> Result<Fit, Void> {
        match self.point(Method::SignFlip)? {
            Some(point) => Ok(point),
            None => Ok(Fit::random_signs(&self.values, draws, self.tie)),
        }
    }

    /// Any median by order statistics; n ≥ 2, with a finite interval at 5 % from n = 6.
    pub fn median(&self) -> Result<Fit, Void> {
        require(&self.values, 2)?;
        Ok(Fit::median(&self.values, self.tie))
    }

    /// The pseudo-median by Wilcoxon's signed ranks: median and order statistics of the Walsh averages, exact to
    /// n = 60; n ≥ 2, with a finite interval at 5 % from n = 6.
    pub fn wilcoxon(&self) -> Result<Fit, Void> {
        if let Some(point) = self.point(Method::Wilcoxon)? {
            return Ok(point);
        }
        let n = self.values.len();
        let walsh = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
        let averages = walsh.map(|(i, j)| 0.5 * (self.values[i] + self.values[j])).collect();
        let model = Counted::new(averages, ranks::signed_ranks(n));
        Ok(Fit::new(model.median(), Method::Wilcoxon, Sample::One(n), self.tie, model))
    }

    /// The mean by the t-mixture, units in registered order: valid at every look. Until something can be excluded the
    /// interval is infinite (below five units at 5 %).
    pub fn sequential(&self) -> Result<Fit, Void> {
        let model = Anytime { values: self.values.clone() };
        let sample = Sample::One(self.values.len());
        Ok(Fit::new(sum::mean(&self.values), Method::Sequential, sample, self.tie, model))
    }

    /// The mean of values in a declared range by betting: no distribution is assumed, valid at every look. A value
    /// outside the range: [`Void::Domain`], for then the range was not true.
    pub fn bounded(&self, range: (f64, f64)) -> Result<Fit, Void> {
        let (low, high) = range;
        let inside = self.values.iter().all(|value| (low..=high).contains(value));
        if !(inside && high > low && (high - low).is_finite()) {
            return Err(Void::Domain);
        }
        require(&self.values, Method::Bounded.minimum_n())?;
        let model = Betting { values: self.values.clone(), range };
        let sample = Sample::One(self.values.len());
        Ok(Fit::new(sum::mean(&self.values), Method::Bounded, sample, self.tie, model))
    }

    /// The point law where all units are equal: their number alone decides.
    fn point(&self, method: Method) -> Result<Option<Fit>, Void> {
        require(&self.values, 2)?;
        let n = self.values.len();
        Ok(self.all_equal().then(|| {
            Fit::constant(method, Sample::One(n), sum::mean(&self.values), equal_signs(n), self.tie)
        }))
    }
}

/// 2^−n, the one-sided sign-flip p-value of n equal nonzero deviations.
pub(crate) fn equal_signs(n: usize) -> f64 {
    0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// Refuses no units, values that are not finite, and fewer than `least` units, in that order.
pub(crate) fn require(values: &[f64], least: usize) -> Result<(), Void> {
    if values.is_empty() {
        return Err(Void::NoUnits);
    }
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Void::NonFinite);
    }
    if values.len() < least { Err(Void::BelowMinimumN) } else { Ok(()) }
}
