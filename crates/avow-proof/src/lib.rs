//! Evidence that others signed or stamped, judged from bytes.
//!
//! Four things: an SSH signature over some bytes ([`sshsig`]), whose key a reader allows for what and when
//! ([`signers`], [`revoked`]), an RFC 3161 time stamp ([`stamp`]), and the
//! signed bytes of an envelope ([`dsse`]). Each answers with what it proves, or with the
//! [`Refusal`] that says why it proves nothing; nothing is believed half. The formats are those of `ssh-keygen -Y` and
//! `openssl ts`, with which every answer can be checked; the tests do.
//!
//! What a signature proves is who holds a key, nothing about when; so whether a key was valid is asked for a time, and
//! the time comes from a stamp or from the reader, never from the signer. Absent: files, networks, sockets, clocks, and
//! private keys; of agents there is only what is said to them ([`agent`]).

pub mod agent;
mod authority;
mod der;
pub mod dsse;
pub mod pem;
mod refusal;
pub mod revoked;
pub mod signers;
pub mod sshsig;
pub mod stamp;
mod wire;

pub use refusal::Refusal;
pub use revoked::Revoked;
pub use signers::Signers;
pub use sshsig::Signature;
pub use stamp::Stamp;

/// The purposes for which something is signed; a signature made for one never serves as another.
pub mod namespace {
    /// A statement about a ledger's head.
    pub const HEAD: &str = "avow-head";
    /// A verdict.
    pub const VERDICT: &str = "avow-verdict";
    /// A reproduction.
    pub const REPRODUCTION: &str = "avow-reproduction";
    /// A bundle.
    pub const BUNDLE: &str = "avow-bundle";
}

/// Bytes in Base64, with padding.
pub fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

/// SHA-256.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
