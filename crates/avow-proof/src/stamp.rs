//! RFC 3161 time stamps: asking for one, and what an answer proves.
//!
//! A stamp proves that its bytes existed before its time, on the word of an authority that the reader trusts. The
//! authority's certificates are judged at the time of the stamp, so one that ended later is no refusal. Revocation
//! lists of authorities are not consulted.

use cms::cert::x509::spki::AlgorithmIdentifier;
use cms::content_info::ContentInfo;
use cms::signed_data::{EncapsulatedContentInfo, SignerIdentifier, SignerInfo};
use der::asn1::{AnyRef, Int, ObjectIdentifier, OctetString, OctetStringRef};
use der::{Any, Decode, Encode};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use webpki::EndEntityCert;
use x509_cert::Certificate;
use x509_tsp::{MessageImprint, TimeStampReq, TimeStampResp, TspVersion, TstInfo};

use crate::der::{as_set, is_context, malformed, parts, whole};
use crate::{Refusal, authority};

const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA_384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA_512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SIGNING_CERTIFICATE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");
const SIGNING_CERTIFICATE_V2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const RSA_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA: &str = "1.2.840.113549.1.1";
const ECDSA: &str = "1.2.840.10045";

/// What a stamp proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was made, in seconds since 1970.
    pub time: i64,
    /// The subject of the authority's certificate.
    pub authority: String,
    /// When that certificate ends, in seconds since 1970.
    pub ends: i64,
    /// The authority's policy.
    pub policy: String,
    /// Whether the request was there to compare the nonce with.
    pub nonce_checked: bool,
}

/// A request for a stamp over the SHA-256 of something, as DER; it asks for the authority's certificates.
pub fn request(imprint: &[u8; 32], nonce: &[u8; 16]) -> Result<Vec<u8>, Refusal> {
    // A positive number: the sign bit is off, and the first byte is not zero.
    let mut nonce = *nonce;
    nonce[0] = nonce[0] & 0x3f | 0x40;
    let request = TimeStampReq {
        version: TspVersion::V1,
        message_imprint: MessageImprint {
            hash_algorithm: AlgorithmIdentifier { oid: SHA_256, parameters: Some(Any::null()) },
            hashed_message: OctetString::new(imprint.to_vec()).map_err(malformed)?,
        },
        req_policy: None,
        nonce: Some(Int::new(&nonce).map_err(malformed)?),
        cert_req: true,
        extensions: None,
    };
    request.to_der().map_err(malformed)
}

impl Stamp {
    /// Verifies an answer over the SHA-256 `imprint`. `request` is what was asked, without which the nonce cannot be
    /// compared; `roots` are the certificates that the reader trusts, `extra` what else may lie on the way to them.
    pub fn verify(
        answer: &[u8],
        request: Option<&[u8]>,
        imprint: &[u8; 32],
        roots: &[Vec<u8>],
        extra: &[Vec<u8>],
    ) -> Result<Stamp, Refusal> {
        let answer = TimeStampResp::from_der(answer).map_err(malformed)?;
        let signed = Signed::read(granted(&answer)?)?;
        let content = whole_seconds(&signed.content)?;
        let info = TstInfo::from_der(&content).map_err(malformed)?;
        fits(&info.message_imprint, imprint)?;
        let nonce_checked = asked(request, &info, imprint)?;
        let signer = signed.signer(extra)?;
        signed.check(&signer)?;
        let time = info.gen_time.to_unix_duration().as_secs();
        let chain = [&signed.certificates[..], extra].concat();
        let authority = authority::check(&signer, &chain, roots, time)?;
        Ok(Stamp {
            time: i64::try_from(time).map_err(|error| Refusal::Malformed(error.to_string()))?,
            authority: authority.name,
            ends: authority.ends,
            policy: info.policy.to_string(),
            nonce_checked,
        })
    }
}

