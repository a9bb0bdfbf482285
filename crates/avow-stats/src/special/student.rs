//! Student's t distribution with real degrees of freedom (Welch's are not whole).

use super::beta::{incomplete_beta, logit_quantile};
use super::gamma::stirling_error;
use std::f64::consts::PI;

/// P(T ≥ t) for `df` > 0 degrees of freedom.
pub fn above(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() {
        return f64::NAN;
    }
    if t < 0.0 {
        return 1.0 - above(-t, df);
    }
    let scaled = t / df.sqrt();
    if scaled > FAR {
        return far_tail(scaled, df);
    }
    let square = scaled * scaled;
    let (x, y) = (1.0 / (1.0 + square), square / (1.0 + square));
    let (below, _) = incomplete_beta(0.5 * df, 0.5, x, y);
    0.5 * below
}

/// P(T ≤ t).
pub fn below(t: f64, df: f64) -> f64 {
    above(-t, df)
}

/// Beyond this many √df the first term of the tail is exact to 1e-32, and x = df/(df + t²) may underflow.
const FAR: f64 = 1e16;

/// ½ x^a/(a B(a, ½)) for x = 1/scaled² and a = df/2, in logarithms.
fn far_tail(scaled: f64, df: f64) -> f64 {
    if scaled == f64::INFINITY { 0.0 } else { (log_far_front(df) - df * scaled.ln()).exp() }
}

/// ln(½/(a B(a, ½))), a = df/2.
fn log_far_front(df: f64) -> f64 {
    let a = 0.5 * df;
    // 1/B(a, ½) = Γ(a + ½)/(Γ(a) √π), both gammas from Stirling's formula with its error.
    let log_gamma = |z: f64| stirling_error(z) + (z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln();
    log_gamma(a + 0.5) - log_gamma(a) - 0.5 * PI.ln() - df.ln()
}

/// The t with P(T ≥ t) = `p`, 0 < p < 1.
pub fn upper_quantile(p: f64, df: f64) -> f64 {
    if p > 0.5 {
        return -upper_quantile(1.0 - p, df);
    }
    if p == 0.5 {
        return 0.0;
    }
    if p <= 0.0 {
        return f64::INFINITY;
    }
    let far = (log_far_front(df) - p.ln()) / df;
    if far > FAR.ln() {
        return df.sqrt() * far.exp();
    }
    // t² = df·y/x where x = df/(df + t²) is the beta quantile of 2p; near p = ½ the complement has the digits.
    let logit = if p <= 0.25 {
        logit_quantile(0.5 * df, 0.5, 2.0 * p, true)
    } else {
        logit_quantile(0.5 * df, 0.5, 1.0 - 2.0 * p, false)
    };
    df.sqrt() * (-0.5 * logit).exp()
}
