//! Pairwise values whose counts have a known null distribution: Walsh averages and pairwise differences.
//!
//! θ ≤ b is tested by how many of the values M lie at or below b, which has the distribution of the signed-rank or
//! the rank-sum statistic. The interval runs from the k-th smallest to the k-th largest M, k the number of counts c
//! with P(C ≤ c) ≤ a/2. Counting ties against the claim is the worst way of breaking them, so the test stays valid.

use super::Model;
use crate::level::Level;
use crate::special::normal;

/// The null distribution of a count from 0 to N, symmetric about N/2.
#[derive(Clone, Debug)]
pub(crate) enum Counts {
    /// P(C ≤ c) for c = 0 … N.
    Exact(Vec<f64>),
    /// Normal with continuity correction.
    Normal {
        /// N/2.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
}

impl Counts {
    /// Cumulative probabilities from counts of equally likely arrangements, without overflow.
    pub(crate) fn from_weights(weights: &[f64]) -> Counts {
        let total = crate::sum::sum(weights.iter().copied());
        let mut running = 0.0;
        let cumulated = weights.iter().map(|w| {
            running += w;
            (running / total).min(1.0)
        });
        Counts::Exact(cumulated.collect())
    }

    /// P(C ≤ count).
    pub(crate) fn at_most(&self, count: usize) -> f64 {
        match self {
            Counts::Exact(table) => table.get(count).copied().unwrap_or(1.0),
            Counts::Normal { mean, deviation } => normal::below((count as f64 + 0.5 - mean) / deviation),
        }
    }

    /// #{c : P(C ≤ c) ≤ a/2}.
    fn rank(&self, error: Level) -> usize {
        let admitted = |count: usize| error.admits(2.0 * self.at_most(count));
        match self {
            Counts::Exact(table) => (0..table.len()).take_while(|count| admitted(*count)).count(),
            Counts::Normal { mean, deviation } => {
                let last = mean - 0.5 + deviation * normal::quantile(0.5 * error.to_f64());
                let mut rank = last.floor().max(-1.0) as i64 + 1;
                // The closed form is right up to its own rounding.
                while rank > 0 && !admitted(rank as usize - 1) {
                    rank -= 1;
                }
                rank as usize
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Pairwise values, ascending.
    sorted: Vec<f64>,
    counts: Counts,
}

impl Counted {
    pub(crate) fn new(mut values: Vec<f64>, counts: Counts) -> Counted {
        values.sort_unstable_by(f64::total_cmp);
        Counted { sorted: values, counts }
    }

    /// The mean of the two middle values.
    pub(crate) fn median(&self) -> f64 {
        let n = self.sorted.len();
        0.5 * (self.sorted[(n - 1) / 2] + self.sorted[n / 2])
    }
}

impl Model for Counted {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        self.counts.at_most(self.sorted.partition_point(|m| *m <= bound + tie))
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        let below = self.sorted.partition_point(|m| *m < bound - tie);
        self.counts.at_most(self.sorted.len() - below)
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        match self.counts.rank(error) {
            k if k >= 1 && k <= self.sorted.len() => (self.sorted[k - 1], self.sorted[self.sorted.len() - k]),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    fn no_variation(&self, tie: f64) -> bool {
        self.sorted.last().zip(self.sorted.first()).is_some_and(|(high, low)| high - low <= tie)
    }
}
