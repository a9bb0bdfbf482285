//! What is recorded is made again where nothing of it exists, and what differs is named.

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: again
axes: {seed: [1, 2, 3, 4]}
stages:
  make:
    run: [sh, code/make.sh, '${axes.seed}', '${outputs.model}']
    inputs: {words: data/words.txt}
    outputs: {model: model.txt}
  score:
    run: [sh, code/score.sh, '${inputs.model}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str = "echo \"1.$1\" > \"$2\"\n";
const SCORE: &str = "printf '{\"value\": %s}\\n' \"$(cat \"$1\")\" > \"$2\"\n";
/// Another content in each attempt.
const UNSTEADY: &str = "echo \"1.$1\" > \"$2\"\necho \"# $AVOW_ATTEMPT\" >> \"$2\"\n";
const FIRST_LINE: &str = "printf '{\"value\": %s}\\n' \"$(head -n 1 \"$1\")\" > \"$2\"\n";

fn done(make: &str, score: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/words.txt", "one two\n");
    sandbox.file("code/make.sh", make).file("code/score.sh", score);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

#[test]
fn an_experiment_is_made_again_from_the_store_and_not_from_the_working_tree() {
    let sandbox = done(MAKE, SCORE);
    let before = sandbox.history().runs.len();
    // The code that made the results is in the store; what lies in the folder now is something else.
    let said = sandbox.avow(&["reproduce", "--json"]).with_code(0).json();
    assert_eq!(said["same"], 8);
    assert_eq!(said["first"], serde_json::Value::Null);
    assert_eq!(sandbox.history().runs.len(), before, "the project's own store is left alone");
    let told = sandbox.avow(&["reproduce", "spec.yaml"]).with_code(0);
    assert!(told.stdout.contains("8 members made again: 8 the same bytes"), "{}", told.stdout);
    assert!(told.stdout.contains("big: Supported, as before"), "{}", told.stdout);
}

#[test]
fn the_first_stage_that_diverges_is_named_and_what_follows_from_it_is_told_apart() {
    let sandbox = done(UNSTEADY, FIRST_LINE);
    let said = sandbox.avow(&["reproduce", "--json"]).with_code(6).json();
    assert_eq!(said["first"], "make[seed=1]", "{said:#}");
    assert_eq!(said["differs"], 4);
    assert_eq!(said["same"], 4, "scores follow from the first line and are the same");
    let told = sandbox.avow(&["reproduce"]).with_code(6);
    assert!(told.stdout.contains("first to diverge: make[seed=1]"), "{}", told.stdout);
}

#[test]
fn a_number_is_made_again_with_all_that_it_rests_on_and_nothing_else() {
    let sandbox = done(MAKE, SCORE);
    let said = sandbox.avow(&["reproduce", "score.value[seed=3]", "--json"]).with_code(0).json();
    assert_eq!(said["same"], 2);
    let unknown = sandbox.avow(&["reproduce", "nothing.like.it"]).with_code(2);
    assert!(unknown.stderr.contains("hint:"), "{}", unknown.stderr);
}

#[test]
fn a_reader_draws_a_sample_that_the_author_could_not_know() {
    let sandbox = done(MAKE, SCORE);
    let drawn = |nonce: &str| {
        sandbox.avow(&["reproduce", "--sample", "1", "--nonce", nonce, "--json"]).with_code(0).json()
    };
    let names: Vec<_> =
        (0..8).map(|nonce| drawn(&nonce.to_string())["members"][0]["member"].clone()).collect();
    assert!(names.iter().any(|name| *name != names[0]), "other nonces draw other members: {names:?}");
    assert_eq!(drawn("0")["members"][0]["member"], names[0]);
    assert_eq!(drawn("0")["same"], 1);
    let bare = sandbox.avow(&["reproduce", "--sample", "1"]).with_code(2);
    assert!(bare.stderr.contains("nonce"), "{}", bare.stderr);
    let nothing =
        sandbox.avow(&["reproduce", "--sample", "0", "--nonce", "a", "--record", "r.json"]).with_code(2);
    assert!(nothing.stderr.contains("--sample") && !sandbox.path("r.json").exists(), "{}", nothing.stderr);
}

#[test]
fn a_bundle_is_reproduced_by_somebody_who_has_nothing_else() {
    let sandbox = done(MAKE, SCORE);
    sandbox.avow(&["bundle", "-o", "again.zip"]).expect_code(0);
    let reader = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    reader.copy(sandbox.path("again.zip"), "again.zip");
    let said = reader.avow(&["reproduce", "again.zip", "--json"]).with_code(0).json();
    assert_eq!(said["same"], 8);
    reader.avow(&["reproduce", "again.zip", "--keep", "made", "-q"]).expect_code(0);
    assert!(reader.has("made/.avow/journal"));
    assert_eq!(reader.list("."), ["again.zip", "made"]);
}

#[test]
fn the_price_is_told_first() {
    let sandbox = done(MAKE, SCORE);
    let said = sandbox.avow(&["reproduce", "-n"]).with_code(0);
    assert!(said.stderr.contains("8 members to make again"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
}

#[test]
fn what_fails_now_is_a_result_and_not_a_failure_of_the_comparison() {
    // It succeeds once, and never where nothing was made before.
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let flag = sandbox.path("flag").display().to_string();
    sandbox
        .file("avow.toml", "[confine]\nlevel = \"none\"\n")
        .file("spec.yaml", SPEC)
        .file("data/words.txt", "one\n");
    sandbox.file("code/make.sh", format!("test -e {flag} || exit 3\n{MAKE}")).file("code/score.sh", SCORE);
    sandbox.file("flag", "");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.remove("flag");
    let said = sandbox.avow(&["reproduce", "--json"]).with_code(6).json();
    assert_eq!(said["not-made"], 4, "{said:#}");
    assert_eq!(said["first"], "make[seed=1]");
}

/// A reader's key beside the project, and the list in which others have it.
fn key(sandbox: &Sandbox) -> String {
    let key = sandbox.root().with_file_name("reader").display().to_string();
    let made = ["-q", "-t", "ed25519", "-N", "", "-C", "reader@example.org", "-f", &key];
    let run = sandbox.command("ssh-keygen").args(made).output().expect("ssh-keygen is there");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let public = std::fs::read_to_string(format!("{key}.pub")).expect("the key has a public half");
    sandbox.file("allowed_signers", format!("reader@example.org namespaces=\"avow-reproduction\" {public}"));
    key
}

#[test]
fn what_came_of_it_is_a_record_that_a_reader_signs_and_anybody_checks() {
    let sandbox = done(UNSTEADY, FIRST_LINE);
    let key = key(&sandbox);
    sandbox.avow(&["reproduce", "--record", "r.json", "--key", &key, "-q"]).expect_code(6);
    // Everybody's tool verifies the signature over the bytes of the file.
    let check = "ssh-keygen -Y verify -f allowed_signers -I reader@example.org -n avow-reproduction -s r.json.sig < r.json";
    let run = sandbox.command("sh").args(["-c", check]).output().expect("a shell is there");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let trusted = ["verify", "r.json", "--signers", "allowed_signers"];
    let told = sandbox.avow(&trusted).with_code(0).stdout;
    for part in [
        "reproduction of again, plan ",
        "of          the whole experiment",
        "members     4 the same bytes, 4 different",
        "first to diverge: make[seed=1]",
        "big: Supported, as before",
        "signed by reader@example.org (SHA256:",
        "8 members of it are attempts of this project",
    ] {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
    // The record is sound; what it says is not good, which is asked for by itself.
    sandbox.avow(&["verify", "r.json", "--signers", "allowed_signers", "--check"]).expect_code(6);
    let unknown = sandbox.avow(&["verify", "r.json"]).with_code(0).stdout;
    assert!(unknown.contains("which no list of signers names"), "{unknown}");
    let json = sandbox.avow(&[&trusted[..], &["--json"]].concat()).with_code(0).json();
    assert_eq!((&json["signature"]["proof"], &json["compared"]), (&"signed".into(), &8.into()));
    // No number in it can be read in two ways.
    let record = sandbox.read("r.json");
    assert!(!record.contains(' ') || !record.contains(": "), "{record}");
    // One digit, one count, one word: each shows, with and without the signature.
    let refused = |old: &str, new: &str, words: &str| {
        sandbox
            .copy(sandbox.path("r.json"), "changed.json")
            .copy(sandbox.path("r.json.sig"), "changed.json.sig");
        sandbox.replace("changed.json", old, new);
        let said = sandbox.avow(&["verify", "changed.json", "--signers", "allowed_signers"]).with_code(6);
        assert!(said.stderr.contains("its signature proves nothing"), "{}", said.stderr);
        sandbox.remove("changed.json.sig");
        let said = sandbox.avow(&["verify", "changed.json"]).with_code(6);
        assert!(said.stderr.contains(words), "{}", said.stderr);
    };
    refused("\"same\":4", "\"same\":8", "it says that 8 members are `same`, and lists 4");
    refused("\"first\":\"make[seed=1]\"", "\"first\":null", "the first to diverge is");
    let spaced = sandbox.read("r.json").replace("\"kind\":", "\"kind\" :");
    let said = sandbox.file("changed.json", spaced).avow(&["verify", "changed.json"]).with_code(6);
    assert!(said.stderr.contains("not in canonical form"), "{}", said.stderr);
    sandbox.file("none.json", "{\"kind\":\"avow-reproduction\"}");
    sandbox.avow(&["verify", "none.json"]).expect_code(6);
}

#[test]
fn the_record_of_a_sample_from_a_bundle_names_both() {
    let sandbox = done(MAKE, SCORE);
    sandbox.avow(&["bundle", "-o", "again.zip", "-q"]).expect_code(0);
    let name = sandbox.avow(&["verify", "again.zip", "--json"]).with_code(0).json()["name"].clone();
    let reader = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    reader.copy(sandbox.path("again.zip"), "again.zip");
    let args =
        ["reproduce", "again.zip", "--sample", "2", "--nonce", "dice: 4 2", "--record", "r.json", "-q"];
    reader.avow(&args).expect_code(0);
    let told = reader.avow(&["verify", "r.json", "--check"]).with_code(0).stdout;
    let bundle = format!("bundle      {}", name.as_str().unwrap_or_default());
    for part in [&bundle, "sample      2, drawn by `dice: 4 2`", "nobody signed it", "compared with none"] {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
    reader.avow(&["reproduce", "again.zip", "-n", "--record", "r.json"]).expect_code(2);
    reader.avow(&["reproduce", "again.zip", "--sign"]).expect_code(2);
}

#[test]
fn seeds_that_a_registration_gave_are_not_made_again_where_there_is_none() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = SPEC.replace("seed: [1, 2, 3, 4]", "seed: {seeds: 4, fresh: true}");
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("data/words.txt", "one two\n");
    sandbox.file("code/make.sh", MAKE).file("code/score.sh", SCORE);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let refused = sandbox.avow(&["reproduce"]).with_code(2);
    assert!(
        refused.stderr.contains("fresh seeds") && refused.stderr.contains("avow run --verify"),
        "{}",
        refused.stderr
    );
}

/// Draws from the operating system's randomness: a uniform number, moved by what a file says that only one project has.
const DRAW: &str = "\
import json, os, sys
shift = 5.0 if os.path.exists(sys.argv[2]) else 0.0
json.dump({'value': int.from_bytes(os.urandom(6), 'big') / 2**48 + shift}, open(sys.argv[1], 'w'))
";
const DRAWN: &str = "\
avow: 1
experiment: drawn
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}
stages:
  draw:
    run: [python3, draw.py, '${outputs.result}', FLAG, '${axes.seed}']
    determinism: distribution
    measurements: {result: result.json}
  after:
    run: [sh, -c, 'cp \"$1\" \"$2\"', x, '${inputs.x}', '${outputs.copy}']
    inputs: {x: draw.result}
    measurements: {copy: copy.json}
";

#[test]
fn a_stage_that_promises_a_distribution_is_compared_by_its_distribution() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let flag = sandbox.path("flag").display().to_string();
    sandbox.file("avow.toml", "[confine]\nlevel = \"none\"\n");
    sandbox.file("spec.yaml", DRAWN.replace("FLAG", &flag)).file("draw.py", DRAW);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let said = sandbox.avow(&["reproduce", "--json"]).with_code(0).json();
    assert_eq!(said["as-declared"], 24, "{said:#}");
    let found = said["distributions"].as_array().map(Vec::len);
    assert_eq!(found, Some(2), "of the draws, and of what follows from them: {said:#}");
    assert_eq!(
        (&said["distributions"][0]["pairs"], &said["distributions"][0]["differs"]),
        (&12.into(), &false.into())
    );
    // Another distribution, under the same name.
    sandbox.file("flag", "");
    let told = sandbox.avow(&["reproduce"]).with_code(6).stdout;
    assert!(told.contains("draw.value: not from the distribution of the record (12 pairs"), "{told}");
    assert!(told.contains("after.value: not from the distribution of the record"), "{told}");
    // Few are not enough to tell.
    let few = sandbox.avow(&["reproduce", "--sample", "4", "--nonce", "n"]).with_code(0).stdout;
    assert!(few.contains("too few to tell") || few.contains("4 members made again"), "{few}");
}

/// Arrays, tables and images whose numbers move a little, or a lot, in each attempt.
const FORMATS: &str = "\
import os, struct, sys, zlib
where, size = sys.argv[1:]
os.makedirs(os.path.dirname(where), exist_ok=True)
moved = float(size) * (1 + zlib.crc32(os.environ['AVOW_ATTEMPT'].encode()) % 7)
head = b\"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\"
head += b' ' * (117 - len(head)) + b'\\n'
with open(where + '.npy', 'wb') as out:
    out.write(b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(head)) + head + struct.pack('<3d', 100, 200, 300 + moved))
head = b'{\"w\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}   '
with open(where + '.safetensors', 'wb') as out:
    out.write(struct.pack('<Q', len(head)) + head + struct.pack('<2d', 100, 200 + moved))
chunk = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
row = b'\\x00' + bytes([100, min(255, 200 + round(moved * 1000))])
with open(where + '.png', 'wb') as out:
    out.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 2, 1, 8, 0, 0, 0, 0))
              + chunk(b'IDAT', zlib.compress(row)) + chunk(b'IEND', b''))
