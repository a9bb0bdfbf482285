//! What a ledger declares wrong (`invalidate`) or withdrawn (`retract`). Nothing is deleted: the lines say what no
//! longer stands, and why.

use serde_json::Value;

use super::{Entry, Ledger};
use crate::attempt::Attempt;
use crate::digest::{AttemptDigest, BlobDigest, RegistrationDigest};

/// Something that succeeded and is wrong all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The line that says so.
    pub entry: RegistrationDigest,
    /// What is wrong.
    pub what: Wrong,
    /// Why.
    pub reason: String,
}

/// What can be declared wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An attempt.
    Attempt(AttemptDigest),
    /// An output, whichever attempt wrote it.
    Blob(BlobDigest),
}

/// A reading of a claim that was withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retracted {
    /// The line that says so.
    pub entry: RegistrationDigest,
    /// The claim.
    pub claim: String,
    /// Why.
    pub reason: String,
}

/// Everything that a ledger declares wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalids(pub Vec<Invalid>);

impl Invalids {
    /// The first line that declares an attempt wrong, by its name or by something that it wrote.
    pub fn of(&self, name: AttemptDigest, attempt: &Attempt) -> Option<&Invalid> {
        self.0.iter().find(|invalid| match invalid.what {
            Wrong::Attempt(wrong) => wrong == name,
            Wrong::Blob(wrong) => attempt.outputs.values().any(|output| output.artifact.blob() == wrong),
        })
    }

    /// Whether nothing is declared wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Attempt(attempt) => write!(f, "attempt:{attempt}"),
            Wrong::Blob(blob) => write!(f, "blob:{blob}"),
        }
    }
}

impl Ledger {
    /// What is declared wrong, in the order of the lines; then what other ledgers of the project declare wrong, as far as
    /// it was told ([`Ledger::also_wrong`]).
    pub fn invalids(&self) -> Invalids {
        let own = self.entries().into_iter().filter_map(invalid);
        Invalids(own.chain(self.elsewhere.iter().cloned()).collect())
    }

    /// Adds what other ledgers declare wrong: an attempt is wrong wherever it is used. No line of this ledger says so.
    pub fn also_wrong(&mut self, elsewhere: Invalids) {
        self.elsewhere = elsewhere.0;
    }

    /// What is withdrawn, in the order of the lines.
    pub fn retracted(&self) -> Vec<Retracted> {
        self.entries().into_iter().filter_map(retracted).collect()
    }
}

fn text<'e>(entry: &'e Entry, key: &str) -> Option<&'e str> {
    entry.fields.get(key).and_then(Value::as_str)
}

fn invalid(entry: &Entry) -> Option<Invalid> {
    if entry.kind != "invalidate" {
        return None;
    }
    let what = match text(entry, "what")?.split_once(':')? {
        ("attempt", digest) => Wrong::Attempt(digest.parse().ok()?),
        ("blob", digest) => Wrong::Blob(digest.parse().ok()?),
        _ => return None,
    };
    Some(Invalid { entry: entry.leaf, what, reason: text(entry, "reason").unwrap_or_default().to_owned() })
}

fn retracted(entry: &Entry) -> Option<Retracted> {
    if entry.kind != "retract" {
        return None;
    }
    let (claim, reason) = (text(entry, "claim")?, text(entry, "reason").unwrap_or_default());
    Some(Retracted { entry: entry.leaf, claim: claim.to_owned(), reason: reason.to_owned() })
}
