//! The committed schema and key reference are what the program prints.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::Command;

fn printed(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_avow")).args(arguments).output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

fn committed(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

#[test]
fn the_schema_is_up_to_date() {
    assert_eq!(printed(&["schema"]), committed("schemas/experiment.schema.json"), "run `just schemas`");
}

#[test]
fn the_key_reference_is_up_to_date() {
    assert_eq!(
        printed(&["schema", "--keys"]).trim_end(),
        committed("docs/keys.md").trim_end(),
        "run `just schemas`"
    );
}

#[test]
fn every_experiment_names_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# yaml-language-server: $schema=../schemas/"), "{}", path.display());
        }
    }
}
