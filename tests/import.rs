//! Somebody else's evidence is read strictly, shown as foreign wherever it shows, and counted nowhere as own.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use avow_testkit::Sandbox;
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: travel
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  score:
    run: [sh, -c, 'printf \"{\\\"value\\\": %s.5}\" \"$1\" > \"$2\"', x, '${axes.seed}', '${outputs.result}']
    inputs: {words: data/words.txt}
    measurements: {result: result.json}
claims:
  big: {says: Values exceed 0, select: value, rule: {kind: threshold, statistic: mean, above: 0}}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/words.txt", "one two\n");
    sandbox
}

/// Somebody's project that was carried out, and one of ours in which nothing was.
fn theirs_and_ours(export: &[&str], name: &str) -> (Sandbox, Sandbox) {
    let theirs = project();
    theirs.avow(&["register"]).expect_code(0);
    theirs.avow(&["run", "-q"]).expect_code(0);
    theirs.avow(export).expect_code(0);
    let ours = project();
    ours.copy(theirs.path(name), name);
    (theirs, ours)
}

fn bundled() -> (Sandbox, Sandbox) {
    theirs_and_ours(&["bundle", "-o", "theirs.zip"], "theirs.zip")
}

fn crated() -> (Sandbox, Sandbox) {
    theirs_and_ours(&["export", "ro-crate", "-o", "theirs"], "theirs")
}

#[test]
fn a_bundle_is_shown_beside_the_verdicts_and_counted_in_none() {
    let (_theirs, ours) = bundled();
    let before = ours.avow(&["verdict", "--json"]).with_code(0).json();
    let said = ours.avow(&["import", "theirs.zip"]).with_code(0);
    assert!(
        said.stdout.contains("as foreign evidence") && said.stdout.contains("big Supported"),
        "{}",
        said.stdout
    );

    let after = ours.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(after["foreign"][0]["foreign"], true);
    assert_eq!(
        after["foreign"][0]["verdicts"][0],
        json!({"claim": "big", "word": "supported", "units": 8, "confirmatory": true})
    );
    let own = |report: &Value| {
        let mut report = report.clone();
        report.as_object_mut().unwrap().remove("foreign");
        report
    };
    assert_eq!(own(&after), own(&before));
    assert!(ours.avow(&["plan"]).with_code(0).stdout.contains("0 reused, 8 to run"));
    // Neither counts what was imported, nor does a run reuse any of it.
    ours.avow(&["run", "-q", "--only", "score[seed=1]"]).expect_code(0);
    let text = ours.avow(&["verdict"]).with_code(0).stdout;
    let line = text
        .lines()
        .skip_while(|line| !line.starts_with("Foreign evidence, counted in none"))
        .nth(1)
        .unwrap();
    assert!(
        line.contains("bundle") && line.contains("8 acts") && line.contains("big Supported (n 8)"),
        "{text}"
    );
    let report = ours.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(report["completeness"], json!({"done": 1, "open": 7}));
}

#[test]
fn a_crate_is_shown_where_it_is_asked_for_and_imported_once() {
    let (_theirs, ours) = crated();
    let said = ours.avow(&["import", "theirs", "--for", "travel", "--json"]).with_code(0).json();
    assert_eq!((&said["form"], said["acts"].as_array().unwrap().len()), (&json!("ro-crate"), 9));
    let text = ours.avow(&["verdict"]).with_code(0).stdout;
    assert!(text.contains("Foreign evidence, counted in none") && text.contains("crate"), "{text}");
    let listed = ours.avow(&["import"]).with_code(0).stdout;
    assert!(listed.contains("crate") && listed.lines().count() == 1, "{listed}");
    let again = ours.avow(&["import", "theirs"]).with_code(0).stdout;
    assert!(again.contains("was imported already"), "{again}");
}

