//! SSH signatures (SSHSIG, as `ssh-keygen -Y sign` makes them): parsing, and whether one fits bytes and purpose.
//!
//! Verified here are Ed25519, ECDSA over P-256 and P-384, RSA with SHA-2, and the first two by a hardware key. Of others
//! (P-521, keys that an authority certified) nothing is said but that they are not verifiable here.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use ssh_key::public::{EcdsaPublicKey, KeyData};
use ssh_key::{Algorithm, HashAlg, PublicKey, SshSig};

use crate::wire::Wire;
use crate::{Refusal, sha256};

/// A signature that fits its bytes: whoever holds this key signed them for this purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The key.
    pub key: PublicKey,
    /// The purpose.
    pub namespace: String,
    /// For a hardware key, whether its holder touched it.
    pub touched: Option<bool>,
}

impl Signature {
    /// Verifies a signature file over a message. The key is whatever made it: who that is, [`crate::Signers`] says.
    pub fn verify(file: &[u8], namespace: &str, message: &[u8]) -> Result<Signature, Refusal> {
        let unreadable = |error: ssh_key::Error| match error {
            ssh_key::Error::AlgorithmUnknown | ssh_key::Error::AlgorithmUnsupported { .. } => {
                Refusal::Unsupported("a signature of this kind".to_owned())
            }
            other => Refusal::Malformed(other.to_string()),
        };
        // Certified keys are not parsed by the crate; their names say what they are.
        if armoured(file).is_some_and(|body| contains(&body, b"-cert-v01@openssh.com")) {
            return Err(Refusal::Unsupported("a signature by a certified key".to_owned()));
        }
        let signature = SshSig::from_pem(file).map_err(unreadable)?;
        if signature.namespace() != namespace {
            let found = signature.namespace().to_owned();
            return Err(Refusal::Namespace { found, expected: namespace.to_owned() });
        }
        let signed =
            SshSig::signed_data(namespace, signature.hash_alg(), message).map_err(|_| Refusal::Signature)?;
        let touched = check(signature.public_key(), signature.signature(), &signed)?;
        let key = PublicKey::from(signature.public_key().clone());
        Ok(Signature { key, namespace: namespace.to_owned(), touched })
    }

    /// The key's fingerprint, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }
}

/// A key's fingerprint, as `ssh-keygen -l` prints it.
pub fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

fn check(key: &KeyData, signature: &ssh_key::Signature, signed: &[u8]) -> Result<Option<bool>, Refusal> {
    let bytes = signature.as_bytes();
    let fits = |holds: bool| if holds { Ok(None) } else { Err(Refusal::Signature) };
    match (key, signature.algorithm()) {
        (KeyData::Ed25519(public), Algorithm::Ed25519) => fits(holds(&ED25519, &public.0, signed, bytes)),
        (KeyData::Rsa(public), Algorithm::Rsa { hash: Some(hash) }) => {
            let positive = |number: &ssh_key::Mpint| number.as_positive_bytes().map(<[u8]>::to_vec);
            let (Some(n), Some(e)) = (positive(&public.n), positive(&public.e)) else {
                return Err(Refusal::Malformed("the key has a negative number".to_owned()));
            };
            let parameters = match hash {
                HashAlg::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                HashAlg::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                _ => return Err(Refusal::Unsupported("an RSA signature with this digest".to_owned())),
            };
            fits(RsaPublicKeyComponents { n, e }.verify(parameters, signed, bytes).is_ok())
        }
        (KeyData::Ecdsa(public), Algorithm::Ecdsa { .. }) => fits(ecdsa(public, signed, &mut Wire(bytes))?),
        (KeyData::SkEd25519(public), Algorithm::SkEd25519) => {
            let (signature, tail) = by_hardware(bytes)?;
            let signed = wrapped(public.application(), tail, signed);
            touched(holds(&ED25519, &public.public_key().0, &signed, signature), tail)
        }
        (KeyData::SkEcdsaSha2NistP256(public), Algorithm::SkEcdsaSha2NistP256) => {
            let (signature, tail) = by_hardware(bytes)?;
            let signed = wrapped(public.application(), tail, signed);
            let point = EcdsaPublicKey::NistP256(*public.ec_point());
            touched(ecdsa(&point, &signed, &mut Wire(signature))?, tail)
        }
        (key, algorithm) if key.algorithm() != algorithm => Err(Refusal::Signature),
        (_, algorithm) => Err(Refusal::Unsupported(format!("a signature by `{algorithm}`"))),
    }
}

fn holds(algorithm: &'static dyn VerificationAlgorithm, key: &[u8], signed: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(algorithm, key).verify(signed, signature).is_ok()
}

fn ecdsa(key: &EcdsaPublicKey, signed: &[u8], signature: &mut Wire<'_>) -> Result<bool, Refusal> {
    let (algorithm, length): (&'static dyn VerificationAlgorithm, usize) = match key {
        EcdsaPublicKey::NistP256(_) => (&ECDSA_P256_SHA256_FIXED, 32),
        EcdsaPublicKey::NistP384(_) => (&ECDSA_P384_SHA384_FIXED, 48),
        EcdsaPublicKey::NistP521(_) => return Err(Refusal::Unsupported("a signature over P-521".to_owned())),
    };
    let fixed = [signature.positive(length)?, signature.positive(length)?].concat();
    Ok(signature.is_empty() && holds(algorithm, key.as_sec1_bytes(), signed, &fixed))
}

/// The signature proper, and the flags and the counter that the device added to what it signed.
fn by_hardware(bytes: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    bytes
        .split_at_checked(bytes.len().wrapping_sub(5))
        .ok_or_else(|| Refusal::Malformed("the signature is too short".to_owned()))
}

/// What a hardware key signs in place of the message.
fn wrapped(application: &str, tail: &[u8], signed: &[u8]) -> Vec<u8> {
    [&sha256(&[application.as_bytes()])[..], tail, &sha256(&[signed])[..]].concat()
}

fn touched(holds: bool, tail: &[u8]) -> Result<Option<bool>, Refusal> {
    if holds { Ok(Some(tail.first().is_some_and(|flags| flags & 1 == 1))) } else { Err(Refusal::Signature) }
}

/// The bytes inside the armour, where it is one.
fn armoured(file: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(file).ok()?;
    let body = text.split_once("-----BEGIN SSH SIGNATURE-----")?.1.split_once("-----END")?.0;
    let body: String = body.split_whitespace().collect();
    data_encoding::BASE64.decode(body.as_bytes()).ok()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
