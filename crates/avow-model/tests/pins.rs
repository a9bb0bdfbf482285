//! Formats that people's records are kept in. A pin that moves orphans every record made before: the commit
//! that moves one says why, and ships the migration.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::{Attempt, AttemptId, Failure, Host, Outcome, Produced, Usage};
use avow_model::axis::{NamedPoint, Points};
use avow_model::canonical::Record;
use avow_model::claim::{
    Bound, Claim, Compare, Correction, Inference, Judge, Method, Missing, Part, Reduce, Reduction, Rule,
    Selected, Selection, Side, Test, Tier,
};
use avow_model::digest::{ActionDigest, Artifact, LineDigest, PlanDigest, RegistrationDigest, TreeDigest};
use avow_model::expression::Expression;
use avow_model::journal::{Closing, Event, Line, Opened};
use avow_model::ledger::{self, Ledger};
use avow_model::op::Kind;
use avow_model::plan::{
    Determinism, Environment, Keep, MeasurementFile, MeasurementFormat, Plan, Program, Reuse, Terms,
};
use avow_model::seed::{axis_seed, role_seed};
use avow_model::tree::{Entry, Tree};
use avow_model::value::Value;
use common::{axis, blob, file, from_stage, list, output, plan, shell, template};
use serde_json::json;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// --- Records --------------------------------------------------------------------------------------------

fn tree() -> Tree {
    let mut tree = Tree::default();
    tree.insert("train.py", Entry::File { digest: blob("print(1)\n"), executable: false }).unwrap();
    tree.insert("bin/run", Entry::File { digest: blob("#!/bin/sh\n"), executable: true }).unwrap();
    tree.insert("latest", Entry::Link { target: "bin/run".to_owned() }).unwrap();
    tree.insert("empty", Entry::Empty).unwrap();
    tree.insert("folder", Entry::Tree { digest: TreeDigest::from_bytes([1; 32]) }).unwrap();
    tree
}

fn action() -> Action {
    let slot = Slot { path: "model.bin".to_owned(), folder: false, optional: true, keep: Keep::Digest };
    Action {
        command: Command::Op {
            name: "mlp/train".to_owned(),
            identity: "aa".repeat(32),
            with: BTreeMap::from([("lr".to_owned(), Value::Float(0.1)), ("n".to_owned(), Value::Int(-3))]),
            inputs: BTreeMap::from([("data".to_owned(), "inputs/data".to_owned())]),
        },
        env: BTreeMap::from([("LEVEL".to_owned(), "1".to_owned())]),
        inputs: BTreeMap::from([("inputs/data".to_owned(), Artifact::Blob(blob("1,2\n")))]),
        code: Some(tree().digest()),
        environment: Some(blob("lock")),
        lock_as_written: None,
        toolchain: BTreeMap::from([("python3".to_owned(), blob("python"))]),
        loads: None,
        outputs: BTreeMap::from([("model".to_owned(), slot)]),
        hardware: Some("gpu".to_owned()),
        image: None,
        repetition: Some(2),
        network: true,
    }
}

fn attempt() -> Attempt {
    let produced = Produced { artifact: Artifact::Tree(tree().digest()), size: 123 };
    Attempt {
        id: AttemptId("0123456789abcdef0123456789abcdef".to_owned()),
        action: action().digest(),
        run: "run-1".to_owned(),
        outcome: Outcome::Failed(Failure::Exit(3)),
        outputs: BTreeMap::from([("model".to_owned(), produced)]),
        stdout: Some(blob("out")),
        stderr: None,
        reads: None,
        started: 1_700_000_000_000,
        finished: 1_700_000_001_000,
        usage: Usage { wall: 1_000_000, cpu: 900_000, peak_memory: 1 << 20 },
        host: Host {
            name: "host".to_owned(),
            system: "Linux".to_owned(),
            cpu: "cpu".to_owned(),
            confinement: "none".to_owned(),
        },
        environment: None,
        encoding: 1,
        terms: Terms { cpus: 2, memory: Some(1 << 30), timeout: Some(1000), ..Terms::default() },
        ledger_heads: vec![RegistrationDigest::from_bytes([9; 32])],
        number: 1,
        continues: Vec::new(),
        verification: false,
    }
}

