//! Signatures by a real `ssh-keygen`, and each row of `allowed_signers` against what it says.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests use files and programs")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use avow_proof::{Refusal, Revoked, Signature, Signers};
use tempfile::TempDir;

const MESSAGE: &[u8] = b"{\"kind\":\"avow-head\"}";
const NAMESPACE: &str = "avow-head";
/// 2025-12-01T00:00:00Z
const THEN: i64 = 1_764_547_200;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn keygen(&self, args: &[&str], input: &[u8]) -> (i32, Vec<u8>) {
        let mut child = Command::new("ssh-keygen")
            .current_dir(self.0.path())
            .args(args)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let run = child.wait_with_output().unwrap();
        (run.status.code().unwrap(), run.stdout)
    }

    /// Makes a key and gives its public half.
    fn key(&self, name: &str, kind: &[&str]) -> String {
        let args = [&["-q", "-N", "", "-C", "ada@example.org", "-f", name], kind].concat();
        assert_eq!(self.keygen(&args, b"").0, 0);
        std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap().trim().to_owned()
    }

    fn sign(&self, key: &str, namespace: &str) -> Vec<u8> {
        let (code, signature) = self.keygen(&["-q", "-Y", "sign", "-n", namespace, "-f", key], MESSAGE);
        assert_eq!(code, 0);
        signature
    }

    /// Whether `ssh-keygen` itself accepts it: with this file of signers, as this principal, at this time.
    fn accepts(&self, signers: &str, principal: &str, signature: &[u8], options: &[&str]) -> bool {
        std::fs::write(self.path("signers"), signers).unwrap();
        std::fs::write(self.path("sig"), signature).unwrap();
        let args =
            [&["-Y", "verify", "-f", "signers", "-I", principal, "-n", NAMESPACE, "-s", "sig"], options];
        self.keygen(&args.concat(), MESSAGE).0 == 0
    }
}

#[test]
fn what_ssh_keygen_signs_verifies() {
    let desk = Desk::new();
    for (name, kind) in [
        ("ed25519", &["-t", "ed25519"][..]),
        ("p256", &["-t", "ecdsa", "-b", "256"]),
        ("p384", &["-t", "ecdsa", "-b", "384"]),
        ("rsa", &["-t", "rsa", "-b", "3072"]),
    ] {
        let public = desk.key(name, kind);
        let file = desk.sign(name, NAMESPACE);
        let signature =
            Signature::verify(&file, NAMESPACE, MESSAGE).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(signature.key.key_data(), ssh_key::PublicKey::from_openssh(&public).unwrap().key_data());
        let listed = String::from_utf8(desk.keygen(&["-l", "-f", &format!("{name}.pub")], b"").1).unwrap();
        assert!(listed.contains(&signature.fingerprint()), "{listed}");
        let other = Signature::verify(&file, NAMESPACE, b"another message");
        assert_eq!(other, Err(Refusal::Signature), "{name}");
        let elsewhere = Signature::verify(&file, "avow-verdict", MESSAGE);
        assert!(matches!(elsewhere, Err(Refusal::Namespace { .. })), "{name}");
    }
    desk.key("p521", &["-t", "ecdsa", "-b", "521"]);
    let refusal = Signature::verify(&desk.sign("p521", NAMESPACE), NAMESPACE, MESSAGE).unwrap_err();
    assert!(matches!(refusal, Refusal::Unsupported(_)), "not `bad`: {refusal}");
}

#[test]
fn a_certified_key_is_not_called_bad() {
    let desk = Desk::new();
    desk.key("authority", &["-t", "ed25519"]);
    desk.key("ada", &["-t", "ed25519"]);
    assert_eq!(
        desk.keygen(&["-q", "-s", "authority", "-I", "ada", "-n", "ada@example.org", "ada.pub"], b"").0,
        0
    );
    let refusal = Signature::verify(&desk.sign("ada-cert.pub", NAMESPACE), NAMESPACE, MESSAGE).unwrap_err();
    assert!(matches!(refusal, Refusal::Unsupported(_)), "{refusal}");
}

#[test]
fn no_changed_byte_passes() {
    let desk = Desk::new();
    desk.key("ada", &["-t", "ed25519"]);
    let file = desk.sign("ada", NAMESPACE);
    let before = Signature::verify(&file, NAMESPACE, MESSAGE).unwrap();
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        if let Ok(same) = Signature::verify(&changed, NAMESPACE, MESSAGE) {
            assert_eq!(same, before, "byte {at}");
        }
    }
    for garbage in [&b""[..], b"-----BEGIN SSH SIGNATURE-----\n", &file[..file.len() / 2], &[0xff; 64]] {
        assert!(Signature::verify(garbage, NAMESPACE, MESSAGE).is_err());
    }
}

