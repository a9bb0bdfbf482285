//! The law: from p-values to verdicts, reasons, qualifiers, combinations and reach.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::curve::{Point, Tolerance, ToleranceError, curve};
use avow_stats::difference::welch;
use avow_stats::family::adjust;
use avow_stats::null::{NullError, calibrate, needed_permutations};
use avow_stats::reach::{Planned, Warning, at_registration};
use avow_stats::threshold::Every;
use avow_stats::trend::{self, Cells, Of, Statistic, TrendError};
use avow_stats::{
    Adjusted, Claim, Combination, Correction, Decision, Inconclusive, Inference, Method, Pair, Part,
    Qualifier, Region, RegionError, Sample, Side, Units, Void, by_position, decide, proportion, qualify,
    slope,
};
use common::{alpha, close, d, draws, level};

fn alone(test: &Inference) -> Decision {
    decide(&test.evidence(), &Adjusted::alone(test.q), alpha())
}

fn by_t(region: Region, values: &[f64]) -> Inference {
    Claim::new(region).with_null(0.0).test(Units::of(values).unwrap().t().unwrap())
}

const HIGH: [f64; 5] = [1.0, 1.2, 0.9, 1.1, 1.05];
const LOW: [f64; 5] = [-1.0, -1.2, -0.9, -1.1, -1.05];

#[test]
fn the_interval_law_for_a_family_of_one() {
    assert_eq!(alone(&by_t(Region::above(0.0), &HIGH)), Decision::Supported);
    assert_eq!(alone(&by_t(Region::above(0.0), &LOW)), Decision::Reversed);
    assert_eq!(alone(&by_t(Region::below(0.0), &LOW)), Decision::Supported);
    assert_eq!(alone(&by_t(Region::below(0.0), &HIGH)), Decision::Reversed);
    assert_eq!(alone(&by_t(Region::above(1.0), &HIGH)), Decision::Inconclusive(Inconclusive::CrossesBound));
    assert_eq!(alone(&by_t(Region::Between { low: 0.5, high: 1.5 }, &HIGH)), Decision::Supported);
    assert_eq!(alone(&by_t(Region::Between { low: 2.0, high: 3.0 }, &HIGH)), Decision::Refuted);
}

#[test]
fn reversed_needs_the_mirror_and_a_null() {
    // Near −1: beyond the mirror of .5, short of the mirror of 2.
    assert_eq!(alone(&by_t(Region::above(0.5), &LOW)), Decision::Reversed);
    assert_eq!(alone(&by_t(Region::above(2.0), &LOW)), Decision::Refuted);
    assert_eq!(alone(&by_t(Region::below(-2.0), &HIGH)), Decision::Refuted);
    // A level has no null; a non-inferiority bound has no mirror.
    let no_null = Claim::new(Region::above(0.0)).test(Units::of(&LOW).unwrap().t().unwrap());
    assert_eq!(alone(&no_null), Decision::Refuted);
    assert_eq!(alone(&by_t(Region::above(-0.01), &LOW)), Decision::Refuted);
    assert_eq!(Region::above(-0.01).mirror(0.0, false), None);
    assert_eq!(Region::below(0.25).mirror(0.5, false), Some(0.75));
    // A ratio of 1.25 mirrors to 0.8.
    assert_eq!(Region::above(1.25).mirror(1.0, true), Some(0.8));
}

#[test]
fn a_gap_is_neither_side() {
    let gap = Region::Above { bound: 2.0, refute: -2.0 };
    assert_eq!(alone(&by_t(gap, &HIGH)), Decision::Inconclusive(Inconclusive::CrossesBound));
    assert_eq!(alone(&by_t(Region::Above { bound: 2.0, refute: 1.5 }, &HIGH)), Decision::Refuted);
    assert!(Region::Above { bound: 0.0, refute: 1.0 }.checked().is_err());
    assert!(Region::Below { bound: 1.0, refute: 0.0 }.checked().is_err());
    assert_eq!(
        Region::Between { low: 1.0, high: 1.0 }.checked(),
        Err(RegionError::Empty { low: 1.0, high: 1.0 })
    );
    assert_eq!(Region::above(f64::NAN).checked(), Err(RegionError::NotFinite));
    assert!(Region::Equivalence { target: 0.0, margin: 0.0 }.checked().is_err());
}