fn claim() -> Claim {
    let rule = Rule::Difference {
        bound: Bound::Above { bound: 0.0, refute: -0.01 },
        inference: Inference {
            method: Method::T,
            side: Side::Two,
            deterministic: false,
            smallest: Some(0.02),
            unpaired: false,
            equal_spread: false,
            log: false,
            until: None,
            range: None,
        },
    };
    let part = Part {
        select: Selection {
            stage: "train".to_owned(),
            of: Selected::Measurement("accuracy".to_owned()),
            filter: BTreeMap::from([("model".to_owned(), vec![Value::Text("small".to_owned())])]),
        },
        compare: Some(Compare {
            dimension: "wd".to_owned(),
            first: Value::Float(0.1),
            second: Value::Int(0),
        }),
        crossed: None,
        reduce: vec![Reduce { dimension: "layer".to_owned(), by: Reduction::Mean }],
        per: vec!["model".to_owned()],
        replicate: Some("seed".to_owned()),
        clusters: None,
        strata: None,
        by_units: false,
        also: None,
        control: None,
        missing: Missing::Drop { void_above: "0.1".to_owned() },
        judge: Judge::Interval,
        rule,
    };
    Claim {
        name: "helps".to_owned(),
        says: Some("Weight decay helps.".to_owned()),
        tier: Tier::Primary,
        family: "primary".to_owned(),
        correct: Correction::Holm,
        alpha: "0.05".to_owned(),
        requires: vec![],
        means: BTreeMap::from([("refuted".to_owned(), "it does not".to_owned())]),
        silent_on: Some("other sizes".to_owned()),
        after: None,
        weight: None,
        gate: None,
        sequential: false,
        test: Test::All(vec![Test::One(Box::new(part)), Test::Unmeasured]),
    }
}

/// Every kind of axis, input and program in one plan.
fn whole_plan() -> Plan {
    let mut make =
        shell("make", "make ${axes.wd} --seed ${axes.seed.init} > ${outputs.out}", &["seed", "wd"]);
    make.kind = Some(Kind::Train);
    make.code = Some(tree().digest());
    make.environment = Some(Environment {
        manager: "uv".to_owned(),
        path: "uv.lock".to_owned(),
        lock: blob("lock"),
        as_written: None,
    });
    make.env.insert("A".to_owned(), template("${params.n}"));
    make.inputs.insert("data".to_owned(), file("data.csv", "1,2\n"));
    make.determinism = Determinism::Tolerance(avow_model::claim::Tolerance { absolute: 0.0, relative: 1e-5 });
    make.measurements = vec![MeasurementFile {
        output: "out".to_owned(),
        format: MeasurementFormat::FlatJson,
        values: vec!["accuracy".to_owned()],
        keys: vec![],
        pointers: BTreeMap::new(),
    }];
    let mut read = shell("read", "", &["model", "repeat"]);
    read.program = Program::Arguments(vec![template("cat"), template("${inputs.x}")]);
    read.inputs.insert("x".to_owned(), from_stage("make", &[("wd", Value::Int(0))], &["seed"]));
    read.outputs
        .insert("folder".to_owned(), avow_model::plan::Output { folder: true, holdout: true, ..output("f") });
    read.reuse = Reuse::Never;
    read.repeats = true;
    let mut op = shell("op", "", &[]);
    op.program = Program::Op { name: "op".to_owned(), identity: "aa".to_owned(), with: BTreeMap::new() };
    let point = NamedPoint {
        name: "small".to_owned(),
        attributes: BTreeMap::from([("width".to_owned(), Value::Int(64))]),
    };
    let range = Points::Range { start: Value::Int(0), stop: Value::Int(3), step: Value::Int(1) };
    let axes = vec![
        axis("double", Points::Derived(Expression::parse("axes.wd * 2").unwrap())),
        axis("lr", Points::Log { low: 1e-4, high: 1.0, count: 5 }),
        axis("model", Points::Named(vec![point])),
        axis("repeat", range),
        axis("seed", Points::Seeds { count: 8, salt: Some("s".to_owned()), fresh: false, root: None }),
        list("wd", &[0, 1]),
    ];
    let mut plan = plan(axes, vec![make, op, read]);
    plan.params.insert("n".to_owned(), Value::Int(3));
    plan.exclude.push(Expression::parse("axes.wd == 1 && axes.model == \"small\"").unwrap());
    plan.claims.push(claim());
    plan
}

