//! Every rule from files to verdict, with the values of the statistics' definition.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::Word;
use avow_audit::judge::{DecidedBy, Qualifier, Verdict};
use avow_model::claim::{
    Bound, Condition, Judge, Method, RankStatistic, Rule, Scale, Selected, Side, Statistic, Tolerance,
    TrendOf,
};
use avow_model::expression::Expression;
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

fn paired(rule: Rule) -> Verdict {
    let lab = standard(vec![claim("helps", one(avow_model::claim::Part { compare: wd(), ..part(rule) }))]);
    only(&lab)
}

#[test]
fn a_paired_difference_by_t() {
    let verdict = paired(difference(above(0.0), Method::T));
    assert_eq!((verdict.word, verdict.method), (Some(Word::Supported), Some("t")));
    assert!(near(verdict.estimate.unwrap(), 0.007125));
    assert!(near(verdict.q.unwrap(), 0.008504013693));
    let interval = verdict.interval.unwrap();
    assert!(near(interval.low, 0.002471573358) && near(interval.high, 0.01177842664));
    assert!(near(interval.level, 0.95));
    assert_eq!((verdict.units.planned, verdict.units.used), (8, 8));
    assert_eq!(verdict.evidence.len(), 16);
}

#[test]
fn a_paired_difference_by_signs() {
    let verdict = paired(difference(above(0.0), Method::SignFlip));
    assert_eq!(verdict.q, Some(0.015625));
    let interval = verdict.interval.unwrap();
    assert!(near(interval.low, 0.002) && near(interval.high, 0.012));
    assert_eq!(verdict.smallest_q, Some(0.0078125));
}

#[test]
fn an_unpaired_difference_by_welch() {
    let verdict = paired(difference(above(0.002), Method::Welch));
    assert!(near(verdict.p.unwrap().support, 0.04983560587));
    assert_eq!(verdict.word, Some(Word::Inconclusive));
    assert_eq!(verdict.reason.unwrap().word(), "crosses-bound");
    assert_eq!(verdict.units.arms.len(), 2);
}

#[test]
fn the_other_direction_is_reversed() {
    let verdict = paired(difference(below(0.0), Method::T));
    assert_eq!(verdict.word, Some(Word::Reversed));
    // With a gap, crossing the near bound is no refutation.
    let gap = paired(difference(Bound::Below { bound: 0.0, refute: 0.01 }, Method::T));
    assert_eq!(gap.word, Some(Word::Inconclusive));
}

#[test]
fn the_smallest_effect_qualifies() {
    let mut inference = by(Method::T);
    inference.smallest = Some(0.01);
    let verdict = paired(Rule::Difference { bound: above(0.0), inference });
    assert_eq!(verdict.word, Some(Word::Supported));
    assert_eq!(verdict.qualifiers, [Qualifier::SmallestNotShown { smallest: 0.01 }]);
}

#[test]
fn an_equivalence_shows_both_intervals() {
    let verdict = paired(Rule::Equivalence { about: 0.0, margin: 0.012, inference: by(Method::T) });
    assert_eq!(verdict.word, Some(Word::Supported));
    assert!(near(verdict.p.unwrap().support, 0.02119128795));
    let inner = verdict.interval.unwrap();
    assert!(near(inner.low, 0.003396592601) && near(inner.high, 0.0108534074) && near(inner.level, 0.9));
    assert!(near(verdict.refuting_interval.unwrap().low, 0.002471573358));
    assert_eq!(verdict.qualifiers, [Qualifier::EquivalenceAtFewUnits { units: 8 }]);
}

#[test]
fn a_mean_and_a_median_against_a_bound() {
    let threshold =
        |statistic, method| Rule::Threshold { statistic, bound: above(0.005), inference: by(method) };
    let verdict = paired(threshold(Statistic::Mean, Method::T));
    assert!(near(verdict.p.unwrap().support, 0.1580100371));
    assert_eq!(verdict.word, Some(Word::Inconclusive));
    let verdict = paired(threshold(Statistic::Median, Method::OrderStatistics));
    assert!(near(verdict.q.unwrap(), 0.7265625));
    let interval = verdict.interval.unwrap();
    assert!(near(interval.low, -0.001) && near(interval.high, 0.013));
}

