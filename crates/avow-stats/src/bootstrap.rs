//! Resampling of units: percentile, BCa and bootstrap-t, for a mean and for a difference of two means.
//!
//! B draws of n units with replacement, arms separately. Below ten units these intervals miss up to eight times too
//! often and are refused ([`Void::BelowMinimumN`]); below twenty they deserve a warning. Clusters are reduced to one
//! number each before they come here and need [`LEAST_CLUSTERS`]. Sources: Efron (1987), Hall (1992). Absent: minima,
//! maxima and extreme quantiles, for which resampling is inconsistent.

use crate::fit::{Bca, Fit, Typical};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::{Draw, Draws};
use crate::special::normal;
use crate::units::{Units, equal_signs, require};
use crate::{sum, ties};

/// The fewest units of each arm.
pub const LEAST_UNITS: usize = 10;

/// The fewest clusters.
pub const LEAST_CLUSTERS: usize = 20;

/// The fewest units for the median, whose resampled values are few.
pub const LEAST_FOR_MEDIAN: usize = 20;

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    0.5 * (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2])
}

/// The percentile bootstrap of the mean of units that are drawn within strata: `strata` names each unit's stratum by a number.
/// Each stratum keeps its size, so what differs between strata adds nothing to the interval. Ten units or more
/// ([`LEAST_UNITS`]), two or more in each stratum; else [`Void::BelowMinimumN`].
pub fn stratified(units: &Units, strata: &[usize], draws: Draws) -> Result<Fit, Void> {
    let values = units.values();
    if values.len() != strata.len() {
        return Err(Void::Unpaired);
    }
    require(values, LEAST_UNITS)?;
    let mut groups: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
    for (value, stratum) in values.iter().zip(strata) {
        groups.entry(*stratum).or_default().push(*value);
    }
    if groups.values().any(|group| group.len() < 2) {
        return Err(Void::BelowMinimumN);
    }
    let (sample, tie, estimate) = (Sample::One(values.len()), units.tie(), sum::mean(values));
    if groups.values().all(|group| ties::all_equal(group, tie)) {
        let tail = equal_signs(values.len());
        return Ok(Fit::constant(Method::Percentile, sample, estimate, tail, tie));
    }
    let one = |mut draw: Draw| {
        let mut chosen = Vec::with_capacity(values.len());
        for group in groups.values() {
            chosen.extend((0..group.len()).map(|_| group[draw.below(group.len() as u64) as usize]));
        }
        sum::mean(&chosen)
    };
    let model = Typical::resampled(draws.each().map(one).collect());
    Ok(Fit::new(estimate, Method::Percentile, sample, tie, model))
}

/// One arm or two whose means are compared.
struct Arms<'a> {
    arms: Vec<&'a [f64]>,
    tie: f64,
}

