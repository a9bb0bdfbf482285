//! Power of the t methods, before any data.
//!
//! By the noncentral t distribution, for one sample (or pairs) and for two arms of equal size. Everything else
//! is by simulation of the registered rule, which is not here. Power for a family is this power at α/m
//! (pessimistic) and at α (optimistic).

use crate::level::Level;
use crate::special::{noncentral, student};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arms {
    /// n units (or pairs); n − 1 degrees of freedom.
    One,
    /// n units in each of two arms; 2n − 2 degrees of freedom.
    Two,
}

/// Which results count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tails {
    /// Any definite verdict: |t| beyond the two-sided critical value.
    Either,
    /// The verdict in the direction of the effect only: what "Supported" needs.
    Directed,
}

/// The probability of a definite verdict at two-sided level `alpha` when the true effect is `effect` standard
/// deviations, with `n` units (real, so that equations can be solved; n > 1).
pub fn t_power(arms: Arms, effect: f64, n: f64, alpha: Level, tails: Tails) -> f64 {
    let (df, scale) = match arms {
        Arms::One => (n - 1.0, n.sqrt()),
        Arms::Two => (2.0 * (n - 1.0), (0.5 * n).sqrt()),
    };
    let critical = student::upper_quantile(0.5 * alpha.to_f64(), df);
    let delta = effect.abs() * scale;
    let with = noncentral::above(critical, df, delta);
    match tails {
        Tails::Directed => with,
        // T below −c under δ is −T above c under −δ.
        Tails::Either => with + noncentral::above(critical, df, -delta),
    }
}

/// The real n at which the power of two-sided t reaches `power`; round up for a plan. `None` for an effect of 0,
/// a power outside (α, 1), or more than 10⁷ units.
pub fn units_for(arms: Arms, effect: f64, alpha: Level, power: f64) -> Option<f64> {
    const MOST: f64 = 1e7;
    let short = |n: f64| t_power(arms, effect, n, alpha, Tails::Either) < power;
    if effect == 0.0 || !(power > alpha.to_f64() && power < 1.0) {
        return None;
    }
    let (mut low, mut high) = (2.0, 4.0);
    if !short(low) {
        return Some(low);
    }
    while short(high) {
        low = high;
        high *= 2.0;
        if high > MOST {
            return None;
        }
    }
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if short(middle) { low = middle } else { high = middle }
    }
    Some(high)
}