#[test]
fn every_names_the_unit_that_is_outside() {
    let rule =
        Rule::Threshold { statistic: Statistic::Every, bound: above(-0.0005), inference: by(Method::None) };
    let verdict = paired(rule);
    assert_eq!((verdict.word, verdict.decided_by), (Some(Word::Refuted), DecidedBy::Units));
    assert_eq!(verdict.family.members, 0);
    let [culprit] = verdict.refuted_by.as_slice() else { panic!("{:?}", verdict.refuted_by) };
    assert_eq!(culprit.at, [("seed".to_owned(), Value::Int(5))]);
    assert!(near(culprit.found.unwrap(), -0.001));
    assert_eq!(verdict.means.as_deref(), Some("it does not"));
    let [Qualifier::TheseUnits { units: 8, share }] = verdict.qualifiers.as_slice() else { panic!() };
    assert!(near(*share, 0.6305833524));
}

#[test]
fn a_proportion_is_exact() {
    let rule = Rule::Proportion {
        success: Condition::AtLeast(0.9),
        bound: above(0.5),
        inference: by(Method::ClopperPearson),
    };
    let lab = levels(
        &[0.0],
        10,
        vec![claim("often", one(part(rule)))],
        |_, seed| if seed < 8 { 0.95 } else { 0.1 },
    );
    let verdict = only(&lab);
    assert!(near(verdict.estimate.unwrap(), 0.8) && near(verdict.q.unwrap(), 0.109375));
    let interval = verdict.interval.unwrap();
    assert!(near(interval.low, 0.4439045377) && near(interval.high, 0.9747892737));
    assert_eq!(verdict.word, Some(Word::Inconclusive));
}

const ROWS: [[f64; 4]; 3] = [[1.0, 2.0, 3.0, 4.0], [1.2, 1.9, 3.5, 3.1], [0.7, 2.2, 2.1, 4.0]];

fn trend(of: TrendOf, method: Method, judge: Judge) -> Verdict {
    let along = "level".to_owned();
    let statistic = RankStatistic::Spearman;
    let rule = Rule::Trend { along, statistic, of, bound: above(0.0), inference: by(method) };
    let part = avow_model::claim::Part { judge, ..part(rule) };
    only(&levels(&[1.0, 2.0, 3.0, 4.0], 3, vec![claim("rises", one(part))], |level, seed| ROWS[seed][level]))
}

#[test]
fn trends_of_units_and_pooled() {
    let verdict = trend(TrendOf::Unit, Method::SignFlip, Judge::Interval);
    assert!(near(verdict.estimate.unwrap(), (1.0 + 0.8 + 0.8) / 3.0));
    assert_eq!((verdict.q, verdict.word), (Some(0.25), Some(Word::Inconclusive)));
    assert_eq!(verdict.reason.unwrap().word(), "n-below-reach");
    // Three units are below the minimum of the jackknife, but the estimate alone can be judged.
    let few = trend(TrendOf::Pooled, Method::Jackknife, Judge::Interval);
    assert_eq!((few.word, few.reason.unwrap().word()), (Some(Word::Void), "below-minimum-n"));
    let alone = trend(TrendOf::Pooled, Method::Jackknife, Judge::Estimate);
    assert!(near(alone.estimate.unwrap(), 0.9300694811));
    assert_eq!((alone.word, alone.decided_by, alone.q), (Some(Word::Supported), DecidedBy::Estimate, None));
}

#[test]
fn slopes_over_points_and_units() {
    let rule = |scale, method| Rule::Slope {
        along: "level".to_owned(),
        scale,
        bound: above(0.0),
        inference: by(method),
    };
    let points = [2.1, 1.9, 3.7, 4.4, 4.1, 6.3];
    let claims = vec![claim(
        "grows",
        one(avow_model::claim::Part { replicate: None, ..part(rule(Scale::Linear, Method::LeastSquares)) }),
    )];
    let lab = levels(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1, claims, |level, _| points[level]);
    let verdict = only(&lab);
    assert!(near(verdict.estimate.unwrap(), 0.8085714286) && near(verdict.q.unwrap(), 0.006941710043));
    assert_eq!(verdict.word, Some(Word::Supported));
    let curve = [1.32, 0.99, 0.80, 0.655, 0.58, 0.534];
    let below = Rule::Slope {
        along: "level".to_owned(),
        scale: Scale::LogLog,
        bound: below(0.0),
        inference: by(Method::LeastSquares),
    };
    let claims = vec![claim("falls", one(avow_model::claim::Part { replicate: None, ..part(below) }))];
    let lab = levels(&[8.0, 16.0, 32.0, 64.0, 128.0, 256.0], 1, claims, |level, _| curve[level]);
    let verdict = only(&lab);
    assert!(near(verdict.estimate.unwrap(), -0.2608789537));
    assert!(matches!(verdict.qualifiers.as_slice(), [Qualifier::Curvature { .. }]));
    // Over units: t of the slopes; the standard rows.
    let claims = vec![claim("units", one(part(rule(Scale::Linear, Method::T))))];
    let lab = levels(&[1.0, 2.0, 3.0, 4.0], 3, claims, |level, seed| ROWS[seed][level]);
    let slopes: f64 = (1.0 + 0.73 + 0.98) / 3.0;
    assert!(near(only(&lab).estimate.unwrap(), slopes));
}

