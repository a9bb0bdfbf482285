//! Units that are not simply independent: clusters that count by their units, two kinds of sampled units at once, the
//! worst of several groups; and forecasts beside what came true.

#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::Sandbox;
use serde_json::Value;

/// A project of one stage without axes, whose program is `script` and writes tidy lines to the file it is given.
fn project(script: &str, claims: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("make.py", script);
    sandbox.file(
        "spec.yaml",
        format!(
            "avow: 1\nexperiment: units\nstages:\n  make:\n    run: [python3, make.py, '${{outputs.rows}}']\n    measurements: {{rows: rows.jsonl}}\nclaims:\n{claims}"
        ),
    );
    sandbox
}

fn verdicts(sandbox: &Sandbox) -> Value {
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["verdict", "--json"]).with_code(0).json()["verdicts"].clone()
}

/// The verdicts on some claims.
fn of<const N: usize>(verdicts: &Value, names: [&str; N]) -> [Value; N] {
    let one =
        |name: &str| verdicts.as_array().unwrap().iter().find(|verdict| verdict["claim"] == name).unwrap();
    names.map(|name| one(name).clone())
}

fn near(value: &Value, wanted: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-9 * wanted.abs().max(1.0))
}

const CLUSTERED: &str = "\
import json, sys
with open(sys.argv[1], 'w') as file:
    item = 0
    # Seven bases; the one that deviates has most of the items.
    for base, (size, mean) in enumerate([(1, .5), (2, .625), (1, .75), (3, .5), (2, .875), (1, .625), (10, .125)]):
        for place in range(size):
            item += 1
            value = mean + (place - (size - 1) / 2) / 64
            print(json.dumps({'name': 'score', 'value': value, 'item': item, 'base': base}), file=file)
";

#[test]
fn clusters_count_equally_or_by_their_units() {
    let claims = "  equal: {select: score, family: a, replicate: item, clusters: base, rule: {kind: threshold, above: 0}}
  units: {select: score, family: b, replicate: item, clusters: {by: base, weight: units}, rule: {kind: threshold, above: 0}}
  estimate: {select: score, family: c, replicate: item, clusters: {by: base, weight: units}, judge: estimate, rule: {kind: threshold, above: 0.3}}
";
    let sandbox = project(CLUSTERED, claims);
    let found = verdicts(&sandbox);
    let [equal, units, estimate] = of(&found, ["equal", "units", "estimate"]);
    assert!(near(&equal["estimate"], (0.5 + 0.625 + 0.75 + 0.5 + 0.875 + 0.625 + 0.125) / 7.0), "{equal}");
    let all = (0.5 + 1.25 + 0.75 + 1.5 + 1.75 + 0.625 + 1.25) / 20.0;
    assert!(near(&units["estimate"], all) && units["method"] == "sign-flip", "{units}");
    // Seven clusters, all above 0: the smallest p there is, whatever they weigh.
    assert!(near(&units["q"], 2.0 / 128.0) && units["word"] == "supported", "{units}");
    assert!(near(&estimate["estimate"], all) && estimate["word"] == "supported", "{estimate}");
    assert_eq!((&units["units"]["used"], &units["units"]["clusters"]), (&20.into(), &7.into()), "{units}");
    let told = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(told.contains("n 20/20 in 7 clusters"), "{told}");
    let told = sandbox.avow(&["verdict", "--explain", "equal"]).with_code(0).stdout;
    assert!(told.contains("over 20 units in 7 clusters"), "{told}");
    let full = sandbox.avow(&["check", "--full"]).with_code(0).stdout;
    assert!(full.contains("weight: units"), "{full}");
    sandbox.file("again.yaml", full);
    let digest = |spec: &str| sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json()["plan"].clone();
    assert_eq!(digest("spec.yaml"), digest("again.yaml"));
    let wrong = "  t: {select: score, replicate: item, clusters: {by: base, weight: units}, rule: {kind: threshold, above: 0, method: t}}\n";
    let refused = project(CLUSTERED, wrong).avow(&["check"]).with_code(3).stderr;
    assert!(refused.contains("by sign-flip"), "{refused}");
}

