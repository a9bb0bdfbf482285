//! The worst group: the lowest (or highest) of several means, θ = min_g μ_g, by resampling units.
//!
//! The lowest of several noisy means is biased low, and the lowest of resampled ones twice, so the percentile interval of
//! min_g x̄*_g misses above up to 99 times in 100 where ten groups are equal (n = 20). Its lower end is safe, because
//! that bias only lengthens it, and is used. The upper end re-selects in each draw the group that deviates most for its
//! spread: T* = max_g (x̄_g − x̄*_g)/se*_g, and V* = min_g (x̄_g + T*·se_g). With probability 1 − a/2 every μ_g lies below
//! x̄_g + T·se_g at once, so the lowest does. The highest is the mirror. Twenty units or more in each group
//! ([`crate::bootstrap::LEAST_CLUSTERS`]). Absent: groups that share some units and not all.

use crate::bootstrap::LEAST_CLUSTERS;
use crate::fit::{Fit, Worst};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::{Draw, Draws};
use crate::units::{equal_signs, require};
use crate::{sum, ties};

/// The values of each group.
#[derive(Clone, Debug)]
pub struct Groups {
    columns: Vec<Vec<f64>>,
    /// Whether a unit has a value in every group, so that units are drawn whole.
    crossed: bool,
}

/// Mean and standard error of a mean.
type Spread = (f64, f64);

fn spread(values: &[f64]) -> Spread {
    (sum::mean(values), sum::deviation(values) / (values.len() as f64).sqrt())
}

impl Groups {
    /// Groups in each of which every unit has a value, in the order of the units.
    pub fn crossed(columns: Vec<Vec<f64>>) -> Result<Groups, Void> {
        if columns.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(Void::Unpaired);
        }
        Groups { columns, crossed: true }.checked()
    }

    /// Groups of units of their own.
    pub fn nested(columns: Vec<Vec<f64>>) -> Result<Groups, Void> {
        Groups { columns, crossed: false }.checked()
    }

    fn checked(self) -> Result<Groups, Void> {
        if self.columns.is_empty() {
            return Err(Void::NoUnits);
        }
        for column in &self.columns {
            require(column, LEAST_CLUSTERS)?;
        }
        Ok(self)
    }

    /// The lowest mean.
    pub fn lowest(&self, draws: Draws) -> Fit {
        let spreads: Vec<Spread> = self.columns.iter().map(|column| spread(column)).collect();
        let estimate = lowest(spreads.iter().map(|(mean, _)| *mean));
        let tie = ties::margin(self.columns.iter().flatten().copied());
        let least = self.columns.iter().map(Vec::len).min().unwrap_or(0);
        if self.columns.iter().all(|column| ties::all_equal(column, tie)) {
            let tail = equal_signs(least);
            return Fit::constant(Method::WorstGroup, Sample::One(least), estimate, tail, tie);
        }
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        let mut drawn = self.columns.clone();
        for mut draw in draws.each() {
            self.resample(&mut draw, &mut drawn);
            let again: Vec<Spread> = drawn.iter().map(|column| spread(column)).collect();
            lower.push(lowest(again.iter().map(|(mean, _)| *mean)));
            let deviation =
                spreads.iter().zip(&again).map(|(seen, again)| studentised(seen.0 - again.0, again.1));
            let most = deviation.fold(f64::NEG_INFINITY, f64::max);
            upper.push(lowest(spreads.iter().map(|(mean, error)| ahead(*mean, most, *error))));
        }
        lower.sort_unstable_by(f64::total_cmp);
        upper.sort_unstable_by(f64::total_cmp);
        Fit::new(estimate, Method::WorstGroup, Sample::One(least), tie, Worst { lower, upper })
    }

    /// The highest mean.
    pub fn highest(&self, draws: Draws) -> Fit {
        let negated = |column: &Vec<f64>| column.iter().map(|value| -value).collect();
        let mirrored = Groups { columns: self.columns.iter().map(negated).collect(), ..*self };
        mirrored.lowest(draws).negated()
    }

    fn resample(&self, draw: &mut Draw, into: &mut [Vec<f64>]) {
        if self.crossed {
            let units = self.columns[0].len();
            for place in 0..units {
                let unit = draw.below(units as u64) as usize;
                for (column, chosen) in self.columns.iter().zip(into.iter_mut()) {
                    chosen[place] = column[unit];
                }
            }
            return;
        }
        for (column, chosen) in self.columns.iter().zip(into) {
            for place in chosen.iter_mut() {
                *place = column[draw.below(column.len() as u64) as usize];
            }
        }
    }
}

fn lowest(means: impl Iterator<Item = f64>) -> f64 {
    means.fold(f64::INFINITY, f64::min)
}

/// A gap in units of its error; of no error at all the gap's sign.
fn studentised(gap: f64, error: f64) -> f64 {
    match (gap == 0.0, error > 0.0) {
        (true, _) => 0.0,
        (false, true) => gap / error,
        (false, false) => gap.signum() * f64::INFINITY,
    }
}

/// mean + most·error, where a group without spread is known whatever the draw says.
fn ahead(mean: f64, most: f64, error: f64) -> f64 {
    if error > 0.0 { mean + most * error } else { mean }
}