";

#[test]
fn arrays_and_images_are_compared_within_the_declared_tolerance() {
    let spec = |relative: &str| {
        format!(
            "avow: 1\nexperiment: forms\nstages:\n  make:\n    run: [python3, make.py, '${{outputs.all}}/x', '0.001']\n    \
             outputs: {{all: all/}}\n    determinism: {{class: tolerance, relative: {relative}}}\n"
        )
    };
    for (relative, code, result) in [("0.1", 0, "as-declared"), ("1e-9", 6, "differs")] {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
        sandbox.file("avow.toml", "").file("spec.yaml", spec(relative)).file("make.py", FORMATS);
        sandbox.avow(&["run", "-q"]).expect_code(0);
        // Two attempts may move by the same; a few cannot all.
        let told: Vec<_> = (0..4).map(|_| sandbox.avow(&["reproduce", "--json"])).collect();
        let other = told.into_iter().find(|run| run.json()["same"] == 0);
        let other = other.unwrap_or_else(|| panic!("five attempts moved by the same"));
        assert_eq!(other.code, code, "{}", other.stdout);
        assert_eq!(other.json()[result], 1, "{}", other.stdout);
        for file in ["x.npy", "x.safetensors", "x.png"] {
            let found = other.json()["members"][0]["outputs"]["all"].clone();
            let one = found.as_array().and_then(|all| all.iter().find(|one| one["path"] == file));
            assert_eq!(one.map(|one| one["differs"].clone()), Some("numbers".into()), "{file}: {found:#}");
        }
    }
}
