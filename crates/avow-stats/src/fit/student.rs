//! The t model: a centre, a standard error and degrees of freedom, on a scale.

use super::Model;
use crate::level::Level;
use crate::reference::Reference;
use crate::special::{normal, student};

/// The scale on which a statistic is treated as t; bounds go in through it and ends come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// The statistic itself.
    Identity,
    /// Fisher's z = artanh of a correlation.
    FisherZ,
    /// The natural logarithm of a positive quantity.
    Log,
}

impl Scale {
    fn into(self, theta: f64) -> f64 {
        match self {
            Scale::Identity => theta,
            Scale::FisherZ => theta.clamp(-1.0, 1.0).atanh(),
            // Nothing positive is at or below 0.
            Scale::Log => theta.max(0.0).ln(),
        }
    }

    pub(crate) fn back(self, value: f64) -> f64 {
        match self {
            Scale::Identity => value,
            Scale::FisherZ => value.tanh(),
            Scale::Log => value.exp(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Student {
    pub centre: f64,
    /// Positive; ∞ where the data say nothing about it.
    pub error: f64,
    pub df: f64,
    pub scale: Scale,
}

impl Student {
    /// An infinite standard error says nothing, whatever the gap.
    fn upper_tail(&self, gap: f64) -> f64 {
        if self.error == f64::INFINITY {
            0.5
        } else if self.df == f64::INFINITY {
            normal::above(gap / self.error)
        } else {
            student::above(gap / self.error, self.df)
        }
    }

    fn quantile(&self, half: f64) -> f64 {
        if self.df == f64::INFINITY {
            -normal::quantile(half)
        } else {
            student::upper_quantile(half, self.df)
        }
    }
}

impl Model for Student {
    /// With the standard error that was observed.
    fn reference(&self, bound: f64, observed: f64) -> Option<Reference> {
        let centre = self.scale.into(bound);
        let reach = self.quantile(5e-4) * self.error;
        let ends = (self.scale.back(centre - reach), self.scale.back(centre + reach));
        let below = |value: f64| self.upper_tail(centre - self.scale.into(value));
        if reach.is_finite() { Reference::of_probabilities(bound, observed, ends, below) } else { None }
    }

    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        if self.scale == Scale::FisherZ && bound >= 1.0 {
            return 1.0;
        }
        self.upper_tail(self.centre - self.scale.into(bound))
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        if self.scale == Scale::FisherZ && bound <= -1.0 {
            return 1.0;
        }
        self.upper_tail(self.scale.into(bound) - self.centre)
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let reach = self.quantile(0.5 * error.to_f64()) * self.error;
        (self.scale.back(self.centre - reach), self.scale.back(self.centre + reach))
    }
}
