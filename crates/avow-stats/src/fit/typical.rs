//! Typical values: the means of subsets, whose ranks give the sign-flip test and its interval without search.
//!
//! Hartigan (1969): flipping the signs of d − θ₀ in a set A beats the data exactly when the mean of d over A is
//! at most θ₀. So among the means M of all nonempty subsets, the number at or below θ₀ is the number of flips
//! that beat the data, and the k-th smallest and k-th largest M end the interval. With random subsets (each
//! unit in with probability ½; an empty one counts in both tails) the same order statistics are valid for any
//! number of draws (Hemerik and Goeman 2018).
//!
//! Subset sums are taken from two tables of half the units each. A running sum over all 2²⁰ subsets would
//! collect more rounding than the margin ε allows.

use super::Model;
use super::relabelled::Relabelled;
use crate::level::Level;
use crate::reference::Reference;
use crate::rng::Draws;
use crate::sum::sum;

#[derive(Clone, Debug)]
pub(crate) struct Typical {
    /// Means of nonempty subsets, ascending.
    sorted: Vec<f64>,
    /// Empty subsets drawn; each counts in both tails.
    empty: u64,
    /// 2ⁿ, or draws + 1: the denominator of a p-value.
    total: u64,
    draws: Option<u32>,
    /// What was relabelled; nothing where values were resampled, or have weights.
    of: Option<Relabelled>,
}

impl Typical {
    /// All 2ⁿ − 1 subsets of at most [`super::EXACT_SIGNS`] values.
    pub(crate) fn exact(values: &[f64]) -> Typical {
        let (first, second) = values.split_at(values.len() / 2);
        let (outer, inner) = (subset_sums(first), subset_sums(second));
        let mut means = Vec::with_capacity(outer.len() * inner.len());
        for (left, left_sum) in outer.iter().enumerate() {
            for (right, right_sum) in inner.iter().enumerate() {
                let count = left.count_ones() + right.count_ones();
                means.push((left_sum + right_sum) / f64::from(count));
            }
        }
        // The first entry is the empty subset, 0/0.
        means.swap_remove(0);
        means.sort_unstable_by(f64::total_cmp);
        let total = 1 << values.len();
        let of = Some(Relabelled::Signs(values.into(), None));
        Typical { sorted: means, empty: 0, total, draws: None, of }
    }

    /// Random subsets, one per draw, each unit in by a fair flip in planned order.
    pub(crate) fn monte_carlo(values: &[f64], draws: Draws) -> Typical {
        let mut means = Vec::with_capacity(draws.count as usize);
        let mut empty = 0;
        let mut chosen = Vec::with_capacity(values.len());
        for mut draw in draws.each() {
            chosen.clear();
            chosen.extend(values.iter().copied().filter(|_| draw.flip()));
            if chosen.is_empty() {
                empty += 1;
            } else {
                means.push(sum(chosen.iter().copied()) / chosen.len() as f64);
            }
        }
        means.sort_unstable_by(f64::total_cmp);
        let total = u64::from(draws.count) + 1;
        let of = Some(Relabelled::Signs(values.into(), Some(draws)));
        Typical { sorted: means, empty, total, draws: Some(draws.count), of }
    }

    /// The same of values with weights: the weighted means of subsets. A flip of A beats the data at θ₀ exactly when the
    /// weighted mean over A is at most θ₀, so ranks give test and interval here too, without search.
    pub(crate) fn weighted(values: &[f64], weights: &[f64], draws: Draws) -> Typical {
        let products: Vec<f64> = values.iter().zip(weights).map(|(value, weight)| value * weight).collect();
        let count = values.len();
        if count <= super::EXACT_SIGNS {
            let half = |all: &[f64]| {
                let (first, second) = all.split_at(count / 2);
                (subset_sums(first), subset_sums(second))
            };
            let ((outer, inner), (heavy, light)) = (half(&products), half(weights));
            let mut means = Vec::with_capacity(outer.len() * inner.len());
            for (left, weight) in outer.iter().zip(&heavy) {
                let of_one = inner.iter().zip(&light).map(|(right, other)| (left + right) / (weight + other));
                means.extend(of_one);
            }
            means.swap_remove(0);
            means.sort_unstable_by(f64::total_cmp);
            return Typical { sorted: means, empty: 0, total: 1 << count, draws: None, of: None };
        }
        let (mut means, mut empty) = (Vec::with_capacity(draws.count as usize), 0);
        for mut draw in draws.each() {
            let chosen: Vec<usize> = (0..count).filter(|_| draw.flip()).collect();
            match chosen.is_empty() {
                true => empty += 1,
                false => means
                    .push(sum(chosen.iter().map(|i| products[*i])) / sum(chosen.iter().map(|i| weights[*i]))),
            }
        }
        means.sort_unstable_by(f64::total_cmp);
        Typical {
            sorted: means,
            empty,
            total: u64::from(draws.count) + 1,
            draws: Some(draws.count),
            of: None,
        }
    }

