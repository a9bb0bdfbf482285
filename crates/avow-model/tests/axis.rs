//! Axes: how many values, which, and where a value lies; at the edges of the numbers too.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::axis::{Axis, NamedPoint, Points};
use avow_model::seed::{ROLES, axis_seed, role_seed};
use avow_model::value::{Value, spell_float};
use common::{axis, list};
use proptest::prelude::*;

fn ints(start: i64, stop: i64, step: i64) -> Axis {
    axis("x", Points::Range { start: Value::Int(start), stop: Value::Int(stop), step: Value::Int(step) })
}

fn floats(start: f64, stop: f64, step: f64) -> Axis {
    axis(
        "x",
        Points::Range { start: Value::Float(start), stop: Value::Float(stop), step: Value::Float(step) },
    )
}

fn log(low: f64, high: f64, count: u64) -> Axis {
    axis("x", Points::Log { low, high, count })
}

fn spelled(axis: &Axis) -> Vec<String> {
    (0..axis.len()).map(|i| axis.value(i).unwrap().to_string()).collect()
}

#[test]
fn integer_ranges_stop_before_their_bound() {
    assert_eq!(spelled(&ints(0, 10, 3)), ["0", "3", "6", "9"]);
    assert_eq!(spelled(&ints(0, 9, 3)), ["0", "3", "6"]);
    assert_eq!(spelled(&ints(10, 0, -3)), ["10", "7", "4", "1"]);
    assert_eq!(spelled(&ints(9, 0, -3)), ["9", "6", "3"]);
    for empty in [ints(0, 0, 1), ints(5, 0, 1), ints(0, 5, -1), ints(0, 5, 0), ints(0, 0, 0)] {
        assert!(empty.is_empty(), "{empty:?}");
        assert_eq!((empty.value(0), empty.index_of(&Value::Int(0))), (None, None));
    }
}

#[test]
fn integer_ranges_reach_across_all_integers() {
    let all = ints(i64::MIN, i64::MAX, 1);
    assert_eq!(all.len(), u64::MAX);
    assert_eq!(all.value(0), Some(Value::Int(i64::MIN)));
    assert_eq!(all.value(u64::MAX - 1), Some(Value::Int(i64::MAX - 1)));
    assert_eq!(all.value(u64::MAX), None);
    assert_eq!(all.index_of(&Value::Int(i64::MAX - 1)), Some(u64::MAX - 1));
    assert_eq!(all.index_of(&Value::Int(i64::MAX)), None);
    assert_eq!(ints(i64::MAX, i64::MIN, i64::MIN).len(), 2);
    assert_eq!(ints(0, 10, 3).index_of(&Value::Int(4)), None);
    assert_eq!(ints(0, 10, 3).index_of(&Value::Int(-3)), None);
}

#[test]
fn float_ranges_have_the_values_a_person_would_write() {
    assert_eq!(spelled(&floats(0.0, 0.3, 0.1)), ["0", "0.1", "0.2"]);
    assert_eq!(spelled(&floats(0.0, 0.35, 0.1)), ["0", "0.1", "0.2", "0.3"]);
    assert_eq!(spelled(&floats(0.3, 0.0, -0.1)), ["0.3", "0.2", "0.1"]);
    assert_eq!(floats(0.0, 1.0, 0.1).len(), 10);
    // 0.07 / 0.01 is a little more than seven.
    assert_eq!(floats(0.0, 0.07, 0.01).len(), 7);
    assert_eq!(floats(0.0, 1.0, 0.001).len(), 1000);
    assert_eq!(spelled(&floats(0.0, 1e-9, 1.0)), ["0"], "a start below its stop is a value");
    assert_eq!(spelled(&floats(1e-7, 4e-7, 1e-7)), ["1e-7", "2e-7", "3e-7"]);
    // Twelve digits would not tell these apart.
    assert_eq!(
        spelled(&floats(1e13, 1e13 + 3.0, 1.0)),
        ["10000000000000", "10000000000001", "10000000000002"]
    );
}

