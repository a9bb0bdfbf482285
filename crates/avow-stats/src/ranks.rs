//! Null distributions of rank statistics, by counting arrangements.
//!
//! Counts are sums of positive terms in doubles, so a cumulative probability is right to about 1e-14. Absent: tables
//! and approximations below the sizes given here.

use crate::fit::Counts;

/// The largest n at which the signed-rank statistic is counted; beyond it the normal approximation is used.
pub const EXACT_SIGNED_RANKS: usize = 60;

/// The largest n₁·n₂ at which the rank-sum statistic is counted.
pub const EXACT_RANK_SUM: usize = 2_500;

/// The signed-rank statistic of n untied values: how many Walsh averages are negative under symmetry about 0.
pub(crate) fn signed_ranks(n: usize) -> Counts {
    let all = n * (n + 1) / 2;
    if n > EXACT_SIGNED_RANKS {
        let (n, all) = (n as f64, all as f64);
        return Counts::Normal {
            mean: 0.5 * all,
            deviation: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
        };
    }
    // Subsets of {1 … n} by their sum; halving at each step keeps the weights probabilities.
    let mut weights = vec![0.0; all + 1];
    weights[0] = 1.0;
    for rank in 1..=n {
        for total in (0..=all).rev() {
            let with = if total >= rank { weights[total - rank] } else { 0.0 };
            weights[total] = 0.5 * (weights[total] + with);
        }
    }
    Counts::from_weights(&weights)
}

/// The rank-sum statistic U of two untied arms: how many of the n₁n₂ differences are negative.
pub(crate) fn rank_sum(first: usize, second: usize) -> Counts {
    let pairs = first * second;
    if pairs > EXACT_RANK_SUM {
        let all = (first + second + 1) as f64;
        return Counts::Normal { mean: 0.5 * pairs as f64, deviation: (pairs as f64 * all / 12.0).sqrt() };
    }
    // f(i, j, u): arrangements of i and j with u inversions; the last of all belongs to one arm or the other.
    // The row of one i is kept for every j.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; second + 1];
    for i in 1..=first {
        let mut next = vec![vec![1.0]];
        for j in 1..=second {
            let share = i as f64 / (i + j) as f64;
            let mut weights = vec![0.0; i * j + 1];
            for (u, weight) in row[j].iter().enumerate() {
                weights[u + j] += share * weight;
            }
            for (u, weight) in next[j - 1].iter().enumerate() {
                weights[u] += (1.0 - share) * weight;
            }
            next.push(weights);
        }
        row = next;
    }
    Counts::from_weights(&row[second])
}

/// P(sum of the ranks of `chosen` units ≤ and ≥ the observed) over all choices, ranks given doubled so that midranks
/// are whole.
pub(crate) fn chosen_sum(doubled: &[usize], chosen: usize, observed: usize) -> (f64, f64) {
    let most: usize = doubled.iter().sum();
    let mut ways = vec![vec![0.0_f64; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in doubled.iter().enumerate() {
        for size in (1..=chosen.min(seen + 1)).rev() {
            let (smaller, larger) = ways.split_at_mut(size);
            for (total, way) in smaller[size - 1].iter().enumerate() {
                if *way > 0.0 {
                    larger[0][total + rank] += way;
                }
            }
        }
    }
    let all: f64 = ways[chosen].iter().sum();
    let at_most: f64 = ways[chosen][..=observed].iter().sum();
    let at_least: f64 = ways[chosen][observed..].iter().sum();
    (at_most / all, at_least / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_distributions_by_hand() {
        let signed = signed_ranks(3);
        // Subsets of {1, 2, 3} by sum: 1, 1, 1, 2, 1, 1, 1 of 8.
        assert!((signed.at_most(0) - 0.125).abs() < 1e-15);
        assert!((signed.at_most(3) - 0.625).abs() < 1e-15);
        let sum = rank_sum(2, 2);
        // U of 2 and 2: 1, 1, 2, 1, 1 of 6.
        assert!((sum.at_most(1) - 2.0 / 6.0).abs() < 1e-15);
        assert!((sum.at_most(4) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn choices_of_midranks() {
        // Ranks 1, 2.5, 2.5, 4; two of them sum to 3.5 or less in 2 of 6 ways.
        let (at_most, at_least) = chosen_sum(&[2, 5, 5, 8], 2, 7);
        assert!((at_most - 2.0 / 6.0).abs() < 1e-15 && (at_least - 1.0).abs() < 1e-15);
    }
}
