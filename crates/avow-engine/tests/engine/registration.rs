//! What the ledger says of registrations and runs.

use std::fs;

use avow_engine::{
    EngineError, Freeze, Registered, amend, current_registration, ledger_of, record_exposure, register,
};
use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, LineDigest};
use avow_model::journal::Event;
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_store::BlobStore;
use avow_store::blob::read_record;
use serde_json::{Value, json};

use crate::bench::Bench;

const SPEC: &[u8] = b"the text of the spec";

impl Bench {
    fn register(&self) -> Result<Registered, EngineError> {
        register(&self.open(), self.freeze())
    }

    fn freeze(&self) -> Freeze<'_> {
        Freeze { plan: &self.plan, spec: SPEC, circumstances: Default::default() }
    }

    fn chain(&self) -> Ledger {
        ledger_of(&self.project, &self.plan.experiment).unwrap().1
    }

    fn kinds(&self) -> Vec<String> {
        self.chain().entries().into_iter().map(|entry| entry.kind.clone()).collect()
    }
}

#[test]
fn a_registration_stores_the_plan_and_the_spec_and_moves_the_ledger_into_the_project() {
    let bench = Bench::new("a -> b");
    let registered = bench.register().unwrap();
    assert_eq!(registered.path, bench.project.registrations().join("drawn.jsonl"));
    let session = bench.open();
    assert_eq!(read_record::<Plan>(&*session.blobs, registered.plan).unwrap(), bench.plan);
    let ledger = bench.chain();
    assert_eq!(ledger.findings(), []);
    assert_eq!(ledger.chain(), Some(registered.chain));
    let entry = ledger.entry(registered.leaf).unwrap();
    let spec: BlobDigest = entry.fields["spec"].as_str().unwrap().parse().unwrap();
    assert_eq!(session.blobs.read(spec).unwrap(), SPEC);
    assert_eq!(current_registration(&ledger).unwrap().plan, registered.plan);
}

#[test]
fn the_same_plan_is_refused_and_a_changed_one_amends_for_a_reason() {
    let mut bench = Bench::new("a");
    assert!(matches!(amend(&bench.open(), bench.freeze(), "early"), Err(EngineError::NotRegistered)));
    let first = bench.register().unwrap();
    assert!(matches!(bench.register(), Err(EngineError::AlreadyRegistered)));
    bench.plan = avow_testkit::plan("a -> b");
    assert!(matches!(bench.register(), Err(EngineError::OtherRegistered)));
    let second = amend(&bench.open(), bench.freeze(), "b was forgotten").unwrap();
    assert_eq!(bench.kinds(), ["register", "amend"]);
    let ledger = bench.chain();
    let fields = &ledger.entry(second.leaf).unwrap().fields;
    assert_eq!((&fields["amends"], &fields["reason"]), (&json!(first.leaf), &json!("b was forgotten")));
    assert!(matches!(amend(&bench.open(), bench.freeze(), "again"), Err(EngineError::AlreadyRegistered)));
    assert!(ledger.precedes(first.leaf, second.leaf) && second.chain == first.chain);
    assert_eq!(current_registration(&ledger).unwrap().leaf, second.leaf);
}

#[test]
fn only_a_run_of_exactly_the_registered_plan_is_confirmatory() {
    let mut bench = Bench::new("a");
    let confirmatory = |bench: &Bench| bench.past(&bench.run().run).state.opened.unwrap().confirmatory;
    assert!(!confirmatory(&bench));
    bench.register().unwrap();
    assert!(confirmatory(&bench));
    bench.plan = avow_testkit::plan("a -> b");
    assert!(!confirmatory(&bench));
}

#[test]
fn attempts_cite_heads_that_follow_the_registration() {
    let bench = Bench::new("a[seed:3] => b");
    bench.register().unwrap();
    bench.run();
    let ledger = bench.chain();
    let registration = current_registration(&ledger).unwrap();
    let attempts = bench.attempts();
    assert_eq!(attempts.len(), 4);
    for (member, attempt) in &attempts {
        assert!(registration.covers(attempt), "{member}");
        assert!(attempt.ledger_heads.iter().all(|head| *head != registration.leaf), "the run was announced");
    }
}

#[test]
fn an_attempt_from_before_the_registration_is_not_covered() {
    let bench = Bench::new("a");
    bench.run();
    bench.register().unwrap();
    let registration = current_registration(&bench.chain()).unwrap();
    assert!(!registration.covers(&bench.attempts()[0].1));
}

#[test]
fn an_attempt_under_the_registration_is_preferred_to_an_earlier_one() {
    let bench = Bench::new("a");
    bench.run();
    bench.register().unwrap();
    // Its output is gone, so that it has to be made again; then both attempts could stand.
    fs::remove_file(bench.project.blob(bench.blob("a"))).unwrap();
    assert_eq!(bench.executes(), ["a"]);
    let attempts = bench.attempts();
    assert_eq!(attempts[0].1.outputs, attempts[1].1.outputs);
    let report = bench.run();
    let hit = bench.past(&report.run).lines.into_iter().find_map(|event| match event {
        Event::Reused { hits, .. } => Some(hits[0].attempt),
        _ => None,
    });
    assert_eq!(hit, Some(attempts[1].1.digest()));
}

#[test]
fn the_ledger_names_the_first_and_the_last_line_of_a_run_that_executed() {
    let bench = Bench::new("a -> b");
    let run = bench.run().run;
    let bytes = fs::read(bench.project.journal(&run)).unwrap();
    let lines: Vec<&[u8]> = bytes.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n').collect();
    let ledger = bench.chain();
    assert_eq!(ledger.findings(), []);
    let said: Vec<[&str; 3]> = ledger
        .entries()
        .into_iter()
        .map(|e| [&e.kind, text(&e.fields["run"]), text(&e.fields["journal"])])
        .collect();
    let [first, last] = [lines[0], lines[lines.len() - 1]].map(|line| LineDigest::of(line).to_string());
    assert_eq!(said, [["run-opened", &run, &first], ["run-closed", &run, &last]]);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_run_without_executions_writes_no_ledger_line() {
    let bench = Bench::new("a -> b");
    bench.run();
    let before = fs::read(bench.ledger().path()).unwrap();
    assert_eq!(bench.executes(), [""; 0]);
    assert_eq!(fs::read(bench.ledger().path()).unwrap(), before);
}

#[test]
fn an_exposure_says_what_was_read_by_what() {
    let bench = Bench::new("a");
    bench.register().unwrap();
    record_exposure(&bench.project, &bench.plan.experiment, "verdict", "values").unwrap();
    let ledger = bench.chain();
    let entry = *ledger.entries().last().unwrap();
    assert_eq!(entry.kind, "exposure");
    assert_eq!([text(&entry.fields["command"]), text(&entry.fields["read"])], ["verdict", "values"]);
    assert!(current_registration(&ledger).is_some_and(|r| ledger.precedes(r.leaf, entry.leaf)));
}

#[test]
fn a_damaged_ledger_takes_no_line() {
    let bench = Bench::new("a");
    let path = bench.register().unwrap().path;
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] = b'x';
    fs::write(&path, &bytes).unwrap();
    let refused = record_exposure(&bench.project, "drawn", "verdict", "values");
    assert!(matches!(refused, Err(EngineError::Ledger(_))), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