#[test]
fn float_ranges_that_make_no_sense_are_empty() {
    let infinite = f64::INFINITY;
    for (start, stop, step) in [
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 1.0, -0.1),
        (0.0, 1.0, f64::NAN),
        (0.0, infinite, 1.0),
        (f64::MIN, f64::MAX, 1.0),
        (infinite, 0.0, -1.0),
    ] {
        assert_eq!(floats(start, stop, step).len(), 0, "{start} {stop} {step}");
    }
    let words = Points::Range { start: "a".into(), stop: "z".into(), step: "b".into() };
    assert_eq!(axis("x", words).len(), 0);
    let huge = floats(0.0, 1e300, 1e-300);
    assert_eq!((huge.len(), huge.value(3)), (0, None));
    assert_eq!(floats(0.0, 1e30, 1.0).len(), u64::MAX);
}

#[test]
fn log_axes_have_equal_ratios_and_exact_ends() {
    assert_eq!(spelled(&log(1e-4, 1.0, 5)), ["0.0001", "0.001", "0.01", "0.1", "1"]);
    assert_eq!(spelled(&log(1.0, 1e-4, 5)), ["1", "0.1", "0.01", "0.001", "0.0001"]);
    assert_eq!(spelled(&log(2.0, 3.0, 1)), ["2"]);
    assert_eq!(spelled(&log(0.1, 0.3, 2)), ["0.1", "0.3"]);
    assert_eq!(log(1.0, 2.0, 0).value(0), None);
    let huge = log(1.0, 2.0, u64::MAX);
    assert_eq!(huge.value(u64::MAX - 1), Some(Value::Float(2.0)));
    assert!(huge.value(u64::MAX / 2).unwrap().as_f64().unwrap() > 1.41);
}

#[test]
fn log_axes_of_numbers_that_have_none_give_no_values() {
    for (low, high) in [(-1.0, 1.0), (0.0, 1.0), (f64::NAN, 1.0)] {
        assert_eq!(log(low, high, 3).value(1), None, "{low} {high}");
    }
}

#[test]
fn values_are_found_again() {
    let axes = [
        ints(-7, 100, 3),
        ints(100, -7, -3),
        floats(0.0, 5.0, 0.05),
        floats(3.0, -1.0, -0.25),
        log(1e-4, 1.0, 50),
    ];
    for axis in axes {
        for index in 0..axis.len() {
            assert_eq!(axis.index_of(&axis.value(index).unwrap()), Some(index), "{axis:?}");
        }
    }
    assert_eq!(floats(0.0, 1.0, 0.1).index_of(&Value::Float(0.25)), None);
    assert_eq!(log(1e-4, 1.0, 5).index_of(&Value::Float(0.02)), None);
    assert_eq!(log(1e-4, 1.0, 5).index_of(&"0.01".into()), None);
}

#[test]
fn a_spelling_finds_the_other_kind_of_number_but_no_neighbour() {
    let big = 1_i64 << 53;
    assert_eq!(list("x", &[big, big + 1]).index_of(&Value::Int(big + 1)), Some(1));
    assert_eq!(list("x", &[1, 2]).index_of(&Value::Float(2.0)), Some(1));
    assert_eq!(floats(0.0, 3.0, 1.0).index_of(&Value::Int(2)), Some(2));
    assert_eq!(ints(0, 3, 1).index_of(&Value::Float(2.0)), Some(2));
    let text = axis("x", Points::List(vec!["1".into(), Value::Bool(true)]));
    assert_eq!((text.index_of(&Value::Int(1)), text.index_of(&Value::Bool(true))), (None, Some(1)));
}

#[test]
fn named_points_have_attributes() {
    let point = |name: &str, width: i64| NamedPoint {
        name: name.to_owned(),
        attributes: BTreeMap::from([("width".to_owned(), Value::Int(width))]),
    };
    let model = axis("model", Points::Named(vec![point("small", 64), point("large", 512)]));
    assert_eq!(spelled(&model), ["small", "large"], "in declared order");
    assert_eq!(model.attribute(1, "width"), Some(Value::Int(512)));
    assert_eq!(
        (model.attribute(1, "depth"), model.attribute(2, "width"), model.attribute(0, "init")),
        (None, None, None)
    );
}

