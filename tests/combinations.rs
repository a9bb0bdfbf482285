//! Cells and seeds of the language, carried out: tables, pairs, pilots, fresh seeds, and power from a pilot.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use avow_testkit::Sandbox;
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: cells
seen: Two seeds of an earlier version.
axes:
  width: [4, 8]
  rate: [0.5, 0.25]
  term: {from: terms.csv}
  net: [1, 2, 3]
  pair: {pairs: net}
  seed: {seeds: 5, fresh: true}
zip: [width, rate]
pilot: {where: {seed: [0, 1]}}
stages:
  score:
    run: sh score.sh ${axes.width} ${axes.rate} ${axes.seed.eval} ${outputs.score}
    measurements: [{file: score.csv, values: [score], keys: [epoch]}]
  word:
    run: printf '{\"probe\":{\"length\":%s}}' ${axes.term.length} > ${outputs.word}
    measurements: [{file: word.json, values: {length: /probe/length}}]
  net:
    run: printf %s ${axes.net} > ${outputs.net}
    outputs: {net: net.txt}
  both:
    run: printf '{\"sum\":%s}' $(cat ${inputs.a} ${inputs.b}) > ${outputs.both}
    inputs:
      a: {from: net.net, at: {net: '${axes.pair.first}'}}
      b: {from: net.net, at: {net: '${axes.pair.second}'}}
    measurements: [both.json]
claims:
  high:
    says: It scores above zero.
    select: score.score
    where: {epoch: 2}
    reduce: {width: mean, rate: mean}
    rule: {kind: threshold, above: 0, smallest: 0.5}
  long:
    says: Every term is longer than two letters.
    select: word.length
    replicate: term
    rule: {kind: threshold, statistic: every, above: 2}
";

const SCORE: &str = "printf 'epoch,score\\n1,0\\n2,1.%s\\n' $(($3 % 97)) > $4\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("score.sh", SCORE);
    sandbox.file("terms.csv", "term,length\nalpha,5\nbeta,4\n");
    sandbox
}

fn table(sandbox: &Sandbox) -> Vec<Value> {
    let table = sandbox.avow(&["table", "--json"]).with_code(0).stdout;
    table.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
}

fn of<'t>(rows: &'t [Value], stage: &str) -> Vec<&'t Value> {
    rows.iter().filter(|row| row["stage"] == stage).collect()
}

fn seeds(rows: &[Value]) -> BTreeSet<String> {
    of(rows, "score").iter().map(|row| row["axes"]["seed"].to_string()).collect()
}

#[test]
fn cells_tables_pairs_and_pilots_are_carried_out() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    let rows = table(&sandbox);
    // Two widths that move with their rates, five seeds, two epochs: twenty numbers, not forty.
    assert_eq!(of(&rows, "score").len(), 20);
    let together: BTreeSet<String> = of(&rows, "score")
        .iter()
        .map(|row| format!("{} {}", row["axes"]["width"], row["axes"]["rate"]))
        .collect();
    assert_eq!(together, BTreeSet::from(["4 0.5".to_owned(), "8 0.25".to_owned()]));
    let pairs: BTreeSet<String> = of(&rows, "both").iter().map(|row| row["value"].to_string()).collect();
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert!(pairs.contains("12.0") && pairs.contains("13.0") && pairs.contains("23.0"), "{pairs:?}");
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let high = report["verdicts"].as_array().unwrap().iter().find(|v| v["claim"] == "high").unwrap().clone();
    assert_eq!((&high["units"]["planned"], &high["word"]), (&Value::from(3), &Value::from("supported")));
    // One more value adds only its own pairs.
    sandbox.replace("spec.yaml", "net: [1, 2, 3]", "net: [1, 2, 3, 4]");
    let told = sandbox.avow(&["run"]).with_code(0);
    let told = format!("{}{}", told.stdout, told.stderr);
    assert!(told.contains("4 executed"), "{told}");
    // The pilot tells how units vary, and nothing else may use it.
    let power = sandbox.avow(&["power", "--claim", "high", "--json"]).with_code(0).json();
    assert_eq!((&power[0]["pilot_units"], &power[0]["effect"]), (&Value::from(2), &Value::from(0.5)));
    assert_eq!(power[0]["at"][0]["n"], Value::from(3));
}

