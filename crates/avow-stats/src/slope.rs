//! Slope of a value along a numeric axis, and of logarithms against logarithms.
//!
//! Where units cross the axis, each unit has its own least-squares slope and the slopes are averaged like any
//! threshold mean. Without units the points are one regression. A log–log slope ignores an offset,
//! of which [`curvature`] is the warning; [`crate::power_law`] fits one. Absent: several regressors.

use crate::fit::{Fit, Model, Scale, StudentPart};
use crate::level::Level;
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::special::{normal, student};
use crate::units::{Units, equal_signs, require};
use crate::{sum, ties};

/// The natural logarithms of positive values; any other value is [`Void::Domain`].
pub fn logs(values: &[f64]) -> Result<Vec<f64>, Void> {
    values.iter().map(|v| if *v > 0.0 { Ok(v.ln()) } else { Err(Void::Domain) }).collect()
}

/// The least-squares slope of each unit (row) along `axis`, in planned order. At least two axis values, not all
/// equal; a row of another length is [`Void::MissingUnits`].
pub fn of_units(axis: &[f64], rows: &[Vec<f64>]) -> Result<Units, Void> {
    require(axis, 2)?;
    if rows.iter().any(|row| row.len() != axis.len()) {
        return Err(Void::MissingUnits);
    }
    let slopes =
        rows.iter().map(|row| Ok(Line::fit(axis, row)?.slope)).collect::<Result<Vec<f64>, Void>>()?;
    Units::with_tie(slopes, slope_margin(axis, ties::margin(rows.iter().flatten().copied())))
}

/// How far values that move by `margin` can move a slope: margin·Σ|x − x̄|/Σ(x − x̄)².
fn slope_margin(axis: &[f64], margin: f64) -> f64 {
    let centre = sum::mean(axis);
    let spread = sum::sum(axis.iter().map(|x| (x - centre) * (x - centre)));
    margin * sum::sum(axis.iter().map(|x| (x - centre).abs())) / spread
}

/// The slope over points without units: least squares, t with k − 2 degrees of freedom; k ≥ 4.
pub fn of_points(axis: &[f64], values: &[f64]) -> Result<Fit, Void> {
    let line = Line::checked(axis, values, Method::LeastSquares.minimum_n())?;
    let points = axis.len();
    let (method, sample) = (Method::LeastSquares, Sample::One(points));
    let rounding = ties::margin(values.iter().copied());
    let tie = slope_margin(axis, rounding);
    // Residuals within the rounding of the values are none.
    if line.residuals.iter().all(|r| r.abs() <= rounding) {
        return Ok(Fit::constant(method, sample, line.slope, equal_signs(points), tie));
    }
    let df = (points - 2) as f64;
    let error = sum::norm(line.residuals.iter().copied()) / (df * line.spread).sqrt();
    Ok(Fit::student(StudentPart {
        method,
        sample,
        centre: line.slope,
        error,
        df,
        scale: Scale::Identity,
        tie,
    }))
}

/// The slope over points with standard errors that do not assume equal spread (HC3, MacKinnon and White 1985), t with
/// k − 2 degrees of freedom; k ≥ 4. A point that alone fixes its own residual is [`Void::Undefined`].
pub fn hc3(axis: &[f64], values: &[f64]) -> Result<Fit, Void> {
    let line = Line::checked(axis, values, Method::LeastSquares.minimum_n())?;
    let points = axis.len();
    let rounding = ties::margin(values.iter().copied());
    let tie = slope_margin(axis, rounding);
    if line.residuals.iter().all(|r| r.abs() <= rounding) {
        return Ok(Fit::constant(Method::Hc3, Sample::One(points), line.slope, equal_signs(points), tie));
    }
    let centre = sum::mean(axis);
    let mut parts = Vec::with_capacity(points);
    for (x, residual) in axis.iter().zip(&line.residuals) {
        let gap = x - centre;
        let left = 1.0 - 1.0 / points as f64 - gap * gap / line.spread;
        if left <= 1e-12 {
            return Err(Void::Undefined);
        }
        parts.push(gap * residual / left);
    }
    Ok(Fit::student(StudentPart {
        method: Method::Hc3,
        sample: Sample::One(points),
        centre: line.slope,
        error: sum::norm(parts) / line.spread,
        df: (points - 2) as f64,
        scale: Scale::Identity,
        tie,
    }))
}

/// The fewest points of a Theil–Sen slope.
pub const LEAST_FOR_THEIL_SEN: usize = 6;

/// The median of pairwise slopes with order statistics by the variance of Kendall's S, ties corrected (Sen 1968);
/// k ≥ 6 points.
pub fn theil_sen(axis: &[f64], values: &[f64]) -> Result<Fit, Void> {
    if axis.len() != values.len() {
        return Err(Void::MissingUnits);
    }
    require(axis, LEAST_FOR_THEIL_SEN)?;
    require(values, LEAST_FOR_THEIL_SEN)?;
    let points = axis.len();
    let mut slopes = Vec::new();
    for i in 0..points {
        slopes.extend(
            (0..i).filter(|j| axis[i] != axis[*j]).map(|j| (values[i] - values[j]) / (axis[i] - axis[j])),
        );
    }
    if slopes.is_empty() {
        return Err(Void::Undefined);
    }
    let tie = slope_margin(axis, ties::margin(values.iter().copied()));
    let model = PairwiseSlopes::new(slopes, axis, values);
    Ok(Fit::new(model.median(), Method::TheilSen, Sample::One(points), tie, model))
}