#[test]
fn sides_double_what_they_should() {
    let pair = Pair { support: 0.03, refute: 0.97 };
    assert_eq!(Claim::new(Region::above(0.0)).q(pair), 0.06);
    assert_eq!(Claim::new(Region::above(0.0)).with_side(Side::One).q(pair), 0.03);
    let equivalence = Claim::new(Region::Equivalence { target: 0.0, margin: 1.0 });
    assert_eq!(equivalence.q(pair), 0.03);
    assert_eq!(equivalence.q(Pair { support: 0.97, refute: 0.03 }), 0.06);
    assert_eq!(equivalence.interval_error(alpha(), 4), level("0.025"));
    assert_eq!(Claim::new(Region::above(0.0)).interval_error(alpha(), 4), level("0.0125"));
}

#[test]
fn an_equivalence_is_refuted_at_the_two_sided_level() {
    let test = by_t(Region::Equivalence { target: 0.0, margin: 0.1 }, &HIGH);
    assert_eq!(alone(&test), Decision::Refuted);
    assert!(test.interval(alpha()).above(0.1));
    assert_eq!(alone(&by_t(Region::Equivalence { target: 1.0, margin: 0.5 }, &HIGH)), Decision::Supported);
}

#[test]
fn equal_units_decide_by_their_number() {
    let same = |n: usize| Units::of(&vec![0.1 + 0.2; n]).unwrap();
    for fit in [same(5).t().unwrap(), same(5).signs(draws(0)).unwrap()] {
        assert!(fit.no_variation());
        for side in [Side::Two, Side::One] {
            let test = Claim::new(Region::above(0.0)).with_side(side).test(fit.clone());
            assert_eq!(test.q, 0.0625);
            assert_eq!(alone(&test), Decision::Inconclusive(Inconclusive::NoVariation));
        }
        assert_eq!(Claim::new(Region::above(0.3)).test(fit.clone()).q, 1.0);
        let close = Claim::new(Region::Equivalence { target: 0.3, margin: 0.1 }).test(fit.clone());
        assert_eq!(close.q, 0.0625);
        let interval = fit.interval(alpha());
        assert_eq!((interval.low, interval.high), (fit.estimate(), fit.estimate()));
    }
    assert_eq!(alone(&Claim::new(Region::above(0.0)).test(same(6).t().unwrap())), Decision::Supported);
    assert_eq!(by_position(&Claim::new(Region::above(0.0)), 0.3, 0.0), Decision::Supported);
}

#[test]
fn constant_arms() {
    let (ones, twos) = ([1.0; 4], [2.0; 4]);
    let both = Claim::new(Region::above(0.0)).with_null(0.0).test(welch(&twos, &ones).unwrap());
    close(both.q, 2.0 / 70.0, 1e-15, "2/C(8, 4)");
    assert_eq!(alone(&both), Decision::Supported);
    assert_eq!(Claim::new(Region::above(0.0)).test(welch(&ones, &ones).unwrap()).q, 1.0);
    // One constant arm leaves a one-sample t with the other's n − 1.
    let varied = [1.0, 1.5, 2.5, 3.0, 1.2];
    let one = welch(&varied, &twos).unwrap();
    let sample = Units::of(&varied).unwrap().t().unwrap();
    close(one.p_at_most(0.1), sample.p_at_most(2.1), 1e-12, "one constant arm");
}

#[test]
fn reasons_name_what_was_in_the_way() {
    let five = Claim::new(Region::above(0.0)).test(Units::of(&HIGH).unwrap().signs(draws(0)).unwrap());
    assert_eq!(alone(&five), Decision::Inconclusive(Inconclusive::NBelowReach));
    // Alone .0156 decides; in a family of four with weaker members it does not.
    let test = Claim::new(Region::above(0.0)).test(d().signs(draws(0)).unwrap());
    let family = adjust(&[test.q, 0.2, 0.001, 0.017], Correction::Holm);
    assert_eq!(decide(&test.evidence(), &family[0], alpha()), Decision::Supported);
    let bonferroni = adjust(&[test.q, 0.2, 0.001, 0.017], Correction::Bonferroni);
    let verdict = decide(&test.evidence(), &bonferroni[0], alpha());
    assert_eq!(verdict, Decision::Inconclusive(Inconclusive::Correction));
    assert_eq!(Inconclusive::Correction.word(), "correction");
    // p .0156 · 2 > .05/8, and .0078 > .05/8 too: no data of eight units could pass the first step.
    let weak = Claim::new(Region::above(0.004)).test(d().signs(draws(0)).unwrap());
    let eight = adjust(&[weak.q; 8], Correction::Bonferroni);
    assert_eq!(
        decide(&weak.evidence(), &eight[0], alpha()),
        Decision::Inconclusive(Inconclusive::NBelowReach)
    );
}