/// Whether an answer is a stamp for this request, whoever made it: what one looks at before keeping it.
pub fn answers(answer: &[u8], request: &[u8], imprint: &[u8; 32]) -> Result<(), Refusal> {
    let answer = TimeStampResp::from_der(answer).map_err(malformed)?;
    let content = whole_seconds(&Signed::read(granted(&answer)?)?.content)?;
    let info = TstInfo::from_der(&content).map_err(malformed)?;
    fits(&info.message_imprint, imprint)?;
    asked(Some(request), &info, imprint).map(|_| ())
}

fn granted<'a>(answer: &'a TimeStampResp<'_>) -> Result<&'a ContentInfo, Refusal> {
    match (answer.status.status as u8, &answer.time_stamp_token) {
        (0 | 1, Some(token)) => Ok(token),
        (status, _) => Err(Refusal::NotGranted(format!("its status is {status}"))),
    }
}

fn fits(found: &MessageImprint, imprint: &[u8; 32]) -> Result<(), Refusal> {
    let same = found.hash_algorithm.oid == SHA_256 && found.hashed_message.as_bytes() == imprint;
    if same { Ok(()) } else { Err(Refusal::Imprint) }
}

/// The content of a token with its time cut to whole seconds, for a parser that knows no fractions (RFC 3161 section
/// 2.4.2 allows them, without zeros at the end). What was signed is the content as it was received.
fn whole_seconds(content: &[u8]) -> Result<Vec<u8>, Refusal> {
    let outer = parts(content)?;
    let [info] = outer.as_slice() else { return Ok(content.to_vec()) };
    let mut inner = Vec::new();
    for part in parts(info.value())? {
        let is_time = der::Tagged::tag(&part) == der::Tag::GeneralizedTime;
        let text = std::str::from_utf8(part.value()).unwrap_or_default();
        let fraction = text.strip_suffix('Z').and_then(|text| text.split_once('.')).filter(|_| is_time);
        match fraction {
            None => inner.extend(whole(&part)?),
            Some((seconds, fraction)) => {
                let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
                if fraction.is_empty() || fraction.ends_with('0') || !digits(fraction) {
                    return Err(Refusal::Malformed(format!("`{text}` is no time")));
                }
                let cut = format!("{seconds}Z");
                inner.extend(whole(
                    &AnyRef::new(der::Tag::GeneralizedTime, cut.as_bytes()).map_err(malformed)?,
                )?);
            }
        }
    }
    whole(&AnyRef::new(der::Tag::Sequence, &inner).map_err(malformed)?)
}

/// Compares an answer with its request.
fn asked(request: Option<&[u8]>, info: &TstInfo, imprint: &[u8; 32]) -> Result<bool, Refusal> {
    let Some(request) = request else { return Ok(false) };
    let request = TimeStampReq::from_der(request).map_err(malformed)?;
    fits(&request.message_imprint, imprint).map_err(|_| Refusal::OtherRequest)?;
    if request.req_policy.is_some_and(|policy| policy != info.policy) {
        return Err(Refusal::NotGranted("it is under another policy than asked for".to_owned()));
    }
    match (&request.nonce, &info.nonce) {
        (Some(asked), Some(answered)) if asked.as_bytes() == answered.as_bytes() => Ok(true),
        (None, _) => Ok(false),
        _ => Err(Refusal::Nonce),
    }
}

/// The signed content of a token.
struct Signed {
    content: Vec<u8>,
    certificates: Vec<Vec<u8>>,
    info: SignerInfo,
    /// The signed attributes as received, tagged as the set that was hashed.
    attributes: Vec<u8>,
}

