//! Every number of the definition that concerns the methods here, to 1e-9 relative.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::claim::MonteCarlo;
use avow_stats::difference::welch;
use avow_stats::power::{Arms, Tails, t_power, units_for};
use avow_stats::trend::{Cells, Statistic};
use avow_stats::{
    Claim, Combination, Fit, Pair, Part, Region, Units, family, noise, null, proportion, slope, threshold,
    trend,
};
use common::{Reference, X, Y, alpha, close, d, draws, ends, level};

fn t_of(values: &[f64]) -> Fit {
    Units::of(values).unwrap().t().unwrap()
}

#[test]
fn threshold_mean() {
    let reference = Reference::load();
    let fit = d().t().unwrap();
    let sd = avow_stats::sum::deviation(d().values());
    reference.check("d: mean, sd", &[fit.estimate(), sd]);
    reference.check("d: t", &[fit.estimate() / (sd / 8_f64.sqrt())]);
    reference.check(
        "d: t two-sided p, greater p, greater p at .005",
        &[Claim::new(Region::above(0.0)).test(fit.clone()).q, fit.p_at_most(0.0), fit.p_at_most(0.005)],
    );
    reference.check("d: t less p", &[fit.p_at_least(0.0)]);
    reference.check("d: t 95 %", &ends(&fit, alpha()));
    reference.check("d: t 90 %", &ends(&fit, alpha().doubled()));
    reference.check("d: t 98.75 %", &ends(&fit, alpha().split(4)));
    let three = t_of(&[0.91, 0.93, 0.92]);
    reference.check("three: t 95 %", &ends(&three, alpha()));
    reference.check("three: p at .9", &[Claim::new(Region::above(0.9)).test(three).q]);
}

#[test]
fn threshold_median_and_every() {
    let reference = Reference::load();
    let median = d().median().unwrap();
    reference.check("d: median interval, k = 1", &ends(&median, alpha()));
    let two_sided = Claim::new(Region::above(0.005)).test(median).q;
    reference.check("d: median p at .005, two-sided", &[two_sided]);
    let lower = [3, 5, 8, 10, 20].map(|n| threshold::share_that_will_pass(n, alpha()));
    reference.check("every: lower end at n = 3, 5, 8, 10, 20", &lower);
}

#[test]
fn sign_flip() {
    let reference = Reference::load();
    let fit = d().signs(draws(0)).unwrap();
    let test = Claim::new(Region::above(0.0)).test(fit.clone());
    reference.check("d: sign-flip p_S, q", &[test.pair.support, test.q]);
    reference.check("d: sign-flip 95 %", &ends(&fit, alpha()));
    let smallest: Vec<f64> = (3..=10)
        .map(|n| {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            Claim::new(Region::above(0.0)).test(Units::of(&values).unwrap().signs(draws(0)).unwrap())
        })
        .inspect(|test| assert_eq!(test.q, test.reach))
        .map(|test| test.q)
        .collect();
    reference.check("sign-flip: smallest q at n = 3 to 10", &smallest);
}

#[test]
fn sign_flip_by_draws_is_within_its_error() {
    let exact = d().signs(draws(0)).unwrap();
    let random = d().signs_by_draws(draws(99_999)).unwrap();
    for bound in [0.0, 0.003, 0.005, 0.009, 0.012] {
        let (p, have) = (exact.p_at_most(bound), random.p_at_most(bound));
        // The empty subset counts in both tails, as the identity does in the exact p; the add-one is negligible.
        let allowed = 5.0 * MonteCarlo::standard_error(p, 99_999) + 1e-5;
        assert!((p - have).abs() < allowed, "{bound}: {p} {have}");
    }
    assert_eq!(ends(&exact, alpha()), ends(&random, alpha()));
}

#[test]
fn welch_arms() {
    let reference = Reference::load();
    let fit = welch(&X, &Y).unwrap();
    let test = Claim::new(Region::above(0.0)).test(fit.clone());
    let [low, high] = ends(&fit, alpha());
    reference.check("welch: 95 %", &[low, high]);
    close(test.q, reference.get("welch: t, two-sided p")[1], 1e-9, "welch p");
    // t and ν are not interface; they are recovered from p and the half-width.
    let df = reference.get("welch: df")[0];
    let reach = avow_stats::special::student::upper_quantile(0.025, df);
    close(
        fit.estimate() * 2.0 * reach / (high - low),
        reference.get("welch: t, two-sided p")[0],
        1e-9,
        "welch t",
    );
    reference.check("welch: p_S above .002", &[fit.p_at_most(0.002)]);
}