#[test]
fn a_lineage_tells_what_others_say_of_the_same_bytes_and_keeps_it_apart() {
    let (theirs, ours) = crated();
    ours.avow(&["import", "theirs"]).expect_code(0);
    // A file of theirs, here under another name: own evidence says nothing of it, theirs does.
    ours.copy(ours.path("theirs/results/score/0002/result.json"), "found.json");
    let found = ours.avow(&["lineage", "found.json"]).with_code(0).stdout;
    for part in ["nothing of this project made it", "foreign crate", "score[seed=3]", "data/words.txt"] {
        assert!(found.contains(part), "no `{part}` in\n{found}");
    }
    let json = ours.avow(&["lineage", "found.json", "--json"]).with_code(0).json();
    assert_eq!((&json["foreign"][0]["foreign"], &json["roots"]), (&json!(true), &json!([])));
    ours.avow(&["lineage", "found.json", "--format", "svg"]).expect_code(2);
    ours.file("found.json", "nobody has this");
    ours.avow(&["lineage", "found.json"]).expect_code(2);
    // A file of ours that they have as well: a fact beside the lineage, and no edge of it.
    ours.avow(&["run", "-q"]).expect_code(0);
    let of = ["lineage", "score.value[seed=3]"];
    let own = ours.avow(&of).with_code(0).stdout;
    assert!(own.contains("foreign crate") && own.contains("has the same bytes"), "{own}");
    let json = ours.avow(&[&of[..], &["--json"]].concat()).with_code(0).json();
    let foreign = json["foreign"].as_array().unwrap();
    let result = foreign.iter().find(|same| same["path"] == "results/score/0002/result.json").unwrap();
    assert!(result["made_by"][0]["name"].as_str().unwrap().contains("score[seed=3]"), "{json:#}");
    let edges = json["nodes"].to_string();
    assert!(!edges.contains("foreign"), "{json:#}");
    let drawn = ours.avow(&[&of[..], &["--format", "mermaid"]].concat()).with_code(0).stdout;
    assert!(drawn.contains("foreign crate") && drawn.contains("the same bytes"), "{drawn}");
    // Another project has no such evidence, and its lineages no such word.
    let bare = theirs.avow(&[&of[..], &["--json"]].concat()).with_code(0).json();
    assert!(bare.get("foreign").is_none(), "{bare:#}");
}

#[test]
fn the_report_and_the_audit_of_the_project_tell_of_it() {
    let (_theirs, ours) = bundled();
    ours.avow(&["run", "-q"]).expect_code(0);
    ours.avow(&["import", "theirs.zip"]).expect_code(0);
    ours.avow(&["report", "--html", "page.html"]).expect_code(0);
    let page = ours.read("page.html");
    assert!(page.contains("Foreign evidence") && page.contains("counted in none"), "{page}");
    let audit = ours.avow(&["audit"]).with_code(0).stdout;
    assert!(audit.contains("foreign bundle"), "{audit}");

    let imported = ours.list(".avow/foreign");
    let [name] = imported.as_slice() else { panic!("{imported:?}") };
    let blobs = ours.path(&format!(".avow/foreign/{name}/content/.avow/blobs"));
    damage(&first_file(&blobs));
    let said = ours.avow(&["audit"]).with_code(6);
    assert!(
        said.stdout.contains("foreign") && said.stdout.contains("damaged"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    // Damage of theirs is no damage of ours.
    ours.avow(&["store", "check"]).expect_code(0);
    ours.avow(&["verdict"]).expect_code(0);
}

fn first_file(folder: &Path) -> std::path::PathBuf {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let first = names.remove(0);
    if first.is_dir() { first_file(&first) } else { first }
}

fn damage(file: &Path) {
    let mut permissions = fs::metadata(file).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "a file of the test's own")]
    permissions.set_readonly(false);
    fs::set_permissions(file, permissions).unwrap();
    fs::write(file, "changed").unwrap();
}

#[test]
fn an_edited_record_of_a_crate_is_found() {
    let (_theirs, ours) = crated();
    ours.avow(&["import", "theirs"]).expect_code(0);
    ours.avow(&["audit"]).expect_code(0);
    let name = ours.list(".avow/foreign").remove(0);
    let record = format!(".avow/foreign/{name}/foreign.json");
    ours.replace(&record, "score[seed=3]", "score[seed=30]");
    let said = ours.avow(&["audit"]).with_code(6);
    assert!(said.stdout.contains("does not say what its metadata say"), "{}", said.stdout);
}

