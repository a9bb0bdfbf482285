//! Properties that hold for all data: equivariance, mirrors, duality, monotone corrections.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::difference::welch;
use avow_stats::trend::{self, Cells, Statistic};
use avow_stats::{
    Adjusted, Claim, Combination, Correction, Decision, Fit, Level, Pair, Part, Region, Side, Units, decide,
    family, proportion,
};
use common::{alpha, draws, level};
use proptest::prelude::*;

/// Values with many ties: multiples of .01 in a small range, so that bounds hit them.
fn coarse(least: usize, most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-20_i32..=20).prop_map(|v| f64::from(v) / 100.0), least..=most)
}

fn smooth(least: usize, most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-10.0..10.0_f64, least..=most)
}

fn bound() -> impl Strategy<Value = f64> {
    (-25_i32..=25).prop_map(|v| f64::from(v) / 100.0)
}

fn some_level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec!["0.01", "0.05", "0.1", "0.2", "0.25", "0.3"]).prop_map(level)
}

/// Every dual method on the same values; the second half is the other arm of Welch.
fn fits(values: &[f64]) -> Vec<Fit> {
    let units = Units::of(values).unwrap();
    let (first, second) = values.split_at(values.len() / 2);
    let successes = values.iter().filter(|v| **v > 0.0).count() as u64;
    let rows: Vec<Vec<f64>> = values.iter().map(|v| vec![0.0, *v, (v * 700.0).sin(), 0.05]).collect();
    let pooled =
        Cells::new(&[1.0, 2.0, 3.0, 4.0], &rows).and_then(|c| trend::pooled(&c, Statistic::Spearman));
    let mut fits = vec![
        units.t().unwrap(),
        units.signs(draws(0)).unwrap(),
        units.signs_by_draws(draws(199)).unwrap(),
        units.median().unwrap(),
        welch(first, second).unwrap(),
        proportion::one_arm(successes, values.len() as u64).unwrap(),
    ];
    fits.extend(pooled);
    fits
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interval_excludes_a_bound_exactly_when_its_test_rejects(
        values in coarse(5, 9), bound in bound(), error in some_level(),
    ) {
        // Equal units follow the point law, whose interval is the point whatever n says.
        for fit in fits(&values).into_iter().filter(|f| !f.no_variation()) {
            let interval = fit.interval(error);
            let (above, below) = (fit.p_at_most(bound), fit.p_at_least(bound));
            prop_assert_eq!(interval.above(bound), error.admits(2.0 * above), "{} {:?} {}", fit.method(), interval, above);
            prop_assert_eq!(interval.below(bound), error.admits(2.0 * below), "{} {:?} {}", fit.method(), interval, below);
        }
    }

    #[test]
    fn a_lone_claim_follows_its_interval(values in coarse(5, 9), bound in bound(), one in any::<bool>()) {
        let side = if one { Side::One } else { Side::Two };
        for fit in fits(&values).into_iter().filter(|f| !f.no_variation()) {
            let test = Claim::new(Region::above(bound)).with_side(side).test(fit);
            let interval = test.interval(test.claim.interval_error(alpha(), 1));
            let decision = decide(&test.evidence(), &Adjusted::alone(test.q), alpha());
            prop_assert_eq!(decision == Decision::Supported, interval.above(bound));
            prop_assert_eq!(decision == Decision::Refuted, interval.below(bound));
        }
    }

    #[test]
    fn tests_of_both_sides_cover_everything(values in coarse(5, 9), bound in bound()) {
        for fit in fits(&values) {
            prop_assert!(fit.p_at_most(bound) + fit.p_at_least(bound) >= 1.0 - 1e-9, "{}", fit.method());
        }
    }

    #[test]
    fn p_is_monotone_in_the_bound(values in coarse(5, 9), first in bound(), second in bound()) {
        let (low, high) = (first.min(second), first.max(second));
        for fit in fits(&values) {
            prop_assert!(fit.p_at_most(low) <= fit.p_at_most(high));
            prop_assert!(fit.p_at_least(low) >= fit.p_at_least(high));
            // While the claim is what the data favour, a stronger claim has the larger q.
            let q = |b| Claim::new(Region::above(b)).test(fit.clone());
            let (weak, strong) = (q(low), q(high));
            if strong.pair.support <= strong.pair.refute {
                prop_assert!(weak.q <= strong.q);
            }
        }
    }

    #[test]
    fn intervals_nest(values in coarse(5, 9)) {
        for fit in fits(&values) {
            let (narrow, wide) = (fit.interval(level("0.1")), fit.interval(level("0.05")));
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
            prop_assert!(narrow.low <= fit.estimate() && fit.estimate() <= narrow.high || fit.no_variation());
        }
    }

    #[test]
    fn shift_and_scale_move_the_interval(
        values in smooth(6, 9), shift in -5.0..5.0_f64, scale in 0.1..10.0_f64, bound in -3.0..3.0_f64,
    ) {
        let moved: Vec<f64> = values.iter().map(|v| scale * v + shift).collect();
        // The last two are a proportion and a pooled correlation, which are not locations.
        for (fit, other) in fits(&values).into_iter().zip(fits(&moved)).take(4) {
            let (a, b) = (fit.interval(alpha()), other.interval(alpha()));
            for (end, image) in [(a.low, b.low), (a.high, b.high), (fit.estimate(), other.estimate())] {
                let want = scale * end + shift;
                prop_assert!(want == image || (want - image).abs() < 1e-9 * (1.0 + want.abs()), "{} {want} {image}", fit.method());
            }
            let (p, image) = (fit.p_at_most(bound), other.p_at_most(scale * bound + shift));
            prop_assert!((p - image).abs() < 1e-9, "{} {p} {image}", fit.method());
        }
    }

    #[test]
    fn extreme_scales_change_no_p(values in smooth(6, 9), scale in prop::sample::select(vec![1e-290, 1e-160, 1e160, 1e290])) {
        let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
        for (fit, other) in fits(&values).into_iter().zip(fits(&scaled)).take(5) {
            let (p, image) = (fit.p_at_most(0.0), other.p_at_most(0.0));
            prop_assert!((p - image).abs() <= 1e-9 * p, "{} {p} {image}", fit.method());
        }
        let axis: Vec<f64> = (0..values.len()).map(|i| (i * i) as f64).collect();
        let p = |values: &[f64]| avow_stats::slope::of_points(&axis, values).unwrap().p_at_most(0.0);
        prop_assert!((p(&values) - p(&scaled)).abs() <= 1e-9);
    }

    #[test]
    fn rank_correlations_ignore_shift_and_scale(values in smooth(6, 9), shift in -5.0..5.0_f64, scale in 0.1..10.0_f64) {
        let rows: Vec<Vec<f64>> = values.iter().map(|v| vec![*v, v * v, 3.0 - v, v.sin()]).collect();
        let moved: Vec<Vec<f64>> = rows.iter().map(|r| r.iter().map(|v| scale * v + shift).collect()).collect();
        let levels = [1.0, 2.0, 5.0, 6.0];
        for statistic in [Statistic::Spearman, Statistic::Kendall] {
            let fit = |rows: &[Vec<f64>]| trend::pooled(&Cells::new(&levels, rows).unwrap(), statistic).unwrap();
            prop_assert!((fit(&rows).estimate() - fit(&moved).estimate()).abs() < 1e-12);
            prop_assert!((fit(&rows).p_at_most(0.3) - fit(&moved).p_at_most(0.3)).abs() < 1e-9);
        }
    }

    #[test]
    fn swapping_arms_mirrors_the_verdict(first in coarse(5, 9), second in coarse(5, 9), bound in bound()) {
        let n = first.len().min(second.len());
        let (a, b) = (&first[..n], &second[..n]);
        let pairs = [Units::paired(a, b).unwrap(), Units::paired(b, a).unwrap()];
        let swaps = [
            [pairs[0].t().unwrap(), pairs[1].t().unwrap()],
            [pairs[0].signs(draws(0)).unwrap(), pairs[1].signs(draws(0)).unwrap()],
            [welch(&first, &second).unwrap(), welch(&second, &first).unwrap()],
        ];
        for [fit, swapped] in swaps {
            let claim = Claim::new(Region::above(bound)).with_null(0.0).test(fit);
            let mirror = Claim::new(Region::below(-bound)).with_null(0.0).test(swapped);
            prop_assert!((claim.q - mirror.q).abs() < 1e-12);
            let verdict = |t: &avow_stats::Inference| decide(&t.evidence(), &Adjusted::alone(t.q), alpha());
            prop_assert_eq!(verdict(&claim), verdict(&mirror));
        }
    }

    #[test]
    fn refuted_with_the_bound_at_the_null_is_always_reversed(values in coarse(5, 9), other in 0.0..1.0_f64) {
        for fit in fits(&values).into_iter().take(5) {
            let test = Claim::new(Region::above(0.0)).with_null(0.0).test(fit);
            for correction in [Correction::Holm, Correction::Bonferroni, Correction::None] {
                let adjusted = family::adjust(&[test.q, other, 0.01], correction)[0];
                prop_assert_ne!(decide(&test.evidence(), &adjusted, alpha()), Decision::Refuted);
            }
        }
    }

    #[test]
    fn corrections_never_lower_p_and_keep_order(q in prop::collection::vec(0.0..1.0_f64, 1..12)) {
        for corrected in [family::holm(&q), family::bonferroni(&q)] {
            for i in 0..q.len() {
                prop_assert!(corrected[i] >= q[i] && corrected[i] <= 1.0);
                for j in 0..q.len() {
                    prop_assert!(q[i] > q[j] || corrected[i] <= corrected[j]);
                }
            }
        }
        for (holm, bonferroni) in family::holm(&q).iter().zip(family::bonferroni(&q)) {
            prop_assert!(*holm <= bonferroni);
        }
    }

    #[test]
    fn a_void_member_never_lowers_a_corrected_p(q in prop::collection::vec(0.0..1.0_f64, 1..12)) {
        let mut more = q.clone();
        more.push(1.0);
        for correct in [family::holm, family::bonferroni] {
            for (before, after) in correct(&q).iter().zip(correct(&more)) {
                prop_assert!(after >= *before);
            }
        }
    }

    #[test]
    fn bonferroni_and_its_interval_agree(values in coarse(6, 9), bound in bound(), members in 1_u32..5) {
        let fit = Units::of(&values).unwrap().signs(draws(0)).unwrap();
        prop_assume!(!fit.no_variation());
        let test = Claim::new(Region::above(bound)).test(fit);
        let mut q = vec![0.5; members as usize];
        q[0] = test.q;
        let adjusted = family::adjust(&q, Correction::Bonferroni)[0];
        let decision = decide(&test.evidence(), &adjusted, alpha());
        let interval = test.interval(test.claim.interval_error(alpha(), members));
        prop_assert_eq!(decision == Decision::Supported, interval.above(bound));
    }

    #[test]
    fn combinations_are_monotone(p in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 2..6), smaller in 0.0..1.0_f64) {
        let part = |(support, refute): (f64, f64)| Part::Tested {
            pair: Pair { support, refute },
            reach: Pair { support: 0.0, refute: 0.0 },
        };
        let parts: Vec<Part> = p.iter().copied().map(part).collect();
        let mut stronger = p.clone();
        stronger[0].0 *= smaller;
        let stronger: Vec<Part> = stronger.into_iter().map(part).collect();
        for wanted in 1..=parts.len() {
            let (before, after) =
                (Combination::new(&parts, wanted, false).unwrap(), Combination::new(&stronger, wanted, false).unwrap());
            prop_assert!(after.pair.support <= before.pair.support && after.pair.refute == before.pair.refute);
        }
    }

    #[test]
    fn a_calibrated_score_is_positive_exactly_when_its_p_reaches_the_level(
        nulls in prop::collection::vec((0_i32..40).prop_map(|v| f64::from(v) / 40.0), 19..60), observed in 0_i32..44, error in some_level(),
    ) {
        let observed = f64::from(observed) / 40.0;
        let Ok(found) = avow_stats::null::calibrate(observed, &nulls, error, Some(1.2)) else { return Ok(()) };
        let total = nulls.len() as u64 + 1;
        prop_assert_eq!(found.score > 0.0, found.p <= error.floor(total) as f64 / total as f64 + 1e-15);
    }

    #[test]
    fn levels_read_what_they_print(numerator in 1_u64..4_999, places in 4_usize..5) {
        let text = format!("0.{numerator:0places$}");
        prop_assert_eq!(level(&text), Level::ratio(numerator, 10_000).unwrap());
        prop_assert_eq!(level(&level(&text).to_string()), level(&text));
    }
}
