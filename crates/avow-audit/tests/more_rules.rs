//! The rules and methods that may be named, from files to verdict.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::Word;
use avow_audit::judge::Verdict;
use avow_model::axis::{Axis, Points};
use avow_model::claim::{
    Bound, Claim, Coefficient, Compare, Condition, Correction, Count, Judge, Method, Part, Reported, Rule,
    Scale, Selected, Selection, Side, Statistic, Test, Weighting,
};
use avow_model::plan::MeasurementFormat;
use avow_model::value::Value;
use common::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-3)
}

fn only(lab: &Lab) -> Verdict {
    let report = lab.audit();
    assert_eq!(report.findings, []);
    let [verdict] = report.verdicts.as_slice() else { panic!("{:?}", report.verdicts) };
    verdict.clone()
}

fn of(claims: Vec<Claim>) -> BTreeMap<String, Verdict> {
    standard(claims).audit().verdicts.into_iter().map(|v| (v.claim.clone(), v)).collect()
}

fn contrast(rule: Rule) -> Part {
    Part { compare: wd(), ..part(rule) }
}

fn paired(rule: Rule) -> Verdict {
    only(&standard(vec![claim("helps", one(contrast(rule)))]))
}

fn unpaired(method: Method) -> avow_model::claim::Inference {
    avow_model::claim::Inference { unpaired: true, ..by(method) }
}

#[test]
fn named_methods_of_a_difference() {
    let wilcoxon = paired(difference(above(0.0), Method::Wilcoxon));
    assert_eq!((wilcoxon.q, wilcoxon.method), (Some(0.015625), Some("wilcoxon")));
    assert!(near(wilcoxon.estimate.unwrap(), 0.007));
    let student = paired(difference(above(0.0), Method::Student));
    assert_eq!(student.method, Some("student"));
    let ranks = paired(difference(above(0.0), Method::MannWhitney));
    assert!(near(ranks.estimate.unwrap(), 0.0075));
    let labels = paired(Rule::Difference { bound: above(0.0), inference: unpaired(Method::Permutation) });
    assert_eq!((labels.method, labels.word), (Some("permutation"), Some(Word::Supported)));
    // Eight units are too few to resample.
    let bca = paired(difference(above(0.0), Method::Bca));
    assert_eq!((bca.word, bca.reason.unwrap().word()), (Some(Word::Void), "below-minimum-n"));
}

#[test]
fn resampling_is_the_same_every_time() {
    let value = |_: usize, seed: usize| 0.5 + 0.01 * ((seed * 7) % 12) as f64;
    let lab = |method| levels(&[1.0], 12, vec![claim("mean", one(part(mean(above(0.5), method))))], value);
    for method in [Method::Percentile, Method::Bca, Method::BootstrapT] {
        let (first, second) = (only(&lab(method)), only(&lab(method)));
        assert_eq!(first, second);
        assert_eq!(first.word, Some(Word::Supported), "{method:?}");
        assert_eq!(first.monte_carlo.unwrap().draws, 9_999);
    }
}

#[test]
fn a_ratio_of_arms() {
    let verdict = paired(Rule::Ratio { bound: above(1.0), inference: by(Method::T) });
    assert_eq!(verdict.word, Some(Word::Supported));
    let ratio = verdict.estimate.unwrap();
    assert!(ratio > 1.007 && ratio < 1.009, "{ratio}");
    // The bound of a ratio is mirrored as its inverse: falling by as much is Reversed.
    let falls = paired(Rule::Ratio { bound: below(1.0), inference: by(Method::T) });
    assert_eq!(falls.word, Some(Word::Reversed));
    let fieller = paired(Rule::Ratio { bound: above(1.0), inference: by(Method::Fieller) });
    assert!((fieller.estimate.unwrap() - ratio).abs() < 1e-4);
    let by_estimate = Part {
        judge: Judge::Estimate,
        ..contrast(Rule::Ratio { bound: above(1.0), inference: by(Method::None) })
    };
    let verdict = only(&standard(vec![claim("helps", one(by_estimate))]));
    assert!(near(verdict.estimate.unwrap(), ratio));
}

