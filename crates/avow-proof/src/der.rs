//! Walking DER where the bytes themselves are wanted: what was signed must be hashed as it was received.

use der::asn1::AnyRef;
use der::{Decode, Encode, Reader, SliceReader, Tag, TagNumber};

use crate::Refusal;

/// The parts of a sequence or set, in order.
pub fn parts(content: &[u8]) -> Result<Vec<AnyRef<'_>>, Refusal> {
    let mut reader = SliceReader::new(content).map_err(malformed)?;
    let mut parts = Vec::new();
    while !reader.is_finished() {
        parts.push(AnyRef::decode(&mut reader).map_err(malformed)?);
    }
    Ok(parts)
}

/// The bytes of a part, its tag and length included.
pub fn whole(part: &AnyRef<'_>) -> Result<Vec<u8>, Refusal> {
    part.to_der().map_err(malformed)
}

/// Whether a part has this context-specific, constructed tag.
pub fn is_context(part: &AnyRef<'_>, number: TagNumber) -> bool {
    der::Tagged::tag(part) == Tag::ContextSpecific { constructed: true, number }
}

/// The same content as a set, which is how signed attributes are hashed.
pub fn as_set(part: &AnyRef<'_>) -> Result<Vec<u8>, Refusal> {
    let content: &[u8] = part.value();
    AnyRef::new(Tag::Set, content).and_then(|set| set.to_der()).map_err(malformed)
}

/// An error of the parser as a refusal.
pub fn malformed(error: der::Error) -> Refusal {
    Refusal::Malformed(error.to_string())
}
