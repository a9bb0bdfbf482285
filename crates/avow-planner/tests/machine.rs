//! The planner by events: small graphs in full, random graphs in random orders.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use avow_model::attempt::{Failure, Outcome};
use avow_model::digest::{Artifact, AttemptDigest, BlobDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{Plan, Terms};
use avow_planner::{Command, Event, Found, Miss, Planner, Reason, Settings, Target};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A plan from lines such as `a`, `b[x] < a`, `c < b/x` (`/x` gathers the axis x); axes have `size` values.
fn plan(lines: &str, size: u64) -> Plan {
    let mut axes = BTreeSet::new();
    let mut scopes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut stages = Vec::new();
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (head, tail) = line.split_once('<').unwrap_or((line, ""));
        let (name, own) = head.trim().split_once('[').unwrap_or((head.trim(), "]"));
        let mut scope: BTreeSet<String> =
            own.trim_end_matches(']').split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect();
        axes.extend(scope.iter().cloned());
        let mut inputs = serde_json::Map::new();
        for read in tail.split_whitespace() {
            let (from, gather) = read.split_once('/').unwrap_or((read, ""));
            let gathered: Vec<&str> = gather.split(',').filter(|s| !s.is_empty()).collect();
            scope.extend(scopes[from].iter().filter(|a| !gathered.contains(&a.as_str())).cloned());
            let source = json!({"output": {"stage": from, "output": "out", "gather": gathered}});
            inputs.insert(from.to_owned(), json!({"from": source, "mount": format!("inputs/{from}")}));
        }
        let values: Vec<String> = scope.iter().map(|a| format!("${{axes.{a}}}")).collect();
        scopes.insert(name.to_owned(), scope.clone());
        stages.push(json!({
            "name": name, "program": {"shell": format!("make {name} {}", values.join(" "))},
            "scope": scope, "inputs": inputs, "outputs": {"out": {"path": "out"}},
            "reuse": "always", "determinism": "bytes",
        }));
    }
    stages.sort_by_key(|s| s["name"].as_str().unwrap().to_owned());
    let axes: Vec<Value> = axes
        .into_iter()
        .map(|name| json!({"name": name, "points": {"range": {"start": 0, "stop": size, "step": 1}}}))
        .collect();
    serde_json::from_value(json!({"experiment": "t", "axes": axes, "stages": stages})).unwrap()
}

fn settings(cpus: u32, keep_going: bool) -> Settings {
    Settings { cpus, memory: 1 << 30, keep_going, only: Vec::new(), terms: BTreeMap::new() }
}

fn outputs(member: Member) -> BTreeMap<String, Artifact> {
    let bytes = format!("{member:?}");
    BTreeMap::from([("out".to_owned(), Artifact::Blob(BlobDigest::of(bytes.as_bytes())))])
}

/// Answers every look with a miss, and collects what is to run.
fn settle(planner: &mut Planner, mut commands: Vec<Command>, hits: &BTreeSet<Member>) -> Vec<(Member, u32)> {
    let mut runs = Vec::new();
    while let Some(command) = commands.pop() {
        match command {
            Command::Look { member, .. } => {
                let found = match hits.contains(&member) {
                    true => {
                        Found::Hit { attempt: AttemptDigest::from_bytes([7; 32]), outputs: outputs(member) }
                    }
                    false => Found::Miss(Miss::NeverRun),
                };
                commands.extend(planner.handle(Event::Looked { member, found }));
            }
            Command::Run { member, number, .. } => runs.push((member, number)),
        }
        planner.sanity_check();
    }
    runs
}

fn finish(planner: &mut Planner, member: Member, outcome: Outcome) -> Vec<(Member, u32)> {
    let made = if outcome.succeeded() { outputs(member) } else { BTreeMap::new() };
    let commands = planner.handle(Event::Finished { member, outcome, outputs: made });
    planner.sanity_check();
    settle(planner, commands, &BTreeSet::new())
}

fn labels(plan: &Plan, runs: &[(Member, u32)]) -> Vec<String> {
    let mut all: Vec<String> = runs.iter().map(|(m, n)| format!("{}#{n}", expand::label(plan, *m))).collect();
    all.sort();
    all
}

fn start(plan: &Arc<Plan>, settings: Settings) -> (Planner, Vec<(Member, u32)>) {
    let mut planner = Planner::new(Arc::clone(plan), settings).unwrap();
    let owed = planner.owed();
    let runs = settle(&mut planner, owed, &BTreeSet::new());
    (planner, runs)
}

