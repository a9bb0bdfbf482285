//! The tables on which the defaults rest, repeated with this crate's own code.
//!
//! Each rate must lie within a 99.9 % two-sample binomial band of the tabulated one, plus half a unit of the
//! table's last digit. The key is fixed, so a run is the same everywhere; it was not chosen by its result.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod sources;

use avow_stats::difference::welch;
use avow_stats::rng::{Draw, Draws, Key};
use avow_stats::trend::{self, Cells, Statistic};
use avow_stats::{Claim, Fit, Region, Units};
use common::{alpha, draws};
use sources::*;

fn lognormal_difference(draw: &mut Draw) -> f64 {
    draw.normal().exp() - draw.normal().exp()
}

/// A tabulated rate in percent and how many repetitions it comes from.
struct Tabulated {
    percent: f64,
    repetitions: u32,
}

impl Tabulated {
    #[track_caller]
    fn agrees(&self, hits: u32, repetitions: u32, what: &str) {
        common::agrees(hits, repetitions, self.percent, self.repetitions, what);
    }
}

/// Counts (interval wholly above 0, wholly below 0) over repetitions.
fn misses(source: Source, n: usize, repetitions: u32, fit: impl Fn(&Units, u32) -> Fit) -> (u32, u32) {
    let (mut above, mut below) = (0, 0);
    for repetition in 0..repetitions {
        let mut draw = Draw::new(&Key([n as u8; 32]), repetition.into());
        let units = Units::of(&sample(source, n, &mut draw)).unwrap();
        let interval = fit(&units, repetition).interval(alpha());
        above += u32::from(interval.above(0.0));
        below += u32::from(interval.below(0.0));
    }
    (above, below)
}

const SIZES: [usize; 4] = [3, 5, 10, 20];

/// (name, source, t at n = 3, 5, 10, 20, sign-flip at n = 10, 20), each as above/below.
#[expect(clippy::type_complexity, reason = "the rows of a printed table")]
const ONE_MEAN: [(&str, Source, [(f64, f64); 4], [(f64, f64); 2]); 6] = [
    ("normal", normal, [(2.5, 2.4), (2.6, 2.4), (2.5, 2.5), (2.4, 2.5)], [(2.4, 2.5), (3.0, 2.2)]),
    ("t₃", t3, [(2.0, 1.7), (1.8, 1.8), (1.9, 2.1), (2.1, 2.0)], [(2.3, 2.5), (2.5, 1.9)]),
    (
        "difference of lognormals",
        lognormal_difference,
        [(1.4, 1.3), (1.2, 1.0), (1.7, 1.7), (1.9, 1.8)],
        [(2.5, 2.2), (2.4, 2.5)],
    ),
    ("two modes", two_modes, [(12.5, 12.7), (3.0, 3.1), (3.0, 2.8), (2.9, 2.5)], [(2.5, 2.4), (2.9, 2.6)]),
    (
        "lognormal",
        lognormal,
        [(0.2, 15.6), (0.1, 17.5), (0.1, 15.4), (0.2, 13.1)],
        [(0.2, 14.8), (0.3, 13.3)],
    ),
    ("failed 15 %", failed, [(7.3, 0.4), (11.4, 0.2), (10.9, 0.5), (6.4, 0.8)], [(10.8, 0.4), (6.1, 0.9)]),
];

#[test]
fn t_misses_as_often_as_tabulated() {
    const REPETITIONS: u32 = 20_000;
    for (name, source, table, _) in ONE_MEAN {
        for (n, (above, below)) in SIZES.into_iter().zip(table) {
            let counted = misses(source, n, REPETITIONS, |units, _| units.t().unwrap());
            let tabulated = |percent| Tabulated { percent, repetitions: 10_000 };
            tabulated(above).agrees(counted.0, REPETITIONS, &format!("t, {name}, n = {n}, above"));
            tabulated(below).agrees(counted.1, REPETITIONS, &format!("t, {name}, n = {n}, below"));
        }
    }
}

