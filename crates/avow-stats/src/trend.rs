//! Trend of a value along ordered levels.
//!
//! Two estimands, and a claim must say which. *Of units*: the mean over units of the rank correlation inside
//! each unit, tested about 0, where exchangeable levels make it symmetric; about any other bound that test errs
//! in 5–27 % of cases, so it is refused. *Pooled*: one rank correlation over all cells, on Fisher's z scale with
//! a standard error by deleting one unit. Absent: Page, Jonckheere–Terpstra, and unpaired levels.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::region::Region;
use crate::units::{Units, equal_signs, require};
use crate::{sum, ties};

/// The rank correlation of a trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Spearman's ρ: the correlation of midranks.
    #[default]
    Spearman,
    /// Kendall's τ-b.
    Kendall,
}

/// Which trend is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// The mean of the rank correlations within units.
    Unit,
    /// The rank correlation over all cells.
    Pooled,
}

impl Of {
    /// The estimand that is meant where a claim does not say: of units where every bound is 0, else pooled.
    pub fn default_for(region: Region) -> Of {
        if region.ends().iter().all(|end| *end == 0.0) { Of::Unit } else { Of::Pooled }
    }
}

/// A trend that cannot be tested as asked.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrendError {
    /// The mean of within-unit correlations is symmetric about 0 only.
    #[error("a trend `of: unit` is testable against 0 only, not `{bound}`; `of: pooled` allows other bounds")]
    BoundOfUnits {
        /// The bound that is not 0.
        bound: f64,
    },
    /// No arrangement of this many cells reaches the bound.
    #[error(
        "the bound `{bound}` is at or above {ceiling}, the largest value at this number of levels and units"
    )]
    AboveCeiling {
        /// The bound.
        bound: f64,
        /// The largest pooled ρ.
        ceiling: f64,
    },
}

/// Checks at registration whether `region` can be asked of a trend over `levels` levels and `units` units.
pub fn check(of: Of, region: Region, levels: usize, units: usize) -> Result<(), TrendError> {
    let ends = region.ends();
    match of {
        Of::Unit => match ends.into_iter().find(|end| *end != 0.0) {
            Some(bound) => Err(TrendError::BoundOfUnits { bound }),
            None => Ok(()),
        },
        Of::Pooled => {
            let ceiling = ceiling(levels, units);
            // A tie with the ceiling is beyond it: no interval lies above.
            match ends.into_iter().find(|end| end.abs() >= ceiling * (1.0 - 1e-12)) {
                Some(bound) => Err(TrendError::AboveCeiling { bound, ceiling }),
                None => Ok(()),
            }
        }
    }
}

/// The largest Spearman ρ of `levels` levels with `units` distinct values each: tied levels cannot order the
/// values within them. √(1 − 1/k²) for many units.
pub fn ceiling(levels: usize, units: usize) -> f64 {
    let (k, n) = (levels as f64, units as f64);
    let cells = n * k;
    let cube = |v: f64| v * v * v - v;
    (1.0 - k * cube(n) / cube(cells)).sqrt()
}

/// √(1 − 1/k²), the limit of [`ceiling`] for many units.
pub fn ceiling_for_many(levels: usize) -> f64 {
    let k = levels as f64;
    (1.0 - 1.0 / (k * k)).sqrt()
}

/// A complete design: one row of values per unit, one column per level.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    levels: &'a [f64],
    rows: &'a [Vec<f64>],
    tie: f64,
}

