//! Stamps by a real `openssl ts`, and every way in which one can be wrong.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests use files and programs")]

use std::path::Path;
use std::process::Command;

use avow_proof::{Refusal, Stamp, pem, sha256, stamp};
use avow_testkit::authority::{Authority, Kind};

const STATEMENT: &[u8] = b"{\"chain\":\"aa\",\"kind\":\"avow-head\"}";

fn roots(authority: &Authority) -> Vec<Vec<u8>> {
    pem::certificates(&authority.read("root.pem")).unwrap()
}

/// A request and its answer.
fn asked(authority: &Authority, message: &[u8], nonce: u8) -> (Vec<u8>, Vec<u8>) {
    let request = stamp::request(&sha256(&[message]), &[nonce; 16]).unwrap();
    let answer = authority.answer(&request);
    (request, answer)
}

fn verify(authority: &Authority, (request, answer): &(Vec<u8>, Vec<u8>)) -> Result<Stamp, Refusal> {
    Stamp::verify(answer, Some(request), &sha256(&[STATEMENT]), &roots(authority), &[])
}

/// What `openssl ts -verify` says, at the time of the token where one is given.
fn openssl(folder: &Path, answer: &[u8], root: &Path, at: i64) -> bool {
    std::fs::write(folder.join("a.tsr"), answer).unwrap();
    std::fs::write(folder.join("a.data"), STATEMENT).unwrap();
    let run = Command::new("openssl")
        .current_dir(folder)
        .args(["ts", "-verify", "-data", "a.data", "-in", "a.tsr", "-attime", &at.to_string(), "-CAfile"])
        .arg(root)
        .output()
        .unwrap();
    run.status.success()
}

#[test]
fn stamps_of_every_kind_of_key_verify_here_and_with_openssl() {
    for kind in [Kind::Rsa, Kind::P256, Kind::P384] {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(&folder.path().join("tsa"), kind);
        let proof = asked(&authority, STATEMENT, 7);
        let stamp = verify(&authority, &proof).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert!(stamp.nonce_checked && stamp.authority.contains("Test Stamper"), "{stamp:?}");
        assert_eq!(stamp.policy, "1.2.3.4.1");
        assert!(openssl(folder.path(), &proof.1, &authority.path("root.pem"), stamp.time), "{kind:?}");
        assert_eq!(stamp::answers(&proof.1, &proof.0, &sha256(&[STATEMENT])), Ok(()));
        // Without the request the nonce is not compared, and that is said.
        let alone = Stamp::verify(&proof.1, None, &sha256(&[STATEMENT]), &roots(&authority), &[]).unwrap();
        assert!(!alone.nonce_checked);
    }
}

#[test]
fn a_stamp_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), Kind::P256);
    let proof = asked(&authority, STATEMENT, 7);
    let other = sha256(&[b"another statement"]);
    let refusal = Stamp::verify(&proof.1, Some(&proof.0), &other, &roots(&authority), &[]);
    assert_eq!(refusal, Err(Refusal::Imprint));
    // A stamp over the same statement that answered somebody else's request.
    let replayed = (asked(&authority, STATEMENT, 8).0, proof.1.clone());
    assert_eq!(verify(&authority, &replayed), Err(Refusal::Nonce));
    assert_eq!(stamp::answers(&proof.1, &replayed.0, &sha256(&[STATEMENT])), Err(Refusal::Nonce));
    let request = stamp::request(&other, &[7; 16]).unwrap();
    assert_eq!(verify(&authority, &(request, proof.1)), Err(Refusal::OtherRequest));
}

