//! Adaptive designs: every probe is an ordinary cell, every decision is worked out anew from the record.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use avow_model::journal::Event;
use avow_model::search::{Decision, Step};
use avow_testkit::Sandbox;
use serde_json::Value;

/// Training begins to diverge between 0.037 and 0.038, depending on the seed; at the value found no seed may.
const BISECTION: &str = "\
avow: 1
experiment: searched
axes: {seed: [1, 2, 3]}
search:
  threshold:
    kind: bisection
    over: {lr: {from: 0.001, to: 1.0, scale: log}}
    measure: train.diverged
    reduce: max
    goal: {below: 0.5}
    until: {ratio: 1.1}
    at_most: 30
stages:
  train:
    run: [sh, train.sh, '${axes.lr}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  final:
    run: [sh, train.sh, '${axes.threshold}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  found:
    run: [sh, found.sh, '${axes.threshold}', '${outputs.found}']
    measurements: {found: found.json}
claims:
  stable: {says: It trains there., select: final.diverged, rule: {kind: threshold, statistic: every, below: 0.5}}
  place: {says: It lies above 0.03., select: found.lr, rule: {kind: threshold, statistic: every, above: 0.03}}
";

const TRAIN: &str = "awk -v lr=\"$1\" -v seed=\"$2\" 'BEGIN { printf \"{\\\"diverged\\\": %d}\\n\", (lr > 0.0365 + 0.0005 * seed) }' > \"$3\"\n";

fn project(spec: &str, scripts: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    for (name, text) in scripts {
        sandbox.file(name, text);
    }
    sandbox
}

fn bisection() -> Sandbox {
    project(BISECTION, &[("train.sh", TRAIN), ("found.sh", "echo \"{\\\"lr\\\": $1}\" > \"$2\"\n")])
}

/// The rows of one stage.
fn rows(sandbox: &Sandbox, stage: &str) -> Vec<Value> {
    let table = sandbox.avow(&["table", "--json"]).with_code(0).stdout;
    let all = table.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|row| row["stage"] == stage).collect()
}

fn words(sandbox: &Sandbox) -> Vec<String> {
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let verdicts = report["verdicts"].as_array().unwrap().iter();
    verdicts.map(|v| format!("{} {}", v["claim"].as_str().unwrap(), v["word"].as_str().unwrap())).collect()
}

fn decisions(sandbox: &Sandbox) -> Vec<Decision> {
    let history = sandbox.history();
    let lines = &history.latest().journal.lines;
    let decided = lines.iter().filter_map(|line| match &line.event {
        Event::Decided { decision } => Some((**decision).clone()),
        _ => None,
    });
    decided.collect()
}

/// Members that ever succeeded, with how often.
fn most_often(sandbox: &Sandbox) -> usize {
    sandbox.history().successes().into_values().max().unwrap_or(0)
}

#[test]
fn a_bisection_asks_for_cells_until_it_knows_and_a_second_run_does_nothing() {
    let sandbox = bisection();
    let run = sandbox.avow(&["run"]).with_code(0);
    let probed: BTreeSet<String> =
        rows(&sandbox, "train").iter().map(|row| row["axes"]["lr"].to_string()).collect();
    assert!((8..=12).contains(&probed.len()), "{probed:?}");
    assert_eq!(rows(&sandbox, "train").len(), 3 * probed.len(), "every seed at every probe");
    let found = rows(&sandbox, "found")[0]["value"].as_f64().unwrap();
    assert!(found <= 0.037 && found * 1.1 > 0.037, "{found}");
    let executed = sandbox.history().latest().started();
    assert!(
        executed.iter().all(|member| !member.starts_with("final")),
        "the same action as a probe: {executed:?}"
    );
    assert_eq!(words(&sandbox), ["place supported", "stable supported"]);
    assert!(run.stdout.contains("threshold"), "{}", run.stdout);
    let decided = decisions(&sandbox);
    assert!(matches!(&decided[0].answer, Step::Ask(points) if points.len() == 2), "{decided:?}");
    assert!(decided[0].used.is_empty() && decided[1].used.len() == 6);
    assert!(
        matches!(&decided.last().unwrap().answer, Step::Found(found) if found.probes == probed.len() as u64)
    );
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    assert_eq!(decisions(&sandbox), decided, "worked out anew, with the same end");
}

#[test]
fn one_probe_can_be_named_like_any_member() {
    let sandbox = bisection();
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.avow(&["explain", "train[lr=0.001,seed=1]"]).expect_code(0);
    let lineage = sandbox.avow(&["lineage", "train.diverged[lr=0.001,seed=1]"]).with_code(0);
    assert!(lineage.stdout.contains("train[lr=0.001,seed=1]"), "{}", lineage.stdout);
}

#[test]
fn a_killed_search_goes_on_where_it_was() {
    let undisturbed = bisection();
    undisturbed.avow(&["run"]).expect_code(0);
    for after in [1, 4, 9, 17] {
        let sandbox = bisection();
        let done = |sandbox: &Sandbox| sandbox.history().attempts().count() >= after;
        sandbox.kill_when(done, &["run"]);
        sandbox.avow(&["run"]).expect_code(0);
        assert_eq!(
            decisions(&sandbox),
            decisions_without_attempts(&undisturbed, &sandbox),
            "killed after {after}"
        );
        assert_eq!(sandbox.history().artifacts(), undisturbed.history().artifacts());
        assert_eq!(most_often(&sandbox), 1, "nothing that succeeded ran again");
    }
}

/// The decisions of one sandbox with the attempts of another: attempts have names of their own.
fn decisions_without_attempts(from: &Sandbox, attempts: &Sandbox) -> Vec<Decision> {
    let with = decisions(attempts);
    let answers = decisions(from).into_iter().zip(with);
    answers.map(|(decision, with)| Decision { used: with.used, ..decision }).collect()
}

#[test]
fn a_registered_search_is_confirmatory_and_another_stopping_rule_is_a_deviation() {
    let sandbox = bisection();
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    let half = |sandbox: &Sandbox| sandbox.history().attempts().count() >= 7;
    sandbox.kill_when(half, &["run"]);
    for args in [&["table"][..], &["verdict", "--check"]] {
        let hidden = sandbox.avow(args).with_code(5);
        assert!(!hidden.stdout.contains("0.0"), "{}", hidden.stdout);
    }
    sandbox.avow(&["run"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!((&report["standing"], &report["hidden"]), (&"confirmatory".into(), &false.into()));
    assert_eq!(words(&sandbox), ["place supported", "stable supported"]);
    sandbox.replace("spec.yaml", "ratio: 1.1", "ratio: 1.5");
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(report["standing"], "exploratory");
    assert!(report["deviations"].to_string().contains("ratio"), "{report:#}");
}

#[test]
fn a_goal_that_nothing_meets_is_void_with_its_reason() {
    let sandbox = bisection();
    sandbox.replace("spec.yaml", "from: 0.001", "from: 0.1");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stdout.contains("both ends"), "{}", run.stdout);
    assert!(words(&sandbox).iter().all(|word| word.ends_with("void")), "{:?}", words(&sandbox));
    assert!(matches!(decisions(&sandbox).last().unwrap().answer, Step::Void(_)));
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn a_probe_that_fails_is_tried_again_by_the_next_run() {
    let sandbox = bisection();
    sandbox.replace("spec.yaml", "  train:\n", "  train:\n    checkpoint: seen/\n");
    let once = "case \"$1,$2\" in 1,1) [ -e seen/it ] || { touch seen/it; exit 3; } ;; esac\n";
    sandbox.file("train.sh", format!("{once}{TRAIN}"));
    sandbox.avow(&["run"]).expect_code(1);
    assert!(words(&sandbox).iter().all(|word| word.ends_with("void")));
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(words(&sandbox), ["place supported", "stable supported"]);
}

/// Small runs choose the width, the large run takes it.
const ARGMIN: &str = "\
avow: 1
experiment: chosen
axes: {width: [16, 32, 64, 128], seed: [1, 2]}
search:
  best: {kind: argmin, over: width, measure: small.loss}
stages:
  small:
    run: [sh, small.sh, '${axes.width}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  large:
    run: [sh, large.sh, '${axes.best}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  it: {says: The large run is at 64., select: large.width, rule: {kind: threshold, statistic: every, above: 63, below: 65}}
";

#[test]
fn the_best_of_small_runs_is_run_large() {
    let small = "awk -v w=\"$1\" -v s=\"$2\" 'BEGIN { d = w - 60 - s; printf \"{\\\"loss\\\": %g}\\n\", d * d }' > \"$3\"\n";
    let sandbox =
        project(ARGMIN, &[("small.sh", small), ("large.sh", "echo \"{\\\"width\\\": $1}\" > \"$2\"\n")]);
    let executed = sandbox.executes(&["run"]);
    assert_eq!(executed.len(), 9);
    assert!(executed.contains(&"large[best=64]".to_owned()), "{executed:?}");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    // Another result of the small runs leads to another large run, and nothing of the old one is shown.
    sandbox.replace("small.sh", "60", "30");
    let executed = sandbox.executes(&["run"]);
    assert!(executed.contains(&"large[best=32]".to_owned()), "{executed:?}");
    assert_eq!(rows(&sandbox, "large").len(), 1);
}

const HALVING: &str = "\
avow: 1
experiment: halved
axes: {width: {range: [0, 9]}, epochs: [1, 3, 9], seed: [1, 2]}
search:
  winner: {kind: halving, over: width, budget: epochs, one_in: 3, goal: smallest, measure: train.loss}
stages:
  train:
    run: [sh, train.sh, '${axes.width}', '${axes.epochs}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  after:
    run: [sh, after.sh, '${axes.winner}', '${outputs.result}']
    measurements: {result: result.json}
";

#[test]
fn halving_spends_the_large_budget_on_few() {
    let train = "awk -v w=\"$1\" -v e=\"$2\" -v s=\"$3\" 'BEGIN { d = w - 6; printf \"{\\\"loss\\\": %g}\\n\", d * d + s / e }' > \"$4\"\n";
    let sandbox =
        project(HALVING, &[("train.sh", train), ("after.sh", "echo \"{\\\"width\\\": $1}\" > \"$2\"\n")]);
    let executed = sandbox.executes(&["run"]);
    let at = |epochs: &str| executed.iter().filter(|m| m.contains(&format!("epochs={epochs},"))).count();
    assert_eq!([at("1"), at("3"), at("9")], [18, 6, 2]);
    assert!(executed.contains(&"after[winner=6]".to_owned()), "{executed:?}");
    assert_eq!(rows(&sandbox, "train").len(), 26, "cells that were not asked for do not exist");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

// --- One search for each value ------------------------------------------------------------------------------------

const EACH: &str = "\
avow: 1
experiment: each
axes: {width: [10, 20, 30], lr: [1, 2, 3, 4], seed: [1, 2]}
search:
  best: {kind: argmin, over: lr, per: width, measure: train.loss}
  edge:
    kind: bisection
    over: {load: {from: 0, to: 64}}
    per: [width]
    measure: strain.broken
    goal: {below: 0.5}
    until: {width: 1}
stages:
  train:
    run: [sh, train.sh, '${axes.width}', '${axes.lr}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  strain:
    run: [sh, strain.sh, '${axes.width}', '${axes.load}', '${outputs.result}']
    measurements: {result: result.json}
  final:
    run: [sh, final.sh, '${axes.width}', '${axes.best}', '${axes.edge}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  all: {says: The best is a tenth of the width., select: final.excess, rule: {kind: threshold, statistic: every, above: -0.5, below: 0.5}, replicate: width}
";

/// The loss is smallest at a tenth of the width; it breaks above the width.
fn each() -> Sandbox {
    let train = "awk -v w=\"$1\" -v l=\"$2\" -v s=\"$3\" 'BEGIN { d = l - w / 10; printf \"{\\\"loss\\\": %g}\\n\", d * d + s }' > \"$4\"\n";
    let strain =
        "awk -v w=\"$1\" -v l=\"$2\" 'BEGIN { printf \"{\\\"broken\\\": %d}\\n\", (l > w) }' > \"$3\"\n";
    let last = "echo \"{\\\"excess\\\": $(( $2 * 10 - $1 )), \\\"edge\\\": $(( $3 - $1 ))}\" > \"$4\"\n";
    project(EACH, &[("train.sh", train), ("strain.sh", strain), ("final.sh", last)])
}

#[test]
fn one_search_for_each_value_finds_one_answer_for_each() {
    let sandbox = each();
    let executed = sandbox.executes(&["run"]);
    let finals: Vec<&String> = executed.iter().filter(|member| member.starts_with("final")).collect();
    let expected = [
        "final[best=1,edge=10,width=10]",
        "final[best=2,edge=20,width=20]",
        "final[best=3,edge=30,width=30]",
    ];
    assert_eq!(finals, expected);
    assert_eq!(executed.iter().filter(|member| member.starts_with("train")).count(), 24);
    // Each bisection asks for middles of its own: far fewer than the product of all loads and widths.
    let probes = executed.iter().filter(|member| member.starts_with("strain")).count();
    assert!((15..=27).contains(&probes), "{probes} probes");
    assert_eq!(rows(&sandbox, "strain").len(), probes, "no other cells exist");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    let verdict = sandbox.avow(&["verdict"]).with_code(0);
    for part in
        ["Supported", "search best[width=20]: lr = 2", "search edge[width=30]: load = 30, between 30 and 31"]
    {
        assert!(verdict.stdout.contains(part), "no `{part}` in: {}", verdict.stdout);
    }
    let full = sandbox.avow(&["check", "--full"]).with_code(0).stdout;
    assert!(full.contains("per:"), "{full}");
}

#[test]
fn where_one_of_several_searches_finds_nothing_the_others_do() {
    let sandbox = each();
    // Width 20 breaks under any load.
    sandbox.replace("strain.sh", "l > w", "l > w || w == 20");
    let executed = sandbox.executes(&["run"]);
    let finals: Vec<&String> = executed.iter().filter(|member| member.starts_with("final")).collect();
    assert_eq!(finals, ["final[best=1,edge=10,width=10]", "final[best=3,edge=30,width=30]"]);
    let verdict = sandbox.avow(&["verdict"]).with_code(0);
    let void = "search edge[width=20]: void, both ends of the interval are on one side of the goal";
    assert!(verdict.stdout.contains(void), "{}", verdict.stdout);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[test]
fn per_names_other_axes_than_those_that_are_searched() {
    let sandbox = each();
    for (wrong, said) in [
        ("per: lr", "the search chooses on `lr`"),
        ("per: edge", "there is no axis `edge`"),
        ("per: wdith", "wdith"),
    ] {
        sandbox.replace("spec.yaml", "over: lr, per: width", &format!("over: lr, {wrong}"));
        let check = sandbox.avow(&["check"]);
        assert_eq!(check.code, 3, "{wrong}: {}", check.stderr);
        assert!(format!("{}{}", check.stdout, check.stderr).contains(said), "{wrong}: {}", check.stderr);
        sandbox.replace("spec.yaml", &format!("over: lr, {wrong}"), "over: lr, per: width");
    }
}

// --- Asking a program ---------------------------------------------------------------------------------------------

/// A program of the author's that walks towards the smallest loss: it knows nothing but what it is given.
const ASK: &str = "\
avow: 1
experiment: asked
axes: {seed: [1, 2]}
search:
  tuned:
    kind: ask
    over: {lr: {from: 0.001, to: 1.0, scale: log}, width: [16, 32, 64]}
    program: propose.next
    measure: train.loss
    goal: smallest
    at_most: 12
stages:
  propose:
    run: [python3, propose.py, '${inputs.probes}', '${outputs.next}']
    inputs: {probes: tuned.probes}
    outputs: {next: next.json}
    environment: none
  train:
    run: [sh, train.sh, '${axes.lr}', '${axes.width}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
  final:
    run: [sh, train.sh, '${axes.tuned.lr}', '${axes.tuned.width}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  good: {says: It is good there., select: final.loss, rule: {kind: threshold, statistic: every, below: 1.2}}
";

/// The loss is smallest at lr = 0.05 and width = 32.
const LOSS: &str = "awk -v lr=\"$1\" -v width=\"$2\" -v seed=\"$3\" 'BEGIN { d = (log(lr) - log(0.05)) / 3; w = (width - 32) / 32; \
                    printf \"{\\\"loss\\\": %.6f}\\n\", 1 + d * d + w * w + 0.01 * seed }' > \"$4\"\n";

const PROPOSE: &str = "\
import json, sys
given = json.load(open(sys.argv[1]))
space, probes = given['space'], given['probes']
assert space['lr'] == {'from': 0.001, 'to': 1.0, 'scale': 'log'} and space['width'] == {'values': [16, 32, 64]}
assert given['goal'] == 'smallest' and given['at_most'] == 12
if not probes:
    answer = {'probe': [{'lr': lr, 'width': 16} for lr in (0.01, 0.1)]}
elif len(probes) >= 8:
    answer = {'stop': True}
else:
    best = min(probes, key=lambda probe: probe['value'])['at']
    known = [probe['at'] for probe in probes]
    options = [{'lr': best['lr'], 'width': width} for width in space['width']['values']]
    options += [{'lr': round(best['lr'] * by, 6), 'width': best['width']} for by in (0.5, 2, 0.8, 1.25, 0.9)]
    answer = {'probe': next(option for option in options if option not in known)}
json.dump(answer, open(sys.argv[2], 'w'))
";

fn asking() -> Sandbox {
    project(ASK, &[("train.sh", LOSS), ("propose.py", PROPOSE)])
}

/// The rounds in which the program was asked, in the latest run.
fn rounds(sandbox: &Sandbox) -> usize {
    decisions(sandbox).iter().filter(|decision| matches!(decision.answer, Step::Consult(_))).count()
}

#[test]
fn a_program_is_asked_until_it_stops_and_every_answer_is_a_member() {
    let sandbox = asking();
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stdout.contains("search tuned: lr = 0.05, width = 32 (8 probes)"), "{}", run.stdout);
    assert!(run.stderr.contains("search tuned: asks its program, round 1"), "{}", run.stderr);
    assert_eq!(rows(&sandbox, "train").len(), 2 * 8, "every seed at every probe, and no other point");
    assert_eq!(
        rounds(&sandbox),
        8,
        "two probes came of the first round, one of each other, and then it stopped"
    );
    assert_eq!(words(&sandbox), ["good supported"]);
    let executed = sandbox.history().latest().started();
    assert!(
        executed.iter().all(|member| !member.starts_with("final")),
        "the same action as a probe: {executed:?}"
    );
    assert_eq!(executed.iter().filter(|member| member.starts_with("propose[")).count(), 8);
    // What it was given and what it answered is in the record like everything else.
    let lineage = sandbox.avow(&["lineage", "propose.next[tuned_round=3]"]).with_code(0);
    assert!(lineage.stdout.contains("propose"), "{}", lineage.stdout);
    let decided = decisions(&sandbox);
    let Step::Found(found) = &decided.last().unwrap().answer else { panic!("{decided:?}") };
    assert_eq!((found.probes, found.point.len()), (8, 2));
    // Nothing is asked again, and the auditor comes to the same without running anything.
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    assert_eq!(decisions(&sandbox), decided);
    sandbox.remove("propose.py").remove("train.sh");
    let report = sandbox.avow(&["verdict", "--json"]);
    assert!(report.code == 0 || report.stderr.contains("propose.py"), "{report:?}");
}

#[test]
fn an_interrupted_asking_goes_on_with_the_answers_there_are() {
    let undisturbed = asking();
    undisturbed.avow(&["run"]).expect_code(0);
    for after in [1, 2, 6, 13] {
        let sandbox = asking();
        sandbox.kill_when(|sandbox| sandbox.history().attempts().count() >= after, &["run"]);
        sandbox.avow(&["run"]).expect_code(0);
        assert_eq!(most_often(&sandbox), 1, "nothing that succeeded ran again");
        assert_eq!(sandbox.history().artifacts(), undisturbed.history().artifacts(), "killed after {after}");
    }
}

#[test]
fn the_budget_ends_a_search_that_its_program_does_not() {
    let sandbox = asking();
    sandbox.replace("spec.yaml", "at_most: 12", "at_most: 5");
    sandbox.replace("propose.py", "given['at_most'] == 12", "given['at_most'] == 5");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stdout.contains("(5 probes)"), "{}", run.stdout);
    assert_eq!(rows(&sandbox, "train").len(), 2 * 5);
    // Another budget is another registration.
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.replace("spec.yaml", "at_most: 5", "at_most: 6");
    let report = sandbox.avow(&["verdict", "--json"]).json();
    assert!(report["deviations"].as_array().is_some_and(|all| !all.is_empty()), "{report:#}");
}

#[test]
fn what_is_no_answer_ends_the_search_with_the_reason() {
    for (answer, reason) in [
        ("{'probe': {'lr': 2.0, 'width': 16}}", "2.0 cannot be the value of `lr`"),
        ("{'probe': {'lr': 0.1, 'width': 17}}", "17 cannot be the value of `width`"),
        ("{'probe': {'lr': 0.1}}", "a point has no value for `width`"),
        ("{'probe': {'lr': 0.1, 'width': 16, 'depth': 2}}", "`depth` is no axis of the search"),
        ("{'try': []}", "it has a field `try`"),
        ("[]", "it is no JSON object"),
        ("{'stop': True}", "the probes it may ask for were not enough"),
        ("{'probe': []}", "for nothing that was not probed before"),
    ] {
        let sandbox = asking();
        let program = format!("import json, sys\njson.dump({answer}, open(sys.argv[2], 'w'))\n");
        sandbox.file("propose.py", program);
        let run = sandbox.avow(&["run"]).with_code(0);
        assert!(run.stdout.contains("void") && run.stdout.contains(reason), "{reason}: {}", run.stdout);
        assert_eq!(words(&sandbox), ["good void"]);
    }
    let sandbox = asking();
    sandbox.file("propose.py", "raise SystemExit('no idea')\n");
    let run = sandbox.avow(&["run"]).with_code(1);
    assert!(run.stderr.contains("propose[tuned_round=0]"), "{}", run.stderr);
    // A mended program is asked anew, and the search goes on.
    sandbox.file("propose.py", PROPOSE);
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(words(&sandbox), ["good supported"]);
}

#[test]
fn a_bundle_of_a_search_tells_what_it_found_and_status_counts_what_it_asked_for() {
    let sandbox = bisection();
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("search ")).map(str::to_owned).collect()
    };
    let told = lines(&sandbox.avow(&["verdict"]).with_code(0).stdout);
    assert!(!told.is_empty() && told.iter().all(|line| line.contains("probes")), "{told:?}");
    let status = sandbox.avow(&["status", "--json"]).with_code(0).json();
    let counts = status["counts"].as_object().unwrap();
    let all: u64 = counts.values().filter_map(Value::as_u64).sum();
    assert_eq!(status["members"].as_u64(), Some(all), "{status}");
    assert!(sandbox.avow(&["status"]).with_code(0).stdout.contains(&format!("members    {all} (")));
    sandbox.avow(&["bundle", "-o", "found.zip"]).expect_code(0);
    let verified = sandbox.avow(&["verify", "found.zip"]).with_code(0).stdout;
    assert_eq!(lines(&verified), told, "{verified}");
}
