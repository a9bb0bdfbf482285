//! The table at the top of `action.rs`, row by row: what must change an action's digest, and what must not.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::action::{Action, Command, Slot};
use avow_model::axis::Points;
use avow_model::canonical::{Record, RecordError};
use avow_model::digest::{ActionDigest, Artifact, TreeDigest};
use avow_model::expand::{self, Member};
use avow_model::op::Kind;
use avow_model::plan::{Environment, Image, Keep, Output, Plan, Program, Source, Stage, Terms};
use avow_model::template::Template;
use avow_model::tree::Tree;
use avow_model::value::Value;
use common::{action, axis, blob, file, from_stage, list, output, plan, shell, template};

/// A plan of one stage with something in every field.
fn sample() -> Plan {
    let mut stage =
        shell("train", "python3 train.py --wd ${axes.wd} --n ${params.n} ${inputs.data}", &["wd"]);
    stage.code = Some(Tree::default().digest());
    stage.environment = Some(Environment {
        manager: "uv".to_owned(),
        path: "uv.lock".to_owned(),
        lock: blob("lock"),
        as_written: None,
    });
    stage.toolchain = BTreeMap::from([("python3".to_owned(), blob("python 3.11"))]);
    stage.env = BTreeMap::from([("LEVEL".to_owned(), template("${params.level}"))]);
    stage.inputs = BTreeMap::from([("data".to_owned(), file("data.csv", "1,2"))]);
    stage.hardware = Some("gpu".to_owned());
    let mut plan = plan(vec![list("wd", &[0, 1])], vec![stage]);
    plan.params = BTreeMap::from([
        ("n".to_owned(), Value::Int(3)),
        ("level".to_owned(), Value::Int(1)),
        ("unused".to_owned(), Value::Int(0)),
    ]);
    plan
}

fn key(plan: &Plan) -> ActionDigest {
    let name = &plan.stages[0].name;
    action(plan, name).digest()
}

fn changes(change: impl FnOnce(&mut Stage)) -> bool {
    let mut plan = sample();
    change(&mut plan.stages[0]);
    key(&plan) != key(&sample())
}

fn changes_plan(change: impl FnOnce(&mut Plan)) -> bool {
    let mut plan = sample();
    change(&mut plan);
    key(&plan) != key(&sample())
}

fn set_program(text: &str) -> impl FnOnce(&mut Stage) {
    let program = Program::Shell(template(text));
    |stage| stage.program = program
}

#[test]
fn command_environment_and_layout_are_in() {
    assert!(changes(set_program("python3 train.py")));
    assert!(changes(|s| s.program = Program::Arguments(vec![Template::literal("python3")])));
    assert!(changes(|s| drop(s.env.insert("LEVEL".to_owned(), template("9")))));
    assert!(changes(|s| drop(s.env.insert("OTHER".to_owned(), template("1")))));
    assert!(changes(|s| s.env.clear()));
    assert!(changes(|s| s.inputs.get_mut("data").unwrap().mount = "elsewhere.csv".to_owned()));
}

#[test]
fn a_shell_text_and_the_same_word_as_a_program_differ() {
    let with = |program: Program| changes(|s| s.program = program);
    assert!(with(Program::Shell(template("true"))));
    let mut words = sample();
    words.stages[0].program = Program::Arguments(vec![Template::literal("true")]);
    let mut text = sample();
    text.stages[0].program = Program::Shell(template("true"));
    assert_ne!(key(&words), key(&text));
}

#[test]
fn arguments_cannot_be_shifted_into_one_another() {
    let with = |words: &[&str]| {
        let mut plan = sample();
        plan.stages[0].program = Program::Arguments(words.iter().map(|w| Template::literal(w)).collect());
        key(&plan)
    };
    assert_ne!(with(&["echo", "a b"]), with(&["echo", "a", "b"]));
    assert_ne!(with(&["echo", ""]), with(&["echo"]));
}

#[test]
fn input_content_is_in() {
    assert!(changes(|s| drop(s.inputs.insert("data".to_owned(), file("data.csv", "1,3")))));
    assert!(changes(|s| drop(s.inputs.insert("more".to_owned(), file("more.csv", "")))));
    let blob = blob("1,2");
    let folder = Artifact::Tree(TreeDigest::from_bytes(*blob.as_bytes()));
    assert!(changes(|s| {
        s.inputs.get_mut("data").unwrap().from =
            Source::Path { path: "data.csv".to_owned(), artifact: folder };
    }));
}

#[test]
fn the_name_of_an_inputs_producer_is_not_in() {
    let reader = |producer: &str| {
        let mut use_it = shell("use", "cat ${inputs.data}", &[]);
        let mut input = from_stage(producer, &[], &[]);
        input.mount = "inputs/data".to_owned();
        use_it.inputs.insert("data".to_owned(), input);
        let plan = plan(vec![], vec![shell(producer, "make", &[]), use_it]);
        let member = Member { stage: plan.stage_index("use").unwrap() as u32, cell: 0 };
        let same = Artifact::Blob(blob("the same bytes"));
        avow_model::bind::bind(&plan, member, &|_, _| Some(same)).unwrap().action.digest()
    };
    assert_eq!(reader("make"), reader("prepare"));
}

