//! Records: what is written is read back, and only the one form of it is read.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::{Attempt, AttemptId, Failure, Host, Outcome, Produced, Usage};
use avow_model::axis::{Axis, NamedPoint, Points};
use avow_model::canonical::{Record, RecordError, bytes_of};
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, RegistrationDigest, TreeDigest};
use avow_model::expression::Expression;
use avow_model::plan::{Keep, Plan, Terms};
use avow_model::tree::{Entry, Tree};
use avow_model::value::Value;
use ciborium::Value as Cbor;
use common::{blob, plan, shell};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

// --- Arbitrary records ----------------------------------------------------------------------------------

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter_map("finite", Value::float),
        any::<String>().prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::List),
            btree_map(any::<String>(), inner, 0..4).prop_map(Value::Map),
        ]
    })
}

fn blob_digest() -> impl Strategy<Value = BlobDigest> {
    any::<[u8; 32]>().prop_map(BlobDigest::from_bytes)
}

fn artifact() -> impl Strategy<Value = Artifact> {
    prop_oneof![
        blob_digest().prop_map(Artifact::Blob),
        any::<[u8; 32]>().prop_map(|b| Artifact::Tree(TreeDigest::from_bytes(b))),
    ]
}

fn text_map<V: Strategy>(value: V) -> impl Strategy<Value = BTreeMap<String, V::Value>>
where
    V::Value: std::fmt::Debug,
{
    btree_map(any::<String>(), value, 0..4)
}

fn tree() -> impl Strategy<Value = Tree> {
    let entry = prop_oneof![
        (blob_digest(), any::<bool>()).prop_map(|(digest, executable)| Entry::File { digest, executable }),
        Just(Entry::Empty),
        Just(Entry::Link { target: "elsewhere".to_owned() }),
        any::<[u8; 32]>().prop_map(|b| Entry::Tree { digest: TreeDigest::from_bytes(b) }),
    ];
    vec(("[a-c]{1,2}(/[a-c]{1,2}){0,2}", entry), 0..8).prop_map(|entries| {
        let mut tree = Tree::default();
        for (path, entry) in entries {
            // Paths that lie below one another are refused; the others make the tree.
            let _ = tree.insert(&path, entry);
        }
        tree
    })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        any::<String>().prop_map(Command::Shell),
        vec(any::<String>(), 0..4).prop_map(Command::Arguments),
        (any::<String>(), any::<String>(), text_map(value()), text_map(any::<String>()))
            .prop_map(|(name, identity, with, inputs)| Command::Op { name, identity, with, inputs }),
    ]
}

fn slot() -> impl Strategy<Value = Slot> {
    let keep = prop_oneof![Just(Keep::Content), Just(Keep::Digest)];
    (any::<String>(), any::<bool>(), any::<bool>(), keep).prop_map(|(path, folder, optional, keep)| Slot {
        path,
        folder,
        optional,
        keep,
    })
}

