//! Families, gates, combinations and tiers.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_audit::judge::{Qualifier, Verdict};
use avow_audit::{Report, Word};
use avow_model::claim::{Claim, Correction, Judge, Method, Part, Rule, Statistic, Test, Tier};
use avow_model::value::Value;
use common::*;

fn helps(bound: f64) -> Test {
    one(Part { compare: wd(), ..part(difference(above(bound), Method::T)) })
}

fn by_name<'r>(report: &'r Report, name: &str) -> &'r Verdict {
    report.verdicts.iter().find(|v| v.claim == name).unwrap()
}

/// A claim about a measurement that nobody writes.
fn lost(name: &str) -> Claim {
    let mut part = Part { compare: wd(), ..part(difference(above(0.0), Method::T)) };
    part.select.of = avow_model::claim::Selected::Measurement("lost".to_owned());
    claim(name, one(part))
}

#[test]
fn a_void_member_still_counts_in_a_family_of_four() {
    let claims = vec![claim("a", helps(0.0)), claim("b", helps(0.003)), claim("c", helps(0.007)), lost("d")];
    let report = standard(claims).audit();
    let q = |name| by_name(&report, name).q.unwrap();
    let a = by_name(&report, "a");
    assert_eq!((a.family.members, a.family.step), (4, 1));
    assert!((a.q_corrected.unwrap() - 4.0 * q("a")).abs() < 1e-12);
    assert_eq!(a.word, Some(Word::Supported));
    // The simultaneous interval is at 1 − α/4, the marginal one at 1 − α.
    let interval = a.interval.unwrap();
    assert!((interval.low - 0.0005613566128).abs() < 1e-9 && (interval.level - 0.9875).abs() < 1e-12);
    assert!((a.marginal_interval.unwrap().low - 0.002471573358).abs() < 1e-9);
    let b = by_name(&report, "b");
    assert_eq!(b.family.step, 2);
    assert!((b.q_corrected.unwrap() - (3.0 * q("b")).max(4.0 * q("a"))).abs() < 1e-12);
    let d = by_name(&report, "d");
    assert_eq!((d.word, d.q, d.family.members), (Some(Word::Void), Some(1.0), 4));
    assert_eq!(d.reason.as_ref().unwrap().word(), "unknown-measurement");
    // Without the void member the others would have been easier.
    let three =
        standard(vec![claim("a", helps(0.0)), claim("b", helps(0.003)), claim("c", helps(0.007))]).audit();
    assert!(by_name(&three, "b").q_corrected.unwrap() < b.q_corrected.unwrap());
}

#[test]
fn correction_may_take_a_decision_away_and_says_so() {
    // q of `above 0.002` is about 0.03: decided alone, not in a family of four.
    let claims = vec![claim("a", helps(0.002)), lost("b"), lost("c"), lost("d")];
    let report = standard(claims).audit();
    let a = by_name(&report, "a");
    assert!(a.q.unwrap() < 0.05 && a.q_corrected.unwrap() > 0.05);
    assert_eq!((a.word, a.reason.as_ref().unwrap().word()), (Some(Word::Inconclusive), "correction"));
    let alone = standard(vec![claim("a", helps(0.002))]).audit();
    assert_eq!(by_name(&alone, "a").word, Some(Word::Supported));
}

#[test]
fn holm_may_decide_where_the_simultaneous_interval_touches_the_bound() {
    let claims = vec![claim("a", helps(-0.01)), claim("b", helps(0.002))];
    let report = standard(claims).audit();
    let b = by_name(&report, "b");
    assert_eq!((b.word, b.family.step, b.family.members), (Some(Word::Supported), 2, 2));
    assert_eq!(b.qualifiers, [Qualifier::IntervalContainsBound { step: 2, of: 2 }]);
    assert!(b.interval.unwrap().low < 0.002 && b.marginal_interval.unwrap().low > 0.002);
}

#[test]
fn tiers_and_named_families_do_not_share_their_level() {
    let mut secondary = claim("b", helps(0.002));
    secondary.tier = Tier::Secondary;
    let mut named = claim("c", helps(0.002));
    named.family = "other".to_owned();
    let report = standard(vec![claim("a", helps(0.002)), secondary, named]).audit();
    assert!(report.verdicts.iter().all(|v| v.family.members == 1 && v.word == Some(Word::Supported)));
}

