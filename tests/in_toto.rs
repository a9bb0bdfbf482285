//! Statements that public tools verify, and that break where anything is changed.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use avow_testkit::{Sandbox, Validators};
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: stated
params: {scale: 2}
axes: {seed: [1, 2]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.model}', '${outputs.parts}', '${outputs.raw}']
    inputs: {words: words.txt}
    outputs: {model: model.txt, parts: parts/, raw: {path: raw.bin, keep: digest}}
  breaks:
    run: [sh, -c, 'exit 3']
    outputs: {never: never.txt}
";

fn done() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("words.txt", "one\n");
    let make = "echo \"model $1\" > \"$2\"\nmkdir -p \"$3\"\necho a > \"$3/a.txt\"\necho x > \"$4\"\n";
    sandbox.file("make.sh", make);
    sandbox.avow(&["run", "-q", "-k"]).expect_code(1);
    keygen(&sandbox, "ed25519", "ada", "");
    sandbox
}

fn keygen(sandbox: &Sandbox, kind: &str, name: &str, passphrase: &str) {
    let file = beside(sandbox, name);
    let args = ["-q", "-t", kind, "-N", passphrase, "-C", "ada", "-f", &file];
    run(sandbox.command("ssh-keygen").args(args));
}

fn beside(sandbox: &Sandbox, name: &str) -> String {
    sandbox.root().with_file_name(name).display().to_string()
}

fn run(command: &mut Command) -> String {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).into_owned()
}

const VERIFY: &str = "\
import base64, copy, json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from in_toto_attestation.v1.statement import Statement
import in_toto_attestation.v1.statement_pb2 as pb
import in_toto_attestation.predicates.provenance.v1.provenance_pb2 as provenance
from google.protobuf.json_format import ParseDict
lines, pem, ssh, keyid = sys.argv[1:]
public = load_pem_public_key(open(pem, 'rb').read())
assert public == load_ssh_public_key(open(ssh, 'rb').read())
key = SSlibKey.from_crypto(public, keyid=keyid)
count = 0
for line in open(lines):
    data = json.loads(line)
    envelope = Envelope.from_dict(copy.deepcopy(data))
    assert list(envelope.verify([key], 1)) == [keyid]
    statement = json.loads(envelope.payload)
    parsed = ParseDict(statement, pb.Statement())
    Statement.copy_from_pb(parsed).validate()
    predicate = ParseDict(statement['predicate'], provenance.Provenance())
    assert predicate.run_details.metadata.finished_on.seconds > 0
    changed = copy.deepcopy(data)
    payload = envelope.payload.replace(b'make[seed', b'fake[seed')
    assert payload != envelope.payload
    changed['payload'] = base64.b64encode(payload).decode()
    try:
        Envelope.from_dict(changed).verify([key], 1)
        raise SystemExit('a changed payload verifies')
    except VerificationError:
        pass
    count += 1
print(count)
";

#[test]
fn public_libraries_verify_and_read_the_statements() {
    let sandbox = done();
    let Some(validators) = Validators::find() else { return };
    let said =
        sandbox.avow(&["export", "in-toto", "--key", &beside(&sandbox, "ada"), "--json"]).with_code(0).json();
    assert_eq!(said["statements"], 2);
    let keyid = said["keyid"].as_str().unwrap();
    let listed = run(sandbox.command("ssh-keygen").args(["-l", "-f", &beside(&sandbox, "ada.pub")]));
    assert!(listed.contains(keyid), "{listed} {keyid}");
    let args = ["stated.intoto.jsonl", "stated.intoto.jsonl.pem", &beside(&sandbox, "ada.pub"), keyid];
    assert_eq!(validators.python(&sandbox, VERIFY, &args).trim(), "2");
}

