//! Every bad spec through the real program: no crash, the right exit code, a place and the underlined line.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn check(path: &Path, json: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_avow"));
    command.arg("check").arg(path).env("NO_COLOR", "1");
    if json {
        command.arg("--json");
    }
    command.output().unwrap()
}

#[test]
fn every_bad_spec_is_answered_with_places() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/specs/bad");
    let mut refused = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (text, json) = (check(&path, false), check(&path, true));
        let talk = String::from_utf8_lossy(&text.stderr).into_owned();
        assert!(!talk.contains("panicked"), "{name}: {talk}");
        let problems: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
        assert!(!problems.is_empty(), "{name}: nothing was said");
        let code = if problems.iter().any(|p| p["severity"] == "error") { 3 } else { 0 };
        assert_eq!((text.status.code(), json.status.code()), (Some(code), Some(code)), "{name}: {talk}");
        for problem in &problems {
            let line = problem["line"].as_u64().unwrap();
            let place = format!("{name}:{line}:{}", problem["column"].as_u64().unwrap());
            assert!(talk.contains(&place), "{name}: no place {place} in {talk}");
            assert!(problem["message"].as_str().is_some_and(|m| !m.is_empty()), "{name}");
        }
        refused += usize::from(code == 3);
    }
    // Some are only wrong beside files that are not here; what they say is in their own snapshots.
    assert!(refused >= 60, "only {refused} bad specs were refused");
}
