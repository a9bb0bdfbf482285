//! A result that the user's own analysis reports: read, checked for plausibility, and taken as it is.
//!
//! The numbers cannot be recomputed, so they are refused where they contradict themselves. Absent: any repair.

use crate::region::{Pair, Region};

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// The estimate.
    pub estimate: f64,
    /// The interval and its confidence level, if given.
    pub interval: Option<Ends>,
    /// The two-sided p-value against `null`, if given.
    pub p: Option<f64>,
    /// The units it says it rests on, if given.
    pub n: Option<u64>,
}

/// A reported interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The confidence level, 0 to 1.
    pub level: f64,
}

/// Why a reported result is not believed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Implausible {
    /// A number is missing or not finite.
    #[error("`{0}` is not a finite number")]
    NotFinite(&'static str),
    /// low > high.
    #[error("the interval [{low}, {high}] has its ends the wrong way round")]
    Crossed {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// The estimate is outside its interval, and `skewed: true` was not declared.
    #[error("the estimate {estimate} lies outside its interval [{low}, {high}]")]
    Outside {
        /// The estimate.
        estimate: f64,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// A level or p outside its range.
    #[error("`{what}` is {value}, not a probability")]
    Probability {
        /// `p` or `level`.
        what: &'static str,
        /// As read.
        value: f64,
    },
    /// p = 0, which no finite sample gives: it was rounded.
    #[error("p is 0, so it was rounded before it was written")]
    Rounded,
    /// n differs from the units found.
    #[error("it says n = {reported}, but {found} units were made")]
    Units {
        /// As read.
        reported: u64,
        /// As counted.
        found: u64,
    },
    /// The bound is outside the interval although p says it is not excluded, or the reverse.
    #[error("p = {p} and the {percent} % interval contradict each other about the bound {bound}")]
    Contradiction {
        /// As read.
        p: f64,
        /// The level in percent.
        percent: f64,
        /// The bound.
        bound: f64,
    },
    /// Neither a p nor an interval: there is nothing to decide by.
    #[error("neither a p-value nor an interval is given")]
    Empty,
}

/// How far p may be from the interval's error before the two contradict each other, relative.
const TOLERANCE: f64 = 0.1;

impl Reported {
    /// Refuses what cannot be true. `found` are the units that exist, where that is known; `skewed` allows an estimate
    /// outside its interval; `bound` is what p is about.
    pub fn checked(self, found: Option<u64>, skewed: bool, bound: f64) -> Result<Reported, Implausible> {
        if !self.estimate.is_finite() {
            return Err(Implausible::NotFinite("estimate"));
        }
        if self.p.is_none() && self.interval.is_none() {
            return Err(Implausible::Empty);
        }
        self.check_interval(skewed)?;
        match self.p {
            Some(p) if !(0.0..=1.0).contains(&p) => {
                return Err(Implausible::Probability { what: "p", value: p });
            }
            Some(0.0) => return Err(Implausible::Rounded),
            _ => {}
        }
        if let (Some(reported), Some(found)) = (self.n, found)
            && reported != found
        {
            return Err(Implausible::Units { reported, found });
        }
        self.check_agreement(bound)?;
        Ok(self)
    }

    fn check_interval(&self, skewed: bool) -> Result<(), Implausible> {
        let Some(Ends { low, high, level }) = self.interval else { return Ok(()) };
        if low.is_nan() || high.is_nan() {
            return Err(Implausible::NotFinite("interval"));
        }
        if !(level > 0.0 && level < 1.0) {
            return Err(Implausible::Probability { what: "level", value: level });
        }
        if low > high {
            return Err(Implausible::Crossed { low, high });
        }
        if !skewed && !(low..=high).contains(&self.estimate) {
            return Err(Implausible::Outside { estimate: self.estimate, low, high });
        }
        Ok(())
    }

    fn check_agreement(&self, bound: f64) -> Result<(), Implausible> {
        let (Some(p), Some(Ends { low, high, level })) = (self.p, self.interval) else { return Ok(()) };
        let (outside, error) = (bound < low || bound > high, 1.0 - level);
        let excluded = p <= error * (1.0 - TOLERANCE);
        let kept = p > error * (1.0 + TOLERANCE);
        if (outside && kept) || (!outside && excluded) {
            return Err(Implausible::Contradiction { p, percent: 100.0 * level, bound });
        }
        Ok(())
    }

    /// (p_S, p_R) of a one-bounded region: half the two-sided p on the side of the estimate. Without a p, an interval at
    /// level L that excludes the bound counts as a two-sided p of 1 − L, so that in a family it must be wide enough.
    pub fn pair(&self, region: Region) -> Pair {
        let [bound, _] = region.ends();
        let above = self.estimate > bound;
        let one_sided = match (self.p, self.interval) {
            (Some(p), _) => 0.5 * p,
            (None, Some(Ends { low, high, level })) if bound < low || bound > high => 0.5 * (1.0 - level),
            _ => 1.0,
        };
        let (up, down) = if above { (one_sided, 1.0) } else { (1.0, one_sided) };
        match region {
            Region::Below { .. } => Pair { support: down, refute: up },
            _ => Pair { support: up, refute: down },
        }
    }
}
