//! From a plan to its members: which exist, in what order, and what each reads.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeSet;

use avow_model::axis::{Axis, Points};
use avow_model::expand::{self, Member};
use avow_model::expression::Expression;
use avow_model::plan::{Plan, Source};
use avow_model::value::Value;
use common::{action, axis, bind_all, from_stage, labels, list, path, plan, shell};
use proptest::prelude::*;

fn formula(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

fn derived(name: &str, text: &str) -> Axis {
    axis(name, Points::Derived(formula(text)))
}

fn seeds(count: u64) -> Axis {
    axis("seed", Points::Seeds { count, salt: None, fresh: false, root: None })
}

fn grid(exclude: &[&str]) -> Plan {
    let train = shell("train", "train ${axes.a} ${axes.b}", &["a", "b"]);
    let only_a = shell("only-a", "prepare ${axes.a}", &["a"]);
    let none = shell("none", "begin", &[]);
    let mut plan = plan(vec![list("a", &[1, 2]), list("b", &[10, 20, 30])], vec![train, only_a, none]);
    plan.exclude = exclude.iter().map(|text| formula(text)).collect();
    plan
}

fn at(plan: &Plan, stage: &str, indices: &[(&str, u64)]) -> Member {
    let stage = plan.stage_index(stage).unwrap();
    expand::member_at(plan, stage, |name| indices.iter().find(|(n, _)| *n == name).map(|(_, i)| *i)).unwrap()
}

/// Labels of what the input `inputs[name]` of a member reads.
fn reads(plan: &Plan, member: Member, name: &str) -> Vec<String> {
    let input = &plan.stages[member.stage as usize].inputs[name];
    let cell = expand::cell(plan, member);
    expand::producers(&cell, &input.from).unwrap().into_iter().map(|m| expand::label(plan, m)).collect()
}

#[test]
fn the_last_axis_varies_fastest() {
    let expected = [
        "train[a=1,b=10]",
        "train[a=1,b=20]",
        "train[a=1,b=30]",
        "train[a=2,b=10]",
        "train[a=2,b=20]",
        "train[a=2,b=30]",
    ];
    assert_eq!(labels(&grid(&[]), "train"), expected);
    assert_eq!(labels(&grid(&[]), "only-a"), ["only-a[a=1]", "only-a[a=2]"]);
    assert_eq!(labels(&grid(&[]), "none"), ["none"]);
}

#[test]
fn a_member_is_found_by_the_indices_of_its_cell() {
    let plan = grid(&[]);
    let stage = plan.stage_index("train").unwrap();
    for member in expand::members(&plan, stage) {
        let cell = expand::cell(&plan, member);
        assert_eq!(expand::member_at(&plan, stage, |axis| cell.index(axis)), Some(member));
    }
    assert_eq!(
        expand::member_at(&plan, stage, |axis| (axis == "a").then_some(0)),
        None,
        "an axis without index"
    );
    assert_eq!(expand::member_at(&plan, stage, |_| Some(2)), None, "an index past the end");
}

#[test]
fn a_stage_exists_once_per_distinct_value_of_the_axes_it_uses() {
    let mut plan = grid(&[]);
    let actions = |plan: &Plan, stage: &str| {
        let stage = plan.stage_index(stage).unwrap();
        let all = expand::members(plan, stage).map(|m| bind_all(plan, m).unwrap().action.command.to_string());
        all.collect::<BTreeSet<_>>()
    };
    assert_eq!(actions(&plan, "train").len(), 6);
    assert_eq!(actions(&plan, "only-a").len(), 2);
    plan.axes[1] = list("b", &[10, 20, 30, 40]);
    assert_eq!(actions(&plan, "only-a").len(), 2);
}

#[test]
fn more_seeds_add_members_and_change_none() {
    let of = |count| {
        let train = shell("train", "train ${axes.seed.init} ${axes.wd}", &["seed", "wd"]);
        plan(vec![seeds(count), list("wd", &[0, 1])], vec![train])
    };
    let keys = |plan: &Plan| -> BTreeSet<_> {
        use avow_model::canonical::Record as _;
        expand::members(plan, 0).map(|m| bind_all(plan, m).unwrap().action.digest()).collect()
    };
    let (before, after) = (of(3), of(5));
    assert_eq!((keys(&before).len(), keys(&after).len()), (6, 10));
    assert!(keys(&after).is_superset(&keys(&before)));
    let names = |plan: &Plan| labels(plan, "train").into_iter().collect::<BTreeSet<_>>();
    assert!(names(&after).is_superset(&names(&before)));
}

#[test]
fn a_million_cells_are_counted_without_being_listed() {
    let range = |name: &str, stop: i64| {
        axis(name, Points::Range { start: Value::Int(0), stop: Value::Int(stop), step: Value::Int(1) })
    };
    let axes = vec![range("a", 1000), range("b", 1000), seeds(1_000_000)];
    let mut plan = plan(axes, vec![shell("all", "", &["a", "b", "seed"]), shell("some", "", &["a", "b"])]);
    assert_eq!(expand::count(&plan, 0), 1_000_000_000_000);
    assert_eq!(expand::count(&plan, 1), 1_000_000);
    let far = Member { stage: 0, cell: 999_999_999_999 };
    assert!(expand::label(&plan, far).starts_with("all[a=999,b=999,seed="));
    // Starting to list a trillion members takes no time either.
    assert_eq!(expand::members(&plan, 0).nth(1000).unwrap().cell, 1000);

    plan.exclude = vec![formula("axes.a == axes.b")];
    plan.axes[0] = range("a", 100);
    plan.axes[1] = range("b", 100);
    assert_eq!(expand::count(&plan, 1), 9_900);
}

#[test]
fn products_beyond_64_bits_saturate() {
    let axes = vec![
        axis("a", Points::Seeds { count: u64::MAX, salt: None, fresh: false, root: None }),
        axis("b", Points::Seeds { count: 3, salt: None, fresh: false, root: None }),
    ];
    let plan = plan(axes, vec![shell("s", "", &["a", "b"])]);
    assert_eq!(expand::span(&plan, &plan.stages[0]), u64::MAX);
    assert_eq!(expand::member_at(&plan, 0, |_| Some(2)), Some(Member { stage: 0, cell: 8 }));
    assert_eq!(expand::member_at(&plan, 0, |axis| Some(if axis == "a" { u64::MAX - 1 } else { 2 })), None);
    assert!(expand::label(&plan, Member { stage: 0, cell: u64::MAX }).starts_with("s[a="));
}

#[test]
fn an_axis_without_values_leaves_no_member_that_uses_it() {
    let plan = plan(
        vec![list("a", &[]), list("b", &[1])],
        vec![shell("both", "", &["a", "b"]), shell("one", "", &["b"])],
    );
    assert_eq!(labels(&plan, "both"), [""; 0]);
    assert_eq!(labels(&plan, "one"), ["one[b=1]"]);
    assert_eq!(expand::count(&plan, 0), 0);
}

// --- Exclusion ------------------------------------------------------------------------------------------

#[test]
fn excluded_cells_do_not_exist() {
    let plan = grid(&["axes.a == 1 && axes.b > 10", "axes.b == 20"]);
    assert_eq!(labels(&plan, "train"), ["train[a=1,b=10]", "train[a=2,b=10]", "train[a=2,b=30]"]);
    assert_eq!(labels(&plan, "only-a").len(), 2);
    assert_eq!(expand::count(&plan, plan.stage_index("train").unwrap()), 3);
}

#[test]
fn a_projection_exists_while_one_of_its_cells_does() {
    assert_eq!(labels(&grid(&["axes.a == 1 && axes.b >= 20"]), "only-a").len(), 2);
    assert_eq!(labels(&grid(&["axes.a == 1 && axes.b >= 10"]), "only-a"), ["only-a[a=2]"]);
    assert_eq!(labels(&grid(&["axes.a == 1"]), "only-a"), ["only-a[a=2]"]);
    // Several predicates together can exclude every cell.
    assert_eq!(labels(&grid(&["axes.a == 1 && axes.b > 10", "axes.b == 10"]), "only-a"), ["only-a[a=2]"]);
    assert_eq!(labels(&grid(&["axes.a > 0"]), "none"), [""; 0]);
    assert_eq!(labels(&grid(&["axes.a + axes.b > 11"]), "none"), ["none"]);
}

#[test]
fn predicates_see_through_derived_axes() {
    let mut plan = grid(&["axes.total > 31", "axes.double == 2"]);
    plan.axes.extend([derived("double", "axes.a * 2"), derived("total", "axes.double / 2 + axes.b")]);
    plan.axes.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(labels(&plan, "train"), ["train[a=2,b=10]", "train[a=2,b=20]"]);
    assert_eq!(labels(&plan, "only-a"), ["only-a[a=2]"]);
    // Every completion is excluded, which only the derived axis shows.
    plan.exclude = vec![formula("axes.total > 5")];
    assert_eq!((labels(&plan, "only-a"), labels(&plan, "none")), (vec![], vec![]));
}

#[test]
fn a_predicate_that_cannot_be_evaluated_is_reported_and_excludes_nothing() {
    let plan = grid(&["axes.a == 9", "axes.a / (axes.a - 1) > 0"]);
    let (index, error) = expand::check_exclusions(&plan).unwrap_err();
    assert_eq!((index, error.reason.as_str()), (1, "divides by zero"));
    assert_eq!(labels(&plan, "train"), ["train[a=1,b=10]", "train[a=1,b=20]", "train[a=1,b=30]"]);
    assert!(expand::check_exclusions(&grid(&["axes.a == 9"])).is_ok());
    assert!(expand::check_exclusions(&grid(&["axes.gone == 9"])).is_err());
}

#[test]
fn excluding_everything_of_a_vast_product_ends() {
    let vast =
        |name: &str| axis(name, Points::Seeds { count: 1 << 40, salt: None, fresh: false, root: None });
    let mut plan = plan(vec![vast("a"), vast("b")], vec![shell("none", "", &[])]);
    plan.exclude = vec![formula("axes.a + axes.b > 0")];
    // It gives up, and takes the member to exist: too much work is better than a wrong absence.
    assert_eq!(labels(&plan, "none"), ["none"]);
}

proptest! {
    #[test]
    fn a_projection_exists_exactly_if_some_full_cell_does(hidden in prop::collection::btree_set((1i64..3, 1i64..4, 0i64..2), 0..12)) {
        let all = shell("all", "", &["a", "b", "c"]);
        let parts = [shell("ab", "", &["a", "b"]), shell("bc", "", &["b", "c"]), shell("c", "", &["c"]), shell("z", "", &[])];
        let mut plan = plan(
            vec![list("a", &[1, 2]), list("b", &[1, 2, 3]), list("c", &[0, 1])],
            parts.into_iter().chain([all]).collect(),
        );
        plan.exclude = hidden.iter().map(|(a, b, c)| formula(&format!("axes.a == {a} && axes.b == {b} && axes.c == {c}"))).collect();
        let full: Vec<Member> = expand::members(&plan, plan.stage_index("all").unwrap()).collect();
        prop_assert_eq!(full.len(), 12 - hidden.len());
        for stage in 0..plan.stages.len() {
            let projected: BTreeSet<Member> = full
                .iter()
                .filter_map(|m| {
                    let cell = expand::cell(&plan, *m);
                    expand::member_at(&plan, stage, |axis| cell.index(axis))
                })
                .collect();
            let found: Vec<Member> = expand::members(&plan, stage).collect();
            prop_assert_eq!(found, projected.into_iter().collect::<Vec<_>>());
        }
    }
}

// --- What a cell says -----------------------------------------------------------------------------------

#[test]
fn names_mean_values_attributes_streams_and_parameters() {
    let mut plan = plan(
        vec![list("a", &[7]), derived("d", "axes.a * params.n"), seeds(2)],
        vec![shell("s", "", &["a", "seed"])],
    );
    plan.params.insert("n".to_owned(), Value::Int(3));
    let cell = expand::cell(&plan, at(&plan, "s", &[("a", 0), ("seed", 1)]));
    let seed = plan.axis("seed").unwrap();
    assert_eq!(cell.lookup(&path("axes.a")), Some(Value::Int(7)));
    assert_eq!(cell.lookup(&path("axes.d")), Some(Value::Int(21)));
    assert_eq!(cell.lookup(&path("axes.seed")), seed.value(1));
    assert_eq!(cell.lookup(&path("axes.seed.init")), seed.attribute(1, "init"));
    assert_eq!(cell.lookup(&path("params.n")), Some(Value::Int(3)));
    for nothing in ["axes.gone", "params.gone", "axes.d.init", "axes", "inputs.x", "axes.a.b.c"] {
        assert_eq!(cell.lookup(&path(nothing)), None, "{nothing}");
    }
    assert_eq!(cell.values().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "seed"]);
}