/// Pairwise slopes, and the standard deviation of Kendall's S.
#[derive(Clone, Debug)]
struct PairwiseSlopes {
    sorted: Vec<f64>,
    deviation: f64,
}

impl PairwiseSlopes {
    fn new(mut slopes: Vec<f64>, axis: &[f64], values: &[f64]) -> PairwiseSlopes {
        slopes.sort_unstable_by(f64::total_cmp);
        let tied = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            let groups = sorted.chunk_by(|a, b| a == b).map(|g| g.len() as f64);
            sum::sum(groups.map(|g| g * (g - 1.0) * (2.0 * g + 5.0)))
        };
        let n = axis.len() as f64;
        let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - tied(axis) - tied(values)) / 18.0;
        PairwiseSlopes { sorted: slopes, deviation: variance.max(0.0).sqrt() }
    }

    fn median(&self) -> f64 {
        let n = self.sorted.len();
        0.5 * (self.sorted[(n - 1) / 2] + self.sorted[n / 2])
    }

    /// The p at which an end stands on the `rank`-th slope from its side: the inverse of the rank rule below.
    fn tail(&self, rank: usize) -> f64 {
        if self.deviation == 0.0 {
            return 1.0;
        }
        // Rank round((N − z·s)/2) excludes slopes below it while z ≥ (N − 2·rank − 1)/s.
        let z = (self.sorted.len() as f64 - 2.0 * rank as f64 - 1.0) / self.deviation;
        normal::above(z)
    }
}

impl Model for PairwiseSlopes {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        self.tail(self.sorted.partition_point(|m| *m <= bound + tie))
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        self.tail(self.sorted.len() - self.sorted.partition_point(|m| *m < bound - tie))
    }

    /// The slopes of rank round((N ∓ z·s)/2), as `scipy.stats.theilslopes` has them.
    fn interval(&self, error: Level) -> (f64, f64) {
        let z = -normal::quantile(0.5 * error.to_f64());
        let count = self.sorted.len() as f64;
        let high = (0.5 * (count + z * self.deviation)).round_ties_even();
        let low = (0.5 * (count - z * self.deviation)).round_ties_even() - 1.0;
        let at = |rank: f64| self.sorted[(rank.max(0.0) as usize).min(self.sorted.len() - 1)];
        let low = if low < 0.0 { f64::NEG_INFINITY } else { at(low) };
        let high = if high > count - 1.0 { f64::INFINITY } else { at(high) };
        (low, high)
    }
}

/// The quadratic term beside a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curvature {
    /// The coefficient of the squared axis.
    pub coefficient: f64,
    /// Its t statistic, with k − 3 degrees of freedom.
    pub t: f64,
    /// Its two-sided p-value.
    pub p: f64,
}

/// Tests a quadratic term against a straight line; k ≥ 4 points on at least three axis values.
pub fn curvature(axis: &[f64], values: &[f64]) -> Result<Curvature, Void> {
    let line = Line::checked(axis, values, 4)?;
    // The part of x² that a line in x cannot follow; regressing on it gives the quadratic coefficient.
    let centre = sum::mean(axis);
    let squares: Vec<f64> = axis.iter().map(|x| (x - centre) * (x - centre)).collect();
    let bend = Line::fit(axis, &squares)?.residuals;
    let spread = sum::sum(bend.iter().map(|b| b * b));
    let scale = sum::sum(squares.iter().map(|s| s * s));
    if spread <= 1e-20 * scale {
        return Err(Void::Undefined);
    }
    let coefficient = sum::sum(bend.iter().zip(&line.residuals).map(|(b, r)| b * r)) / spread;
    let left = sum::norm(bend.iter().zip(&line.residuals).map(|(b, r)| r - coefficient * b));
    let df = (axis.len() - 3) as f64;
    let error = left / (df * spread).sqrt();
    if error == 0.0 {
        return Err(Void::Undefined);
    }
    let t = coefficient / error;
    Ok(Curvature { coefficient, t, p: 2.0 * student::above(t.abs(), df) })
}

/// A least-squares line.
struct Line {
    slope: f64,
    /// Σ(x − x̄)².
    spread: f64,
    residuals: Vec<f64>,
}

impl Line {
    fn checked(axis: &[f64], values: &[f64], least: usize) -> Result<Line, Void> {
        if axis.len() != values.len() {
            return Err(Void::MissingUnits);
        }
        require(axis, least)?;
        Line::fit(axis, values)
    }

    fn fit(axis: &[f64], values: &[f64]) -> Result<Line, Void> {
        require(values, 2)?;
        let (mx, my) = (sum::mean(axis), sum::mean(values));
        let spread = sum::sum(axis.iter().map(|x| (x - mx) * (x - mx)));
        if spread == 0.0 {
            return Err(Void::Undefined);
        }
        let slope = sum::sum(axis.iter().zip(values).map(|(x, y)| (x - mx) * (y - my))) / spread;
        let residuals = axis.iter().zip(values).map(|(x, y)| (y - my) - slope * (x - mx)).collect();
        Ok(Line { slope, spread, residuals })
    }
}