#[test]
fn a_void_member_still_counts() {
    let with = adjust(&[0.02, 1.0], Correction::Holm);
    assert_eq!((with[0].q_tilde, with[0].members), (0.04, 2));
}

#[test]
fn qualifiers_say_what_the_verdict_leaves_out() {
    let mut test = by_t(Region::above(0.0), &HIGH);
    let lone = Adjusted::alone(test.q);
    let with = |test: &Inference, adjusted: &Adjusted| qualify(test, Decision::Supported, adjusted, alpha());
    assert_eq!(with(&test, &lone), []);
    test.claim.smallest = Some(1.0);
    assert_eq!(with(&test, &lone), [Qualifier::SmallestNotShown { smallest: 1.0 }]);
    test.claim.smallest = Some(2.0);
    assert_eq!(with(&test, &lone), [Qualifier::BelowSmallest { smallest: 2.0 }]);
    test.claim.smallest = Some(0.5);
    assert_eq!(with(&test, &lone), []);
    // Holm decides at step 2 of 2 while the 97.5 % interval still contains the bound.
    let test = by_t(Region::above(0.7), &[1.0, 1.4, 0.8, 1.1, 0.85]);
    let family = adjust(&[test.q, 1e-6], Correction::Holm);
    assert_eq!(decide(&test.evidence(), &family[0], alpha()), Decision::Supported);
    assert_eq!(with(&test, &family[0]), [Qualifier::IntervalContainsBound { step: 2, of: 2 }]);
}

#[test]
fn monte_carlo_says_when_it_is_close() {
    let values: Vec<f64> = (0..25).map(|i| (f64::from(i) * 1.7).sin() + 0.28).collect();
    let test = Claim::new(Region::above(0.0)).test(Units::of(&values).unwrap().signs(draws(199)).unwrap());
    let error = test.monte_carlo.unwrap().error;
    assert!(error > 0.0 && test.reach == 0.01);
    let close_to = qualify(&test, alone(&test), &Adjusted::alone(test.q), alpha());
    let expected = (test.q - 0.05).abs() < 3.0 * error;
    assert_eq!(close_to.contains(&Qualifier::CloseToLevel { error }), expected);
    assert!(expected, "q = {} ± {error}", test.q);
}

#[test]
fn every_unit() {
    let units = Units::of(&[0.1, 0.2, 0.3]).unwrap();
    let decision = |region| Every::of(&units, region).decision();
    assert_eq!(decision(Region::above(0.05)), Decision::Supported);
    assert_eq!(decision(Region::above(0.1)), Decision::Refuted);
    assert_eq!(decision(Region::below(0.1 + 0.2)), Decision::Refuted);
    let gap = Region::Above { bound: 0.15, refute: 0.05 };
    assert_eq!(decision(gap), Decision::Inconclusive(Inconclusive::CrossesBound));
    assert_eq!(decision(Region::Between { low: 0.0, high: 0.25 }), Decision::Refuted);
}

#[test]
fn positions() {
    let claim = Claim::new(Region::above(0.5)).with_null(0.0);
    assert_eq!(by_position(&claim, 0.6, 1e-12), Decision::Supported);
    assert_eq!(by_position(&claim, 0.5, 1e-12), Decision::Inconclusive(Inconclusive::CrossesBound));
    assert_eq!(by_position(&claim, 0.2, 1e-12), Decision::Refuted);
    assert_eq!(by_position(&claim, -0.6, 1e-12), Decision::Reversed);
}

