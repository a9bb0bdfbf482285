//! Drawn plans are what they show.

#![expect(clippy::unwrap_used, reason = "tests")]

use avow_model::canonical::Record;
use avow_model::expand;
use avow_model::plan::Plan;
use avow_testkit::plan;

/// `reader <- read, …` for every stage that reads.
fn edges(plan: &Plan) -> Vec<String> {
    let reads = |stage: &avow_model::plan::Stage| {
        let names: Vec<&str> = stage.producers().map(|(_, _, from)| from).collect();
        format!("{} <- {}", stage.name, names.join(", "))
    };
    plan.stages.iter().filter(|s| !s.inputs.is_empty()).map(reads).collect()
}

fn members(plan: &Plan, stage: &str) -> Vec<String> {
    expand::members(plan, plan.stage_index(stage).unwrap()).map(|m| expand::label(plan, m)).collect()
}

#[test]
fn arrows_are_inputs() {
    assert_eq!(edges(&plan("a -> b -> c")), ["b <- a", "c <- b"]);
    assert_eq!(edges(&plan("a, b -> c, d")), ["c <- a, b", "d <- a, b"]);
    assert_eq!(edges(&plan("a -> b; a -> c\n b, c -> d\n")), ["b <- a", "c <- a", "d <- b, c"]);
    assert_eq!(plan("lone").stages.len(), 1);
    assert!(plan("").stages.is_empty());
}

#[test]
fn axes_are_inherited_along_thin_arrows_and_gathered_by_thick_ones() {
    let plan = plan("data -> train[seed:2,wd:3] -> score => table; other[seed:2] -> score");
    assert_eq!(plan.stage("score").unwrap().scope, ["seed", "wd"]);
    assert_eq!(members(&plan, "table"), ["table"]);
    assert_eq!(members(&plan, "train").len(), 6);
    assert_eq!(members(&plan, "other"), ["other[seed=0]", "other[seed=1]"]);
    let cell =
        expand::cell(&plan, expand::member_at(&plan, plan.stage_index("table").unwrap(), |_| None).unwrap());
    let gathered = &plan.stage("table").unwrap().inputs["score"].from;
    assert_eq!(expand::producers(&cell, gathered).unwrap().len(), 6);
}

#[test]
fn drawn_plans_are_sound() {
    let plan = plan("b[y:2] -> a[x:2] => c; z");
    assert_eq!(plan.check(), Ok(()));
    assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
}

#[test]
#[should_panic(expected = "reads itself")]
fn a_circle_is_no_plan() {
    plan("a -> b -> a");
}

#[test]
#[should_panic(expected = "has two sizes")]
fn an_axis_has_one_size() {
    plan("a[x:2]; b[x:3]");
}

#[test]
#[should_panic(expected = "is no stage")]
fn an_arrow_leads_somewhere() {
    plan("a -> ");
}