#[test]
fn descriptive_and_exploratory_claims_have_no_word() {
    let mut descriptive = claim("b", helps(0.0));
    descriptive.tier = Tier::Descriptive;
    let mut exploratory = claim("c", helps(0.0));
    exploratory.tier = Tier::Exploratory;
    let report = standard(vec![claim("a", helps(0.0)), descriptive, exploratory]).audit();
    assert_eq!(by_name(&report, "a").family.members, 1);
    for name in ["b", "c"] {
        let verdict = by_name(&report, name);
        assert_eq!((verdict.word, verdict.q, verdict.q_corrected), (None, None, None));
        assert!((verdict.interval.unwrap().level - 0.95).abs() < 1e-12 && verdict.estimate.is_some());
    }
}

#[test]
fn without_correction_q_decides_as_it_is() {
    let claims = ["a", "b"].map(|name| Claim { correct: Correction::None, ..claim(name, helps(0.002)) });
    let report = standard(claims.into()).audit();
    assert!(report.verdicts.iter().all(|v| v.q == v.q_corrected && v.word == Some(Word::Supported)));
    assert!((report.verdicts[0].interval.unwrap().level - 0.95).abs() < 1e-12);
}

#[test]
fn an_unmet_requirement_voids_and_the_void_spreads() {
    let needs = |name: &str, bound: f64, required: &str| Claim {
        requires: vec![required.to_owned()],
        ..claim(name, helps(bound))
    };
    // `z` is inconclusive, so `y` is void, so `a` is; `b` stands by itself.
    let claims =
        vec![claim("z", helps(0.007)), needs("y", 0.0, "z"), needs("a", 0.0, "y"), claim("b", helps(0.0))];
    let report = standard(claims).audit();
    for name in ["y", "a"] {
        let verdict = by_name(&report, name);
        assert_eq!(
            (verdict.word, verdict.reason.as_ref().unwrap().word()),
            (Some(Word::Void), "requires-unmet")
        );
        assert_eq!(verdict.q, Some(1.0));
        assert!(verdict.estimate.is_some(), "the estimate is still shown");
    }
    let b = by_name(&report, "b");
    assert!((b.q_corrected.unwrap() - 4.0 * b.q.unwrap()).abs() < 1e-12);
    assert_eq!(b.word, Some(Word::Supported));
    let met = standard(vec![claim("z", helps(0.0)), needs("y", 0.0, "z")]).audit();
    assert_eq!(by_name(&met, "y").word, Some(Word::Supported));
    let nowhere = standard(vec![needs("y", 0.0, "nobody")]).audit();
    assert_eq!(by_name(&nowhere, "y").word, Some(Word::Void));
}

#[test]
fn an_all_is_one_member_and_names_the_part_that_refutes_it() {
    let flat = |level: usize, seed: usize| 0.01 * seed as f64 + if level == 2 { 3.0 } else { 0.0 };
    let per_level = Part { per: vec!["level".to_owned()], ..part(mean(below(1.0), Method::T)) };
    let lab =
        levels(&[4.0, 16.0, 64.0], 8, vec![claim("flat", Test::All(vec![one(per_level.clone())]))], flat);
    let report = lab.audit();
    let [verdict] = report.verdicts.as_slice() else { panic!() };
    assert_eq!((verdict.word, verdict.rule, verdict.parts.len()), (Some(Word::Refuted), "all", 3));
    assert_eq!(verdict.family.members, 1);
    let words: Vec<Word> = verdict.parts.iter().map(|p| p.word).collect();
    assert_eq!(words, [Word::Supported, Word::Supported, Word::Refuted]);
    let [culprit] = verdict.refuted_by.as_slice() else { panic!("{:?}", verdict.refuted_by) };
    assert_eq!(
        (culprit.part.as_slice(), culprit.at.as_slice()),
        ([0].as_slice(), [("level".to_owned(), Value::Int(64))].as_slice())
    );
    assert!((culprit.found.unwrap() - 3.035).abs() < 1e-9);
    // p_R is three times the smallest, p_S the largest.
    let p = verdict.p.unwrap();
    assert!((p.refute - 3.0 * verdict.parts[2].p.unwrap().refute).abs() < 1e-12);
    let calm =
        levels(&[4.0, 16.0, 64.0], 8, vec![claim("flat", Test::All(vec![one(per_level)]))], |_, seed| {
            0.01 * seed as f64
        });
    assert_eq!(calm.audit().verdicts[0].word, Some(Word::Supported));
}