#[test]
fn equivalence() {
    let reference = Reference::load();
    let fit = d().t().unwrap();
    let test = Claim::new(Region::Equivalence { target: 0.0, margin: 0.012 }).test(fit.clone());
    reference.check("tost: p_S at .012, other side", &[test.pair.support, fit.p_at_most(-0.012)]);
    assert_eq!(test.q, test.pair.support);
    reference.check("d: t 90 %", &ends(&fit, test.claim.interval_error(alpha(), 1)));
}

#[test]
fn cluster_means_are_units() {
    let reference = Reference::load();
    let means: Vec<f64> = d().values().chunks(2).map(avow_stats::sum::mean).collect();
    reference.check("clusters: means", &means);
    let units = Units::with_tie(means, d().tie()).unwrap();
    let fit = units.t().unwrap();
    let [low, high] = ends(&fit, alpha());
    let q = Claim::new(Region::above(0.0)).test(fit).q;
    reference.check("clusters: t p, 95 %", &[q, low, high]);
    let signs = Claim::new(Region::above(0.0)).test(units.signs(draws(0)).unwrap());
    reference.check("clusters: sign-flip q", &[signs.q]);
}

#[test]
fn proportion_of_one_arm() {
    let reference = Reference::load();
    for (k, n) in [(8, 10), (10, 10), (0, 5)] {
        let fit = proportion::one_arm(k, n).unwrap();
        reference.check(&format!("share {k}/{n}: 95 %"), &ends(&fit, alpha()));
    }
    let test = Claim::new(Region::above(0.5)).test(proportion::one_arm(8, 10).unwrap());
    reference.check("share 8/10: p at .5, doubled", &[test.pair.support, test.q]);
    let fit = proportion::one_arm(3, 17).unwrap();
    reference.check("share 3/17: p at .4 greater, less", &[fit.p_at_most(0.4), fit.p_at_least(0.4)]);
}

#[test]
fn trends() {
    let reference = Reference::load();
    let levels = [1.0, 2.0, 3.0, 4.0];
    reference.check("trend: ceiling for many units, k = 4", &[trend::ceiling_for_many(4)]);
    let flat = reference.get("trend: rows of six units");
    let rows: Vec<Vec<f64>> = flat.chunks(4).map(<[f64]>::to_vec).collect();
    let cells = Cells::new(&levels, &rows).unwrap();
    let fit = trend::pooled(&cells, Statistic::Spearman).unwrap();
    let [low, high] = ends(&fit, alpha());
    reference.check("trend: jackknife rho, 95 %", &[fit.estimate(), low, high]);
    reference.check("trend: jackknife p of rho <= .6", &[fit.p_at_most(0.6)]);
    let units = cells.of_units(Statistic::Spearman).unwrap();
    reference.check("trend: rho within units", units.values());
    reference.check("trend: t p_S of units", &[units.t().unwrap().p_at_most(0.0)]);
    let three = Cells::new(&levels, &rows[..3]).unwrap();
    reference.check("trend: pooled rho", &[three.correlation(Statistic::Spearman).unwrap()]);
    let tied = [vec![1.0, 2.0, 2.0, 1.5]];
    let tied = Cells::new(&levels, &tied).unwrap().of_units(Statistic::Kendall).unwrap();
    reference.check("trend: tau-b within tied unit", tied.values());
}

#[test]
fn slopes() {
    let reference = Reference::load();
    let (axis, values) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.1, 1.9, 3.7, 4.4, 4.1, 6.3]);
    let fit = slope::of_points(&axis, &values).unwrap();
    let q = Claim::new(Region::above(0.0)).test(fit.clone()).q;
    reference.check("slope: estimate, p", &[fit.estimate(), q]);
    reference.check("slope: 95 %", &ends(&fit, alpha()));
    let x = slope::logs(&[8.0, 16.0, 32.0, 64.0, 128.0, 256.0]).unwrap();
    let y = slope::logs(&[1.32, 0.99, 0.80, 0.655, 0.58, 0.534]).unwrap();
    let log = slope::of_points(&x, &y).unwrap();
    reference.check("log-log: estimate", &[log.estimate()]);
    let [low, high] = ends(&log, alpha());
    let reach = avow_stats::special::student::upper_quantile(0.025, 4.0);
    reference.check("log-log: se", &[(high - low) / (2.0 * reach)]);
    let bend = slope::curvature(&x, &y).unwrap();
    reference.check("log-log: quadratic coefficient, t, p", &[bend.coefficient, bend.t, bend.p]);
}

