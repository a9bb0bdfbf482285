//! What `spec` relies on: signatures that tell the truth, and errors that name what is wrong.

use std::collections::BTreeSet;

use avow_model::op::{Kind, OpSignature};
use avow_model::value::Value;
use avow_ops::matrix::Matrix;
use avow_ops::{Call, OpError, run, signatures};

use crate::support::{Bench, Records, digits, float, int, ints};

fn signature(name: &str) -> &'static OpSignature {
    signatures().iter().find(|s| s.name == name).unwrap()
}

#[test]
fn the_table_is_sorted_and_complete() {
    let names: Vec<&str> = signatures().iter().map(|s| s.name).collect();
    assert_eq!(
        names,
        [
            "digits/split",
            "mlp/capture",
            "mlp/train",
            "representation/alignment",
            "representation/alignment-null",
            "representation/permutation-null",
            "representation/similarity",
            "synthetic/gaussian",
            "synthetic/relu-rank",
            "synthetic/relu-stack",
        ]
    );
    for s in signatures() {
        let expected = match s.name {
            "digits/split" => None,
            "mlp/train" => Some(Kind::Train),
            "representation/alignment" | "representation/similarity" | "synthetic/relu-rank" => {
                Some(Kind::Measure)
            }
            name if name.ends_with("-null") => Some(Kind::Calibrate),
            _ => Some(Kind::Capture),
        };
        assert_eq!(s.kind, expected, "{}", s.name);
    }
}

#[test]
fn identities_are_digests_and_differ() {
    let all: BTreeSet<&str> = signatures().iter().map(|s| s.identity).collect();
    assert_eq!(all.len(), signatures().len());
    assert!(all.iter().all(|i| i.len() == 64 && i.bytes().all(|b| b.is_ascii_hexdigit())));
}

/// Runs an operation and checks that it writes exactly what its signature announces.
fn honest(
    bench: &Bench,
    name: &str,
    with: &[(&str, Value)],
    inputs: &[(&str, &str)],
    outputs: &[(&str, &str)],
) -> Records {
    let _ = std::fs::remove_file(bench.path("measurements.jsonl"));
    let records = bench.run(name, with, inputs, outputs);
    let promise = signature(name);
    let expanded = |n: &str| n.replace("{metric}", "linear-cka");
    let announced: BTreeSet<String> = promise.measurements.iter().map(|m| expanded(m.name)).collect();
    let written: BTreeSet<String> =
        records.lines.iter().map(|l| l["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(announced, written, "{name}");
    for line in &records.lines {
        let m = promise.measurements.iter().find(|m| line["name"] == expanded(m.name)).unwrap();
        let keys: Vec<&str> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|k| !matches!(*k, "name" | "value"))
            .collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>(), m.keys.iter().collect::<BTreeSet<_>>(), "{name}");
        let (low, high) = m.range.unwrap();
        assert!((low..=high).contains(&line["value"].as_f64().unwrap()), "{name}: {line}");
    }
    for port in promise.outputs.iter().filter(|p| !p.optional) {
        assert!(outputs.iter().any(|(n, file)| *n == port.name && bench.path(file).exists()), "{name}");
    }
    records
}

#[test]
fn every_operation_writes_what_it_announces() {
    let bench = Bench::new();
    std::fs::copy(digits(), bench.path("digits.csv")).unwrap();
    let seed = ("seed", int(1));
    let parts = [("train", "train"), ("test", "test")];
    honest(&bench, "digits/split", std::slice::from_ref(&seed), &[("data", "digits.csv")], &parts);
    let with =
        [("epochs", int(2)), ("checkpoints", ints(&[0, 2])), ("init_seed", int(1)), ("order_seed", int(1))];
    let trained = [("model", "model"), ("history", "history")];
    honest(&bench, "mlp/train", &with, &[("train", "train")], &trained);
    let files = [("model", "model"), ("data", "test")];
    honest(&bench, "mlp/capture", &[("epoch", int(2))], &files, &[("capture", "capture")]);
    let input = [("capture", "capture")];
    let records = honest(&bench, "representation/alignment", &[], &input, &[]);
    assert_eq!(records.lines.len(), 18);
    let records = honest(&bench, "representation/alignment-null", std::slice::from_ref(&seed), &input, &[]);
    assert_eq!(records.lines.len(), 18 * 7);
    let sides = [("x", "x"), ("y", "y")];
    let with = [("rows", int(30)), ("depth", int(2)), seed.clone()];
    honest(&bench, "synthetic/relu-stack", &with, &[], &sides);
    let with = [("rows", int(30)), ("columns", int(5)), seed.clone()];
    honest(&bench, "synthetic/gaussian", &with, &[], &sides);
    honest(&bench, "representation/similarity", &[], &sides, &[]);
    honest(&bench, "representation/permutation-null", std::slice::from_ref(&seed), &sides, &[]);
    let records = honest(&bench, "synthetic/relu-rank", &[seed], &[], &[]);
    assert_eq!(records.lines.len(), 36);
}

#[test]
fn an_unknown_operation_is_named() {
    let error = run("representation/cka", &Call::default()).unwrap_err();
    assert!(matches!(&error, OpError::UnknownOp { name } if name == "representation/cka"));
}

