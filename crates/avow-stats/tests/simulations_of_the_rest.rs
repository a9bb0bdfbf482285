//! What `simulations.rs` and `simulations_of_methods.rs` leave of the tables of sections 2, 5, 6, 9 and 11: the other
//! sources, sizes and correlations, repeated with this crate's own code inside the same bands.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod sources;

use avow_stats::correlation::{Coefficient, Joined};
use avow_stats::difference::{mann_whitney, permutation, student};
use avow_stats::power_law::{self, Weights};
use avow_stats::proportion::{Pairs, paired};
use avow_stats::rng::{Draw, Draws, Key};
use avow_stats::trend::{Cells, Statistic};
use avow_stats::worst::Groups;
use avow_stats::{Claim, Correction, Fit, Region, Units, clusters, family, sequential};
use common::{agrees, alpha, draws};
use sources::*;

fn key(tag: u8, n: usize) -> Key {
    Key([tag, n as u8].repeat(16).try_into().unwrap())
}

/// Draws that are others in every repetition.
fn fresh(tag: u8, repetition: u32, count: u32) -> Draws {
    let mut key = [tag; 32];
    key[..4].copy_from_slice(&repetition.to_le_bytes());
    Draws { key: Key(key), count }
}

/// Counts (interval wholly above the truth, wholly below it).
fn misses(
    source: Source,
    (n, truth, repetitions): (usize, f64, u32),
    fit: impl Fn(&Units, u32) -> Fit,
) -> (u32, u32) {
    let (mut above, mut below) = (0, 0);
    for repetition in 0..repetitions {
        let mut draw = Draw::new(&key(12, n), repetition.into());
        let units = Units::of(&sample(source, n, &mut draw)).unwrap();
        let interval = fit(&units, repetition).interval(alpha());
        above += u32::from(interval.above(truth));
        below += u32::from(interval.below(truth));
    }
    (above, below)
}

fn lognormal_difference(draw: &mut Draw) -> f64 {
    draw.normal().exp() - draw.normal().exp()
}

