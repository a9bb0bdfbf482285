//! A null value with a test of its own beside an approximate interval.
//!
//! Fisher's exact test, the permutation of one side of a correlation and the permutation of a rater are tests of one
//! value of θ only. There their p decides; everywhere else the interval's own test does.

use super::Model;
use crate::level::Level;
use crate::reference::Reference;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct AtNull {
    pub null: f64,
    /// The p-value of θ ≤ null.
    pub at_most: f64,
    /// The p-value of θ ≥ null.
    pub at_least: f64,
    pub draws: Option<u32>,
    pub beside: Arc<dyn Model>,
}

impl Model for AtNull {
    fn p_at_most(&self, bound: f64, tie: f64) -> f64 {
        if bound == self.null { self.at_most } else { self.beside.p_at_most(bound, tie) }
    }

    fn p_at_least(&self, bound: f64, tie: f64) -> f64 {
        if bound == self.null { self.at_least } else { self.beside.p_at_least(bound, tie) }
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        self.beside.interval(error)
    }

    fn reference(&self, bound: f64, observed: f64) -> Option<Reference> {
        if bound == self.null { None } else { self.beside.reference(bound, observed) }
    }

    fn draws(&self) -> Option<u32> {
        self.draws
    }

    fn is_approximate(&self) -> bool {
        true
    }
}
