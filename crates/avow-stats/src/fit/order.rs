//! Order statistics of a median.
//!
//! θ ≤ b is tested by counting the units above b, which is binomial with p = ½ when b is a median; values equal
//! to b count against. The interval runs from the k-th smallest to the k-th largest unit.

use super::Model;
use crate::level::Level;
use crate::special::binomial;

#[derive(Clone, Debug)]
pub(crate) struct Order {
    sorted: Vec<f64>,
}

impl Order {
    pub(crate) fn new(values: &[f64]) -> Order {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Order { sorted }
    }

    fn n(&self) -> u64 {
        self.sorted.len() as u64
    }

    /// The mean of the two middle values (the middle value of an odd number).
    pub(crate) fn median(&self) -> f64 {
        let n = self.sorted.len();
        0.5 * (self.sorted[(n - 1) / 2] + self.sorted[n / 2])
    }
}

impl Model for Order {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        let not_above = self.sorted.partition_point(|v| *v <= bound + tie) as u64;
        binomial::at_least(self.n() - not_above, self.n(), 0.5)
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        let below = self.sorted.partition_point(|v| *v < bound - tie) as u64;
        binomial::at_least(below, self.n(), 0.5)
    }

    /// From the k-th smallest to the k-th largest, k the largest with P(Bin(n, ½) ≤ k − 1) ≤ a/2.
    fn interval(&self, error: Level) -> (f64, f64) {
        let admitted = |k: u64| error.admits(2.0 * binomial::at_most(k - 1, self.n(), 0.5));
        // The admitted k are 1 … k, so halving finds the last.
        let (mut k, mut refused) = (0, self.n() / 2 + 1);
        while refused - k > 1 {
            let middle = k + (refused - k) / 2;
            if admitted(middle) { k = middle } else { refused = middle }
        }
        if k == 0 {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let k = usize::try_from(k).expect("at most the number of values");
        (self.sorted[k - 1], self.sorted[self.sorted.len() - k])
    }

    fn no_variation(&self, tie: f64) -> bool {
        self.sorted.last().zip(self.sorted.first()).is_some_and(|(high, low)| high - low <= tie)
    }
}
