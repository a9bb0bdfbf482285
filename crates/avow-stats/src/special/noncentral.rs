//! The noncentral t distribution, for power.
//!
//! P(T > t) = E\[Φ(δ − t·S)\], S = √(χ²_ν/ν). In u = ln S the density of S falls double-exponentially on both
//! sides and the integrand is analytic, so the plain trapezoidal rule converges geometrically: no series whose
//! terms underflow at large δ, and every summand is positive.

use super::gamma::stirling_error;
use super::normal;
use std::f64::consts::PI;

/// P(T > t) for the noncentral t with `df` > 0 degrees of freedom and noncentrality `delta`; absolute error
/// about 1e-14.
pub fn above(t: f64, df: f64, delta: f64) -> f64 {
    let (low, high) = support(df);
    let spread = 1.0 / (2.0 * df).sqrt();
    let finest = 0.125 / (1.0 + delta.abs() + t.abs());
    let step = (0.125 * spread).min(finest);
    let count = ((high - low) / step).ceil();
    let step = (high - low) / count;
    // ln of the density of u at its mode 0: 2(ν/2)^{ν/2} e^{-ν/2}/Γ(ν/2), by Stirling's formula.
    let half = 0.5 * df;
    let peak = (half / PI).sqrt() * 2.0_f64.sqrt() * (-stirling_error(half)).exp();
    let mut sum = 0.0;
    let mut index = 0.0;
    while index <= count {
        let u = low + index * step;
        // ν(u − (e^{2u} − 1)/2), exact near 0.
        let weight = (df * (u - 0.5 * (2.0 * u).exp_m1())).exp();
        sum += weight * normal::above(t * u.exp() - delta);
        index += 1.0;
    }
    (sum * step * peak).clamp(0.0, 1.0)
}

/// The range of u = ln S outside which less than 1e-17 of its mass lies.
fn support(df: f64) -> (f64, f64) {
    let exponent = |u: f64| df * (u - 0.5 * (2.0 * u).exp_m1());
    let edge = |direction: f64| {
        let mut u = direction / (2.0 * df).sqrt();
        while exponent(u) > -42.0 {
            u *= 1.1;
        }
        u
    };
    (edge(-1.0), edge(1.0))
}
