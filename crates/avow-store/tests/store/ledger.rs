//! Ledger files: where they lie, torn tails, the refusal to build on damage, and the move into the project.

use std::fs;

use avow_model::ledger::{Finding, LedgerError};
use avow_store::LedgerFile;
use avow_store::ledger::{AppendError, experiments};
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;

fn fields(key: &str, value: &str) -> Map<String, Value> {
    [(key.to_owned(), json!(value))].into_iter().collect()
}

#[test]
fn a_chain_grows_line_by_line() {
    let fixture = Fixture::new();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    assert!(ledger.read().unwrap().entries().is_empty());
    let first = ledger.append("run-opened", fields("run", "r1")).unwrap();
    let second = ledger.append("run-closed", fields("run", "r1")).unwrap();
    let read = ledger.read().unwrap();
    assert_eq!((read.chain(), read.heads()), (Some(first), vec![second]));
    assert!(read.findings().is_empty());
    assert_eq!(read.entry(first).unwrap().fields["nonce"].as_str().unwrap().len(), 64);
    assert!(!read.entry(second).unwrap().fields.contains_key("nonce"));
    assert_eq!(ledger.path(), fixture.project.root().join(".avow/ledger/exp.jsonl"));
    assert!(!fixture.project.registrations().exists(), "the working tree is untouched");
}

#[test]
fn the_first_registration_moves_the_chain_into_the_project() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", b"*.png binary");
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    let first = ledger.append("run-opened", fields("run", "r1")).unwrap();
    let registered = ledger.append("register", fields("plan", "p")).unwrap();
    let path = fixture.project.root().join("registrations/exp.jsonl");
    assert_eq!(ledger.path(), path);
    assert!(!fixture.project.root().join(".avow/ledger/exp.jsonl").exists());
    let read = ledger.read().unwrap();
    assert!(read.precedes(first, registered), "exploratory runs are still counted");
    ledger.append("register", fields("plan", "q")).unwrap();
    ledger.append("run-opened", fields("run", "r2")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    let attributes = fs::read_to_string(fixture.project.root().join(".gitattributes")).unwrap();
    assert_eq!(attributes, "*.png binary\nregistrations/*.jsonl -text merge=union\n");
    assert_eq!(experiments(&fixture.project).unwrap(), ["exp"]);
}

#[test]
fn a_crash_between_copy_and_removal_leaves_one_chain() {
    let fixture = Fixture::new();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    ledger.append("run-opened", fields("run", "r1")).unwrap();
    let old = fixture.project.root().join(".avow/ledger/exp.jsonl");
    let kept = fs::read(&old).unwrap();
    let registered = ledger.append("register", fields("plan", "p")).unwrap();
    fs::write(&old, kept).unwrap();
    assert_eq!(ledger.read().unwrap().heads(), [registered]);
    assert!(ledger.stray().unwrap().is_none());
    // Another chain, though, is not swallowed.
    let foreign = Fixture::new();
    let other = LedgerFile::of(&foreign.project, "exp").unwrap();
    other.append("run-opened", fields("run", "r9")).unwrap();
    fs::copy(other.path(), &old).unwrap();
    assert_eq!(ledger.stray().unwrap().unwrap().entries().len(), 1);
}

#[test]
fn a_torn_tail_is_reported_by_readers_and_cut_by_the_next_writer() {
    let fixture = Fixture::new();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    ledger.append("run-opened", fields("run", "r1")).unwrap();
    let whole = fs::read(ledger.path()).unwrap();
    for cut in 1..whole.len() {
        fs::write(ledger.path(), [whole.as_slice(), &whole[..cut]].concat()).unwrap();
        // The whole line again without its line feed is torn, too.
        assert_eq!(ledger.read().unwrap().findings(), [Finding::Torn { bytes: cut }]);
        ledger.append("run-closed", fields("run", "r1")).unwrap();
        let read = ledger.read().unwrap();
        assert!(read.findings().is_empty());
        assert_eq!(read.entries().len(), 2);
    }
}

#[test]
fn nothing_is_appended_to_a_ledger_that_was_tampered_with() {
    let fixture = Fixture::new();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    ledger.append("run-opened", fields("run", "r1")).unwrap();
    ledger.append("run-closed", fields("run", "r1")).unwrap();
    let text = fs::read_to_string(ledger.path()).unwrap().replacen("r1", "r2", 1);
    fs::write(ledger.path(), &text).unwrap();
    let error = ledger.append("run-opened", fields("run", "r3")).unwrap_err();
    assert!(matches!(error, AppendError::Ledger(LedgerError::Damaged(_))), "{error}");
    assert_eq!(fs::read_to_string(ledger.path()).unwrap(), text);
}

#[test]
fn writers_in_many_threads_make_one_chain() {
    let fixture = Fixture::new();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    ledger.append("run-head", fields("run", "r")).unwrap();
                }
            });
        }
    });
    let read = ledger.read().unwrap();
    assert_eq!((read.entries().len(), read.heads().len(), read.findings().len()), (20, 1, 0));
}

#[test]
fn an_experiment_whose_name_is_a_path_is_refused() {
    let fixture = Fixture::new();
    for name in ["", ".", "../x", "a/b", ".hidden", "a\nb"] {
        assert!(LedgerFile::of(&fixture.project, name).is_err(), "{name:?}");
    }
}
