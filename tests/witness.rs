//! Registrations that others sign and stamp, checked by avow and by the tools that everybody has.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::Output;

use avow_testkit::Sandbox;
use avow_testkit::authority::{Authority, Kind};
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: vouched
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: measure.yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0}}
";

const PROOFS: &str = "registrations/vouched.proofs";

/// A project with a key `ada` beside it.
fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("measure.sh", "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2))\" \"$(($1 * $2))\" > \"$3\"\n");
    run(
        &sandbox,
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-C", "ada@example.org", "-f", &beside(&sandbox, "ada")],
    );
    sandbox
}

fn beside(sandbox: &Sandbox, name: &str) -> String {
    sandbox.root().with_file_name(name).display().to_string()
}

fn shell(sandbox: &Sandbox, script: &str) -> Output {
    sandbox.command("sh").args(["-c", script]).output().unwrap()
}

fn run(sandbox: &Sandbox, program: &str, args: &[&str]) {
    let run = sandbox.command(program).args(args).output().unwrap();
    assert!(run.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Writes `allowed_signers` with options before ada's key.
fn allow(sandbox: &Sandbox, options: &str) {
    let key = std::fs::read_to_string(beside(sandbox, "ada.pub")).unwrap();
    sandbox.file("allowed_signers", format!("ada@example.org {options}{key}"));
}

fn proofs(sandbox: &Sandbox, suffix: &str) -> Vec<PathBuf> {
    let names = sandbox.list(PROOFS).into_iter().filter(|name| name.ends_with(suffix));
    names.map(|name| sandbox.path(PROOFS).join(name)).collect()
}

fn verified(sandbox: &Sandbox, args: &[&str], code: i32) -> Vec<Value> {
    let args = [&["ledger", "verify", "--json"], args].concat();
    sandbox.avow(&args).with_code(code).json()["proofs"].as_array().unwrap().clone()
}

#[test]
fn a_signed_head_is_verified_by_ssh_keygen_and_by_avow() {
    let sandbox = project();
    let said = sandbox.avow(&["register", "--key", &beside(&sandbox, "ada")]).with_code(0).stdout;
    assert!(said.contains("signed with"), "{said}");
    allow(&sandbox, "");
    let check = "cd registrations/vouched.proofs && \
        cat *.head.json | ssh-keygen -Y verify -f ../../allowed_signers -I ada@example.org -n avow-head -s *.head.json.sig";
    assert!(shell(&sandbox, check).status.success());
    // Without a list of signers nobody is known; with one, ada is.
    assert_eq!(verified(&sandbox, &[], 0)[0]["proof"], "unknown");
    let signed = &verified(&sandbox, &["--signers", "allowed_signers"], 0)[0];
    assert_eq!((&signed["proof"], &signed["by"]), (&json!("signed"), &json!("ada@example.org")));

    sandbox.file("avow.toml", "[trust]\nsigners = \"allowed_signers\"\n");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let said = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(said.contains("signed by ada@example.org; the order of events is the author's word"), "{said}");
}

#[test]
fn every_reason_not_to_believe_a_signature_is_told() {
    let sandbox = project();
    sandbox.avow(&["register", "--key", &beside(&sandbox, "ada")]).expect_code(0);
    let why = |options: &str, args: &[&str]| {
        allow(&sandbox, options);
        let proofs = verified(&sandbox, &[&["--signers", "allowed_signers"], args].concat(), 6);
        assert_eq!(proofs[0]["proof"], "refused", "{proofs:?}");
        proofs[0]["why"].as_str().unwrap().to_owned()
    };
    assert!(why("namespaces=\"git\" ", &[]).contains("may not sign for `avow-head`"));
    assert!(why("", &["--principal", "bob@example.org"]).contains("not one of `bob@example.org`"));
    assert!(why("valid-before=\"20200101Z\" ", &[]).contains("no longer valid"));
    assert!(why("valid-after=\"20990101Z\" ", &[]).contains("not valid yet"));
    run(&sandbox, "ssh-keygen", &["-q", "-k", "-f", "krl", &beside(&sandbox, "ada.pub")]);
    assert!(why("", &["--revoked", "krl"]).contains("is revoked"));
    // A signature for another purpose, by the same key over the same statement.
    let script = format!(
        "cd registrations/vouched.proofs && cat *.head.json | ssh-keygen -q -Y sign -n git -f {} > other && mv other *.sig",
        beside(&sandbox, "ada")
    );
    assert!(shell(&sandbox, &script).status.success());
    assert!(why("", &[]).contains("signed for `git`, not for `avow-head`"));
    // A refused proof is told beside the verdict as well.
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let said = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(
        said.contains("refused: it is signed for `git`") && said.contains("no outside witness"),
        "{said}"
    );
}

#[test]
fn the_agent_signs_without_the_private_key() {
    let sandbox = project();
    let key = beside(&sandbox, "ada");
    let avow = env!("CARGO_BIN_EXE_avow");
    // The private half is gone before avow is asked; the agent ends with its shell.
    let script = format!(
        "eval \"$(ssh-agent -s)\" > /dev/null; trap 'ssh-agent -k > /dev/null' EXIT; \
         ssh-add -q {key} && rm {key} && {avow} register --key {key}.pub"
    );
    let run = shell(&sandbox, &script);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    allow(&sandbox, "");
    assert_eq!(verified(&sandbox, &["--signers", "allowed_signers"], 0)[0]["proof"], "signed");
    // Without agent and file there is nothing to sign with; the registration stays, and can be signed later.
    let run = sandbox.avow(&["ledger", "witness", "--key", &format!("{key}.pub")]).with_code(2);
    assert!(run.stderr.contains("ssh-add"), "{}", run.stderr);
}

#[test]
fn a_stamp_fixes_the_date_of_the_registration_and_of_the_signature() {
    let sandbox = project();
    let authority = Authority::new(&sandbox.root().with_file_name("tsa"), Kind::Rsa);
    let url = authority.serve();
    let root = authority.path("root.pem").display().to_string();
    let key = beside(&sandbox, "ada");
    let said = sandbox.avow(&["register", "--key", &key, "--tsa", &url]).with_code(0).stdout;
    assert!(said.contains("stamped by http://127.0.0.1"), "{said}");
    let check = format!(
        "cd registrations/vouched.proofs && cat *.head.json *.head.json.sig > ../../both && \
         openssl ts -verify -data ../../both -in *.tsr -CAfile {root} && \
         openssl ts -verify -queryfile *.tsq -in *.tsr -CAfile {root}"
    );
    let run = shell(&sandbox, &check);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    // The key ends a day from now and a reader looks years later: its validity is judged at the stamp's time. What
    // matters is that it is not judged now, so here it has ended by now and had not at the stamp.
    allow(&sandbox, "");
    let args = ["--signers", "allowed_signers", "--authority", &root];
    let all = verified(&sandbox, &args, 0);
    assert_eq!((&all[0]["proof"], &all[1]["proof"]), (&json!("signed"), &json!("stamped")));
    assert_eq!(all[0]["at"], all[1]["time"], "judged at the stamp's time");
    assert_eq!(all[1]["nonce_checked"], true);
    let time = all[1]["time"].as_i64().unwrap();
    let ended =
        sandbox.command("date").args(["-u", "-d", &format!("@{}", time + 1), "+%Y%m%d%H%M%SZ"]).output();
    let ended = String::from_utf8(ended.unwrap().stdout).unwrap();
    while sandbox.command("date").arg("+%s").output().unwrap().stdout
        <= format!("{}\n", time + 2).into_bytes()
    {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    allow(&sandbox, &format!("valid-before=\"{}\" ", ended.trim()));
    assert_eq!(verified(&sandbox, &args, 0)[0]["proof"], "signed");
    // Nobody who does not trust the authority may judge by its time.
    assert_eq!(verified(&sandbox, &args[..2], 6)[0]["proof"], "refused");

    sandbox
        .file("avow.toml", format!("[trust]\nsigners = \"allowed_signers\"\nauthorities = [\"{root}\"]\n"));
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let said = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(said.contains("registered before 20") && said.contains("Test Stamper"), "{said}");
    let report = sandbox.avow(&["verdict", "--json"]).json();
    assert_eq!(report["witness"]["stamped"][0], time);
    assert_eq!(report["witness"]["signed"], json!(["ada@example.org"]));
}

#[test]
fn replayed_foreign_and_moved_proofs_are_refused() {
    let sandbox = project();
    let folder = |name: &str| sandbox.root().with_file_name(name);
    let (ours, foreign) =
        (Authority::new(&folder("ours"), Kind::P256), Authority::new(&folder("foreign"), Kind::P256));
    sandbox.avow(&["register", "--tsa", &ours.serve()]).expect_code(0);
    let root = |authority: &Authority| authority.path("root.pem").display().to_string();
    let why = |authority: &Authority| {
        let all = verified(&sandbox, &["--authority", &root(authority)], 6);
        let refused: Vec<&Value> = all.iter().filter(|proof| proof["proof"] == "refused").collect();
        refused[0]["why"].as_str().unwrap().to_owned()
    };
    assert!(why(&foreign).contains("not trusted"));
    // The answer to another request for the same statement.
    let (answers, requests) = (proofs(&sandbox, ".tsr"), proofs(&sandbox, ".tsq"));
    let (answer, request) = (std::fs::read(&answers[0]).unwrap(), std::fs::read(&requests[0]).unwrap());
    sandbox.avow(&["ledger", "witness", "--tsa", &ours.serve()]).expect_code(0);
    let second = proofs(&sandbox, ".2.tsq");
    std::fs::copy(&second[0], &requests[0]).unwrap();
    assert!(why(&ours).contains("nonce"));
    std::fs::write(&requests[0], request).unwrap();
    // A stamp over something else.
    let other = ours.answer(&avow_proof::stamp::request(&[7; 32], &[7; 16]).unwrap());
    std::fs::write(&answers[0], other).unwrap();
    assert!(why(&ours).contains("imprint"));
    std::fs::write(&answers[0], answer).unwrap();
    verified(&sandbox, &["--authority", &root(&ours)], 0);
    // The whole folder of proofs under another chain.
    let name = answers[0].file_name().unwrap().to_str().unwrap()[..64].to_owned();
    sandbox.remove("registrations/vouched.jsonl").remove(".avow");
    sandbox.avow(&["register"]).expect_code(0);
    let run = sandbox.avow(&["ledger", "verify", "--authority", &root(&ours)]).with_code(6);
    assert!(run.stderr.contains(&name[..8]) && run.stderr.contains("lacks the line"), "{}", run.stderr);
}

#[test]
fn an_authority_that_fails_leaves_the_registration() {
    let sandbox = project();
    let run = sandbox.avow(&["register", "--tsa", "http://127.0.0.1:9/tsa"]).with_code(8);
    assert!(run.stderr.contains("ledger witness --tsa"), "{}", run.stderr);
    assert_eq!(sandbox.read("registrations/vouched.jsonl").lines().count(), 1);
    let authority = Authority::new(&sandbox.root().with_file_name("tsa"), Kind::P256);
    sandbox.avow(&["ledger", "witness", "--tsa", &authority.serve()]).expect_code(0);
    let root = authority.path("root.pem").display().to_string();
    assert_eq!(verified(&sandbox, &["--authority", &root], 0)[0]["proof"], "stamped");
}

#[test]
fn git_tags_and_other_files_lie_beside() {
    let sandbox = project();
    let key = beside(&sandbox, "ada");
    for args in [
        &["init", "-q"][..],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.org"],
        &["config", "gpg.format", "ssh"],
        &["config", "user.signingkey", &key],
        &["add", "spec.yaml"],
        &["commit", "-q", "-m", "spec"],
    ] {
        run(&sandbox, "git", args);
    }
    sandbox.avow(&["register", "--git-tag", "--sign"]).expect_code(0);
    allow(&sandbox, "");
    run(&sandbox, "git", &["config", "gpg.ssh.allowedSignersFile", "allowed_signers"]);
    run(&sandbox, "git", &["verify-tag", "avow/vouched/1"]);
    sandbox.file("head.ots", "an OpenTimestamps proof, as far as anyone here can tell");
    sandbox.avow(&["ledger", "witness", "--attach", "head.ots"]).expect_code(0);
    let all = verified(&sandbox, &["--signers", "allowed_signers"], 0);
    assert_eq!((&all[0]["proof"], &all[1]["proof"]), (&json!("signed"), &json!("attached")));
    let said = sandbox.avow(&["ledger", "verify"]).with_code(0).stdout;
    assert!(said.contains("pending unless verified elsewhere"), "{said}");
    // The tag names the head: a ledger that lost it is told.
    sandbox.remove(PROOFS).remove("registrations/vouched.jsonl");
    sandbox.avow(&["register"]).expect_code(0);
    let run = sandbox.avow(&["ledger", "verify"]).with_code(6);
    assert!(run.stderr.contains("avow/vouched/1"), "{}", run.stderr);
}
