//! A bundle says to somebody else what the project says, and what was done to it shows.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: travel
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
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

const MAKE: &str = "echo \"1.$1\" > \"$2\"\nyes filler | head -n 2000 >> \"$2\"\necho \"made $1\"\n";
const SCORE: &str = "printf '{\"value\": %s}\\n' \"$(head -n 1 \"$1\")\" > \"$2\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/words.txt", "one two\n");
    sandbox.file("code/make.sh", MAKE).file("code/score.sh", SCORE);
    sandbox
}

/// A project whose registered plan was carried out.
fn done() -> Sandbox {
    let sandbox = project();
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

/// The bundle of a project, moved to where nothing else of it is.
fn sent(sandbox: &Sandbox, arguments: &[&str]) -> Sandbox {
    sandbox.avow(&[&["bundle", "-o", "travel.zip"], arguments].concat()).expect_code(0);
    let reader = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    reader.copy(sandbox.path("travel.zip"), "travel.zip");
    sandbox.remove("travel.zip");
    reader
}

fn verdicts(of: &serde_json::Value) -> String {
    of["verdicts"].to_string()
}

#[test]
fn a_reader_gets_the_verdicts_that_the_author_has() {
    let author = done();
    let said = author.avow(&["verdict", "--json"]).with_code(0).json();
    let reader = sent(&author, &[]);
    let verified = reader.avow(&["verify", "travel.zip", "--json", "--check"]).with_code(0).json();
    assert_eq!(verdicts(&verified["report"]), verdicts(&said));
    assert_eq!(verified["report"]["standing"], said["standing"]);
    assert_eq!(verified["problems"].as_array().unwrap().len(), 0);
    assert_eq!(reader.list("."), ["travel.zip"]);
}

#[test]
fn what_is_unpacked_is_a_project_in_which_everything_was_done() {
    let author = done();
    let said = author.avow(&["verdict", "--json"]).with_code(0).json();
    let reader = sent(&author, &[]);
    reader.avow(&["verify", "travel.zip", "--unpack", "theirs"]).expect_code(0);
    let inside = |args: &[&str]| {
        let run =
            reader.command(env!("CARGO_BIN_EXE_avow")).current_dir(reader.path("theirs")).args(args).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let there: serde_json::Value = serde_json::from_str(&inside(&["verdict", "--json"])).unwrap();
    assert_eq!(verdicts(&there), verdicts(&said));
    assert!(inside(&["store", "check"]).contains("all sound"));
    assert!(inside(&["plan"]).contains("16 reused, 0 to run"), "{}", inside(&["plan"]));
    assert_eq!(reader.read("theirs/data/words.txt"), "one two\n");
    let again = reader.avow(&["verify", "travel.zip", "--unpack", "theirs"]).with_code(2);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
}

#[test]
fn a_bundle_is_an_archive_that_other_programs_can_check() {
    let reader = sent(&done(), &[]);
    let script = "\
import hashlib, json, zipfile
with zipfile.ZipFile('travel.zip') as archive:
    assert archive.testzip() is None
    names = archive.namelist()
    manifest = json.loads(archive.read(names[0]))
    assert names == ['bundle.json'] + [e['name'] for e in manifest['entries']], names
    for e in manifest['entries']:
        data = archive.read(e['name'])
        assert len(data) == e['size'] and hashlib.sha256(data).hexdigest() == e['sha256'], e
    print(hashlib.sha256(archive.read('bundle.json')).hexdigest())
";
    let run = reader.command("python3").args(["-c", script]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let verified = reader.avow(&["verify", "travel.zip", "--json"]).with_code(0).json();
    assert_eq!(verified["name"], String::from_utf8(run.stdout).unwrap().trim());
}

#[test]
fn the_same_evidence_gives_the_same_archive() {
    let author = done();
    author.avow(&["bundle", "-o", "a.zip"]).expect_code(0);
    author.avow(&["bundle", "-o", "b.zip"]).expect_code(0);
    assert_eq!(fs::read(author.path("a.zip")).unwrap(), fs::read(author.path("b.zip")).unwrap());
    let taken = author.avow(&["bundle", "-o", "a.zip"]).with_code(2);
    assert!(taken.stderr.contains("another path"), "{}", taken.stderr);
}

#[test]
fn a_thin_bundle_leaves_out_what_can_be_made_again_and_says_so() {
    let author = done();
    let reader = sent(&author, &["--thin"]);
    let whole = sent(&author, &[]);
    let size = |sandbox: &Sandbox| fs::metadata(sandbox.path("travel.zip")).unwrap().len();
    assert!(size(&reader) < size(&whole));
    let verified = reader.avow(&["verify", "travel.zip", "--json", "--check"]).with_code(0).json();
    assert_eq!(verified["absent"], 8);
    let told = reader.avow(&["verify", "travel.zip"]).with_code(0);
    assert!(told.stdout.contains("left out    8 blobs"), "{}", told.stdout);
}

#[test]
fn what_was_done_to_a_bundle_shows() {
    let reader = sent(&done(), &[]);
    let whole = fs::read(reader.path("travel.zip")).unwrap();
    let refused = |bytes: &[u8], words: &str| {
        fs::write(reader.path("changed.zip"), bytes).unwrap();
        let said = reader.avow(&["verify", "changed.zip"]).with_code(6);
        assert!(said.stderr.contains(words), "{}", said.stderr);
        assert_eq!(said.stdout, "");
    };
    refused(&whole[..whole.len() / 2], "the bundle is refused");
    refused(&[whole.as_slice(), b"more"].concat(), "the bundle is refused");
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 1;
    refused(&flipped, "the bundle is refused");
    let absent = reader.avow(&["verify", "nothing.zip"]).with_code(2);
    assert!(absent.stderr.contains("nothing.zip"), "{}", absent.stderr);
    reader.avow(&["import", "nothing.zip"]).expect_code(2);
}

/// What an author may do who writes a bundle of changed evidence, with digests that fit.
#[test]
fn evidence_that_was_changed_before_it_was_bundled_is_named() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 3] = [
        ("a deleted journal", |root| fs::remove_file(only(&root.join(".avow/journal"))).unwrap(), "journal"),
        ("an edited journal", |root| edit(&only(&root.join(".avow/journal")), "seed=3", "seed=4"), "journal"),
        (
            "an edited ledger",
            |root| edit(&root.join("registrations/travel.jsonl"), "run-closed", "run-opened"),
            "ledger",
        ),
    ];
    for (what, change, words) in changes {
        // While a registered plan looks incomplete its values stay hidden, also where a journal is gone.
        let author = if words == "ledger" { done() } else { project() };
        author.avow(&["run", "-q"]).expect_code(0);
        change(author.root());
        let bundled = author.avow(&["bundle", "-o", "travel.zip"]);
        assert!([0, 6].contains(&bundled.code), "{what}: {}", bundled.stderr);
        let said = author.avow(&["verify", "travel.zip"]).with_code(6);
        assert!(said.stderr.contains(words), "{what}: {}", said.stderr);
    }
}

fn only(folder: &Path) -> std::path::PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

fn edit(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{old} is not in {}", file.display());
    fs::write(file, text.replacen(old, new, 1)).unwrap();
}

#[test]
fn values_stay_hidden_also_from_bundles() {
    let author = project();
    author.avow(&["register"]).expect_code(0);
    author.avow(&["run", "-q", "--only", "score[seed=1]"]).expect_code(0);
    let refused = author.avow(&["bundle"]).with_code(5);
    assert!(refused.stderr.contains("stay hidden"), "{}", refused.stderr);
    author.avow(&["bundle", "--peek", "-o", "travel.zip"]).expect_code(0);
    assert!(author.read("registrations/travel.jsonl").contains("exposure"));
    let said = author.avow(&["verify", "travel.zip", "--check"]).with_code(5);
    assert!(said.stdout.contains("no verdicts yet"), "{}", said.stdout);
}

#[test]
fn what_was_never_run_cannot_be_bundled() {
    let author = project();
    let refused = author.avow(&["bundle"]).with_code(2);
    assert!(refused.stderr.contains("was never run"), "{}", refused.stderr);
    assert!(refused.stderr.contains("avow run"), "{}", refused.stderr);
}

/// A project whose axis is a table, with a citation and licences.
fn tabled() -> Sandbox {
    let sandbox = project();
    sandbox.replace(
        "spec.yaml",
        "axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}",
        "axes: {seed: {from: data/seeds.csv}}",
    );
    sandbox.file("data/seeds.csv", "seed\n1\n2\n3\n4\n5\n6\n");
    sandbox.file("CITATION.cff", "cff-version: 1.2.0\ntitle: T\nauthors: [{name: The Engine Society}]\n");
    sandbox.file("LICENSE-MIT", "Copyright (c) The Engine Society\n").file("notes.txt", "private\n");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

#[test]
fn tables_of_axes_citation_and_licences_travel_along_and_nothing_else_does() {
    let author = tabled();
    let reader = sent(&author, &[]);
    reader.avow(&["verify", "travel.zip", "--unpack", "theirs"]).expect_code(0);
    for path in ["data/seeds.csv", "CITATION.cff", "LICENSE-MIT"] {
        assert_eq!(reader.read(&format!("theirs/{path}")), author.read(path));
    }
    assert!(!reader.has("theirs/notes.txt"));
    let run = ["-c", "cd theirs && exec \"$0\" verdict", env!("CARGO_BIN_EXE_avow")];
    let run = reader.command("sh").args(run).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(String::from_utf8_lossy(&run.stdout).contains("Supported"));
    // From the bundle, and in the project, everything can be made again.
    assert_eq!(reader.avow(&["reproduce", "travel.zip", "--json"]).with_code(0).json()["same"], 12);
    assert_eq!(author.avow(&["reproduce", "--json"]).with_code(0).json()["same"], 12);
}

#[test]
fn a_blind_bundle_keeps_the_table_and_withholds_whose_work_it_is() {
    let author = tabled();
    author.avow(&["bundle", "--anonymous", "-o", "review.zip"]).expect_code(0);
    let reader = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    for file in ["review.zip", "review.named.zip", "review.opening.json"] {
        reader.copy(author.path(file), file);
    }
    reader.avow(&["verify", "review.zip", "--unpack", "theirs"]).expect_code(0);
    assert!(reader.has("theirs/data/seeds.csv"));
    assert!(!reader.has("theirs/CITATION.cff") && !reader.has("theirs/LICENSE-MIT"));
    let holds = |bundle: &str, text: &str| {
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\n\
            print(any(sys.argv[2].encode() in z.read(n) for n in z.namelist()))";
        let ran = reader.command("python3").args(["-c", script, bundle, text]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim() == "True"
    };
    assert!(holds("review.named.zip", "Engine Society") && !holds("review.zip", "Engine Society"));
    let script = "import zipfile; print(zipfile.ZipFile('review.zip').read('bundle.json').decode())";
    let listed = reader.command("python3").args(["-c", script]).output().unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let withheld: Vec<&str> = manifest["anonymous"]["withheld"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|piece| piece["kind"].as_str())
        .collect();
    assert!(withheld.contains(&"citation") && withheld.contains(&"licence"), "{withheld:?}");
    let opened = ["verify", "review.zip", "--opening", "review.opening.json", "--named", "review.named.zip"];
    reader.avow(&opened).expect_code(0);
}

/// What a sender might put beside the records to be written into the reader's folder.
#[test]
fn a_bundle_puts_nothing_but_tables_and_credits_beside_its_records() {
    let author = tabled();
    author.avow(&["bundle", "-o", "travel.zip", "-q"]).expect_code(0);
    let script = "\
import json, sys, zipfile
old, new = sys.argv[1:]
source = zipfile.ZipFile('travel.zip')
target = zipfile.ZipFile('evil.zip', 'w', zipfile.ZIP_DEFLATED)
for info in source.infolist():
    data = source.read(info)
    if info.filename == 'bundle.json':
        changed = data.replace(json.dumps(old).encode(), json.dumps(new).encode())
        assert changed != data
        data = changed
    info.external_attr = 0o100644 << 16
    target.writestr(info, data)
target.close()
";
    author.file("alter.py", script);
    let rows = [
        ("data/seeds.csv", "avow.toml"),
        ("data/seeds.csv", "../seeds.csv"),
        ("data/seeds.csv", "/tmp/seeds.csv"),
        ("data/seeds.csv", ".git/seeds.csv"),
        ("data/seeds.csv", "code/make.sh"),
        ("LICENSE-MIT", "bin/LICENSE-MIT"),
        ("CITATION.cff", "CITATION.sh"),
    ];
    for (old, new) in rows {
        let ran = author.command("python3").args(["alter.py", old, new]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let said = author.avow(&["verify", "evil.zip", "--unpack", "evil"]).with_code(6);
        assert!(
            said.stderr.contains("may lie at") || said.stderr.contains("not sorted"),
            "{new}: {}",
            said.stderr
        );
        assert!(!author.has("evil"), "{new}");
        author.remove("evil.zip");
    }
}
