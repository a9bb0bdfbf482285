//! The smallest useful spec becomes a whole plan.

mod fixture;

use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::claim::{Method, Rule, Test};
use avow_model::expand::{Member, members};
use avow_model::plan::Plan;
use avow_spec::{full, plain};
use fixture::{check, project};

const NINE: &str = "\
avow: 1
experiment: weight-decay-helps
axes: {wd: [0, 0.1], seed: [0, 1, 2, 3, 4, 5, 6, 7]}
stages:
  train:
    run: python3 train.py --wd ${axes.wd} --seed ${axes.seed} --out ${outputs.result}
    measurements: {result: result.json}      # {\"accuracy\": 0.91, \"loss\": 0.3}, as the script writes it
claims:
  helps: {says: Weight decay raises accuracy, select: accuracy, compare: {wd: [0.1, 0]}, rule: {kind: difference, above: 0}}
";

fn plan(text: &str) -> Plan {
    let (diagnostics, lowered) = check(text, &project());
    assert!(diagnostics.is_empty(), "{}", plain(&diagnostics, text));
    lowered.and_then(|lowered| lowered.plan).expect("a plan")
}

#[test]
fn it_is_whole() {
    let (diagnostics, lowered) = check(NINE, &project());
    assert!(diagnostics.is_empty(), "{}", plain(&diagnostics, NINE));
    let lowered = lowered.unwrap();
    let plan = lowered.plan.unwrap();
    let train = plan.stage("train").unwrap();
    assert_eq!(train.scope, ["seed", "wd"]);
    assert_eq!(members(&plan, 0).count(), 16);
    assert_eq!(lowered.code["train"], ["nets/__init__.py", "nets/layers.py", "nets/model.py", "train.py"]);
    assert!(train.toolchain.contains_key("python3"));
    let Test::One(part) = &plan.claims[0].test else { panic!("one part") };
    assert_eq!(part.replicate.as_deref(), Some("seed"));
    let Rule::Difference { inference, .. } = &part.rule else { panic!("a difference") };
    assert_eq!(inference.method, Method::SignFlip);
    assert_eq!(plan.claims[0].alpha, "0.05");
    assert_eq!(lowered.reach[0].to_string(), "8 pairs: smallest possible two-sided p is 0.0078");
}

#[test]
fn its_digest_is_pinned() {
    assert_eq!(
        plan(NINE).digest().to_string(),
        "5dfce383fdacf94df391a81074cef17393566bc86d733cf235464e01df017f5b"
    );
}

#[test]
fn the_order_of_keys_and_comments_change_nothing() {
    let shuffled = "\
# a comment
claims:
  helps:
    rule: {above: 0, kind: difference}   # another
    compare: {wd: [0.1, 0]}
    select: train.accuracy
    says: Weight decay raises accuracy
stages:
  train:
    measurements: [result.json]
    run: python3 train.py --wd ${axes.wd} --seed ${axes.seed} --out ${outputs.result}
title: the title is for people
axes:
  seed: [0, 1, 2, 3, 4, 5, 6, 7]
  wd: [0, 1e-1]
experiment: weight-decay-helps
avow: 1
";
    assert_eq!(plan(NINE).digest(), plan(shuffled).digest());
}

#[test]
fn renaming_a_stage_changes_no_action() {
    let renamed = NINE.replace("  train:", "  fit:");
    let (one, two) = (plan(NINE), plan(&renamed));
    assert_ne!(one.digest(), two.digest());
    for cell in 0..16 {
        let digest =
            |plan: &Plan| bind(plan, Member { stage: 0, cell }, &|_, _| None).unwrap().action.digest();
        assert_eq!(digest(&one), digest(&two));
    }
}

#[test]
fn the_completed_spec_gives_the_same_plan() {
    let (_, lowered) = check(NINE, &project());
    let lowered = lowered.unwrap();
    let first = lowered.plan.unwrap();
    let text = full(&first, &lowered.terms, &lowered.code);
    assert_eq!(plan(&text).digest(), first.digest(), "{text}");
}