#[test]
fn sign_flip_misses_as_often_as_tabulated() {
    for (name, source, _, table) in ONE_MEAN {
        for n in [3, 5] {
            let (above, below) = misses(source, n, 500, |units, _| units.signs(draws(0)).unwrap());
            assert_eq!((above, below), (0, 0), "sign-flip has no finite interval at n = {n}");
        }
        // At n = 20 the table drew 1,999 subsets too, afresh for each repetition here.
        let random = |units: &Units, repetition: u32| {
            let mut key = [99; 32];
            key[..4].copy_from_slice(&repetition.to_le_bytes());
            units.signs_by_draws(Draws { key: Key(key), count: 1_999 }).unwrap()
        };
        let ten = misses(source, 10, 20_000, |units, _| units.signs(draws(0)).unwrap());
        let twenty = misses(source, 20, 4_000, random);
        for ((n, repetitions, tabulated), (counted, (above, below))) in
            [(10, 20_000, 10_000), (20, 4_000, 2_000)].into_iter().zip([ten, twenty].into_iter().zip(table))
        {
            let rate = |percent| Tabulated { percent, repetitions: tabulated };
            rate(above).agrees(counted.0, repetitions, &format!("sign-flip, {name}, n = {n}, above"));
            rate(below).agrees(counted.1, repetitions, &format!("sign-flip, {name}, n = {n}, below"));
        }
    }
}

#[test]
fn exact_sign_flip_of_twenty_is_exact_under_symmetry() {
    // One-sample band of the nominal 5 %: the enumeration of 2²⁰ subsets itself, on fewer repetitions.
    const REPETITIONS: u32 = 150;
    let (above, below) = misses(normal, 20, REPETITIONS, |units, _| units.signs(draws(0)).unwrap());
    let (rate, n) = (f64::from(above + below) / f64::from(REPETITIONS), f64::from(REPETITIONS));
    assert!((rate - 0.05).abs() < 3.29 * (0.05 * 0.95 / n).sqrt(), "{rate}");
}

#[test]
fn welch_errs_as_often_as_tabulated() {
    const REPETITIONS: u32 = 20_000;
    let table: [(&str, Source, Source, usize, usize, f64); 15] = [
        ("normal", normal, normal, 3, 3, 3.7),
        ("normal", normal, normal, 5, 5, 4.5),
        ("normal", normal, normal, 10, 10, 5.0),
        ("sd 1 v 3", normal, wide_normal, 5, 5, 5.8),
        ("sd 1 v 3", normal, wide_normal, 10, 10, 5.0),
        ("sd 1 v 3", normal, wide_normal, 5, 15, 4.6),
        ("sd 1 v 3", normal, wide_normal, 15, 5, 5.2),
        ("lognormal both", lognormal, lognormal, 3, 3, 2.1),
        ("lognormal both", lognormal, lognormal, 5, 5, 2.1),
        ("lognormal both", lognormal, lognormal, 10, 10, 2.9),
        ("lognormal both", lognormal, lognormal, 5, 15, 5.7),
        ("normal v failed", normal, failed, 5, 5, 7.6),
        ("normal v failed", normal, failed, 10, 10, 8.0),
        ("normal v failed", normal, failed, 20, 20, 6.4),
        ("normal v failed", normal, failed, 15, 5, 11.5),
    ];
    for (name, first, second, n, m, percent) in table {
        let mut hits = 0;
        for repetition in 0..REPETITIONS {
            let mut draw =
                Draw::new(&Key([n as u8 ^ 0x80, m as u8].repeat(16).try_into().unwrap()), repetition.into());
            let (a, b) = (sample(first, n, &mut draw), sample(second, m, &mut draw));
            let test = Claim::new(Region::above(0.0)).test(welch(&a, &b).unwrap());
            hits += u32::from(alpha().admits(test.q));
        }
        Tabulated { percent, repetitions: 10_000 }.agrees(
            hits,
            REPETITIONS,
            &format!("Welch, {name}, {n} v {m}"),
        );
    }
}