fn curve_rule(within: f64, method: Method, deterministic: bool) -> Rule {
    let mut inference = by(method);
    inference.deterministic = deterministic;
    Rule::Curve {
        along: "level".to_owned(),
        formula: Expression::parse("axes.level / (params.n + axes.level)").unwrap(),
        within: Tolerance { absolute: within, relative: 0.0 },
        inference,
    }
}

fn expected(level: f64) -> f64 {
    level / (100.0 + level)
}

#[test]
fn a_curve_is_all_its_points() {
    let noise = [-0.004, -0.002, -0.001, 0.0, 0.001, 0.001, 0.002, 0.003];
    let widths = [4.0, 16.0, 64.0];
    let claims = |within| vec![claim("follows", one(part(curve_rule(within, Method::T, false))))];
    let lab = levels(&widths, 8, claims(0.01), |level, seed| expected(widths[level]) + noise[seed]);
    let verdict = only(&lab);
    assert_eq!(verdict.word, Some(Word::Supported));
    assert_eq!(verdict.parts.len(), 3);
    assert!(near(verdict.parts[2].expected.unwrap(), 64.0 / 164.0));
    assert!(near(verdict.parts[0].interval.unwrap().level, 1.0 - 2.0 * 0.05 / 3.0));
    // One point off: refuted, and the point is named.
    let off = |level: usize| if level == 1 { 0.05 } else { 0.0 };
    let lab =
        levels(&widths, 8, claims(0.01), |level, seed| expected(widths[level]) + noise[seed] + off(level));
    let verdict = only(&lab);
    assert_eq!(verdict.word, Some(Word::Refuted));
    let [culprit] = verdict.refuted_by.as_slice() else { panic!("{:?}", verdict.refuted_by) };
    assert_eq!(culprit.at, [("level".to_owned(), Value::Int(16))]);
    assert!(near(culprit.found.unwrap(), 16.0 / 116.0 + 0.05));
    assert!(near(culprit.expected.unwrap(), 16.0 / 116.0) && culprit.margin == Some(0.01));
}

#[test]
fn a_deterministic_curve_needs_no_units() {
    let single = |value: fn(usize) -> f64| {
        let claims = vec![claim("formula", one(part(curve_rule(0.5, Method::None, true))))];
        only(&levels(&[1.0, 2.0], 1, claims, move |level, _| value(level)))
    };
    let verdict = single(|level| expected(level as f64 + 1.0) + if level == 0 { 23.3 } else { 0.0 });
    assert_eq!((verdict.word, verdict.decided_by), (Some(Word::Refuted), DecidedBy::Position));
    assert_eq!((verdict.q, verdict.family.members), (None, 0));
    assert_eq!(verdict.refuted_by[0].at, [("level".to_owned(), Value::Int(1))]);
    assert_eq!(single(|level| expected(level as f64 + 1.0)).word, Some(Word::Supported));
    // Registered as deterministic, and it is not.
    let claims = vec![claim("formula", one(part(curve_rule(0.5, Method::None, true))))];
    let verdict = only(&levels(&[1.0, 2.0], 2, claims, |level, seed| level as f64 + seed as f64));
    assert_eq!((verdict.word, verdict.reason.unwrap().word()), (Some(Word::Void), "not-deterministic"));
}

#[test]
fn a_curve_without_units_is_void_under_inference() {
    let claims = vec![claim("formula", one(part(curve_rule(0.5, Method::T, false))))];
    let verdict = only(&levels(&[1.0, 2.0], 1, claims, |_, _| 0.0));
    assert_eq!((verdict.word, verdict.reason.unwrap().word()), (Some(Word::Void), "below-minimum-n"));
}