#[test]
fn wilcoxon_misses_its_own_centre_as_often_as_tabulated() {
    const REPETITIONS: u32 = 10_000;
    // The pseudo-medians of the two sources, by quadrature of the distribution of the mean of two.
    type Row = (&'static str, Source, f64, [(f64, f64); 3]);
    let table: [Row; 3] = [
        ("lognormal", lognormal, -0.427_138_329_6, [(1.1, 3.9), (1.7, 3.4), (2.1, 3.7)]),
        ("failed 15 %", failed, 0.396_135_828_7, [(3.2, 1.3), (3.1, 1.7), (3.3, 2.0)]),
        ("difference of lognormals", lognormal_difference, 0.0, [(1.9, 2.1), (2.6, 2.2), (2.6, 2.4)]),
    ];
    for (name, source, centre, rates) in table {
        for (n, (above, below)) in [8, 10, 20].into_iter().zip(rates) {
            let counted = misses(source, (n, centre, REPETITIONS), |units, _| units.wilcoxon().unwrap());
            agrees(counted.0, REPETITIONS, above, 10_000, &format!("wilcoxon, {name}, n = {n}, above"));
            agrees(counted.1, REPETITIONS, below, 10_000, &format!("wilcoxon, {name}, n = {n}, below"));
        }
    }
}

#[test]
fn bca_misses_other_sources_as_often_as_tabulated() {
    const REPETITIONS: u32 = 1_000;
    type Row = (&'static str, Source, [(f64, f64); 2]);
    let table: [Row; 4] = [
        ("t₃", t3, [(6.7, 6.6), (5.0, 4.9)]),
        ("difference of lognormals", lognormal_difference, [(8.0, 9.8), (6.2, 5.9)]),
        ("two modes", two_modes, [(0.9, 1.4), (2.1, 2.2)]),
        ("failed 15 %", failed, [(12.6, 2.8), (4.5, 2.2)]),
    ];
    for (name, source, rates) in table {
        for (n, (above, below)) in [10, 20].into_iter().zip(rates) {
            let bca = |units: &Units, repetition| units.bca(fresh(78, repetition, 999)).unwrap();
            let counted = misses(source, (n, 0.0, REPETITIONS), bca);
            agrees(counted.0, REPETITIONS, above, 2_000, &format!("bca, {name}, n = {n}, above"));
            agrees(counted.1, REPETITIONS, below, 2_000, &format!("bca, {name}, n = {n}, below"));
        }
    }
}

#[test]
fn t_and_sign_flip_have_the_tabulated_power() {
    const REPETITIONS: u32 = 8_000;
    // n, then t and sign-flip in percent, each at α and at α/4.
    let table = [
        (3, [17.9, 5.1], [0.0, 0.0]),
        (4, [28.7, 9.0], [0.0, 0.0]),
        (5, [40.1, 15.4], [0.0, 0.0]),
        (6, [49.6, 22.5], [34.9, 0.0]),
        (7, [59.3, 30.0], [55.8, 0.0]),
        (8, [68.1, 38.3], [66.1, 24.8]),
        (10, [80.7, 54.5], [79.8, 51.3]),
    ];
    for (n, by_t, by_signs) in table {
        let mut hits = [[0; 2]; 2];
        for repetition in 0..REPETITIONS {
            let shifted: Source = |draw| draw.normal() + 1.0;
            let units =
                Units::of(&sample(shifted, n, &mut Draw::new(&key(13, n), repetition.into()))).unwrap();
            for (fit, hits) in [units.t(), units.signs(draws(0))].into_iter().zip(&mut hits) {
                let q = Claim::new(Region::above(0.0)).test(fit.unwrap()).q;
                hits[0] += u32::from(alpha().admits(q));
                hits[1] += u32::from(alpha().split(4).admits(q));
            }
        }
        for (what, hits, percents) in [("t", hits[0], by_t), ("sign-flip", hits[1], by_signs)] {
            for (at, hits, percent) in [("α", hits[0], percents[0]), ("α/4", hits[1], percents[1])] {
                agrees(hits, REPETITIONS, percent, 8_000, &format!("power of {what}, n = {n}, {at}"));
            }
        }
    }
}

#[test]
fn two_arms_of_other_sizes_err_as_often_as_tabulated() {
    // (name, sources, n, m, student, permutation, Mann–Whitney) in percent.
    type Row = (&'static str, Source, Source, usize, usize, f64, f64, f64);
    let table: [Row; 9] = [
        ("normal", normal, normal, 10, 10, 5.1, 5.3, 4.9),
        ("sd 1 v 3", normal, wide_normal, 10, 10, 5.7, 5.8, 5.9),
        ("lognormal both", lognormal, lognormal, 3, 3, 3.5, 0.0, 0.0),
        ("lognormal both", lognormal, lognormal, 10, 10, 3.6, 5.2, 4.2),
        ("normal v failed", normal, failed, 3, 3, 7.0, 0.0, 0.0),
        ("normal v failed", normal, failed, 10, 10, 8.4, 8.1, 11.0),
        ("normal v failed", normal, failed, 15, 5, 17.7, 16.6, 11.8),
        ("normal v failed", normal, failed, 5, 15, 2.7, 2.9, 6.0),
        ("normal v failed", normal, failed, 20, 20, 6.7, 6.4, 19.2),
    ];
    for (name, first, second, n, m, by_student, by_labels, by_ranks) in table {
        let repetitions = if n + m > 6 { 300 } else { 5_000 };
        let mut hits = [0; 3];
        for repetition in 0..repetitions {
            let mut draw = Draw::new(&key(n as u8 ^ 0x20, m), repetition.into());
            let (a, b) = (sample(first, n, &mut draw), sample(second, m, &mut draw));
            // Arms of 20 are relabelled at random, as in the table.
            let relabelled = permutation(&a, &b, fresh(14, repetition, 1_999));
            for (hit, fit) in hits.iter_mut().zip([student(&a, &b), relabelled, mann_whitney(&a, &b)]) {
                *hit += u32::from(alpha().admits(Claim::new(Region::above(0.0)).test(fit.unwrap()).q));
            }
        }
        let rates = [("student", by_student), ("permutation", by_labels), ("mann-whitney", by_ranks)];
        for ((what, percent), hits) in rates.into_iter().zip(hits) {
            agrees(hits, repetitions, percent, 5_000, &format!("{what}, {name}, {n} v {m}"));
        }
    }
}

#[test]
fn trend_of_twenty_units_errs_as_often_as_tabulated() {
    const REPETITIONS: u32 = 4_000;
    let (mut by_signs, mut by_t) = (0, 0);
    for repetition in 0..REPETITIONS {
        let mut draw = Draw::new(&key(15, 20), repetition.into());
        let rows: Vec<Vec<f64>> = (0..20)
            .map(|_| {
                let own = 2.0 * draw.normal();
                (0..4).map(|_| draw.normal() + own).collect()
            })
            .collect();
        let cells = Cells::new(&[0.0, 1.0, 2.0, 3.0], &rows).unwrap();
        let units = cells.of_units(Statistic::Spearman).unwrap();
        let rejected = |fit| alpha().admits(Claim::new(Region::above(0.0)).test(fit).q);
        by_signs += u32::from(rejected(units.signs_by_draws(fresh(16, repetition, 1_999)).unwrap()));
        by_t += u32::from(rejected(units.t().unwrap()));
    }
    agrees(by_signs, REPETITIONS, 4.2, 4_000, "trend of twenty units, signs");
    agrees(by_t, REPETITIONS, 5.1, 4_000, "trend of twenty units, t");
}

#[test]
fn a_correlation_against_another_bound_misses_as_often_as_tabulated() {
    const REPETITIONS: u32 = 4_000;
    // (ρ of the normal pair, above/below in percent at n = 8, 10, 20).
    let table: [(f64, [(f64, f64); 3]); 3] = [
        (0.0, [(1.8, 1.7), (1.8, 1.8), (1.9, 1.9)]),
        (0.5, [(1.8, 1.9), (1.9, 2.1), (1.3, 2.5)]),
        (0.9, [(2.3, 2.9), (2.3, 3.0), (1.4, 3.1)]),
    ];
    for (rho, rates) in table {
        // Spearman's ρ of a normal pair.
        let truth = 6.0 / std::f64::consts::PI * (rho / 2.0_f64).asin();
        for (n, (above, below)) in [8, 10, 20].into_iter().zip(rates) {
            let mut counted = (0, 0);
            for repetition in 0..REPETITIONS {
                let mut draw = Draw::new(&key(17, n), repetition.into());
                let first: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
                let with = |a: &f64| rho * a + (1.0 - rho * rho).sqrt() * draw.normal();
                let second: Vec<f64> = first.iter().map(with).collect();
                let joined = Joined::new(&first, &second, Coefficient::Spearman).unwrap();
                let interval = joined.fit(draws(0), true).unwrap().interval(alpha());
                counted.0 += u32::from(interval.above(truth));
                counted.1 += u32::from(interval.below(truth));
            }
            agrees(counted.0, REPETITIONS, above, 8_000, &format!("ρ {rho}, n = {n}, above"));
            agrees(counted.1, REPETITIONS, below, 8_000, &format!("ρ {rho}, n = {n}, below"));
        }
    }
}

#[test]
fn more_clusters_help_the_bootstrap_and_not_the_units() {
    const REPETITIONS: u32 = 1_500;
    let skewed: Source = |draw| lognormal(draw) / 2.16;
    // (name, effect, clusters, t of units, t of means, sign-flip of means, percentile bootstrap of means).
    type Row = (&'static str, Source, usize, f64, f64, f64, Option<f64>);
    let table: [Row; 4] = [
        ("normal", normal, 12, 41.5, 5.0, 4.7, None),
        ("normal", normal, 20, 39.7, 4.8, 4.6, Some(6.4)),
        ("lognormal", skewed, 12, 41.8, 11.3, 11.4, None),
        ("lognormal", skewed, 20, 42.2, 11.2, 11.0, Some(11.5)),
    ];
    for (name, effect, count, by_unit, by_mean, by_signs, by_bootstrap) in table {
        let mut hits = [0; 4];
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(32, count), repetition.into());
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for cluster in 0..count {
                let own = effect(&mut draw);
                values.extend((0..10).map(|_| own + draw.normal()));
                labels.extend([cluster; 10]);
            }
            let means = clusters::means(&values, &labels).unwrap();
            let signs = means.signs_by_draws(fresh(33, repetition, 1_999));
            let mut fits = vec![Units::of(&values).unwrap().t(), means.t(), signs];
            if by_bootstrap.is_some() {
                fits.push(means.percentile(fresh(34, repetition, 999)));
            }
            for (hit, fit) in hits.iter_mut().zip(fits) {
                *hit += u32::from(!fit.unwrap().interval(alpha()).contains(0.0));
            }
        }
        let rates = [("units", by_unit, 4_000), ("means", by_mean, 4_000), ("signs", by_signs, 1_500)];
        let rates = rates.into_iter().chain(by_bootstrap.map(|percent| ("bootstrap", percent, 1_000)));
        for ((what, percent, tabulated), hits) in rates.zip(hits) {
            agrees(hits, REPETITIONS, percent, tabulated, &format!("clusters, {name}, G = {count}, {what}"));
        }
    }
}

#[test]
fn step_procedures_seldom_tell_a_wrong_direction_under_any_correlation() {
    const REPETITIONS: u32 = 6_000;
    let (null, mixed, high) = ([0.0; 5], [0.01, 0.01, 0.01, 1.5, 1.5], [1.5, 1.5, 1.5, 1.5, 0.0]);
    // (correlation, means, Holm, Hochberg) in percent.
    let table: [(f64, [f64; 5], f64, f64); 12] = [
        (0.0, null, 4.76, 4.77),
        (0.0, mixed, 2.21, 2.30),
        (0.0, high, 3.96, 4.66),
        (0.5, null, 4.55, 4.57),
        (0.5, mixed, 1.76, 1.83),
        (0.5, high, 4.04, 4.47),
        (0.9, null, 2.79, 3.09),
        (0.9, mixed, 1.30, 1.50),
        (0.9, high, 3.77, 4.16),
        (-0.24, null, 4.94, 4.95),
        (-0.24, mixed, 2.31, 2.40),
        (-0.24, high, 3.80, 4.42),
    ];
    for (rho, means, by_holm, by_hochberg) in table {
        // z_i + c·mean(z), scaled: all pairs have the correlation ρ, which may be negative.
        let own = (1.0 - rho).sqrt();
        let shared = (1.0 + 4.0 * rho).sqrt() - own;
        let (mut holm, mut hochberg) = (0, 0);
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(42, (rho * 100.0) as i8 as u8 as usize), repetition.into());
            let mut columns = vec![Vec::new(); 5];
            for _ in 0..8 {
                let z: Vec<f64> = (0..5).map(|_| draw.normal()).collect();
                let mean = z.iter().sum::<f64>() / 5.0;
                for ((column, z), true_mean) in columns.iter_mut().zip(&z).zip(means) {
                    column.push(true_mean + own * z + shared * mean);
                }
            }
            let test = |column: &Vec<f64>| {
                Claim::new(Region::above(0.0)).test(Units::of(column).unwrap().t().unwrap())
            };
            let tests: Vec<_> = columns.iter().map(test).collect();
            let q: Vec<f64> = tests.iter().map(|test| test.q).collect();
            let wrong = |correction| {
                let adjusted = family::adjust(&q, correction);
                (0..5).any(|i| {
                    let told_wrongly = means[i] <= 0.0 || tests[i].fit.estimate() < 0.0;
                    alpha().admits(adjusted[i].q_tilde) && told_wrongly
                })
            };
            holm += u32::from(wrong(Correction::Holm));
            hochberg += u32::from(wrong(Correction::Hochberg));
        }
        agrees(holm, REPETITIONS, by_holm, 40_000, &format!("Holm, ρ = {rho}, {means:?}"));
        agrees(hochberg, REPETITIONS, by_hochberg, 40_000, &format!("Hochberg, ρ = {rho}, {means:?}"));
    }
}