#[test]
fn a_crate_is_refused_for_what_is_wrong_with_it() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 9] = [
        ("a changed file", |root| fs::write(root.join("data/words.txt"), "other two\n").unwrap(), "bytes"),
        (
            "a changed file of the same size",
            |root| fs::write(root.join("data/words.txt"), "two one\n").unwrap(),
            "SHA-256",
        ),
        ("a missing file", |root| fs::remove_file(root.join("data/words.txt")).unwrap(), "missing"),
        ("a link", |root| link(&root.join("data/words.txt"), "/etc/passwd"), "link"),
        (
            "a folder that is a link",
            |root| {
                fs::rename(root.join("data"), root.join("../elsewhere")).unwrap();
                symlink("../elsewhere", root.join("data")).unwrap();
            },
            "link",
        ),
        ("a path that climbs", |root| edit(root, "data/words.txt", "../words.txt"), "plain relative path"),
        (
            "an encoded path that climbs",
            |root| edit(root, "data/words.txt", "%2e%2e/words.txt"),
            "plain relative path",
        ),
        ("an absolute path", |root| edit(root, "data/words.txt", "/etc/passwd"), "plain relative path"),
        ("no action", |root| edit(root, "\"CreateAction\"", "\"Action\""), "describes no run"),
    ];
    let (_theirs, ours) = crated();
    for (what, change, words) in changes {
        ours.copy(ours.path("theirs"), "changed");
        change(&ours.path("changed"));
        let said = ours.avow(&["import", "changed"]).with_code(6);
        assert!(said.stderr.contains(words), "{what}: {}", said.stderr);
        assert!(ours.list(".avow/foreign").is_empty(), "{what}");
        ours.remove("changed");
    }
}

fn link(path: &Path, target: &str) {
    fs::remove_file(path).unwrap();
    symlink(target, path).unwrap();
}