#[test]
fn a_small_record_is_these_bytes() {
    let mut tree = Tree::default();
    tree.insert("a", Entry::Empty).unwrap();
    // [ "avow/tree/1", { "a": "empty" } ]
    assert_eq!(hex(&tree.to_bytes()), "826b61766f772f747265652f31a1616165656d707479");
    // printf '\x82\x6bavow/tree/1\xa1\x61a\x65empty' | b3sum
    assert_eq!(tree.digest().to_string(), "891c3fe0fe8d2c6a0972e300896dccba1cb989d6c2f1e2324e1e34e6e02afe27");
}

#[test]
fn digests_of_records() {
    assert_eq!(
        tree().digest().to_string(),
        "0b914674547126ea1357123976ee11f34875fd252ed16e3993933e5fc36dea03"
    );
    assert_eq!(
        action().digest().to_string(),
        "9008ef1ce2c74b61d97e2b15d70d93c2cddda325d6f02be6537e58e01cc3686a"
    );
    assert_eq!(
        attempt().digest().to_string(),
        "62612d00f4fc2c7240bc878be6874946f6469f59ce291db5dbff2ccc6ebb4ac4"
    );
    assert_eq!(
        whole_plan().digest().to_string(),
        "7d9abc526eb9a8f7f01514163aab618f0c588d21b34f47be8ab06dd86e0ad16c"
    );
}

#[test]
fn the_pinned_records_read_back() {
    assert_eq!(Tree::from_bytes(&tree().to_bytes()).unwrap(), tree());
    assert_eq!(Action::from_bytes(&action().to_bytes()).unwrap(), action());
    assert_eq!(Attempt::from_bytes(&attempt().to_bytes()).unwrap(), attempt());
    assert_eq!(Plan::from_bytes(&whole_plan().to_bytes()).unwrap(), whole_plan());
}