#[test]
fn looking_again_with_a_fixed_interval_errs_and_a_sequence_is_wider() {
    const REPETITIONS: u32 = 1_500;
    for (name, source, percent) in
        [("normal", normal as Source, 43.0), ("lognormal", lognormal, 61.6), ("failed 15 %", failed, 52.2)]
    {
        let mut ever = 0;
        for repetition in 0..REPETITIONS {
            let values = sample(source, 200, &mut Draw::new(&key(52, 200), repetition.into()));
            let missed = |n: usize| {
                let fit = Units::of(&values[..n]).unwrap().t().unwrap();
                !fit.interval(alpha()).contains(0.0)
            };
            ever += u32::from((2..=values.len()).any(missed));
        }
        agrees(ever, REPETITIONS, percent, 3_000, &format!("repeated t, {name}"));
    }
    // The width of the t-mixture against that of t at one look is a matter of n alone.
    for (n, ratio) in [(5, 3.04), (8, 1.80), (10, 1.71), (20, 1.64)] {
        let values = sample(normal, n, &mut Draw::new(&key(53, n), 0));
        let interval = Units::of(&values).unwrap().t().unwrap().interval(alpha());
        let look = sequential::Mixture::of(&values).unwrap().half_width(0.05);
        let found = look / (0.5 * (interval.high - interval.low));
        assert!((found - ratio).abs() <= 0.005 + 1e-9, "n = {n}: {found}");
    }
}

