//! Whether pairs of values come from one distribution: what was recorded, and what came out when it was made again.
//!
//! Where both come from the same distribution, each pair may be exchanged without anything being changed. So the largest
//! distance between the two empirical distribution functions (Kolmogorov 1933, Smirnov 1939) is compared with what it is
//! over exchanges of the pairs: over all of them to twelve pairs, over random ones beyond. That holds whatever the pairs
//! are made of, also where each comes from a cell of its own. Absent: a claim about which way they differ.

use crate::reason::Void;
use crate::rng::Draws;
use crate::units::require;

/// The largest number of pairs of which every exchange is taken.
pub const EXACT_EXCHANGES: usize = 12;

/// What the comparison of two sets of values gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanged {
    /// Pairs.
    pub pairs: usize,
    /// The largest distance between the two distribution functions, 0 to 1.
    pub distance: f64,
    /// The share of exchanges with at least this distance.
    pub p: f64,
    /// The smallest p that so many pairs can give.
    pub smallest: f64,
}

/// Compares the first of each pair with the second. Fewer than two pairs: [`Void::BelowMinimumN`].
pub fn exchanged(first: &[f64], second: &[f64], draws: Draws) -> Result<Exchanged, Void> {
    if first.len() != second.len() {
        return Err(Void::Unpaired);
    }
    require(first, 2)?;
    require(second, 2)?;
    let pooled = Pooled::new(first, second);
    let n = first.len();
    let observed = pooled.distance(|_| false);
    // Distances are whole numbers of 1/n, so half of one is beyond rounding.
    let least = observed - 0.5 / n as f64;
    let (reached, total) = if n <= EXACT_EXCHANGES {
        let all = 1_u64 << n;
        let far = (0..all).filter(|set| pooled.distance(|pair| set >> pair & 1 == 1) >= least).count();
        (far as u64, all)
    } else {
        let far = draws.each().filter_map(|mut draw| {
            let flips: Vec<bool> = (0..n).map(|_| draw.flip()).collect();
            (pooled.distance(|pair| flips[pair]) >= least).then_some(())
        });
        (1 + far.count() as u64, u64::from(draws.count) + 1)
    };
    // Exchanging everything gives the same distance.
    let smallest = if n <= EXACT_EXCHANGES { 2.0 / total as f64 } else { 1.0 / total as f64 };
    Ok(Exchanged { pairs: n, distance: observed, p: reached as f64 / total as f64, smallest })
}

/// All values in order, each with its pair and its side.
struct Pooled {
    sorted: Vec<(f64, usize, bool)>,
    pairs: usize,
}

impl Pooled {
    fn new(first: &[f64], second: &[f64]) -> Pooled {
        let side = |values: &[f64], second: bool| -> Vec<(f64, usize, bool)> {
            values.iter().enumerate().map(|(pair, value)| (*value, pair, second)).collect()
        };
        let mut sorted = [side(first, false), side(second, true)].concat();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        Pooled { sorted, pairs: first.len() }
    }

    /// The distance where some pairs are exchanged.
    fn distance(&self, exchanged: impl Fn(usize) -> bool) -> f64 {
        let (mut gap, mut largest) = (0_i64, 0_i64);
        for equal in self.sorted.chunk_by(|a, b| a.0 == b.0) {
            for (_, pair, second) in equal {
                gap += if *second == exchanged(*pair) { 1 } else { -1 };
            }
            largest = largest.max(gap.abs());
        }
        largest as f64 / self.pairs as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    fn draws(count: u32) -> Draws {
        Draws { key: Key([9; 32]), count }
    }

    #[test]
    fn equal_values_are_one_distribution_and_shifted_ones_are_two() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let same = exchanged(&values, &values, draws(99)).unwrap();
        assert_eq!((same.distance, same.p), (0.0, 1.0));
        let shifted: Vec<f64> = values.iter().map(|value| value + 100.0).collect();
        let apart = exchanged(&values, &shifted, draws(99)).unwrap();
        assert_eq!((apart.distance, apart.p, apart.smallest), (1.0, 2.0 / 1024.0, 2.0 / 1024.0));
        assert_eq!(exchanged(&[1.0], &[2.0], draws(9)), Err(Void::BelowMinimumN));
        assert_eq!(exchanged(&[1.0, f64::NAN], &[2.0, 1.0], draws(9)), Err(Void::NonFinite));
    }

    #[test]
    fn the_error_rate_is_kept_also_where_every_pair_is_of_a_cell_of_its_own() {
        let mut rejected = 0;
        for run in 0..400_u64 {
            let mut draw = crate::rng::Draw::new(&Key([3; 32]), run);
            let cell = |i: usize| 10.0 * i as f64;
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for i in 0..9 {
                first.push(cell(i) + draw.normal());
                second.push(cell(i) + draw.normal());
            }
            rejected += u32::from(exchanged(&first, &second, draws(9)).unwrap().p <= 0.05);
        }
        assert!(rejected <= 30, "{rejected} of 400 at 5 %");
    }

    #[test]
    fn random_exchanges_agree_with_all_of_them() {
        let first: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 12)).collect();
        let second: Vec<f64> = first.iter().map(|value| 1.4 * value + 1.5).collect();
        let exact = exchanged(&first, &second, draws(1)).unwrap();
        let long = |values: &[f64]| [values, &[500.0, 600.0][..]].concat();
        let random = exchanged(&long(&first), &long(&second), draws(9_999)).unwrap();
        assert!((exact.p - random.p).abs() < 0.1, "{exact:?} {random:?}");
    }
}
