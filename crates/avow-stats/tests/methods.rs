//! The tabulated values of the methods that may be named, to 1e-9 relative.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::agreement::{TwoRaters, Weighting, fleiss, fleiss_fit};
use avow_stats::calibration::Forecasts;
use avow_stats::correlation::{Coefficient, Joined};
use avow_stats::difference::{contrast, mann_whitney, permutation};
use avow_stats::power_law::{self, Tail, Weights};
use avow_stats::proportion::{self, Arm, Pairs};
use avow_stats::survival::{Curve, Time, log_rank};
use avow_stats::trend::Cells;
use avow_stats::{
    Claim, Correction, Fit, Region, Units, Void, bootstrap, clusters, family, max_statistic, ratio,
    sequential, slope,
};
use common::{Reference, X, Y, alpha, close, d, draws, ends, level};

const A: [f64; 6] = [10.2, 9.8, 11.1, 10.5, 9.9, 10.8];
const B: [f64; 6] = [6.1, 5.7, 6.9, 6.0, 6.2, 6.4];
const U: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const V: [f64; 6] = [2.1, 1.9, 3.7, 4.4, 4.1, 6.3];

fn q(fit: &Fit, bound: f64) -> f64 {
    Claim::new(Region::above(bound)).test(fit.clone()).q
}

fn with_ends(fit: &Fit) -> [f64; 3] {
    let [low, high] = ends(fit, alpha());
    [fit.estimate(), low, high]
}

#[test]
fn ranks() {
    let reference = Reference::load();
    let fit = d().wilcoxon().unwrap();
    let [estimate, low, high] = with_ends(&fit);
    reference.check("d: wilcoxon p, estimate, 95 %", &[q(&fit, 0.0), estimate, low, high]);
    let fit = permutation(&X[..5], &Y[..5], draws(0)).unwrap();
    let [_, low, high] = with_ends(&fit);
    reference.check("5 v 5: permutation p_S, q, 95 %", &[fit.p_at_most(0.0), q(&fit, 0.0), low, high]);
    let fit = mann_whitney(&X[..5], &[0.9005, 0.9035, 0.9085, 0.8965, 0.9055]).unwrap();
    reference.check("5 v 5: mann-whitney two-sided p", &[q(&fit, 0.0)]);
    let fit = mann_whitney(&X, &Y).unwrap();
    reference.check("x v y: shift", &[fit.estimate()]);
    reference.check("x v y: midrank permutation greater, less", &[fit.p_at_most(0.0), fit.p_at_least(0.0)]);
    assert!(fit.interval_is_approximate());
}