#[test]
fn families_and_combinations() {
    let reference = Reference::load();
    let q = [0.001, 0.012, 0.02, 0.04, 0.2];
    reference.check("family: holm", &family::holm(&q));
    reference.check("family: bonferroni", &family::bonferroni(&q));
    reference.check("family: holm of .03 .04", &family::holm(&[0.03, 0.04]));
    let parts = [0.2, 0.004, 0.03].map(|support| Part::Tested {
        pair: Pair { support, refute: 1.0 - support },
        reach: Pair { support: 0.0, refute: 0.0 },
    });
    let supports = [1, 2, 3].map(|k| Combination::new(&parts, k, false).unwrap().pair.support);
    reference.check("combination: k = 1, 2, 3 of .004 .03 .2", &supports);
}

#[test]
fn around_the_verdict() {
    let reference = Reference::load();
    let errors = [9_999, 99_999].map(|draws| MonteCarlo::standard_error(0.05, draws));
    reference.check("monte carlo error at .05, B = 9,999, 99,999", &errors);
    let power = |effect, n| t_power(Arms::One, effect, n, alpha(), Tails::Either);
    reference.check("power: d 1 n 8, d 2 n 5", &[power(1.0, 8.0), power(2.0, 5.0)]);
    reference.check("power: n for .8", &[units_for(Arms::One, 1.0, alpha(), 0.8).unwrap()]);
    reference.check("power: two arms d 1 n 10", &[t_power(Arms::Two, 1.0, 10.0, alpha(), Tails::Either)]);
    let floor = noise::Noise::of(d().values()).unwrap();
    let interval = floor.interval(alpha());
    reference.check("noise: s, 95 %", &[floor.sd, interval.low, interval.high]);
    let detectable = [floor.detectable_paired(8, alpha(), 0.8), floor.detectable_two_arms(8, alpha(), 0.8)];
    reference.check("noise: detectable paired, two arms", &detectable);
    let nulls: Vec<f64> = (1..200).map(|i| f64::from(37 * i % 199) / 400.0).collect();
    let found = null::calibrate(0.52, &nulls, alpha(), Some(1.0)).unwrap();
    reference.check("null: tau, p, score", &[found.threshold, found.p, found.score]);
}

#[test]
fn power_of_the_table() {
    // Section 2: power of t at a true effect of one standard deviation, simulated there to one decimal.
    let table = [(3.0, 17.9), (4.0, 28.7), (5.0, 40.1), (6.0, 49.6), (7.0, 59.3), (8.0, 68.1), (10.0, 80.7)];
    for (n, percent) in table {
        let power = 100.0 * t_power(Arms::One, 1.0, n, alpha(), Tails::Either);
        assert!((power - percent).abs() < 1.6, "n = {n}: {power}");
        assert!(t_power(Arms::One, 1.0, n, level("0.0125"), Tails::Either) < power / 100.0);
    }
}

#[test]
fn power_in_the_direction_is_part_of_either() {
    let power = |effect, tails| t_power(Arms::Two, effect, 6.0, alpha(), tails);
    for effect in [0.0, 0.3, 1.0] {
        let (either, directed) = (power(effect, Tails::Either), power(effect, Tails::Directed));
        assert!(directed < either && either <= 2.0 * directed + 1e-12);
    }
    // Without an effect the size is the level, half of it on each side.
    close(power(0.0, Tails::Either), 0.05, 1e-10, "size");
    close(power(0.0, Tails::Directed), 0.025, 1e-10, "one side");
    assert_eq!(units_for(Arms::One, 0.0, alpha(), 0.8), None);
    assert_eq!(units_for(Arms::One, 1.0, alpha(), 0.01), None);
    let many = units_for(Arms::Two, 0.01, alpha(), 0.8).unwrap();
    close(t_power(Arms::Two, 0.01, many, alpha(), Tails::Either), 0.8, 1e-9, "large n");
}

#[test]
fn noise_pools_over_cells() {
    let pooled = noise::Noise::pooled(&[&[1.0, 3.0], &[5.0], &[0.0, 0.0, 3.0]]).unwrap();
    // (1·2 + 2·3)/3.
    assert_eq!(pooled.df, 3);
    close(pooled.sd, (8.0_f64 / 3.0).sqrt(), 1e-14, "pooled");
    assert_eq!(noise::Noise::pooled(&[&[1.0], &[2.0]]), Err(avow_stats::Void::BelowMinimumN));
}