#[test]
fn each_row_of_allowed_signers_is_read_as_ssh_keygen_reads_it() {
    let desk = Desk::new();
    let (ada, eve) = (desk.key("ada", &["-t", "ed25519"]), desk.key("eve", &["-t", "ed25519"]));
    let file = desk.sign("ada", NAMESPACE);
    let signature = Signature::verify(&file, NAMESPACE, MESSAGE).unwrap();
    let who = "ada@example.org";
    for (row, expected) in [
        (format!("{who} {ada}"), true),
        (format!("# nothing\n\n{who} {ada}"), true),
        (format!("bob@example.org,{who} {ada}"), true),
        (format!("*@example.org {ada}"), true),
        (format!("a?a@example.org {ada}"), true),
        (format!("*@example.org,!ada@* {ada}"), false),
        (format!("\"{who}\" {ada}"), true),
        (format!("bob@example.org {ada}"), false),
        (format!("{who} {eve}"), false),
        (format!("{who} {eve}\n{who} {ada}"), true),
        (format!("{who} namespaces=\"avow-head,git\" {ada}"), true),
        (format!("{who} namespaces=\"avow-*\" {ada}"), true),
        (format!("{who} namespaces=\"git\" {ada}"), false),
        (format!("{who} namespaces=\"git\" {ada}\n{who} {ada}"), true),
        (format!("{who} valid-before=\"20280101Z\" {ada}"), true),
        (format!("{who} valid-before=\"20251101Z\" {ada}"), false),
        (format!("{who} valid-after=\"20251101Z\",valid-before=\"20260101Z\" {ada}"), true),
        (format!("{who} valid-after=\"20260101Z\" {ada}"), false),
        (format!("{who} valid-before=\"202512010001Z\" {ada}"), true),
        (format!("{who} valid-before=\"20251130235959Z\" {ada}"), false),
        (format!("{who} cert-authority {ada}"), false),
    ] {
        let read = Signers::read(&row).unwrap_or_else(|e| panic!("{row}: {e}"));
        let ours = read.allows(&signature, Some(who), THEN);
        assert_eq!(ours.is_ok(), expected, "{row}: {ours:?}");
        let theirs = desk.accepts(&row, who, &file, &["-O", "verify-time=20251201000000Z"]);
        assert_eq!(theirs, expected, "ssh-keygen on {row}");
    }
}

#[test]
fn a_refusal_says_why() {
    let desk = Desk::new();
    let (ada, eve) = (desk.key("ada", &["-t", "ed25519"]), desk.key("eve", &["-t", "ed25519"]));
    let signature = Signature::verify(&desk.sign("ada", NAMESPACE), NAMESPACE, MESSAGE).unwrap();
    let refusal = |row: String, who| Signers::read(&row).unwrap().allows(&signature, who, THEN).unwrap_err();
    assert!(matches!(refusal(format!("ada {eve}"), None), Refusal::UnknownKey(_)));
    assert!(matches!(refusal(format!("ada {ada}"), Some("bob")), Refusal::Principal { .. }));
    assert!(matches!(refusal(format!("ada namespaces=\"git\" {ada}"), None), Refusal::Purpose { .. }));
    assert!(matches!(refusal(format!("ada valid-before=\"20200101Z\" {ada}"), None), Refusal::Expired(_)));
    assert!(matches!(refusal(format!("ada valid-after=\"20300101Z\" {ada}"), None), Refusal::NotYetValid(_)));
    let found = Signers::read(&format!("ada,lovelace {ada}")).unwrap().allows(&signature, None, THEN);
    assert_eq!(found.unwrap(), "ada,lovelace", "whoever it is");
    for bad in [
        "ada",
        "ada nothing",
        "ada namespaces=\"git ssh-ed25519 AAAA",
        "ada verify-required ssh-ed25519 AAAA",
    ] {
        assert!(matches!(Signers::read(bad), Err(Refusal::Malformed(_))), "{bad}");
    }
    for time in ["2025", "20251301Z", "20250230Z", "2025120125Z", "202512012400Z", "x0251201Z"] {
        assert!(Signers::read(&format!("ada valid-before=\"{time}\" {ada}")).is_err(), "{time}");
    }
}

#[test]
fn revoked_keys_are_refused_in_both_forms_of_a_list() {
    let desk = Desk::new();
    let (ada, eve) = (desk.key("ada", &["-t", "ed25519"]), desk.key("eve", &["-t", "ed25519"]));
    let file = desk.sign("ada", NAMESPACE);
    let key = Signature::verify(&file, NAMESPACE, MESSAGE).unwrap().key;
    for (name, revoked, spec) in [("ada", true, "ada.pub"), ("eve", false, "eve.pub")] {
        assert_eq!(desk.keygen(&["-q", "-k", "-f", "krl", spec], b"").0, 0);
        let list = Revoked::read(&std::fs::read(desk.path("krl")).unwrap()).unwrap();
        assert_eq!(list.check(&key).is_err(), revoked, "{name}");
        let signers = format!("ada {ada}");
        assert_eq!(desk.accepts(&signers, "ada", &file, &["-r", "krl"]), !revoked, "ssh-keygen, {name}");
    }
    let plain = Revoked::read(format!("# old\n{ada}\n").as_bytes()).unwrap();
    assert!(matches!(plain.check(&key), Err(Refusal::Revoked(_))));
    assert!(Revoked::read(format!("{eve}\n").as_bytes()).unwrap().check(&key).is_ok());
    for bad in [&b"SSHKRL\n\0\0\0"[..], b"nonsense", &[0xff, 0xfe]] {
        assert!(Revoked::read(bad).is_err());
    }
}