#[test]
fn a_stamp_by_somebody_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Authority::new(&folder.path().join("ours"), Kind::P256);
    let foreign = Authority::new(&folder.path().join("foreign"), Kind::P256);
    let proof = asked(&foreign, STATEMENT, 7);
    let refusal = verify(&ours, &proof).unwrap_err();
    assert!(matches!(refusal, Refusal::Authority(_)), "{refusal}");
    assert!(!openssl(folder.path(), &proof.1, &ours.path("root.pem"), 1_800_000_000));
    // One whose certificate had ended when it stamped.
    let lapsed = ("20200101000000Z", "20210101000000Z");
    let lapsed = Authority::with(&folder.path().join("lapsed"), Kind::P256, lapsed, "tsa_ext");
    // The authority grants it all the same.
    let late = asked(&lapsed, STATEMENT, 7);
    assert_eq!(verify(&lapsed, &late), Err(Refusal::AuthorityTime));
}

#[test]
fn a_stamp_with_any_byte_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), Kind::P256);
    let (request, answer) = asked(&authority, STATEMENT, 7);
    let (imprint, roots) = (sha256(&[STATEMENT]), roots(&authority));
    let mut held = 0;
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 0x10;
        // A certificate that the chain does not need, or text beside the status, may change without harm.
        held += usize::from(Stamp::verify(&changed, Some(&request), &imprint, &roots, &[]).is_ok());
    }
    assert!(held * 20 < answer.len(), "{held} of {} changes were not noticed", answer.len());
    for length in 0..answer.len() {
        assert!(Stamp::verify(&answer[..length], Some(&request), &imprint, &roots, &[]).is_err());
    }
}

#[test]
fn a_rejection_is_no_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), Kind::P256);
    // A request over a digest that the authority does not take.
    std::fs::write(authority.path("data"), STATEMENT).unwrap();
    let made = Command::new("openssl")
        .current_dir(folder.path())
        .args(["ts", "-query", "-data", "data", "-sha1", "-out", "sha1.tsq"])
        .status();
    assert!(made.unwrap().success());
    let answer = authority.answer(&authority.read("sha1.tsq"));
    let refusal = Stamp::verify(&answer, None, &sha256(&[STATEMENT]), &roots(&authority), &[]);
    assert!(matches!(refusal, Err(Refusal::NotGranted(_))), "{refusal:?}");
}

#[test]
fn fractions_of_a_second_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), Kind::P256);
    authority.stamp_fractions();
    let mut fractions = 0;
    for nonce in 1..5 {
        let proof = asked(&authority, STATEMENT, nonce);
        let stamp = verify(&authority, &proof).unwrap();
        assert!(stamp.nonce_checked && stamp.time > 1_577_836_800, "{stamp:?}");
        assert!(openssl(folder.path(), &proof.1, &authority.path("root.pem"), stamp.time));
        assert_eq!(stamp::answers(&proof.1, &proof.0, &sha256(&[STATEMENT])), Ok(()));
        let digits = |window: &[u8]| window[0] == b'.' && window[1].is_ascii_digit();
        fractions += usize::from(proof.1.windows(2).any(digits));
        // The fraction is signed like everything else.
        let at = proof.1.windows(2).position(digits).unwrap_or(0) + 1;
        let mut changed = proof.clone();
        changed.1[at] = if changed.1[at] == b'3' { b'4' } else { b'3' };
        assert!(verify(&authority, &changed).is_err());
    }
    assert!(fractions > 0, "no stamp had a fraction");
}

#[test]
fn signatures_by_rsa_pss_hold_whichever_kind_of_key_made_them() {
    for for_pss_alone in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), Kind::Rsa);
        let request = stamp::request(&sha256(&[STATEMENT]), &[7; 16]).unwrap();
        let answer = authority.answer_by_pss(&request, for_pss_alone);
        let proof = (request, answer);
        let stamp = verify(&authority, &proof).unwrap_or_else(|e| panic!("{for_pss_alone}: {e}"));
        assert!(stamp.nonce_checked, "{stamp:?}");
        // Neither the content nor the signature may change.
        for from_end in [1, 100, 200] {
            let mut changed = proof.clone();
            let at = changed.1.len() - from_end;
            changed.1[at] ^= 1;
            assert_eq!(verify(&authority, &changed), Err(Refusal::Token), "{from_end}");
        }
    }
}
