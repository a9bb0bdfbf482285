//! Correlation of two selections joined per unit.
//!
//! At bound 0 one side is permuted: exactly to nine units, by random orders beyond. Any other bound, and the interval, is
//! normal on Fisher's z scale: variance (1 + r²/2)/(n − 3) for Spearman (Bonett and Wright 2000), 0.437/(n − 4) for
//! Kendall (Fieller, Hartley and Pearson 1957), 1/(n − 3) for Pearson. The z approximation needs eight units. Absent:
//! partial correlations.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::reference::{BINS, Reference};
use crate::rng::Draws;
use crate::units::require;
use crate::{sum, ties};

/// Which correlation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coefficient {
    /// Spearman's ρ: the correlation of midranks.
    #[default]
    Spearman,
    /// Kendall's τ-b.
    Kendall,
    /// The product-moment correlation.
    Pearson,
}

/// The largest n at which all n! orders are enumerated.
pub const EXACT_ORDERS: usize = 9;

/// The fewest units at which a bound other than 0 can be asked.
pub const LEAST_FOR_BOUNDS: usize = 8;

/// Two joined selections, one pair of numbers per unit.
#[derive(Clone, Debug)]
pub struct Joined {
    first: Vec<f64>,
    second: Vec<f64>,
    coefficient: Coefficient,
}

impl Joined {
    /// Numbers that pair, at least 4; a constant side is [`Void::Undefined`].
    pub fn new(first: &[f64], second: &[f64], coefficient: Coefficient) -> Result<Joined, Void> {
        if first.len() != second.len() {
            return Err(Void::Unpaired);
        }
        let side = |values: &[f64]| {
            require(values, 4)?;
            let tie = ties::margin(values.iter().copied());
            if ties::all_equal(values, tie) {
                return Err(Void::Undefined);
            }
            Ok(match coefficient {
                Coefficient::Pearson => values.to_vec(),
                Coefficient::Spearman | Coefficient::Kendall => ties::midranks(values, tie),
            })
        };
        Ok(Joined { first: side(first)?, second: side(second)?, coefficient })
    }

    /// The coefficient, −1 to 1.
    pub fn coefficient(&self) -> Result<f64, Void> {
        match self.coefficient {
            Coefficient::Kendall => kendall(&self.first, &self.second),
            Coefficient::Spearman | Coefficient::Pearson => product_moment(&self.first, &self.second),
        }
    }

    /// The fit: permutation at bound 0, z elsewhere; `other_bounds` says that the claim asks such a bound, which needs
    /// eight units. A perfect correlation has no z interval: its ends are 1 and 1.
    pub fn fit(&self, draws: Draws, other_bounds: bool) -> Result<Fit, Void> {
        let n = self.first.len();
        if other_bounds && n < LEAST_FOR_BOUNDS {
            return Err(Void::BelowMinimumN);
        }
        let r = self.coefficient()?;
        let permuted = self.permuted(draws);
        let fit = Fit::student(StudentPart {
            method: Method::CorrelationPermutation,
            sample: Sample::One(n),
            centre: r.clamp(-1.0, 1.0).atanh(),
            error: self.standard_error(r),
            df: f64::INFINITY,
            scale: Scale::FisherZ,
            tie: 1e-12,
        });
        let (at_most, at_least) = (permuted.at_most, permuted.at_least);
        let reference = permuted.spread(r.clamp(-1.0, 1.0));
        Ok(fit.with_test_at(0.0, at_most, at_least, permuted.draws).with_reference(reference))
    }

    /// The standard error on the z scale, infinite below the least n of the formula.
    fn standard_error(&self, r: f64) -> f64 {
        let n = self.first.len() as f64;
        let variance = match self.coefficient {
            Coefficient::Spearman => (1.0 + 0.5 * r * r) / (n - 3.0),
            Coefficient::Kendall => 0.437 / (n - 4.0),
            Coefficient::Pearson => 1.0 / (n - 3.0),
        };
        if variance > 0.0 { variance.sqrt() } else { f64::INFINITY }
    }

    /// A number that orders the permutations as the coefficient does.
    fn score(&self, order: &[usize]) -> f64 {
        match self.coefficient {
            Coefficient::Kendall => concordance(&self.first, &self.second, order) as f64,
            Coefficient::Spearman | Coefficient::Pearson => {
                sum::sum(self.first.iter().zip(order).map(|(x, i)| x * self.second[*i]))
            }
        }
    }

    /// What is taken from a score, and by what it is divided, to have the coefficient.
    fn carried_back(&self) -> (f64, f64) {
        match self.coefficient {
            Coefficient::Kendall => {
                let (in_x, in_y) = (untied(&self.first), untied(&self.second));
                (0.0, (in_x as f64 * in_y as f64).sqrt())
            }
            Coefficient::Spearman | Coefficient::Pearson => {
                let (x, y) = (sum::mean(&self.first), sum::mean(&self.second));
                let squares = |values: &[f64], mean: f64| sum::sum(values.iter().map(|v| (v - mean).powi(2)));
                let scale = (squares(&self.first, x) * squares(&self.second, y)).sqrt();
                (self.first.len() as f64 * x * y, scale)
            }
        }
    }

