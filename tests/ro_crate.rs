//! A crate says what was done, in the terms of the public profiles, and the public validator agrees.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use avow_testkit::{Sandbox, Validators};
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: crated
title: Doses and yields
params: {scale: 2}
axes: {dose: [0, 1], seed: [1, 2, 3]}
stages:
  make:
    run: [sh, code/make.sh, '${axes.dose}', '${axes.seed}', '${outputs.model}', '${outputs.parts}', '${outputs.raw}']
    inputs: {words: {path: 'data/some words.txt', licence: CC0-1.0}, more: {path: data/more}}
    outputs: {model: model.txt, parts: parts/, raw: {path: raw.bin, keep: digest}}
    env: {GREETING: hello}
  score:
    run: [sh, code/score.sh, '${inputs.model}', '${params.scale}', '${outputs.result}']
    inputs: {model: make.model}
    measurements: {result: result.json}
  together:
    run: [sh, -c, 'ls \"$1\" > \"$2\"', x, '${inputs.all}', '${outputs.list}']
    inputs: {all: {from: make.model, gather: seed}}
    outputs: {list: list.txt}
  breaks:
    run: [sh, -c, 'exit 3']
    outputs: {never: never.txt}
  waits:
    run: [sh, -c, 'cp \"$1\" \"$2\"', x, '${inputs.never}', '${outputs.copy}']
    inputs: {never: breaks.never}
    outputs: {copy: copy.txt}
claims:
  big: {says: Values exceed 0, select: score.value, where: {dose: 1}, rule: {kind: threshold, statistic: mean, above: 0}}
";

const MAKE: &str = "echo \"$1.$2\" > \"$3\"\nmkdir -p \"$4/inner\"\necho \"$GREETING\" > \"$4/inner/a b.txt\"\necho x > \"$5\"\n";
const SCORE: &str = "printf '{\"value\": %s}\\n' \"$(head -n 1 \"$1\")\" > \"$3\"\n";
const CITATION: &str = "\
cff-version: 1.2.0
message: Please cite it.
title: Doses, yields and crates
abstract: Whether the dose raises the yield.
license: CC-BY-4.0
date-released: '2026-01-31'
keywords: [dose, yield]
authors:
  - {given-names: Ada, family-names: Lovelace, orcid: 'https://orcid.org/0000-0002-1825-0097', affiliation: Analytical Society}
  - {name: The Engine Society}
";

/// A project with a stage that fails, one that never runs, and folders.
fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/some words.txt", "one two\n");
    sandbox.file("data/more/1.csv", "a,b\n1,2\n").file("data/more/deep/2.csv", "a,b\n3,4\n");
    sandbox.file("code/make.sh", MAKE).file("code/score.sh", SCORE);
    sandbox
}

/// The same, carried out.
fn done() -> Sandbox {
    let sandbox = project();
    sandbox.avow(&["run", "-q", "-k"]).expect_code(1);
    sandbox
}

fn metadata(sandbox: &Sandbox, folder: &str) -> Vec<Value> {
    let text = sandbox.read(&format!("{folder}/ro-crate-metadata.json"));
    let document: Value = serde_json::from_str(&text).unwrap();
    document["@graph"].as_array().unwrap().clone()
}

fn entity<'g>(graph: &'g [Value], id: &str) -> &'g Value {
    graph.iter().find(|entity| entity["@id"] == id).unwrap_or_else(|| panic!("nothing is called {id}"))
}

fn of_type<'g>(graph: &'g [Value], kind: &'g str) -> impl Iterator<Item = &'g Value> {
    let is = move |entity: &&Value| match &entity["@type"] {
        Value::Array(kinds) => kinds.iter().any(|k| k == kind),
        one => one == kind,
    };
    graph.iter().filter(is)
}

fn ids(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().filter_map(|item| item["@id"].as_str()).collect(),
        one => one["@id"].as_str().into_iter().collect(),
    }
}

/// The validator with its cache of contexts, which it needs instead of a network.
struct Judge<'s> {
    validators: Validators,
    sandbox: &'s Sandbox,
    cache: PathBuf,
}