#[test]
fn ratios() {
    let reference = Reference::load();
    reference.check("ratio: geometric, 95 %", &with_ends(&ratio::paired(&A, &B).unwrap()));
    let fit = ratio::fieller(&A, &B).unwrap();
    reference.check("ratio: fieller, 95 %", &with_ends(&fit));
    reference.check("ratio: fieller p of ratio <= 1.6", &[fit.p_at_most(1.6)]);
    reference.check("ratio: unpaired, 95 %", &with_ends(&ratio::unpaired(&A, &B).unwrap()));
    assert_eq!(ratio::paired(&[1.0, -1.0], &[1.0, 1.0]).unwrap_err(), Void::Domain);
    assert_eq!(ratio::fieller(&[1.0, 2.0], &[-1.0, 1.0]).unwrap_err(), Void::Domain);
    // A denominator that may be 0 bounds nothing.
    let unbounded = ratio::fieller(&[1.0, 2.0, 1.5], &[-1.0, 1.2, 0.5]).unwrap();
    assert_eq!(ends(&unbounded, alpha()), [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn shares_of_two_arms_and_of_pairs() {
    let reference = Reference::load();
    let arm = |successes, trials| Arm { successes, trials };
    let fit = proportion::two_arms(arm(9, 10), arm(4, 10), true).unwrap();
    reference.check("9/10 v 4/10: fisher greater, doubled", &[fit.p_at_most(0.0), q(&fit, 0.0)]);
    reference.check("9/10 v 4/10: newcombe 95 %", &ends(&fit, alpha()));
    // The p decides at 0 although the interval excludes it.
    assert!(fit.interval_is_approximate() && fit.interval(alpha()).above(0.0) && q(&fit, 0.0) > 0.05);
    // Elsewhere test and interval are one inversion.
    let [low, high] = ends(&fit, alpha());
    close(fit.p_at_most(low), 0.025, 1e-9, "newcombe inverted below");
    close(fit.p_at_least(high), 0.025, 1e-9, "newcombe inverted above");
    assert_eq!(proportion::two_arms(arm(3, 9), arm(4, 10), true).unwrap_err(), Void::BelowMinimumN);
    reference.check("8/10: wilson 95 %", &ends(&proportion::wilson(8, 10).unwrap(), alpha()));
    let wilson = |k, n| ends(&proportion::wilson(k, n).unwrap(), alpha());
    reference.check("wilson 9/10, 4/10", &[wilson(9, 10), wilson(4, 10)].concat());
    let pairs = |only_first, only_second, both| Pairs { both, only_first, only_second, neither: 0 };
    let tests = [pairs(6, 1, 0), pairs(9, 2, 0)].map(|pairs| proportion::paired(pairs, false).unwrap());
    reference.check("mcnemar 6 v 1, 9 v 2", &tests.map(|fit| q(&fit, 0.0)));
}

#[test]
fn paired_shares() {
    let file: serde_json::Value = serde_json::from_str(include_str!("data/paired_shares.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 60);
    for case in cases {
        let k: Vec<u64> = case["counts"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
        let pairs = Pairs { both: k[0], only_first: k[1], only_second: k[2], neither: k[3] };
        let error = level(case["error"].as_str().unwrap());
        let Ok(fit) = proportion::paired(pairs, true) else {
            assert!(pairs.total().unwrap() < proportion::LEAST_FOR_NEWCOMBE, "{case}");
            continue;
        };
        let have = ends(&fit, error);
        for (have, want) in have.iter().zip(case["want"].as_array().unwrap()) {
            let want = want.as_f64().unwrap();
            assert!((have - want).abs() <= 1e-9 * want.abs() + 1e-14, "have {have}, {case}");
        }
        // Test and interval are one inversion, but for the ends that no z reaches and the exact test at 0.
        let inside = |bound: f64| bound.abs() > 1e-9 && bound.abs() < 1.0 - 1e-9 && bound != fit.estimate();
        let half = 0.5 * error.to_f64();
        if inside(have[0]) {
            close(fit.p_at_most(have[0]), half, 1e-7, "paired newcombe inverted below");
        }
        if inside(have[1]) {
            close(fit.p_at_least(have[1]), half, 1e-7, "paired newcombe inverted above");
        }
        // The arms swapped mirror the interval.
        let swapped = Pairs { only_first: pairs.only_second, only_second: pairs.only_first, ..pairs };
        let [low, high] = ends(&proportion::paired(swapped, true).unwrap(), error);
        assert!((low + have[1]).abs() < 1e-12 && (high + have[0]).abs() < 1e-12, "{case}");
    }
    // The published example (airway hyper-responsiveness before and after a transplantation): −0.507 to −0.026.
    let published = Pairs { both: 1, only_first: 1, only_second: 7, neither: 12 };
    let [low, high] = ends(&proportion::paired(published, true).unwrap(), alpha());
    assert_eq!((format!("{low:.3}"), format!("{high:.3}")), ("-0.507".to_owned(), "-0.026".to_owned()));
    let few = Pairs { both: 3, only_first: 3, only_second: 1, neither: 2 };
    assert_eq!(proportion::paired(few, true).unwrap_err(), Void::BelowMinimumN);
    let concordant = Pairs { both: 6, only_first: 0, only_second: 0, neither: 6 };
    assert_eq!(proportion::paired(concordant, false).unwrap_err(), Void::Undefined);
    assert!(q(&proportion::paired(concordant, true).unwrap(), -0.5) < 0.05);
}

#[test]
fn correlations_and_page() {
    let reference = Reference::load();
    let joined = |c| Joined::new(&U, &V, c).unwrap().fit(draws(0), false).unwrap();
    let spearman = joined(Coefficient::Spearman);
    let (rho, one_sided) = (spearman.estimate(), spearman.p_at_most(0.0));
    reference.check("spearman: rho, exact one-sided, two-sided", &[rho, one_sided, q(&spearman, 0.0)]);
    reference.check("spearman: 95 %", &ends(&spearman, alpha()));
    let kendall = joined(Coefficient::Kendall);
    reference.check("kendall: tau, p", &[kendall.estimate(), q(&kendall, 0.0)]);
    reference.check("pearson: r, 95 %", &with_ends(&joined(Coefficient::Pearson)));
    let other_bound = Joined::new(&U, &V, Coefficient::Spearman).unwrap().fit(draws(0), true);
    assert_eq!(other_bound.unwrap_err(), Void::BelowMinimumN);
    let rows = vec![vec![1.0, 2.0, 3.0, 4.0], vec![1.2, 1.9, 3.5, 3.1], vec![0.7, 2.2, 2.1, 4.0]];
    let page = Cells::new(&[1.0, 2.0, 3.0, 4.0], &rows).unwrap().page();
    reference.check("page: L, p", &[page.statistic, page.rising]);
}

#[test]
fn slopes_and_power_laws() {
    let reference = Reference::load();
    let robust = slope::hc3(&U, &V).unwrap();
    close(q(&robust, 0.0), reference.get("hc3: se, p")[1], 1e-9, "hc3 p");
    reference.check("theil-sen: slope, 95 %", &with_ends(&slope::theil_sen(&U, &V).unwrap()));
    let x = [8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
    let y = [1.32, 0.99, 0.80, 0.655, 0.58, 0.534];
    for (name, weights) in [("equal", Weights::Equal), ("relative", Weights::Relative)] {
        let found = power_law::offset(&x, &y, weights).unwrap();
        let [alpha_hat, low, high] = with_ends(&found.exponent);
        let have = [alpha_hat, found.scale, found.offset, found.squares, low, high];
        reference.check(&format!("power-offset {name}: alpha, a, c, S, 95 %"), &have);
        close(found.exponent.p_at_most(low), 0.025, 1e-9, "profile inverted");
    }
    reference.check("power-law tail from 8", &[Tail::from(&x, 8.0).unwrap().exponent]);
    // A straight line has no optimum inside the exponents.
    let line: Vec<f64> = x.iter().map(|x| 5.0 + x.powi(4)).collect();
    assert_eq!(power_law::offset(&x, &line, Weights::Equal).unwrap_err(), Void::Undefined);
}

fn from_table(table: [[usize; 3]; 3]) -> (Vec<usize>, Vec<usize>) {
    let cells = (0..3).flat_map(|i| (0..3).map(move |j| (i, j)));
    cells.flat_map(|(i, j)| std::iter::repeat_n((i, j), table[i][j])).unzip()
}

#[test]
fn agreement_of_raters() {
    let reference = Reference::load();
    let (first, second) = from_table([[20, 5, 1], [4, 15, 3], [1, 2, 9]]);
    let fit = |weighting| TwoRaters::new(&first, &second, 3, weighting).unwrap().fit(draws(0), true).unwrap();
    let error = |fit: &Fit| (fit.interval(alpha()).high - fit.estimate()) / 1.959963984540054;
    let plain = fit(Weighting::None);
    let [kappa, low, high] = with_ends(&plain);
    reference.check("kappa: value, se, 95 %", &[kappa, error(&plain), low, high]);
    for (name, weighting) in [("quadratic", Weighting::Quadratic), ("linear", Weighting::Linear)] {
        let fit = fit(weighting);
        reference.check(&format!("kappa {name}: value, se"), &[fit.estimate(), error(&fit)]);
    }
    let counts: Vec<Vec<u64>> =
        [[3, 0, 0], [2, 1, 0], [0, 3, 0], [0, 1, 2], [0, 0, 3], [1, 1, 1]].map(Vec::from).into();
    reference.check("fleiss kappa", &[fleiss(&counts).unwrap()]);
    assert!(fleiss_fit(&counts).unwrap().interval(alpha()).contains(0.4166666667));
    let few = TwoRaters::new(&first[..9], &second[..9], 3, Weighting::None).unwrap();
    assert_eq!(few.fit(draws(99), true).unwrap_err(), Void::BelowMinimumN);
    assert_eq!(few.kappa().unwrap_err(), Void::Undefined);
}

#[test]
fn families() {
    let reference = Reference::load();
    let values = [0.001, 0.012, 0.02, 0.04, 0.2];
    let of = |q: &[f64], c| family::adjust(q, c).into_iter().map(|a| a.q_tilde).collect::<Vec<f64>>();
    for (name, correction) in [
        ("hochberg", Correction::Hochberg),
        ("hommel", Correction::Hommel),
        ("bh", Correction::BenjaminiHochberg),
        ("by", Correction::BenjaminiYekutieli),
    ] {
        assert_eq!(correction.word(), name);
        reference.check(&format!("family: {name}"), &of(&values, correction));
    }
    reference.check("family: hochberg of .03 .04", &of(&[0.03, 0.04], Correction::Hochberg));
    let other = [1.0, -2.0, 1.0, 0.0, 2.0, -1.0, 1.0, -1.0];
    let third = [1.0, -2.0, 3.0, 0.0, -1.0, 2.0, -2.0, 1.0];
    let rows: Vec<Vec<f64>> = (d().values().iter().enumerate())
        .map(|(i, d)| vec![*d, 0.5 * d + 0.001 * other[i], 0.001 * third[i]])
        .collect();
    let members = max_statistic::adjust(&rows, draws(0)).unwrap();
    let column = |of: fn(&max_statistic::Member) -> f64| members.iter().map(of).collect::<Vec<f64>>();
    reference.check("max: t", &column(|m| m.statistic));
    reference.check("max: single-step", &column(|m| m.single_step));
    // These members are in order of their statistic.
    reference.check("max: step-down by rank", &column(|m| m.step_down));
}

#[test]
fn censored_values() {
    let reference = Reference::load();
    let time = |at, event| Time { at, event };
    let first = [
        time(100.0, true),
        time(250.0, true),
        time(250.0, false),
        time(400.0, true),
        time(700.0, true),
        time(1000.0, false),
        time(1000.0, false),
    ];
    let curve = Curve::of(&first).unwrap();
    reference.check("survival: S", &curve.steps.iter().map(|s| s.survival).collect::<Vec<f64>>());
    let at_250 = curve.interval(250.0, alpha()).unwrap();
    reference.check("survival: log-log at 250", &[at_250.low, at_250.high]);
    let (area, error) = curve.restricted_mean(1000.0).unwrap();
    reference.check("survival: restricted mean, se", &[area, error]);
    assert_eq!(curve.restricted_mean(1001.0).unwrap_err(), Void::Domain);
    let second = [90.0, 120.0, 200.0, 260.0, 300.0, 410.0].map(|at| time(at, true));
    let rank = log_rank(&first, &second).unwrap();
    reference.check("survival: log-rank z, p", &[rank.z, rank.p]);
    assert_eq!(log_rank(&first[5..], &first[5..]).unwrap_err(), Void::Undefined);
}

#[test]
fn looking_at_any_time() {
    let reference = Reference::load();
    let look = sequential::Mixture::of(d().values()).unwrap();
    reference.check("mixture: half-width, e at 0", &[look.half_width(0.05), look.log_e_value(0.0).exp()]);
    reference.check("robbins: sigma 1 rho 1 n 10", &[sequential::sub_gaussian(10, 1.0, 1.0, 0.05)]);
    // Below five units nothing is excluded, and the end of the interval is where the e-value reaches 1/α.
    assert_eq!(sequential::Mixture::of(&d().values()[..4]).unwrap().half_width(0.05), f64::INFINITY);
    let end = look.mean - look.half_width(0.05);
    close(look.log_e_value(end), 20_f64.ln(), 1e-9, "e-value at the end");
    close(sequential::anytime_p(d().values(), end), 0.05, 1e-6, "anytime p at the end");
    // Values outside a declared range refute the range.
    assert!(sequential::betting(&[0.5, 1.2], (0.0, 1.0), 0.05).is_none());
}

#[test]
fn forecasts() {
    let reference = Reference::load();
    let stated = [0.55, 0.62, 0.71, 0.74, 0.83, 0.88, 0.93, 0.97];
    let happened = [true, false, true, true, false, true, true, true];
    let forecasts = Forecasts::new(&stated, &happened).unwrap();
    reference.check("calibration: ECE of 5 bins, Brier", &[forecasts.expected_error(5), forecasts.brier()]);
    reference.check("calibration: log score", &[forecasts.log_score()]);
    assert!(forecasts.consistency(5, draws(999)) > 0.1);
    let never = Forecasts::new(&[0.95; 40], &[false; 40]).unwrap();
    assert_eq!(never.consistency(5, draws(999)), 0.001);
    assert_eq!(Forecasts::new(&[1.1], &[true]).unwrap_err(), Void::Domain);
}

#[test]
fn contrasts_and_clusters() {
    let reference = Reference::load();
    let fit = contrast(&[&X[..4], &X[4..], &Y[..4], &Y[4..]], &[1.0, -1.0, -1.0, 1.0]).unwrap();
    reference.check("contrast: estimate, p", &[fit.estimate(), q(&fit, 0.0)]);
    reference.check("contrast: 95 %", &ends(&fit, alpha()));
    assert_eq!(contrast(&[&X, &Y], &[1.0, 1.0]).unwrap_err(), Void::Domain);
    let welch = avow_stats::difference::welch(&X, &Y).unwrap();
    let of_two = contrast(&[&X, &Y], &[1.0, -1.0]).unwrap();
    for (have, want) in ends(&of_two, alpha()).into_iter().zip(ends(&welch, alpha())) {
        close(have, want, 1e-9, "a contrast of two arms is Welch's");
    }
    let by_two = clusters::means(d().values(), &[0, 0, 1, 1, 2, 2, 3, 3]).unwrap();
    reference.check("clusters: means", by_two.values());
    assert_eq!(clusters::means(&[1.0, 2.0], &[5, 5]).unwrap_err(), Void::BelowMinimumN);
    let pairs = clusters::all_pairs(6, |i, j| (i + j) as f64).unwrap();
    assert_eq!(pairs.estimate(), 5.0);
}

#[test]
fn bootstraps_agree_with_t_where_both_hold() {
    let values: Vec<f64> = (0..40).map(|i| f64::from((i * 37) % 41) / 41.0).collect();
    let units = Units::of(&values).unwrap();
    let t = ends(&units.t().unwrap(), alpha());
    for fit in [units.percentile(draws(9_999)), units.bca(draws(9_999)), units.bootstrap_t(draws(9_999))] {
        let fit = fit.unwrap();
        for (have, want) in ends(&fit, alpha()).into_iter().zip(t) {
            assert!((have - want).abs() < 0.012, "{}: {have} {want}", fit.method());
        }
        // Test and interval are one inversion: just inside an end p exceeds 2.5 %, just outside it does not.
        let [low, high] = ends(&fit, alpha());
        assert!(
            fit.p_at_most(low - 1e-9) <= 0.025 + 1e-12 && fit.p_at_most(low + 1e-9) > 0.025,
            "{}",
            fit.method()
        );
        assert!(fit.p_at_least(high + 1e-9) <= 0.025 + 1e-12 && fit.p_at_least(high - 1e-9) > 0.025);
    }
    assert_eq!(d().bca(draws(99)).unwrap_err(), Void::BelowMinimumN);
    let two = bootstrap::bca(&values, &values[..20], draws(9_999)).unwrap();
    let welch = avow_stats::difference::welch(&values, &values[..20]).unwrap();
    for (have, want) in ends(&two, alpha()).into_iter().zip(ends(&welch, alpha())) {
        assert!((have - want).abs() < 0.03, "{have} {want}");
    }
}

#[test]
fn clusters_that_count_by_their_units() {
    let file: serde_json::Value = serde_json::from_str(include_str!("data/weighted_clusters.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 9);
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    for case in cases {
        let means = Units::of(&numbers(&case["means"])).unwrap();
        let sizes: Vec<usize> = numbers(&case["sizes"]).into_iter().map(|size| size as usize).collect();
        let fit = clusters::weighted(&means, &sizes, draws(0)).unwrap();
        let (bound, p) = (case["bound"].as_f64().unwrap(), numbers(&case["p"]));
        close(fit.estimate(), case["estimate"].as_f64().unwrap(), 1e-12, "the mean of all units");
        assert_eq!(vec![fit.p_at_most(bound), fit.p_at_least(bound)], p, "{case}");
        match case["interval"].is_null() {
            true => assert_eq!(ends(&fit, alpha()), [f64::NEG_INFINITY, f64::INFINITY], "{case}"),
            false => {
                for (have, want) in ends(&fit, alpha()).into_iter().zip(numbers(&case["interval"])) {
                    close(have, want, 1e-12, "an end of the interval");
                }
            }
        }
        // Clusters of one size count equally, and clusters by many draws as by all flips.
        let equal = clusters::weighted(&means, &vec![3; sizes.len()], draws(0)).unwrap();
        assert_eq!(ends(&equal, alpha()), ends(&means.signs(draws(0)).unwrap(), alpha()));
    }
    assert_eq!(clusters::weighted(&d(), &[1; 7], draws(0)).unwrap_err(), Void::Unpaired);
    assert_eq!(
        clusters::weighted(&Units::of(&[1.0]).unwrap(), &[4], draws(0)).unwrap_err(),
        Void::BelowMinimumN
    );
}

#[test]
fn calibration_as_a_claim() {
    let stated: Vec<f64> = (0..200).map(|i| f64::from(i) / 200.0 + 0.0025).collect();
    // Outcomes that come true as stated, spread evenly, and outcomes that never do.
    let as_stated: Vec<bool> = (0..200).map(|i| (i * 7919 % 200) as f64 / 200.0 < stated[i]).collect();
    let fit = |happened: &[bool]| Forecasts::new(&stated, happened).unwrap().fit(10, draws(999)).unwrap();
    assert!(q(&fit(&as_stated), 0.0) > 0.05);
    let never = fit(&[false; 200]);
    assert_eq!((never.p_at_most(0.0), never.p_at_least(0.0)), (0.001, 1.0));
    assert!(never.estimate() > 0.3 && never.draws() == Some(999));
    assert_eq!(ends(&never, alpha()), [f64::NEG_INFINITY, f64::INFINITY]);
    let few = Forecasts::new(&stated[..9], &[true; 9]).unwrap();
    assert_eq!(few.fit(10, draws(99)).unwrap_err(), Void::BelowMinimumN);
}

#[test]
fn one_stratum_is_the_usual_bootstrap_and_many_leave_out_what_differs_between_them() {
    let values: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 12) + 100.0 * f64::from(i % 2)).collect();
    let units = Units::of(&values).unwrap();
    let one = bootstrap::stratified(&units, &[0; 12], draws(999)).unwrap();
    assert_eq!(ends(&one, alpha()), ends(&units.percentile(draws(999)).unwrap(), alpha()));
    let strata: Vec<usize> = (0..12).map(|i| i % 2).collect();
    let within = bootstrap::stratified(&units, &strata, draws(999)).unwrap();
    let width = |fit: &Fit| ends(fit, alpha())[1] - ends(fit, alpha())[0];
    assert!(width(&within) < 0.2 * width(&one), "{} against {}", width(&within), width(&one));
    assert_eq!(within.estimate(), one.estimate());
    assert_eq!(bootstrap::stratified(&units, &[0; 11], draws(99)).unwrap_err(), Void::Unpaired);
    let lone: Vec<usize> = (0..12).map(|i| usize::from(i == 3)).collect();
    assert_eq!(bootstrap::stratified(&units, &lone, draws(99)).unwrap_err(), Void::BelowMinimumN);
}
