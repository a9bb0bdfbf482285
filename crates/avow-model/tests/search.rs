//! Searches are pure: the same answers lead to the same questions and the same end.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use avow_model::axis::{Axis, Points};
use avow_model::canonical::Record;
use avow_model::journal::Event;
use avow_model::plan::Plan;
use avow_model::search::{
    Decision, Extreme, Found, Gather, Goal, Method, Probed, Search, State, Step, Told, Until, Void, forget,
};
use avow_model::value::Value;

fn search(method: Method, at_most: u64) -> Search {
    Search {
        method,
        over: "x".to_owned(),
        stage: "train".to_owned(),
        measure: "loss".to_owned(),
        reduce: Gather::Mean,
        at_most,
        asked: Vec::new(),
        consulted: Vec::new(),
        state: State::Open,
        per: Vec::new(),
        ended: Vec::new(),
    }
}

fn float(x: f64) -> Value {
    Value::float(x).unwrap()
}

/// Answers every question with `f` until the search is over.
fn carry_out(
    search: &Search,
    axes: &dyn Fn(&str) -> Vec<Value>,
    f: &dyn Fn(&[f64]) -> f64,
) -> (Step, Vec<Told>) {
    let mut told: Vec<Told> = Vec::new();
    for _ in 0..1000 {
        match search.step(&told, axes, &[]) {
            Step::Ask(points) => {
                assert!(!points.is_empty());
                for point in points {
                    assert!(told.iter().all(|t| t.point != point), "asked twice");
                    let numbers: Vec<f64> = point.iter().map(|v| v.as_f64().unwrap()).collect();
                    told.push(Told { measured: f(&numbers), point });
                }
                assert!(told.len() as u64 <= search.at_most);
            }
            over => {
                // Order of telling does not matter.
                let mut other = told.clone();
                other.reverse();
                assert_eq!(search.step(&other, axes, &[]), over);
                return (over, told);
            }
        }
    }
    panic!("it does not end");
}

fn none(_: &str) -> Vec<Value> {
    Vec::new()
}

fn bisection(from: Value, to: Value, log: bool, goal: Goal, until: Until) -> Method {
    Method::Bisection { from, to, log, goal, until }
}

#[test]
fn bisection_closes_in_on_the_crossing_from_the_side_of_the_goal() {
    let step = |goal| {
        let method = bisection(float(1e-4), float(1.0), true, goal, Until::Ratio(1.05));
        carry_out(&search(method, 40), &none, &|x| f64::from(x[0] > 0.037)).0
    };
    let Step::Found(above) = step(Goal::Above(0.5)) else { panic!("no value") };
    let Step::Found(below) = step(Goal::Below(0.5)) else { panic!("no value") };
    let (low, high) = above.within.clone().unwrap();
    assert_eq!(above.value, high);
    assert_eq!(below.value, low);
    let (low, high) = (low.as_f64().unwrap(), high.as_f64().unwrap());
    assert!(low <= 0.037 && 0.037 < high && high <= low * 1.05, "{low} {high}");
}

#[test]
fn bisection_of_integers_ends_at_neighbours() {
    let method = bisection(Value::Int(1), Value::Int(1000), false, Goal::Below(0.0), Until::Width(0.5));
    let (step, told) = carry_out(&search(method, 40), &none, &|x| x[0] - 617.5);
    let Step::Found(found) = step else { panic!("{step:?}") };
    assert_eq!(found.value, Value::Int(617));
    assert_eq!(found.within, Some((Value::Int(617), Value::Int(618))));
    assert!(told.iter().all(|t| matches!(t.point[0], Value::Int(_))));
}

#[test]
fn bisection_down_to_the_last_float_ends() {
    let method = bisection(float(0.0), float(1.0), false, Goal::Above(0.0), Until::Width(0.0));
    let (step, _) = carry_out(&search(method, 500), &none, &|x| x[0] - 0.1);
    assert!(matches!(step, Step::Found(_)), "{step:?}");
}

#[test]
fn a_goal_that_is_never_or_always_met_is_no_crossing() {
    let method = bisection(float(0.0), float(1.0), false, Goal::Above(0.5), Until::Width(0.1));
    for height in [0.0, 1.0] {
        let (step, told) = carry_out(&search(method.clone(), 40), &none, &|_| height);
        assert_eq!(step, Step::Void(Void::NoCrossing));
        assert_eq!(told.len(), 2);
    }
}

#[test]
fn the_budget_is_never_exceeded() {
    let method = bisection(float(0.0), float(1.0), false, Goal::Above(0.5), Until::Width(1e-9));
    let (step, told) = carry_out(&search(method, 5), &none, &|x| x[0]);
    assert_eq!(step, Step::Void(Void::Exhausted));
    assert_eq!(told.len(), 5);
}

