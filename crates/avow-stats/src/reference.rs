//! The distribution that an estimate would have where the bound of a claim is true: what a test compares it with, in a
//! form that can be drawn.
//!
//! The verdict needs none of it. It is computed when it is asked for, from what the fit keeps: for relabelling tests
//! from the relabellings themselves, for t and z from the standard error that was observed, for a share from the
//! binomial distribution. Absent: methods whose p-value comes from no distribution of the estimate (ranks, resampling,
//! sequential ones), and claims with two bounds.

/// How many bins there are.
pub const BINS: usize = 40;
/// The largest number of random draws that a picture is made from; the test itself makes more.
pub(crate) const DRAWN: u32 = 19_999;

/// A histogram of the estimate where the bound is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The bound.
    pub bound: f64,
    /// The estimate.
    pub observed: f64,
    /// Where the first bin begins.
    pub low: f64,
    /// Where the last bin ends.
    pub high: f64,
    /// The share of the distribution in each bin, all equally wide; the outermost hold what lies beyond them.
    pub shares: Vec<f64>,
    /// Random draws, where it is made of draws.
    pub draws: Option<u32>,
}

impl Reference {
    /// Of equally likely values. `None` where they and the estimate are all one number, or one is not finite.
    pub(crate) fn of_values(
        bound: f64,
        observed: f64,
        values: &[f64],
        draws: Option<u32>,
    ) -> Option<Reference> {
        let weighted: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        Reference::of_weighted(bound, observed, &weighted, draws)
    }

    /// Of values with weights.
    pub(crate) fn of_weighted(
        bound: f64,
        observed: f64,
        values: &[(f64, f64)],
        draws: Option<u32>,
    ) -> Option<Reference> {
        let all = || values.iter().map(|(value, _)| *value).chain([observed]);
        let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let total: f64 = values.iter().map(|(_, weight)| weight).sum();
        if !(high > low && (high - low).is_finite() && total > 0.0) || all().any(f64::is_nan) {
            return None;
        }
        let mut shares = vec![0.0; BINS];
        for (value, weight) in values {
            let place = (value - low) / (high - low) * BINS as f64;
            shares[(place as usize).min(BINS - 1)] += weight / total;
        }
        Some(Reference { bound, observed, low, high, shares, draws })
    }

    /// Of a continuous distribution by its cumulative probabilities, between two ends.
    pub(crate) fn of_probabilities(
        bound: f64,
        observed: f64,
        (low, high): (f64, f64),
        below: impl Fn(f64) -> f64,
    ) -> Option<Reference> {
        let (low, high) = (low.min(observed), high.max(observed));
        if !(high > low && (high - low).is_finite()) {
            return None;
        }
        let edge = |i: usize| low + (high - low) * i as f64 / BINS as f64;
        let cumulated = |i: usize| match i {
            0 => 0.0,
            BINS => 1.0,
            _ => below(edge(i)),
        };
        let shares: Vec<f64> = (0..BINS).map(|i| (cumulated(i + 1) - cumulated(i)).max(0.0)).collect();
        let sound = shares.iter().all(|share| share.is_finite());
        sound.then_some(Reference { bound, observed, low, high, shares, draws: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Region, Units, correlation, difference, rng};

    fn draws(count: u32) -> rng::Draws {
        rng::Draws { key: rng::Key([5; 32]), count }
    }

    /// The share of the bins that lie at or beyond the estimate: the p-value, up to the width of a bin.
    fn beyond(reference: &Reference) -> f64 {
        let width = (reference.high - reference.low) / BINS as f64;
        let ends = |i: usize| reference.low + width * (i as f64 + 1.0 + 1e-6);
        let reaches = |i: &usize| ends(*i) >= reference.observed;
        (0..BINS).filter(reaches).map(|i| reference.shares[i]).sum()
    }

    #[test]
    fn every_sign_flip_stands_in_it_once() {
        let fit = Units::of(&[1.0, 2.0, 4.0]).unwrap().signs(draws(99)).unwrap();
        let reference = fit.reference(0.0).unwrap();
        // Means of ±1 ±2 ±4 are −7/3, −5/3, −1, −1/3 and their mirror images, an eighth each.
        let filled: Vec<f64> = reference.shares.iter().copied().filter(|share| *share > 0.0).collect();
        assert_eq!(filled, [0.125; 8]);
        assert_eq!((reference.low, reference.high), (-7.0 / 3.0, 7.0 / 3.0));
        assert!((beyond(&reference) - fit.p_at_most(0.0)).abs() < 1e-12);
        // About another bound the deviations from it are flipped.
        let shifted = fit.reference(1.0).unwrap();
        assert!((shifted.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((shifted.low - (1.0 - 4.0 / 3.0)).abs() < 1e-12, "{}", shifted.low);
    }

    #[test]
    fn relabellings_orders_and_draws_agree_with_the_p_value() {
        let (first, second) = ([3.1, 2.7, 3.9, 3.3, 2.9], [2.0, 2.2, 3.0, 2.4, 1.8]);
        let arms = difference::permutation(&first, &second, draws(99)).unwrap();
        let reference = arms.reference(0.0).unwrap();
        assert!((beyond(&reference) - arms.p_at_most(0.0)).abs() < 0.02, "{reference:?}");
        let many: Vec<f64> = (0..30).map(|i| 0.2 + f64::from(i % 7) - 3.0).collect();
        let fit = Units::of(&many).unwrap().signs(draws(9_999)).unwrap();
        let reference = fit.reference(0.0).unwrap();
        assert_eq!(reference.draws, Some(9_999));
        assert!((beyond(&reference) - fit.p_at_most(0.0)).abs() < 0.1);
        let pair = correlation::Joined::new(&first, &second, correlation::Coefficient::Pearson).unwrap();
        let fit = pair.fit(draws(99), false).unwrap();
        let reference = fit.reference(0.0).unwrap();
        assert!((reference.observed - fit.estimate()).abs() < 1e-12);
        assert!((beyond(&reference) - fit.p_at_most(0.0)).abs() < 0.05, "{reference:?}");
        // Another bound has no permutation; the z that decides there has a distribution of its own.
        assert!(fit.reference(0.3).is_some_and(|reference| reference.draws.is_none()));
    }

    #[test]
    fn t_and_shares_have_theirs_and_two_bounds_none() {
        let fit = Units::of(&[1.0, 2.0, 3.0, 5.0]).unwrap().t().unwrap();
        let reference = fit.reference(1.0).unwrap();
        assert!((reference.shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((beyond(&reference) - fit.p_at_most(1.0)).abs() < 0.05);
        let above = Claim::new(Region::above(1.0)).test(fit.clone());
        assert_eq!(above.reference(), Some(reference));
        let between = Claim::new(Region::Between { low: 0.0, high: 9.0 }).test(fit);
        assert_eq!(between.reference(), None);
        let equal = Units::of(&[2.0, 2.0, 2.0]).unwrap().t().unwrap();
        assert_eq!(equal.reference(0.0), None, "what does not vary has no distribution");
    }
}
