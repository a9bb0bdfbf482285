//! Journals: the chain of lines, its damage, and the fold into a run's state.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_model::attempt::{Attempt, AttemptId, Failure, Host, Outcome, Usage};
use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest, LineDigest, PlanDigest};
use avow_model::journal::{
    self, Cited, Closing, Counts, Damage, Event, Hit, Journal, Line, MemberState, Opened, RunState, Walked,
};
use avow_model::plan::Terms;
use avow_model::summary::RunSummary;
use proptest::prelude::*;

const DIGEST: [u8; 32] = [7; 32];

fn opened(members: u64) -> Event {
    Event::Opened(Box::new(Opened {
        version: 1,
        run: "run-1".to_owned(),
        nonce: "0".repeat(64),
        experiment: "test".to_owned(),
        plan: PlanDigest::from_bytes(DIGEST),
        members,
        confirmatory: false,
        ledger_heads: vec![],
        continues: None,
        spec: "test.yaml".to_owned(),
        tool: "0.1.0".to_owned(),
    }))
}

fn started(member: &str, attempt: &str) -> Event {
    let attempt = AttemptId(attempt.to_owned());
    Event::Started {
        member: member.to_owned(),
        action: ActionDigest::from_bytes(DIGEST),
        attempt,
        verification: false,
    }
}

fn spawned(attempt: &str, pid: i32) -> Event {
    Event::Spawned { attempt: AttemptId(attempt.to_owned()), pid, start_ticks: 99 }
}

fn finished(member: &str, attempt: &str, outcome: Outcome) -> Event {
    let attempt = Attempt {
        id: AttemptId(attempt.to_owned()),
        action: ActionDigest::from_bytes(DIGEST),
        run: "run-1".to_owned(),
        outcome,
        outputs: BTreeMap::new(),
        stdout: None,
        stderr: None,
        reads: None,
        started: 1,
        finished: 2,
        usage: Usage::default(),
        host: Host::default(),
        environment: None,
        encoding: 1,
        terms: Terms::default(),
        ledger_heads: vec![],
        number: 1,
        continues: Vec::new(),
        verification: false,
    };
    Event::Finished { member: member.to_owned(), attempt: Box::new(attempt) }
}

fn reused(members: &[&str]) -> Event {
    let hit = |member: &&str| Hit {
        member: (*member).to_owned(),
        action: ActionDigest::from_bytes(DIGEST),
        attempt: AttemptDigest::from_bytes(DIGEST),
    };
    Event::Reused { hits: members.iter().map(hit).collect(), cited: None }
}