#[test]
fn fresh_seeds_come_from_the_first_registration_and_an_amendment_keeps_them() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    let before = seeds(&table(&sandbox));
    assert_eq!(before.len(), 5);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run"]).expect_code(0);
    let registered = seeds(&table(&sandbox));
    assert!(before.is_disjoint(&registered), "cells of a registered plan are new: {before:?} {registered:?}");
    sandbox.replace("spec.yaml", "It scores above zero.", "It scores well above zero.");
    sandbox.avow(&["amend", "--reason", "a clearer text", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run"]).expect_code(0);
    assert_eq!(seeds(&table(&sandbox)), registered, "an amendment re-keys nothing");
}

#[test]
fn power_is_that_of_the_reference_and_of_the_rule_itself() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = "\
avow: 1
experiment: power
axes: {arm: [a, b], seed: {seeds: 8}}
stages:
  s:
    run: [sh, -c, 'true', '${axes.arm}', '${axes.seed}']
    code: []
    measurements: [m.json]
claims:
  t: {says: x, select: s.m, where: {arm: a}, rule: {kind: threshold, above: 0}}
  signs: {says: x, family: f, select: s.m, compare: {arm: [a, b]}, rule: {kind: difference, above: 0, method: sign-flip}}
  theorem: {says: x}
";
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    let ask = |claim: &str| {
        sandbox.avow(&["power", "--claim", claim, "--effect", "1", "--sd", "1", "--json"]).with_code(0).json()
    };
    let formula = ask("t");
    // The reference value of statsmodels counts both directions; against the effect there is next to nothing.
    let alone = formula[0]["at"][0]["alone"].as_f64().unwrap();
    assert!((alone - 0.6808339582).abs() < 1e-4, "{alone}");
    assert_eq!(formula[0]["units_alone"], Value::from(10));
    let simulated = ask("signs");
    let (power, error) = (&simulated[0]["at"][0]["alone"], simulated[0]["at"][0]["error"].as_f64().unwrap());
    // 66.1 % in ten thousand repetitions elsewhere.
    assert!((power.as_f64().unwrap() - 0.661).abs() < 5.0 * error, "{power}");
    sandbox.avow(&["power", "--claim", "theorem"]).expect_code(2);
    sandbox.avow(&["power", "--claim", "t"]).expect_code(2);
    sandbox.avow(&["power", "--claim", "t", "--effect", "1", "--sd", "-1"]).expect_code(2);
    let told = sandbox.avow(&["power", "--claim", "t", "--effect", "1", "--sd", "1"]).with_code(0).stdout;
    assert!(told.contains("8 units") && told.contains("68.1 % alone"), "{told}");
    // An effect that hardly any number of units shows: by simulation the search ends, and says where.
    let tiny = sandbox.avow(&["power", "--claim", "signs", "--effect", "0.001", "--sd", "1"]).with_code(0);
    assert!(tiny.stdout.contains("more than 1024 units alone; no more were tried"), "{}", tiny.stdout);
    assert!(tiny.stderr.contains("signs: carrying the rule out on 1024 units"), "{}", tiny.stderr);
    let quiet = ["power", "--claim", "signs", "--effect", "0.001", "--sd", "1", "--json", "-q"];
    let quiet = sandbox.avow(&quiet).with_code(0);
    assert_eq!(
        (&quiet.json()[0]["units_alone"], &quiet.json()[0]["largest_tried"]),
        (&Value::Null, &Value::from(1024))
    );
    let formula =
        sandbox.avow(&["power", "--claim", "t", "--effect", "1e-5", "--sd", "1"]).with_code(0).stdout;
    assert!(formula.contains("more than 100000 units alone"), "{formula}");
}