#[test]
fn estimators_refuse_what_has_no_number() {
    assert_eq!(Units::of(&[]).unwrap_err(), Void::NoUnits);
    assert_eq!(Units::of(&[1.0, f64::NAN]).unwrap_err(), Void::NonFinite);
    assert_eq!(Units::of(&[1e308, 1e308]).unwrap_err(), Void::NonFinite);
    assert_eq!(Units::of(&[1.7e308, -1.7e308, 1.0]).unwrap().t().unwrap_err(), Void::NonFinite);
    assert_eq!(Units::of(&[1.0]).unwrap().t().unwrap_err(), Void::BelowMinimumN);
    assert_eq!(Units::paired(&[1.0, 2.0], &[1.0]).unwrap_err(), Void::Unpaired);
    assert_eq!(welch(&[1.0, 2.0], &[1.0]).unwrap_err(), Void::BelowMinimumN);
    assert_eq!(proportion::one_arm(0, 0).unwrap_err(), Void::NoUnits);
    assert_eq!(proportion::one_arm(3, 2).unwrap_err(), Void::Domain);
    assert_eq!(proportion::one_arm(1, 1).unwrap_err(), Void::BelowMinimumN);
    assert_eq!(Units::of(&[1.0]).unwrap().median().unwrap_err(), Void::BelowMinimumN);
    assert_eq!(slope::logs(&[1.0, 0.0]).unwrap_err(), Void::Domain);
    assert_eq!(slope::of_points(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap_err(), Void::BelowMinimumN);
    assert_eq!(slope::of_points(&[1.0; 4], &[1.0, 2.0, 3.0, 4.0]).unwrap_err(), Void::Undefined);
    assert_eq!(Void::BelowMinimumN.word(), "below-minimum-n");
}

fn tested(support: f64, refute: f64) -> Part {
    Part::Tested { pair: Pair { support, refute }, reach: Pair { support: 0.0, refute: 0.0 } }
}

fn decided(combination: &Combination) -> Result<Decision, Void> {
    combination.decide(&Adjusted::alone(combination.q), alpha())
}

#[test]
fn all_and_any_correct_one_side_only() {
    let parts = [tested(0.01, 0.9), tested(0.02, 0.95), tested(0.004, 0.97)];
    let all = Combination::all(&parts, false).unwrap();
    assert_eq!(all.pair, Pair { support: 0.02, refute: 1.0 });
    assert_eq!((all.q, decided(&all)), (0.04, Ok(Decision::Supported)));
    let any = Combination::any(&parts, false).unwrap();
    assert_eq!(any.pair, Pair { support: 3.0 * 0.004, refute: 0.97 });
    // An `all` of equivalences is not doubled on the claim side.
    assert_eq!(Combination::all(&parts, true).unwrap().q, 0.02);
    let refuting = [tested(0.9, 0.005), tested(0.01, 0.9)];
    let refuted = Combination::all(&refuting, false).unwrap();
    assert_eq!((refuted.pair.refute, decided(&refuted)), (0.01, Ok(Decision::Refuted)));
    assert_eq!(Combination::all(&[], false), Err(Void::NoUnits));
}

#[test]
fn certain_parts_enter_as_zero_and_one() {
    let good = Combination::all(&[Part::Certain(true), tested(0.01, 0.9)], false).unwrap();
    assert_eq!(good.pair, Pair { support: 0.01, refute: 1.0 });
    let bad = Combination::all(&[Part::Certain(false), tested(0.01, 0.9)], false).unwrap();
    assert_eq!(decided(&bad), Ok(Decision::Refuted));
}

#[test]
fn a_void_part_is_silent() {
    let void = Part::Void(Void::MissingUnits);
    // Refuted whatever the missing part would say.
    let refuted = Combination::all(&[tested(0.9, 0.005), void], false).unwrap();
    assert_eq!(decided(&refuted), Ok(Decision::Refuted));
    // The missing part could have supported or refuted the whole.
    let open = Combination::all(&[tested(0.001, 0.9), void], false).unwrap();
    assert_eq!(decided(&open), Ok(Decision::Inconclusive(Inconclusive::VoidPart)));
    // Two of three, two undecided: no value of the third decides.
    let undecided = [tested(0.5, 0.5), tested(0.5, 0.5), void];
    let closed = Combination::new(&undecided, 2, false).unwrap();
    assert_eq!(decided(&closed), Err(Void::MissingUnits));
}

#[test]
fn combinations_nest() {
    let inner = Combination::any(&[tested(0.001, 0.9), tested(0.5, 0.6)], false).unwrap();
    let outer = Combination::all(&[inner.part(), tested(0.01, 0.9)], false).unwrap();
    assert_eq!(outer.pair.support, 0.01);
}

#[test]
fn curves_join_points() {
    let within = |expected: f64| Tolerance::Absolute(0.5).region(expected).unwrap();
    let point = |expected: f64| Point { region: within(expected), values: HIGH.to_vec() };
    let good = curve(&[point(1.0), point(1.1)]).unwrap();
    assert_eq!(decided(&good.whole), Ok(Decision::Supported));
    let largest = good.points.iter().map(|p| p.as_ref().unwrap().pair.support).fold(0.0, f64::max);
    assert_eq!((good.whole.pair.support, good.whole.q), (largest, largest));
    let bad = curve(&[point(1.0), point(5.0)]).unwrap();
    assert_eq!(decided(&bad.whole), Ok(Decision::Refuted));
    let lone = Point { region: within(1.0), values: vec![1.0] };
    let short = curve(&[lone, point(1.0)]).unwrap();
    assert_eq!(short.points[0].as_ref().unwrap_err(), &Void::BelowMinimumN);
    assert_eq!(Tolerance::Relative(0.1).region(0.0), Err(ToleranceError::RelativeToZero));
    assert_eq!(
        Tolerance::Relative(0.1).region(-20.0).unwrap(),
        Region::Equivalence { target: -20.0, margin: 2.0 }
    );
    assert!(Tolerance::Absolute(f64::NAN).region(1.0).is_err());
}

#[test]
fn trends_know_their_bounds() {
    assert_eq!(Of::default_for(Region::above(0.0)), Of::Unit);
    assert_eq!(Of::default_for(Region::above(0.9)), Of::Pooled);
    let refused = trend::check(Of::Unit, Region::above(0.5), 4, 20);
    assert_eq!(refused, Err(TrendError::BoundOfUnits { bound: 0.5 }));
    assert!(trend::check(Of::Pooled, Region::above(0.9), 4, 20).is_ok());
    assert!(matches!(
        trend::check(Of::Pooled, Region::above(0.97), 4, 20),
        Err(TrendError::AboveCeiling { .. })
    ));
    close(trend::ceiling(4, 1_000_000), trend::ceiling_for_many(4), 1e-9, "many units");
    assert_eq!(trend::ceiling(4, 1), 1.0);
}

#[test]
fn monotone_cells_reach_the_ceiling_without_variation() {
    let levels = [4.0, 16.0, 64.0, 256.0];
    let rows: Vec<Vec<f64>> =
        (0..6).map(|unit| (0..4).map(|k| f64::from(k * 10) + f64::from(unit) * 0.1).collect()).collect();
    let cells = Cells::new(&levels, &rows).unwrap();
    let fit = trend::pooled(&cells, Statistic::Spearman).unwrap();
    close(fit.estimate(), trend::ceiling(4, 6), 1e-12, "ceiling");
    // Without any one unit the rest are at their own ceiling, so the jackknife error is 0.
    assert!(fit.no_variation());
    assert_eq!(fit.p_at_most(0.9), 2.0_f64.powi(-6));
    let units = cells.of_units(Statistic::Spearman).unwrap().signs(draws(0)).unwrap();
    assert_eq!((units.estimate(), units.no_variation()), (1.0, true));
    let flat = vec![vec![1.0; 4]; 6];
    let flat = Cells::new(&levels, &flat).unwrap();
    assert_eq!(flat.of_units(Statistic::Spearman).unwrap_err(), Void::Undefined);
    let few = Cells::new(&levels, &rows[..4]).unwrap();
    assert_eq!(trend::pooled(&few, Statistic::Spearman).unwrap_err(), Void::BelowMinimumN);
    let ragged = vec![vec![1.0, 2.0]];
    assert_eq!(Cells::new(&levels, &ragged).unwrap_err(), Void::MissingUnits);
}

#[test]
fn slopes_of_units_know_their_rounding() {
    // The same slope in every unit, over offsets whose rounding is far larger than the slope's own.
    let axis = [0.0, 1.0, 2.0, 3.0];
    let rows: Vec<Vec<f64>> =
        (0..7).map(|u| axis.iter().map(|x| 1e6 + 1234.567 * f64::from(u) + 1e-3 * x).collect()).collect();
    let units = slope::of_units(&axis, &rows).unwrap();
    assert!(units.all_equal());
    assert_eq!(Claim::new(Region::above(0.0)).test(units.t().unwrap()).q, 2.0_f64.powi(-6));
    let line = slope::of_points(&axis, &[1.0, 3.0, 5.0, 7.0]).unwrap();
    assert!(line.no_variation() && line.estimate() == 2.0);
}

#[test]
fn reach_before_any_data() {
    let planned = |method, sample, region| Planned {
        claim: Claim::new(region),
        method,
        sample,
        members: 1,
        alpha: alpha(),
        pilot_sd: None,
    };
    let three = at_registration(&planned(Method::SignFlip, Sample::One(3), Region::above(0.0)));
    assert_eq!((three.smallest_q, three.reachable, three.is_undecidable()), (0.25, false, true));
    let instead = Some(Method::T);
    assert_eq!(three.warnings[0], Warning::BelowMinimumN { planned: 3, least: 6, instead });
    let eight = at_registration(&planned(Method::SignFlip, Sample::One(8), Region::above(0.0)));
    assert_eq!((eight.smallest_q, eight.reachable), (0.0078125, true));
    let family = Planned { members: 8, ..planned(Method::SignFlip, Sample::One(8), Region::above(0.0)) };
    let family = at_registration(&family);
    assert!(!family.reachable);
    assert_eq!(family.warnings[0], Warning::BelowMinimumN { planned: 8, least: 9, instead });
    let many = at_registration(&planned(Method::SignFlip, Sample::One(21), Region::above(0.0)));
    close(many.smallest_q, 2e-6, 1e-12, "999,999 draws");
    let welch = at_registration(&planned(Method::Welch, Sample::Two(4, 9), Region::above(0.0)));
    assert_eq!(
        (welch.smallest_q, welch.warnings.as_slice()),
        (0.0, [Warning::FewUnits { planned: 4 }, Warning::NoGap].as_slice())
    );
    let share = at_registration(&planned(Method::ClopperPearson, Sample::One(10), Region::above(0.9)));
    close(share.smallest_q, 2.0 * 1e-10, 1e-9, "none of ten refutes most");
    let between = at_registration(&planned(
        Method::ClopperPearson,
        Sample::One(20),
        Region::Between { low: 0.4, high: 0.6 },
    ));
    assert!(between.smallest_q > 1e-5, "refuting by 0 or 20 of 20");
}

#[test]
fn reach_of_shares_is_the_best_over_all_counts() {
    for n in [2_u64, 3, 7, 20, 61] {
        for region in [
            Region::above(0.9),
            Region::below(0.2),
            Region::Between { low: 0.45, high: 0.55 },
            Region::Equivalence { target: 0.5, margin: 0.3 },
        ] {
            let test = |k| Claim::new(region).test(proportion::one_arm(k, n).unwrap());
            let best = (0..=n).map(|k| test(k).q).fold(1.0, f64::min);
            close(test(0).reach, best, 1e-12, &format!("{n} {region:?}"));
        }
    }
}

#[test]
fn a_margin_too_narrow_for_the_pilot() {
    let planned = |margin| Planned {
        claim: Claim::new(Region::Equivalence { target: 0.0, margin }),
        method: Method::T,
        sample: Sample::One(8),
        members: 1,
        alpha: alpha(),
        pilot_sd: Some(1.0),
    };
    // t_{.95} with 7 degrees of freedom is 1.8946; over √8 it is .6698.
    let narrow = at_registration(&planned(0.6));
    assert!(
        narrow
            .warnings
            .iter()
            .any(|w| matches!(w, Warning::RegionTooNarrow { needed, .. } if (needed - 0.6698).abs() < 1e-4))
    );
    assert!(!at_registration(&planned(0.7)).is_undecidable());
}

#[test]
fn nulls_need_enough_permutations() {
    assert_eq!(needed_permutations(alpha()), 19);
    assert_eq!(needed_permutations(level("0.03")), 33);
    let nulls: Vec<f64> = (0..18).map(f64::from).collect();
    assert!(matches!(calibrate(1.0, &nulls, alpha(), None), Err(NullError::TooFew { needed: 19, .. })));
    let nulls: Vec<f64> = (0..19).map(f64::from).collect();
    let top = calibrate(20.0, &nulls, alpha(), None).unwrap();
    assert_eq!((top.threshold, top.p, top.score), (18.0, 0.05, 2.0));
    let tied = calibrate(18.0, &nulls, alpha(), Some(100.0)).unwrap();
    assert_eq!((tied.p, tied.score), (0.1, 0.0));
    assert_eq!(calibrate(f64::NAN, &nulls, alpha(), None), Err(NullError::Scores(Void::NonFinite)));
}
