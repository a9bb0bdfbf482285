//! A store with one thing damaged at a time: the check names it.

use std::fs;

use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, RegistrationDigest};
use avow_model::journal::{Closing, Event};
use avow_model::plan::Plan;
use avow_store::blob::put_record;
use avow_store::check::{Problem, check};
use avow_store::index::{open_index, rebuild};
use avow_store::{BlobStore, JournalWriter, LedgerFile, RecordStore, RunLock, SledIndex};

use crate::fixture::{Fixture, action, carry_out, opened, overwrite, recorded};

fn plan() -> Plan {
    serde_json::from_str(r#"{"experiment": "exp", "stages": []}"#).unwrap()
}

/// A store with one run of two members, its ledger, and a complete index.
fn golden() -> (Fixture, RunLock, SledIndex) {
    let fixture = Fixture::new();
    let lock = RunLock::try_acquire(&fixture.project).unwrap();
    let (index, _) = open_index(&fixture.project, &lock).unwrap();
    let blobs = fixture.blobs();
    let ledger = LedgerFile::of(&fixture.project, "exp").unwrap();
    let first = ledger.append("register", Default::default()).unwrap();
    let mut beginning = opened("run");
    beginning.plan = put_record(&blobs, &plan()).unwrap();
    beginning.ledger_heads = vec![first];
    let mut journal = JournalWriter::create(&fixture.project, 1, beginning).unwrap();
    ledger.run_opened("run", plan().digest(), journal.head().unwrap()).unwrap();
    for member in ["m[x=1]", "m[x=2]"] {
        index.insert(&carry_out(&blobs, &mut journal, member, member)).unwrap();
    }
    journal.append(3, Event::Closed { how: Closing::Complete }).unwrap();
    journal.sync().unwrap();
    ledger.run_closed("run", journal.head().unwrap()).unwrap();
    index.caught_up("run", journal.length()).unwrap();
    blobs.sync().unwrap();
    (fixture, lock, index)
}

fn problems(fixture: &Fixture, index: &SledIndex) -> Vec<Problem> {
    let report = check(&fixture.project, Some(index), None, &|_| {}).unwrap();
    for problem in &report.problems {
        assert!(!problem.remedy().is_empty() && !problem.to_string().is_empty());
        assert!(problem.file().starts_with(fixture.project.root()));
    }
    report.problems
}

#[test]
fn a_sound_store_has_no_problems() {
    let (fixture, _lock, index) = golden();
    let seen = std::sync::atomic::AtomicU64::new(0);
    let report = check(&fixture.project, Some(&index), None, &|progress| {
        seen.fetch_max(progress.blobs, std::sync::atomic::Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(report.problems, []);
    assert_eq!((report.blobs, report.journals, report.attempts, report.ledgers), (4, 1, 2, 1));
    assert_eq!(seen.into_inner(), 4);
}

/// Another run does all it can between the moment when blobs are listed and the one when journals are read, and
/// again until ledgers are read.
#[test]
fn a_run_that_goes_on_meanwhile_is_no_problem() {
    let (fixture, _lock, index) = golden();
    drop(index);
    let (blobs, ledger) = (fixture.blobs(), LedgerFile::of(&fixture.project, "exp").unwrap());
    let other = std::sync::Mutex::new((None, false));
    let go_on = |progress: avow_store::check::Progress| {
        let mut other = other.lock().unwrap();
        let (journal, torn) = &mut *other;
        // Threads report in any order, and a line that is on its way is the last.
        if *torn {
            return;
        }
        let journal = journal.get_or_insert_with(|| {
            let mut beginning = opened("other");
            beginning.plan = plan().digest();
            let journal = JournalWriter::create(&fixture.project, 4, beginning).unwrap();
            ledger.run_opened("other", plan().digest(), journal.head().unwrap()).unwrap();
            journal
        });
        blobs.put(b"what no survey has seen").unwrap();
        let seen = format!("n[x={}]", progress.blobs);
        carry_out(&blobs, journal, &seen, &seen);
        ledger.run_head("other", journal.head().unwrap()).unwrap();
        // The last line is on its way.
        let path = fixture.project.journal("other");
        let mut file = fs::File::options().append(true).open(path).unwrap();
        *torn = progress.blobs == progress.of;
        std::io::Write::write_all(&mut file, if *torn { b"{\"prev" } else { b"" }).unwrap();
    };
    let report = check(&fixture.project, None, None, &go_on).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.journals, 2);
    // Once the run is dead the torn line is one.
    drop(other);
    let report = check(&fixture.project, None, None, &|_| {}).unwrap();
    assert!(matches!(&report.problems[..], [Problem::TornJournal { bytes: 6, .. }]), "{:?}", report.problems);
}

#[test]
fn blobs() {
    let (fixture, _lock, index) = golden();
    let output = fixture.project.blob(BlobDigest::of(b"output"));
    overwrite(&output, b"Output");
    assert!(
        matches!(&problems(&fixture, &index)[..], [Problem::CorruptBlob { file, .. }] if *file == output)
    );
    fs::remove_file(&output).unwrap();
    let found = problems(&fixture, &index);
    assert!(matches!(&found[..], [Problem::MissingBlob { what, .. }] if what == "output `out`"), "{found:?}");
    fixture.blobs().put(b"output").unwrap();

    let action = fixture.project.blob(action("m[x=1]").digest().into());
    fs::rename(&action, fixture.project.root().join("aside")).unwrap();
    let found = problems(&fixture, &index);
    assert!(matches!(&found[..], [Problem::MissingBlob { file, .. }] if *file == action), "{found:?}");
    fs::rename(fixture.project.root().join("aside"), &action).unwrap();

    let stranger = fixture.project.blobs().join("notes.txt");
    fs::write(&stranger, b"").unwrap();
    let inside = action.with_file_name("x");
    fs::write(&inside, b"").unwrap();
    let found = problems(&fixture, &index);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|p| matches!(p, Problem::Foreign { .. }) && !p.is_damage()));
}

#[test]
fn journals() {
    let (fixture, lock, index) = golden();
    drop(index);
    let path = fixture.project.journal("run");
    let whole = fs::read_to_string(&path).unwrap();
    let again = || rebuild(&fixture.project, &lock).unwrap();

    fs::write(&path, format!("{whole}{{\"prev")).unwrap();
    assert!(matches!(&problems(&fixture, &again())[..], [Problem::TornJournal { bytes: 6, .. }]));

    fs::write(&path, whole.replacen("m[x=1]", "m[x=9]", 1)).unwrap();
    let found = problems(&fixture, &again());
    assert!(found.iter().any(|p| matches!(p, Problem::BrokenJournal { line: 3, .. })), "{found:?}");

    // Whole lines cut from the end: the chain is sound, only the ledger knows better.
    let shorter: String = whole.split_inclusive('\n').take(3).collect();
    fs::write(&path, shorter).unwrap();
    let found = problems(&fixture, &again());
    assert!(matches!(&found[..], [Problem::CutJournal { run, .. }] if run == "run"), "{found:?}");

    fs::remove_file(&path).unwrap();
    let found = problems(&fixture, &again());
    assert!(matches!(&found[..], [Problem::MissingJournal { run, .. }] if run == "run"), "{found:?}");

    fs::write(fixture.project.journal("other"), &whole).unwrap();
    let found = problems(&fixture, &again());
    assert!(found.iter().any(|p| matches!(p, Problem::RenamedJournal { .. })), "{found:?}");
}

#[test]
fn ledgers() {
    let (fixture, _lock, index) = golden();
    let path = LedgerFile::of(&fixture.project, "exp").unwrap().path();
    let whole = fs::read_to_string(&path).unwrap();

    fs::write(&path, format!("{whole}{{")).unwrap();
    assert!(matches!(&problems(&fixture, &index)[..], [Problem::TornLedger { bytes: 1, .. }]));

    fs::write(&path, whole.replacen("run-opened", "run-closed", 1)).unwrap();
    let found = problems(&fixture, &index);
    assert!(matches!(&found[..], [Problem::LedgerLine { .. }, ..]), "{found:?}");

    fs::remove_file(&path).unwrap();
    let found = problems(&fixture, &index);
    let two = matches!(&found[..], [Problem::MissingHead { .. }, Problem::UnannouncedJournal { .. }]);
    assert!(two, "nobody was told of the run any more, either: {found:?}");
    assert!(found[0].is_damage() && found[0].to_string().contains("cited by run `run`"));
}

#[test]
fn a_head_that_only_an_attempt_cites_is_missed() {
    let (fixture, _lock, index) = golden();
    let mut journal = JournalWriter::create(&fixture.project, 9, opened("second")).unwrap();
    let mut last = recorded("second", 9, 2, "m", "m[x=1]");
    let gone = RegistrationDigest::from_bytes([9; 32]);
    last.attempt.ledger_heads = vec![gone];
    let finished = Event::Finished { member: "m".to_owned(), attempt: Box::new(last.attempt.clone()) };
    last.position = journal.append(10, finished).unwrap();
    index.insert(&last).unwrap();
    let found = problems(&fixture, &index);
    assert!(
        found.iter().any(|p| matches!(p, Problem::MissingHead { head, .. } if *head == gone)),
        "{found:?}"
    );
}

#[test]
fn the_index() {
    let (fixture, lock, index) = golden();
    index.insert(&recorded("nowhere", 1, 1, "m", "m")).unwrap();
    let found = problems(&fixture, &index);
    assert!(matches!(&found[..], [Problem::IndexDiffers { lacking: 0, surplus: 1, .. }]), "{found:?}");
    drop(index);
    assert_eq!(problems(&fixture, &rebuild(&fixture.project, &lock).unwrap()), []);
}