#[test]
fn shares_of_two_arms() {
    let success = Condition::Above(0.9045);
    let rule = |method| Rule::Proportion { success, bound: above(0.0), inference: by(method) };
    // Seven of eight against four of eight; of the pairs four differ, all in favour of the first arm but one.
    let fisher = paired(rule(Method::Newcombe));
    assert_eq!((fisher.method, fisher.word), (Some("newcombe"), Some(Word::Inconclusive)));
    assert!(near(fisher.estimate.unwrap(), 0.5));
    let mcnemar = paired(rule(Method::Mcnemar));
    assert_eq!(mcnemar.method, Some("mcnemar"));
    assert!(near(mcnemar.p.unwrap().support, 0.0625));
    // Eight pairs are too few for another bound, and the reason says how many there must be.
    let other = paired(Rule::Proportion { success, bound: above(-0.5), inference: by(Method::Mcnemar) });
    assert_eq!(other.reason.unwrap().word(), "below-minimum-n");
}

#[test]
fn a_correlation_of_two_selections() {
    let with = Selection {
        stage: "train".to_owned(),
        of: Selected::Measurement("accuracy".to_owned()),
        filter: BTreeMap::from([("wd".to_owned(), vec![Value::Int(0)])]),
    };
    let rule = Rule::Correlation {
        with,
        statistic: Coefficient::Spearman,
        bound: above(0.0),
        inference: by(Method::Permutation),
    };
    let mut one_arm = part(rule);
    one_arm.select.filter.insert("wd".to_owned(), vec![Value::Float(0.1)]);
    let verdict = only(&standard(vec![claim("together", one(one_arm))]));
    assert_eq!(verdict.method, Some("correlation-permutation"));
    // scipy.stats.spearmanr of the standard data.
    assert!(near(verdict.estimate.unwrap(), 0.467_074_242_146_171_05), "{:?}", verdict.estimate);
    assert_eq!(verdict.units.used, 8);
}

#[test]
fn raters_agree_beyond_chance() {
    let value = |rater: usize, item: usize| {
        let category = item % 3;
        (if rater == 1 && item.is_multiple_of(7) { (category + 1) % 3 } else { category }) as f64
    };
    let rule = Rule::Agreement { weights: Weighting::None, bound: above(0.6), inference: by(Method::Kappa) };
    let raters =
        Compare { dimension: "level".to_owned(), first: Value::Float(1.0), second: Value::Float(2.0) };
    let part = |rule| Part { compare: Some(raters.clone()), ..part(rule) };
    let lab = levels(&[1.0, 2.0], 60, vec![claim("agree", one(part(rule.clone())))], value);
    let verdict = only(&lab);
    assert_eq!((verdict.method, verdict.word), (Some("kappa"), Some(Word::Supported)));
    // Below thirty items only the bound 0 can be tested.
    let few = levels(&[1.0, 2.0], 12, vec![claim("agree", one(part(rule)))], value);
    assert_eq!(only(&few).reason.unwrap().word(), "below-minimum-n");
}

#[test]
fn a_difference_of_differences() {
    let width = Axis { name: "width".to_owned(), ..axis("width", &[4.0, 64.0]) };
    let stages = vec![stage("train", &["seed", "wd", "width"], MeasurementFormat::FlatJson)];
    let crossed =
        Compare { dimension: "width".to_owned(), first: Value::Float(64.0), second: Value::Float(4.0) };
    let both = Part { crossed: Some(crossed), ..contrast(difference(above(0.0), Method::T)) };
    let plan = plan(vec![axis("wd", &[0.1, 0.0]), seeds(8), width], stages, vec![claim("more", one(both))]);
    let mut lab = Lab::new(plan);
    lab.run("train", |cell| {
        let number = |name: &str| {
            let path = ["axes".to_owned(), name.to_owned()];
            cell.lookup(&path).and_then(|v| v.as_f64()).unwrap()
        };
        let noise = 0.001 * ((number("seed") * 31.0) % 7.0) * number("width");
        Some(accuracy(
            0.5 + number("wd") * number("width") * 0.01 + if number("wd") > 0.0 { noise } else { 0.0 },
        ))
    });
    let verdict = only(&lab);
    // 0.1 · (64 − 4) · 0.01 and what the noise adds.
    assert_eq!(verdict.word, Some(Word::Supported), "{verdict:?}");
    assert_eq!((verdict.units.planned, verdict.units.used), (8, 8));
    assert_eq!(verdict.evidence.len(), 32);
    assert!(verdict.estimate.unwrap() > 0.06);
}