impl Signed {
    fn read(token: &ContentInfo) -> Result<Signed, Refusal> {
        if token.content_type != SIGNED_DATA {
            return Err(Refusal::Malformed("the token is not signed data".to_owned()));
        }
        let all = parts(token.content.value())?;
        // version, digest algorithms, content, certificates, revocation lists, signers
        let (Some(content), Some(signers)) = (all.get(2), all.last()) else {
            return Err(Refusal::Malformed("the token is too short".to_owned()));
        };
        let content = EncapsulatedContentInfo::from_der(&whole(content)?).map_err(malformed)?;
        let inner = content.econtent.filter(|_| content.econtent_type == TST_INFO);
        let inner = inner.ok_or_else(|| Refusal::Malformed("the token holds no time stamp".to_owned()))?;
        let certificates = match all.iter().skip(3).find(|part| is_context(part, der::TagNumber::N0)) {
            Some(set) => parts(set.value())?.iter().map(whole).collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let [signer] = parts(signers.value())?[..] else {
            return Err(Refusal::Malformed("the token has not exactly one signer".to_owned()));
        };
        let raw = parts(signer.value())?;
        let attributes = raw.iter().skip(3).find(|part| is_context(part, der::TagNumber::N0));
        let attributes =
            attributes.ok_or_else(|| Refusal::Malformed("the token has no signed attributes".to_owned()))?;
        Ok(Signed {
            content: inner.decode_as::<OctetStringRef<'_>>().map_err(malformed)?.as_bytes().to_vec(),
            certificates,
            attributes: as_set(attributes)?,
            info: SignerInfo::from_der(&whole(&signer)?).map_err(malformed)?,
        })
    }

    /// The signer's certificate, as DER.
    fn signer(&self, extra: &[Vec<u8>]) -> Result<Vec<u8>, Refusal> {
        let SignerIdentifier::IssuerAndSerialNumber(wanted) = &self.info.sid else {
            return Err(Refusal::Malformed("the signer is not named by issuer and number".to_owned()));
        };
        let named = |der: &&Vec<u8>| {
            Certificate::from_der(der).is_ok_and(|certificate| {
                let tbs = certificate.tbs_certificate;
                tbs.issuer == wanted.issuer && tbs.serial_number == wanted.serial_number
            })
        };
        let found = self.certificates.iter().chain(extra).find(named).cloned();
        found.ok_or_else(|| {
            Refusal::Authority("its certificate is neither in the answer nor given".to_owned())
        })
    }

    /// Whether the signer signed this content, and says that this certificate is its own.
    fn check(&self, signer: &[u8]) -> Result<(), Refusal> {
        let digest = digest_of(&self.info.digest_alg.oid)?;
        let content = ring::digest::digest(digest, &self.content);
        let digest_attribute = self.attribute(MESSAGE_DIGEST)?;
        let stated =
            digest_attribute.decode_as::<OctetStringRef<'_>>().map_err(malformed)?.as_bytes().to_vec();
        let of_type = self.attribute(CONTENT_TYPE)?.decode_as::<ObjectIdentifier>().map_err(malformed)?;
        if stated != content.as_ref() || of_type != TST_INFO {
            return Err(Refusal::Token);
        }
        self.names(signer)?;
        let der = CertificateDer::from(signer);
        let entity = EndEntityCert::try_from(&der).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let (signed, signature) = (&self.attributes, self.info.signature.as_bytes());
        let holds = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            entity.verify_signature(*algorithm, signed, signature).is_ok()
        };
        let oid = &self.info.signature_algorithm.oid;
        let fine = match *oid == RSA_PSS {
            true => holds_by_pss(signer, digest, signed, signature)?,
            false => algorithms(oid, digest).iter().any(holds),
        };
        if fine { Ok(()) } else { Err(Refusal::Token) }
    }

    /// The one value of a signed attribute.
    fn attribute(&self, oid: ObjectIdentifier) -> Result<Any, Refusal> {
        let attributes = self.info.signed_attrs.as_ref().into_iter().flat_map(|all| all.iter());
        let mut found = attributes.filter(|attribute| attribute.oid == oid);
        match (found.next(), found.next()) {
            (Some(attribute), None) if attribute.values.len() == 1 => {
                attribute.values.get(0).cloned().ok_or(Refusal::Token)
            }
            _ => Err(Refusal::Malformed(format!("the token has not one attribute {oid}"))),
        }
    }