fn action() -> impl Strategy<Value = Action> {
    let what = (command(), text_map(any::<String>()), text_map(artifact()), text_map(slot()));
    let how = (option::of(blob_digest()), text_map(blob_digest()), option::of(any::<String>()));
    let rest = (option::of(any::<u64>()), any::<bool>(), option::of(any::<[u8; 32]>()));
    (what, how, rest).prop_map(|(what, how, rest)| Action {
        command: what.0,
        env: what.1,
        inputs: what.2,
        outputs: what.3,
        environment: how.0,
        lock_as_written: None,
        toolchain: how.1,
        loads: None,
        hardware: how.2,
        image: None,
        repetition: rest.0,
        network: rest.1,
        code: rest.2.map(TreeDigest::from_bytes),
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let failure = prop_oneof![
        any::<i32>().prop_map(Failure::Exit),
        any::<i32>().prop_map(Failure::Signal),
        Just(Failure::Disk),
        any::<String>().prop_map(Failure::BadOutput),
        any::<String>().prop_map(Failure::Start),
        any::<String>().prop_map(Failure::Machine),
    ];
    prop_oneof![
        Just(Outcome::Succeeded),
        failure.prop_map(Outcome::Failed),
        Just(Outcome::TimedOut),
        Just(Outcome::OutOfMemory),
        vec(any::<String>(), 0..3).prop_map(Outcome::MissingOutput),
        Just(Outcome::Cancelled),
        Just(Outcome::Lost),
    ]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let produced = (artifact(), any::<u64>()).prop_map(|(artifact, size)| Produced { artifact, size });
    let names = (any::<String>(), any::<String>(), any::<[String; 4]>());
    let what = (outcome(), text_map(produced), option::of(blob_digest()), vec(any::<[u8; 32]>(), 0..3));
    let numbers = (any::<[i64; 2]>(), any::<[u64; 3]>(), any::<[u32; 4]>(), any::<[Option<u64>; 3]>());
    (names, what, numbers, any::<[u8; 32]>()).prop_map(|(names, what, numbers, action)| Attempt {
        id: AttemptId(names.0),
        action: ActionDigest::from_bytes(action),
        run: names.1,
        outcome: what.0,
        outputs: what.1,
        stdout: what.2,
        stderr: None,
        reads: None,
        started: numbers.0[0],
        finished: numbers.0[1],
        usage: Usage { wall: numbers.1[0], cpu: numbers.1[1], peak_memory: numbers.1[2] },
        host: {
            let [name, system, cpu, confinement] = names.2;
            Host { name, system, cpu, confinement }
        },
        environment: None,
        encoding: 1,
        terms: Terms {
            cpus: numbers.2[0],
            memory: numbers.3[0],
            disk: numbers.3[1],
            gpus: numbers.2[1],
            timeout: numbers.3[2],
            retries: numbers.2[2],
            checkpoint: numbers.3[0].map(|n| format!("c{n}")),
            secrets: Vec::new(),
            image: None,
        },
        ledger_heads: what.3.into_iter().map(RegistrationDigest::from_bytes).collect(),
        number: numbers.2[3],
        continues: Vec::new(),
        verification: numbers.2[0] % 2 == 1,
    })
}

fn points() -> impl Strategy<Value = Points> {
    let named =
        (any::<String>(), text_map(value())).prop_map(|(name, attributes)| NamedPoint { name, attributes });
    let formula = "[a-z]{1,3}( [-+*] [0-9]{1,3}){0,3}";
    prop_oneof![
        vec(value(), 0..4).prop_map(Points::List),
        vec(named, 0..3).prop_map(Points::Named),
        (value(), value(), value()).prop_map(|(start, stop, step)| Points::Range { start, stop, step }),
        (any::<f64>(), any::<f64>(), any::<u64>())
            .prop_filter("comparable", |(low, high, _)| !low.is_nan() && !high.is_nan())
            .prop_map(|(low, high, count)| Points::Log { low, high, count }),
        (any::<u64>(), option::of(any::<String>()), any::<bool>())
            .prop_map(|(count, salt, fresh)| Points::Seeds { count, salt, fresh, root: None }),
        formula.prop_map(|text| Points::Derived(Expression::parse(&text).unwrap())),
    ]
}

fn a_plan() -> impl Strategy<Value = Plan> {
    (btree_map(any::<String>(), points(), 0..4), text_map(value())).prop_map(|(axes, params)| {
        let axes: Vec<Axis> = axes.into_iter().map(|(name, points)| Axis { name, points }).collect();
        let real: Vec<&str> = axes.iter().filter(|a| !a.is_derived()).map(|a| a.name.as_str()).collect();
        let stage = shell("stage", "run ${axes.x} $${literal} ${params.n}", &real);
        let mut plan = plan(axes.clone(), vec![stage]);
        plan.params = params;
        plan
    })
}

fn same<R: Record + PartialEq + std::fmt::Debug>(record: &R) -> Result<(), TestCaseError> {
    let bytes = record.to_bytes();
    let back = R::from_bytes(&bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(&back, record);
    prop_assert_eq!(back.to_bytes(), bytes);
    Ok(())
}

proptest! {
    #[test]
    fn trees_come_back(tree in tree()) {
        same(&tree)?;
    }

    #[test]
    fn actions_come_back(action in action()) {
        same(&action)?;
    }

    #[test]
    fn attempts_come_back(attempt in attempt()) {
        same(&attempt)?;
        // The journal holds them as JSON: the same value, hence the same digest.
        let text = serde_json::to_string(&attempt).unwrap();
        let back: Attempt = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.digest(), attempt.digest());
    }

    #[test]
    fn plans_come_back(plan in a_plan()) {
        same(&plan)?;
    }

    #[test]
    fn two_actions_with_one_digest_are_one_action(a in action(), b in action()) {
        prop_assert_eq!(a == b, a.digest() == b.digest());
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..300)) {
        let _ = (Tree::from_bytes(&bytes), Action::from_bytes(&bytes), Attempt::from_bytes(&bytes));
        let _ = Plan::from_bytes(&bytes);
    }

    #[test]
    fn a_changed_record_is_refused_or_is_another(
        action in action(), at in any::<prop::sample::Index>(), with in any::<u8>(), how in 0..3,
    ) {
        let bytes = action.to_bytes();
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        match how {
            0 => changed[at] = with,
            1 => changed.insert(at, with),
            _ => drop(changed.remove(at)),
        }
        match Action::from_bytes(&changed) {
            Ok(read) => prop_assert_eq!(read == action, changed == bytes),
            Err(_) => prop_assert_ne!(changed, bytes),
        }
    }
}

// --- The one form ---------------------------------------------------------------------------------------

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

#[test]
fn numbers_have_the_shortest_head_and_floats_have_64_bits() {
    // Examples of RFC 8949, appendix A, floats widened.
    let cases: [(Value, &str); 24] = [
        (Value::Int(0), "00"),
        (Value::Int(23), "17"),
        (Value::Int(24), "1818"),
        (Value::Int(100), "1864"),
        (Value::Int(1000), "1903e8"),
        (Value::Int(1_000_000), "1a000f4240"),
        (Value::Int(1_000_000_000_000), "1b000000e8d4a51000"),
        (Value::Int(-1), "20"),
        (Value::Int(-1000), "3903e7"),
        (Value::Int(i64::MIN), "3b7fffffffffffffff"),
        // Both sides of every step of a head.
        (Value::Int(255), "18ff"),
        (Value::Int(256), "190100"),
        (Value::Int(65_535), "19ffff"),
        (Value::Int(65_536), "1a00010000"),
        (Value::Int(4_294_967_295), "1affffffff"),
        (Value::Int(4_294_967_296), "1b0000000100000000"),
        (Value::Int(-24), "37"),
        (Value::Int(-25), "3818"),
        (Value::Int(-256), "38ff"),
        (Value::Int(-257), "390100"),
        (Value::Float(1.1), "fb3ff199999999999a"),
        (Value::Float(1.0), "fb3ff0000000000000"),
        (Value::Float(-0.0), "fb0000000000000000"),
        (Value::Text("ü".to_owned()), "62c3bc"),
    ];
    for (value, bytes) in cases {
        assert_eq!(bytes_of(&value), hex(bytes), "{value:?}");
    }
    assert_eq!(bytes_of(&u64::MAX), hex("1bffffffffffffffff"));
}

#[test]
fn every_nan_is_the_same_bytes() {
    let payload = f64::from_bits(0xfff8_0000_dead_beef);
    assert!(payload.is_nan());
    assert_eq!(bytes_of(&payload), hex("fb7ff8000000000000"));
}

#[test]
fn keys_are_sorted_by_their_encoded_bytes() {
    // As text `aa` comes before `b`; encoded, the shorter key comes first.
    let map = BTreeMap::from([("aa", 1), ("b", 2), ("", 3), ("a", 4)]);
    assert_eq!(bytes_of(&map), hex("a4 60 03 6161 04 6162 02 626161 01"));
}

/// A tree of one empty folder `b` and one `aa`, taken apart into the pieces of its bytes.
fn pieces() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut tree = Tree::default();
    tree.insert("b", Entry::Empty).unwrap();
    tree.insert("aa", Entry::Empty).unwrap();
    let start = [hex("82 6b"), b"avow/tree/1".to_vec(), hex("a2")].concat();
    let b = [hex("6162 65"), b"empty".to_vec()].concat();
    let aa = [hex("626161 65"), b"empty".to_vec()].concat();
    assert_eq!(tree.to_bytes(), [&start[..], &b, &aa].concat());
    (start, b, aa)
}