#[test]
fn betting_narrows_as_tabulated() {
    const REPETITIONS: u64 = 40;
    /// Beta(a, b) for whole a and b: the a-th smallest of a + b − 1 uniform numbers.
    fn beta(a: usize, b: usize, draw: &mut Draw) -> f64 {
        let mut all: Vec<f64> = (1..a + b).map(|_| draw.uniform()).collect();
        all.sort_by(f64::total_cmp);
        all[a - 1]
    }
    let coin: Source = |draw| f64::from(u8::from(draw.uniform() < 0.9));
    let low: Source = |draw| beta(10, 30, draw);
    let high: Source = |draw| beta(18, 2, draw);
    // (name, source, mean, median widths at n = 10, 20, 50, 100).
    let table: [(&str, Source, f64, [f64; 4]); 3] = [
        ("Bernoulli .9", coin, 0.9, [0.555, 0.393, 0.227, 0.160]),
        ("Beta(10, 30)", low, 0.25, [0.480, 0.293, 0.138, 0.076]),
        ("Beta(18, 2)", high, 0.9, [0.523, 0.328, 0.154, 0.085]),
    ];
    for (name, source, mean, widths) in table {
        let (mut ever, mut found) = (0, vec![Vec::new(); widths.len()]);
        for repetition in 0..REPETITIONS {
            let values = sample(source, 100, &mut Draw::new(&key(62, 100), repetition));
            let looks = sequential::betting(&values, (0.0, 1.0), 0.05).unwrap();
            ever += u64::from(looks.iter().any(|look| look.low > mean || look.high < mean));
            for (found, n) in found.iter_mut().zip([10, 20, 50, 100]) {
                found.push(looks[n - 1].high - looks[n - 1].low);
            }
        }
        // Nominally at most 5 %; four of forty would be 10 %.
        assert!(ever <= 3, "{name}: {ever} of {REPETITIONS}");
        for (mut found, wanted) in found.into_iter().zip(widths) {
            found.sort_by(f64::total_cmp);
            let median = found[found.len() / 2];
            // The median of so few widths is good to a tenth.
            assert!((median - wanted).abs() < 0.012 + wanted / 10.0, "{name}: {median} against {wanted}");
        }
    }
}