    /// Resampled statistics, whose order statistics end an interval as those of typical values do: rank
    /// floor(a(B + 1)/2) from either end.
    pub(crate) fn resampled(mut statistics: Vec<f64>) -> Typical {
        statistics.sort_unstable_by(f64::total_cmp);
        let draws = u32::try_from(statistics.len()).unwrap_or(u32::MAX);
        Typical { sorted: statistics, empty: 0, total: u64::from(draws) + 1, draws: Some(draws), of: None }
    }

    /// All C(n₁ + n₂, n₁) − 1 relabellings of two arms: mean_A − mean_B over equally large A ⊂ first, B ⊂ second.
    pub(crate) fn relabellings(first: &[f64], second: &[f64]) -> Typical {
        let (outer, inner) = (subset_sums(first), subset_sums(second));
        let mut by_size: Vec<Vec<f64>> = vec![Vec::new(); second.len() + 1];
        for (set, total) in inner.iter().enumerate() {
            by_size[set.count_ones() as usize].push(*total);
        }
        let mut gaps = Vec::new();
        for (set, total) in outer.iter().enumerate().skip(1) {
            let size = set.count_ones();
            for other in by_size.get(size as usize).into_iter().flatten() {
                gaps.push((total - other) / f64::from(size));
            }
        }
        gaps.sort_unstable_by(f64::total_cmp);
        let total = gaps.len() as u64 + 1;
        let of = Some(Relabelled::Arms(first.into(), second.into(), None));
        Typical { sorted: gaps, empty: 0, total, draws: None, of }
    }

    /// Random relabellings: of a random order of all units the first n₁ form the first arm; A are those that left
    /// it, B those that came.
    pub(crate) fn random_relabellings(first: &[f64], second: &[f64], draws: Draws) -> Typical {
        let (n, all) = (first.len(), first.len() + second.len());
        let mut gaps = Vec::with_capacity(draws.count as usize);
        let mut empty = 0;
        for mut draw in draws.each() {
            let order = draw.permutation(all);
            let mut arrived: Vec<usize> = order[..n].iter().copied().filter(|i| *i >= n).collect();
            let mut left: Vec<usize> = order[n..].iter().copied().filter(|i| *i < n).collect();
            if left.is_empty() {
                empty += 1;
                continue;
            }
            arrived.sort_unstable();
            left.sort_unstable();
            let gone = sum(left.iter().map(|i| first[*i]));
            let come = sum(arrived.iter().map(|i| second[*i - n]));
            gaps.push((gone - come) / left.len() as f64);
        }
        gaps.sort_unstable_by(f64::total_cmp);
        let total = u64::from(draws.count) + 1;
        let of = Some(Relabelled::Arms(first.into(), second.into(), Some(draws)));
        Typical { sorted: gaps, empty, total, draws: Some(draws.count), of }
    }
}

impl Model for Typical {
    fn reference(&self, bound: f64, _observed: f64) -> Option<Reference> {
        self.of.as_ref()?.reference(bound)
    }

    fn draws(&self) -> Option<u32> {
        self.draws
    }

    /// (1 + #{M ≤ bound + ε})/total.
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        let count = self.sorted.partition_point(|m| *m <= bound + tie) as u64;
        (1 + self.empty + count) as f64 / self.total as f64
    }

    /// (1 + #{M ≥ bound − ε})/total.
    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        let count = (self.sorted.len() - self.sorted.partition_point(|m| *m < bound - tie)) as u64;
        (1 + self.empty + count) as f64 / self.total as f64
    }

    /// From the k-th smallest to the k-th largest, k = floor(a·total/2); empty subsets stand at both ends.
    fn interval(&self, error: Level) -> (f64, f64) {
        let rank = error.half_floor(self.total).saturating_sub(self.empty);
        match usize::try_from(rank) {
            Ok(k) if k >= 1 && k <= self.sorted.len() => {
                (self.sorted[k - 1], self.sorted[self.sorted.len() - k])
            }
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }
}

/// The sum of every subset; bit i of the index says whether value i is in.
pub(super) fn subset_sums(values: &[f64]) -> Vec<f64> {
    (0..1_usize << values.len())
        .map(|set| sum(values.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, v)| *v)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;

    #[test]
    fn the_halves_cover_every_subset_once() {
        let typical = Typical::exact(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!((typical.sorted.len(), typical.total), (31, 32));
        assert_eq!(typical.sorted[0], 1.0);
        assert_eq!(typical.sorted[30], 16.0);
        assert!(typical.sorted.contains(&(31.0 / 5.0)));
    }

    #[test]
    fn empty_draws_count_in_both_tails() {
        let draws = Draws { key: Key([2; 32]), count: 4000 };
        let typical = Typical::monte_carlo(&[1.0, 2.0, 3.0], draws);
        assert!(typical.empty.abs_diff(500) < 130, "{}", typical.empty);
        let tail = (1 + typical.empty) as f64 / 4001.0;
        assert_eq!((typical.p_at_most(0.0, 0.0), typical.p_at_least(9.0, 0.0)), (tail, tail));
        // Too few ranks remain beyond the empty ones, so no finite interval exists.
        assert_eq!(typical.interval("0.05".parse().unwrap()).0, f64::NEG_INFINITY);
    }
}
