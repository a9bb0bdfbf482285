//! Names for bytes: one newtype per kind of thing, so that no digest can stand where another belongs.
//!
//! All are BLAKE3 of stored bytes, so `b3sum FILE` agrees with us, except [`RegistrationDigest`], which is
//! the SHA-256 leaf of a ledger line (RFC 6962), because its verifiers speak SHA-256.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest of 64 lower-case hexadecimal digits")]
pub struct ParseDigestError(pub String);

fn parse_hex(text: &str) -> Result<[u8; 32], ParseDigestError> {
    let bad = || ParseDigestError(text.to_owned());
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return Err(bad());
    }
    let nibble = |d: u8| match d {
        b'0'..=b'9' => Some(d - b'0'),
        b'a'..=b'f' => Some(d - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0]).ok_or_else(bad)? << 4 | nibble(pair[1]).ok_or_else(bad)?;
    }
    Ok(bytes)
}

/// 64 digits, written into a buffer: digests are written more often than anything else.
fn hex<'b>(bytes: &[u8; 32], buffer: &'b mut [u8; 64]) -> &'b str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in buffer.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    std::str::from_utf8(buffer).expect("digits are ASCII")
}

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The digest with these bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Its 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Its first eight hexadecimal digits, for people.
            pub fn short(&self) -> String {
                self.to_string()[..8].to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(hex(&self.0, &mut [0; 64]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = ParseDigestError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(hex(&self.0, &mut [0; 64]))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

digest!(
    /// The BLAKE3 digest of a blob: plain bytes.
    BlobDigest
);
digest!(
    /// The digest of a [`crate::tree::Tree`] record.
    TreeDigest
);
digest!(
    /// The digest of an [`crate::action::Action`] record: the reuse key.
    ActionDigest
);
digest!(
    /// The digest of a [`crate::plan::Plan`] record.
    PlanDigest
);
digest!(
    /// The digest of an [`crate::attempt::Attempt`] record.
    AttemptDigest
);
digest!(
    /// The digest of a [`crate::reads::Reads`] record.
    ReadsDigest
);
digest!(
    /// The BLAKE3 digest of a journal line's raw bytes, without the line feed.
    LineDigest
);
digest!(
    /// The SHA-256 leaf of a ledger line.
    RegistrationDigest
);

impl BlobDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl LineDigest {
    /// The digest of a journal line without its line feed.
    pub fn of(line: &[u8]) -> Self {
        Self(*blake3::hash(line).as_bytes())
    }
}

macro_rules! stored_as_blob {
    ($($name:ident),*) => {$(
        impl From<$name> for BlobDigest {
            /// The record's own bytes are a blob, and this is its digest.
            fn from(digest: $name) -> BlobDigest {
                BlobDigest(digest.0)
            }
        }
    )*};
}
stored_as_blob!(TreeDigest, ActionDigest, PlanDigest, AttemptDigest, ReadsDigest);

/// A named input or output of a stage: a file or a folder, by content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Artifact {
    /// A file.
    Blob(BlobDigest),
    /// A folder.
    Tree(TreeDigest),
}

impl Artifact {
    /// The blob that must be present first: the file's bytes, or the folder's record.
    pub fn blob(self) -> BlobDigest {
        match self {
            Artifact::Blob(digest) => digest,
            Artifact::Tree(digest) => digest.into(),
        }
    }

    /// Its first eight hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.blob().short()
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Artifact::Blob(digest) => write!(f, "blob:{digest}"),
            Artifact::Tree(digest) => write!(f, "tree:{digest}"),
        }
    }
}

impl FromStr for Artifact {
    type Err = ParseDigestError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("blob", hex)) => hex.parse().map(Artifact::Blob),
            Some(("tree", hex)) => hex.parse().map(Artifact::Tree),
            _ => Err(ParseDigestError(text.to_owned())),
        }
    }
}

impl Serialize for Artifact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Artifact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