fn refused(bytes: &[u8]) -> bool {
    matches!(Tree::from_bytes(bytes), Err(RecordError::NotCanonical { .. }))
}

#[test]
fn other_forms_of_the_same_record_are_refused() {
    let (start, b, aa) = pieces();
    assert!(Tree::from_bytes(&[&start[..], &b, &aa].concat()).is_ok());
    assert!(refused(&[&start[..], &aa, &b].concat()), "unsorted keys");
    assert!(refused(&[&start[..], &b, &aa, &[0]].concat()), "a byte after the end");
    assert!(refused(&[&start[..], &b, &aa, &start, &b, &aa].concat()), "a second record after the end");

    let long_map = [&start[..start.len() - 1], &hex("b802"), &b, &aa].concat();
    assert!(refused(&long_map), "a longer head of a map");
    let open_map = [&start[..start.len() - 1], &hex("bf"), &b, &aa, &hex("ff")].concat();
    assert!(refused(&open_map), "a map of indefinite length");
    let long_text = [&start[..], &hex("780162 65"), b"empty", &aa].concat();
    assert!(refused(&long_text), "a longer head of a text");
    let open_pair = [&hex("9f"), &start[1..], &b, &aa, &hex("ff")].concat();
    assert!(refused(&open_pair), "a pair of indefinite length");
    let twice = [&start[..start.len() - 1], &hex("a3"), &b, &b, &aa].concat();
    assert!(refused(&twice), "a repeated key");
}