#[test]
fn a_power_law_over_ten_points_is_covered_as_tabulated() {
    const REPETITIONS: u32 = 300;
    let x: Vec<f64> = (0..10).map(|i| 8.0 * f64::powi(2.0, i)).collect();
    let mut covered = 0;
    for repetition in 0..REPETITIONS {
        let mut draw = Draw::new(&key(82, 10), repetition.into());
        let y: Vec<f64> =
            x.iter().map(|x| (2.0 * x.powf(-0.5) + 0.3) * (1.0 + 0.02 * draw.normal())).collect();
        let found = power_law::offset(&x, &y, Weights::Relative);
        covered += u32::from(found.is_ok_and(|fit| fit.exponent.interval(alpha()).contains(0.5)));
    }
    agrees(covered, REPETITIONS, 94.0, 400, "power law with offset, k = 10");
}

/// The probability that the 95 % interval for paired shares lies wholly above, and wholly below, the true difference:
/// summed over all tables, so that there is no error of simulation. `p` is the law of (both, only first, only second,
/// neither).
fn missed_pairs(n: u64, p: [f64; 4]) -> (f64, f64) {
    let logs: Vec<f64> = std::iter::once(0.0)
        .chain((1..=n).scan(0.0, |sum, k| {
            *sum += (k as f64).ln();
            Some(*sum)
        }))
        .collect();
    let truth = p[1] - p[2];
    let (mut above, mut below) = (0.0, 0.0);
    for a in 0..=n {
        for b in 0..=n - a {
            for c in 0..=n - a - b {
                let k = [a, b, c, n - a - b - c];
                let term =
                    |(k, p): (&u64, &f64)| if *k == 0 { 0.0 } else { *k as f64 * p.ln() - logs[*k as usize] };
                let chance = (logs[n as usize] + k.iter().zip(&p).map(term).sum::<f64>()).exp();
                let pairs = Pairs { both: k[0], only_first: k[1], only_second: k[2], neither: k[3] };
                let interval = paired(pairs, true).unwrap().interval(alpha());
                above += if interval.above(truth) { chance } else { 0.0 };
                below += if interval.below(truth) { chance } else { 0.0 };
            }
        }
    }
    (above, below)
}