#[test]
fn sign_flip_has_the_tabulated_power() {
    // True effect of one standard deviation: 34.9, 55.8, 66.1, 79.8 % at n = 6, 7, 8, 10.
    for (n, percent) in [(6, 34.9), (7, 55.8), (8, 66.1), (10, 79.8)] {
        let shifted: Source = |draw| draw.normal() + 1.0;
        let (above, below) = misses(shifted, n, 10_000, |units, _| units.signs(draws(0)).unwrap());
        Tabulated { percent, repetitions: 10_000 }.agrees(
            above + below,
            10_000,
            &format!("power at n = {n}"),
        );
    }
}

/// Rows of a design of `n` units and four levels: slope·level + noise + an offset of the unit.
fn rows(slope: f64, offset: f64, n: usize, draw: &mut Draw) -> Vec<Vec<f64>> {
    (0..n)
        .map(|_| {
            let own = offset * draw.normal();
            (0..4).map(|k| slope * f64::from(k) + draw.normal() + own).collect()
        })
        .collect()
}

const LEVELS: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

#[test]
fn pooled_trend_misses_as_often_as_tabulated() {
    const REPETITIONS: u32 = 3_000;
    type Row = (f64, f64, [(f64, f64); 3]);
    // (slope, true ρ, false above / false below at n = 5, 10, 20).
    let table: [Row; 3] = [
        (0.5, 0.414, [(2.8, 1.6), (2.3, 1.6), (3.0, 2.4)]),
        (1.0, 0.685, [(4.7, 0.6), (4.3, 1.4), (4.5, 1.6)]),
        (2.0, 0.888, [(3.8, 0.5), (4.0, 0.6), (4.0, 1.3)]),
    ];
    for (slope, rho, rates) in table {
        for (n, (above, below)) in [5, 10, 20].into_iter().zip(rates) {
            let mut counted = (0, 0);
            for repetition in 0..REPETITIONS {
                let rows = rows(slope, 0.7, n, &mut Draw::new(&Key([n as u8 + 100; 32]), repetition.into()));
                let fit = trend::pooled(&Cells::new(&LEVELS, &rows).unwrap(), Statistic::Spearman).unwrap();
                let interval = fit.interval(alpha());
                counted.0 += u32::from(interval.above(rho));
                counted.1 += u32::from(interval.below(rho));
            }
            let rate = |percent| Tabulated { percent, repetitions: 3_000 };
            rate(above).agrees(counted.0, REPETITIONS, &format!("pooled ρ {rho}, n = {n}, above"));
            rate(below).agrees(counted.1, REPETITIONS, &format!("pooled ρ {rho}, n = {n}, below"));
        }
    }
}

#[test]
fn trend_of_units_errs_as_often_as_tabulated() {
    const REPETITIONS: u32 = 10_000;
    // (n, sign-flip, t) in percent, under no trend.
    for (n, signs, t) in [(5, 0.0, 6.6), (6, 1.9, 6.6), (8, 3.3, 6.1), (10, 3.8, 5.5)] {
        let (mut by_signs, mut by_t) = (0, 0);
        for repetition in 0..REPETITIONS {
            let rows = rows(0.0, 2.0, n, &mut Draw::new(&Key([n as u8 + 150; 32]), repetition.into()));
            let units = Cells::new(&LEVELS, &rows).unwrap().of_units(Statistic::Spearman).unwrap();
            let rejected = |fit| alpha().admits(Claim::new(Region::above(0.0)).test(fit).q);
            by_signs += u32::from(rejected(units.signs(draws(0)).unwrap()));
            by_t += u32::from(rejected(units.t().unwrap()));
        }
        let tabulated = |percent| Tabulated { percent, repetitions: 4_000 };
        tabulated(signs).agrees(by_signs, REPETITIONS, &format!("trend of units, signs, n = {n}"));
        tabulated(t).agrees(by_t, REPETITIONS, &format!("trend of units, t, n = {n}"));
    }
}
