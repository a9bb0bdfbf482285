//! Random data against SciPy and statsmodels: what `reference.py` wrote for each, to 1e-9 relative.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::agreement::{TwoRaters, Weighting, fleiss};
use avow_stats::correlation::{Coefficient, Joined};
use avow_stats::difference::{mann_whitney, student, welch};
use avow_stats::null::calibrate;
use avow_stats::power::{Arms, Tails, t_power};
use avow_stats::proportion::{self, Arm};
use avow_stats::survival::{Curve, Time, log_rank};
use avow_stats::trend::Cells;
use avow_stats::{Claim, Correction, Fit, Level, Region, Units, family, slope};
use common::{alpha, close, draws, ends, level};
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("data/reference.json")).unwrap();
    let found = file["cases"][kind].as_array().unwrap_or_else(|| panic!("no cases of `{kind}`")).clone();
    assert!(!found.is_empty());
    found
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn whole(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

fn flags(value: &Value) -> Vec<bool> {
    value.as_array().unwrap().iter().map(|v| v.as_bool().unwrap()).collect()
}

#[track_caller]
fn check(kind: &str, case: &Value, have: &[f64]) {
    let want = numbers(&case["want"]);
    assert_eq!(have.len(), want.len(), "{kind}");
    for (have, want) in have.iter().zip(want) {
        // A p-value that SciPy sums term by term is good to about 1e-9 of 1, not of itself.
        assert!(
            (have - want).abs() <= 1e-9 * want.abs() + 1e-12,
            "{kind}: have {have:e}, want {want:e}\n{case}"
        );
    }
}

fn q(fit: &Fit, bound: f64) -> f64 {
    Claim::new(Region::above(bound)).test(fit.clone()).q
}

fn p_and_ends(fit: &Fit, bound: f64, error: Level) -> Vec<f64> {
    [vec![q(fit, bound)], ends(fit, error).to_vec()].concat()
}

#[test]
fn two_samples() {
    for case in cases("welch") {
        let fit = welch(&numbers(&case["a"]), &numbers(&case["b"])).unwrap();
        check("welch", &case, &p_and_ends(&fit, 0.0, level("0.01")));
    }
    for case in cases("student") {
        let fit = student(&numbers(&case["a"]), &numbers(&case["b"])).unwrap();
        check("student", &case, &p_and_ends(&fit, 0.0, level("0.01")));
    }
    for case in cases("mann-whitney") {
        let fit = mann_whitney(&numbers(&case["a"]), &numbers(&case["b"])).unwrap();
        check("mann-whitney", &case, &[fit.p_at_most(0.0), fit.p_at_least(0.0)]);
    }
}

#[test]
fn one_sample() {
    for case in cases("t") {
        let fit = Units::of(&numbers(&case["a"])).unwrap().t().unwrap();
        check("t", &case, &p_and_ends(&fit, 0.1, level("0.1")));
    }
    for case in cases("wilcoxon") {
        let fit = Units::of(&numbers(&case["a"])).unwrap().wilcoxon().unwrap();
        check("wilcoxon", &case, &[fit.p_at_most(0.0), fit.p_at_least(0.0)]);
    }
}

#[test]
fn lines() {
    for case in cases("least-squares") {
        let fit = slope::of_points(&numbers(&case["u"]), &numbers(&case["v"])).unwrap();
        let all = [vec![fit.estimate()], p_and_ends(&fit, 0.0, alpha())].concat();
        check("least-squares", &case, &all);
    }
    for case in cases("hc3") {
        let fit = slope::hc3(&numbers(&case["u"]), &numbers(&case["v"])).unwrap();
        check("hc3", &case, &p_and_ends(&fit, 0.0, alpha()));
    }
    for case in cases("theil-sen") {
        let fit = slope::theil_sen(&numbers(&case["u"]), &numbers(&case["v"])).unwrap();
        check("theil-sen", &case, &[vec![fit.estimate()], ends(&fit, alpha()).to_vec()].concat());
    }
}

#[test]
fn correlations() {
    let fit = |case: &Value, coefficient| {
        let joined = Joined::new(&numbers(&case["u"]), &numbers(&case["v"]), coefficient).unwrap();
        joined.fit(draws(99), false).unwrap()
    };
    for case in cases("coefficients") {
        let [low, high] = ends(&fit(&case, Coefficient::Pearson), alpha());
        let of = |c| fit(&case, c).estimate();
        let three = [of(Coefficient::Spearman), of(Coefficient::Kendall), of(Coefficient::Pearson)];
        check("coefficients", &case, &[three.to_vec(), vec![low, high]].concat());
    }
    for (kind, coefficient) in
        [("spearman-exact", Coefficient::Spearman), ("kendall-exact", Coefficient::Kendall)]
    {
        for case in cases(kind) {
            let fit = fit(&case, coefficient);
            check(kind, &case, &[fit.p_at_most(0.0), fit.p_at_least(0.0)]);
        }
    }
    for case in cases("page") {
        let rows: Vec<Vec<f64>> = case["rows"].as_array().unwrap().iter().map(numbers).collect();
        let levels: Vec<f64> = (1..=rows[0].len()).map(|l| l as f64).collect();
        let page = Cells::new(&levels, &rows).unwrap().page();
        check("page", &case, &[page.statistic, page.rising]);
    }
}

#[test]
fn counts() {
    for case in cases("fisher") {
        let c = whole(&case["counts"]);
        let (first, second) = (Arm { successes: c[0], trials: c[1] }, Arm { successes: c[2], trials: c[3] });
        let (greater, less) = proportion::fisher(first, second);
        check("fisher", &case, &[greater, less]);
    }
    for case in cases("newcombe") {
        let c = whole(&case["counts"]);
        let (first, second) = (Arm { successes: c[0], trials: c[1] }, Arm { successes: c[2], trials: c[3] });
        check("newcombe", &case, &ends(&proportion::two_arms(first, second, false).unwrap(), alpha()));
    }
    for case in cases("wilson") {
        let c = whole(&case["counts"]);
        check("wilson", &case, &ends(&proportion::wilson(c[0], c[1]).unwrap(), alpha()));
    }
    for case in cases("clopper-pearson") {
        let c = whole(&case["counts"]);
        check("clopper-pearson", &case, &ends(&proportion::one_arm(c[0], c[1]).unwrap(), alpha()));
    }
}

#[test]
fn corrections() {
    use Correction::{BenjaminiHochberg, BenjaminiYekutieli, Bonferroni, Hochberg, Holm, Hommel};
    for correction in [Holm, Bonferroni, Hochberg, Hommel, BenjaminiHochberg, BenjaminiYekutieli] {
        for case in cases(correction.word()) {
            let adjusted = family::adjust(&numbers(&case["q"]), correction);
            check(correction.word(), &case, &adjusted.iter().map(|a| a.q_tilde).collect::<Vec<f64>>());
        }
    }
}

#[test]
fn raters() {
    for case in cases("kappa") {
        let rater = |key: &str| whole(&case[key]).into_iter().map(|c| c as usize).collect::<Vec<usize>>();
        let weighting = match case["weighting"].as_str().unwrap() {
            "linear" => Weighting::Linear,
            "quadratic" => Weighting::Quadratic,
            _ => Weighting::None,
        };
        let k = case["k"].as_u64().unwrap() as usize;
        let raters = TwoRaters::new(&rater("a"), &rater("b"), k, weighting).unwrap();
        let fit = raters.fit(draws(1), false).unwrap();
        let error = (fit.interval(alpha()).high - fit.estimate()) / 1.959963984540054;
        check("kappa", &case, &[fit.estimate(), error]);
    }
    for case in cases("fleiss") {
        let counts: Vec<Vec<u64>> = case["counts"].as_array().unwrap().iter().map(whole).collect();
        check("fleiss", &case, &[fleiss(&counts).unwrap()]);
    }
}

#[test]
fn survival() {
    let times = |at: &Value, event: &Value| -> Vec<Time> {
        numbers(at).into_iter().zip(flags(event)).map(|(at, event)| Time { at, event }).collect()
    };
    for case in cases("log-rank") {
        let found = log_rank(&times(&case["a"], &case["ea"]), &times(&case["b"], &case["eb"])).unwrap();
        check("log-rank", &case, &[found.z, found.p]);
    }
    for case in cases("survival") {
        let curve = Curve::of(&times(&case["a"], &case["ea"])).unwrap();
        let at: Vec<f64> = numbers(&case["at"]).into_iter().map(|t| curve.survival(t)).collect();
        check("survival", &case, &at);
    }
}

#[test]
fn power() {
    for (kind, arms, level) in [("power-one", Arms::One, level("0.01")), ("power-two", Arms::Two, alpha())] {
        for case in cases(kind) {
            let (effect, n) = (case["effect"].as_f64().unwrap(), case["n"].as_f64().unwrap());
            let have = t_power(arms, effect, n, level, Tails::Either);
            close(have, numbers(&case["want"])[0], 1e-8, kind);
        }
    }
}

#[test]
fn calibration_against_a_permutation_null() {
    let file: Value = serde_json::from_str(include_str!("data/calibrated.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 30);
    let (mut above, mut at) = (0, 0);
    for case in cases {
        let number = |key: &str| case[key].as_f64().unwrap();
        let level: Level = case["alpha"].as_str().unwrap().parse().unwrap();
        let nulls = numbers(&case["nulls"]);
        let found = calibrate(number("observed"), &nulls, level, case["ceiling"].as_f64()).unwrap();
        // The package computes in 32 bits: thresholds are scores and exact, quotients are good to 1e-6.
        assert_eq!(found.threshold, number("threshold"), "{case}");
        assert!((found.p - number("p")).abs() < 1e-6, "{case}");
        assert!((found.score - number("score")).abs() < 1e-5, "have {}, {case}", found.score);
        above += u32::from(found.score > 0.0);
        at += u32::from(found.score == 0.0);
    }
    assert!(above > 5 && at > 5, "both kinds of answers occur: {above}, {at}");
}

#[test]
fn there_are_two_hundred_cases_from_elsewhere() {
    let count = |text: &str| -> usize {
        let file: Value = serde_json::from_str(text).unwrap();
        match &file["cases"] {
            Value::Array(cases) => cases.len(),
            kinds => kinds.as_object().unwrap().values().map(|cases| cases.as_array().unwrap().len()).sum(),
        }
    };
    let all = count(include_str!("data/reference.json")) + count(include_str!("data/calibrated.json"));
    assert!(all >= 200, "{all}");
}