const FAILED: Outcome = Outcome::Failed(Failure::Exit(1));

#[test]
fn a_member_that_another_run_makes_waits_without_a_slot_and_looks_again() {
    let plan = Arc::new(plan("a[x]\nb < a/x", 2));
    let (mut planner, runs) = start(&plan, settings(1, false));
    assert_eq!(labels(&plan, &runs), ["a[x=1]#1"]);
    let first = runs[0].0;
    let commands = planner.handle(Event::Elsewhere { member: first });
    planner.sanity_check();
    assert_eq!(planner.reason(first), Some(Reason::Elsewhere));
    let runs = settle(&mut planner, commands, &BTreeSet::new());
    assert_eq!(labels(&plan, &runs), ["a[x=0]#1"], "the slot is free for another");
    assert_eq!(finish(&mut planner, runs[0].0, Outcome::Succeeded), []);
    assert!(!planner.is_done());
    // Not made after all: it is ours now.
    let commands = planner.handle(Event::Free { member: first });
    assert_eq!(planner.handle(Event::Free { member: first }), [], "once is enough");
    let runs = settle(&mut planner, commands, &BTreeSet::new());
    assert_eq!(labels(&plan, &runs), ["a[x=1]#1"]);
    // And taken from us again; this time it is made.
    assert_eq!(planner.handle(Event::Elsewhere { member: first }), []);
    let commands = planner.handle(Event::Free { member: first });
    let runs = settle(&mut planner, commands, &BTreeSet::from([first]));
    assert_eq!(labels(&plan, &runs), ["b#1"]);
    assert_eq!((planner.tally().reused, planner.tally().succeeded), (1, 1));
    assert_eq!(finish(&mut planner, runs[0].0, Outcome::Succeeded), []);
    assert!(planner.is_done());
}

#[test]
fn members_of_one_action_wait_for_the_one_that_waits() {
    let same = |name: &str| {
        json!({
            "name": name, "program": {"shell": "same"}, "scope": [], "inputs": {},
            "outputs": {"out": {"path": "out"}}, "reuse": "always", "determinism": "bytes",
        })
    };
    let plan: Plan =
        serde_json::from_value(json!({"experiment": "t", "axes": [], "stages": [same("a"), same("b")]}))
            .unwrap();
    let plan = Arc::new(plan);
    for stop in [false, true] {
        let (mut planner, runs) = start(&plan, settings(2, false));
        let first = runs[0].0;
        assert_eq!(runs.len(), 1);
        assert_eq!(planner.handle(Event::Elsewhere { member: first }), []);
        if stop {
            assert_eq!(planner.handle(Event::Stop), []);
            assert_eq!(planner.handle(Event::Free { member: first }), []);
            planner.sanity_check();
            assert!(planner.is_done());
            continue;
        }
        let commands = planner.handle(Event::Free { member: first });
        let all = planner.reasons().map(|(member, _)| member).collect();
        assert_eq!(settle(&mut planner, commands, &all), []);
        assert!(planner.is_done() && planner.tally().reused == 2, "{:?}", planner.tally());
    }
}

#[test]
fn a_chain_runs_in_order() {
    let plan = Arc::new(plan("a\nb < a\nc < b", 1));
    let (mut planner, mut runs) = start(&plan, settings(2, false));
    let mut seen = Vec::new();
    while let Some((member, _)) = runs.pop() {
        seen.push(expand::label(&plan, member));
        runs.extend(finish(&mut planner, member, Outcome::Succeeded));
    }
    assert_eq!(seen, ["a", "b", "c"]);
    assert!(planner.is_done());
    assert_eq!(planner.tally().succeeded, 3);
}

#[test]
fn a_gathering_stage_waits_for_all_it_gathers() {
    let plan = Arc::new(plan("a[x]\nb < a/x", 3));
    let (mut planner, runs) = start(&plan, settings(8, false));
    assert_eq!(labels(&plan, &runs), ["a[x=0]#1", "a[x=1]#1", "a[x=2]#1"]);
    assert!(finish(&mut planner, runs[0].0, Outcome::Succeeded).is_empty());
    assert!(finish(&mut planner, runs[1].0, Outcome::Succeeded).is_empty());
    assert_eq!(labels(&plan, &finish(&mut planner, runs[2].0, Outcome::Succeeded)), ["b#1"]);
}

