//! Agreement of raters: Cohen's κ of two, Fleiss' κ of several.
//!
//! κ = (p_o − p_e)/(1 − p_e): agreement beyond chance. With skewed margins κ is low at high agreement, so p_o belongs
//! beside it. p_e = 1 is [`Void::Undefined`]. Absent: weighted κ of several raters, and Krippendorff's α.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::Draws;
use crate::sum;

/// How far apart two categories are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weighting {
    /// Any disagreement counts the same.
    #[default]
    None,
    /// Disagreement grows with the distance of ordered categories.
    Linear,
    /// It grows with the square of the distance.
    Quadratic,
}

impl Weighting {
    /// The weight of agreement between categories i and j of k, 1 on the diagonal.
    fn weight(self, i: usize, j: usize, k: usize) -> f64 {
        let distance = i.abs_diff(j) as f64 / (k - 1).max(1) as f64;
        match self {
            Weighting::None => f64::from(u8::from(i == j)),
            Weighting::Linear => 1.0 - distance,
            Weighting::Quadratic => 1.0 - distance * distance,
        }
    }
}

/// The fewest items at which the large-sample standard error may decide.
pub const LEAST_ITEMS: usize = 30;

/// Two raters' judgements of the same items, as categories 0 … k − 1.
#[derive(Clone, Debug)]
pub struct TwoRaters {
    first: Vec<usize>,
    second: Vec<usize>,
    categories: usize,
    weighting: Weighting,
}

/// Observed and expected agreement, and κ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kappa {
    /// p_o.
    pub observed: f64,
    /// p_e, from the margins.
    pub expected: f64,
    /// κ.
    pub kappa: f64,
}

impl TwoRaters {
    /// At least two items and two categories; raters of different length are [`Void::Unpaired`].
    pub fn new(
        first: &[usize],
        second: &[usize],
        categories: usize,
        weighting: Weighting,
    ) -> Result<TwoRaters, Void> {
        if first.len() != second.len() {
            return Err(Void::Unpaired);
        }
        match first.len() {
            0 => return Err(Void::NoUnits),
            1 => return Err(Void::BelowMinimumN),
            _ => {}
        }
        if categories < 2 || first.iter().chain(second).any(|c| *c >= categories) {
            return Err(Void::Domain);
        }
        Ok(TwoRaters { first: first.to_vec(), second: second.to_vec(), categories, weighting })
    }

    /// The table of counts, first rater by row.
    pub fn table(&self) -> Vec<Vec<u64>> {
        let mut table = vec![vec![0; self.categories]; self.categories];
        for (a, b) in self.first.iter().zip(&self.second) {
            table[*a][*b] += 1;
        }
        table
    }

    /// κ with its parts.
    pub fn kappa(&self) -> Result<Kappa, Void> {
        let shares = Shares::of(&self.table(), self.weighting);
        shares.kappa().ok_or(Void::Undefined)
    }

    /// The fit with the large-sample standard error of Fleiss, Cohen and Everitt (1969), and at bound 0 the permutation
    /// of one rater. A bound other than 0 needs 30 items (`other_bounds`).
    pub fn fit(&self, draws: Draws, other_bounds: bool) -> Result<Fit, Void> {
        let n = self.first.len();
        if other_bounds && n < LEAST_ITEMS {
            return Err(Void::BelowMinimumN);
        }
        let shares = Shares::of(&self.table(), self.weighting);
        let kappa = shares.kappa().ok_or(Void::Undefined)?;
        let fit = normal_fit(Method::Kappa, n, kappa.kappa, shares.standard_error(&kappa));
        if other_bounds {
            return Ok(fit);
        }
        let (at_most, at_least) = self.permuted(draws);
        Ok(fit.with_test_at(0.0, at_most, at_least, Some(draws.count)))
    }

    /// Add-one p-values of κ ≤ 0 and κ ≥ 0. The margins do not move, so observed agreement orders as κ does.
    fn permuted(&self, draws: Draws) -> (f64, f64) {
        let agreement = |second: &[usize]| {
            sum::sum(
                self.first.iter().zip(second).map(|(a, b)| self.weighting.weight(*a, *b, self.categories)),
            )
        };
        let observed = agreement(&self.second);
        let margin = 1e-12 * self.first.len() as f64;
        let (mut up, mut down) = (1_u64, 1_u64);
        let mut second = self.second.clone();
        for mut draw in draws.each() {
            second.copy_from_slice(&self.second);
            draw.shuffle(&mut second);
            let value = agreement(&second);
            up += u64::from(value >= observed - margin);
            down += u64::from(value <= observed + margin);
        }
        let total = f64::from(draws.count) + 1.0;
        (up as f64 / total, down as f64 / total)
    }
}

fn normal_fit(method: Method, n: usize, centre: f64, error: f64) -> Fit {
    let part = StudentPart {
        method,
        sample: Sample::One(n),
        centre,
        // A perfect table has no spread of its own; then nothing is known about it.
        error: if error > 0.0 { error } else { f64::INFINITY },
        df: f64::INFINITY,
        scale: Scale::Identity,
        tie: 1e-12,
    };
    Fit::student(part)
}

