//! The one root finder: Newton's method on an increasing function, kept inside a bracket.
//!
//! Quantiles call it with the logarithm of a probability as a function of the logarithm (or logit) of the
//! argument, where every distribution here is close to a straight line in its tails. Absent: any root finding
//! on data, which would make an interval depend on a tolerance.

/// The root of the increasing `f`, which returns its value and slope. `start` is any first guess.
///
/// The answer is exact to about the last digit of the argument; `f` must change sign on the real line.
pub(crate) fn increasing(start: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = bracket(start, &f);
    let mut at = if (low..=high).contains(&start) { start } else { 0.5 * (low + high) };
    for _ in 0..200 {
        let (value, slope) = f(at);
        if value == 0.0 {
            return at;
        }
        if value < 0.0 {
            low = at
        } else {
            high = at
        }
        let newton = at - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - at).abs() <= f64::EPSILON * at.abs().max(f64::MIN_POSITIVE) || next <= low || next >= high
        {
            return next;
        }
        at = next;
    }
    at
}

/// An interval around `start` on whose ends `f` has opposite signs (or is zero).
fn bracket(start: f64, f: &impl Fn(f64) -> (f64, f64)) -> (f64, f64) {
    let rising = f(start).0 < 0.0;
    let mut step = 0.5;
    let mut inner = start;
    for _ in 0..64 {
        let outer = if rising { inner + step } else { inner - step };
        let value = f(outer).0;
        if (value >= 0.0) == rising {
            return if rising { (inner, outer) } else { (outer, inner) };
        }
        inner = outer;
        step *= 2.0;
    }
    if rising { (inner, f64::MAX) } else { (f64::MIN, inner) }
}