#[test]
fn derived_axes_may_rest_on_one_another_but_not_on_themselves() {
    let value = |axes: Vec<Axis>, name: &str| {
        let plan = plan(axes, vec![shell("s", "", &["a"])]);
        expand::cell(&plan, Member { stage: 0, cell: 0 }).lookup(&path(&format!("axes.{name}")))
    };
    let a = || list("a", &[1]);
    assert_eq!(
        value(vec![a(), derived("d", "axes.e + 1"), derived("e", "axes.a + 1")], "d"),
        Some(Value::Int(3))
    );
    assert_eq!(value(vec![a(), derived("d", "axes.d + 1")], "d"), None);
    assert_eq!(value(vec![a(), derived("d", "axes.e"), derived("e", "axes.d")], "d"), None);
    assert_eq!(value(vec![a(), derived("d", "1 / 0")], "d"), None);
}

#[test]
fn long_and_wide_derivations_end() {
    // Each rests twice on the one before: computed again each time, this would double 5,000 times over.
    let mut axes = vec![list("a", &[0]), derived("d0000", "axes.a")];
    axes.extend(
        (1..5000)
            .map(|i| derived(&format!("d{i:04}"), &format!("axes.d{:04} + axes.d{:04} + 0", i - 1, i - 1))),
    );
    let plan = plan(axes, vec![shell("s", "", &["a"])]);
    let cell = expand::cell(&plan, Member { stage: 0, cell: 0 });
    assert_eq!(cell.lookup(&path("axes.d4999")), Some(Value::Int(0)));
}

