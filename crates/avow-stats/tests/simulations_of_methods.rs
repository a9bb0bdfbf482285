//! The tables behind the methods that may be named, repeated with this crate's own code.
//!
//! As in `simulations.rs`: a 99.9 % two-sample binomial band around the tabulated rate, a fixed key, no search for one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod sources;

use avow_stats::calibration::Forecasts;
use avow_stats::difference::{mann_whitney, permutation, student};
use avow_stats::power_law::{self, Weights};
use avow_stats::rng::{Draw, Draws, Key};
use avow_stats::{Claim, Fit, Region, Units, clusters, sequential, slope};
use common::{agrees, alpha, draws};
use sources::*;

fn key(tag: u8, n: usize) -> Key {
    Key([tag, n as u8].repeat(16).try_into().unwrap())
}

/// Counts (interval wholly above 0, wholly below 0).
fn misses(source: Source, n: usize, repetitions: u32, fit: impl Fn(&Units, Draws) -> Fit) -> (u32, u32) {
    let (mut above, mut below) = (0, 0);
    for repetition in 0..repetitions {
        let mut draw = Draw::new(&key(11, n), repetition.into());
        let units = Units::of(&sample(source, n, &mut draw)).unwrap();
        let mut fresh = [77; 32];
        fresh[..4].copy_from_slice(&repetition.to_le_bytes());
        let interval = fit(&units, Draws { key: Key(fresh), count: 999 }).interval(alpha());
        above += u32::from(interval.above(0.0));
        below += u32::from(interval.below(0.0));
    }
    (above, below)
}

