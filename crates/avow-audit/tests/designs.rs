//! Sequential designs, gates, one permutation for a family, pilots, scales and bounded values, from files to verdict.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::Word;
use avow_audit::judge::Verdict;
use avow_model::claim::RankStatistic;
use avow_model::claim::{Claim, Correction, Inference, Method, Part, Rule, Statistic, Tier, TrendOf};
use avow_model::expression::Expression;
use avow_model::plan::MeasurementFormat;
use common::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * b.abs().max(1e-3)
}

fn found(lab: &Lab) -> BTreeMap<String, Verdict> {
    let report = lab.audit();
    assert_eq!(report.findings, []);
    report.verdicts.into_iter().map(|v| (v.claim.clone(), v)).collect()
}

fn helps(bound: f64, method: Method) -> Part {
    Part { compare: wd(), ..part(difference(above(bound), method)) }
}

/// A plan of `count` seeds whose accuracies are `values`, of which only the first `made` have run.
fn column(values: &[f64], made: usize, claims: Vec<Claim>) -> Lab {
    let stages = vec![stage("train", &["seed"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(vec![seeds(values.len())], stages, claims));
    lab.run("train", |cell| {
        let seed = cell.index("seed").unwrap() as usize;
        (seed < made).then(|| accuracy(values[seed]))
    });
    lab
}

#[test]
fn a_sequential_claim_is_decided_at_the_first_exclusion() {
    let sequential = |name: &str, bound| Claim {
        sequential: true,
        correct: Correction::Bonferroni,
        ..claim(name, one(part(mean(above(bound), Method::Sequential))))
    };
    let differences: Vec<f64> = X.iter().zip(Y).map(|(x, y)| x - y).collect();
    let whole = &found(&column(&differences, 8, vec![sequential("a", 0.0)]))["a"];
    // e = 10.65677427 against 0 after eight units: not yet 20.
    let q = whole.q.unwrap();
    assert!(q > 0.05 && q <= 1.0 / 10.65677427 + 1e-9, "{q}");
    assert_eq!((whole.word, whole.method), (Some(Word::Inconclusive), Some("sequential")));
    let interval = whole.interval.unwrap();
    let reach = 0.008365481746 + 1e-10;
    let estimate = whole.estimate.unwrap();
    assert!(interval.low < 0.0 && interval.low >= estimate - reach && interval.high <= estimate + reach);
    // Units that have not been made yet are no loss: ten of forty decide.
    let clear: Vec<f64> = (0..40).map(|i| 1.0 + 0.01 * f64::from(i % 7)).collect();
    let early = &found(&column(&clear, 10, vec![sequential("a", 0.5)]))["a"];
    assert_eq!((early.word, early.units.used), (Some(Word::Supported), 10));
    let against = &found(&column(&clear, 10, vec![sequential("a", 2.0)]))["a"];
    assert_eq!(against.word, Some(Word::Refuted));
    // One that is missing in between is.
    let mut lab = column(&clear, 0, vec![sequential("a", 0.5)]);
    lab.run("train", |cell| {
        let seed = cell.index("seed").unwrap() as usize;
        (seed < 10 && seed != 4).then(|| accuracy(clear[seed]))
    });
    assert_eq!(found(&lab)["a"].reason.as_ref().unwrap().word(), "missing-units");
    let nothing = &found(&column(&clear, 0, vec![sequential("a", 0.5)]))["a"];
    assert_eq!(nothing.word, Some(Word::Void));
}

#[test]
fn one_permutation_corrects_a_family_that_shares_its_units() {
    // The columns of the reference: d; d/2 + …; ….
    let d: Vec<f64> = X.iter().zip(Y).map(|(x, y)| x - y).collect();
    let second = [1.0, -2.0, 1.0, 0.0, 2.0, -1.0, 1.0, -1.0];
    let third = [1.0, -2.0, 3.0, 0.0, -1.0, 2.0, -2.0, 1.0];
    let value = |level: usize, seed: usize| match level {
        0 => d[seed],
        1 => 0.5 * d[seed] + 0.001 * second[seed],
        _ => 0.001 * third[seed],
    };
    let per = |correct| {
        let part = Part { per: vec!["level".to_owned()], ..part(mean(above(0.0), Method::T)) };
        Claim { correct, ..claim("a", one(part)) }
    };
    let judged = |correct, made: usize| {
        let mut lab = levels(&[0.0, 1.0, 2.0], 8, vec![per(correct)], value);
        if made < 8 {
            let stages = lab.plan.stages.clone();
            lab = Lab::new(plan(lab.plan.axes.clone(), stages, lab.plan.claims.clone()));
            lab.run("train", |cell| {
                let (level, seed) =
                    (cell.index("level").unwrap() as usize, cell.index("seed").unwrap() as usize);
                (level != 2 || seed < made).then(|| accuracy(value(level, seed)))
            });
        }
        lab.audit().verdicts
    };
    let largest = judged(Correction::Max, 8);
    let q: Vec<f64> = largest.iter().map(|v| v.q_corrected.unwrap()).collect();
    assert!(near(q[0], 0.0390625) && near(q[1], 0.125) && near(q[2], 0.84375), "{q:?}");
    assert_eq!(largest[0].word, Some(Word::Supported));
    assert_eq!(largest[0].family.members, 3);
    // A member that has lost a unit has no column, and losing it never makes the others easier.
    let short = judged(Correction::Max, 7);
    let holm = judged(Correction::Holm, 7);
    for (a, b) in short.iter().zip(&holm) {
        assert_eq!((a.q_corrected, a.word), (b.q_corrected, b.word));
    }
    assert_eq!(short[2].word, Some(Word::Void));
}

#[test]
fn a_gate_opens_a_family_once_every_claim_of_another_is_supported() {
    let secondary = |name: &str| Claim {
        tier: Tier::Secondary,
        family: "secondary".to_owned(),
        gate: Some("primary".to_owned()),
        ..claim(name, one(helps(0.0, Method::SignFlip)))
    };
    let primary = |bound| claim("a", one(helps(bound, Method::SignFlip)));
    let open = found(&standard(vec![primary(0.0), secondary("b")]));
    assert_eq!(open["b"].word, Some(Word::Supported));
    let closed = found(&standard(vec![primary(0.005), secondary("b")]));
    assert_eq!(closed["a"].word, Some(Word::Inconclusive));
    assert_eq!(closed["b"].word, Some(Word::Void));
    assert_eq!(closed["b"].reason.as_ref().unwrap().word(), "requires-unmet");
    assert!(closed["b"].estimate.is_some(), "what was measured is still shown");
}

#[test]
fn strict_directions_cost_what_they_say() {
    let all: Vec<Claim> = [0.0, 0.001]
        .map(|bound| Claim {
            correct: Correction::HolmStrict,
            ..claim(&format!("c{bound}"), one(helps(bound, Method::T)))
        })
        .to_vec();
    let found = found(&standard(all));
    let (first, second) = (&found["c0"], &found["c0.001"]);
    // α/(2m − r) for each side: factors 2 and 3/2 on the two-sided q.
    assert!(near(first.q_corrected.unwrap(), 2.0 * first.q.unwrap()));
    assert!(near(second.q_corrected.unwrap(), (1.5 * second.q.unwrap()).max(2.0 * first.q.unwrap())));
}

#[test]
fn a_mean_of_logarithms_is_a_geometric_mean() {
    let values = [1.0, 2.0, 4.0, 8.0, 2.0, 4.0, 1.0, 16.0];
    let log = |bound| {
        let inference = Inference { log: true, ..by(Method::T) };
        Rule::Threshold { statistic: Statistic::Mean, bound, inference }
    };
    let of = |rule| found(&column(&values, 8, vec![claim("a", one(part(rule)))]))["a"].clone();
    let verdict = of(log(above(1.0)));
    let logs: Vec<f64> = values.iter().map(|v: &f64| v.ln()).collect();
    let same = avow_stats::Units::of(&logs).unwrap().t().unwrap();
    let interval = same.interval("0.05".parse().unwrap());
    assert!(near(verdict.estimate.unwrap(), same.estimate().exp()));
    assert!(near(verdict.interval.unwrap().low, interval.low.exp()));
    assert!(near(verdict.p.unwrap().support, same.p_at_most(0.0)));
    assert_eq!(of(log(below(40.0))).word, Some(Word::Supported));
    let with_zero = [1.0, 0.0, 4.0, 8.0, 2.0, 4.0, 1.0, 16.0];
    let verdict = found(&column(&with_zero, 8, vec![claim("a", one(part(log(above(1.0)))))]))["a"].clone();
    assert_eq!(verdict.reason.unwrap().word(), "domain");
}

#[test]
fn bounded_values_need_no_distribution() {
    let values: Vec<f64> = (0..50).map(|i| if i % 10 == 0 { 0.2 } else { 0.9 }).collect();
    let bounded = |bound, range| {
        let inference = Inference { range: Some(range), ..by(Method::Bounded) };
        part(Rule::Threshold { statistic: Statistic::Mean, bound, inference })
    };
    let of = |part| found(&column(&values, 50, vec![claim("a", one(part))]))["a"].clone();
    let verdict = of(bounded(above(0.6), (0.0, 1.0)));
    assert_eq!((verdict.word, verdict.method), (Some(Word::Supported), Some("bounded")));
    let interval = verdict.interval.unwrap();
    assert!(interval.low > 0.6 && interval.high <= 1.0 && interval.low < 0.83);
    // Test and interval are one inversion: a bound just inside the interval is not excluded, one outside is.
    let (inside, outside) = (interval.low + 1e-6, interval.low - 1e-6);
    assert_eq!(of(bounded(above(inside), (0.0, 1.0))).word, Some(Word::Inconclusive));
    assert_eq!(of(bounded(above(outside), (0.0, 1.0))).word, Some(Word::Supported));
    // A value outside the declared range says that the range was not true.
    assert_eq!(of(bounded(above(0.6), (0.5, 1.0))).reason.unwrap().word(), "domain");
}

#[test]
fn pages_trend_tests_the_bound_zero() {
    let rows = [[1.0, 2.0, 3.0, 4.0], [1.2, 1.9, 3.5, 3.1], [0.7, 2.2, 2.1, 4.0]];
    let rule = Rule::Trend {
        along: "level".to_owned(),
        statistic: RankStatistic::Spearman,
        of: TrendOf::Unit,
        bound: above(0.0),
        inference: by(Method::Page),
    };
    let lab =
        levels(&[1.0, 2.0, 3.0, 4.0], 3, vec![claim("a", one(part(rule)))], |level, seed| rows[seed][level]);
    let verdict = &found(&lab)["a"];
    assert!(near(verdict.p.unwrap().support, 0.002893518519), "{:?}", verdict.p);
    assert_eq!((verdict.word, verdict.method), (Some(Word::Supported), Some("page")));
}

#[test]
fn medians_are_resampled_from_twenty_units_on() {
    let rule = |n: usize| {
        let rule =
            Rule::Threshold { statistic: Statistic::Median, bound: above(0.0), inference: by(Method::Bca) };
        let values: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7) % 11) as f64 * 0.1).collect();
        found(&column(&values, n, vec![claim("a", one(part(rule)))]))["a"].clone()
    };
    let enough = rule(21);
    assert_eq!((enough.word, enough.method), (Some(Word::Supported), Some("bca")));
    assert!(enough.interval.unwrap().low >= 1.0 && enough.interval.unwrap().high <= 2.0);
    let few = rule(12);
    assert_eq!(few.reason.unwrap().word(), "below-minimum-n");
}

#[test]
fn pilots_never_enter_a_claim() {
    let claims = vec![claim("a", one(part(mean(above(0.5), Method::T))))];
    let stages = vec![stage("train", &["seed"], MeasurementFormat::FlatJson)];
    let mut plan = plan(vec![seeds(6)], stages, claims);
    plan.pilot = vec![Expression::parse("axes.seed == 0 || axes.seed == 1").unwrap()];
    let mut lab = Lab::new(plan);
    lab.run("train", |cell| {
        let seed = cell.index("seed").unwrap() as usize;
        Some(accuracy(if seed < 2 { -100.0 } else { 0.9 + 0.001 * seed as f64 }))
    });
    let verdict = &found(&lab)["a"];
    assert_eq!((verdict.units.planned, verdict.units.used), (4, 4));
    assert!(verdict.estimate.unwrap() > 0.9);
    let pilots: Vec<_> = (0..2).map(|cell| lab.result(lab.member("train", cell))).collect();
    assert!(verdict.evidence.iter().all(|origin| !pilots.contains(&origin.artifact)));
}