// --- Inputs ---------------------------------------------------------------------------------------------

fn reader(input: avow_model::plan::Input, scope: &[&str]) -> Plan {
    let make = shell("make", "make ${axes.a} ${axes.b}", &["a", "b"]);
    let mut read = shell("read", "read ${inputs.x}", scope);
    read.inputs.insert("x".to_owned(), input);
    plan(vec![list("a", &[1, 2]), list("b", &[10, 20, 30])], vec![make, read])
}

#[test]
fn an_input_comes_from_the_producer_at_the_same_point() {
    let plan = reader(from_stage("make", &[], &[]), &["a", "b"]);
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 1), ("b", 2)]), "x"), ["make[a=2,b=30]"]);
}

#[test]
fn at_fixes_an_axis() {
    let plan = reader(from_stage("make", &[("b", Value::Int(20))], &[]), &["a"]);
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 0)]), "x"), ["make[a=1,b=20]"]);
    // Also where the reader has a value of its own.
    let plan = reader(from_stage("make", &[("b", Value::Int(20))], &[]), &["a", "b"]);
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 0), ("b", 2)]), "x"), ["make[a=1,b=20]"]);
}

#[test]
fn at_a_value_that_the_axis_lacks_reads_nothing() {
    let plan = reader(from_stage("make", &[("b", Value::Int(99))], &[]), &["a", "b"]);
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 0), ("b", 2)]), "x"), [""; 0]);
}