#[test]
fn code_lock_programs_and_op_identity_are_in() {
    let mut other = Tree::default();
    other.insert("train.py", avow_model::tree::Entry::File { digest: blob("x"), executable: false }).unwrap();
    assert!(changes(|s| s.code = Some(other.digest())));
    assert!(changes(|s| s.code = None));
    assert!(changes(|s| s.environment.as_mut().unwrap().lock = blob("newer lock")));
    assert!(changes(|s| {
        s.toolchain.insert("python3".to_owned(), blob("python 3.12"));
    }));
    assert!(changes(|s| s.loads = Some(blob("numpy 2"))));
    let op = |identity: &str| {
        let mut plan = sample();
        plan.stages[0].program = Program::Op {
            name: "representation/cka".to_owned(),
            identity: identity.to_owned(),
            with: BTreeMap::new(),
        };
        key(&plan)
    };
    assert_ne!(op("aa"), op("ab"));
}

#[test]
fn parameters_and_seeds_are_in_where_the_stage_uses_them() {
    assert!(changes_plan(|p| drop(p.params.insert("n".to_owned(), Value::Int(4)))), "through the command");
    assert!(changes_plan(|p| drop(p.params.insert("level".to_owned(), Value::Int(4)))), "through a variable");
    assert!(!changes_plan(|p| drop(p.params.insert("unused".to_owned(), Value::Int(4)))));
    assert!(changes_plan(|p| p.axes[0] = list("wd", &[7, 1])), "an axis value of this cell");
    assert!(!changes_plan(|p| p.axes[0] = list("wd", &[0, 7])), "an axis value of another cell");

    let op = |role: &str, salt: Option<&str>| {
        let mut plan = sample();
        let points = Points::Seeds { count: 2, salt: salt.map(str::to_owned), fresh: false, root: None };
        plan.axes = vec![axis("seed", points)];
        plan.stages[0] = shell("train", "", &["seed"]);
        plan.stages[0].program = Program::Op {
            name: "mlp/train".to_owned(),
            identity: "aa".to_owned(),
            with: BTreeMap::from([("seed".to_owned(), Value::Text(format!("${{axes.seed{role}}}")))]),
        };
        key(&plan)
    };
    let keys = [op("", None), op(".init", None), op(".order", None), op(".init", Some("other"))];
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

#[test]
fn an_integer_and_a_float_of_the_same_size_differ_in_with() {
    let op = |value: Value| {
        let mut plan = sample();
        plan.stages[0].program = Program::Op {
            name: "op".to_owned(),
            identity: "aa".to_owned(),
            with: BTreeMap::from([("x".to_owned(), value)]),
        };
        key(&plan)
    };
    assert_ne!(op(Value::Int(1)), op(Value::Float(1.0)));
    assert_ne!(op(Value::Int(1)), op(Value::Text("1".to_owned())));
    assert_eq!(op(Value::Float(0.0)), op(Value::Float(-0.0)));
}

#[test]
fn the_declared_hardware_class_is_in() {
    assert!(changes(|s| s.hardware = Some("cpu".to_owned())));
    assert!(changes(|s| s.hardware = None));
}

#[test]
fn the_repetition_number_is_in() {
    let mut timing = shell("timing", "time true", &["repeat"]);
    timing.repeats = true;
    let points = Points::Range { start: Value::Int(0), stop: Value::Int(3), step: Value::Int(1) };
    let plan = plan(vec![axis("repeat", points)], vec![timing]);
    let keys: BTreeSet<ActionDigest> =
        expand::members(&plan, 0).map(|m| common::bind_all(&plan, m).unwrap().action.digest()).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(action(&plan, "timing").repetition, Some(0));
}

#[test]
fn names_paths_and_kinds_of_outputs_are_in() {
    let replaced = |change: fn(&mut Output)| changes(|s| change(s.outputs.get_mut("out").unwrap()));
    assert!(replaced(|o| o.path = "other.txt".to_owned()));
    assert!(replaced(|o| o.folder = true));
    assert!(replaced(|o| o.optional = true));
    assert!(replaced(|o| o.keep = Keep::Digest));
    assert!(changes(|s| drop(s.outputs.insert("log".to_owned(), output("log.txt")))));
    assert!(changes(|s| {
        let out = s.outputs.remove("out").unwrap();
        s.outputs.insert("result".to_owned(), out);
    }));
}

#[test]
fn permission_to_use_the_network_is_in() {
    assert!(changes(|s| s.kind = Some(Kind::Capture)));
    assert!(!changes(|s| s.kind = Some(Kind::Measure)));
}

#[test]
fn the_encoding_version_is_in() {
    let action = action(&sample(), "train");
    let bytes = action.to_bytes();
    let at = bytes.windows(13).position(|w| w == b"avow/action/1").unwrap();
    let mut next = bytes.clone();
    next[at + 12] = b'2';
    assert_ne!(blob_of(&bytes), blob_of(&next));
    assert!(
        matches!(Action::from_bytes(&next), Err(RecordError::Kind { found, .. }) if found == "avow/action/2")
    );
}

fn blob_of(bytes: &[u8]) -> avow_model::digest::BlobDigest {
    avow_model::digest::BlobDigest::of(bytes)
}

#[test]
fn names_order_and_descriptions_are_not_in() {
    assert!(!changes(|s| s.name = "fit".to_owned()), "the stage's name");
    assert!(!changes_plan(|p| p.experiment = "another".to_owned()));
    assert!(!changes_plan(|p| p.stages.insert(1, shell("zzz", "true", &[]))), "another stage");
    let mut first = sample();
    first.stages.insert(0, shell("aaa", "true", &[]));
    assert_eq!(action(&first, "train").digest(), key(&sample()), "the position among the stages");
    assert!(!changes(|s| s.determinism = avow_model::plan::Determinism::Unrepeatable));
    assert!(!changes(|s| s.reuse = avow_model::plan::Reuse::SameHost));

    // Maps of a spec arrive sorted whatever order it lists them in.
    let with = |names: [&str; 2]| {
        let mut plan = sample();
        plan.stages[0].env = names.map(|n| (n.to_owned(), Template::literal("1"))).into();
        key(&plan)
    };
    assert_eq!(with(["A", "B"]), with(["B", "A"]));
}

#[test]
fn where_and_when_it_runs_is_not_in() {
    // Every field there is; one more cannot be added without a look at the table.
    let Action {
        command,
        env: _,
        inputs: _,
        code: _,
        environment: _,
        lock_as_written: _,
        toolchain: _,
        loads: _,
        outputs,
        hardware: _,
        repetition: _,
        network: _,
        image: _,
    } = action(&sample(), "train");
    assert!(matches!(command, Command::Shell(_)));
    let Slot { path: _, folder: _, optional: _, keep: _ } = &outputs["out"];

    // A project file that moved, but is found at the same place in the working folder.
    let moved = |path: &str| {
        changes(|s| {
            let artifact = Artifact::Blob(blob("1,2"));
            s.inputs.get_mut("data").unwrap().from = Source::Path { path: path.to_owned(), artifact };
        })
    };
    assert!(!moved("archive/2024/data.csv"));
    assert!(!changes(|s| s.environment.as_mut().unwrap().path = "locks/uv.lock".to_owned()));
}

#[test]
fn the_image_is_in_and_where_it_is_had_from_is_not() {
    let image = |name: &str, identity: &str| {
        let mut plan = sample();
        plan.stages[0].image = Some(Image { name: name.to_owned(), identity: identity.to_owned() });
        action(&plan, "train").digest()
    };
    assert_eq!(image("a.org/python@sha256:1", "sha256:1"), image("images/python.tar", "sha256:1"));
    assert_ne!(image("a.org/python@sha256:1", "sha256:1"), image("a.org/python@sha256:2", "sha256:2"));
    assert_ne!(image("a.org/python@sha256:1", "sha256:1"), action(&sample(), "train").digest());
}

#[test]
fn how_a_lock_is_written_is_not_in_but_names_what_was_made_before() {
    let lock = |text: &str| {
        let mut plan = sample();
        plan.stages[0].environment.as_mut().unwrap().lock = blob(text);
        plan
    };
    let mut written = lock("plain");
    written.set_locks_as_written(&BTreeMap::from([("train".to_owned(), blob("with comments"))]));
    let (now, then) = (action(&written, "train"), action(&lock("with comments"), "train"));
    assert_eq!(now.digest(), action(&lock("plain"), "train").digest());
    assert_eq!(written.digest(), lock("plain").digest());
    assert_eq!(now.earlier(), [(2, then.digest())]);
    assert_eq!(written.earlier(), [lock("with comments").digest()]);
    assert!(written.is_named(lock("with comments").digest()));
    // Encoding 1 knew nothing of what programs load either.
    written.stages[0].loads = Some(blob("loads"));
    let names: Vec<u32> =
        action(&written, "train").earlier().into_iter().map(|(encoding, _)| encoding).collect();
    assert_eq!(names, [2, 1]);
    assert_eq!(action(&written, "train").earlier()[1].1, then.digest());
    assert_eq!(written.earlier()[1], lock("with comments").digest());
}

#[test]
fn terms_are_not_in() {
    let terms = Terms {
        cpus: 8,
        memory: Some(1),
        disk: Some(1),
        gpus: 1,
        timeout: Some(1),
        retries: 1,
        checkpoint: Some("ckpt".to_owned()),
        secrets: vec!["TOKEN".to_owned()],
        image: Some("a:1".to_owned()),
    };
    let words: BTreeSet<String> =
        serde_json::to_value(&terms).unwrap().as_object().unwrap().keys().cloned().collect();
    assert_eq!(words.len(), 9);
    let plan = sample();
    for record in [
        serde_json::to_value(action(&plan, "train")).unwrap(),
        serde_json::to_value(&plan.stages[0]).unwrap(),
    ] {
        let fields: BTreeSet<String> = record.as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields.intersection(&words).count(), 0, "{fields:?}");
    }
}
