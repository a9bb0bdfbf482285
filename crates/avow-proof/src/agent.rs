//! What is said to an SSH agent and what it answers (draft-ietf-sshm-ssh-agent): the bytes alone, no socket.

use crate::Refusal;
use crate::wire::Wire;

const IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN: u8 = 13;
const SIGN_ANSWER: u8 = 14;

/// The most that an answer may have: what `ssh-agent` itself takes.
pub const LONGEST: u32 = 256 << 10;

/// Asks which keys the agent holds.
pub fn identities() -> Vec<u8> {
    message(IDENTITIES, &[])
}

/// Asks for a signature over bytes by a key, as SSH sends keys.
pub fn sign(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    message(SIGN, &[&string(key), &string(bytes), &0_u32.to_be_bytes()])
}

/// Whether a key is among those that the agent holds, by its answer without the length before it.
pub fn holds(answer: &[u8], key: &[u8]) -> Result<bool, Refusal> {
    let mut wire = expect(answer, IDENTITIES_ANSWER)?;
    let mut found = false;
    for _ in 0..wire.number()? {
        found |= wire.string()? == key;
        let _comment = wire.string()?;
    }
    Ok(found)
}

/// The signature proper of an Ed25519 key, from the agent's answer.
pub fn signature(answer: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut wire = expect(answer, SIGN_ANSWER)?;
    let mut inner = Wire(wire.string()?);
    if inner.string()? != b"ssh-ed25519" {
        return Err(Refusal::Unsupported("a signature of this kind".to_owned()));
    }
    Ok(inner.string()?.to_vec())
}

fn expect(answer: &[u8], kind: u8) -> Result<Wire<'_>, Refusal> {
    match answer.split_first() {
        Some((first, rest)) if *first == kind => Ok(Wire(rest)),
        _ => Err(Refusal::Malformed("the agent refused".to_owned())),
    }
}

fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    string(&[&[kind][..], &parts.concat()].concat())
}

fn string(bytes: &[u8]) -> Vec<u8> {
    // What is longer than four bytes can say is refused by whoever reads it.
    [&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()[..], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_others_refused() {
        let held = [&[12, 0, 0, 0, 1][..], &string(b"key"), &string(b"comment")].concat();
        assert_eq!((holds(&held, b"key"), holds(&held, b"other")), (Ok(true), Ok(false)));
        assert!(
            holds(&held[..8], b"key").is_err() && holds(&[5], b"key").is_err() && holds(&[], b"key").is_err()
        );
        let inner = [string(b"ssh-ed25519"), string(b"signature")].concat();
        let signed = [&[14][..], &string(&inner)].concat();
        assert_eq!(signature(&signed), Ok(b"signature".to_vec()));
        let other = [&[14][..], &string(&[string(b"ssh-rsa"), string(b"x")].concat())].concat();
        assert!(signature(&other).is_err() && signature(&[5]).is_err());
    }
}