/// A table as shares, with its margins and weights.
struct Shares {
    cells: Vec<Vec<f64>>,
    rows: Vec<f64>,
    columns: Vec<f64>,
    weights: Vec<Vec<f64>>,
    n: f64,
}

impl Shares {
    fn of(table: &[Vec<u64>], weighting: Weighting) -> Shares {
        let k = table.len();
        let n: u64 = table.iter().flatten().sum();
        let cells: Vec<Vec<f64>> =
            table.iter().map(|row| row.iter().map(|c| *c as f64 / n as f64).collect()).collect();
        let rows = cells.iter().map(|row| sum::sum(row.iter().copied())).collect();
        let columns = (0..k).map(|j| sum::sum(cells.iter().map(|row| row[j]))).collect();
        let weights = (0..k).map(|i| (0..k).map(|j| weighting.weight(i, j, k)).collect()).collect();
        Shares { cells, rows, columns, weights, n: n as f64 }
    }

    fn over(&self, of: impl Fn(usize, usize) -> f64) -> f64 {
        let k = self.cells.len();
        let of = &of;
        sum::sum((0..k).flat_map(|i| (0..k).map(move |j| of(i, j))))
    }

    fn kappa(&self) -> Option<Kappa> {
        let observed = self.over(|i, j| self.weights[i][j] * self.cells[i][j]);
        let expected = self.over(|i, j| self.weights[i][j] * self.rows[i] * self.columns[j]);
        let room = 1.0 - expected;
        (room > 1e-12).then(|| Kappa { observed, expected, kappa: (observed - expected) / room })
    }

    /// √(Σp(w − (w̄_i + w̄_j)(1 − κ))² − (κ − p_e(1 − κ))²)/((1 − p_e)√n).
    fn standard_error(&self, kappa: &Kappa) -> f64 {
        let k = self.cells.len();
        let left = 1.0 - kappa.kappa;
        let by_row: Vec<f64> =
            (0..k).map(|i| sum::sum((0..k).map(|j| self.weights[i][j] * self.columns[j]))).collect();
        let by_column: Vec<f64> =
            (0..k).map(|j| sum::sum((0..k).map(|i| self.weights[i][j] * self.rows[i]))).collect();
        let spread = self.over(|i, j| {
            let influence = self.weights[i][j] - (by_row[i] + by_column[j]) * left;
            self.cells[i][j] * influence * influence
        });
        let centre = kappa.kappa - kappa.expected * left;
        (spread - centre * centre).max(0.0).sqrt() / ((1.0 - kappa.expected) * self.n.sqrt())
    }
}

/// Fleiss' κ of several raters: counts of raters per item (row) and category (column), the same number of raters, at
/// least two, for every item.
pub fn fleiss(counts: &[Vec<u64>]) -> Result<f64, Void> {
    let raters: u64 = counts.first().ok_or(Void::NoUnits)?.iter().sum();
    if raters < 2 || counts.len() < 2 {
        return Err(Void::BelowMinimumN);
    }
    if counts.iter().any(|row| row.iter().sum::<u64>() != raters || row.len() != counts[0].len()) {
        return Err(Void::MissingUnits);
    }
    let (items, r) = (counts.len() as f64, raters as f64);
    let agreeing =
        counts.iter().map(|row| (sum::sum(row.iter().map(|c| (*c * c) as f64)) - r) / (r * (r - 1.0)));
    let observed = sum::sum(agreeing) / items;
    let share = |j: usize| sum::sum(counts.iter().map(|row| row[j] as f64)) / (items * r);
    let expected = sum::sum((0..counts[0].len()).map(|j| share(j) * share(j)));
    if 1.0 - expected <= 1e-12 { Err(Void::Undefined) } else { Ok((observed - expected) / (1.0 - expected)) }
}

/// Fleiss' κ with the standard error of leaving one item out, t with n − 1 degrees of freedom; n ≥ 5 items.
pub fn fleiss_fit(counts: &[Vec<u64>]) -> Result<Fit, Void> {
    let n = counts.len();
    let whole = fleiss(counts)?;
    if n < Method::Jackknife.minimum_n() {
        return Err(Void::BelowMinimumN);
    }
    let without = |item: usize| {
        let kept: Vec<Vec<u64>> =
            counts.iter().enumerate().filter(|(i, _)| *i != item).map(|(_, row)| row.clone()).collect();
        fleiss(&kept)
    };
    let left = (0..n).map(without).collect::<Result<Vec<f64>, Void>>()?;
    let error = sum::deviation(&left) * (n - 1) as f64 / (n as f64).sqrt();
    Ok(Fit::student(StudentPart {
        method: Method::Jackknife,
        sample: Sample::One(n),
        centre: whole,
        error: if error > 0.0 { error } else { f64::INFINITY },
        df: (n - 1) as f64,
        scale: Scale::Identity,
        tie: 1e-12,
    }))
}
