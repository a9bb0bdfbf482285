//! Measurement files, read as the auditor reads them: from the attempt that stands for a member.

use std::collections::BTreeMap;

use avow_audit::{Evidence, Source, measure};
use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Produced, Usage};
use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::digest::Artifact;
use avow_model::expand::{self, Member};
use avow_model::ledger::Ledger;
use avow_model::plan::{Plan, Terms};
use avow_store::record::Position;
use avow_store::{BlobStore, MemoryBlobs, MemoryIndex, RecordStore, Recorded};

use crate::world;

const SPEC: &str = "\
avow: 1
experiment: measured
axes: {seed: [1]}
stages:
  flat:
    run: sh a.sh ${axes.seed} ${outputs.r}
    measurements: {r: r.json}
  keyed:
    run: sh b.sh ${axes.seed} ${outputs.r}
    measurements: {r: {file: r.jsonl, values: [loss, accuracy], keys: [epoch]}}
  tidy:
    run: sh c.sh ${axes.seed} ${outputs.r}
    measurements: {r: r.jsonl}
";

/// Any bytes as a measurement file are numbers with their places, or problems with theirs.
pub fn measurement(bytes: &[u8]) {
    let plan = plan();
    let (blobs, index) = (MemoryBlobs::new(), MemoryIndex::new());
    let blob = blobs.put(bytes).expect("memory takes it");
    for stage in 0..plan.stages.len() {
        let member = Member { stage: stage as u32, cell: 0 };
        let action = bind(&plan, member, &|_, _| None).expect("it has no inputs").action;
        let produced = Produced { artifact: Artifact::Blob(blob), size: bytes.len() as u64 };
        let attempt = attempt(action.digest(), produced);
        let position = Position { opened: 0, run: "r".to_owned(), line: stage as u64 + 2 };
        let (experiment, member) = (plan.experiment.clone(), expand::label(&plan, member));
        index.insert(&Recorded { position, experiment, member, attempt }).expect("memory takes it");
    }
    let source = Source::new(&blobs, &index);
    let evidence = Evidence::gather(&plan, source, &Ledger::read(b"")).expect("memory can be read");
    assert!(evidence.completeness().is_complete());
    let readings = measure::read_all(&evidence, source).expect("memory can be read");
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(readings.values.iter().all(|value| (1..=lines).contains(&value.origin.line)));
    assert!(readings.problems.iter().all(|problem| (1..=lines).contains(&problem.line)));
    let table = measure::table::Table::new(&plan, &readings);
    table.write_csv(Vec::new()).expect("memory takes it");
}

fn plan() -> Plan {
    let experiment = avow_spec::read(SPEC).experiment.expect("a mapping");
    let lowered = avow_spec::lower(&experiment, &world::Project, &[]);
    lowered.plan.unwrap_or_else(|| panic!("{:?}", lowered.diagnostics))
}

fn attempt(action: avow_model::digest::ActionDigest, produced: Produced) -> Attempt {
    Attempt {
        id: AttemptId("0".repeat(32)),
        action,
        run: "r".to_owned(),
        outcome: Outcome::Succeeded,
        outputs: BTreeMap::from([("r".to_owned(), produced)]),
        stdout: None,
        stderr: None,
        reads: None,
        started: 0,
        finished: 1,
        usage: Usage::default(),
        host: Host::default(),
        environment: None,
        encoding: avow_model::action::ENCODING,
        terms: Terms::default(),
        ledger_heads: Vec::new(),
        number: 1,
        continues: Vec::new(),
        verification: false,
    }
}
