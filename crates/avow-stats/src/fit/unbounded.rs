//! A fit without an interval: nothing is excluded.

use super::Model;
use crate::level::Level;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbounded;

impl Model for Unbounded {
    fn p_at_most(&self, _: f64, _: f64) -> f64 {
        1.0
    }

    fn p_at_least(&self, _: f64, _: f64) -> f64 {
        1.0
    }

    fn interval(&self, _: Level) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }
}
