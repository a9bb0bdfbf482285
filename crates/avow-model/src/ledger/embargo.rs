//! Commitments: lines of a ledger that show nothing until they are opened.
//!
//! A `commit` line holds the SHA-256 of a small file, the *opening*, which holds a random number and the SHA-256 of the
//! *body*: the fields that the line would otherwise show, as canonical JSON. So `sha256sum opening.json body.json` is
//! the whole check. An `open` line embeds both. Whoever has the opening reads the line as what it is already before
//! that; everybody else counts it as an unopened commitment. Nothing of the body may stand beside the commitment: plan
//! digests and names are easily guessed.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Ledger, LedgerError, canonical};
use crate::digest::RegistrationDigest;

/// The kinds of line that a commitment may stand for.
const COMMITTED: [&str; 6] = ["register", "amend", "adopt", "invalidate", "retract", "exposure"];

/// What opens a commitment: both files, each without a line feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// `opening.json`.
    pub opening: String,
    /// `body.json`.
    pub body: String,
}

/// Why files do not open a commitment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// No commitment has the digest of the opening.
    #[error("the opening is not the one that was committed to: its SHA-256 is {0}")]
    Opening(String),
    /// The opening does not name this body.
    #[error("the body is not the one that the opening names: its SHA-256 is {0}")]
    Body(String),
    /// A file that is not what it should be.
    #[error("the {0} is no {0} of a commitment: {1}")]
    Form(&'static str, String),
}

fn sha256(text: &str) -> String {
    RegistrationDigest::from_bytes(Sha256::digest(text.as_bytes()).into()).to_string()
}

impl Opening {
    /// The opening of a line of some kind with these fields; `nonce` is 64 hexadecimal digits from the operating system,
    /// drawn for this one.
    ///
    /// # Errors
    /// As [`Ledger::line`] for the same fields.
    pub fn of(kind: &str, fields: Map<String, Value>, nonce: &str) -> Result<Opening, LedgerError> {
        if !COMMITTED.contains(&kind) {
            return Err(LedgerError::Kind(kind.to_owned()));
        }
        let mut body = fields;
        body.insert("kind".to_owned(), json!(kind));
        let body = canonical(&Value::Object(body))?;
        let opening = json!({"body_sha256": sha256(&body), "kind": "avow-opening", "nonce": nonce, "v": 1});
        Ok(Opening { opening: canonical(&opening)?, body })
    }

    /// What a `commit` line holds.
    pub fn commitment(&self) -> String {
        sha256(&self.opening)
    }

    /// The fields behind a commitment, checked.
    ///
    /// # Errors
    /// [`Mismatch`] says which file is not the one that was committed to.
    pub fn check(&self, commitment: &str) -> Result<Map<String, Value>, Mismatch> {
        if self.commitment() != commitment {
            return Err(Mismatch::Opening(self.commitment()));
        }
        let form = |what| move |error: serde_json::Error| Mismatch::Form(what, error.to_string());
        let opening: Map<String, Value> = serde_json::from_str(&self.opening).map_err(form("opening"))?;
        if opening.get("kind") != Some(&json!("avow-opening")) || opening.get("v") != Some(&json!(1)) {
            return Err(Mismatch::Form("opening", "not of a kind and version known here".to_owned()));
        }
        let named = opening.get("body_sha256").and_then(Value::as_str).unwrap_or_default();
        if sha256(&self.body) != named {
            return Err(Mismatch::Body(sha256(&self.body)));
        }
        let body: Map<String, Value> = serde_json::from_str(&self.body).map_err(form("body"))?;
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !COMMITTED.contains(&kind) {
            return Err(Mismatch::Form("body", format!("`{kind}` is no kind of line that is committed to")));
        }
        Ok(body)
    }

    /// The fields of the `open` line for a commitment.
    ///
    /// # Errors
    /// As [`Opening::check`].
    pub fn fields(
        &self,
        commit: RegistrationDigest,
        commitment: &str,
    ) -> Result<Map<String, Value>, Mismatch> {
        self.check(commitment)?;
        let mut fields = Map::new();
        fields.insert("opens".to_owned(), json!(commit));
        // Text, not values: what is hashed are these bytes.
        fields.insert("opening".to_owned(), json!(self.opening));
        fields.insert("body".to_owned(), json!(self.body));
        Ok(fields)
    }
}

impl Ledger {
    /// Commitments that no line opens, with what they hold; whoever makes several may show the lucky one.
    pub fn unopened(&self) -> Vec<(RegistrationDigest, &str)> {
        let closed = self.entries().into_iter().filter(|entry| !self.opened.contains(&entry.leaf));
        closed.filter_map(|entry| Some((entry.leaf, entry.commitment.as_deref()?))).collect()
    }

    /// Reads the commitment that an opening fits as what it stands for, whether or not the ledger opens it.
    ///
    /// # Errors
    /// [`Mismatch::Opening`] where no commitment of this ledger is the opening's.
    pub fn attach(&mut self, opening: &Opening) -> Result<RegistrationDigest, Mismatch> {
        let wanted = opening.commitment();
        let entries = self.entries.values();
        let mut fitting = entries.filter(|entry| entry.commitment.as_deref() == Some(wanted.as_str()));
        let leaf = fitting.next().map(|entry| entry.leaf).ok_or(Mismatch::Opening(wanted.clone()))?;
        let body = opening.check(&wanted)?;
        self.read_as(leaf, body);
        Ok(leaf)
    }

    /// Opens what the ledger's own `open` lines open; those that open nothing are faults.
    pub(super) fn open(&mut self) {
        let mut opened = BTreeSet::new();
        let (mut bodies, mut faults) = (Vec::new(), Vec::new());
        for entry in self.entries().into_iter().filter(|entry| entry.kind == "open") {
            match self.opens(entry) {
                Ok((leaf, body)) => {
                    opened.insert(leaf);
                    bodies.push((leaf, body));
                }
                Err(reason) => faults.push((entry.leaf, reason)),
            }
        }
        bodies.into_iter().for_each(|(leaf, body)| self.read_as(leaf, body));
        self.opened = opened;
        self.faults = faults;
    }

    fn opens(&self, entry: &super::Entry) -> Result<(RegistrationDigest, Map<String, Value>), String> {
        let text = |key: &str| entry.fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let leaf = text("opens").and_then(|leaf| leaf.parse().ok()).ok_or("it names no line")?;
        let commitment = self.entry(leaf).and_then(|commit| commit.commitment.clone());
        let commitment = commitment.ok_or("it opens a line that is no commitment")?;
        if !self.precedes(leaf, entry.leaf) {
            return Err("it opens a line that is not before it".to_owned());
        }
        let opening = Opening {
            opening: text("opening").ok_or("it holds no opening")?,
            body: text("body").ok_or("it holds no body")?,
        };
        let body = opening.check(&commitment).map_err(|mismatch| mismatch.to_string())?;
        Ok((leaf, body))
    }

    fn read_as(&mut self, leaf: RegistrationDigest, body: Map<String, Value>) {
        let Some(entry) = self.entries.get_mut(&leaf) else { return };
        if let Some(kind) = body.get("kind").and_then(Value::as_str) {
            entry.kind = kind.to_owned();
        }
        if entry.shown.is_none() {
            entry.shown = Some(entry.fields.clone());
        }
        entry.fields.extend(body);
    }
}