#[test]
fn parameters_are_checked_before_any_file_is_read() {
    let bench = Bench::new();
    let outputs = [("x", "x"), ("y", "y")];
    let refused =
        |with: &[(&str, Value)]| bench.refused("synthetic/gaussian", with, &[], &outputs).to_string();
    let good = [("rows", int(3)), ("columns", int(2)), ("seed", int(1))];
    let and = |name: &'static str, value: Value| {
        let mut with = good.to_vec();
        with.retain(|(n, _)| *n != name);
        with.push((name, value));
        refused(&with)
    };
    assert_eq!(refused(&good[..2]), "parameter `seed`: is required and was not given");
    assert_eq!(
        and("row", int(1)),
        "parameter `row`: `synthetic/gaussian` has no such parameter; it has rows, columns, layers, shared, seed"
    );
    assert_eq!(and("rows", int(0)), "parameter `rows`: must be an integer from 1 to 1000000, not `0`");
    assert_eq!(and("rows", float(3.5)), "parameter `rows`: must be an integer from 1 to 1000000, not `3.5`");
    assert_eq!(and("shared", float(1.5)), "parameter `shared`: must be a number from 0 to 1, not `1.5`");
    assert_eq!(
        and("seed", int(1 << 31)),
        "parameter `seed`: must be a seed from 0 to 2147483647, not `2147483648`"
    );
    assert!(!bench.path("x").exists());
    let call = bench.call(&[("metric", Value::from("cka"))], &[("x", "x"), ("y", "y")], &[]);
    let error = run("representation/similarity", &call).unwrap_err();
    assert_eq!(error.to_string(), "parameter `metric`: must be one of linear-cka, not `cka`");
}

#[test]
fn an_integer_is_welcome_where_a_number_is_asked_for() {
    let bench = Bench::new();
    let with = [("rows", int(3)), ("columns", int(2)), ("shared", int(1)), ("seed", int(1))];
    bench.run("synthetic/gaussian", &with, &[], &[("x", "x"), ("y", "y")]);
    assert_eq!(bench.read("x")["layer.01"].values(), bench.read("y")["layer.01"].values());
}

#[test]
fn ports_are_checked() {
    let bench = Bench::new();
    let error = bench.refused("representation/similarity", &[], &[("x", "x")], &[]);
    assert_eq!(error.to_string(), "input `y`: is required and was not given");
    let error = bench.refused("representation/similarity", &[], &[("x", "x"), ("y", "y"), ("z", "z")], &[]);
    assert_eq!(error.to_string(), "input `z`: this stage has none of that name");
    let error = bench.refused("digits/split", &[("seed", int(1))], &[("data", "d")], &[("train", "t")]);
    assert_eq!(error.to_string(), "output `test`: is required and was not given");
}

#[test]
fn a_bad_file_is_named_with_its_tensor_and_shape() {
    let bench = Bench::new();
    let message = |error: OpError| {
        assert!(matches!(error, OpError::Input { .. }), "{error}");
        error.to_string().replace(&bench.path("").display().to_string(), "")
    };
    let similar = |with: &[(&str, Value)]| {
        message(bench.refused("representation/similarity", with, &[("x", "x"), ("y", "y")], &[]))
    };
    bench.write("x", &[("a", &Matrix::new(3, 1, vec![1.0, 2.0, 3.0]))]);
    bench.write("y", &[("b", &Matrix::new(2, 1, vec![1.0, 2.0]))]);
    assert_eq!(
        similar(&[]),
        "file `y`, tensor `b` of shape [2, 1]: must have as many rows as the first tensor of `x`, 3: rows are paired"
    );
    let two = Matrix::new(3, 1, vec![1.0; 3]);
    bench.write("y", &[("a", &two), ("b", &two)]);
    assert_eq!(
        similar(&[]),
        "file `y`: holds 2 tensors; with `pairs: single` there must be one (or give `max` or `last`)"
    );
    std::fs::write(bench.path("y"), "not tensors").unwrap();
    assert!(similar(&[]).starts_with("file `y`: is not a safetensors file"));
    let error = bench.refused("representation/alignment", &[], &[("capture", "x")], &[]);
    assert_eq!(message(error), "file `x`, tensor `h_a.2`: is not in the file, which holds a");
    let error = bench.refused("representation/similarity", &[], &[("x", "absent"), ("y", "y")], &[]);
    assert!(matches!(&error, OpError::Io { action: "read", .. }), "{error}");
}

#[test]
fn a_bad_table_is_named_with_row_and_column() {
    let bench = Bench::new();
    let outputs = [("train", "t"), ("test", "u")];
    let refused = |text: &str, rows: i64| {
        std::fs::write(bench.path("d.csv"), text).unwrap();
        let with = [("seed", int(1)), ("test_rows", int(rows))];
        let error = bench.refused("digits/split", &with, &[("data", "d.csv")], &outputs);
        error.to_string().replace(&bench.path("").display().to_string(), "")
    };
    assert_eq!(refused("p0,p1\n1,2\n", 1), "file `d.csv`: has no column `label`");
    assert_eq!(
        refused("p0,label\n1,0\n17,1\n", 1),
        "file `d.csv`: row 2, column `p0`: `17` is not an integer from 0 to 16"
    );
    assert_eq!(
        refused("p0,label\n1,0\n2,1\n", 2),
        "parameter `test_rows`: leaves no training rows: the table has 2 rows"
    );
}

#[test]
fn checkpoints_must_lie_within_the_epochs() {
    let bench = Bench::new();
    bench.write_classified("data", &Matrix::new(2, 1, vec![0.0, 1.0]), &[0, 1]);
    let with = [("epochs", int(2)), ("batch", int(1)), ("init_seed", int(1)), ("order_seed", int(1))];
    let error = bench.refused("mlp/train", &with, &[("train", "data")], &[("model", "m")]);
    assert_eq!(error.to_string(), "parameter `checkpoints`: 20 lies after the last epoch, 2");
}
