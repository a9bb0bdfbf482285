//! From a number down to files, code and programs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::lineage::{Address, AddressError, Lineage, Thing, lineage};
use avow_model::canonical::Record;
use avow_model::claim::{Method, Part};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Environment, Input, MeasurementFormat, Plan, Program, Source};
use avow_model::tree::{Entry, Tree};
use avow_store::BlobStore;
use common::*;

fn code() -> Tree {
    let mut tree = Tree::default();
    let digest = BlobDigest::of(b"print(1)");
    tree.insert("train.py", Entry::File { digest, executable: false }).unwrap();
    tree
}

/// `split` from `data/digits.csv`, `train[seed]` from it with code, lock and interpreter, `score` by an operation
/// over all seeds.
fn experiment() -> Lab {
    let output = |stage: &str, gather: Vec<String>| Input {
        from: Source::Output {
            stage: stage.to_owned(),
            output: "result".to_owned(),
            at: BTreeMap::new(),
            gather,
        },
        mount: format!("inputs/{stage}"),
        scoring: false,
        licence: None,
    };
    let mut split = stage("split", &[], MeasurementFormat::FlatJson);
    split.measurements.clear();
    let data = Artifact::Blob(BlobDigest::of(b"1,2,3"));
    let path = Source::Path { path: "data/digits.csv".to_owned(), artifact: data };
    split.inputs.insert(
        "raw".to_owned(),
        Input { from: path, mount: "data/digits.csv".to_owned(), scoring: false, licence: None },
    );
    let mut train = stage("train", &["seed"], MeasurementFormat::FlatJson);
    train.inputs.insert("split".to_owned(), output("split", vec![]));
    train.code = Some(code().digest());
    train.toolchain.insert("python3".to_owned(), BlobDigest::of(b"cpython 3.11"));
    train.environment = Some(Environment {
        manager: "uv".to_owned(),
        path: "uv.lock".to_owned(),
        lock: BlobDigest::of(b"lock"),
        as_written: None,
    });
    let mut score = stage("score", &[], MeasurementFormat::TidyJsonLines);
    score.inputs.insert("models".to_owned(), output("train", vec!["seed".to_owned()]));
    score.program =
        Program::Op { name: "lab/score".to_owned(), identity: "ab".repeat(32), with: BTreeMap::new() };
    let claims = vec![claim("high", one(part(mean(above(0.5), Method::T))))];
    let plan: Plan = plan(vec![seeds(3)], vec![split, train, score], claims);
    let mut lab = Lab::new(plan);
    lab.blobs.put(&code().to_bytes()).unwrap();
    lab.run("split", |_| Some("split".to_owned()));
    lab.run("train", |cell| Some(accuracy(0.9 + cell.index("seed").unwrap() as f64 / 100.0)));
    lab.run("score", |_| Some("{\"name\": \"gap\", \"value\": 0.25, \"layer\": 2}\n".to_owned()));
    lab
}

fn of(lab: &Lab, text: &str) -> Lineage {
    let address = Address::parse(&lab.plan, text).unwrap();
    lineage(&lab.evidence(), lab.source(), &address).unwrap()
}

fn count(lineage: &Lineage, is: impl Fn(&Thing) -> bool) -> usize {
    lineage.nodes.values().filter(|node| is(&node.what)).count()
}

#[test]
fn a_number_leads_down_to_input_code_and_programs() {
    let lab = experiment();
    let found = of(&lab, "train.accuracy[seed=1]");
    assert_eq!(found.roots, ["number:train[seed=1].accuracy[]"]);
    let steps = found.steps();
    assert!(matches!(steps[0].node.what, Thing::Number { value, .. } if value == 0.91));
    let relations: Vec<&str> = steps.iter().filter_map(|step| step.edge.map(|edge| edge.relation)).collect();
    assert_eq!(
        relations,
        [
            "written-by",
            "made-by",
            "stands",
            "attempted",
            "input",
            "made-by",
            "stands",
            "attempted",
            "input",
            "ran-on",
            "code",
            "file",
            "program",
            "environment",
            "ran-on"
        ]
    );
    let file = |wanted: &str| count(&found, |t| matches!(t, Thing::File { path, .. } if path == wanted));
    assert_eq!((file("data/digits.csv"), file("train.py")), (1, 1));
    assert_eq!(count(&found, |t| matches!(t, Thing::Environment { path, .. } if path == "uv.lock")), 1);
    assert_eq!(count(&found, |t| matches!(t, Thing::Program { word, .. } if word == "python3")), 1);
    let member = |t: &Thing| matches!(t, Thing::Member { .. });
    assert_eq!(count(&found, member), 2, "other seeds are not below it");
}

