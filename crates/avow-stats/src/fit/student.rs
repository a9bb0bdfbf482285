//! The t model: a centre, a standard error and degrees of freedom, on a scale.

use crate::special::student;

/// The scale on which a statistic is treated as t; bounds go in through it and ends come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// The statistic itself.
    Identity,
    /// Fisher's z = artanh of a correlation.
    FisherZ,
}

impl Scale {
    fn into(self, theta: f64) -> f64 {
        match self {
            Scale::Identity => theta,
            Scale::FisherZ => theta.clamp(-1.0, 1.0).atanh(),
        }
    }

    pub(crate) fn back(self, value: f64) -> f64 {
        match self {
            Scale::Identity => value,
            Scale::FisherZ => value.tanh(),
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
    pub(crate) fn p_at_most(&self, bound: f64) -> f64 {
        if self.scale == Scale::FisherZ && bound >= 1.0 {
            return 1.0;
        }
        self.upper_tail(self.centre - self.scale.into(bound))
    }

    pub(crate) fn p_at_least(&self, bound: f64) -> f64 {
        if self.scale == Scale::FisherZ && bound <= -1.0 {
            return 1.0;
        }
        self.upper_tail(self.scale.into(bound) - self.centre)
    }

    /// An infinite standard error says nothing, whatever the gap.
    fn upper_tail(&self, gap: f64) -> f64 {
        if self.error == f64::INFINITY { 0.5 } else { student::above(gap / self.error, self.df) }
    }

    pub(crate) fn interval(&self, half: f64) -> (f64, f64) {
        let reach = student::upper_quantile(half, self.df) * self.error;
        (self.scale.back(self.centre - reach), self.scale.back(self.centre + reach))
    }
}
