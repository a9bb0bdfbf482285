//! DSSE: which bytes of an envelope are signed (secure-systems-lab's Dead Simple Signing Envelope, v1), and by which keys.

use ring::signature::{ED25519, UnparsedPublicKey};
use ssh_key::PublicKey;
use ssh_key::public::KeyData;

use crate::{Refusal, sshsig};

/// The bytes that a signature of an envelope is over: type and payload, each with its length before it.
pub fn signed_bytes(kind: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// An Ed25519 key of SSH. Others sign a wrapped or otherwise encoded form, which readers of envelopes do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    key: PublicKey,
    bytes: [u8; 32],
}

impl Key {
    /// Reads the line of a public key file.
    pub fn read(line: &str) -> Result<Key, Refusal> {
        let key = PublicKey::from_openssh(line.trim()).map_err(|e| Refusal::Malformed(e.to_string()))?;
        match key.key_data() {
            KeyData::Ed25519(public) => Ok(Key { bytes: public.0, key }),
            other => Err(Refusal::Unsupported(format!("an envelope signed by `{}`", other.algorithm()))),
        }
    }

    /// The key as SSH sends it.
    pub fn wire(&self) -> Result<Vec<u8>, Refusal> {
        self.key.to_bytes().map_err(|e| Refusal::Malformed(e.to_string()))
    }

    /// The fingerprint, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        sshsig::fingerprint(&self.key)
    }

    /// Whether a signature over bytes is by this key.
    pub fn verify(&self, signed: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        UnparsedPublicKey::new(&ED25519, &self.bytes)
            .verify(signed, signature)
            .map_err(|_| Refusal::Signature)
    }

    /// The key as a `SubjectPublicKeyInfo` in PEM (RFC 8410), which `openssl` reads.
    pub fn pem(&self) -> String {
        const HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        let body = crate::base64(&[&HEAD[..], &self.bytes[..]].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_bytes_are_those_of_the_specification() {
        // The example of the specification.
        let bytes = signed_bytes("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