#[test]
fn wilcoxon_misses_as_often_as_tabulated() {
    const REPETITIONS: u32 = 10_000;
    type Row = (&'static str, Source, [(f64, f64); 3]);
    let table: [Row; 3] = [
        ("normal", normal, [(1.9, 1.9), (2.5, 2.6), (2.4, 2.4)]),
        ("t₃", t3, [(1.8, 1.9), (2.3, 2.5), (2.3, 2.3)]),
        ("two modes", two_modes, [(2.0, 2.0), (2.5, 2.3), (2.8, 2.4)]),
    ];
    for (name, source, rates) in table {
        for n in [3, 5] {
            assert_eq!(misses(source, n, 300, |units, _| units.wilcoxon().unwrap()), (0, 0));
        }
        for (n, (above, below)) in [8, 10, 20].into_iter().zip(rates) {
            let counted = misses(source, n, REPETITIONS, |units, _| units.wilcoxon().unwrap());
            agrees(counted.0, REPETITIONS, above, 10_000, &format!("wilcoxon, {name}, n = {n}, above"));
            agrees(counted.1, REPETITIONS, below, 10_000, &format!("wilcoxon, {name}, n = {n}, below"));
        }
    }
}

#[test]
fn bootstraps_miss_as_often_as_tabulated() {
    const REPETITIONS: u32 = 1_000;
    type Method = fn(&Units, Draws) -> Fit;
    let percentile: Method = |units, draws| units.percentile(draws).unwrap();
    let bca: Method = |units, draws| units.bca(draws).unwrap();
    let studentised: Method = |units, draws| units.bootstrap_t(draws).unwrap();
    // At n = 10 and 20, above and below.
    type Row = (&'static str, Source, Method, [(f64, f64); 2]);
    let table: [Row; 6] = [
        ("normal, percentile", normal, percentile, [(5.1, 5.8), (4.0, 2.9)]),
        ("normal, bca", normal, bca, [(4.8, 6.1), (4.2, 3.0)]),
        ("normal, bootstrap-t", normal, studentised, [(2.5, 3.1), (2.8, 2.2)]),
        ("lognormal, percentile", lognormal, percentile, [(1.2, 18.1), (1.0, 14.1)]),
        ("lognormal, bca", lognormal, bca, [(2.5, 14.5), (2.9, 9.6)]),
        ("lognormal, bootstrap-t", lognormal, studentised, [(0.7, 8.3), (1.2, 6.8)]),
    ];
    for (name, source, method, rates) in table {
        for (n, (above, below)) in [10, 20].into_iter().zip(rates) {
            let counted = misses(source, n, REPETITIONS, method);
            agrees(counted.0, REPETITIONS, above, 2_000, &format!("{name}, n = {n}, above"));
            agrees(counted.1, REPETITIONS, below, 2_000, &format!("{name}, n = {n}, below"));
        }
    }
}

#[test]
fn two_arm_tests_err_as_often_as_tabulated() {
    // (name, sources, n, m, student, permutation, Mann–Whitney) in percent.
    type Row = (&'static str, Source, Source, usize, usize, f64, f64, f64);
    let table: [Row; 8] = [
        ("normal", normal, normal, 3, 3, 5.0, 0.0, 0.0),
        ("normal", normal, normal, 5, 5, 5.1, 4.8, 3.3),
        ("sd 1 v 3", normal, wide_normal, 5, 5, 7.2, 7.1, 4.7),
        ("sd 1 v 3", normal, wide_normal, 5, 15, 0.6, 0.9, 1.4),
        ("sd 1 v 3", normal, wide_normal, 15, 5, 22.3, 18.8, 10.1),
        ("lognormal both", lognormal, lognormal, 5, 5, 3.2, 5.2, 3.3),
        ("lognormal both", lognormal, lognormal, 5, 15, 4.5, 4.3, 3.6),
        ("normal v failed", normal, failed, 5, 5, 8.7, 8.6, 5.7),
    ];
    for (name, first, second, n, m, by_student, by_labels, by_ranks) in table {
        // Enumerating C(20, 5) labels takes longer than C(10, 5).
        let repetitions = if n + m > 12 { 1_000 } else { 5_000 };
        let mut hits = [0; 3];
        for repetition in 0..repetitions {
            let mut draw =
                Draw::new(&Key([n as u8 ^ 0x40, m as u8].repeat(16).try_into().unwrap()), repetition.into());
            let (a, b) = (sample(first, n, &mut draw), sample(second, m, &mut draw));
            let fits = [student(&a, &b), permutation(&a, &b, draws(0)), mann_whitney(&a, &b)];
            for (hit, fit) in hits.iter_mut().zip(fits) {
                *hit += u32::from(alpha().admits(Claim::new(Region::above(0.0)).test(fit.unwrap()).q));
            }
        }
        for ((what, percent), hits) in
            [("student", by_student), ("permutation", by_labels), ("mann-whitney", by_ranks)]
                .into_iter()
                .zip(hits)
        {
            agrees(hits, repetitions, percent, 5_000, &format!("{what}, {name}, {n} v {m}"));
        }
    }
}

#[test]
fn units_of_one_cluster_are_not_independent() {
    const REPETITIONS: u32 = 3_000;
    let skewed: Source = |draw| lognormal(draw) / 2.16;
    // (name, effect, clusters, t of units, t of cluster means, sign-flip of cluster means).
    let table: [(&str, Source, usize, f64, f64, f64); 6] = [
        ("normal", normal, 4, 42.3, 5.1, 0.0),
        ("normal", normal, 6, 42.2, 5.3, 3.6),
        ("normal", normal, 8, 42.4, 4.9, 4.7),
        ("lognormal", skewed, 4, 38.7, 9.5, 0.0),
        ("lognormal", skewed, 6, 40.4, 11.2, 7.9),
        ("lognormal", skewed, 8, 40.7, 11.1, 10.7),
    ];
    for (name, effect, count, by_unit, by_cluster, by_signs) in table {
        let mut hits = [0; 3];
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(31, count), repetition.into());
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for cluster in 0..count {
                let own = effect(&mut draw);
                values.extend((0..10).map(|_| own + draw.normal()));
                labels.extend([cluster; 10]);
            }
            let means = clusters::means(&values, &labels).unwrap();
            let fits = [Units::of(&values).unwrap().t(), means.t(), means.signs(draws(0))];
            for (hit, fit) in hits.iter_mut().zip(fits) {
                *hit += u32::from(!fit.unwrap().interval(alpha()).contains(0.0));
            }
        }
        for ((what, percent), hits) in
            [("units", by_unit), ("means", by_cluster), ("signs", by_signs)].into_iter().zip(hits)
        {
            agrees(hits, REPETITIONS, percent, 3_000, &format!("clusters, {name}, G = {count}, {what}"));
        }
    }
}

#[test]
fn sequences_hold_at_every_look() {
    const REPETITIONS: u32 = 1_500;
    for (name, source, percent) in
        [("normal", normal as Source, 2.8), ("lognormal", lognormal, 26.0), ("failed 15 %", failed, 11.4)]
    {
        let mut ever = 0;
        for repetition in 0..REPETITIONS {
            let values = sample(source, 200, &mut Draw::new(&key(51, 200), repetition.into()));
            let looks = sequential::mixture(&values, 0.05);
            ever += u32::from(looks.iter().any(|l| l.low > 0.0 || l.high < 0.0));
        }
        agrees(ever, REPETITIONS, percent, 3_000, &format!("t-mixture, {name}"));
    }
    // Betting on a bounded value: it may miss in at most 5 % of sequences, and does so far less.
    let (mut ever, mut widths) = (0, Vec::new());
    for repetition in 0..60 {
        let mut draw = Draw::new(&key(61, 50), repetition);
        let values: Vec<f64> = (0..50).map(|_| f64::from(u8::from(draw.uniform() < 0.9))).collect();
        let looks = sequential::betting(&values, (0.0, 1.0), 0.05).unwrap();
        ever += u32::from(looks.iter().any(|l| l.low > 0.9 || l.high < 0.9));
        widths.push(looks[49].high - looks[49].low);
    }
    widths.sort_by(f64::total_cmp);
    assert!(ever <= 4, "{ever} of 60");
    assert!((widths[30] - 0.227).abs() < 0.03, "{}", widths[30]);
}

#[test]
fn plain_calibration_error_is_biased_and_the_debiased_square_is_not() {
    const REPETITIONS: u64 = 1_500;
    for (n, plain, root, tolerance) in [(100, 0.0892, 0.1131, 0.002), (300, 0.0511, 0.0648, 0.0012)] {
        let (mut first, mut second, mut third) = (0.0, 0.0, 0.0);
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(71, n), repetition);
            let stated: Vec<f64> = (0..n).map(|_| 0.5 + 0.5 * draw.uniform()).collect();
            let happened: Vec<bool> = stated.iter().map(|c| draw.uniform() < *c).collect();
            let forecasts = Forecasts::new(&stated, &happened).unwrap();
            first += forecasts.expected_error(15);
            second += forecasts.root_mean_square_error(15);
            third += forecasts.debiased_square(15);
        }
        let mean = |total: f64| total / REPETITIONS as f64;
        assert!((mean(first) - plain).abs() < tolerance, "n = {n}: {}", mean(first));
        assert!((mean(second) - root).abs() < tolerance, "n = {n}: {}", mean(second));
        assert!(mean(third).abs() < 5e-4, "n = {n}: {}", mean(third));
    }
}

#[test]
fn a_power_law_with_an_offset_needs_the_offset() {
    const REPETITIONS: u32 = 300;
    for (k, percent) in [(5, 93.0), (6, 95.2), (8, 95.2)] {
        let (mut covered, mut straight) = (0, 0);
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(81, k), repetition.into());
            let x: Vec<f64> = (0..k).map(|i| 8.0 * f64::powi(2.0, i as i32)).collect();
            let y: Vec<f64> =
                x.iter().map(|x| (2.0 * x.powf(-0.5) + 0.3) * (1.0 + 0.02 * draw.normal())).collect();
            let found = power_law::offset(&x, &y, Weights::Relative);
            covered += u32::from(found.is_ok_and(|f| f.exponent.interval(alpha()).contains(0.5)));
            let line = slope::of_points(&slope::logs(&x).unwrap(), &slope::logs(&y).unwrap()).unwrap();
            straight += u32::from(line.interval(alpha()).contains(-0.5));
        }
        agrees(covered, REPETITIONS, percent, 400, &format!("power law with offset, k = {k}"));
        assert_eq!(straight, 0, "log-log without the offset, k = {k}");
    }
}