#[test]
fn slots_bound_what_runs_together() {
    let plan = Arc::new(plan("a[x]", 10));
    let mut settings = settings(4, false);
    settings.terms.insert("a".to_owned(), Terms { cpus: 2, memory: Some(1 << 29), ..Terms::default() });
    let (planner, runs) = start(&plan, settings.clone());
    assert_eq!(runs.len(), 2, "four slots, two each");
    assert!(planner.too_large().is_none());
    settings.memory = 1 << 28;
    let (planner, _) = start(&plan, settings);
    assert_eq!(planner.too_large().unwrap().0, "a");
}

#[test]
fn without_keep_going_a_failure_stops_new_starts() {
    let plan = Arc::new(plan("a[x]\nb < a", 4));
    let (mut planner, runs) = start(&plan, settings(2, false));
    assert!(finish(&mut planner, runs[0].0, FAILED).is_empty());
    assert!(!planner.is_done(), "one is still running");
    assert!(finish(&mut planner, runs[1].0, Outcome::Succeeded).is_empty());
    assert!(planner.is_done());
}

#[test]
fn with_keep_going_only_what_depends_on_the_failure_is_left_out() {
    let plan = Arc::new(plan("a[x]\nb < a\nc < b/x", 2));
    let (mut planner, runs) = start(&plan, settings(1, true));
    let failed = runs[0].0;
    let mut runs = finish(&mut planner, failed, FAILED);
    while let Some((member, _)) = runs.pop() {
        runs.extend(finish(&mut planner, member, Outcome::Succeeded));
    }
    assert!(planner.is_done());
    let tally = planner.tally();
    assert_eq!((tally.failed, tally.succeeded, tally.blocked), (1, 2, 2));
    let blocked = planner.reasons().filter(|(_, r)| *r == Reason::Blocked { by: failed }).count();
    assert_eq!(blocked, 2);
}

#[test]
fn only_lost_is_retried_unless_retries_are_declared() {
    let plan = Arc::new(plan("a", 1));
    let (mut planner, runs) = start(&plan, settings(1, false));
    let again = finish(&mut planner, runs[0].0, Outcome::Lost);
    assert_eq!(labels(&plan, &again), ["a#2"]);
    assert!(finish(&mut planner, again[0].0, FAILED).is_empty() && planner.is_done());

    let mut declared = settings(1, false);
    declared.terms.insert("a".to_owned(), Terms { cpus: 1, retries: 1, ..Terms::default() });
    let (mut planner, runs) = start(&plan, declared);
    let again = finish(&mut planner, runs[0].0, FAILED);
    assert_eq!(labels(&plan, &again), ["a#2"]);
    assert!(finish(&mut planner, again[0].0, FAILED).is_empty());
    assert_eq!(planner.tally().failed, 1);
}

#[test]
fn a_lost_attempt_uses_up_no_declared_retry() {
    let plan = Arc::new(plan("a", 1));
    let mut declared = settings(1, false);
    declared.terms.insert("a".to_owned(), Terms { cpus: 1, retries: 1, ..Terms::default() });
    let (mut planner, mut runs) = start(&plan, declared);
    let mut seen = labels(&plan, &runs);
    for outcome in [Outcome::Lost, FAILED, Outcome::Lost, FAILED] {
        runs = finish(&mut planner, runs[0].0, outcome);
        seen.extend(labels(&plan, &runs));
    }
    assert_eq!(seen, ["a#1", "a#2", "a#3", "a#4"]);
    assert!(planner.is_done());

    let (mut planner, mut runs) = start(&plan, settings(1, false));
    for _ in 0..3 {
        runs = finish(&mut planner, runs[0].0, Outcome::Lost);
    }
    assert_eq!(labels(&plan, &runs), ["a#4"]);
    assert!(finish(&mut planner, runs[0].0, Outcome::Lost).is_empty());
    assert_eq!(planner.tally().failed, 1);
}

#[test]
fn nothing_is_tried_again_once_another_failure_has_stopped_the_run() {
    let plan = Arc::new(plan("a\nb", 1));
    let mut declared = settings(2, false);
    declared.terms.insert("b".to_owned(), Terms { cpus: 1, retries: 1, ..Terms::default() });
    let (mut planner, mut runs) = start(&plan, declared);
    runs.sort();
    assert!(finish(&mut planner, runs[0].0, FAILED).is_empty());
    assert!(finish(&mut planner, runs[1].0, FAILED).is_empty());
    assert!(planner.is_done());
    assert_eq!((planner.tally().failed, planner.tally().waiting), (2, 0));
}

