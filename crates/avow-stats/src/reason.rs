//! Why a claim has no verdict: the closed lists of reason codes.
//!
//! [`Void`] says that the plan was not carried out or the number does not exist; [`Inconclusive`] that it
//! exists and does not decide. Each code is one kebab-case word of the interface. Absent: sentences for a
//! person, which belong to the part that prints.

use std::fmt;

/// Why a claim (or a member, or a part) is Void. It is also the error of every estimator here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Void {
    /// A planned unit has no value, and nothing said to drop it.
    #[error("a planned unit is missing")]
    MissingUnits,
    /// A value is NaN or infinite.
    #[error("a value is not finite")]
    NonFinite,
    /// Fewer units than the method is defined for.
    #[error("fewer units than the method needs")]
    BelowMinimumN,
    /// No units at all.
    #[error("there are no units")]
    NoUnits,
    /// A claim that this one requires was not met.
    #[error("a required claim was not met")]
    RequiresUnmet,
    /// An earlier claim of a fixed sequence was not Supported.
    #[error("an earlier claim of the sequence was not supported")]
    SequenceStopped,
    /// Nothing measures the claim.
    #[error("nothing measures this claim")]
    NotMeasured,
    /// A logarithm or ratio of a value that is not positive.
    #[error("a value is outside the domain of the statistic")]
    Domain,
    /// A unit is present in one arm only.
    #[error("a unit is present in one arm only")]
    Unpaired,
    /// The statistic is 0/0.
    #[error("the statistic is undefined")]
    Undefined,
}

impl Void {
    /// The code as printed and stored.
    pub fn word(self) -> &'static str {
        match self {
            Void::MissingUnits => "missing-units",
            Void::NonFinite => "non-finite",
            Void::BelowMinimumN => "below-minimum-n",
            Void::NoUnits => "no-units",
            Void::RequiresUnmet => "requires-unmet",
            Void::SequenceStopped => "sequence-stopped",
            Void::NotMeasured => "not-measured",
            Void::Domain => "domain",
            Void::Unpaired => "unpaired",
            Void::Undefined => "undefined",
        }
    }
}

/// Why a claim with a number is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inconclusive {
    /// The interval contains the bound.
    CrossesBound,
    /// The smallest p-value that these units can give exceeds the level.
    NBelowReach,
    /// All units are equal, and too few for that to decide.
    NoVariation,
    /// Decided alone, but not after correction in its family.
    Correction,
    /// A combination that is undecided while a part of it is Void and could have decided it.
    VoidPart,
}

impl Inconclusive {
    /// The code as printed and stored.
    pub fn word(self) -> &'static str {
        match self {
            Inconclusive::CrossesBound => "crosses-bound",
            Inconclusive::NBelowReach => "n-below-reach",
            Inconclusive::NoVariation => "no-variation",
            Inconclusive::Correction => "correction",
            Inconclusive::VoidPart => "void-part",
        }
    }
}

impl fmt::Display for Inconclusive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