#[test]
fn an_all_of_formula_parts_names_part_and_level() {
    let every = |bound| Rule::Threshold { statistic: Statistic::Every, bound, inference: by(Method::None) };
    let rank = |bound| Part { per: vec!["level".to_owned()], ..part(every(bound)) };
    let parts = vec![one(rank(above(-1.0))), one(rank(below(50.0)))];
    let lab = levels(&[1.0, 2.0], 3, vec![claim("formula", Test::All(parts))], |level, _| {
        if level == 0 { 64.0 } else { 40.0 }
    });
    let report = lab.audit();
    let verdict = &report.verdicts[0];
    assert_eq!((verdict.word, verdict.family.members), (Some(Word::Refuted), 0));
    assert!(
        verdict.refuted_by.iter().all(|c| c.part == [1] && c.at[0] == ("level".to_owned(), Value::Int(1)))
    );
    assert_eq!(verdict.refuted_by.len(), 3, "each seed that is outside");
    assert_eq!(verdict.refuted_by[0].found, Some(64.0));
}

#[test]
fn a_theorem_is_void_until_something_measures_it() {
    let report = standard(vec![claim("theorem", Test::Unmeasured), claim("a", helps(0.0))]).audit();
    let theorem = by_name(&report, "theorem");
    assert_eq!((theorem.word, theorem.reason.as_ref().unwrap().word()), (Some(Word::Void), "not-measured"));
    assert_eq!(by_name(&report, "a").family.members, 1, "it is no inferential member");
}

#[test]
fn an_estimate_stays_outside_families() {
    let mut part = Part { compare: wd(), ..part(difference(above(0.0), Method::None)) };
    part.judge = Judge::Estimate;
    let report = standard(vec![claim("a", helps(0.002)), claim("b", one(part))]).audit();
    assert_eq!(by_name(&report, "a").family.members, 1);
    assert_eq!((by_name(&report, "b").word, by_name(&report, "b").q), (Some(Word::Supported), None));
}

#[test]
fn monte_carlo_draws_depend_on_plan_claim_and_member_only() {
    let values = |_: usize, seed: usize| ((seed * 7919) % 101) as f64 / 101.0 - 0.4;
    let claims = vec![claim("a", one(part(mean(above(0.0), Method::SignFlip))))];
    let verdict = |claims: Vec<Claim>| levels(&[1.0], 24, claims, values).audit().verdicts.remove(0);
    let first = verdict(claims.clone());
    assert_eq!(first.monte_carlo.unwrap().draws, 999_999);
    assert_eq!(first.q, verdict(claims).q);
    let renamed = verdict(vec![claim("b", one(part(mean(above(0.0), Method::SignFlip))))]);
    assert!(
        renamed.q != first.q
            && (renamed.q.unwrap() - first.q.unwrap()).abs() < 6.0 * first.monte_carlo.unwrap().error
    );
}

#[test]
fn a_damaged_part_voids_the_whole_although_another_refutes_it() {
    let per_level = Part { per: vec!["level".to_owned()], ..part(mean(below(1.0), Method::T)) };
    let value = |level: usize, seed: usize| 0.01 * seed as f64 + if level == 1 { 3.0 } else { 0.0 };
    let lab = levels(&[4.0, 16.0], 8, vec![claim("flat", Test::All(vec![one(per_level)]))], value);
    assert_eq!(lab.audit().verdicts[0].word, Some(Word::Refuted));
    lab.blobs.damage(lab.result(lab.member("train", 0)), b"{}");
    let report = lab.audit();
    assert_eq!(report.verdicts[0].word, Some(Word::Void));
    assert_eq!(report.verdicts[0].reason.as_ref().unwrap().word(), "damaged-evidence");
    assert!(report.is_damaged() && report.verdicts[0].refuted_by.is_empty());
}