#[test]
fn members_of_one_action_are_not_reached_when_the_run_is_stopped() {
    let mut twins = plan("a\nb", 1);
    twins.stages[1].program = twins.stages[0].program.clone();
    let plan = Arc::new(twins);
    let (mut planner, runs) = start(&plan, settings(4, false));
    assert!(planner.handle(Event::Stop).is_empty());
    assert!(finish(&mut planner, runs[0].0, Outcome::Cancelled).is_empty());
    assert!(planner.is_done());
    assert!(planner.reasons().any(|(_, reason)| reason == Reason::NotReached));
}

#[test]
fn one_action_never_runs_twice_at_once() {
    // Two stages with the same command, inputs and outputs are one action.
    let mut twins = plan("a\nb", 1);
    twins.stages[1].program = twins.stages[0].program.clone();
    let plan = Arc::new(twins);
    let (mut planner, runs) = start(&plan, settings(4, false));
    assert_eq!(runs.len(), 1);
    let made = BTreeMap::from([("out".to_owned(), Artifact::Blob(BlobDigest::of(b"x")))]);
    let commands =
        planner.handle(Event::Finished { member: runs[0].0, outcome: Outcome::Succeeded, outputs: made });
    let [Command::Look { member, .. }] = commands.as_slice() else { panic!("{commands:?}") };
    let runs = settle(&mut planner, commands.clone(), &BTreeSet::from([*member]));
    assert!(runs.is_empty() && planner.is_done());
    assert_eq!((planner.tally().succeeded, planner.tally().reused), (1, 1));
}

#[test]
fn a_target_brings_what_it_needs_and_no_more() {
    let plan = Arc::new(plan("a[x]\nb[y] < a\nc < b", 3));
    let mut settings = settings(8, false);
    settings.only = vec![Target::parse(&plan, "b[x=1]").unwrap()];
    let (planner, runs) = start(&plan, settings);
    assert_eq!(labels(&plan, &runs), ["a[x=1]#1"]);
    assert_eq!(planner.tally().members, 4);
    for bad in ["d", "b[z=1]", "b[x=9]", "b[x", "b[x:1]"] {
        assert!(Target::parse(&plan, bad).is_err(), "{bad}");
    }
}

#[test]
fn stop_starts_nothing_more() {
    let plan = Arc::new(plan("a[x]", 5));
    let (mut planner, runs) = start(&plan, settings(2, true));
    planner.handle(Event::Stop);
    assert!(finish(&mut planner, runs[0].0, Outcome::Cancelled).is_empty());
    assert!(!planner.is_done());
    assert!(finish(&mut planner, runs[1].0, Outcome::Succeeded).is_empty());
    assert!(planner.is_done());
}

#[test]
fn a_cycle_is_named() {
    let mut cyclic = plan("a\nb < a", 1);
    let input = cyclic.stages[1].inputs["a"].clone();
    cyclic.stages[0].inputs.insert("back".to_owned(), input);
    let error = Planner::new(Arc::new(cyclic), settings(1, false)).unwrap_err();
    assert!(error.to_string().contains("depends on itself"), "{error}");
}

