//! When two numbers count as equal, and ranks under that rule.
//!
//! Differences of decimals are inexact: 0.912 − 0.901 and 0.908 − 0.897 are not the same double. A comparison
//! that enters a p-value is therefore made with a margin of 1e-12 times the largest magnitude among the values
//! of the claim, always towards the larger p. Absent: any tolerance a user could tune.

/// The margin ε = 1e-12 · max|value| under which values of a claim are equal.
pub fn margin(values: impl IntoIterator<Item = f64>) -> f64 {
    1e-12 * values.into_iter().fold(0.0, |largest: f64, value| largest.max(value.abs()))
}

/// Whether all values are equal under `margin` (true for none).
pub fn all_equal(values: &[f64], margin: f64) -> bool {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low <= margin || values.is_empty()
}

/// Ranks from 1; values within `margin` of the smallest of their group share the mean of their ranks.
pub fn midranks(values: &[f64], margin: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let limit = values[order[start]] + margin;
        let tied = order[start..].iter().take_while(|i| values[**i] <= limit).count().max(1);
        // Ranks start + 1 … start + tied have this mean.
        let shared = start as f64 + (tied as f64 + 1.0) / 2.0;
        for index in &order[start..start + tied] {
            ranks[*index] = shared;
        }
        start += tied;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties_under_the_margin() {
        let values = [0.3, 0.1 + 0.2, 0.1, 0.5];
        assert_eq!(midranks(&values, margin(values)), [2.5, 2.5, 1.0, 4.0]);
        assert_eq!(midranks(&values, 0.0), [2.0, 3.0, 1.0, 4.0]);
        assert_eq!(midranks(&[], 0.0), [0.0; 0]);
    }

    #[test]
    fn rounding_is_no_variation() {
        let gaps = [0.3 - 0.2, 0.4 - 0.3, 0.9 - 0.8];
        assert!(gaps[0] != gaps[1] && all_equal(&gaps, margin([0.9])));
        assert!(!all_equal(&gaps, 0.0));
    }
}