    /// Whether the first certificate that the signed attributes name (RFC 5035, or RFC 2634) is the signer's.
    fn names(&self, signer: &[u8]) -> Result<(), Refusal> {
        let other = || Refusal::Authority("the token names another certificate than the signer's".to_owned());
        let (value, v2) = match self.attribute(SIGNING_CERTIFICATE_V2) {
            Ok(value) => (value, true),
            Err(_) => (self.attribute(SIGNING_CERTIFICATE)?, false),
        };
        // SigningCertificate{,V2} ::= SEQUENCE { certs SEQUENCE OF ESSCertID{,v2}, … }
        let lists = parts(value.value())?;
        let ids = parts(lists.first().ok_or_else(other)?.value())?;
        let id = parts(ids.first().ok_or_else(other)?.value())?;
        let is_digest = |part: &&AnyRef<'_>| der::Tagged::tag(*part) == der::Tag::OctetString;
        let stated = id.iter().find(is_digest).ok_or_else(other)?.value().to_vec();
        let algorithm = match (v2, id.first().filter(|part| !is_digest(part))) {
            (false, _) => &SHA1_FOR_LEGACY_USE_ONLY,
            (true, None) => &SHA256,
            (true, Some(named)) => {
                let named = parts(named.value())?;
                let oid =
                    named.first().ok_or_else(other)?.decode_as::<ObjectIdentifier>().map_err(malformed)?;
                digest_of(&oid)?
            }
        };
        if ring::digest::digest(algorithm, signer).as_ref() == stated { Ok(()) } else { Err(other()) }
    }
}

fn digest_of(oid: &ObjectIdentifier) -> Result<&'static Algorithm, Refusal> {
    match *oid {
        SHA_256 => Ok(&SHA256),
        SHA_384 => Ok(&SHA384),
        SHA_512 => Ok(&SHA512),
        other => Err(Refusal::Malformed(format!("the digest {other} is not one of SHA-2"))),
    }
}

/// Whether a signature by RSASSA-PSS holds. The key may be for this scheme alone, which the certificate's own parser
/// does not know, so the key is taken out of it here; salt and mask follow the digest, as RFC 4055 recommends.
fn holds_by_pss(signer: &[u8], digest: &Algorithm, signed: &[u8], signature: &[u8]) -> Result<bool, Refusal> {
    use ring::signature::{RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512};
    let certificate = Certificate::from_der(signer).map_err(malformed)?;
    let key = certificate.tbs_certificate.subject_public_key_info;
    if key.algorithm.oid != RSA_PSS && key.algorithm.oid != RSA_KEY {
        return Ok(false);
    }
    let scheme = if digest == &SHA256 {
        &RSA_PSS_2048_8192_SHA256
    } else if digest == &SHA384 {
        &RSA_PSS_2048_8192_SHA384
    } else {
        &RSA_PSS_2048_8192_SHA512
    };
    let key = ring::signature::UnparsedPublicKey::new(scheme, key.subject_public_key.raw_bytes());
    Ok(key.verify(signed, signature).is_ok())
}

/// The algorithms that a signature may have been made by: CMS names the key's kind and the digest apart.
fn algorithms(
    oid: &ObjectIdentifier,
    digest: &Algorithm,
) -> Vec<&'static dyn SignatureVerificationAlgorithm> {
    use webpki::ring as known;
    let text = oid.to_string();
    let by_digest = |sha256, sha384, sha512| {
        if digest == &SHA256 {
            sha256
        } else if digest == &SHA384 {
            sha384
        } else {
            sha512
        }
    };
    let none: Vec<&'static dyn SignatureVerificationAlgorithm> = Vec::new();
    if text.starts_with(RSA) {
        by_digest(
            vec![known::RSA_PKCS1_2048_8192_SHA256],
            vec![known::RSA_PKCS1_2048_8192_SHA384],
            vec![known::RSA_PKCS1_2048_8192_SHA512],
        )
    } else if text.starts_with(ECDSA) {
        by_digest(
            vec![known::ECDSA_P256_SHA256, known::ECDSA_P384_SHA256],
            vec![known::ECDSA_P256_SHA384, known::ECDSA_P384_SHA384],
            none,
        )
    } else {
        none
    }
}