#[test]
fn what_is_shared_is_written_once() {
    let lab = experiment();
    let found = of(&lab, "score.gap[layer=2]");
    assert_eq!(count(&found, |t| matches!(t, Thing::Member { .. })), 5);
    assert_eq!(count(&found, |t| matches!(t, Thing::Operation { name, .. } if name == "lab/score")), 1);
    let split: Vec<bool> =
        found.steps().iter().filter(|step| step.id == "member:split").map(|step| step.repeated).collect();
    assert_eq!(split, [false]);
    let code: Vec<bool> = found
        .steps()
        .iter()
        .filter(|step| matches!(step.node.what, Thing::Code { .. }))
        .map(|step| step.repeated)
        .collect();
    assert_eq!(code, [false, true, true]);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["nodes"].as_object().unwrap().len(), found.nodes.len());
    assert_eq!(json["nodes"]["member:split"]["node"], "member");
}

#[test]
fn claims_outputs_digests_and_paths_are_roots_too() {
    let lab = experiment();
    assert_eq!(of(&lab, "high").nodes["claim:high"].on.len(), 3);
    assert_eq!(of(&lab, "train.result[seed=2]").roots.len(), 1);
    assert_eq!(of(&lab, "train").roots.len(), 3);
    let digest = lab.result(lab.member("train", 0)).to_string();
    for text in [digest.clone(), digest[..10].to_owned(), format!("blob:{digest}")] {
        assert_eq!(of(&lab, &text).roots, [format!("artifact:blob:{digest}")]);
    }
    let data = of(&lab, "./data/digits.csv");
    assert_eq!((data.roots.len(), data.nodes.len()), (1, 1));
    assert!(data.roots[0].starts_with("file:data/digits.csv@blob:"));
    assert_eq!(of(&lab, "train.py").roots.len(), 1);
    assert_eq!(of(&lab, "result.json").roots.len(), 5, "the path of every output");
    for nothing in ["train.accuracy[seed=9]", "nowhere/at/all", "ffffffffffff", "train.nothing"] {
        assert!(of(&lab, nothing).roots.is_empty(), "{nothing}");
    }
}

#[test]
fn a_lost_code_record_is_a_finding_and_the_walk_goes_on() {
    let lab = experiment();
    lab.blobs.damage(code().digest().into(), b"not a tree");
    let found = of(&lab, "train.accuracy[seed=1]");
    assert_eq!(found.findings.len(), 1);
    assert_eq!(count(&found, |t| matches!(t, Thing::Code { .. })), 1);
}

#[test]
fn addresses_are_read_in_the_light_of_the_plan() {
    let lab = experiment();
    let parse = |text: &str| Address::parse(&lab.plan, text);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        parse("score.cka.mean[ layer = 2 , name=\"a,b\" ]"),
        Ok(Address::Named {
            stage: "score".to_owned(),
            name: "cka.mean".to_owned(),
            at: vec![pair("layer", "2"), pair("name", "a,b")],
        })
    );
    assert_eq!(parse("train[seed=1]").unwrap().to_string(), "train[seed=1]");
    assert_eq!(parse("high"), Ok(Address::Claim("high".to_owned())));
    assert_eq!(parse("data/x[1].csv"), Ok(Address::Path("data/x[1].csv".to_owned())));
    assert_eq!(parse("abc"), Ok(Address::Path("abc".to_owned())), "too short for a digest");
    assert_eq!(parse("abcdef"), Ok(Address::Digest("abcdef".to_owned())));
    assert_eq!(parse(" "), Err(AddressError::Empty));
    assert_eq!(parse("train[seed]"), Err(AddressError::NotAPair("seed".to_owned())));
    assert!(matches!(parse("train[seed=1"), Err(AddressError::Unmatched(_))));
    assert!(matches!(parse("train[seed=\"1]"), Err(AddressError::Unmatched(_))));
}

#[test]
fn a_part_without_its_numbers_has_no_number() {
    let mut lost = part(mean(above(0.5), Method::T));
    lost.select.of = avow_model::claim::Selected::Measurement("lost".to_owned());
    let part = Part { ..lost };
    let lab = levels(&[1.0], 3, vec![claim("lost", one(part))], |_, _| 0.5);
    assert!(of(&lab, "train.lost").roots.is_empty());
    assert_eq!(of(&lab, "lost").nodes["claim:lost"].on.len(), 3, "the members that should have written it");
}
