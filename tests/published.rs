//! The rules of published pre-registrations as specs over made-up measurements with known verdicts.
//!
//! `tests/published/plans.py` makes the measurements; each spec says in its first lines what it comes to.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_testkit::Sandbox;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/published")
}

/// `# expect: claim Word reason` of each line.
fn expected(text: &str) -> BTreeMap<String, (String, Option<String>)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# expect: "));
    lines
        .map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let (claim, word) = (words.next().unwrap(), words.next().unwrap());
            (claim, (word.to_lowercase(), words.next()))
        })
        .collect()
}

fn found(report: &Value) -> BTreeMap<String, (String, Option<String>)> {
    let verdicts = report["verdicts"].as_array().unwrap();
    verdicts
        .iter()
        .map(|verdict| {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let word = text(&verdict["word"]).unwrap();
            (text(&verdict["claim"]).unwrap(), (word, text(&verdict["reason"]["code"])))
        })
        .collect()
}

#[test]
fn published_rules_come_to_their_known_verdicts() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "");
    let mut specs = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if matches!(path.extension().and_then(|e| e.to_str()), Some("yaml" | "csv")) {
            sandbox.copy(&path, &name);
        }
        if name.ends_with(".yaml") {
            specs.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    specs.sort();
    assert!(specs.len() >= 10, "{} plans", specs.len());
    let mut wrong = Vec::new();
    for (name, text) in specs {
        sandbox.avow(&["run", &name]).expect_code(0);
        let report = sandbox.avow(&["verdict", &name, "--json"]).with_code(0).json();
        let (wanted, found) = (expected(&text), found(&report));
        assert!(!wanted.is_empty(), "{name} expects nothing");
        for (claim, (word, reason)) in &wanted {
            let (got, code) = found.get(claim).unwrap_or_else(|| panic!("{name}: no claim {claim}"));
            if got != word || reason.is_some() && reason != code {
                wrong.push(format!("{name}: {claim} is {got} {code:?}, not {word} {reason:?}"));
            }
        }
        assert_eq!(wanted.len(), found.len(), "{name}: claims without a known verdict");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