#[test]
fn the_interval_of_paired_shares_covers_their_difference() {
    for n in [10, 20, 30] {
        let mut covered = Vec::new();
        for first in [0.1, 0.3, 0.5, 0.7, 0.9, 0.95] {
            for second in [0.1, 0.3, 0.5, 0.7, 0.9, 0.95] {
                for dependence in [0.0, 0.45, 0.9] {
                    let most = f64::min(first, second);
                    let both = first * second + dependence * (most - first * second);
                    let p = [both, first - both, second - both, 1.0 - first - second + both]
                        .map(|p: f64| p.max(0.0));
                    let (above, below) = missed_pairs(n, p);
                    covered.push(1.0 - above - below);
                }
            }
        }
        let (least, mean) =
            (covered.iter().copied().fold(1.0, f64::min), covered.iter().sum::<f64>() / covered.len() as f64);
        assert!(least > 0.935, "n = {n}: the least coverage is {least}");
        assert!((0.955..0.975).contains(&mean), "n = {n}: the mean coverage is {mean}");
    }
}

#[test]
fn the_interval_of_the_worst_group_covers_the_lowest_mean() {
    const REPETITIONS: u32 = 400;
    // Means of the groups, and how much of a unit's value they share.
    let designs: [(&[f64], f64); 7] = [
        (&[0.0; 5], 0.0),
        (&[0.0; 5], 0.5),
        (&[0.0; 10], 0.0),
        (&[0.0; 2], 0.5),
        (&[-1.0, 0.0, 0.0, 0.0, 0.0], 0.0),
        (&[-1.0, 0.0, 0.0, 0.0, 0.0], 0.5),
        (&[-0.3, 0.0, 0.0, 0.0, 0.0], 0.0),
    ];
    for (index, (means, shared)) in designs.into_iter().enumerate() {
        let lowest = means.iter().copied().fold(f64::INFINITY, f64::min);
        let (mut above, mut below, mut mirrored) = (0, 0, 0);
        for repetition in 0..REPETITIONS {
            let mut draw = Draw::new(&key(91, index), repetition.into());
            let mut columns = vec![Vec::new(); means.len()];
            for _ in 0..20 {
                let common = f64::sqrt(shared) * draw.normal();
                for (column, mean) in columns.iter_mut().zip(means) {
                    column.push(mean + common + f64::sqrt(1.0 - shared) * draw.normal());
                }
            }
            let draws = fresh(92, repetition, 399);
            let interval = Groups::crossed(columns.clone()).unwrap().lowest(draws).interval(alpha());
            above += u32::from(interval.above(lowest));
            below += u32::from(interval.below(lowest));
            let negated = columns.iter().map(|column| column.iter().map(|x| -x).collect()).collect();
            let highest = Groups::crossed(negated).unwrap().highest(draws).interval(alpha());
            mirrored += u32::from(highest.low == -interval.high && highest.high == -interval.low);
        }
        assert_eq!(mirrored, REPETITIONS);
        // Nominal 2.5 % a side; 6 % is beyond what 400 repetitions of 2.5 % give once in ten thousand.
        let most = REPETITIONS * 6 / 100;
        assert!(above <= most && below <= most, "design {index}: {above} above, {below} below");
    }
}

#[test]
fn clusters_that_count_by_their_units_err_as_often_as_they_may() {
    const REPETITIONS: u32 = 4_000;
    let sizes = [1, 2, 3, 5, 8, 13, 2, 4];
    let mut wrong = 0;
    for repetition in 0..REPETITIONS {
        let mut draw = Draw::new(&key(93, 8), repetition.into());
        let mean = |size: &usize| {
            let own = draw.normal();
            let noise: f64 = (0..*size).map(|_| draw.normal()).sum::<f64>() / *size as f64;
            own + noise
        };
        let means = Units::of(&sizes.iter().map(mean).collect::<Vec<f64>>()).unwrap();
        let interval = clusters::weighted(&means, &sizes, draws(0)).unwrap().interval(alpha());
        wrong += u32::from(!interval.contains(0.0));
    }
    // Exact under symmetry: 12 of 256 flips, 4.69 %.
    agrees(wrong, REPETITIONS, 4.69, 100_000, "clusters by their units");
}