fn edit(root: &Path, old: &str, new: &str) {
    let file = root.join("ro-crate-metadata.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(old));
    fs::write(file, text.replace(old, new)).unwrap();
}

/// Packs folders and files as Python's `zipfile` does, in the order given; each is a name and, after `=`, what to pack.
fn packed(sandbox: &Sandbox, name: &str, script: &str) {
    let begin = "import os, sys, zipfile\nz = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n\
        def add(folder, prefix):\n    for at, _, names in os.walk(folder):\n        for n in sorted(names):\n            \
        p = os.path.join(at, n)\n            z.write(p, prefix + os.path.relpath(p, folder))\n";
    sandbox.file("pack.py", format!("{begin}{script}\nz.close()\n"));
    let ran = sandbox.command("python3").args(["-W", "ignore", "pack.py", name]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_crate_in_an_archive_is_the_crate_that_was_packed() {
    let (_theirs, ours) = crated();
    packed(&ours, "flat.zip", "add('theirs', '')");
    packed(&ours, "nested.zip", "add('theirs', 'their-run-1.0/')\nz.writestr('__MACOSX/x', b'')");
    let said = ours.avow(&["import", "flat.zip", "--json"]).with_code(0).json();
    assert_eq!((&said["form"], &said["from"]), (&json!("ro-crate"), &json!("flat.zip")));
    assert_eq!(said["acts"].as_array().unwrap().len(), 9);
    // The folder and the other archive hold the same crate: its name is what its metadata come to.
    for same in ["nested.zip", "theirs"] {
        let again = ours.avow(&["import", same]).with_code(0).stdout;
        assert!(again.contains("was imported already"), "{same}: {again}");
    }
    assert_eq!(ours.list(".avow/foreign").len(), 1);
    ours.avow(&["audit"]).expect_code(0);
}

#[test]
fn an_archive_that_would_do_harm_is_refused() {
    let (_theirs, ours) = crated();
    let rows = [
        ("a path that climbs", "add('theirs', '')\nz.writestr('../evil', b'x')", "evil"),
        ("an absolute path", "add('theirs', '')\nz.writestr('/tmp/evil', b'x')", "evil"),
        ("a path of another system", "add('theirs', '')\nz.writestr('a\\\\..\\\\evil', b'x')", "evil"),
        (
            "a link",
            "add('theirs', '')\ni = zipfile.ZipInfo('way')\ni.external_attr = 0o120777 << 16\nz.writestr(i, '/etc')",
            "link",
        ),
        ("a name twice", "add('theirs', '')\nadd('theirs', '')", "of one name"),
        ("a file where a folder is", "add('theirs', '')\nz.writestr('data', b'x')", "data"),
        ("bytes before", "z.fp.write(b'junk')\nz.start_dir = z.fp.tell()\nadd('theirs', '')", "is refused"),
        ("too much", "add('theirs', '')\nz.writestr('zeros', bytes(20_000_000))", "--max-size"),
    ];
    for (what, script, words) in rows {
        packed(&ours, "evil.zip", script);
        let said = ours.avow(&["import", "evil.zip", "--max-size", "10000000"]).with_code(6);
        assert!(said.stderr.contains(words), "{what}: {}", said.stderr);
        assert!(ours.list(".avow/foreign").is_empty(), "{what}: {:?}", ours.list(".avow/foreign"));
        assert!(!ours.root().with_file_name("evil").exists() && !Path::new("/tmp/evil").exists(), "{what}");
        ours.remove("evil.zip");
    }
    let many = ours.avow(&["import", "theirs", "--max-entries", "3"]).with_code(6);
    assert!(many.stderr.contains("--max-entries"), "{}", many.stderr);
}

#[test]
fn pipes_sizes_and_nesting_do_no_harm() {
    let (_theirs, ours) = crated();
    let large = ours.avow(&["import", "theirs", "--max-size", "10"]).with_code(6);
    assert!(
        large.stderr.contains("the limit is 10") && large.stderr.contains("--max-size"),
        "{}",
        large.stderr
    );
    let many = ours.avow(&["import", "theirs", "--max-entries", "3"]).with_code(6);
    assert!(many.stderr.contains("entities"), "{}", many.stderr);

    let pipe = ours.path("theirs/data/words.txt");
    fs::remove_file(&pipe).unwrap();
    assert!(ours.command("mkfifo").arg(&pipe).status().unwrap().success());
    let said = ours.avow(&["import", "theirs"]).with_code(6);
    assert!(said.stderr.contains("no regular file"), "{}", said.stderr);

    for text in ["[".repeat(100_000), "{\"@graph\": 3}".to_owned(), "\u{0}".to_owned()] {
        ours.file("theirs/ro-crate-metadata.json", text);
        let said = ours.avow(&["import", "theirs"]).with_code(6);
        assert!(said.stderr.contains("metadata are not valid"), "{}", said.stderr);
    }
    ours.remove("theirs/ro-crate-metadata.json");
    assert!(ours.avow(&["import", "theirs"]).with_code(6).stderr.contains("ro-crate-metadata.json"));
    assert!(ours.list(".avow/foreign").is_empty());
}

#[test]
fn a_bundle_that_is_damaged_or_limited_is_not_imported() {
    let (_theirs, ours) = bundled();
    let whole = fs::read(ours.path("theirs.zip")).unwrap();
    fs::write(ours.path("half.zip"), &whole[..whole.len() / 2]).unwrap();
    let said = ours.avow(&["import", "half.zip"]).with_code(6);
    assert!(said.stderr.contains("the bundle is refused"), "{}", said.stderr);
    let small = ours.avow(&["import", "theirs.zip", "--max-size", "10"]).with_code(6);
    assert!(small.stderr.contains("--max-size"), "{}", small.stderr);
    assert!(ours.list(".avow/foreign").is_empty());
    ours.avow(&["import", "nothing.zip"]).expect_code(2);
}

#[test]
fn a_crate_of_another_program_is_read() {
    let ours = project();
    ours.file("theirs/out put.csv", "a\n1\n").file("theirs/tool.py", "print(1)\n");
    let graph = json!([
        {"@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"},
         "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"}},
        {"@id": "./", "@type": "Dataset", "name": "Somebody's \u{1b}[31mrun", "hasPart": [{"@id": "out%20put.csv"}, {"@id": "tool.py"}],
         "conformsTo": {"@id": "https://w3id.org/ro/wfrun/process/0.5"}},
        {"@id": "out%20put.csv", "@type": "File"},
        {"@id": "tool.py", "@type": ["File", "SoftwareSourceCode"], "name": "the tool"},
        {"@id": "https://example.org/data.csv", "@type": "File", "name": "remote data"},
        {"@id": "#act", "@type": "CreateAction", "name": "making", "instrument": {"@id": "tool.py"},
         "object": {"@id": "https://example.org/data.csv"}, "result": [{"@id": "out%20put.csv"}],
         "actionStatus": "http://schema.org/FailedActionStatus", "error": "it broke"},
    ]);
    let document = json!({"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph});
    ours.file("theirs/ro-crate-metadata.json", document.to_string());
    let said = ours.avow(&["import", "theirs", "--json"]).with_code(0).json();
    let act = json!({
        "name": "making", "tool": "the tool", "read": ["remote data"], "wrote": ["out put.csv"], "failed": "it broke",
    });
    assert_eq!(said["acts"], json!([act]));
    let told = ours.avow(&["import"]).with_code(0).stdout;
    assert!(!told.contains('\u{1b}') && told.contains("\\u{1b}"), "{told}");
}
