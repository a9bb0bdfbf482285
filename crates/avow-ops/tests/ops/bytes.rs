//! The same call gives the same bytes: in another process, and for one or two threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use avow_model::value::Value;

use crate::support::{Bench, digits, float, int, ints};

/// Names the folder that [`write_everything`] fills, in the process that this file starts.
const FOLDER: &str = "AVOW_OPS_TEST_FOLDER";

#[test]
fn bytes_do_not_depend_on_process_or_threads() {
    let reference = everything("1");
    assert!(reference.len() >= 24, "{:?}", reference.keys());
    assert!(reference.values().all(|bytes| !bytes.is_empty()));
    for threads in ["1", "2"] {
        let again = everything(threads);
        for (file, bytes) in &reference {
            assert!(again[file] == *bytes, "{} differs with {threads} threads", file.display());
        }
    }
}

/// Every file that a fresh process writes with this many threads allowed.
fn everything(threads: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "bytes::write_everything"])
        .env(FOLDER, folder.path())
        .env("RAYON_NUM_THREADS", threads)
        .env("CANDLE_NUM_THREADS", threads)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().into(), std::fs::read(&p).unwrap()))
        .collect()
}

#[test]
#[ignore = "run by bytes_do_not_depend_on_process_or_threads in processes of its own"]
fn write_everything() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let bench = Bench::in_folder(PathBuf::from(folder));
    std::fs::copy(digits(), bench.path("digits.csv")).unwrap();
    let parts = [("train", "train"), ("test", "test")];
    bench.run("digits/split", &[seed()], &[("data", "digits.csv")], &parts);
    write_network(&bench, "narrow", &[64, 64, 64, 64], 50);
    // Wide enough for the matrix library to want more than one thread.
    write_network(&bench, "wide", &[256, 256, 256, 256], 200);
    // Gram matrices, and features where columns are few.
    write_similarity(&bench, "gram", 40);
    write_similarity(&bench, "features", 4);
    let with = [("rows", int(200)), ("depth", int(3)), seed()];
    bench.run("synthetic/relu-stack", &with, &[], &[("x", "stack-x"), ("y", "stack-y")]);
    bench.run("synthetic/relu-rank", &[("rows", int(300)), ("width", int(200)), seed()], &[], &[]);
    keep(&bench, "rank");
}

fn write_network(bench: &Bench, name: &str, widths: &[i64], batch: i64) {
    let with = [
        ("widths", ints(widths)),
        ("epochs", int(3)),
        ("checkpoints", ints(&[0, 3])),
        ("batch", int(batch)),
        ("decay", float(1e-3)),
        ("init_seed", int(1)),
        ("order_seed", int(2)),
    ];
    let (model, capture) = (format!("{name}-model"), format!("{name}-capture"));
    bench.run("mlp/train", &with, &[("train", "train")], &[("model", &model)]);
    keep(bench, &format!("{model}-records"));
    let files = [("model", model.as_str()), ("data", "test")];
    bench.run("mlp/capture", &[("epoch", int(3))], &files, &[("capture", &capture)]);
    keep(bench, &format!("{capture}-records"));
    let input = [("capture", capture.as_str())];
    bench.run("representation/alignment", &[], &input, &[]);
    keep(bench, &format!("{name}-alignment"));
    bench.run("representation/alignment-null", &[seed()], &input, &[]);
    keep(bench, &format!("{name}-alignment-null"));
}

fn write_similarity(bench: &Bench, name: &str, columns: i64) {
    let (x, y) = (format!("{name}-x"), format!("{name}-y"));
    let sides = [("x", x.as_str()), ("y", y.as_str())];
    let with =
        [("rows", int(300)), ("columns", int(columns)), ("layers", int(2)), ("shared", float(0.2)), seed()];
    bench.run("synthetic/gaussian", &with, &[], &sides);
    let pairs = ("pairs", Value::from("max"));
    bench.run("representation/similarity", std::slice::from_ref(&pairs), &sides, &[]);
    keep(bench, &format!("{name}-similarity"));
    bench.run("representation/permutation-null", &[pairs, seed()], &sides, &[]);
    keep(bench, &format!("{name}-null"));
}

fn seed() -> (&'static str, Value) {
    ("seed", int(9))
}

/// Gives the measurements just written a name of their own.
fn keep(bench: &Bench, name: &str) {
    std::fs::rename(bench.path("measurements.jsonl"), bench.path(name)).unwrap();
}
