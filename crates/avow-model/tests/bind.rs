//! From a member to its action: what a shell, an operation and a gathering stage are given.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_model::action::{Action, Command, changes};
use avow_model::bind::{BindError, Bound, bind, shell_quote, suffix};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::expand::Member;
use avow_model::plan::{Plan, Program, Source};
use avow_model::tree::{Entry, Tree};
use avow_model::value::Value;
use common::{action, blob, bound, file, from_stage, list, output, plan, shell, template};
use proptest::prelude::*;

// --- The shell ------------------------------------------------------------------------------------------

/// What a real shell prints for a text.
#[expect(clippy::disallowed_methods, reason = "only a shell knows how a shell reads a word")]
fn sh(text: &str) -> String {
    let output = std::process::Command::new("sh").args(["-eu", "-c", text]).output().unwrap();
    assert!(output.status.success(), "{text:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn command(text: &str, value: &str) -> String {
    let mut plan = plan(vec![], vec![shell("s", text, &[])]);
    plan.params.insert("x".to_owned(), Value::Text(value.to_owned()));
    let Command::Shell(text) = action(&plan, "s").command else { panic!() };
    text
}

const AWKWARD: [&str; 34] = [
    "", " ", "a b", "'", "''", "'\\''", "\"", "\\", "$HOME", "`id`", "$(id)", "a;b", "a&b", "a|b", "*", "?",
    "[a]", "~", "~root", "#x", "!", "{a,b}", "a=b", "-n", "é€", "a\nb", "\t", "if", "done", "(", ">x", "<x",
    "%1", "a\\nb",
];

#[test]
fn a_shell_reads_every_value_back() {
    for value in AWKWARD {
        assert_eq!(sh(&command("printf '[%s]' ${params.x}", value)), format!("[{value}]"));
        assert_eq!(
            sh(&command("printf '[%s]' --name=${params.x}/end", value)),
            format!("[--name={value}/end]")
        );
        assert_eq!(sh(&command("v=${params.x}; printf '[%s]' \"$v\"", value)), format!("[{value}]"));
        assert_eq!(
            sh(&command("for v in ${params.x} ${params.x}; do printf '[%s]' \"$v\"; done", value)),
            format!("[{value}][{value}]")
        );
    }
}

#[test]
fn a_number_before_a_redirection_is_a_word_and_no_file_descriptor() {
    assert_eq!(command("echo ${params.x}>out.txt", "2"), "echo '2'>out.txt");
    assert_eq!(sh(&command("echo ${params.x}>/dev/stdout", "2")), "2\n");
    assert_eq!(sh(&command("cat ${params.x}</dev/null || echo ${params.x}", "/dev/null")), "");
    assert_eq!(command("echo ${params.x} >out.txt", "2"), "echo 2 >out.txt");
}

#[test]
fn a_value_at_the_head_of_a_command_is_its_name() {
    // Neither a reserved word nor an assignment.
    assert_eq!(command("${params.x} && true", "if"), "'if' && true");
    assert_eq!(command("${params.x} true", "a=b"), "'a=b' true");
}

#[test]
fn plain_values_stay_readable() {
    for plain in ["1", "0.5", "1e-5", "small", "inputs/model.safetensors", "a-b_c", "user@host:/x,y+z%"] {
        assert_eq!(shell_quote(plain), plain);
    }
}

#[test]
fn the_authors_own_text_is_not_quoted() {
    assert_eq!(command("echo $HOME '$${x}' | cat", ""), "echo $HOME '${x}' | cat");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_shell_reads_any_text_back(value in "[^\0]{0,20}") {
        prop_assert_eq!(sh(&command("printf %s ${params.x}", &value)), value);
    }
}

#[test]
fn arguments_are_passed_as_they_are() {
    let mut stage = shell("s", "", &["a"]);
    stage.program =
        Program::Arguments(["python3", "x y", "--a=${axes.a}", "${outputs.out}"].map(template).to_vec());
    let plan = plan(vec![list("a", &[7])], vec![stage]);
    let expected = ["python3", "x y", "--a=7", "out.txt"].map(str::to_owned).to_vec();
    assert_eq!(action(&plan, "s").command, Command::Arguments(expected));
    assert_eq!(action(&plan, "s").command.to_string(), "python3 'x y' '--a=7' out.txt");
}

// --- References -----------------------------------------------------------------------------------------

#[test]
fn inputs_and_outputs_are_their_paths() {
    let mut stage = shell("s", "cat ${inputs.data} > ${outputs.out}", &[]);
    stage.inputs.insert("data".to_owned(), file("my data.csv", ""));
    stage.env.insert("DATA".to_owned(), template("${inputs.data}"));
    let action = action(&plan(vec![], vec![stage]), "s");
    assert_eq!(action.command, Command::Shell("cat 'my data.csv' > out.txt".to_owned()));
    assert_eq!(action.env["DATA"], "my data.csv", "no shell reads a variable's value");
}

#[test]
fn a_reference_that_means_nothing_is_an_error() {
    for name in ["params.gone", "axes.gone", "inputs.gone", "outputs.gone", "outputs.out.path", "secrets.x"] {
        let plan = plan(vec![], vec![shell("s", &format!("echo ${{{name}}}"), &[])]);
        let error = bound(&plan, "s").unwrap_err();
        assert_eq!(error.to_string(), format!("`${{{name}}}` has no value here"));
    }
}

#[test]
fn parameters_of_an_operation_keep_their_types() {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut stage = shell("s", "", &["a"]);
    stage.program = Program::Op {
        name: "op".to_owned(),
        identity: "aa".to_owned(),
        with: BTreeMap::from([
            ("axis".to_owned(), text("${axes.a}")),
            ("list".to_owned(), Value::List(vec![text("${params.f}"), Value::Int(1)])),
            ("map".to_owned(), Value::Map(BTreeMap::from([("k".to_owned(), text("${params.on}"))]))),
            ("text".to_owned(), text("a=${axes.a}")),
            ("whole".to_owned(), text("${params.list}")),
        ]),
    };
    let mut plan = plan(vec![list("a", &[7])], vec![stage]);
    plan.params = BTreeMap::from([
        ("f".to_owned(), Value::Float(2.0)),
        ("on".to_owned(), Value::Bool(true)),
        ("list".to_owned(), Value::List(vec![Value::Int(1)])),
    ]);
    let Command::Op { with, .. } = action(&plan, "s").command else { panic!() };
    let expected = [
        ("axis", Value::Int(7)),
        ("list", Value::List(vec![Value::Float(2.0), Value::Int(1)])),
        ("map", Value::Map(BTreeMap::from([("k".to_owned(), Value::Bool(true))]))),
        ("text", text("a=7")),
        ("whole", Value::List(vec![Value::Int(1)])),
    ];
    assert_eq!(with, expected.map(|(name, value)| (name.to_owned(), value)).into());
}

#[test]
fn a_parameter_that_does_not_parse_is_an_error() {
    let mut stage = shell("s", "", &[]);
    let with = BTreeMap::from([("x".to_owned(), Value::Text("${open".to_owned()))]);
    stage.program = Program::Op { name: "op".to_owned(), identity: "aa".to_owned(), with };
    assert!(matches!(bound(&plan(vec![], vec![stage]), "s"), Err(BindError::Template(_))));
}

// --- Inputs ---------------------------------------------------------------------------------------------

/// A stage `read` of `make.out`, with `make.out` changed.
fn pair(optional: bool, gather: &[&str], path: &str) -> Plan {
    let scope: &[&str] = if gather.is_empty() { &[] } else { gather };
    let mut make = shell("make", "make", scope);
    make.outputs.insert("out".to_owned(), avow_model::plan::Output { optional, ..output(path) });
    let mut read = shell("read", "read ${inputs.x}", &[]);
    read.inputs.insert("x".to_owned(), from_stage("make", &[], gather));
    plan(gather.iter().map(|axis| list(axis, &[5, 6, 7])).collect(), vec![make, read])
}

fn bind_read(plan: &Plan, made: &dyn Fn(Member) -> Option<Artifact>) -> Result<Bound, BindError> {
    let stage = plan.stage_index("read").unwrap() as u32;
    bind(plan, Member { stage, cell: 0 }, &|member, _| made(member))
}

#[test]
fn an_output_is_an_input_by_its_content() {
    let artifact = Artifact::Blob(blob("made"));
    let bound = bind_read(&pair(false, &[], "out.txt"), &|_| Some(artifact)).unwrap();
    assert_eq!(bound.action.inputs, BTreeMap::from([("inputs/make".to_owned(), artifact)]));
    assert!(bound.blobs.is_empty());
}

#[test]
fn an_output_that_was_not_made_is_an_error_unless_it_is_optional() {
    let error = bind_read(&pair(false, &[], "out.txt"), &|_| None).unwrap_err();
    assert_eq!(error.to_string(), "the input `x` has not been made");
    let bound = bind_read(&pair(true, &[], "out.txt"), &|_| None).unwrap();
    assert!(bound.action.inputs.is_empty());
}

#[test]
fn an_operation_is_not_told_of_an_optional_input_that_is_absent() {
    let mut plan = pair(true, &[], "out.txt");
    let read = plan.stage_index("read").unwrap();
    plan.stages[read].inputs.insert("y".to_owned(), file("y.csv", ""));
    plan.stages[read].program =
        Program::Op { name: "op".to_owned(), identity: "aa".to_owned(), with: BTreeMap::new() };
    let inputs = |made: Option<Artifact>| {
        let Command::Op { inputs, .. } = bind_read(&plan, &|_| made).unwrap().action.command else {
            panic!()
        };
        inputs.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(inputs(None), ["y"]);
    assert_eq!(inputs(Some(Artifact::Blob(blob("")))), ["x", "y"]);
}

#[test]
fn two_inputs_at_one_place_are_an_error() {
    let mut plan = pair(false, &[], "out.txt");
    let read = plan.stage_index("read").unwrap();
    plan.stages[read].inputs.insert("z".to_owned(), file("inputs/make", "other"));
    let error = bind_read(&plan, &|_| Some(Artifact::Blob(blob("made")))).unwrap_err();
    assert_eq!(error.to_string(), "two inputs are mounted at `inputs/make`");
}

#[test]
fn an_address_is_its_expected_content() {
    let mut stage = shell("s", "cat ${inputs.data}", &[]);
    let mut input = file("data.csv", "");
    input.from = Source::Url { url: "https://example.org/data.csv".to_owned(), digest: blob("expected") };
    stage.inputs.insert("data".to_owned(), input);
    assert_eq!(action(&plan(vec![], vec![stage]), "s").inputs["data.csv"], Artifact::Blob(blob("expected")));
}

/// The gathered folder of a binding, from the blobs that binding made, and its index.
fn gathered(bound: &Bound) -> (Tree, serde_json::Value) {
    let Artifact::Tree(digest) = bound.action.inputs["inputs/make"] else { panic!() };
    let find = |digest: BlobDigest| bound.blobs.iter().find(|b| BlobDigest::of(b) == digest).unwrap();
    let tree = Tree::from_bytes(find(digest.into())).unwrap();
    let Entry::File { digest, executable: false } = tree.entries["index.json"] else { panic!() };
    let index = serde_json::from_slice(find(digest)).unwrap();
    (tree, index)
}

#[test]
fn gathered_files_are_named_by_position_and_indexed() {
    let plan = pair(false, &["a"], "sub/model.tar.gz");
    let bound = bind_read(&plan, &|m| Some(Artifact::Blob(blob(&format!("cell {}", m.cell))))).unwrap();
    let (tree, index) = gathered(&bound);
    let names: Vec<&String> = tree.entries.keys().collect();
    assert_eq!(names, ["0000.tar.gz", "0001.tar.gz", "0002.tar.gz", "index.json"]);
    assert_eq!(tree.entries["0002.tar.gz"], Entry::File { digest: blob("cell 2"), executable: false });
    let expected = serde_json::json!([
        {"path": "0000.tar.gz", "axes": {"a": 5}},
        {"path": "0001.tar.gz", "axes": {"a": 6}},
        {"path": "0002.tar.gz", "axes": {"a": 7}},
    ]);
    assert_eq!(index, expected);
}

#[test]
fn gathered_folders_stay_folders() {
    let folder = TreeDigest::from_bytes([7; 32]);
    let bound = bind_read(&pair(false, &["a"], "folder"), &|_| Some(Artifact::Tree(folder))).unwrap();
    let (tree, _) = gathered(&bound);
    assert_eq!(tree.entries["0000"], Entry::Tree { digest: folder });
}

#[test]
fn gathering_leaves_out_what_was_optional_and_not_made() {
    let made = |m: Member| (m.cell != 1).then(|| Artifact::Blob(blob("x")));
    let (tree, index) = gathered(&bind_read(&pair(true, &["a"], "o.txt"), &made).unwrap());
    assert_eq!(tree.entries.keys().collect::<Vec<_>>(), ["0000.txt", "0002.txt", "index.json"]);
    assert_eq!(index.as_array().unwrap().len(), 2);
    assert!(matches!(bind_read(&pair(false, &["a"], "o.txt"), &made), Err(BindError::NotMade(_))));
}

#[test]
fn what_is_gathered_decides_the_key() {
    let plan = pair(false, &["a"], "o.txt");
    let key =
        |content: &str| bind_read(&plan, &|_| Some(Artifact::Blob(blob(content)))).unwrap().action.digest();
    assert_eq!(key("x"), key("x"));
    assert_ne!(key("x"), key("y"));
}

#[test]
fn suffixes() {
    for (path, expected) in [
        ("a/model.safetensors", Some(".safetensors")),
        ("x.tar.gz", Some(".tar.gz")),
        ("a.b/model", None),
        (".hidden", None),
        ("", None),
    ] {
        assert_eq!(suffix(path), expected, "{path}");
    }
}

// --- Differences ----------------------------------------------------------------------------------------

fn some_action() -> Action {
    let mut stage = shell("s", "run", &[]);
    stage.inputs.insert("data".to_owned(), file("data.csv", "old"));
    stage.env.insert("A".to_owned(), template("1"));
    action(&plan(vec![], vec![stage]), "s")
}

fn difference(change: impl FnOnce(&mut Action)) -> Vec<(String, Option<String>, Option<String>)> {
    let (old, mut new) = (some_action(), some_action());
    change(&mut new);
    let name = |part: &str, name: Option<String>| name.map_or(part.to_owned(), |n| format!("{part} {n}"));
    changes(&old, &new).into_iter().map(|c| (name(c.part, c.name), c.old, c.new)).collect()
}

fn set_data(content: BlobDigest) -> impl FnOnce(&mut Action) {
    move |action| {
        action.inputs.insert("data.csv".to_owned(), Artifact::Blob(content));
    }
}

#[test]
fn differences_are_named() {
    assert_eq!(difference(|_| {}), []);
    let one = |part: &str, old: Option<&str>, new: Option<&str>| {
        vec![(part.to_owned(), old.map(str::to_owned), new.map(str::to_owned))]
    };
    assert_eq!(
        difference(|a| a.command = Command::Shell("go".to_owned())),
        one("command", Some("run"), Some("go"))
    );
    assert_eq!(difference(|a| a.env.clear()), one("env A", Some("1"), None));
    let (old, new) = (blob("old").short(), blob("new").short());
    assert_eq!(difference(set_data(blob("new"))), one("input data.csv", Some(&old), Some(&new)),);
    assert_eq!(difference(|a| a.network = true), one("network", Some("denied"), Some("allowed")));
    assert_eq!(difference(|a| a.repetition = Some(2)), one("repetition", None, Some("2")));
}

#[test]
fn every_difference_of_digests_has_a_name() {
    // Alike when printed for people, yet other bytes.
    let same_text = |new: Command| {
        let found = difference(|a| a.command = new);
        let [(part, Some(old), Some(new))] = &found[..] else { panic!("{found:?}") };
        assert_eq!(part, "command");
        assert_ne!(old, new);
    };
    same_text(Command::Shell("run\n".to_owned()));
    same_text(Command::Arguments(vec!["run".to_owned()]));

    let mut digest = *blob("old").as_bytes();
    digest[31] ^= 1;
    let found = difference(set_data(BlobDigest::from_bytes(digest)));
    assert_ne!(found[0].1, found[0].2);

    let op = |value: Value| Command::Op {
        name: "op".to_owned(),
        identity: "aa".to_owned(),
        with: BTreeMap::from([("x".to_owned(), value)]),
        inputs: BTreeMap::new(),
    };
    let with = |value| Action { command: op(value), ..some_action() };
    let found = changes(&with(Value::Int(1)), &with(Value::Float(1.0)));
    assert_eq!((found[0].part, found.len()), ("parameter", 1));
    assert_ne!(found[0].old, found[0].new);
}
