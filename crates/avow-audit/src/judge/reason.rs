//! The one reason a verdict carries.

use avow_model::digest::{BlobDigest, RegistrationDigest};
use avow_stats::{Inconclusive, Void};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::join::JoinError;

/// Why a claim is Void or Inconclusive, as a code with what a sentence needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The plan was not carried out, or the number does not exist.
    Void(Void),
    /// The same, with the places that it is about.
    At {
        /// Why.
        void: Void,
        /// Members and what is wrong with each, in words of codes and numbers only.
        places: String,
    },
    /// The files of the stage were read, and none holds a measurement of that name.
    UnknownMeasurement {
        /// The stage.
        stage: String,
        /// The name that is selected.
        name: String,
        /// The names that the files hold, the likest first.
        held: Vec<String>,
    },
    /// Fewer units than the method is defined for.
    TooFew {
        /// The method.
        method: &'static str,
        /// The fewest units (of each arm) at which it is defined.
        least: usize,
        /// A method for the same data that would work with what there is.
        instead: Option<&'static str>,
    },
    /// The number exists and does not decide.
    Inconclusive(Inconclusive),
    /// The selection cannot be arranged into units.
    Join(JoinError),
    /// A file that holds a selected number is damaged or gone.
    Damaged(BlobDigest),
    /// A selected value is no number.
    Unreadable,
    /// Registered as `variation: none`, and the values differ.
    NotDeterministic,
    /// A reported result contradicts itself.
    Implausible(String),
    /// The rule cannot be applied to what is selected.
    Unsuited(String),
    /// A formula, bound or level in the claim has no value.
    BadClaim(String),
    /// Values that were cut off in a way that the method cannot take.
    Censored(String),
    /// The arms are no matched controls: what differs besides what the claim names.
    Unmatched(String),
    /// Another registration, on the other side of a fork, disagrees about the claim.
    Disputed(RegistrationDigest),
}

impl Reason {
    /// The code, one kebab-case word of the interface.
    pub fn word(&self) -> &'static str {
        match self {
            Reason::Void(void) | Reason::At { void, .. } => void.word(),
            Reason::UnknownMeasurement { .. } => "unknown-measurement",
            Reason::TooFew { .. } => Void::BelowMinimumN.word(),
            Reason::Inconclusive(reason) => reason.word(),
            Reason::Join(error) => error.word(),
            Reason::Damaged(_) => "damaged-evidence",
            Reason::Unreadable => "unreadable",
            Reason::NotDeterministic => "not-deterministic",
            Reason::Implausible(_) => "implausible",
            Reason::Unsuited(_) => "unsuited",
            Reason::BadClaim(_) => "bad-claim",
            Reason::Censored(_) => "censored",
            Reason::Unmatched(_) => "unmatched-control",
            Reason::Disputed(_) => "concurrent-amendment",
        }
    }

    /// What the code is about: a dimension, a digest, what a formula's reader said.
    pub fn detail(&self) -> Option<String> {
        match self {
            Reason::Join(error) => Some(match error {
                JoinError::UnknownStage { stage } => stage.clone(),
                JoinError::UnknownValue { dimension, value } => format!("{dimension}={value}"),
                JoinError::UnknownDimension { dimension }
                | JoinError::LeftoverDimension { dimension }
                | JoinError::SplitUnit { dimension }
                | JoinError::ReducedBytes { dimension } => dimension.clone(),
            }),
            Reason::At { places, .. } => Some(places.clone()),
            Reason::UnknownMeasurement { stage, name, held } => {
                const SHOWN: usize = 8;
                let shown: Vec<String> = held.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
                let more = match held.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Some(format!("`{name}`; the files of `{stage}` hold {}{more}", shown.join(", ")))
            }
            Reason::Damaged(blob) => Some(blob.to_string()),
            Reason::Disputed(entry) => Some(entry.to_string()),
            Reason::TooFew { method, least, instead: Some(instead) } => {
                Some(format!("{method} needs {least}; {instead} would work"))
            }
            Reason::TooFew { method, least, instead: None } => Some(format!("{method} needs {least}")),
            Reason::Implausible(detail)
            | Reason::Unsuited(detail)
            | Reason::BadClaim(detail)
            | Reason::Censored(detail)
            | Reason::Unmatched(detail) => Some(detail.clone()),
            _ => None,
        }
    }

    /// The reason as the combination of parts knows it.
    pub(super) fn as_void(&self) -> Void {
        match self {
            Reason::Void(void) | Reason::At { void, .. } => *void,
            Reason::TooFew { .. } => Void::BelowMinimumN,
            _ => Void::NotMeasured,
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Reason", 2)?;
        out.serialize_field("code", self.word())?;
        match self.detail() {
            Some(detail) => out.serialize_field("detail", &detail)?,
            None => out.skip_field("detail")?,
        }
        out.end()
    }
}

impl From<Void> for Reason {
    fn from(void: Void) -> Reason {
        Reason::Void(void)
    }
}

impl From<JoinError> for Reason {
    fn from(error: JoinError) -> Reason {
        Reason::Join(error)
    }
}
