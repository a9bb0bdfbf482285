//! Data by reference: hashed and recorded, never copied, and never taken for what they no longer are.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use avow_model::digest::BlobDigest;
use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: far
stages:
  count:
    run: [sh, count.sh, '${inputs.data}', '${outputs.result}']
    inputs: {data: {path: [DATA], keep: reference}}
    measurements: {result: result.json}
claims:
  many: {says: There are so many lines, select: lines, rule: {kind: threshold, statistic: every, above: [LESS].5}}
";

const COUNT: &str =
    "printf '{\"lines\": %d}\\n' \"$(find -L \"$1\" -type f -exec cat {} + | wc -l)\" > \"$2\"\n";

/// A project, and a folder of data outside of it.
fn project(count: usize) -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let data = sandbox.root().with_file_name("data set");
    fs::create_dir_all(data.join("deep")).unwrap();
    fs::write(data.join("a.txt"), "1\n2\n").unwrap();
    fs::write(data.join("deep/b.txt"), "3\n").unwrap();
    let spec =
        SPEC.replace("[DATA]", &format!("'{}'", data.display())).replace("[LESS]", &(count - 1).to_string());
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("count.sh", COUNT);
    (sandbox, data)
}

fn blob_of(text: &str) -> BlobDigest {
    BlobDigest::of(text.as_bytes())
}

#[test]
fn data_outside_are_read_and_not_copied() {
    let (sandbox, data) = project(3);
    assert_eq!(sandbox.executes(&["run"]), ["count"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    for text in ["1\n2\n", "3\n"] {
        assert!(!sandbox.blob(blob_of(text)).exists(), "no file of the data is in the store");
    }
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    let lineage = sandbox.avow(&["lineage", "count.lines"]).with_code(0).stdout;
    assert!(lineage.contains(&data.display().to_string()), "the origin is shown\n{lineage}");
    let check = sandbox.avow(&["store", "check"]).with_code(0);
    assert!(check.stdout.contains("all sound"), "{}", check.stdout);
    // What is asked for by its digest is copied from where it lies.
    sandbox.avow(&["get", &blob_of("3\n").to_string(), "-o", "copy.txt"]).expect_code(0);
    assert_eq!(sandbox.read("copy.txt"), "3\n");
}

#[test]
fn changed_data_are_another_input() {
    let (sandbox, data) = project(4);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["verdict", "--check"]).expect_code(4);
    fs::write(data.join("deep/b.txt"), "3\n4\n").unwrap();
    let check = sandbox.avow(&["store", "check"]).with_code(0).stdout;
    assert!(check.contains("was changed since it was recorded") && check.contains("data set"), "{check}");
    assert_eq!(sandbox.executes(&["run"]), ["count"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    let check = sandbox.avow(&["store", "check"]).with_code(0).stdout;
    assert!(check.contains("all sound"), "{check}");
    // Back to the old data: the old result is found again.
    fs::write(data.join("deep/b.txt"), "3\n").unwrap();
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn data_that_are_gone_are_named() {
    let (sandbox, data) = project(3);
    sandbox.avow(&["run"]).expect_code(0);
    fs::remove_file(data.join("deep/b.txt")).unwrap();
    let get = sandbox.avow(&["get", &blob_of("3\n").to_string(), "-o", "copy.txt"]).with_code(6);
    assert!(get.stderr.contains("deep/b.txt") && get.stderr.contains("is gone"), "{}", get.stderr);
    assert!(get.stderr.contains("put back what was there"), "{}", get.stderr);
    fs::remove_dir_all(&data).unwrap();
    let check = sandbox.avow(&["store", "check"]).with_code(0).stdout;
    assert!(check.contains("is gone") && check.contains("data set"), "{check}");
    let run = sandbox.avow(&["run"]).with_code(3);
    assert!(run.stderr.contains("data set") && run.stderr.contains("kept by reference"), "{}", run.stderr);
}

#[test]
fn data_that_change_while_a_stage_reads_them_end_the_run() {
    let (sandbox, data) = project(3);
    let file = data.join("a.txt");
    // The stage is confined and cannot write there; its accomplice outside waits for it.
    sandbox.file(
        "count.sh",
        format!("touch ready\nwhile [ \"$(wc -l < \"$1/a.txt\")\" = 2 ]; do sleep 0.05; done\n{COUNT}"),
    );
    let mut running = sandbox.start(&["run"]);
    running.wait_until(|sandbox| {
        let attempts = sandbox.list(".avow/work");
        attempts.iter().any(|attempt| sandbox.has(&format!(".avow/work/{attempt}/run/ready")))
    });
    fs::write(&file, "1\n2\n3\n4\n").unwrap();
    let run = running.wait();
    assert!([6, 8].contains(&run.code), "{run:?}");
    assert!(run.stderr.contains(&file.display().to_string()), "{}", run.stderr);
    assert!(run.stderr.contains("changed"), "{}", run.stderr);
    assert!(sandbox.history().successes().values().all(|count| *count == 0), "nothing is recorded as made");
    sandbox.file("count.sh", COUNT);
    assert_eq!(sandbox.executes(&["run"]), ["count"]);
}

#[test]
fn a_large_file_of_the_project_may_stay_where_it_is() {
    let (sandbox, _) = project(2);
    sandbox.file("big.txt", "x\ny\n");
    let spec = SPEC.replace("[DATA]", "big.txt").replace("[LESS]", "1");
    sandbox.file("spec.yaml", &spec);
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    assert!(!sandbox.blob(blob_of("x\ny\n")).exists());
    // Kept by a copy it is the same input: the result is found, and the copy is made.
    sandbox.file("spec.yaml", spec.replace(", keep: reference", ""));
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}