#[test]
fn verdicts_have_a_form_for_papers_and_an_explanation_in_steps() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    let markdown = sandbox.avow(&["verdict", "--format", "markdown"]).with_code(0).stdout;
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 4, "{markdown}");
    assert!(rows.iter().all(|row| row.matches('|').count() == 7), "{markdown}");
    assert!(
        rows[2].starts_with("| high | Supported |") && rows[3].starts_with("| long | Supported |"),
        "{markdown}"
    );
    let latex = sandbox.avow(&["verdict", "--format", "latex"]).with_code(0).stdout;
    assert!(latex.starts_with("\\begin{tabular}") && latex.contains("high & Supported & "), "{latex}");
    assert!(latex.contains(" \\%)"), "per cent signs are no comments: {latex}");
    let json = sandbox.avow(&["verdict", "--format", "json"]).with_code(0).json();
    assert_eq!(json["verdicts"].as_array().unwrap().len(), 2);
    let told = sandbox.avow(&["verdict", "--explain", "high"]).with_code(0).stdout;
    for step in [
        "asked        whether the mean lies above 0",
        "found        1.",
        "tested       by t: data this far on the claim's side have p ",
        "q is twice the smaller of the two",
        "corrected    nothing, it is the only member of its family",
        "the data are on the claim's side: supported",
        "deviations   none that concern this claim",
        "seeds        `seed` derived before any registration",
        "Seen before: Two seeds of an earlier version.",
    ] {
        assert!(told.contains(step), "{step}\n{told}");
    }
    sandbox.avow(&["verdict", "--explain", "high", "--format", "latex"]).expect_code(2);
}

#[test]
fn a_plan_answers_the_questions_of_registration_forms() {
    let sandbox = project();
    let osf = sandbox.avow(&["export", "osf"]).with_code(0);
    assert!(osf.stderr.contains("q4"), "what the form requires and nothing answers is named: {}", osf.stderr);
    let osf = osf.json();
    assert_eq!(osf["q3"], "Experiment");
    assert_eq!(osf["q8"], "Registration prior to creation of data");
    assert!(osf["q2"].as_str().unwrap().contains("high (primary): It scores above zero."));
    assert!(osf["q9"].as_str().unwrap().contains("Two seeds of an earlier version."));
    assert!(osf["q11"].as_str().unwrap().contains("5 units: the values of `seed`"), "{}", osf["q11"]);
    assert!(osf.get("q4").is_none() && osf.get("q12").is_none(), "what nobody said is left out");
    sandbox.avow(&["run"]).expect_code(0);
    let after = sandbox.avow(&["export", "osf"]).with_code(0).json();
    assert_eq!(after["q8"], "Registration following analysis of the data");
    let answers = "registration: {blinding: Nobody knows the arms., sample_rationale: Five is what there is., existing_data: not-analysed}\nparams: {";
    sandbox.replace("spec.yaml", "seen: Two", &format!("{}seen: Two", answers.replace("params: {", "")));
    let said = sandbox.avow(&["export", "osf"]).with_code(0).json();
    assert_eq!(said["q4"], "Nobody knows the arms.");
    assert_eq!(said["q8"], "Registration prior to analysis of the data");
    let predicted = sandbox.avow(&["export", "aspredicted"]).with_code(0).json();
    assert!(predicted["sample"].as_str().unwrap().contains("Five is what there is."));
    assert_eq!(predicted["name"], "cells");
    let registered = project();
    registered.avow(&["register", "-q", "--accept-warnings"]).expect_code(0);
    registered.avow(&["run", "-q"]).expect_code(0);
    let then = registered.avow(&["export", "osf"]).with_code(0).json();
    assert_eq!(then["q8"], "Registration prior to creation of data", "the form asks about the registration");
    let checklist = sandbox.avow(&["export", "neurips"]).with_code(0).json();
    assert_eq!(checklist["1"]["claims"][0], serde_json::json!({"claim": "high", "verdict": "supported"}));
    assert_eq!(checklist["7"]["claims"][0]["planned"], 3);
    assert!(checklist["5"]["commands"]["score"].as_str().unwrap().contains("score.sh"));
}