impl<'a> Cells<'a> {
    /// `levels` are the level values (or their order), at least 3; a row of another length is
    /// [`Void::MissingUnits`]: incomplete designs are not imputed.
    pub fn new(levels: &'a [f64], rows: &'a [Vec<f64>]) -> Result<Cells<'a>, Void> {
        require(levels, 3)?;
        if rows.is_empty() {
            return Err(Void::NoUnits);
        }
        if rows.iter().any(|row| row.len() != levels.len()) {
            return Err(Void::MissingUnits);
        }
        for row in rows {
            require(row, 3)?;
        }
        let tie = ties::margin(rows.iter().flatten().copied());
        Ok(Cells { levels, rows, tie })
    }

    /// The rank correlation within each unit; a unit of equal values is [`Void::Undefined`]. Test its mean
    /// against 0 by [`Units::signs`], or [`Units::t`] where signs have no room.
    pub fn of_units(&self, statistic: Statistic) -> Result<Units, Void> {
        let each = self.rows.iter().map(|row| statistic.of(self.levels, row, self.tie));
        Units::with_tie(each.collect::<Result<Vec<f64>, Void>>()?, ties::margin([1.0]))
    }

    /// The rank correlation over all cells.
    pub fn correlation(&self, statistic: Statistic) -> Result<f64, Void> {
        self.pooled_without(statistic, None)
    }

    /// The rank correlation over the cells of all units but `left_out`.
    fn pooled_without(&self, statistic: Statistic, left_out: Option<usize>) -> Result<f64, Void> {
        let kept = || self.rows.iter().enumerate().filter(|(unit, _)| Some(*unit) != left_out);
        let values: Vec<f64> = kept().flat_map(|(_, row)| row.iter().copied()).collect();
        let levels: Vec<f64> = kept().flat_map(|_| self.levels.iter().copied()).collect();
        statistic.of(&levels, &values, self.tie)
    }
}

impl Statistic {
    /// The correlation; levels are compared exactly, values under `tie`.
    fn of(self, levels: &[f64], values: &[f64], tie: f64) -> Result<f64, Void> {
        let (x, y) = (ties::midranks(levels, 0.0), ties::midranks(values, tie));
        match self {
            Statistic::Spearman => correlation(&x, &y),
            Statistic::Kendall => kendall(&x, &y),
        }
    }
}

/// The pooled correlation: z = artanh ρ, standard error by deleting one unit, t with n − 1 degrees of freedom;
/// n ≥ 5.
pub fn pooled(cells: &Cells<'_>, statistic: Statistic) -> Result<Fit, Void> {
    let n = cells.rows.len();
    if n < Method::UnitJackknife.minimum_n() {
        return Err(Void::BelowMinimumN);
    }
    // A correlation this close to ±1 is ±1 up to rounding.
    let perfect = |r: f64| r.abs() >= 1.0 - 1e-12;
    let tie = ties::margin([1.0]);
    let (method, sample) = (Method::UnitJackknife, Sample::One(n));
    let whole = cells.correlation(statistic)?;
    let without =
        (0..n).map(|unit| cells.pooled_without(statistic, Some(unit))).collect::<Result<Vec<f64>, Void>>()?;
    if ties::all_equal(&without, tie) {
        return Ok(Fit::constant(method, sample, whole, equal_signs(n), tie));
    }
    let z: Vec<f64> = without.iter().map(|r| r.atanh()).collect();
    let error = if without.iter().copied().any(perfect) {
        f64::INFINITY
    } else {
        sum::deviation(&z) / (n as f64).sqrt() * (n - 1) as f64
    };
    let (centre, df) = (whole.atanh(), (n - 1) as f64);
    Ok(Fit::student(StudentPart { method, sample, centre, error, df, scale: Scale::FisherZ, tie }))
}

/// Pearson's correlation; 0/0 is [`Void::Undefined`].
fn correlation(x: &[f64], y: &[f64]) -> Result<f64, Void> {
    let (mx, my) = (sum::mean(x), sum::mean(y));
    let pairs = || x.iter().map(|v| v - mx).zip(y.iter().map(|v| v - my));
    let xy = sum::sum(pairs().map(|(a, b)| a * b));
    let xx = sum::sum(pairs().map(|(a, _)| a * a));
    let yy = sum::sum(pairs().map(|(_, b)| b * b));
    if xx == 0.0 || yy == 0.0 { Err(Void::Undefined) } else { Ok((xy / (xx * yy).sqrt()).clamp(-1.0, 1.0)) }
}

/// τ-b: (concordant − discordant)/√(pairs untied in x · pairs untied in y).
fn kendall(x: &[f64], y: &[f64]) -> Result<f64, Void> {
    let (mut score, mut in_x, mut in_y) = (0_i64, 0_i64, 0_i64);
    for i in 0..x.len() {
        for j in 0..i {
            let (dx, dy) = (x[i] - x[j], y[i] - y[j]);
            in_x += i64::from(dx != 0.0);
            in_y += i64::from(dy != 0.0);
            score += i64::from(dx * dy > 0.0) - i64::from(dx * dy < 0.0);
        }
    }
    if in_x == 0 || in_y == 0 {
        return Err(Void::Undefined);
    }
    Ok(score as f64 / (in_x as f64 * in_y as f64).sqrt())
}