#[test]
fn slopes_without_units() {
    let at = [8.0_f64, 16.0, 32.0, 64.0, 128.0, 256.0];
    let y = move |level: usize, _: usize| 3.0 * at[level].powf(-0.5) + 0.4 + 0.002 * (level % 3) as f64;
    let slope = |method, bound| Rule::Slope {
        along: "level".to_owned(),
        scale: Scale::Linear,
        bound,
        inference: by(method),
    };
    let claim_of = |method, bound| {
        let part = Part { replicate: None, ..part(slope(method, bound)) };
        levels(&at, 1, vec![claim("scales", one(part))], y)
    };
    let power = only(&claim_of(Method::PowerOffset, Bound::Between { low: 0.4, high: 0.6 }));
    assert_eq!((power.method, power.word), (Some("power-offset"), Some(Word::Supported)));
    for method in [Method::Hc3, Method::TheilSen] {
        let verdict = only(&claim_of(method, below(0.0)));
        assert!(verdict.estimate.unwrap() < 0.0, "{method:?}");
    }
}

#[test]
fn units_of_a_cluster_are_one() {
    // Two units a cluster: the standard differences have four means.
    let named: Vec<(f64, f64)> = (0..8).map(|subject| (f64::from(subject), f64::from(subject / 2))).collect();
    let family = clustered_axis(&named);
    let stages = vec![stage("train", &["subject", "wd"], MeasurementFormat::FlatJson)];
    let clustered = Part {
        replicate: Some("subject".to_owned()),
        clusters: Some("subject.family".to_owned()),
        ..contrast(difference(above(0.0), Method::T))
    };
    let plan = plan(vec![axis("wd", &[0.1, 0.0]), family], stages, vec![claim("helps", one(clustered))]);
    let mut lab = Lab::new(plan);
    let x = [0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910];
    let y = [0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904];
    lab.run("train", |cell| {
        let at = |name: &str| cell.index(name).unwrap() as usize;
        Some(accuracy(if at("wd") == 0 { x[at("subject")] } else { y[at("subject")] }))
    });
    let verdict = only(&lab);
    assert!(near(verdict.q.unwrap(), 0.003571312989), "{verdict:?}");
    assert_eq!(verdict.units.used, 8);
}

fn clustered_axis(subjects: &[(f64, f64)]) -> Axis {
    use avow_model::axis::NamedPoint;
    let point = |(subject, family): &(f64, f64)| NamedPoint {
        name: format!("s{subject}"),
        attributes: BTreeMap::from([("family".to_owned(), Value::Float(*family))]),
    };
    Axis { name: "subject".to_owned(), points: Points::Named(subjects.iter().map(point).collect()) }
}

fn at_least(count: u64) -> Test {
    let rule =
        Rule::Threshold { statistic: Statistic::Mean, bound: above(0.9045), inference: by(Method::None) };
    let mut part = Part { replicate: None, judge: Judge::Estimate, ..part(rule) };
    part.select.filter.insert("wd".to_owned(), vec![Value::Int(0)]);
    Test::Count(Box::new(Count { over: "seed".to_owned(), at_least: count, of: one(part) }))
}

#[test]
fn counts_are_arithmetic() {
    // Of the second arm three seeds lie above .9045.
    let found = of(vec![claim("three", at_least(3)), claim("four", at_least(4))]);
    assert_eq!((found["three"].word, found["three"].estimate), (Some(Word::Supported), Some(3.0)));
    assert_eq!((found["four"].word, found["four"].q), (Some(Word::Refuted), None));
    assert_eq!(found["four"].refuted_by.len(), 5);
    // A missing seed leaves open only what it could change.
    let mut lab = standard(vec![claim("seven", at_least(7))]);
    let lost = lab.member("train", 1);
    lab.made_attempt(lost, avow_model::attempt::Outcome::Cancelled, None);
    let found: BTreeMap<String, Verdict> =
        lab.audit().verdicts.into_iter().map(|v| (v.claim.clone(), v)).collect();
    assert_eq!(found["seven"].word, Some(Word::Refuted));
}

