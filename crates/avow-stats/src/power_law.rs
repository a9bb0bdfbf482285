//! Power laws: of a curve with an offset, and of the distribution of one variable.
//!
//! [`offset`] is regression, y = a·x^−α + c, for scaling of one quantity with another. [`Tail`] is the maximum-likelihood
//! exponent of a *distribution* (Clauset, Shalizi and Newman 2009); least squares on a histogram is never used. Absent:
//! Vuong's comparison with other distributions.

use crate::fit::{Fit, Profile};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::units::require;
use crate::{sum, ties};
use std::sync::Arc;

/// The exponents that are tried.
const RANGE: (f64, f64) = (0.02, 3.0);
/// Points of the first grid over them.
const GRID: usize = 300;
/// The fewest points of a fit with an offset.
pub const LEAST_POINTS: usize = 5;

/// How residuals are weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weights {
    /// 1/y²: constant relative error.
    #[default]
    Relative,
    /// 1: constant absolute error.
    Equal,
}

/// y = a·x^−α + c.
#[derive(Clone, Debug)]
pub struct Offset {
    /// α with its interval by the profile of the sum of squares.
    pub exponent: Fit,
    /// a.
    pub scale: f64,
    /// c.
    pub offset: f64,
    /// The weighted sum of squares at the optimum.
    pub squares: f64,
    /// y − (a·x^−α + c), in the order given.
    pub residuals: Vec<f64>,
}

/// Fits y = a·x^−α + c by weighted least squares with a and c profiled out; positive x, at least five points on at
/// least three values of x. An optimum on the edge of 0.02 ≤ α ≤ 3: [`Void::Undefined`].
pub fn offset(axis: &[f64], values: &[f64], weights: Weights) -> Result<Offset, Void> {
    let curve = Arc::new(Curve::new(axis, values, weights)?);
    let alpha = curve.optimum()?;
    let (scale, constant, squares) = curve.solve(alpha);
    let residuals: Vec<f64> =
        axis.iter().zip(values).map(|(x, y)| y - (scale * x.powf(-alpha) + constant)).collect();
    let rounding = ties::margin(values.iter().copied());
    let (sample, tie) = (Sample::One(axis.len()), 1e-12 * alpha);
    let exponent = if residuals.iter().all(|r| r.abs() <= rounding) {
        Fit::constant(Method::PowerOffset, sample, alpha, crate::units::equal_signs(axis.len()), tie)
    } else {
        let at = Arc::clone(&curve);
        let model = Profile {
            optimum: alpha,
            least: squares,
            df: (axis.len() - 3) as f64,
            range: (1e-3, 20.0),
            squares: Box::new(move |alpha| at.solve(alpha).2),
        };
        Fit::new(alpha, Method::PowerOffset, sample, tie, model)
    };
    Ok(Offset { exponent, scale, offset: constant, squares, residuals })
}

struct Curve {
    /// ln x − mean of ln x, so that powers stay near 1.
    logs: Vec<f64>,
    centre: f64,
    values: Vec<f64>,
    /// √weights.
    roots: Vec<f64>,
}

impl Curve {
    fn new(axis: &[f64], values: &[f64], weights: Weights) -> Result<Curve, Void> {
        if axis.len() != values.len() {
            return Err(Void::MissingUnits);
        }
        require(axis, LEAST_POINTS)?;
        require(values, LEAST_POINTS)?;
        let logs = crate::slope::logs(axis)?;
        let mut distinct = axis.to_vec();
        distinct.sort_unstable_by(f64::total_cmp);
        distinct.dedup();
        if distinct.len() < 3 {
            return Err(Void::Undefined);
        }
        let roots = match weights {
            Weights::Equal => vec![1.0; values.len()],
            Weights::Relative if values.contains(&0.0) => return Err(Void::Domain),
            Weights::Relative => values.iter().map(|y| 1.0 / y.abs()).collect(),
        };
        let centre = sum::mean(&logs);
        let logs = logs.iter().map(|l| l - centre).collect();
        Ok(Curve { logs, centre, values: values.to_vec(), roots })
    }