/// The file that these events make, one a millisecond from 1000 on.
fn file(events: Vec<Event>) -> String {
    let mut text = String::new();
    let mut previous = None;
    for (at, event) in (1000..).zip(events) {
        let line = Line { previous, at, event }.to_text();
        previous = Some(LineDigest::of(line.as_bytes()));
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A run with one of everything.
fn whole() -> String {
    let failed = Outcome::Failed(Failure::Exit(1));
    file(vec![
        opened(9),
        reused(&["a", "b"]),
        started("c", "c1"),
        spawned("c1", 11),
        finished("c", "c1", Outcome::Lost),
        started("c", "c2"),
        started("d", "d1"),
        spawned("d1", 12),
        finished("d", "d1", failed),
        spawned("c2", 13),
        finished("c", "c2", Outcome::Succeeded),
        started("e", "e1"),
        finished("e", "e1", Outcome::Cancelled),
        started("f", "f1"),
        finished("f", "f1", Outcome::Lost),
        started("g", "g1"),
        spawned("g1", 14),
        started("h", "h1"),
        Event::Closed { how: Closing::Interrupted },
    ])
}

fn read(text: &str) -> Journal {
    journal::read(text.as_bytes())
}

// --- The chain ------------------------------------------------------------------------------------------

#[test]
fn a_journal_reads_back() {
    let text = whole();
    let journal = read(&text);
    assert_eq!((journal.damage.clone(), journal.intact, journal.lines.len()), (None, text.len(), 19));
    let again: String = journal.lines.iter().map(|line| line.to_text() + "\n").collect();
    assert_eq!(again, text);
    assert_eq!(journal.head, text.lines().last().map(|line| LineDigest::of(line.as_bytes())));
    assert_eq!(journal::read(b""), Journal::default());
}

#[test]
fn every_prefix_is_a_shorter_run_with_perhaps_a_torn_tail() {
    let text = whole();
    let full = read(&text);
    for end in 0..=text.len() {
        let journal = journal::read(&text.as_bytes()[..end]);
        let intact = text[..end].rfind('\n').map_or(0, |at| at + 1);
        assert_eq!(journal.intact, intact);
        let torn = end - intact;
        assert_eq!(journal.damage, (torn > 0).then_some(Damage::Torn { bytes: torn }));
        assert_eq!(journal.lines, full.lines[..journal.lines.len()]);
        let state = RunState::of(&journal.lines);
        let started = state.orphans().count() as u64;
        assert_eq!(state.counts().running, started);
    }
}

fn broken(text: &str) -> (usize, String) {
    match read(text).damage {
        Some(Damage::Broken { line, reason }) => (line, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn changed_removed_inserted_and_exchanged_lines_break_the_chain() {
    let text = whole();
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let follows = |line| (line, "does not follow the line before it".to_owned());

    let changed = text.replacen("\"pid\":11", "\"pid\":12", 1);
    assert_eq!(broken(&changed), follows(5));
    let mut removed = lines.clone();
    removed.remove(3);
    assert_eq!(broken(&joined(&removed)), follows(4));
    let mut doubled = lines.clone();
    doubled.insert(3, lines[2]);
    assert_eq!(broken(&joined(&doubled)), follows(4));
    let mut exchanged = lines.clone();
    exchanged.swap(5, 6);
    assert_eq!(broken(&joined(&exchanged)), follows(6));
    assert_eq!(broken(&joined(&lines[1..])), follows(1));

    let alone = Line { previous: None, at: 1, event: reused(&["x"]) }.to_text();
    assert_eq!(broken(&format!("{}\n{alone}\n", lines[0])), follows(2));
    let mut first = read(&text).lines[0].clone();
    first.previous = Some(LineDigest::of(b"nothing"));
    assert_eq!(broken(&(first.to_text() + "\n")), follows(1));

    // What stands before the damage is kept, and nothing after it is.
    let journal = read(&changed);
    assert_eq!(journal.lines.len(), 4);
    assert_eq!(journal.intact, joined(&lines[..4]).len());
}

#[test]
fn a_journal_begins_once_and_with_a_known_version() {
    assert_eq!(broken(&file(vec![reused(&["a"])])), (1, "the first line does not open a run".to_owned()));
    assert_eq!(broken(&file(vec![opened(1), opened(1)])), (2, "a second beginning".to_owned()));
    let newer = file(vec![opened(1)]).replace("\"version\":1", "\"version\":2");
    assert_eq!(broken(&newer), (1, "version 2 is not known here".to_owned()));
}

#[test]
fn lines_that_are_none_are_named() {
    let first = file(vec![opened(1)]);
    for line in [
        "",
        "{}",
        "[]",
        "null",
        "\u{feff}",
        "{\"at\":1,\"event\":{\"kind\":\"unheard-of\"}}",
        &"[".repeat(100_000),
    ] {
        let (number, reason) = broken(&format!("{first}{line}\n"));
        assert_eq!(number, 2);
        assert!(reason.starts_with("not a journal line: "), "{reason}");
    }
    assert!(matches!(journal::read(b"\xff\n").damage, Some(Damage::Broken { line: 1, .. })));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        journal::read(&bytes);
    }

    #[test]
    fn a_changed_byte_is_seen_by_the_next_line(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let text = whole();
        let mut bytes = text.clone().into_bytes();
        let last = text.trim_end().rfind('\n').unwrap();
        let at = at.index(last);
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        let journal = journal::read(&bytes);
        let is_broken = matches!(journal.damage, Some(Damage::Broken { .. }));
        prop_assert!(is_broken);
        RunState::of(&journal.lines);
    }

    #[test]
    fn lines_in_any_order_fold_without_panic(order in Just((0..19).collect::<Vec<usize>>()).prop_shuffle(), take in 0usize..20) {
        let lines = read(&whole()).lines;
        let shuffled: Vec<Line> = order.iter().take(take).map(|i| lines[*i].clone()).collect();
        let state = RunState::of(&shuffled);
        let Counts { waiting, running, reused, succeeded, failed, lost, cancelled } = state.counts();
        let touched = state.members.len() as u64;
        prop_assert_eq!(running + reused + succeeded + failed + lost + cancelled, touched);
        prop_assert_eq!(waiting, state.opened.as_ref().map_or(0, |o| o.members - touched));
    }
}

// --- The fold -------------------------------------------------------------------------------------------

fn state(events: Vec<Event>) -> RunState {
    RunState::of(&read(&file(events)).lines)
}

#[test]
fn the_fold_counts_members_by_their_last_state() {
    let state = RunState::of(&read(&whole()).lines);
    let expected =
        Counts { waiting: 1, running: 2, reused: 2, succeeded: 1, failed: 1, lost: 1, cancelled: 1 };
    assert_eq!(state.counts(), expected);
    assert_eq!((state.since, state.until, state.closed), (1000, 1018, Some(Closing::Interrupted)));
    let attempts: Vec<&str> = state.attempts.iter().map(|(_, attempt)| attempt.id.0.as_str()).collect();
    assert_eq!(attempts, ["c1", "d1", "c2", "e1", "f1"], "every attempt that ended, also those tried again");
}

#[test]
fn orphans_are_what_started_and_never_finished() {
    let state = RunState::of(&read(&whole()).lines);
    let orphans: Vec<_> = state
        .orphans()
        .map(|orphan| (orphan.member, orphan.attempt.0, orphan.since, orphan.process))
        .collect();
    let text = |text: &str| text.to_owned();
    let expected = [(text("g"), text("g1"), 1015, Some((14, 99))), (text("h"), text("h1"), 1017, None)];
    assert_eq!(orphans, expected);
}

#[test]
fn a_process_belongs_to_its_own_attempt() {
    // A late report of an attempt that ended says nothing about the one that follows.
    let state = state(vec![
        opened(1),
        started("a", "a1"),
        finished("a", "a1", Outcome::Lost),
        started("a", "a2"),
        spawned("a1", 5),
        spawned("unknown", 6),
    ]);
    let Some(MemberState::Running { attempt, process, .. }) = state.members.get("a") else { panic!() };
    assert_eq!((attempt.0.as_str(), *process), ("a2", None));
}

#[test]
fn more_members_than_announced_do_not_wait() {
    assert_eq!(state(vec![opened(1), reused(&["a", "b", "c"])]).counts().waiting, 0);
    assert_eq!(RunState::default().counts(), Counts::default());
}

#[test]
fn a_long_run_folds_in_as_many_steps_as_it_has_lines() {
    // A search through all members at every line would take ten thousand million steps.
    let mut lines = vec![Line { previous: None, at: 0, event: opened(100_000) }];
    for i in 0..100_000 {
        let (member, attempt) = (format!("m{i}"), format!("a{i}"));
        lines.push(Line { previous: None, at: 0, event: started(&member, &attempt) });
        lines.push(Line { previous: None, at: 0, event: spawned(&attempt, i) });
    }
    let state = RunState::of(&lines);
    assert_eq!(state.orphans().filter(|orphan| orphan.process.is_some()).count(), 100_000);
}

#[test]
fn outcomes_say_whose_they_are() {
    let is_final = [
        Outcome::Succeeded,
        Outcome::Failed(Failure::Exit(1)),
        Outcome::Failed(Failure::Disk),
        Outcome::TimedOut,
        Outcome::OutOfMemory,
        Outcome::MissingOutput(vec![]),
    ];
    assert!(is_final.iter().all(Outcome::is_final));
    let open = [Outcome::Cancelled, Outcome::Lost, Outcome::Failed(Failure::Machine(String::new()))];
    assert!(!open.iter().any(Outcome::is_final));
}

#[test]
fn the_summary_counts_what_the_fold_counts() {
    let text = whole();
    let lines = read(&text).lines;
    for end in 0..=lines.len() {
        let (state, summary) = (RunState::of(&lines[..end]), RunSummary::of(&lines[..end]));
        assert_eq!(summary.counts(), state.counts());
        assert_eq!((summary.since, summary.until, summary.closed), (state.since, state.until, state.closed));
        assert!(summary.running.keys().cloned().eq(state.orphans().map(|orphan| orphan.member)));
    }
    let ended: Vec<String> = RunSummary::of(&lines).ended.into_keys().collect();
    assert_eq!(ended, ["d", "e", "f"]);
}

#[test]
fn a_journal_can_be_read_on_from_any_line() {
    let text = whole();
    let full = read(&text);
    let mut from = Walked::default();
    let mut places = Vec::new();
    // Whole lines and torn ones arrive in pieces of 300 bytes.
    for end in (0..text.len()).step_by(300).chain([text.len()]) {
        let bytes = &text.as_bytes()[from.intact as usize..end];
        from = journal::walk(bytes, from, &mut |place, line| places.push((place, line)));
    }
    assert_eq!((from.head, from.intact, from.damage), (full.head, text.len() as u64, None));
    for ((place, line), expected) in places.iter().zip(&full.lines) {
        assert_eq!(line, expected);
        assert_eq!(&text[place.start as usize..place.end as usize], expected.to_text());
    }
    assert_eq!(places.len(), full.lines.len());
}

#[test]
fn cited_hits_fold_like_written_ones() {
    let Event::Reused { hits, .. } = reused(&["a", "b"]) else { unreachable!() };
    let blob: Vec<u8> = hits.iter().flat_map(journal::hit_line).collect();
    let cited = Cited { record: BlobDigest::of(&blob), count: 2 };
    let citing = Event::Reused { hits: Vec::new(), cited: Some(cited) };
    let text = file(vec![opened(3), citing]);
    assert!(!text.contains("\"a\""), "they are not in the line");
    let mut lines = journal::read(text.as_bytes()).lines;
    assert_eq!(RunSummary::of(&lines).counts().reused, 2, "counted without the blob");

    assert_eq!(journal::resolve(&mut lines.clone(), |_| None), 1);
    assert_eq!(journal::resolve(&mut lines.clone(), |_| Some(b"no hits".to_vec())), 1);
    assert_eq!(journal::resolve(&mut lines, |digest| (digest == cited.record).then(|| blob.clone())), 0);
    let written = journal::read(file(vec![opened(3), reused(&["a", "b"])]).as_bytes()).lines;
    assert_eq!(RunState::of(&lines).members, RunState::of(&written).members);
}
