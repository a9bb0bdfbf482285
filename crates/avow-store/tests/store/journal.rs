//! Journals: grouped durability, torn tails, the refusal to build on damage.

use std::fs::{self, OpenOptions};
use std::io::Write;

use avow_model::journal::{Closing, Damage, Event};
use avow_store::journal::{journals, read};
use avow_store::{Fault, JournalWriter, StoreError};

use crate::fixture::{Fixture, carry_out, opened};

fn closed() -> Event {
    Event::Closed { how: Closing::Complete }
}

#[test]
fn a_journal_is_a_chain_that_reads_back() {
    let fixture = Fixture::new();
    let mut journal = JournalWriter::create(&fixture.project, 5, opened("run")).unwrap();
    let recorded = carry_out(&fixture.blobs(), &mut journal, "m", "m");
    journal.append(9, closed()).unwrap();
    journal.sync().unwrap();
    let file = &journals(&fixture.project).unwrap()[0];
    assert_eq!((file.run.as_str(), file.length), ("run", journal.length()));
    let (at, first) = file.opening().unwrap().unwrap();
    assert_eq!((at, first.run.as_str()), (5, "run"));
    let read = file.read().unwrap();
    assert_eq!(read.damage, None);
    assert_eq!(read.lines.len(), 4);
    assert_eq!(read.head, journal.head());
    assert_eq!(avow_store::index::attempts(&read), [recorded]);
}

#[test]
fn two_runs_cannot_share_a_journal() {
    let fixture = Fixture::new();
    JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    let error = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap_err();
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::AlreadyExists));
    let error = JournalWriter::create(&fixture.project, 1, opened("../run")).unwrap_err();
    assert!(matches!(error, StoreError::Name { .. }));
}

#[test]
fn a_torn_tail_is_reported_by_readers_and_cut_by_the_next_writer() {
    // A crash may leave any prefix of a line.
    let whole = {
        let fixture = Fixture::new();
        let mut journal = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
        journal.append(2, closed()).unwrap();
        fs::read(fixture.project.journal("run")).unwrap()
    };
    let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for cut in first + 1..whole.len() {
        let fixture = Fixture::new();
        let path = fixture.project.journal("run");
        fs::write(&path, &whole[..cut]).unwrap();
        let torn = read(&path).unwrap();
        assert_eq!((torn.lines.len(), torn.damage), (1, Some(Damage::Torn { bytes: cut - first })));
        assert_eq!(fs::read(&path).unwrap(), &whole[..cut], "reading changes nothing");

        let (mut journal, _) = JournalWriter::open_existing(&fixture.project, "run").unwrap();
        let position = journal.append(2, closed()).unwrap();
        assert_eq!((position.opened, position.line), (1, 2));
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn nothing_is_appended_to_a_journal_that_was_tampered_with() {
    let fixture = Fixture::new();
    let mut journal = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    carry_out(&fixture.blobs(), &mut journal, "m", "m");
    let path = fixture.project.journal("run");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen("\"members\":2", "\"members\":3", 1);
    assert_ne!(text, changed);
    fs::write(&path, &changed).unwrap();
    let error = JournalWriter::open_existing(&fixture.project, "run").unwrap_err();
    assert!(matches!(error, StoreError::Journal { line: 2, .. }), "{error}");
    assert_eq!(error.fault(), Fault::Evidence);
    assert_eq!(fs::read_to_string(&path).unwrap(), changed);
}

#[test]
fn a_journal_lives_as_long_as_its_writer() {
    let fixture = Fixture::new();
    let live = || journals(&fixture.project).unwrap()[0].is_live().unwrap();
    let writer = JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    assert!(live());
    assert!(live(), "looking does not take it away");
    drop(writer);
    assert!(!live());
    let (_closing, _) = JournalWriter::open_existing(&fixture.project, "run").unwrap();
    assert!(!live(), "whoever closes it is not its run");
}

#[test]
fn foreign_files_beside_journals_are_passed_over() {
    let fixture = Fixture::new();
    JournalWriter::create(&fixture.project, 1, opened("run")).unwrap();
    let mut foreign =
        OpenOptions::new().create(true).append(true).open(fixture.project.journals().join("x.txt")).unwrap();
    foreign.write_all(b"notes").unwrap();
    assert_eq!(journals(&fixture.project).unwrap().len(), 1);
}