fn axes(name: &str) -> Vec<Value> {
    match name {
        "x" => (0..9).map(Value::Int).collect(),
        _ => [1, 3, 9].map(Value::Int).to_vec(),
    }
}

#[test]
fn the_best_of_a_declared_axis_is_the_first_of_the_best() {
    let parabola = |x: &[f64]| (x[0] - 4.5).powi(2);
    let (step, told) = carry_out(&search(Method::Best { goal: Extreme::Smallest }, 40), &axes, &parabola);
    let Step::Found(found) = step else { panic!("{step:?}") };
    assert_eq!((found.value, found.probes, told.len()), (Value::Int(4), 9, 9));
    let (step, _) = carry_out(&search(Method::Best { goal: Extreme::Largest }, 40), &axes, &parabola);
    assert!(matches!(step, Step::Found(found) if found.value == Value::Int(0)));
}

#[test]
fn halving_tries_all_at_the_smallest_budget_and_few_at_the_largest() {
    let method = Method::Halving { goal: Extreme::Smallest, budget: "epochs".to_owned(), one_in: 3 };
    // With a small budget the order is not yet the final one.
    let loss = |x: &[f64]| (x[0] - 6.0).abs() + 3.0 / x[1] * f64::from(x[0] == 6.0);
    let (step, told) = carry_out(&search(method, 40), &axes, &loss);
    let at = |budget: i64| told.iter().filter(|t| t.point[1] == Value::Int(budget)).count();
    assert_eq!([at(1), at(3), at(9)], [9, 3, 1]);
    assert!(matches!(step, Step::Found(found) if found.probes == 13), "{told:?}");
}

#[test]
fn values_at_one_probe_become_one() {
    let values = [3.0, 1.0, 2.0, 10.0];
    let all = [Gather::Mean, Gather::Median, Gather::Min, Gather::Max].map(|g| g.apply(&values).unwrap());
    assert_eq!(all, [4.0, 2.5, 1.0, 10.0]);
    assert_eq!(Gather::Median.apply(&[]), None);
}

fn plan() -> Plan {
    let method = bisection(float(0.5), float(1.0), false, Goal::Above(0.5), Until::Width(0.1));
    let probed = Probed { search: "limit".to_owned(), values: Vec::new() };
    let searched = search(method, 40);
    Plan {
        experiment: "searched".to_owned(),
        params: BTreeMap::new(),
        axes: vec![
            Axis { name: "limit".to_owned(), points: Points::Search(Box::new(searched)) },
            Axis { name: "x".to_owned(), points: Points::Probed(probed) },
        ],
        exclude: Vec::new(),
        pilot: Vec::new(),
        seen: Vec::new(),
        registration: BTreeMap::new(),
        stages: Vec::new(),
        claims: Vec::new(),
    }
}

#[test]
fn what_a_search_asks_for_and_finds_is_not_in_the_plans_digest() {
    let declared = plan();
    let mut grown = declared.clone();
    let decision = |answer| Decision { search: "limit".to_owned(), used: Vec::new(), answer, at: Vec::new() };
    decision(Step::Ask(vec![vec![float(0.5)], vec![float(1.0)]])).apply(&mut grown);
    assert_eq!(grown.axis("x").unwrap().len(), 2);
    assert!(grown.axis("limit").unwrap().is_empty());
    let found = Found { value: float(1.0), within: None, probes: 2, point: Vec::new() };
    decision(Step::Found(found)).apply(&mut grown);
    assert_eq!(grown.axis("limit").unwrap().value(0), Some(float(1.0)));
    assert_ne!(grown, declared);
    assert_eq!(grown.digest(), declared.digest());
    assert_eq!(Plan::from_bytes(&grown.to_bytes()).unwrap(), declared);
    forget(&mut grown);
    assert_eq!(grown, declared);
}

#[test]
fn the_declaration_of_a_search_and_the_line_of_a_decision_are_pinned() {
    let json = serde_json::to_string(&plan().axes[0]).unwrap();
    let expected = concat!(
        r#"{"name":"limit","points":{"search":{"method":{"bisection":{"from":0.5,"to":1.0,"goal":{"above":0.5},"#,
        r#""until":{"width":0.1}}},"over":"x","stage":"train","measure":"loss","reduce":"mean","at_most":40}}}"#
    );
    assert_eq!(json, expected);
    let decision = Decision {
        search: "limit".to_owned(),
        used: Vec::new(),
        answer: Step::Void(Void::Failed { member: "train[x=1]".to_owned() }),
        at: Vec::new(),
    };
    let event = Event::Decided { decision: Box::new(decision) };
    let expected = r#"{"kind":"decided","decision":{"search":"limit","answer":{"void":{"code":"failed","member":"train[x=1]"}}}}"#;
    assert_eq!(serde_json::to_string(&event).unwrap(), expected);
    assert_eq!(serde_json::from_str::<Event>(expected).unwrap(), event);
}