#[test]
fn any_of_several() {
    let helps = |bound| one(contrast(difference(above(bound), Method::T)));
    let found = of(vec![
        claim("one", Test::Any(vec![helps(0.0), helps(0.5)])),
        claim("none", Test::Any(vec![helps(0.4), helps(0.5)])),
    ]);
    assert_eq!(found["one"].word, Some(Word::Supported));
    assert_eq!(found["none"].word, Some(Word::Refuted));
    assert_eq!(found["one"].rule, "any");
}

#[test]
fn a_sequence_stops_where_a_claim_is_not_supported() {
    let helps = |bound| one(contrast(difference(above(bound), Method::T)));
    let then = |name: &str, before: &str, bound| Claim {
        after: Some(before.to_owned()),
        ..claim(name, helps(bound))
    };
    let found =
        of(vec![claim("a", helps(0.0)), then("b", "a", 0.001), then("c", "b", 0.05), then("d", "c", 0.0)]);
    assert_eq!((found["a"].word, found["b"].word), (Some(Word::Supported), Some(Word::Supported)));
    // A fixed sequence spends no correction: the second is tested at the whole level.
    assert!(near(found["b"].q_corrected.unwrap(), found["b"].q.unwrap()));
    assert_eq!(found["c"].word, Some(Word::Refuted));
    assert_eq!(found["d"].reason.as_ref().unwrap().word(), "sequence-stopped");
    assert!(found["d"].estimate.is_some() && found["d"].marginal_interval.is_some());
}

#[test]
fn false_discovery_rates_and_step_ups() {
    let helps = |bound| one(contrast(difference(above(bound), Method::T)));
    for (correct, factor) in [(Correction::Bh, 1.0), (Correction::Hochberg, 1.0), (Correction::By, 1.5)] {
        let all = [0.001, 0.0012].map(|b| Claim { correct, ..claim(&format!("c{b}"), helps(b)) });
        let found = of(all.to_vec());
        let (first, second) = (&found["c0.001"], &found["c0.0012"]);
        // The larger of two is multiplied by 1 in a step-up.
        assert!(near(second.q_corrected.unwrap(), factor * second.q.unwrap()), "{correct:?}");
        assert!(first.q_corrected <= second.q_corrected);
    }
}

fn reported(file: &str) -> Verdict {
    let read = Reported {
        low: Some("low".to_owned()),
        high: Some("high".to_owned()),
        level: None,
        p: Some("p".to_owned()),
        n: None,
    };
    let rule = Rule::Reported { read, bound: above(0.0), skewed: false };
    let part = Part { replicate: None, ..part(rule) };
    let stages = vec![stage("train", &["seed"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(vec![seeds(1)], stages, vec![claim("theirs", one(part))]));
    lab.run("train", |_| Some(file.to_owned()));
    only(&lab)
}

#[test]
fn reported_results_are_checked_for_plausibility() {
    let good = reported(r#"{"accuracy": 0.3, "low": 0.1, "high": 0.5, "p": 0.004}"#);
    assert_eq!((good.word, good.rule), (Some(Word::Supported), "reported"));
    assert_eq!(good.parts[0].method, Some("computed by the experiment's code"));
    for (text, reason) in [
        (r#"{"accuracy": 0.3, "low": 0.5, "high": 0.1, "p": 0.004}"#, "implausible"),
        (r#"{"accuracy": 0.7, "low": 0.1, "high": 0.5, "p": 0.004}"#, "implausible"),
        (r#"{"accuracy": 0.3, "low": 0.1, "high": 0.5, "p": 0}"#, "implausible"),
        (r#"{"accuracy": 0.3, "low": 0.1, "high": 0.5, "p": 0.4}"#, "implausible"),
        (r#"{"accuracy": 0.3, "low": 0.1, "high": 0.5, "p": 1.4}"#, "implausible"),
        (r#"{"accuracy": 0.3, "low": 0.1, "p": 0.004}"#, "missing-units"),
    ] {
        let verdict = reported(text);
        assert_eq!(verdict.word, Some(Word::Void), "{text}");
        assert_eq!(verdict.reason.unwrap().word(), reason, "{text}");
    }
}

#[test]
fn one_sided_claims_keep_their_law_under_other_methods() {
    let mut inference = by(Method::Wilcoxon);
    inference.side = Side::One;
    let verdict = paired(Rule::Difference { bound: above(0.0), inference });
    assert_eq!(verdict.q, Some(0.0078125));
}