const CROSSED: &str = "\
import json, random, sys
draw = random.Random(4)
with open(sys.argv[1], 'w') as file:
    # Every seed helps about as much; the data sets differ, and two of them are harmed.
    gains = [.5, .4, .45, .6, -.5, -.4, .55, .5]
    for seed in range(12):
        for data, gain in enumerate(gains):
            base = draw.gauss(0, .02)
            for arm, effect in [('old', 0), ('new', gain)]:
                value = base + effect + draw.gauss(0, .01)
                print(json.dumps({'name': 'score', 'value': value, 'seed': seed, 'data': data, 'arm': arm}), file=file)
";

#[test]
fn of_two_kinds_of_units_the_harder_decides() {
    let claim = |name: &str, units: &str| {
        let rest = "compare: {arm: [new, old]}, rule: {kind: difference, above: 0}";
        format!(
            "  {name}: {{select: score, family: {name}, {units}, where: {{seed: [0,1,2,3,4,5,6,7,8,9,10,11], data: [0,1,2,3,4,5,6,7]}}, {rest}}}\n"
        )
    };
    let claims = claim("seeds", "replicate: seed, reduce: {data: mean}")
        + &claim("data", "replicate: data, reduce: {seed: mean}")
        + &claim("both", "replicate: [seed, data]")
        + &claim("other", "replicate: [data, seed]");
    let sandbox = project(CROSSED, &claims);
    let found = verdicts(&sandbox);
    let [seeds, data, both, other] = of(&found, ["seeds", "data", "both", "other"]);
    assert_eq!(
        (&seeds["word"], &data["word"], &both["word"]),
        (&"supported".into(), &"inconclusive".into(), &"inconclusive".into())
    );
    assert_eq!(both["q"], data["q"]);
    assert_eq!((&both["interval"], &both["units"]), (&data["interval"], &data["units"]));
    assert_eq!((&other["q"], &other["interval"]), (&both["q"], &both["interval"]));
    assert!(sandbox.avow(&["verdict"]).with_code(0).stdout.contains("decided by its units `data`"));
    let full = sandbox.avow(&["check", "--full"]).with_code(0).stdout;
    sandbox.file("again.yaml", full);
    let digest = |spec: &str| sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json()["plan"].clone();
    assert_eq!(digest("spec.yaml"), digest("again.yaml"));
    let refused = claim("every", "replicate: [seed, data]")
        .replace("difference, above", "difference, method: welch, above");
    let refused = project(CROSSED, &refused).avow(&["check"]).with_code(3).stderr;
    assert!(refused.contains("two kinds of units at once"), "{refused}");
}

const GROUPED: &str = "\
import json, random, sys
draw = random.Random(9)
with open(sys.argv[1], 'w') as file:
    for item in range(40):
        for domain, mean in [('news', .8), ('law', .75), ('chat', .6)]:
            value = mean + draw.gauss(0, .05)
            print(json.dumps({'name': 'score', 'value': value, 'item': item, 'domain': domain}), file=file)
            print(json.dumps({'name': 'own', 'value': value, 'item': f'{domain}{item}', 'domain': domain}), file=file)
";

#[test]
fn the_worst_group_is_picked_anew_in_each_draw() {
    let worst = "along: domain, take: lowest";
    let claims = format!("  above: {{select: score, family: a, replicate: item, rule: {{kind: worst, {worst}, above: 0.55}}}}
  below: {{select: score, family: b, replicate: item, rule: {{kind: worst, {worst}, below: 0.65}}}}
  nested: {{select: own, family: c, replicate: item, rule: {{kind: worst, {worst}, above: 0.55}}}}
  highest: {{select: score, family: d, replicate: item, rule: {{kind: worst, along: domain, take: highest, below: 0.7}}}}
  estimate: {{select: score, family: e, replicate: item, judge: estimate, rule: {{kind: worst, {worst}, above: 0.7}}}}
  few: {{select: score, family: f, replicate: item, where: {{item: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}, rule: {{kind: worst, {worst}, above: 0.5}}}}
");
    let sandbox = project(GROUPED, &claims);
    let found = verdicts(&sandbox);
    let all = of(&found, ["above", "below", "nested", "highest", "estimate", "few"]);
    let words = all.each_ref().map(|verdict| verdict["word"].as_str().unwrap_or_default());
    assert_eq!(words, ["supported", "supported", "supported", "refuted", "refuted", "void"], "{found}");
    let [above, _, nested, _, _, few] = &all;
    assert_eq!((&above["method"], &above["monte_carlo"]["draws"]), (&"worst-group".into(), &9999.into()));
    assert_eq!(above["estimate"], nested["estimate"]);
    assert_eq!(few["reason"]["code"], "below-minimum-n");
    // The same bytes again: draws are a function of the plan.
    assert_eq!(verdicts(&sandbox), found);
}

const FORECASTS: &str = "\
import json, random, sys
draw = random.Random(3)
with open(sys.argv[1], 'w') as file:
    for item in range(400):
        stated = draw.random()
        for name, value in [('stated', stated), ('sure', stated ** 3), ('hit', int(draw.random() < stated))]:
            print(json.dumps({'name': name, 'value': value, 'item': item}), file=file)
";

#[test]
fn forecasts_are_held_against_labels_drawn_from_themselves() {
    let rule = "rule: {kind: calibration, with: hit, bins: 15";
    let claims = format!("  honest: {{select: stated, family: a, replicate: item, {rule}, above: 0}}}}
  sure: {{select: sure, family: b, replicate: item, {rule}, above: 0}}}}
  ece: {{select: stated, family: c, replicate: item, judge: estimate, {rule}, estimator: expected, below: 0.15}}}}
