//! One value, one sequence of bytes.
//!
//! A record's bytes are deterministic CBOR (RFC 8949, section 4.2.1: definite lengths, shortest integers,
//! map keys sorted by their encoded bytes), with one restriction of our own: every float is written in 64
//! bits, `-0.0` as `0.0` and every NaN as the one quiet NaN. Typed and length-prefixed, so `1`, `1.0` and `"1"` differ and nothing can be
//! shifted from one field into the next; and any CBOR reader can show what we hashed. A record is the pair
//! `[kind, fields]`, where the kind carries the encoding's version, so two kinds never share a digest.
//! Fields that are absent are left out, so that a later optional field re-keys nothing.
//!
//! The bytes are stored as a blob, and the record's digest is that blob's digest.

mod writer;

use ciborium::Value as Cbor;
use serde::{Serialize, de::DeserializeOwned};

use crate::action::Action;
use crate::attempt::Attempt;
use crate::digest::{ActionDigest, AttemptDigest, PlanDigest, ReadsDigest, TreeDigest};
use crate::plan::Plan;
use crate::reads::Reads;
use crate::tree::Tree;

/// What can be wrong with bytes that should be a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not CBOR, or not the fields this kind has.
    #[error("the bytes are no `{kind}` record: {reason}")]
    Malformed {
        /// The kind that was expected.
        kind: &'static str,
        /// What the reader said.
        reason: String,
    },
    /// Another kind of record, or another version of this one.
    #[error("expected a `{expected}` record, found `{found}`")]
    Kind {
        /// The kind that was expected.
        expected: &'static str,
        /// The kind the bytes name.
        found: String,
    },
    /// Readable, but not in the one form that is hashed.
    #[error("the `{kind}` record is not in canonical form")]
    NotCanonical {
        /// The kind that was expected.
        kind: &'static str,
    },
}

/// A value with a kind, canonical bytes and a digest type of its own.
pub trait Record: Serialize + DeserializeOwned {
    /// Kind and version of the encoding, e.g. `avow/action/1`.
    const KIND: &'static str;
    /// The newtype that names such a record.
    type Digest: Copy;

    /// Wraps 32 bytes of BLAKE3.
    fn wrap(bytes: [u8; 32]) -> Self::Digest;

    /// What a record of this kind must hold beyond its fields' types; asked when one is read.
    fn sound(&self) -> Result<(), String> {
        Ok(())
    }

    /// The canonical bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        writer::head(4, 2, &mut bytes);
        writer::write_text(Self::KIND, &mut bytes);
        writer::write(self, &mut bytes).expect("records hold only values that CBOR has");
        bytes
    }

    /// The digest of the canonical bytes.
    fn digest(&self) -> Self::Digest {
        Self::digest_of(&self.to_bytes())
    }

    /// The digest of a record whose canonical bytes are known.
    fn digest_of(bytes: &[u8]) -> Self::Digest {
        Self::wrap(*blake3::hash(bytes).as_bytes())
    }

    /// Reads a record back and insists on its canonical form. The bytes may be anyone's.
    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let malformed = |reason: String| RecordError::Malformed { kind: Self::KIND, reason };
        let value: Cbor = ciborium::from_reader(bytes).map_err(|e| malformed(e.to_string()))?;
        let Cbor::Array(pair) = value else { return Err(malformed("no pair".to_owned())) };
        let [Cbor::Text(kind), fields] = pair.as_slice() else {
            return Err(malformed("no pair of kind and fields".to_owned()));
        };
        if kind != Self::KIND {
            return Err(RecordError::Kind { expected: Self::KIND, found: kind.clone() });
        }
        let record: Self = fields.deserialized().map_err(|e| malformed(e.to_string()))?;
        if record.to_bytes() != bytes {
            return Err(RecordError::NotCanonical { kind: Self::KIND });
        }
        record.sound().map_err(malformed)?;
        Ok(record)
    }
}

macro_rules! record {
    ($record:ty, $digest:ident, $kind:literal $(, $sound:expr)?) => {
        impl Record for $record {
            const KIND: &'static str = $kind;
            type Digest = $digest;
            fn wrap(bytes: [u8; 32]) -> $digest {
                $digest::from_bytes(bytes)
            }
            $(fn sound(&self) -> Result<(), String> {
                $sound(self)
            })?
        }
    };
}
record!(Tree, TreeDigest, "avow/tree/1", |tree: &Tree| tree.check().map_err(|e| e.to_string()));
record!(Action, ActionDigest, "avow/action/1");
record!(Plan, PlanDigest, "avow/plan/1", |plan: &Plan| plan.check().map_err(|e| e.to_string()));
record!(Attempt, AttemptDigest, "avow/attempt/1");
record!(Reads, ReadsDigest, "avow/reads/1");

/// The canonical bytes of any serialisable value, for keys that are no stored record (seed derivation,
/// statistical draws).
pub fn bytes_of(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    writer::write(value, &mut bytes).expect("keys hold only values that CBOR has");
    bytes
}
