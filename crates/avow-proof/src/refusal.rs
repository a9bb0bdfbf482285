//! Why something proves nothing.

/// A reason for not believing a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The bytes are not what they should be.
    #[error("it cannot be read: {0}")]
    Malformed(String),
    /// Something that may be sound, and that is not understood here.
    #[error("{0} is not verifiable here; use `ssh-keygen -Y verify`")]
    Unsupported(String),
    /// The signature is for another purpose.
    #[error("it is signed for `{found}`, not for `{expected}`")]
    Namespace {
        /// The namespace in the signature.
        found: String,
        /// The one that was asked for.
        expected: String,
    },
    /// The signature is not over these bytes, or not by this key.
    #[error("the signature does not fit what is said to be signed")]
    Signature,
    /// No line of the reader's file has the key.
    #[error("the key {0} is not among the allowed signers")]
    UnknownKey(String),
    /// The key belongs to others.
    #[error("the key {key} is not one of `{principal}`")]
    Principal {
        /// The key's fingerprint.
        key: String,
        /// Who was asked for.
        principal: String,
    },
    /// The key may not sign for this purpose.
    #[error("the key {key} may not sign for `{namespace}`")]
    Purpose {
        /// The key's fingerprint.
        key: String,
        /// The purpose.
        namespace: String,
    },
    /// The key was not valid yet at the time that counts.
    #[error("the key {0} was not valid yet at that time")]
    NotYetValid(String),
    /// The key was no longer valid at the time that counts.
    #[error("the key {0} was no longer valid at that time")]
    Expired(String),
    /// The key is on the reader's list of revoked keys; the list does not say since when.
    #[error("the key {0} is revoked")]
    Revoked(String),
    /// The authority did not stamp.
    #[error("the authority did not grant a time stamp: {0}")]
    NotGranted(String),
    /// The stamp is over something else.
    #[error("the time stamp is for something else (its message imprint differs)")]
    Imprint,
    /// The stamp answers another request: a replayed one.
    #[error("the time stamp answers another request (its nonce differs)")]
    Nonce,
    /// The query is for something else.
    #[error("the request beside the time stamp is for something else")]
    OtherRequest,
    /// The authority's certificate does not lead to a trusted one.
    #[error("the authority is not trusted: {0}")]
    Authority(String),
    /// The authority's certificate was not valid at the time that it stamped.
    #[error("the authority's certificate was not valid when it stamped")]
    AuthorityTime,
    /// The certificate is not one for time stamping alone.
    #[error("the certificate is not one of a time stamping authority")]
    AuthorityPurpose,
    /// The token's signature is wrong.
    #[error("the signature of the time stamp is wrong")]
    Token,
}