#[test]
fn the_digest_of_bytes_is_plain_blake3() {
    // printf abc | b3sum
    assert_eq!(blob("abc").to_string(), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}

// --- Seeds ----------------------------------------------------------------------------------------------

#[test]
fn seeds() {
    let first: Vec<i64> = (0..4).map(|i| axis_seed("seed", None, i)).collect();
    // Recomputed with the BLAKE3 package of Python: the first 8 bytes, little-endian, modulo 2^31 − 1, plus 1, of
    // the hash of the CBOR array ["avow/seed/1", axis, salt, index], or ["avow/seed-role/1", role, seed].
    assert_eq!(first, [1727539629, 538812452, 1379319262, 704721604]);
    assert_eq!(axis_seed("seed", Some("another"), 0), 1224215666);
    assert_eq!(axis_seed("fold", None, 0), 1725188816);
    let streams = ["init", "order", "data", "eval"].map(|role| role_seed(first[0], role));
    assert_eq!(streams, [108355449, 2146051878, 1005453469, 1255968511]);
    assert_eq!(role_seed(0, "init"), 2020317641);
}

// --- The journal ----------------------------------------------------------------------------------------

#[test]
fn journal_lines() {
    let opened = Opened {
        version: 1,
        run: "run-1".to_owned(),
        nonce: "0".repeat(64),
        experiment: "test".to_owned(),
        plan: PlanDigest::from_bytes([1; 32]),
        members: 2,
        confirmatory: true,
        ledger_heads: vec![RegistrationDigest::from_bytes([2; 32])],
        continues: None,
        spec: "test.yaml".to_owned(),
        tool: "0.1.0".to_owned(),
    };
    let first =
        Line { previous: None, at: 1_700_000_000_000, event: Event::Opened(Box::new(opened)) }.to_text();
    assert_eq!(
        first,
        format!(
            r#"{{"at":1700000000000,"event":{{"kind":"opened","version":1,"run":"run-1","nonce":"{}","experiment":"test","plan":"{}","members":2,"confirmatory":true,"ledger_heads":["{}"],"spec":"test.yaml","tool":"0.1.0"}}}}"#,
            "0".repeat(64),
            "01".repeat(32),
            "02".repeat(32),
        )
    );
    let head = LineDigest::of(first.as_bytes());
    assert_eq!(head.to_string(), "cf7beed72442782952a551a55ffc364153d62b9ed1d552fdd99e167d7f843f80");

    let event = Event::Started {
        member: "train[seed=3]".to_owned(),
        action: ActionDigest::from_bytes([3; 32]),
        attempt: AttemptId("ab".to_owned()),
        verification: false,
    };
    assert_eq!(
        Line { previous: Some(head), at: 5, event }.to_text(),
        format!(
            r#"{{"previous":"{head}","at":5,"event":{{"kind":"started","member":"train[seed=3]","action":"{}","attempt":"ab"}}}}"#,
            "03".repeat(32),
        )
    );
    let event = Event::Spawned { attempt: AttemptId("ab".to_owned()), pid: 7, start_ticks: 9 };
    assert_eq!(
        Line { previous: None, at: 6, event }.to_text(),
        r#"{"at":6,"event":{"kind":"spawned","attempt":"ab","pid":7,"start_ticks":9}}"#
    );
    let event = Event::Closed { how: Closing::Abandoned };
    assert_eq!(
        Line { previous: None, at: 7, event }.to_text(),
        r#"{"at":7,"event":{"kind":"closed","how":"abandoned"}}"#
    );
}

#[test]
fn a_journal_line_embeds_the_whole_attempt() {
    let event = Event::Finished { member: "train".to_owned(), attempt: Box::new(attempt()) };
    let line = Line { previous: None, at: 8, event }.to_text();
    let expected = format!(
        concat!(
            r#"{{"at":8,"event":{{"kind":"finished","member":"train","attempt":{{"id":"0123456789abcdef0123456789abcdef","#,
            r#""action":"{}","run":"run-1","outcome":{{"failed":{{"exit":3}}}},"#,
            r#""outputs":{{"model":{{"artifact":"tree:{}","size":123}}}},"stdout":"{}","#,
            r#""started":1700000000000,"finished":1700000001000,"#,
            r#""usage":{{"wall":1000000,"cpu":900000,"peak_memory":1048576}},"#,
            r#""host":{{"name":"host","system":"Linux","cpu":"cpu","confinement":"none"}},"#,
            r#""terms":{{"cpus":2,"memory":1073741824,"gpus":0,"timeout":1000,"retries":0}},"#,
            r#""ledger_heads":["{}"],"number":1}}}}}}"#,
        ),
        action().digest(),
        tree().digest(),
        blob("out"),
        "09".repeat(32),
    );
    assert_eq!(line, expected);
}

// --- The ledger -----------------------------------------------------------------------------------------

#[test]
fn ledger_lines() {
    let fields = |value: serde_json::Value| value.as_object().unwrap().clone();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let nonce = "00112233445566778899aabbccddeeff".repeat(2);
    let first =
        Ledger::default().line("register", fields(json!({"nonce": nonce, "experiment": "é"}))).unwrap();
    assert_eq!(
        first,
        format!(
            r#"{{"experiment":"é","kind":"register","nonce":"{nonce}","parents":[],"tree":{{"root":"{empty}","size":0}},"v":1}}"#
        )
    );
    // By hand: printf '\0%s' "$(sed -n 1p FILE)" | sha256sum
    let first_leaf = "5af7c8e0e216310cc0de4d3ae2bb3ff07be2714ff6ff25ed89400a369202251c";
    assert_eq!(ledger::leaf(first.as_bytes()).to_string(), first_leaf);

    // The root over one line is its leaf.
    let ledger = Ledger::read(format!("{first}\n").as_bytes());
    let second = ledger.line("run-head", fields(json!({"journal": "ab", "lines": 3}))).unwrap();
    assert_eq!(
        second,
        format!(
            r#"{{"journal":"ab","kind":"run-head","lines":3,"parents":["{first_leaf}"],"tree":{{"root":"{first_leaf}","size":1}},"v":1}}"#
        )
    );
    // By hand: printf '\0%s' "$(sed -n 2p FILE)" | sha256sum
    let second_leaf = "794f8046b0563ac303a8a9d70c216a228a824758ccd72bced31a6c5c021e55c0";
    assert_eq!(ledger::leaf(second.as_bytes()).to_string(), second_leaf);

    // By hand: (printf '\1'; echo FIRST SECOND | xxd -r -p) | sha256sum
    let root = "583df6514e1df5cd841cd51fe0f091c6c8c050d643f7b199c634ee4f1115268c";
    let ledger = Ledger::read(format!("{first}\n{second}\n").as_bytes());
    assert_eq!(ledger.findings(), []);
    let head = ledger.heads()[0];
    assert_eq!(
        ledger.head_statement(head).unwrap(),
        format!(
            r#"{{"chain":"{first_leaf}","entry":"{second_leaf}","kind":"avow-head","root":"{root}","size":2,"v":1}}"#
        )
    );
}