impl Arms<'_> {
    /// Mean, or first mean − second mean.
    fn statistic(arms: &[Vec<f64>]) -> f64 {
        let means = arms.iter().map(|arm| sum::mean(arm));
        means.reduce(|first, second| first - second).unwrap_or(f64::NAN)
    }

    /// √Σs²/n over the arms.
    fn standard_error(arms: &[Vec<f64>]) -> f64 {
        sum::norm(arms.iter().map(|arm| sum::deviation(arm) / (arm.len() as f64).sqrt()).collect::<Vec<_>>())
    }

    fn owned(&self) -> Vec<Vec<f64>> {
        self.arms.iter().map(|arm| arm.to_vec()).collect()
    }

    fn resample(&self, draw: &mut Draw, into: &mut [Vec<f64>]) {
        for (arm, chosen) in self.arms.iter().zip(into) {
            for place in chosen.iter_mut() {
                *place = arm[draw.below(arm.len() as u64) as usize];
            }
        }
    }

    fn sample(&self) -> Sample {
        match self.arms.as_slice() {
            [first, second] => Sample::Two(first.len(), second.len()),
            one => Sample::One(one.iter().map(|arm| arm.len()).sum()),
        }
    }

    fn each<T>(&self, draws: Draws, of: impl Fn(&[Vec<f64>]) -> T) -> Vec<T> {
        let mut chosen = self.owned();
        draws
            .each()
            .map(|mut draw| {
                self.resample(&mut draw, &mut chosen);
                of(&chosen)
            })
            .collect()
    }

    fn checked(self) -> Result<Self, Void> {
        for arm in &self.arms {
            require(arm, LEAST_UNITS)?;
        }
        Ok(self)
    }

    /// The point law where every arm is constant.
    fn point(&self, method: Method) -> Option<Fit> {
        self.arms.iter().all(|arm| ties::all_equal(arm, self.tie)).then(|| {
            let tail = match self.sample() {
                Sample::One(n) => equal_signs(n),
                Sample::Two(first, second) => 1.0 / crate::difference::relabellings(first, second),
            };
            Fit::constant(method, self.sample(), Arms::statistic(&self.owned()), tail, self.tie)
        })
    }

    fn percentile(self, draws: Draws) -> Result<Fit, Void> {
        let arms = self.checked()?;
        if let Some(point) = arms.point(Method::Percentile) {
            return Ok(point);
        }
        let model = Typical::resampled(arms.each(draws, Arms::statistic));
        let estimate = Arms::statistic(&arms.owned());
        Ok(Fit::new(estimate, Method::Percentile, arms.sample(), arms.tie, model))
    }

    fn bootstrap_t(self, draws: Draws) -> Result<Fit, Void> {
        let arms = self.checked()?;
        if let Some(point) = arms.point(Method::BootstrapT) {
            return Ok(point);
        }
        let (estimate, error) = (Arms::statistic(&arms.owned()), Arms::standard_error(&arms.owned()));
        // θ̂ − se·t* in place of t*, so that its order statistics are the ends; t* of no spread is infinite.
        let reflected = arms.each(draws, |chosen| {
            let (gap, spread) = (Arms::statistic(chosen) - estimate, Arms::standard_error(chosen));
            if spread > 0.0 {
                estimate - error * gap / spread
            } else if gap == 0.0 {
                estimate
            } else {
                -gap.signum() * f64::INFINITY
            }
        });
        let model = Typical::resampled(reflected);
        Ok(Fit::new(estimate, Method::BootstrapT, arms.sample(), arms.tie, model))
    }

    fn bca(self, draws: Draws) -> Result<Fit, Void> {
        let arms = self.checked()?;
        if let Some(point) = arms.point(Method::Bca) {
            return Ok(point);
        }
        let estimate = Arms::statistic(&arms.owned());
        let resampled = arms.each(draws, Arms::statistic);
        let acceleration = acceleration(&arms.arms)?;
        let model = bca_model(resampled, estimate, acceleration, arms.tie)?;
        Ok(Fit::new(estimate, Method::Bca, arms.sample(), arms.tie, model))
    }
}

/// z₀ from the share of resampled statistics below the estimate, equal ones by half. Infinite: [`Void::Undefined`].
fn bca_model(mut sorted: Vec<f64>, estimate: f64, acceleration: f64, tie: f64) -> Result<Bca, Void> {
    let count = |test: &dyn Fn(f64) -> bool| sorted.iter().filter(|v| test(**v)).count() as f64;
    let below = count(&|v| v < estimate - tie);
    let equal = count(&|v| (v - estimate).abs() <= tie);
    let bias = normal::quantile((below + 0.5 * equal) / sorted.len() as f64);
    if !bias.is_finite() {
        return Err(Void::Undefined);
    }
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(Bca { sorted, bias, acceleration })
}

/// A = Σδ³/(6(Σδ²)^{3/2}), δ from leaving one unit out: for a mean the deviation of the left-out value over n − 1,
/// and for two arms that times (n − 1)/n, with the sign of the arm.
fn acceleration(arms: &[&[f64]]) -> Result<f64, Void> {
    let (mut cubes, mut squares) = (Vec::new(), Vec::new());
    for (arm, sign) in arms.iter().zip([1.0, -1.0]) {
        let (centre, n) = (sum::mean(arm), arm.len() as f64);
        let scale = if arms.len() == 1 { n - 1.0 } else { n };
        for value in *arm {
            let influence = sign * (value - centre) / scale;
            cubes.push(influence.powi(3));
            squares.push(influence * influence);
        }
    }
    let spread = sum::sum(squares);
    if spread == 0.0 { Err(Void::Undefined) } else { Ok(sum::sum(cubes) / (6.0 * spread.powf(1.5))) }
}

