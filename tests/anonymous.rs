//! A bundle for blind review says what the bundle with names says, and not whose it is, until its author opens it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use avow_testkit::Sandbox;
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: blind
axes: {dose: [0, 1], seed: [1, 2, 3, 4]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.model}', '${outputs.note}']
    outputs: {model: model.txt, note: note.txt}
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${inputs.model}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
claims:
  helps:
    says: The dose raises the yield.
    select: yield
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

/// It prints where it runs and who runs it, and writes that into an output on which no claim rests. The code itself names
/// nobody.
const MAKE: &str = "\
who=ada; at=example; of=Analytical
echo \"in $(pwd) by $who-lovelace <$who@$at.org> for the $of Society\"
echo $1 > \"$2\"
echo \"by $who-lovelace\" > \"$3\"
";
const MEASURE: &str =
    "printf '{\"yield\": %s.%s}\\n' \"$(($1 + $(cat \"$2\")))\" \"$(cat \"$2\")\" > \"$3\"\n";

/// A project of Ada's under git, registered with her signature, carried out with one failure first.
fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"))
        .env("USER", "ada-lovelace")
        .env("LOGNAME", "ada-lovelace")
        .env("EMAIL", "ada@example.org");
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("make.sh", MAKE).file("measure.sh", MEASURE);
    let key = sandbox.root().with_file_name("ada").display().to_string();
    run(&sandbox, "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "ada@example.org", "-f", &key]);
    for args in [
        &["init", "-q"][..],
        &["config", "user.name", "Ada Lovelace"],
        &["config", "user.email", "ada@example.org"],
        &["remote", "add", "origin", "git@example.org:ada-lovelace/engine.git"],
        &["add", "-A"],
        &["commit", "-q", "-m", "all of it"],
    ] {
        run(&sandbox, "git", args);
    }
    sandbox.avow(&["register", "--accept-warnings", "--key", &key]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    // A second run reuses everything, and a third verifies some: journals of every kind.
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--verify", "0.2"]).expect_code(0);
    sandbox
}

fn run(sandbox: &Sandbox, program: &str, args: &[&str]) {
    let run = sandbox.command(program).args(args).output().unwrap();
    assert!(run.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else {
            all.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
}

fn blind(sandbox: &Sandbox) -> Value {
    let args = ["bundle", "--anonymous", "--without", "Analytical Society", "-o", "review.zip", "--json"];
    sandbox.avow(&args).with_code(0).json()
}

#[test]
fn nothing_in_an_anonymous_bundle_says_whose_it_is() {
    let author = project();
    let written = blind(&author);
    // A name may be as short as `vm`, which stands in many words: as a name it stands in quotes.
    let host = format!("\"name\":\"{}\"", hostname(&author));
    let reviewer = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    reviewer.copy(author.path("review.zip"), "review.zip");
    reviewer.avow(&["verify", "review.zip", "--unpack", "theirs"]).expect_code(0);
    let mut all = Vec::new();
    files(&reviewer.path("theirs"), &mut all);
    let listing = "import zipfile; z = zipfile.ZipFile('review.zip'); [print(n) for n in z.namelist()]; print(z.read('bundle.json'))";
    let listed = reviewer.command("python3").args(["-c", listing]).output().unwrap();
    all.push(("the archive".to_owned(), listed.stdout));
    let root = author.root().display().to_string();
    let commit = author.command("git").args(["rev-parse", "HEAD"]).output().unwrap();
    let commit = String::from_utf8(commit.stdout).unwrap().trim().to_owned();
    let named = [
        "ada-lovelace",
        "Ada Lovelace",
        "ada@example.org",
        "Analytical Society",
        &root,
        &host,
        &commit,
        "example.org",
        "SSH SIGNATURE",
    ];
    for (path, bytes) in &all {
        let path = path.replace(&reviewer.root().display().to_string(), "");
        for name in named {
            assert!(!holds(bytes, name) && !holds(path.as_bytes(), name), "`{name}` stands in {path}");
        }
    }
    assert!(all.len() > 30, "{}", all.len());
    let kinds: Vec<&str> =
        written["withheld"].as_array().unwrap().iter().map(|piece| piece["kind"].as_str().unwrap()).collect();
    for kind in ["signature", "git", "log"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

/// The name that attempts recorded for the machine. A run that found everything finished has a journal too, without attempts.
fn hostname(sandbox: &Sandbox) -> String {
    let journals = sandbox.list(".avow/journal").into_iter().filter(|name| name.ends_with(".jsonl"));
    let text: String = journals.map(|name| sandbox.read(&format!(".avow/journal/{name}"))).collect();
    let line = text.lines().find(|line| line.contains("\"kind\":\"finished\"")).unwrap();
    let value: Value = serde_json::from_str(line).unwrap();
    value["event"]["attempt"]["host"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_reviewer_verifies_it_and_gets_the_verdicts_of_the_author() {
    let author = project();
    blind(&author);
    let said = author.avow(&["verdict", "--json"]).with_code(0).json();
    let reviewer = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    reviewer.copy(author.path("review.zip"), "review.zip");
    let verified = reviewer.avow(&["verify", "review.zip", "--json"]).with_code(0).json();
    assert_eq!(verified["problems"], serde_json::json!([]));
    assert_eq!(verified["report"]["findings"], serde_json::json!([]));
    let (theirs, ours) = (&verified["report"]["verdicts"][0], &said["verdicts"][0]);
    for part in ["claim", "word", "estimate", "interval", "q", "units", "standing"] {
        assert_eq!(theirs[part], ours[part], "{part}");
    }
    assert_eq!(verified["report"]["denominators"], said["denominators"], "every attempt is still counted");
    let told = reviewer.avow(&["verify", "review.zip"]).with_code(0).stdout;
    assert!(told.contains("anonymous   without names; ") && told.contains("Confirmatory"), "{told}");
    // It is evidence as any: what was done to it shows, and it can be made again.
    reviewer.avow(&["reproduce", "review.zip", "-q"]).expect_code(0);
    let mut bytes = fs::read(reviewer.path("review.zip")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    reviewer.file("changed.zip", bytes).avow(&["verify", "changed.zip"]).expect_code(6);
}

#[test]
fn the_author_proves_afterwards_whose_it_was() {
    let author = project();
    blind(&author);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(author.path("review.opening.json")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // The commitment is the SHA-256 of the opening, by everybody's tool.
    let sum = author.command("sha256sum").arg("review.opening.json").output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let manifest = author.avow(&["verify", "review.zip", "--json"]).with_code(0).json();
    assert_eq!(manifest["anonymous"]["commitment"], sum.split(' ').next().unwrap());
    // More is done in the meantime.
    author.replace("spec.yaml", "above: 0}", "above: 0.1}").avow(&["run", "-q"]).expect_code(0);
    let open = |bundle: &str, opening: &str, named: &str| {
        author.avow(&["verify", bundle, "--opening", opening, "--named", named, "--json"])
    };
    let opened = open("review.zip", "review.opening.json", "review.named.zip").with_code(0).json();
    let named = author.avow(&["verify", "review.named.zip", "--json"]).with_code(0).json();
    assert_eq!(opened["made_from"], named["name"]);
    // The bundle with names has the signature that was withheld.
    author.avow(&["verify", "review.named.zip", "--unpack", "named"]).expect_code(0);
    assert!(author.list("named/registrations/blind.proofs").iter().any(|name| name.ends_with(".sig")));
    // Nothing else opens it: another opening, another bundle, another nonce.
    author.avow(&["bundle", "--anonymous", "-o", "other.zip", "-q"]).expect_code(0);
    for (opening, with) in [
        ("other.opening.json", "review.named.zip"),
        ("review.opening.json", "other.named.zip"),
        ("other.opening.json", "other.named.zip"),
    ] {
        let refused = open("review.zip", opening, with).with_code(6);
        assert!(refused.stderr.contains("does not open this bundle"), "{}", refused.stderr);
    }
    let edited = author.read("review.opening.json").replacen("\"nonce\":\"", "\"nonce\":\"0", 1);
    author.file("edited.json", edited);
    open("review.zip", "edited.json", "review.named.zip").expect_code(6);
    open("review.named.zip", "review.opening.json", "review.named.zip").expect_code(2);
    // An opening is never written over.
    author.remove("review.zip");
    let again = author.avow(&["bundle", "--anonymous", "-o", "review.zip"]);
    assert!([2, 8].contains(&again.code) && again.stderr.contains("review."), "{}", again.stderr);
}

#[test]
fn names_in_what_claims_rest_on_are_told_and_not_taken_out() {
    let author = project();
    author.file("measure.sh", format!("# by Ada Lovelace\n{MEASURE}"));
    author.avow(&["run", "-q"]).expect_code(0);
    let refused = author.avow(&["bundle", "--anonymous"]).with_code(2);
    assert!(
        refused.stderr.contains("names stand in what claims rest on: measure.sh")
            && refused.stderr.contains("hint:"),
        "{}",
        refused.stderr
    );
    assert!(!author.has("blind.avow.zip"), "nothing is written");
}

#[test]
fn seeds_that_a_registration_gave_cannot_be_had_without_its_names() {
    let author = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = SPEC.replace("seed: [1, 2, 3, 4]", "seed: {seeds: 4, fresh: true}");
    author.file("avow.toml", "").file("spec.yaml", spec).file("make.sh", MAKE).file("measure.sh", MEASURE);
    author.avow(&["register", "--accept-warnings"]).expect_code(0);
    author.avow(&["run", "-q"]).expect_code(0);
    let refused = author.avow(&["bundle", "--anonymous"]).with_code(2);
    assert!(refused.stderr.contains("fresh seeds") && refused.stderr.contains("hint:"), "{}", refused.stderr);
    assert!(!author.has("blind.avow.zip"), "nothing is written");
    author.avow(&["bundle"]).expect_code(0);
}
