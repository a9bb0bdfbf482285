//! One permutation for all members of a family: the largest |t| under whole-unit sign flips.
//!
//! Members share their units (pairs or clusters), one row per unit. Flipping whole rows keeps the dependence between
//! members, so the correction is no larger than it must be. Step-down adjusted p-values by Westfall and Young (1993).
//! Exact to 20 units, random flips beyond. Absent: independent arms.

use crate::reason::Void;
use crate::rng::Draws;
use crate::units::require;
use crate::{fit::EXACT_SIGNS, sum};

/// The fewest units.
pub const LEAST_UNITS: usize = 8;

/// One member's largest-statistic p-values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// |t| of the member's mean.
    pub statistic: f64,
    /// The share of flips whose largest |t| over all members reaches it.
    pub single_step: f64,
    /// The step-down adjusted p-value, which decides.
    pub step_down: f64,
}

/// Adjusts the members of a family whose values are the columns of `rows` (units); n ≥ 8. A column without spread is
/// [`Void::Undefined`].
pub fn adjust(rows: &[Vec<f64>], draws: Draws) -> Result<Vec<Member>, Void> {
    let members = rows.first().ok_or(Void::NoUnits)?.len();
    if rows.iter().any(|row| row.len() != members) {
        return Err(Void::MissingUnits);
    }
    for row in rows {
        require(row, 1)?;
    }
    if rows.len() < LEAST_UNITS {
        return Err(Void::BelowMinimumN);
    }
    let observed = statistics(rows, |_| false);
    if observed.iter().any(|t| !t.is_finite()) {
        return Err(Void::Undefined);
    }
    let mut order: Vec<usize> = (0..members).collect();
    order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
    let mut counts = Counts { single: vec![0; members], step: vec![0; members], total: 0 };
    if rows.len() <= EXACT_SIGNS {
        for set in 0..1_usize << rows.len() {
            counts.add(&statistics(rows, |unit| set >> unit & 1 == 1), &observed, &order);
        }
    } else {
        // The identity is one of the flips (add one).
        counts.add(&observed, &observed, &order);
        for mut draw in draws.each() {
            let flips: Vec<bool> = rows.iter().map(|_| draw.flip()).collect();
            counts.add(&statistics(rows, |unit| flips[unit]), &observed, &order);
        }
    }
    Ok(counts.members(&observed, &order))
}

struct Counts {
    single: Vec<u64>,
    /// By rank.
    step: Vec<u64>,
    total: u64,
}

impl Counts {
    fn add(&mut self, flipped: &[f64], observed: &[f64], order: &[usize]) {
        self.total += 1;
        let mut largest: f64 = 0.0;
        // From the smallest member up, so that each rank sees the largest of those not yet stepped.
        for (rank, member) in order.iter().enumerate().rev() {
            largest = largest.max(flipped[*member]);
            self.step[rank] += u64::from(largest >= observed[*member] * (1.0 - 1e-12));
        }
        for (count, t) in self.single.iter_mut().zip(observed) {
            *count += u64::from(largest >= t * (1.0 - 1e-12));
        }
    }

    fn members(&self, observed: &[f64], order: &[usize]) -> Vec<Member> {
        let share = |count: u64| count as f64 / self.total as f64;
        let mut members: Vec<Member> = observed
            .iter()
            .zip(&self.single)
            .map(|(t, count)| Member { statistic: *t, single_step: share(*count), step_down: 1.0 })
            .collect();
        let mut largest: f64 = 0.0;
        for (rank, member) in order.iter().enumerate() {
            largest = largest.max(share(self.step[rank]));
            members[*member].step_down = largest;
        }
        members
    }
}

/// |t| of every column after flipping the units that `flip` names; equal values have an infinite t.
fn statistics(rows: &[Vec<f64>], flip: impl Fn(usize) -> bool) -> Vec<f64> {
    let n = rows.len() as f64;
    let signs: Vec<f64> = (0..rows.len()).map(|unit| if flip(unit) { -1.0 } else { 1.0 }).collect();
    let column = |member: usize| {
        let values: Vec<f64> = rows.iter().zip(&signs).map(|(row, sign)| sign * row[member]).collect();
        let (mean, spread) = (sum::mean(&values), sum::deviation(&values));
        if mean == 0.0 { 0.0 } else { mean.abs() * n.sqrt() / spread }
    };
    (0..rows[0].len()).map(column).collect()
}
