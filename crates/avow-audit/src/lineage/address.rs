//! How a person names a number, a claim, an artifact or a file.
//!
//! `STAGE.NAME[axis=value,…]` (record keys may stand among the axes), `STAGE[axis=value]` for a member, a
//! claim's name or one of its numbers (`CLAIM.estimate`), a digest or the beginning of one (with or without `blob:`, `tree:`), or a path. What the plan
//! knows wins over what might be a path.

use std::fmt;

use avow_model::label::{self, BadPoint};
use avow_model::plan::Plan;
use avow_model::value::Value;

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A measurement or an output of a stage.
    Named {
        /// The stage.
        stage: String,
        /// The measurement or output.
        name: String,
        /// Axes and record keys that narrow it.
        at: Vec<(String, String)>,
    },
    /// A stage's members.
    Stage {
        /// The stage.
        stage: String,
        /// Axes that narrow it.
        at: Vec<(String, String)>,
    },
    /// A claim.
    Claim(String),
    /// The first digits of a digest, at least six.
    Digest(String),
    /// A path.
    Path(String),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// An opening bracket without its closing one, or the reverse.
    #[error("`{0}` has an unmatched bracket or quote")]
    Unmatched(String),
    /// Something between the brackets that is not `name=value`.
    #[error("`{0}` is not `name=value`")]
    NotAPair(String),
    /// Nothing at all.
    #[error("the address is empty")]
    Empty,
}

impl Address {
    /// Parses a text in the light of a plan.
    pub fn parse(plan: &Plan, text: &str) -> Result<Address, AddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let (head, at) = match text.split_once('[') {
            Some((head, rest)) if is_named(plan, head) => {
                let inner = rest.strip_suffix(']').ok_or_else(|| AddressError::Unmatched(text.to_owned()))?;
                (head, pairs(inner, text)?)
            }
            _ => (text, Vec::new()),
        };
        if at.is_empty() && plan.claim(head).is_some() {
            return Ok(Address::Claim(head.to_owned()));
        }
        // A number of a claim, as audits and macro files call it, rests on what the claim rests on.
        if let Some(claim) = claim_of(plan, text) {
            return Ok(Address::Claim(claim));
        }
        if plan.stage(head).is_some() {
            return Ok(Address::Stage { stage: head.to_owned(), at });
        }
        // A stage's own name may hold no dot, a measurement's may.
        if let Some((stage, name)) = head.split_once('.')
            && plan.stage(stage).is_some()
        {
            return Ok(Address::Named { stage: stage.to_owned(), name: name.to_owned(), at });
        }
        Ok(match digits(head) {
            Some(digits) => Address::Digest(digits.to_owned()),
            None => Address::Path(text.strip_prefix("./").unwrap_or(text).to_owned()),
        })
    }
}

/// The numbers that a claim has.
const OF_CLAIMS: [&str; 14] = [
    "estimate",
    "p",
    "p-corrected",
    "n",
    "planned",
    "alpha",
    "interval",
    "low",
    "high",
    "own-interval",
    "own-low",
    "own-high",
    "level",
    "verdict",
];

/// The claim in `CLAIM.PART` or `CLAIM[key=value].PART`; a stage of the same name comes first.
fn claim_of(plan: &Plan, text: &str) -> Option<String> {
    let (before, part) = text.rsplit_once('.')?;
    let claim = before.split(['[', '#']).next()?;
    let known = OF_CLAIMS.contains(&part) && plan.claim(claim).is_some() && plan.stage(claim).is_none();
    known.then(|| claim.to_owned())
}

fn is_named(plan: &Plan, head: &str) -> bool {
    plan.stage(head).is_some() || head.split_once('.').is_some_and(|(stage, _)| plan.stage(stage).is_some())
}

fn digits(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("blob:").or_else(|| text.strip_prefix("tree:")).unwrap_or(text);
    let hexadecimal = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    ((6..=64).contains(&digits.len()) && hexadecimal).then_some(digits)
}

/// `name=value,…`, as members are written everywhere.
fn pairs(inner: &str, whole: &str) -> Result<Vec<(String, String)>, AddressError> {
    label::pairs(inner).map_err(|bad| match bad {
        BadPoint::Unmatched => AddressError::Unmatched(whole.to_owned()),
        BadPoint::NotAPair(item) => AddressError::NotAPair(item),
    })
}

/// Whether a value is the one that a person wrote: by its spelling, or as a number.
pub(super) fn is_written(value: &Value, text: &str) -> bool {
    value.to_string() == text || value.as_f64().is_some_and(|x| text.parse() == Ok(x))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, at) = match self {
            Address::Named { stage, name, at } => (format!("{stage}.{name}"), at.as_slice()),
            Address::Stage { stage, at } => (stage.clone(), at.as_slice()),
            Address::Claim(name) | Address::Digest(name) | Address::Path(name) => {
                (name.clone(), [].as_slice())
            }
        };
        f.write_str(&head)?;
        if at.is_empty() {
            return Ok(());
        }
        let pairs = at.iter().map(|(name, value)| format!("{name}={}", label::written(value)));
        let pairs: Vec<String> = pairs.collect();
        write!(f, "[{}]", pairs.join(","))
    }
}