/// The bytes of an op's action with one parameter, its encoding replaced.
fn with_parameter(value: f64, bytes: &str) -> Result<Action, RecordError> {
    let action = Action {
        command: Command::Op {
            name: "op".to_owned(),
            identity: String::new(),
            with: BTreeMap::from([("x".to_owned(), Value::Float(value))]),
            inputs: BTreeMap::new(),
        },
        env: BTreeMap::new(),
        inputs: BTreeMap::new(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: BTreeMap::new(),
        loads: None,
        outputs: BTreeMap::new(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    };
    let original = action.to_bytes();
    let encoded = bytes_of(&value);
    let at = original.windows(encoded.len()).position(|w| w == encoded).unwrap();
    let (before, after) = (&original[..at], &original[at + encoded.len()..]);
    Action::from_bytes(&[before, &hex(bytes), after].concat())
}

#[test]
fn other_forms_of_a_float_are_refused() {
    assert!(with_parameter(1.5, "fb3ff8000000000000").is_ok());
    assert!(with_parameter(0.0, "fb0000000000000000").is_ok());
    for (value, bytes, why) in [
        (0.0, "fb8000000000000000", "negative zero"),
        (1.5, "f93e00", "16 bits"),
        (1.5, "fa3fc00000", "32 bits"),
        (1.5, "1bffffffffffffffff", "an integer that is none of ours"),
    ] {
        assert!(matches!(with_parameter(value, bytes), Err(RecordError::NotCanonical { .. })), "{why}");
    }
    // An infinity is a float of the right form, but nothing that a value may hold: it cannot be made by
    // `Value::float`, and reading one must at least not be mistaken for another number.
    let read = with_parameter(1.5, "fb7ff0000000000000").unwrap();
    assert_ne!(read.digest(), with_parameter(1.5, "fb3ff8000000000000").unwrap().digest());
}

#[test]
fn unknown_fields_and_other_kinds_are_refused() {
    let mut tree = Tree::default();
    tree.insert("a", Entry::File { digest: blob("a"), executable: false }).unwrap();
    let mut value: Cbor = ciborium::from_reader(&tree.to_bytes()[..]).unwrap();
    let fields = &mut value.as_array_mut().unwrap()[1].as_map_mut().unwrap()[0].1.as_map_mut().unwrap()[0].1;
    fields.as_map_mut().unwrap().push((Cbor::Text("note".to_owned()), Cbor::Text("hidden".to_owned())));
    let mut bytes = Vec::new();
    ciborium::into_writer(&value, &mut bytes).unwrap();
    assert!(matches!(Tree::from_bytes(&bytes), Err(RecordError::NotCanonical { .. })));
    assert!(matches!(Plan::from_bytes(&tree.to_bytes()), Err(RecordError::Kind { .. })));
    assert!(matches!(Tree::from_bytes(b""), Err(RecordError::Malformed { .. })));
    assert!(matches!(Tree::from_bytes(&hex("80")), Err(RecordError::Malformed { .. })));
}

#[test]
fn lengths_that_the_bytes_do_not_have_cost_nothing() {
    for major in ["9b", "bb", "5b", "7b"] {
        let bytes = hex(&format!("{major}7fffffffffffffff"));
        assert!(matches!(Tree::from_bytes(&bytes), Err(RecordError::Malformed { .. })), "{major}");
        let inside = [hex("82 6b"), b"avow/tree/1".to_vec(), bytes].concat();
        assert!(matches!(Tree::from_bytes(&inside), Err(RecordError::Malformed { .. })), "{major}");
    }
}

#[test]
fn nesting_that_would_exhaust_the_stack_is_refused() {
    for byte in ["81", "a1", "c1", "9f", "bf", "5f", "7f", "d9"] {
        let bytes = hex(&byte.repeat(1_000_000));
        assert!(matches!(Tree::from_bytes(&bytes), Err(RecordError::Malformed { .. })), "{byte}");
    }
}

#[test]
fn a_tree_from_elsewhere_is_checked() {
    let mut tree = Tree::default();
    for target in ["../../etc/passwd", "/etc/passwd", "a/../../b"] {
        tree.entries.insert("link".to_owned(), Entry::Link { target: target.to_owned() });
        assert!(matches!(Tree::from_bytes(&tree.to_bytes()), Err(RecordError::Malformed { .. })), "{target}");
    }
    let file = Entry::File { digest: blob(""), executable: false };
    for path in ["../up", "/root", "a//b", "a/./b", "", "nul\0", "a/", "line\nfeed"] {
        let tree = Tree { entries: BTreeMap::from([(path.to_owned(), file.clone())]) };
        assert!(Tree::from_bytes(&tree.to_bytes()).is_err(), "{path:?}");
    }
}

#[test]
fn a_plan_from_elsewhere_is_checked() {
    let bad = |change: fn(&mut Plan)| {
        let derived = Axis { name: "d".to_owned(), points: Points::Derived(Expression::parse("1").unwrap()) };
        let mut plan =
            plan(vec![common::list("x", &[1]), derived], vec![shell("a", "", &["x"]), shell("b", "", &[])]);
        assert!(Plan::from_bytes(&plan.to_bytes()).is_ok());
        change(&mut plan);
        Plan::from_bytes(&plan.to_bytes()).unwrap_err().to_string()
    };
    assert!(bad(|p| p.stages.reverse()).ends_with("the stages are not sorted by distinct names"));
    assert!(
        bad(|p| p.stages[1].name = "a".to_owned()).ends_with("the stages are not sorted by distinct names")
    );
    assert!(bad(|p| p.axes.reverse()).ends_with("the axes are not sorted by distinct names"));
    assert!(bad(|p| p.stages[0].scope = vec!["y".to_owned()]).contains("`y`"));
    assert!(bad(|p| p.stages[0].scope = vec!["d".to_owned()]).contains("`d`"));
    assert!(bad(|p| p.stages[0].scope.push("x".to_owned())).contains("scope"));
}