/// Random layered plans: each stage may use two axes and read (or gather) from earlier stages.
fn plans() -> impl Strategy<Value = String> {
    let stage = (0u8..4, prop::collection::vec((0usize..8, any::<bool>()), 0..3));
    prop::collection::vec(stage, 1..7).prop_map(|stages| {
        let mut text = String::new();
        for (i, (axes, reads)) in stages.iter().enumerate() {
            let own = ["", "[x]", "[y]", "[x,y]"][usize::from(*axes)];
            let from: BTreeSet<String> = reads
                .iter()
                .filter(|_| i > 0)
                .map(|(j, gather)| format!("s{}{}", j % i.max(1), if *gather { "/x" } else { "" }))
                .collect();
            // One way of reading per producer keeps input names unique.
            let mut once: BTreeMap<String, String> = BTreeMap::new();
            from.into_iter().for_each(|f| {
                once.entry(f.split('/').next().unwrap().to_owned()).or_insert(f);
            });
            let reads: Vec<String> = once.into_values().collect();
            text.push_str(&format!("s{i}{own} < {}\n", reads.join(" ")));
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_plan_in_any_order_ends_with_every_member_decided(
        text in plans(),
        size in 1u64..4,
        cpus in 1u32..5,
        keep_going in any::<bool>(),
        choices in prop::collection::vec((any::<prop::sample::Index>(), 0u8..12), 0..400),
    ) {
        let plan = Arc::new(plan(&text, size));
        let (mut planner, mut runs) = start(&plan, settings(cpus, keep_going));
        let mut choices = choices.into_iter();
        let mut failed = false;
        while !runs.is_empty() {
            let (at, how) = choices.next().map_or((0, 3), |(i, how)| (i.index(runs.len()), how));
            let (member, _) = runs.swap_remove(at);
            let outcome = match how {
                0 => FAILED,
                1 => Outcome::Lost,
                2 => Outcome::TimedOut,
                _ => Outcome::Succeeded,
            };
            runs.extend(finish(&mut planner, member, outcome));
            failed |= planner.tally().failed > 0;
        }
        prop_assert!(planner.is_done());
        let tally = planner.tally();
        prop_assert_eq!(tally.running, 0);
        if keep_going || !failed {
            prop_assert_eq!(tally.waiting, 0);
            prop_assert_eq!(tally.succeeded + tally.failed + tally.blocked, tally.members);
        }
    }

    #[test]
    fn hits_and_misses_in_any_mix_run_exactly_the_misses(text in plans(), size in 1u64..4, every in 1u64..4) {
        let plan = Arc::new(plan(&text, size));
        let all: BTreeSet<Member> = (0..plan.stages.len()).flat_map(|s| expand::members(&plan, s)).collect();
        let hits: BTreeSet<Member> = all.iter().filter(|m| (m.cell + u64::from(m.stage)) % every == 0).copied().collect();
        let mut planner = Planner::new(Arc::clone(&plan), settings(3, false)).unwrap();
        let owed = planner.owed();
        let mut runs = settle(&mut planner, owed, &hits);
        let mut ran = BTreeSet::new();
        while let Some((member, _)) = runs.pop() {
            ran.insert(member);
            let commands = planner.handle(Event::Finished { member, outcome: Outcome::Succeeded, outputs: outputs(member) });
            runs.extend(settle(&mut planner, commands, &hits));
        }
        prop_assert!(planner.is_done());
        let misses: BTreeSet<Member> = all.difference(&hits).copied().collect();
        prop_assert_eq!(ran, misses);
    }
}

#[test]
fn a_million_members_are_a_table_and_a_hundred_of_them_a_map() {
    let plan = Arc::new(plan("data\ncell[x,y,z] < data\nall < cell/x,y,z", 100));
    let began = Planner::new(Arc::clone(&plan), settings(2, false)).unwrap();
    assert_eq!(began.tally().members, 1_000_002);
    let mut few = settings(2, false);
    few.only = vec![Target::parse(&plan, "cell[x=1,z=7]").unwrap()];
    let (mut planner, runs) = start(&plan, few);
    assert_eq!(planner.tally().members, 101);
    assert_eq!(labels(&plan, &runs), ["data#1"]);
    let runs = finish(&mut planner, runs[0].0, Outcome::Succeeded);
    assert_eq!(runs.len(), 2, "as many as there are slots");
}

#[test]
fn more_looks_than_a_wave_are_owed_as_the_first_are_answered() {
    let plan = Arc::new(plan("cell[x,y,z]", 30));
    let mut planner = Planner::new(Arc::clone(&plan), settings(2, false)).unwrap();
    let mut owed = planner.owed();
    assert_eq!(owed.len(), 10_000);
    let (mut looks, mut most) = (0, 0);
    while let Some(command) = owed.pop() {
        let Command::Look { member, .. } = command else { continue };
        looks += 1;
        let attempt = AttemptDigest::from_bytes([7; 32]);
        let found = Found::Hit { attempt, outputs: outputs(member) };
        owed.extend(planner.handle(Event::Looked { member, found }));
        most = most.max(owed.len());
    }
    assert!(planner.is_done() && most <= 10_000);
    assert_eq!((looks, planner.tally().reused), (27_000, 27_000));
}

#[test]
fn a_target_names_the_same_members_whichever_axes_it_fixes() {
    let plan = plan("cell[x,y,z]", 4);
    for text in ["cell", "cell[y=2]", "cell[x=1,z=3]", "cell[z=0,y=1,x=2]", "cell[x=1,x=2]"] {
        let target = Target::parse(&plan, text).unwrap();
        let pairs: Vec<(&str, u64)> = text
            .split_once('[')
            .map_or("", |(_, inner)| inner.trim_end_matches(']'))
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(axis, index)| (axis, index.parse().unwrap()))
            .collect();
        let named = |member: &Member| {
            let cell = expand::cell(&plan, *member);
            pairs.iter().all(|(axis, index)| cell.index(axis) == Some(*index))
        };
        let expected: Vec<Member> = expand::members(&plan, 0).filter(named).collect();
        assert_eq!(target.members(&plan).collect::<Vec<_>>(), expected, "{text}");
    }
}
