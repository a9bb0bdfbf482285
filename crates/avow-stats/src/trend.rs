//! Trend of a value along ordered levels.
//!
//! Two estimands, and a claim must say which. *Of units*: the mean over units of the rank correlation inside
//! each unit, tested about 0, where exchangeable levels make it symmetric; about any other bound that test errs
//! in 5–27 % of cases, so it is refused. *Pooled*: one rank correlation over all cells, on Fisher's z scale with
//! a standard error by deleting one unit. Page and Jonckheere–Terpstra are p-values only. Absent: umbrella trends.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::region::Region;
use crate::rng::Draws;
use crate::special::normal;
use crate::units::{Units, equal_signs, require};
use crate::{correlation, sum, ties};

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
            Statistic::Spearman => correlation::product_moment(&x, &y),
            Statistic::Kendall => correlation::kendall(&x, &y),
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

/// Page's L with its one-sided p-values: the sum over levels of rank × column sum of within-unit ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    /// L.
    pub statistic: f64,
    /// The p-value of "no rise": small when values rise along the levels.
    pub rising: f64,
    /// The p-value of "no fall".
    pub falling: f64,
}

/// The most (levels! · units) work at which Page's L is exact; beyond it the normal approximation is used.
const EXACT_PAGE_LEVELS: usize = 8;

impl Cells<'_> {
    /// The mean within-unit Spearman correlation, whose test of 0 is Page's. L is a linear function of it, so the two
    /// agree on the direction; the interval is that of t over units and marked as approximate.
    pub fn page_fit(&self) -> Result<Fit, Void> {
        let page = self.page();
        let fit = self.of_units(Statistic::Spearman)?.t()?;
        Ok(fit.tested_at_zero(Method::Page, page.rising, page.falling))
    }

    /// Page's trend test (1963) over complete units; exact to eight levels by convolving the within-unit orders.
    /// Ties share midranks; then the exact distribution is that of untied ranks and the p-value is conservative.
    pub fn page(&self) -> Page {
        let (levels, units) = (self.levels.len(), self.rows.len());
        let weights = ties::midranks(self.levels, 0.0);
        let statistic = sum::sum(self.rows.iter().flat_map(|row| {
            let ranks = ties::midranks(row, self.tie);
            weights.iter().zip(ranks).map(|(w, r)| w * r).collect::<Vec<f64>>()
        }));
        if levels > EXACT_PAGE_LEVELS {
            let (k, n) = (levels as f64, units as f64);
            let mean = n * k * (k + 1.0) * (k + 1.0) / 4.0;
            let deviation = (n * k * k * (k + 1.0) * (k * k - 1.0) / 144.0).sqrt();
            let z = (statistic - mean) / deviation;
            return Page { statistic, rising: normal::above(z), falling: normal::below(z) };
        }
        let one = one_unit(levels);
        let all = (1..units).fold(one.clone(), |so_far, _| convolve(&so_far, &one));
        // The smallest sum of one unit is that of opposite orders.
        let least = units * (levels * (levels + 1) * (levels + 2) / 6);
        let tail = |test: &dyn Fn(f64) -> bool| {
            sum::sum(all.iter().enumerate().filter(|(i, _)| test((least + i) as f64)).map(|(_, p)| *p))
                .min(1.0)
        };
        Page {
            statistic,
            rising: tail(&|l| l >= statistic - 1e-9),
            falling: tail(&|l| l <= statistic + 1e-9),
        }
    }
}

/// The distribution of Σ j·rank(j) over the orders of one unit, from its smallest value.
fn one_unit(levels: usize) -> Vec<f64> {
    let least = levels * (levels + 1) * (levels + 2) / 6;
    let most = levels * (levels + 1) * (2 * levels + 1) / 6;
    let mut counts = vec![0.0; most - least + 1];
    let mut total = 0.0;
    correlation::every_order(&mut (0..levels).collect::<Vec<_>>(), |order| {
        let value: usize = order.iter().enumerate().map(|(j, r)| (j + 1) * (r + 1)).sum();
        counts[value - least] += 1.0;
        total += 1.0;
    });
    counts.iter().map(|c| c / total).collect()
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x > 0.0) {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    out
}

/// The one-sided p-values of a trend over levels with different units (Jonckheere 1954, Terpstra 1952): the number of
/// pairs in order, ties by half, against `draws` random relabellings (add one). First: small when values rise.
pub fn jonckheere(levels: &[Vec<f64>], draws: Draws) -> Result<(f64, f64), Void> {
    if levels.len() < 3 {
        return Err(Void::NoUnits);
    }
    for level in levels {
        require(level, 1)?;
    }
    let mut all: Vec<f64> = levels.iter().flatten().copied().collect();
    let sizes: Vec<usize> = levels.iter().map(Vec::len).collect();
    let tie = ties::margin(all.iter().copied());
    let ranks = ties::midranks(&all, tie);
    all.clone_from(&ranks);
    let observed = ordered_pairs(&all, &sizes);
    let (mut up, mut down) = (1_u64, 1_u64);
    for mut draw in draws.each() {
        all.clone_from(&ranks);
        draw.shuffle(&mut all);
        let value = ordered_pairs(&all, &sizes);
        up += u64::from(value >= observed);
        down += u64::from(value <= observed);
    }
    let total = f64::from(draws.count) + 1.0;
    Ok((up as f64 / total, down as f64 / total))
}

/// Twice the pairs whose later value is larger, ties once.
fn ordered_pairs(values: &[f64], sizes: &[usize]) -> u64 {
    let mut score = 0;
    let mut start = 0;
    for size in sizes {
        let (before, group) = (&values[..start], &values[start..start + size]);
        for value in group {
            score += before.iter().map(|b| 2 * u64::from(b < value) + u64::from(b == value)).sum::<u64>();
        }
        start += size;
    }
    score
}