");
    let sandbox = project(FORECASTS, &claims);
    let found = verdicts(&sandbox);
    let all = of(&found, ["honest", "sure", "ece"]);
    let words = all.each_ref().map(|verdict| verdict["word"].as_str().unwrap_or_default());
    assert_eq!(words, ["inconclusive", "supported", "supported"], "{found}");
    assert!(near(&all[1]["q"], 2.0 / 10_000.0), "{}", all[1]);
    assert_eq!(all[1]["qualifiers"][0]["code"], "forecasts");
    assert!(
        all[0]["interval"].is_null() && all[1]["interval"].is_null(),
        "a test without an interval: {found}"
    );
    let told = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(!told.contains("inf]") && !told.contains("interval contains"), "{told}");
    let refused = format!("  low: {{select: stated, replicate: item, {rule}, below: 0.1}}}}\n");
    let refused = project(FORECASTS, &refused).avow(&["check"]).with_code(3).stderr;
    assert!(refused.contains("a test of calibration asks whether"), "{refused}");
}

const STRATA: &str = "\
import json, random, sys
draw = random.Random(5)
with open(sys.argv[1], 'w') as file:
    # Two sites whose levels are far apart, and units that differ little within each.
    for item in range(24):
        site = item % 2
        print(json.dumps({'name': 'score', 'value': 10 * site + draw.gauss(0, .5), 'item': item, 'site': site}), file=file)
";

#[test]
fn units_are_drawn_within_strata() {
    let rule = "rule: {kind: threshold, method: percentile, above: 4.5}";
    let claims = format!(
        "  all: {{select: score, family: a, replicate: item, reduce: {{site: mean}}, {rule}}}
  within: {{select: score, family: b, replicate: item, strata: site, {rule}}}
"
    );
    let sandbox = project(STRATA, &claims);
    let found = verdicts(&sandbox);
    let [all, within] = of(&found, ["all", "within"]);
    assert_eq!(all["estimate"], within["estimate"]);
    let width = |verdict: &Value| {
        verdict["interval"]["high"].as_f64().unwrap() - verdict["interval"]["low"].as_f64().unwrap()
    };
    // ±1.96·5/√24 over all of them, ±1.96·0.5/√24 within the sites.
    assert!(width(&all) > 3.0 && width(&within) < 0.6, "{found}");
    assert_eq!((&all["word"], &within["word"]), (&"inconclusive".into(), &"supported".into()));
    let full = sandbox.avow(&["check", "--full"]).with_code(0).stdout;
    sandbox.file("again.yaml", full);
    let digest = |spec: &str| sandbox.avow(&["verdict", spec, "--json"]).with_code(0).json()["plan"].clone();
    assert_eq!(digest("spec.yaml"), digest("again.yaml"));
    let wrong = "  t: {select: score, replicate: item, strata: site, rule: {kind: threshold, above: 0}}\n";
    let refused = project(STRATA, wrong).avow(&["check"]).with_code(3).stderr;
    assert!(refused.contains("by `method: percentile`"), "{refused}");
}