#[test]
fn exact_values_and_bytes() {
    let exact = |within| Rule::Exact { along: Some("level".to_owned()), within };
    let claims = vec![claim("same", one(part(exact(None))))];
    let verdict = only(&levels(&[1.0, 2.0], 3, claims.clone(), |_, seed| seed as f64));
    assert_eq!(verdict.word, Some(Word::Supported));
    assert_eq!(verdict.qualifiers, [Qualifier::Compared { values: 3, unequal: 0, largest: Some(0.0) }]);
    let drift = |level: usize, seed: usize| seed as f64 + if level == 1 && seed == 2 { 1e-7 } else { 0.0 };
    let verdict = only(&levels(&[1.0, 2.0], 3, claims, drift));
    assert_eq!(verdict.word, Some(Word::Refuted));
    let at: Vec<&str> = verdict.refuted_by[0].at.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(at, ["level", "seed"]);
    let near = vec![claim("same", one(part(exact(Some(Tolerance { absolute: 1e-6, relative: 0.0 })))))];
    assert_eq!(only(&levels(&[1.0, 2.0], 3, near, drift)).word, Some(Word::Supported));
    let mut bytes = part(exact(None));
    bytes.select.of = Selected::Output("result".to_owned());
    let verdict = only(&levels(&[1.0, 2.0], 3, vec![claim("bytes", one(bytes))], drift));
    assert_eq!((verdict.word, verdict.refuted_by.len()), (Some(Word::Refuted), 1));
}

#[test]
fn one_sided_claims_spend_their_level_on_one_side() {
    let mut inference = by(Method::T);
    inference.side = Side::One;
    let verdict = paired(Rule::Difference { bound: above(0.0), inference });
    assert!(near(verdict.q.unwrap(), 0.004252006846));
    assert!(near(verdict.interval.unwrap().level, 0.9));
}

#[test]
fn constant_units_decide_by_their_number() {
    let claims = |seeds| (seeds, vec![claim("equal", one(part(mean(above(0.5), Method::T))))]);
    let verdict = |(seeds, claims): (usize, Vec<_>)| only(&levels(&[1.0], seeds, claims, |_, _| 0.9));
    let few = verdict(claims(4));
    assert_eq!(
        (few.word, few.q, few.reason.unwrap().word()),
        (Some(Word::Inconclusive), Some(0.125), "no-variation")
    );
    let many = verdict(claims(8));
    assert_eq!((many.word, many.q), (Some(Word::Supported), Some(0.0078125)));
}

#[test]
fn json_keeps_every_code() {
    let verdict = paired(difference(above(0.0), Method::SignFlip));
    let text = serde_json::to_string(&verdict).unwrap();
    let read: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(read["word"], "supported");
    assert_eq!(read["standing"], "exploratory");
    assert_eq!(read["method"], "sign-flip");
    assert_eq!(read["decided_by"], "inference");
    assert_eq!(read["evidence"].as_array().unwrap().len(), 16);
}

#[test]
fn a_contrast_may_run_along_a_dimension() {
    let rule = Rule::Slope {
        along: "level".to_owned(),
        scale: Scale::Linear,
        bound: above(0.0),
        inference: by(Method::T),
    };
    let part = avow_model::claim::Part { compare: wd(), ..part(rule) };
    let axes = vec![axis("level", &[1.0, 2.0, 3.0]), seeds(3), axis("wd", &[0.0, 0.1])];
    let stages =
        vec![stage("train", &["level", "seed", "wd"], avow_model::plan::MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(axes, stages, vec![claim("gap", one(part))]));
    lab.run("train", |cell| {
        let index = |axis: &str| cell.index(axis).unwrap() as f64;
        // The gap between the arms grows by 2 a level, by a little more or less in each seed.
        Some(accuracy(index("wd") * index("level") * (2.0 + 0.1 * (index("seed") - 1.0)) + index("seed")))
    });
    let verdict = only(&lab);
    assert!(near(verdict.estimate.unwrap(), 2.0));
    assert_eq!(verdict.word, Some(Word::Supported));
}

#[test]
fn a_rule_that_does_not_fit_its_arms_is_void() {
    let proportion = Rule::Proportion {
        success: Condition::Above(0.9),
        bound: above(0.5),
        inference: by(Method::ClopperPearson),
    };
    assert_eq!(paired(proportion).reason.unwrap().word(), "unsuited");
    let lab =
        levels(&[1.0], 8, vec![claim("helps", one(part(difference(above(0.0), Method::T))))], |_, _| 0.5);
    assert_eq!(only(&lab).reason.unwrap().word(), "unsuited");
}

#[test]
fn swapped_arms_mirror_the_verdict() {
    let mut swapped = wd().unwrap();
    std::mem::swap(&mut swapped.first, &mut swapped.second);
    for method in [Method::T, Method::SignFlip, Method::Welch] {
        let there = paired(difference(above(0.001), method));
        let part = avow_model::claim::Part {
            compare: Some(swapped.clone()),
            ..part(difference(below(-0.001), method))
        };
        let back = only(&standard(vec![claim("helps", one(part))]));
        assert_eq!((there.q, there.word), (back.q, back.word));
        let (a, b) = (there.interval.unwrap(), back.interval.unwrap());
        assert_eq!((a.low, a.high), (-b.high, -b.low));
    }
}
