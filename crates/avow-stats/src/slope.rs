//! Slope of a value along a numeric axis, and of logarithms against logarithms.
//!
//! Where units cross the axis, each unit has its own least-squares slope and the slopes are averaged like any
//! threshold mean. Without units the points are one regression. Absent: robust and heteroscedastic errors,
//! Theil–Sen, and fits with an offset; a log–log slope ignores an offset, and [`curvature`] is its warning.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::special::student;
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
