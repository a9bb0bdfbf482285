//! Whether a certificate is that of a time stamping authority which the reader trusts, at a given time.

use der::Decode;
use der::asn1::ObjectIdentifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use std::time::Duration;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::ext::pkix::ExtendedKeyUsage;

use crate::Refusal;
use crate::der::malformed;

/// `id-kp-timeStamping`, as text and as the content of its DER form.
const TIME_STAMPING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8");
const TIME_STAMPING_DER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

/// The authority that made a stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The subject of its certificate.
    pub name: String,
    /// When its certificate ends, in seconds since 1970.
    pub ends: i64,
}

/// Checks a signer's certificate: its purpose, and its way to one of the roots at this time.
pub fn check(signer: &[u8], chain: &[Vec<u8>], roots: &[Vec<u8>], at: u64) -> Result<Authority, Refusal> {
    let certificate = Certificate::from_der(signer).map_err(malformed)?;
    let tbs = &certificate.tbs_certificate;
    let purposes = tbs.get::<ExtendedKeyUsage>().map_err(malformed)?;
    // RFC 3161 section 2.3: the purpose is there, critical, and the only one.
    match purposes {
        Some((true, ExtendedKeyUsage(purposes))) if purposes == [TIME_STAMPING] => {}
        _ => return Err(Refusal::AuthorityPurpose),
    }
    let (start, end) =
        (tbs.validity.not_before.to_unix_duration(), tbs.validity.not_after.to_unix_duration());
    if at < start.as_secs() || at > end.as_secs() {
        return Err(Refusal::AuthorityTime);
    }
    let roots: Vec<CertificateDer<'_>> = roots.iter().map(|der| CertificateDer::from(&der[..])).collect();
    let anchors: Result<Vec<_>, Error> = roots.iter().map(anchor_from_trusted_cert).collect();
    let anchors = anchors
        .map_err(|error| Refusal::Authority(format!("a trusted certificate cannot be read: {error}")))?;
    let between: Vec<CertificateDer<'_>> = chain.iter().map(|der| CertificateDer::from(&der[..])).collect();
    let signer = CertificateDer::from(signer);
    let entity = EndEntityCert::try_from(&signer).map_err(|error| Refusal::Malformed(error.to_string()))?;
    let time = UnixTime::since_unix_epoch(Duration::from_secs(at));
    let usage = KeyUsage::required_if_present(TIME_STAMPING_DER);
    entity
        .verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, &between, time, usage, None, None)
        .map_err(refusal)?;
    let ends = i64::try_from(end.as_secs()).unwrap_or(i64::MAX);
    Ok(Authority { name: tbs.subject.to_string(), ends })
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::CertExpired { .. } | Error::CertNotValidYet { .. } => Refusal::AuthorityTime,
        Error::UnknownIssuer => Refusal::Authority("no trusted certificate vouches for it".to_owned()),
        other => Refusal::Authority(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use avow_testkit::authority::{Authority as Local, Kind};

    fn der(authority: &Local, name: &str) -> Vec<u8> {
        crate::pem::certificates(&authority.read(name)).expect("openssl wrote it").remove(0)
    }

    #[test]
    fn only_a_certificate_for_stamping_alone_will_do() {
        const NOW: u64 = 1_764_547_200;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let dates = ("20200101000000Z", "20991231000000Z");
        let [good, broad] = ["tsa_ext", "mail_ext"]
            .map(|extensions| Local::with(&folder.path().join(extensions), Kind::P256, dates, extensions));
        let judged = |authority: &Local, signer: &str, at| {
            let (chain, roots) = ([der(authority, "between.pem")], [der(authority, "root.pem")]);
            check(&der(authority, signer), &chain, &roots, at)
        };
        let known = judged(&good, "tsa.pem", NOW).expect("it is one");
        assert!(known.name.contains("Test Stamper") && known.ends > 4_000_000_000, "{known:?}");
        assert_eq!(
            judged(&broad, "tsa.pem", NOW),
            Err(Refusal::AuthorityPurpose),
            "it may sign mail as well"
        );
        assert_eq!(judged(&good, "between.pem", NOW), Err(Refusal::AuthorityPurpose));
        assert_eq!(judged(&good, "tsa.pem", 1_500_000_000), Err(Refusal::AuthorityTime));
        let without = check(&der(&good, "tsa.pem"), &[], &[der(&good, "root.pem")], NOW);
        assert!(matches!(without, Err(Refusal::Authority(_))), "the way to the root is not given");
    }
}
