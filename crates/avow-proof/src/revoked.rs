//! Keys that a reader no longer trusts: a file of public keys, or a list as `ssh-keygen -k` writes it.
//!
//! A list does not say since when a key is bad, so a revoked key is refused also where a stamp is older.

use std::collections::BTreeSet;

use ssh_key::PublicKey;

use crate::sshsig::fingerprint;
use crate::wire::Wire;
use crate::{Refusal, sha256};

/// Revoked keys, by the SHA-256 of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    sha256: BTreeSet<Vec<u8>>,
    sha1: BTreeSet<Vec<u8>>,
}

const MAGIC: &[u8] = b"SSHKRL\n\0";

impl Revoked {
    /// Reads a file.
    pub fn read(bytes: &[u8]) -> Result<Revoked, Refusal> {
        let mut revoked = Revoked::default();
        if let Some(rest) = bytes.strip_prefix(MAGIC) {
            revoked.list(&mut Wire(rest))?;
            return Ok(revoked);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Malformed("it is not text".to_owned()))?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = PublicKey::from_openssh(line)
                .map_err(|error| Refusal::Malformed(format!("line {}: {error}", index + 1)))?;
            revoked.sha256.insert(blob(&key)?);
        }
        Ok(revoked)
    }

    /// Refuses a key that is revoked.
    pub fn check(&self, key: &PublicKey) -> Result<(), Refusal> {
        let bytes = key.to_bytes().map_err(|error| Refusal::Malformed(error.to_string()))?;
        let sha1 = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &bytes);
        if self.sha256.contains(&sha256(&[&bytes])[..]) || self.sha1.contains(sha1.as_ref()) {
            return Err(Refusal::Revoked(fingerprint(key)));
        }
        Ok(())
    }

    /// The binary form. Sections about certificates concern no plain key.
    fn list(&mut self, wire: &mut Wire<'_>) -> Result<(), Refusal> {
        if wire.number()? != 1 {
            return Err(Refusal::Malformed("a revocation list of another version".to_owned()));
        }
        wire.take(3 * 8)?;
        wire.string()?;
        wire.string()?;
        while !wire.is_empty() {
            let kind = wire.take(1)?[0];
            let mut section = Wire(wire.string()?);
            match kind {
                2 => {
                    while !section.is_empty() {
                        self.sha256.insert(sha256(&[section.string()?]).to_vec());
                    }
                }
                3 | 5 => {
                    while !section.is_empty() {
                        let digest = section.string()?.to_vec();
                        if kind == 3 {
                            self.sha1.insert(digest)
                        } else {
                            self.sha256.insert(digest)
                        };
                    }
                }
                // Certificates, signatures over the list, extensions.
                1 | 4 | 255 => {}
                other => return Err(Refusal::Malformed(format!("a section of kind {other} is unknown"))),
            }
        }
        Ok(())
    }
}

fn blob(key: &PublicKey) -> Result<Vec<u8>, Refusal> {
    let bytes = key.to_bytes().map_err(|error| Refusal::Malformed(error.to_string()))?;
    Ok(sha256(&[&bytes]).to_vec())
}