impl Units {
    fn arms(&self) -> Arms<'_> {
        Arms { arms: vec![self.values()], tie: self.tie() }
    }

    /// The mean by the percentile bootstrap; n ≥ 10.
    pub fn percentile(&self, draws: Draws) -> Result<Fit, Void> {
        self.arms().percentile(draws)
    }

    /// The mean by BCa; n ≥ 10.
    pub fn bca(&self, draws: Draws) -> Result<Fit, Void> {
        self.arms().bca(draws)
    }

    /// The median by BCa; n ≥ 20. Where leaving any one unit out changes nothing: [`Void::Undefined`].
    pub fn median_bca(&self, draws: Draws) -> Result<Fit, Void> {
        require(self.values(), LEAST_FOR_MEDIAN)?;
        if let Some(point) = self.arms().point(Method::Bca) {
            return Ok(point);
        }
        let values = self.values();
        let estimate = median(values);
        let without = (0..values.len()).map(|left_out| {
            let others = values.iter().enumerate().filter(|(i, _)| *i != left_out);
            median(&others.map(|(_, value)| *value).collect::<Vec<f64>>())
        });
        let without: Vec<f64> = without.collect();
        let centre = sum::mean(&without);
        let spread = sum::sum(without.iter().map(|v| (centre - v).powi(2)));
        if spread == 0.0 {
            return Err(Void::Undefined);
        }
        let cubes = sum::sum(without.iter().map(|v| (centre - v).powi(3)));
        let resampled = self.arms().each(draws, |chosen| median(&chosen[0]));
        let model = bca_model(resampled, estimate, cubes / (6.0 * spread.powf(1.5)), self.tie())?;
        Ok(Fit::new(estimate, Method::Bca, Sample::One(values.len()), self.tie(), model))
    }

    /// The mean by the studentised bootstrap; n ≥ 10.
    pub fn bootstrap_t(&self, draws: Draws) -> Result<Fit, Void> {
        self.arms().bootstrap_t(draws)
    }
}

/// first − second by the percentile bootstrap, arms resampled separately; n ≥ 10 in each.
pub fn percentile(first: &[f64], second: &[f64], draws: Draws) -> Result<Fit, Void> {
    two(first, second).percentile(draws)
}

/// first − second by BCa; n ≥ 10 in each arm.
pub fn bca(first: &[f64], second: &[f64], draws: Draws) -> Result<Fit, Void> {
    two(first, second).bca(draws)
}

/// first − second by the studentised bootstrap; n ≥ 10 in each arm.
pub fn bootstrap_t(first: &[f64], second: &[f64], draws: Draws) -> Result<Fit, Void> {
    two(first, second).bootstrap_t(draws)
}

fn two<'a>(first: &'a [f64], second: &'a [f64]) -> Arms<'a> {
    Arms { arms: vec![first, second], tie: ties::margin(first.iter().chain(second).copied()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 8⁸ resamples of the standard differences by their exact weights, as a sorted list with repetitions
    /// would be too long: the quantiles are taken from the weighted list instead.
    #[test]
    fn bca_of_every_resample_is_the_tabulated_one() {
        let x = [0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910];
        let y = [0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904];
        let d: Vec<f64> = x.iter().zip(y).map(|(a, b)| a - b).collect();
        let mut weighted = Vec::new();
        compositions(8, 8, &mut Vec::new(), &mut |counts| {
            let total = sum::sum(counts.iter().zip(&d).map(|(c, v)| f64::from(*c) * v));
            let ways = (1..=8).product::<u32>() as f64
                / counts.iter().map(|c| (1..=*c).product::<u32>() as f64).product::<f64>();
            weighted.push((total / 8.0, ways / 8_f64.powi(8)));
        });
        weighted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let estimate = sum::mean(&d);
        let below: f64 = weighted.iter().filter(|(v, _)| *v < estimate - 1e-12).map(|(_, w)| w).sum();
        let equal: f64 = weighted.iter().filter(|(v, _)| (v - estimate).abs() <= 1e-12).map(|(_, w)| w).sum();
        let model = Bca {
            sorted: Vec::new(),
            bias: normal::quantile(below + 0.5 * equal),
            acceleration: acceleration(&[&d]).unwrap(),
        };
        let close = |have: f64, want: f64| assert!((have / want - 1.0).abs() < 1e-9, "{have} {want}");
        close(model.bias, -0.01392694639);
        close(model.acceleration, -0.01640360645);
        let z = normal::quantile(0.025);
        let levels = [model.level(z).unwrap(), model.level(-z).unwrap()];
        close(levels[0], 0.0199941853);
        close(levels[1], 0.9693904959);
        let quantile = |level: f64| {
            let mut running = 0.0;
            weighted
                .iter()
                .find(|(_, w)| {
                    running += w;
                    running >= level - 1e-13
                })
                .unwrap()
                .0
        };
        close(quantile(levels[0]), 0.00325);
        close(quantile(levels[1]), 0.0105);
        close(quantile(0.025), 0.0035);
        close(quantile(0.975), 0.010625);
    }

    fn compositions(left: u32, places: usize, counts: &mut Vec<u32>, each: &mut impl FnMut(&[u32])) {
        if places == 1 {
            counts.push(left);
            each(counts);
            counts.pop();
            return;
        }
        for count in 0..=left {
            counts.push(count);
            compositions(left - count, places - 1, counts, each);
            counts.pop();
        }
    }
}
