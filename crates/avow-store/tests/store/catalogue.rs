//! The catalogue against journals: it answers what they say, whatever became of it, and reads no more than asked.

use std::fs;
use std::io::Write;

use avow_model::attempt::Outcome;
use avow_model::journal::{Closing, Event, RunState};
use avow_store::index::memory_index;
use avow_store::{Catalogue, JournalWriter, RecordStore, Recorded, journal};

use crate::fixture::{Fixture, attempt, carry_out, opened};
use crate::records::suite;

fn run(fixture: &Fixture, name: &str, at: i64, members: usize) -> JournalWriter {
    let mut journal = JournalWriter::create(&fixture.project, at, opened(name)).unwrap();
    for member in 0..members {
        carry_out(&fixture.blobs(), &mut journal, &format!("m[x={member}]"), &format!("{name} {member}"));
    }
    journal
}

fn close(journal: &mut JournalWriter) {
    journal.append(900, Event::Closed { how: Closing::Complete }).unwrap();
}

/// Every answer is that of an index made of all journals.
fn agrees(fixture: &Fixture) {
    let (catalogue, index) =
        (Catalogue::open(&fixture.project).unwrap(), memory_index(&fixture.project).unwrap());
    let all = index.entries().unwrap();
    assert!(catalogue.entries().unwrap() == all, "all attempts");
    for recorded in &all {
        assert!(
            catalogue.attempt(recorded.digest()).unwrap().as_ref() == Some(recorded),
            "{}",
            recorded.member
        );
        let action = recorded.attempt.action;
        assert_eq!(catalogue.trace(action).unwrap(), index.trace(action).unwrap());
        let history = index.history("exp", &recorded.member).unwrap();
        assert_eq!(catalogue.history("exp", &recorded.member).unwrap(), history);
    }
    assert_eq!(catalogue.stage_history("exp", "m").unwrap(), index.stage_history("exp", "m").unwrap());
    let latest = index.latest_of_stage("exp", "m", 3).unwrap();
    assert_eq!(catalogue.latest_of_stage("exp", "m", 3).unwrap(), latest);
    for file in journal::journals(&fixture.project).unwrap() {
        let state = RunState::of(&file.read().unwrap().lines);
        let summary = catalogue.summary(&file.run).unwrap().unwrap();
        assert_eq!((summary.counts(), summary.closed), (state.counts(), state.closed));
    }
    assert_eq!(catalogue.summary("nobody").unwrap(), None);
    let absent = attempt(avow_model::digest::ActionDigest::from_bytes([9; 32]), "no", "no");
    let recorded = |attempt| Recorded { attempt, ..all[0].clone() };
    assert_eq!(catalogue.attempt(recorded(absent).digest()).unwrap(), None);
}

#[test]
fn it_keeps_the_contract_of_an_index() {
    suite(&Catalogue::open(&Fixture::new().project).unwrap());
}

#[test]
fn it_answers_as_the_journals_do_while_runs_begin_go_on_and_end() {
    let fixture = Fixture::new();
    let mut first = run(&fixture, "z-first", 100, 3);
    agrees(&fixture);
    let mut second = run(&fixture, "a-second", 200, 250);
    agrees(&fixture);
    carry_out(&fixture.blobs(), &mut first, "m[x=7]", "again");
    agrees(&fixture);
    close(&mut first);
    let failed = attempt(avow_model::digest::ActionDigest::from_bytes([1; 32]), "a-second", "f");
    let failed = avow_model::attempt::Attempt { outcome: Outcome::TimedOut, ..failed };
    let finished = Event::Finished { member: "m[x=999]".to_owned(), attempt: Box::new(failed) };
    second.append(300, finished).unwrap();
    agrees(&fixture);
    let runs: Vec<String> =
        Catalogue::open(&fixture.project).unwrap().runs().into_iter().map(|r| r.run).collect();
    assert_eq!(runs, ["z-first", "a-second"], "in the order in which they began");
}

#[test]
fn a_catalogue_that_is_gone_torn_or_changed_is_made_again() {
    let fixture = Fixture::new();
    close(&mut run(&fixture, "one", 100, 160));
    agrees(&fixture);
    let path = fixture.project.cache().join("journals");
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 4096 * 4, "it has pages");
    fs::remove_file(&path).unwrap();
    agrees(&fixture);
    for cut in [0, 5, 30, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        agrees(&fixture);
    }
    for at in (0..whole.len()).step_by(whole.len() / 23) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(&path, changed).unwrap();
        agrees(&fixture);
    }
}

#[test]
fn journals_that_went_became_shorter_or_other_take_their_attempts_along() {
    let fixture = Fixture::new();
    let bytes = |name: &str| fs::read(fixture.project.journal(name)).unwrap();
    for (name, at) in [("one", 100), ("two", 200), ("three", 300)] {
        close(&mut run(&fixture, name, at, 20));
    }
    agrees(&fixture);
    fs::remove_file(fixture.project.journal("two")).unwrap();
    agrees(&fixture);
    // A torn tail, as a killed writer leaves it, and the cut of it.
    let whole = bytes("one");
    fs::write(fixture.project.journal("one"), &whole[..whole.len() - 40]).unwrap();
    agrees(&fixture);
    fs::write(fixture.project.journal("one"), &whole).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(fixture.project.journal("one"))
        .unwrap()
        .write_all(b"{\"previous\":\"torn")
        .unwrap();
    agrees(&fixture);
    // Another journal under the same name.
    fs::remove_file(fixture.project.journal("three")).unwrap();
    close(&mut run(&fixture, "three", 50, 30));
    agrees(&fixture);
    // A line in the middle is changed: what stands behind it is not believed.
    std::thread::sleep(std::time::Duration::from_millis(50));
    agrees(&fixture);
    let text = String::from_utf8(bytes("three")).unwrap().replacen("m[x=10]", "m[x=11]", 1);
    fs::write(fixture.project.journal("three"), text).unwrap();
    agrees(&fixture);
    assert!(Catalogue::open(&fixture.project).unwrap().entries().unwrap().len() < 50);
}

#[test]
fn where_it_cannot_be_written_nothing_is_lost() {
    let fixture = Fixture::new();
    close(&mut run(&fixture, "one", 100, 5));
    fs::write(fixture.project.cache(), "in the way").unwrap();
    agrees(&fixture);
    agrees(&fixture);
}