#[test]
fn gather_reads_every_value() {
    let plan = reader(from_stage("make", &[], &["b"]), &["a"]);
    assert_eq!(
        reads(&plan, at(&plan, "read", &[("a", 1)]), "x"),
        ["make[a=2,b=10]", "make[a=2,b=20]", "make[a=2,b=30]"]
    );
    let plan = reader(from_stage("make", &[], &["b", "a"]), &[]);
    let all = reads(&plan, at(&plan, "read", &[]), "x");
    assert_eq!(all, labels(&plan, "make"));
    let plan = reader(from_stage("make", &[("a", Value::Int(2))], &["b"]), &[]);
    assert_eq!(reads(&plan, at(&plan, "read", &[]), "x").len(), 3);
}

#[test]
fn gather_leaves_out_excluded_cells() {
    let mut plan = reader(from_stage("make", &[], &["b"]), &["a"]);
    plan.exclude = vec![formula("axes.a == 2 && axes.b == 20")];
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 1)]), "x"), ["make[a=2,b=10]", "make[a=2,b=30]"]);
    assert_eq!(reads(&plan, at(&plan, "read", &[("a", 0)]), "x").len(), 3);
}

#[test]
fn only_outputs_of_stages_have_producers() {
    let plan = reader(from_stage("gone", &[], &[]), &["a"]);
    let cell = expand::cell(&plan, at(&plan, "read", &[("a", 0)]));
    assert_eq!(expand::producers(&cell, &plan.stages[1].inputs["x"].from), None);
    let path =
        Source::Path { path: "p".to_owned(), artifact: avow_model::digest::Artifact::Blob(common::blob("")) };
    assert_eq!(expand::producers(&cell, &path), None);
}

#[test]
fn members_of_one_stage_may_share_an_action() {
    // `b` is in the scope, yet the command does not use it: the bytes are the same, so is the key.
    use avow_model::canonical::Record as _;
    let plan = plan(vec![list("b", &[1, 2])], vec![shell("s", "same", &["b"])]);
    let keys: BTreeSet<_> =
        expand::members(&plan, 0).map(|m| bind_all(&plan, m).unwrap().action.digest()).collect();
    assert_eq!(keys, BTreeSet::from([action(&plan, "s").digest()]));
}
