//! Where a claim says its estimand lies, and where it would be wrong.
//!
//! A claim region and an opposite region, disjoint, with a gap between them if the claim opens one. Two
//! one-sided p-values follow for any fit: against "θ is not in the claim region" and against "θ is not in the
//! opposite region". Absent: levels, families and verdicts.

use crate::fit::Fit;

/// The two one-sided p-values of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// p_S: small when the data support the claim.
    pub support: f64,
    /// p_R: small when the data support the opposite.
    pub refute: f64,
}

impl Pair {
    /// A part without inference: certain either way.
    pub fn certain(supported: bool) -> Pair {
        if supported { Pair { support: 0.0, refute: 1.0 } } else { Pair { support: 1.0, refute: 0.0 } }
    }

    /// The pair that says nothing, which a Void part has.
    pub const SILENT: Pair = Pair { support: 1.0, refute: 1.0 };
}

/// A claim region with its opposite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Region {
    /// θ > `bound`; the opposite is θ < `refute` ≤ `bound`.
    Above {
        /// The bound of the claim region.
        bound: f64,
        /// The bound of the opposite region.
        refute: f64,
    },
    /// θ < `bound`; the opposite is θ > `refute` ≥ `bound`.
    Below {
        /// The bound of the claim region.
        bound: f64,
        /// The bound of the opposite region.
        refute: f64,
    },
    /// `low` < θ < `high`; the opposite is outside.
    Between {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// |θ − `target`| < `margin`, decided by two one-sided tests at α each.
    Equivalence {
        /// The value to be equal to.
        target: f64,
        /// The half-width of the region.
        margin: f64,
    },
}

/// Why bounds make no region.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RegionError {
    /// A bound is NaN or infinite.
    #[error("a bound is not a finite number")]
    NotFinite,
    /// The opposite region would overlap the claim region.
    #[error("the claim region from `{bound}` and the opposite region from `{refute}` overlap")]
    Overlap {
        /// The bound of the claim region.
        bound: f64,
        /// The bound of the opposite region.
        refute: f64,
    },
    /// The lower bound is not below the upper.
    #[error("the lower bound `{low}` is not below the upper bound `{high}`")]
    Empty {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// An equivalence margin that is not positive.
    #[error("the margin `{margin}` is not positive")]
    Margin {
        /// The margin as given.
        margin: f64,
    },
}

impl Region {
    /// θ > `bound`, refuted below it.
    pub fn above(bound: f64) -> Region {
        Region::Above { bound, refute: bound }
    }

    /// θ < `bound`, refuted above it.
    pub fn below(bound: f64) -> Region {
        Region::Below { bound, refute: bound }
    }

    /// The same region, if its bounds make one.
    pub fn checked(self) -> Result<Region, RegionError> {
        let (a, b) = match self {
            Region::Above { bound, refute } | Region::Below { bound, refute } => (bound, refute),
            Region::Between { low, high } => (low, high),
            Region::Equivalence { target, margin } => (target, margin),
        };
        if !a.is_finite() || !b.is_finite() {
            return Err(RegionError::NotFinite);
        }
        match self {
            Region::Above { bound, refute } if refute > bound => Err(RegionError::Overlap { bound, refute }),
            Region::Below { bound, refute } if refute < bound => Err(RegionError::Overlap { bound, refute }),
            Region::Between { low, high } if low >= high => Err(RegionError::Empty { low, high }),
            Region::Equivalence { margin, .. } if margin <= 0.0 => Err(RegionError::Margin { margin }),
            _ => Ok(self),
        }
    }

    /// The two bounds of a two-bounded region.
    fn bounds(self) -> Option<(f64, f64)> {
        match self {
            Region::Between { low, high } => Some((low, high)),
            Region::Equivalence { target, margin } => Some((target - margin, target + margin)),
            Region::Above { .. } | Region::Below { .. } => None,
        }
    }

    /// Every bound of the region and its opposite.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Region::Above { bound, refute } | Region::Below { bound, refute } => [bound, refute],
            Region::Between { low, high } => [low, high],
            Region::Equivalence { target, margin } => [target - margin, target + margin],
        }
    }

    /// (p_S, p_R) of `fit`.
    pub fn pair(self, fit: &Fit) -> Pair {
        match self {
            Region::Above { bound, refute } => {
                Pair { support: fit.p_at_most(bound), refute: fit.p_at_least(refute) }
            }
            Region::Below { bound, refute } => {
                Pair { support: fit.p_at_least(bound), refute: fit.p_at_most(refute) }
            }
            Region::Between { .. } | Region::Equivalence { .. } => {
                let [low, high] = self.ends();
                Pair {
                    support: fit.p_at_most(low).max(fit.p_at_least(high)),
                    refute: fit.p_at_least(low).min(fit.p_at_most(high)),
                }
            }
        }
    }

    /// The bound whose one-sided p-value tells Reversed from Refuted: 2ν − b for the null value ν, and 1/b for a
    /// ratio. `None` where the claim has two bounds or its bound lies on the far side of ν.
    pub fn mirror(self, null: f64, multiplicative: bool) -> Option<f64> {
        let of = |bound: f64| if multiplicative { null * null / bound } else { 2.0 * null - bound };
        match self {
            Region::Above { bound, .. } if bound >= null => Some(of(bound)),
            Region::Below { bound, .. } if bound <= null && (!multiplicative || bound > 0.0) => {
                Some(of(bound))
            }
            _ => None,
        }
    }

    /// The p-value of "θ is not beyond the mirrored bound".
    pub(crate) fn beyond(self, fit: &Fit, mirror: f64) -> Option<f64> {
        match self {
            Region::Above { .. } => Some(fit.p_at_least(mirror)),
            Region::Below { .. } => Some(fit.p_at_most(mirror)),
            Region::Between { .. } | Region::Equivalence { .. } => None,
        }
    }

    /// Whether `value` is strictly in the claim region, with ties against it.
    pub fn holds(self, value: f64, tie: f64) -> bool {
        match self {
            Region::Above { bound, .. } => value > bound + tie,
            Region::Below { bound, .. } => value < bound - tie,
            Region::Between { .. } | Region::Equivalence { .. } => {
                self.bounds().is_some_and(|(low, high)| value > low + tie && value < high - tie)
            }
        }
    }

    /// Whether `value` is strictly in the opposite region, with ties against it.
    pub fn opposes(self, value: f64, tie: f64) -> bool {
        match self {
            Region::Above { refute, .. } => value < refute - tie,
            Region::Below { refute, .. } => value > refute + tie,
            Region::Between { .. } | Region::Equivalence { .. } => {
                self.bounds().is_some_and(|(low, high)| value < low - tie || value > high + tie)
            }
        }
    }
}