#[test]
fn seeds_are_31_bits_and_their_streams_differ() {
    let seeds = axis("seed", Points::Seeds { count: 200, salt: None, fresh: false, root: None });
    let all: BTreeSet<i64> = (0..200).map(|i| seeds.value(i).unwrap().as_i64().unwrap()).collect();
    assert_eq!(all.len(), 200);
    assert!(all.iter().all(|seed| (1..=0x7fff_ffff).contains(seed)));
    let streams: BTreeSet<i64> =
        ROLES.iter().map(|role| seeds.attribute(7, role).unwrap().as_i64().unwrap()).collect();
    assert_eq!(streams.len(), 4);
    assert_eq!(seeds.attribute(7, "other"), None);
    assert_eq!(seeds.value(200), None);
}

#[test]
fn seeds_do_not_depend_on_how_many_there_are() {
    let of = |count| axis("seed", Points::Seeds { count, salt: None, fresh: false, root: None });
    assert_eq!(of(3).value(2), of(u64::MAX).value(2));
    assert_ne!(axis_seed("seed", None, 0), axis_seed("other", None, 0));
    assert_ne!(axis_seed("seed", None, 0), axis_seed("seed", Some("salt"), 0));
    assert_eq!(axis_seed("seed", None, 0), axis_seed("seed", Some(""), 0));
}

#[test]
fn no_axis_can_be_named_into_a_role() {
    assert_ne!(axis_seed("role", Some("init"), 3), role_seed(3, "init"));
}

#[test]
fn hand_written_seeds_have_streams_too() {
    assert_eq!(list("seed", &[0, 5]).attribute(1, "init"), Some(Value::Int(role_seed(5, "init"))));
    let words = axis("seed", Points::List(vec!["a".into()]));
    assert_eq!(words.attribute(0, "init"), None);
}

#[test]
fn floats_are_spelled_one_way() {
    for (x, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (1e-5, "0.00001"),
        (9.9e-6, "9.9e-6"),
        (-1.5e-7, "-1.5e-7"),
        (123_456_789.0, "123456789"),
        (9_999_999_999_999_998.0, "9999999999999998"),
        (1e16, "1e16"),
        (-1e300, "-1e300"),
        (5e-324, "5e-324"),
    ] {
        assert_eq!(spell_float(x), expected);
    }
}

proptest! {
    #[test]
    fn a_spelled_float_reads_back(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
        prop_assert_eq!(spell_float(x).parse::<f64>().unwrap(), x);
    }

    #[test]
    fn integer_ranges_are_what_a_loop_gives(start in -50i64..50, stop in -50i64..50, step in -7i64..7) {
        let mut expected = Vec::new();
        let mut at = start;
        while step != 0 && (if step > 0 { at < stop } else { at > stop }) {
            expected.push(at.to_string());
            at += step;
        }
        prop_assert_eq!(spelled(&ints(start, stop, step)), expected);
    }

    #[test]
    fn no_axis_makes_it_panic(
        a in any::<f64>(), b in any::<f64>(), c in any::<f64>(), i in any::<i64>(), count in any::<u64>(), at in any::<u64>(),
    ) {
        for axis in [floats(a, b, c), log(a, b, count), axis("x", Points::Range { start: Value::Int(i), stop: Value::Float(b), step: Value::Float(c) })] {
            let _ = axis.value(at);
            let _ = axis.value(axis.len().wrapping_sub(1));
            let _ = (axis.index_of(&Value::Float(a)), axis.index_of(&Value::Int(i)));
        }
    }

    #[test]
    fn the_order_of_values_is_total(values in prop::collection::vec(number(), 3)) {
        let [a, b, c] = &values[..] else { unreachable!() };
        prop_assert_eq!(a.order(b), b.order(a).reverse());
        if a.order(b).is_le() && b.order(c).is_le() {
            prop_assert!(a.order(c).is_le());
        }
        prop_assert_eq!(a.order(b).is_eq(), a == b);
    }
}

fn number() -> impl Strategy<Value = Value> {
    let near = (1_i64 << 53) - 2..(1_i64 << 53) + 3;
    prop_oneof![
        near.clone().prop_map(Value::Int),
        near.prop_map(|i| Value::Float(i as f64)),
        Just(Value::Bool(true)),
        Just(Value::Text("a".to_owned())),
    ]
}
