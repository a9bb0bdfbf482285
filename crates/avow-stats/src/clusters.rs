//! Units that are not independent: one number per cluster, and all-pairs statistics.
//!
//! What is sampled independently (a family, a subject, a site, a base model) is the unit of inference: t over units that
//! share clusters covers 58 % instead of 95 %. A cluster becomes the mean of its units and the rule works on clusters. An
//! all-pairs value (the similarity of every two networks) has the network as its unit, and its spread comes from leaving
//! one network out. Absent: mixed models.

use crate::fit::{Fit, Scale, StudentPart};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::Draws;
use crate::units::{Units, require};
use crate::{sum, ties};

/// The mean of each cluster, clusters in the order of their first unit. One cluster alone is [`Void::BelowMinimumN`].
pub fn means(values: &[f64], clusters: &[usize]) -> Result<Units, Void> {
    if values.len() != clusters.len() {
        return Err(Void::Unpaired);
    }
    require(values, 1)?;
    let mut order: Vec<usize> = Vec::new();
    let mut members: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    for (value, cluster) in values.iter().zip(clusters) {
        let group = members.entry(*cluster).or_default();
        if group.is_empty() {
            order.push(*cluster);
        }
        group.push(*value);
    }
    if order.len() < 2 {
        return Err(Void::BelowMinimumN);
    }
    let means = order.iter().map(|cluster| sum::mean(&members[cluster])).collect();
    Units::with_tie(means, ties::margin(values.iter().copied()))
}

/// The mean of all units, θ = Σ n_g x̄_g/Σ n_g, by sign-flip of n_g(x̄_g − θ₀) over the clusters: `means` and `sizes` of
/// the clusters in their order. The interval is by the same flips. One cluster alone is [`Void::BelowMinimumN`].
pub fn weighted(means: &Units, sizes: &[usize], draws: Draws) -> Result<Fit, Void> {
    let values = means.values();
    if values.len() != sizes.len() || sizes.contains(&0) {
        return Err(Void::Unpaired);
    }
    require(values, 1)?;
    if values.len() < 2 {
        return Err(Void::BelowMinimumN);
    }
    if means.all_equal() {
        let tail = crate::units::equal_signs(values.len());
        let sample = Sample::One(values.len());
        return Ok(Fit::constant(Method::SignFlip, sample, values[0], tail, means.tie()));
    }
    let weights: Vec<f64> = sizes.iter().map(|size| *size as f64).collect();
    Ok(Fit::weighted_signs(values, &weights, draws, means.tie()))
}

/// The mean over all pairs of `n` units, with the standard error of leaving one unit out, t with n − 1 degrees of
/// freedom; n ≥ 5. `value(i, j)` for i < j.
pub fn all_pairs(n: usize, value: impl Fn(usize, usize) -> f64) -> Result<Fit, Void> {
    if n < Method::Jackknife.minimum_n() {
        return Err(if n == 0 { Void::NoUnits } else { Void::BelowMinimumN });
    }
    let pairs: Vec<(usize, usize, f64)> =
        (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| (i, j, value(i, j))).collect();
    if pairs.iter().any(|(_, _, v)| !v.is_finite()) {
        return Err(Void::NonFinite);
    }
    let mean = |left_out: Option<usize>| {
        let kept: Vec<f64> = pairs
            .iter()
            .filter(|(i, j, _)| Some(*i) != left_out && Some(*j) != left_out)
            .map(|p| p.2)
            .collect();
        sum::mean(&kept)
    };
    let tie = ties::margin(pairs.iter().map(|p| p.2));
    let without: Vec<f64> = (0..n).map(|unit| mean(Some(unit))).collect();
    let (sample, centre) = (Sample::One(n), mean(None));
    if ties::all_equal(&without, tie) {
        let tail = crate::units::equal_signs(n);
        return Ok(Fit::constant(Method::Jackknife, sample, centre, tail, tie));
    }
    let error = sum::deviation(&without) * (n - 1) as f64 / (n as f64).sqrt();
    Ok(Fit::student(StudentPart {
        method: Method::Jackknife,
        sample,
        centre,
        error,
        df: (n - 1) as f64,
        scale: Scale::Identity,
        tie,
    }))
}