    fn permuted(&self, draws: Draws) -> Permuted {
        let n = self.first.len();
        let mut order: Vec<usize> = (0..n).collect();
        let observed = self.score(&order);
        let margin =
            1e-12 * sum::sum(self.first.iter().zip(&self.second).map(|(a, b)| (a * b).abs())).max(1e-300);
        let (mut up, mut down, mut total) = (0_u64, 0_u64, 0_u64);
        let (shift, scale) = self.carried_back();
        let mut bins = vec![0_u64; BINS];
        let mut count = |score: f64| {
            let coefficient = (score - shift) / scale;
            bins[(((coefficient + 1.0) / 2.0 * BINS as f64).max(0.0) as usize).min(BINS - 1)] += 1;
            up += u64::from(score >= observed - margin);
            down += u64::from(score <= observed + margin);
            total += 1;
        };
        if n <= EXACT_ORDERS {
            every_order(&mut order, |order| count(self.score(order)));
            return Permuted::of((up, down, total), None, bins);
        }
        for mut draw in draws.each() {
            count(self.score(&draw.permutation(n)));
        }
        Permuted::of((up + 1, down + 1, total + 1), Some(draws.count), bins)
    }
}

struct Permuted {
    at_most: f64,
    at_least: f64,
    draws: Option<u32>,
    /// Orders by their coefficient, from −1 to 1.
    bins: Vec<u64>,
}

impl Permuted {
    fn of((up, down, total): (u64, u64, u64), draws: Option<u32>, bins: Vec<u64>) -> Permuted {
        let share = |count: u64| count as f64 / total as f64;
        Permuted { at_most: share(up), at_least: share(down), draws, bins }
    }

    /// The distribution of the coefficient.
    fn spread(&self, observed: f64) -> Option<Reference> {
        let total: u64 = self.bins.iter().sum();
        let shares = self.bins.iter().map(|count| *count as f64 / total as f64).collect();
        let sound = total > 0 && observed.is_finite();
        sound.then_some(Reference { bound: 0.0, observed, low: -1.0, high: 1.0, shares, draws: self.draws })
    }
}

/// Every order of the items (Heap's algorithm), the given one first.
pub(crate) fn every_order(items: &mut [usize], mut each: impl FnMut(&[usize])) {
    let n = items.len();
    let mut swapped = vec![0; n];
    each(items);
    let mut i = 1;
    while i < n {
        if swapped[i] < i {
            items.swap(if i % 2 == 0 { 0 } else { swapped[i] }, i);
            each(items);
            swapped[i] += 1;
            i = 1;
        } else {
            swapped[i] = 0;
            i += 1;
        }
    }
}

/// Pearson's correlation; 0/0 is [`Void::Undefined`].
pub(crate) fn product_moment(x: &[f64], y: &[f64]) -> Result<f64, Void> {
    let (mx, my) = (sum::mean(x), sum::mean(y));
    let pairs = || x.iter().map(|v| v - mx).zip(y.iter().map(|v| v - my));
    let xy = sum::sum(pairs().map(|(a, b)| a * b));
    let xx = sum::sum(pairs().map(|(a, _)| a * a));
    let yy = sum::sum(pairs().map(|(_, b)| b * b));
    if xx == 0.0 || yy == 0.0 { Err(Void::Undefined) } else { Ok((xy / (xx * yy).sqrt()).clamp(-1.0, 1.0)) }
}

/// Concordant − discordant pairs of x with the reordered y.
fn concordance(x: &[f64], y: &[f64], order: &[usize]) -> i64 {
    let mut score = 0;
    for i in 0..x.len() {
        for j in 0..i {
            let product = (x[i] - x[j]) * (y[order[i]] - y[order[j]]);
            score += i64::from(product > 0.0) - i64::from(product < 0.0);
        }
    }
    score
}

/// How many pairs of values differ.
fn untied(values: &[f64]) -> u64 {
    let before = |i: usize| values[..i].iter().filter(|other| **other != values[i]).count() as u64;
    (0..values.len()).map(before).sum()
}

/// τ-b: (concordant − discordant)/√(pairs untied in x · pairs untied in y).
pub(crate) fn kendall(x: &[f64], y: &[f64]) -> Result<f64, Void> {
    let (in_x, in_y) = (untied(x), untied(y));
    if in_x == 0 || in_y == 0 {
        return Err(Void::Undefined);
    }
    let order: Vec<usize> = (0..x.len()).collect();
    Ok(concordance(x, y, &order) as f64 / (in_x as f64 * in_y as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once() {
        let mut seen = std::collections::BTreeSet::new();
        every_order(&mut [0, 1, 2, 3], |order| assert!(seen.insert(order.to_vec())));
        assert_eq!(seen.len(), 24);
    }
}
