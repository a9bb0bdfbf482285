//! Sources of one number per unit with mean 0, on which the tables of error rates rest.

#![allow(dead_code, reason = "each test target uses a part")]

use avow_stats::rng::Draw;

/// A source of one number per unit.
pub type Source = fn(&mut Draw) -> f64;

pub fn normal(draw: &mut Draw) -> f64 {
    draw.normal()
}

pub fn wide_normal(draw: &mut Draw) -> f64 {
    3.0 * draw.normal()
}

pub fn t3(draw: &mut Draw) -> f64 {
    let squares: f64 = (0..3).map(|_| draw.normal().powi(2)).sum();
    draw.normal() / (squares / 3.0).sqrt()
}

pub fn lognormal(draw: &mut Draw) -> f64 {
    draw.normal().exp() - 0.5_f64.exp()
}

pub fn two_modes(draw: &mut Draw) -> f64 {
    (if draw.flip() { 2.0 } else { -2.0 }) + 0.3 * draw.normal()
}

pub fn failed(draw: &mut Draw) -> f64 {
    draw.normal() + 0.75 - if draw.uniform() < 0.15 { 5.0 } else { 0.0 }
}

pub fn sample(source: Source, n: usize, draw: &mut Draw) -> Vec<f64> {
    (0..n).map(|_| source(draw)).collect()
}