impl<'s> Judge<'s> {
    fn new(sandbox: &'s Sandbox) -> Option<Judge<'s>> {
        let validators = Validators::find()?;
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ro-crate");
        let cache = sandbox.root().with_file_name("contexts");
        let mut command = validators.command(sandbox, "python3");
        command.arg(data.join("cache.py")).arg(&cache);
        for (address, file) in [
            ("https://w3id.org/ro/crate/1.1/context", "ro-crate-1.1.jsonld"),
            ("https://w3id.org/ro/crate/1.3/context", "ro-crate-1.3.jsonld"),
            ("https://w3id.org/ro/terms/workflow-run/context", "workflow-run.jsonld"),
        ] {
            command.arg(address).arg(data.join(file));
        }
        let made = command.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(Judge { validators, sandbox, cache })
    }

    /// The report about a crate under a profile.
    fn report(&self, folder: &str, profile: &str) -> Value {
        let mut command = self.validators.command(self.sandbox, "rocrate-validator");
        command.args(["-y", "--disable-color", "validate", "--offline", "--cache-path"]).arg(&self.cache);
        command.args(["-p", profile, "-f", "json", "-o", "report.json", folder]);
        let run = command.output().unwrap();
        let said = [run.stdout, run.stderr].concat();
        assert!(
            matches!(run.status.code(), Some(0 | 1)),
            "the validator failed: {}",
            String::from_utf8_lossy(&said)
        );
        let report: Value = serde_json::from_str(&self.sandbox.read("report.json")).unwrap();
        self.sandbox.remove("report.json");
        assert_eq!(report["validation_settings"]["profile_identifier"], profile);
        report
    }

    #[track_caller]
    fn accepts(&self, folder: &str, profile: &str) {
        let report = self.report(folder, profile);
        assert_eq!(report["passed"], true, "{profile}: {:#}", report["issues"]);
        assert_eq!(report["issues"].as_array().map(Vec::len), Some(0), "{:#}", report["issues"]);
    }
}

#[test]
fn the_public_validator_accepts_every_profile() {
    let sandbox = done();
    sandbox.file("CITATION.cff", CITATION).file("LICENSE-CC", "CC BY\n");
    let Some(judge) = Judge::new(&sandbox) else { return };
    for profile in ["process", "workflow", "provenance"] {
        sandbox.avow(&["export", "ro-crate", "--profile", profile, "-o", profile]).expect_code(0);
        judge.accepts(profile, &format!("{profile}-run-crate-0.5"));
        let newer = format!("{profile}-newer");
        sandbox
            .avow(&["export", "ro-crate", "--profile", profile, "--edition", "0.6", "-o", &newer])
            .expect_code(0);
        judge.accepts(&newer, "ro-crate-1.3");
        let graph = metadata(&sandbox, &newer);
        assert!(ids(&entity(&graph, "./")["conformsTo"]).contains(&"https://w3id.org/ro/wfrun/process/0.6"));
    }
    // A crate of one profile is none of the next, and what is taken away is missed: the validator looks.
    assert_eq!(judge.report("process", "workflow-run-crate-0.5")["passed"], false);
    sandbox.remove("provenance/data/more/1.csv");
    assert_eq!(judge.report("provenance", "provenance-run-crate-0.5")["passed"], false);
    let text = sandbox.read("workflow/ro-crate-metadata.json");
    sandbox.file("workflow/ro-crate-metadata.json", text.replace("\"instrument\"", "\"tool\""));
    assert_eq!(judge.report("workflow", "workflow-run-crate-0.5")["passed"], false);
}

#[test]
fn a_crate_without_a_citation_is_whole_and_says_that_it_has_no_licence() {
    let sandbox = done();
    let said = sandbox.avow(&["export", "ro-crate"]).with_code(0);
    assert!(said.stderr.contains("under which licence"), "{}", said.stderr);
    let graph = metadata(&sandbox, "crated.crate");
    assert_eq!(ids(&entity(&graph, "./")["license"]), ["#no-licence"]);
    sandbox.avow(&["export", "ro-crate", "--licence", "MIT", "-o", "licensed"]).expect_code(0);
    let graph = metadata(&sandbox, "licensed");
    assert_eq!(ids(&entity(&graph, "./")["license"]), ["https://spdx.org/licenses/MIT"]);
    if let Some(judge) = Judge::new(&sandbox) {
        judge.accepts("crated.crate", "provenance-run-crate-0.5");
    }
}

#[test]
fn every_file_is_described_with_the_digest_that_it_has() {
    let sandbox = done();
    sandbox.file("CITATION.cff", CITATION).file("LICENSE", "words\n");
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q", "-k"]).expect_code(1);
    let said = sandbox.avow(&["export", "ro-crate", "-o", "made", "--json"]).with_code(0).json();
    let graph = metadata(&sandbox, "made");
    let mut described = BTreeSet::new();
    for file in of_type(&graph, "File") {
        let id = file["@id"].as_str().unwrap();
        let path = id.replace("%20", " ");
        let bytes = fs::read(sandbox.path("made").join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(file["contentSize"], bytes.len().to_string(), "{path}");
        let blake3 = avow_model::digest::BlobDigest::of(&bytes).to_string();
        assert_eq!(ids(&file["identifier"]), [format!("#blake3-{blake3}")], "{path}");
        assert_eq!(file["sha256"], sha256(&sandbox, &format!("made/{path}")), "{path}");
        described.insert(path);
    }
    let mut there = BTreeSet::new();
    walk(&sandbox.path("made"), "", &mut there);
    assert_eq!(said["files"], there.len());
    assert!(there.remove("ro-crate-metadata.json"));
    assert_eq!(described, there);
    for path in [
        "spec.yaml",
        "code/make.sh",
        "data/some words.txt",
        "data/more/deep/2.csv",
        "results/make/0000/parts/inner/a b.txt",
        "results/score/0005/result.json",
        "results/measurements.csv",
        "results/verdicts.json",
        "registrations/crated.jsonl",
        "CITATION.cff",
        "LICENSE",
    ] {
        assert!(there.contains(path), "{path} is not in {there:?}");
    }
    let parts = ids(&entity(&graph, "./")["hasPart"]);
    assert!(there.iter().all(|path| parts.contains(&path.replace(' ', "%20").as_str())));
}

fn sha256(sandbox: &Sandbox, path: &str) -> String {
    let run = sandbox.command("sha256sum").arg(path).output().unwrap();
    String::from_utf8(run.stdout).unwrap()[..64].to_owned()
}

fn walk(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn attempts_say_what_they_read_and_wrote_and_how_they_ended() {
    let sandbox = done();
    sandbox.avow(&["export", "ro-crate", "-o", "made"]).expect_code(0);
    let graph = metadata(&sandbox, "made");
    let attempts: Vec<&Value> = of_type(&graph, "CreateAction")
        .filter(|a| a["@id"].as_str().unwrap().starts_with("#attempt-"))
        .collect();
    // 6 of make, 6 of score, 2 of together, 1 that broke; what waited was never tried.
    assert_eq!(attempts.len(), 15);
    let called =
        |label: &str| *attempts.iter().find(|a| a["name"] == label).unwrap_or_else(|| panic!("no {label}"));

    let broke = called("breaks");
    assert_eq!(broke["actionStatus"], "http://schema.org/FailedActionStatus");
    assert_eq!(broke["error"], "failed: exit code 3");
    assert_eq!(entity(&graph, "#run")["actionStatus"], "http://schema.org/FailedActionStatus");

    let licence = ids(&entity(&graph, "data/some%20words.txt")["license"]);
    assert_eq!(licence, ["https://spdx.org/licenses/CC0-1.0"]);

    let made = called("make[dose=1,seed=2]");
    let read = ids(&made["object"]);
    assert!(read.contains(&"data/some%20words.txt") && read.contains(&"data/more/"), "{read:?}");
    let point: Vec<(&Value, &Value)> = read
        .iter()
        .map(|id| entity(&graph, id))
        .filter(|e| e["@type"] == "PropertyValue")
        .map(|e| (&e["name"], &e["value"]))
        .collect();
    assert_eq!(point, [(&json!("dose"), &json!(1)), (&json!("seed"), &json!(2))]);
    let variable = entity(&graph, ids(&made["environment"])[0]);
    assert_eq!((&variable["name"], &variable["value"]), (&json!("GREETING"), &json!("hello")));
    let wrote = ids(&made["result"]);
    assert!(
        wrote.contains(&"results/make/0004/model.txt") && wrote.contains(&"results/make/0004/parts/"),
        "{wrote:?}"
    );
    // What is kept by its digest is known and not there.
    let digest = format!("#content-{}", avow_model::digest::BlobDigest::of(b"x\n"));
    assert!(wrote.contains(&digest.as_str()), "{wrote:?}");
    assert_eq!(entity(&graph, &digest)["contentSize"], "2");

    let scored = called("score[dose=1,seed=2]");
    assert!(ids(&scored["object"]).contains(&"results/make/0004/model.txt"));
    let gathered = ids(&called("together[dose=1]")["object"]);
    let models: Vec<&str> = gathered.into_iter().filter(|id| id.starts_with("results/")).collect();
    assert_eq!(
        models,
        ["results/make/0003/model.txt", "results/make/0004/model.txt", "results/make/0005/model.txt"]
    );

    let organised: Vec<&Value> = of_type(&graph, "OrganizeAction").collect();
    assert_eq!((organised.len(), ids(&organised[0]["object"]).len()), (1, 15));
    assert_eq!(of_type(&graph, "HowToStep").count(), 5);
    let tools = ids(&entity(&graph, "spec.yaml")["hasPart"]);
    assert_eq!(tools, ["#tool-breaks", "#tool-make", "#tool-score", "#tool-together"]);
}

#[test]
fn a_crate_credits_whom_the_citation_names() {
    let sandbox = done();
    sandbox.file("CITATION.cff", CITATION);
    sandbox.avow(&["export", "ro-crate", "-o", "made", "--profile", "process"]).expect_code(0);
    let graph = metadata(&sandbox, "made");
    let root = entity(&graph, "./");
    assert_eq!(root["name"], "Doses, yields and crates");
    assert_eq!(root["datePublished"], "2026-01-31");
    assert_eq!(ids(&root["license"]), ["https://spdx.org/licenses/CC-BY-4.0"]);
    assert!(root["description"].as_str().unwrap().starts_with("Whether the dose raises the yield.\n"));
    let authors: Vec<&Value> = ids(&root["author"]).into_iter().map(|id| entity(&graph, id)).collect();
    assert_eq!((&authors[0]["name"], &authors[0]["@type"]), (&json!("Ada Lovelace"), &json!("Person")));
    assert_eq!(authors[0]["@id"], "https://orcid.org/0000-0002-1825-0097");
    assert_eq!(
        (&authors[1]["name"], &authors[1]["@type"]),
        (&json!("The Engine Society"), &json!("Organization"))
    );
    sandbox.file("CITATION.cff", "authors: 3\n");
    let refused = sandbox.avow(&["export", "ro-crate", "-o", "other"]).with_code(2);
    assert!(refused.stderr.contains("CITATION.cff"), "{}", refused.stderr);
    assert!(!sandbox.has("other"));
}

#[test]
fn the_same_evidence_gives_the_same_crate_and_nothing_is_overwritten() {
    let sandbox = done();
    sandbox.avow(&["export", "ro-crate", "-o", "a"]).expect_code(0);
    sandbox.avow(&["export", "ro-crate", "-o", "b"]).expect_code(0);
    assert_eq!(sandbox.read("a/ro-crate-metadata.json"), sandbox.read("b/ro-crate-metadata.json"));
    let refused = sandbox.avow(&["export", "ro-crate", "-o", "a"]).with_code(2);
    assert!(refused.stderr.contains("exists already"), "{}", refused.stderr);
    let names = sandbox.list(".");
    assert!(names.iter().all(|name| !name.starts_with(".avow-crate")), "{names:?}");
}

#[test]
fn hidden_values_and_hosts_stay_out_of_crates() {
    let sandbox = project();
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "score[dose=1,seed=1]"]).expect_code(0);
    let refused = sandbox.avow(&["export", "ro-crate", "-o", "made"]).with_code(5);
    assert!(refused.stderr.contains("stay hidden") && !sandbox.has("made"), "{}", refused.stderr);
    sandbox.avow(&["export", "ro-crate", "-o", "made", "--peek"]).expect_code(0);
    assert!(sandbox.read("registrations/crated.jsonl").contains("exposure"));
    let text = sandbox.read("made/ro-crate-metadata.json");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(
        !text.contains(&format!("\"{}\"", host.trim())) && !text.contains(sandbox.root().to_str().unwrap())
    );
}

#[test]
fn what_was_never_run_makes_no_crate() {
    let refused = project().avow(&["export", "ro-crate"]).with_code(2);
    assert!(refused.stderr.contains("was never run"), "{}", refused.stderr);
}