#[test]
fn openssl_verifies_the_signed_bytes() {
    let sandbox = done();
    sandbox.avow(&["export", "in-toto", "--key", &beside(&sandbox, "ada")]).expect_code(0);
    let split = "\
import base64, json
data = json.loads(open('stated.intoto.jsonl').readline())
kind, payload = data['payloadType'].encode(), base64.b64decode(data['payload'])
open('pae.bin', 'wb').write(b'DSSEv1 %d %s %d %s' % (len(kind), kind, len(payload), payload))
open('sig.bin', 'wb').write(base64.b64decode(data['signatures'][0]['sig']))
";
    run(sandbox.command("python3").args(["-c", split]));
    let verify =
        ["pkeyutl", "-verify", "-pubin", "-inkey", "stated.intoto.jsonl.pem", "-rawin", "-in", "pae.bin"];
    let said = run(sandbox.command("openssl").args(verify).args(["-sigfile", "sig.bin"]));
    assert!(said.contains("Signature Verified Successfully"), "{said}");
    let text = std::fs::read(sandbox.path("pae.bin")).unwrap();
    sandbox.file("pae.bin", [text.as_slice(), b" "].concat());
    let changed = sandbox.command("openssl").args(verify).args(["-sigfile", "sig.bin"]).output().unwrap();
    assert!(!changed.status.success());
}

#[test]
fn a_statement_names_what_was_made_of_what() {
    let sandbox = done();
    let said = sandbox.avow(&["export", "in-toto", "--unsigned", "-o", "plain.jsonl"]).with_code(0);
    assert!(
        said.stdout.contains("2 statements") && said.stdout.contains("signed by nobody"),
        "{}",
        said.stdout
    );
    let lines: Vec<Value> =
        sandbox.read("plain.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let first = &lines[0];
    let keys: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["_type", "subject", "predicateType", "predicate"]);
    let subjects: Vec<&str> =
        first["subject"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["model.txt", "parts/a.txt", "raw.bin"]);
    let model = run(sandbox.command("sh").args(["-c", "echo 'model 1' | sha256sum"]));
    assert_eq!(first["subject"][0]["digest"]["sha256"], model[..64]);
    // Of what is kept by its digest there are no bytes to hash again.
    assert_eq!(first["subject"][2]["digest"].as_object().unwrap().keys().collect::<Vec<_>>(), ["blake3"]);
    let made = &first["predicate"]["buildDefinition"];
    assert_eq!(made["externalParameters"]["axes"], json!({"seed": 1}));
    assert_eq!(made["externalParameters"]["params"], json!({"scale": 2}));
    assert_eq!(made["externalParameters"]["member"], "make[seed=1]");
    let rests: Vec<&str> = made["resolvedDependencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert!(rests.contains(&"words.txt") && rests.contains(&"make.sh") && rests.contains(&"sh"), "{rests:?}");
    let text = sandbox.read("plain.jsonl");
    assert!(!text.contains(sandbox.root().to_str().unwrap()));
}

#[test]
fn the_users_agent_signs_where_it_holds_the_key() {
    let sandbox = done();
    keygen(&sandbox, "ed25519", "locked", "secret");
    // With a passphrase that nobody can type here the file alone will not do.
    let alone = sandbox.avow(&["export", "in-toto", "--key", &beside(&sandbox, "locked")]).with_code(2);
    assert!(
        alone.stderr.contains("no agent holds the key") && alone.stderr.contains("ssh-add"),
        "{}",
        alone.stderr
    );
    let script = format!(
        "eval \"$(ssh-agent -s)\" >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT; ssh-add -q {ada} && rm {ada} && \
         {avow} export in-toto --key {ada}.pub",
        ada = beside(&sandbox, "ada"),
        avow = env!("CARGO_BIN_EXE_avow"),
    );
    let said = run(sandbox.command("sh").args(["-c", &script]));
    assert!(said.contains("signed by SHA256:"), "{said}");
    assert!(sandbox.has("stated.intoto.jsonl"));
}

#[test]
fn other_keys_are_refused_with_the_way_out() {
    let sandbox = done();
    keygen(&sandbox, "ecdsa", "curve", "");
    let refused = sandbox.avow(&["export", "in-toto", "--key", &beside(&sandbox, "curve")]).with_code(2);
    assert!(refused.stderr.contains("Ed25519"), "{}", refused.stderr);
    let absent = sandbox.avow(&["export", "in-toto", "--key", &beside(&sandbox, "nobody")]).with_code(2);
    assert!(absent.stderr.contains("nobody"), "{}", absent.stderr);
    assert!(!sandbox.has("stated.intoto.jsonl"));
}
