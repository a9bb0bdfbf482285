//! What a relabelling test relabels, kept so that the distribution of its estimate under a bound can be drawn.
//!
//! The tests themselves need typical values only, which say what the p-value of every bound is and not how the estimate
//! would be spread. So the relabelled estimates are made here again, about the bound that is asked for.

use std::sync::Arc;

use super::EXACT_SIGNS;
use super::typical::subset_sums;
use crate::difference::{EXACT_RELABELLINGS, relabellings};
use crate::reference::{DRAWN, Reference};
use crate::rng::Draws;
use crate::sum::sum;

/// What is relabelled.
#[derive(Clone, Debug)]
pub(crate) enum Relabelled {
    /// The signs of one sample.
    Signs(Arc<[f64]>, Option<Draws>),
    /// The arms of two.
    Arms(Arc<[f64]>, Arc<[f64]>, Option<Draws>),
}

impl Relabelled {
    /// The distribution of the estimate where the bound is true.
    pub(crate) fn reference(&self, bound: f64) -> Option<Reference> {
        match self {
            Relabelled::Signs(values, draws) => {
                let gaps: Vec<f64> = values.iter().map(|value| value - bound).collect();
                let n = gaps.len() as f64;
                let observed = bound + sum(gaps.iter().copied()) / n;
                let draws = drawn(*draws);
                let means = match draws {
                    None if gaps.len() <= EXACT_SIGNS => every_sign(&gaps, bound),
                    None => return None,
                    Some(draws) => random_signs(&gaps, bound, draws),
                };
                Reference::of_values(bound, observed, &means, draws.map(|draws| draws.count))
            }
            Relabelled::Arms(first, second, draws) => {
                let moved: Vec<f64> = first.iter().map(|value| value - bound).collect();
                let arms = Arms::new(&moved, second, bound);
                let draws = drawn(*draws);
                let gaps = match draws {
                    None if relabellings(first.len(), second.len()) <= EXACT_RELABELLINGS => arms.every(),
                    None => return None,
                    Some(draws) => arms.random(draws),
                };
                Reference::of_values(bound, arms.gap(0.0), &gaps, draws.map(|draws| draws.count))
            }
        }
    }
}

/// As many of the draws as a picture needs.
fn drawn(draws: Option<Draws>) -> Option<Draws> {
    draws.map(|draws| Draws { count: draws.count.min(DRAWN), ..draws })
}

/// The mean of every flip of the gaps, from the sums of subsets: flipping a subset takes its sum away twice.
fn every_sign(gaps: &[f64], bound: f64) -> Vec<f64> {
    let (first, second) = gaps.split_at(gaps.len() / 2);
    let (outer, inner) = (subset_sums(first), subset_sums(second));
    let (total, n) = (sum(gaps.iter().copied()), gaps.len() as f64);
    let mean = |flipped: f64| bound + (total - 2.0 * flipped) / n;
    outer.iter().flat_map(|left| inner.iter().map(move |right| mean(left + right))).collect()
}

fn random_signs(gaps: &[f64], bound: f64, draws: Draws) -> Vec<f64> {
    let flipped =
        |mut draw: crate::rng::Draw| sum(gaps.iter().map(|gap| if draw.flip() { -*gap } else { *gap }));
    draws.each().map(|draw| bound + flipped(draw) / gaps.len() as f64).collect()
}

/// Two arms between which there is no difference where the bound is true.
struct Arms<'a> {
    first: &'a [f64],
    second: &'a [f64],
    bound: f64,
    sums: (f64, f64),
}

impl<'a> Arms<'a> {
    fn new(first: &'a [f64], second: &'a [f64], bound: f64) -> Arms<'a> {
        let sums = (sum(first.iter().copied()), sum(second.iter().copied()));
        Arms { first, second, bound, sums }
    }

    /// The difference of means after units with this much less in them have come into the first arm.
    fn gap(&self, lost: f64) -> f64 {
        let (n, m) = (self.first.len() as f64, self.second.len() as f64);
        self.bound + (self.sums.0 - lost) / n - (self.sums.1 + lost) / m
    }

    fn every(&self) -> Vec<f64> {
        let (outer, inner) = (subset_sums(self.first), subset_sums(self.second));
        let mut by_size: Vec<Vec<f64>> = vec![Vec::new(); self.second.len() + 1];
        for (set, total) in inner.iter().enumerate() {
            by_size[set.count_ones() as usize].push(*total);
        }
        let mut gaps = Vec::new();
        for (set, total) in outer.iter().enumerate() {
            let came = by_size.get(set.count_ones() as usize).into_iter().flatten();
            gaps.extend(came.map(|came| self.gap(total - came)));
        }
        gaps
    }

    fn random(&self, draws: Draws) -> Vec<f64> {
        let n = self.first.len();
        let value = |i: usize| if i < n { self.first[i] } else { self.second[i - n] };
        let lost = |mut draw: crate::rng::Draw| {
            let order = draw.permutation(n + self.second.len());
            self.sums.0 - sum(order[..n].iter().map(|i| value(*i)))
        };
        draws.each().map(|draw| self.gap(lost(draw))).collect()
    }
}