    /// (a, c, S) for one α: weighted least squares in x^−α and 1.
    fn solve(&self, alpha: f64) -> (f64, f64, f64) {
        let powers: Vec<f64> = self.logs.iter().map(|l| (-alpha * l).exp()).collect();
        let weighted = |of: &dyn Fn(usize) -> f64| {
            sum::sum((0..powers.len()).map(|i| self.roots[i] * self.roots[i] * of(i)))
        };
        let all = weighted(&|_| 1.0);
        let (mp, my) = (weighted(&|i| powers[i]) / all, weighted(&|i| self.values[i]) / all);
        let spread = weighted(&|i| (powers[i] - mp) * (powers[i] - mp));
        let slope = weighted(&|i| (powers[i] - mp) * (self.values[i] - my)) / spread;
        let squares = weighted(&|i| ((self.values[i] - my) - slope * (powers[i] - mp)).powi(2));
        (slope * (alpha * self.centre).exp(), my - slope * mp, squares)
    }

    /// dS/dα up to a positive factor −2a: Σ w r x^−α ln x.
    fn slope_of_squares(&self, alpha: f64) -> f64 {
        let (scale, constant, _) = self.solve(alpha);
        let scale = scale * (-alpha * self.centre).exp();
        sum::sum((0..self.values.len()).map(|i| {
            let power = (-alpha * self.logs[i]).exp();
            let residual = self.values[i] - (scale * power + constant);
            self.roots[i] * self.roots[i] * residual * power * self.logs[i]
        }))
    }

    /// The best grid point, then the root of dS/dα beside it.
    fn optimum(&self) -> Result<f64, Void> {
        let at = |i: usize| RANGE.0 + (RANGE.1 - RANGE.0) * i as f64 / (GRID - 1) as f64;
        let best = (0..GRID)
            .min_by(|a, b| self.solve(at(*a)).2.total_cmp(&self.solve(at(*b)).2))
            .ok_or(Void::Undefined)?;
        if best == 0 || best == GRID - 1 {
            return Err(Void::Undefined);
        }
        let (mut low, mut high) = (at(best - 1), at(best + 1));
        let sign = self.slope_of_squares(low).signum();
        if sign == self.slope_of_squares(high).signum() {
            return Err(Void::Undefined);
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if self.slope_of_squares(middle).signum() == sign { low = middle } else { high = middle }
        }
        Ok(0.5 * (low + high))
    }
}

/// A continuous power-law tail p(x) ∝ x^−α above `x_min`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Where the tail begins.
    pub x_min: f64,
    /// α̂ = 1 + n/Σ ln(x/x_min).
    pub exponent: f64,
    /// (α̂ − 1)/√n.
    pub standard_error: f64,
    /// Values in the tail.
    pub n: usize,
    /// The Kolmogorov–Smirnov distance between tail and fit.
    pub distance: f64,
}

impl Tail {
    /// The tail from a given `x_min` > 0; at least two values at or above it, not all equal to it.
    pub fn from(values: &[f64], x_min: f64) -> Result<Tail, Void> {
        require(values, 1)?;
        if !(x_min > 0.0 && x_min.is_finite()) {
            return Err(Void::Domain);
        }
        let mut tail: Vec<f64> = values.iter().copied().filter(|v| *v >= x_min).collect();
        if tail.len() < 2 {
            return Err(Void::BelowMinimumN);
        }
        tail.sort_unstable_by(f64::total_cmp);
        let n = tail.len();
        let logs = sum::sum(tail.iter().map(|v| (v / x_min).ln()));
        if logs <= 0.0 {
            return Err(Void::Undefined);
        }
        let exponent = 1.0 + n as f64 / logs;
        let below = |v: f64| 1.0 - (v / x_min).powf(1.0 - exponent);
        let gap = |(i, v): (usize, &f64)| {
            let fitted = below(*v);
            (fitted - i as f64 / n as f64).abs().max((fitted - (i + 1) as f64 / n as f64).abs())
        };
        let distance = tail.iter().enumerate().map(gap).fold(0.0, f64::max);
        Ok(Tail { x_min, exponent, standard_error: (exponent - 1.0) / (n as f64).sqrt(), n, distance })
    }

    /// The tail whose beginning, among the values, has the least distance; at least `least` values in it.
    pub fn best(values: &[f64], least: usize) -> Result<Tail, Void> {
        require(values, least.max(2))?;
        let mut starts: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
        starts.sort_unstable_by(f64::total_cmp);
        starts.dedup();
        let tails = starts.into_iter().filter_map(|start| Tail::from(values, start).ok());
        tails
            .filter(|t| t.n >= least.max(2))
            .min_by(|a, b| a.distance.total_cmp(&b.distance))
            .ok_or(Void::Undefined)
    }
}
