//! The steps that searches share: what is asked for next, what was found.

use super::{Extreme, Found, Step, Told, Void};
use crate::value::Value;

pub(super) fn measured_at(told: &[Told], point: &[Value]) -> Option<f64> {
    told.iter().find(|probe| probe.point == point).map(|probe| probe.measured)
}

/// Asks for `points` that have not been told; `None` where all have.
pub(super) fn ask(points: Vec<Vec<Value>>, at_most: u64, told: &[Told]) -> Option<Step> {
    let new: Vec<Vec<Value>> =
        points.into_iter().filter(|point| measured_at(told, point).is_none()).collect();
    if new.is_empty() {
        return None;
    }
    let fits = u64::try_from(told.len() + new.len()).is_ok_and(|all| all <= at_most);
    Some(if fits { Step::Ask(new) } else { Step::Void(Void::Exhausted) })
}

/// The best first; equal ones in declared order.
pub(super) fn ranked(goal: Extreme, points: &[Vec<Value>], told: &[Told]) -> Vec<Vec<Value>> {
    let mut ranked: Vec<(f64, &Vec<Value>)> =
        points.iter().filter_map(|point| Some((measured_at(told, point)?, point))).collect();
    ranked.sort_by(|(a, _), (b, _)| match goal {
        Extreme::Smallest => a.total_cmp(b),
        Extreme::Largest => b.total_cmp(a),
    });
    ranked.into_iter().map(|(_, point)| point.clone()).collect()
}

pub(super) fn found(value: &Value, within: Option<(Value, Value)>, told: &[Told]) -> Step {
    let probes = told.len() as u64;
    Step::Found(Found { value: value.clone(), within, probes, point: Vec::new() })
}

pub(super) fn best(goal: Extreme, values: &[Value], at_most: u64, told: &[Told]) -> Step {
    let points: Vec<Vec<Value>> = values.iter().map(|value| vec![value.clone()]).collect();
    if let Some(step) = ask(points.clone(), at_most, told) {
        return step;
    }
    match ranked(goal, &points, told).first().and_then(|point| point.first()) {
        Some(value) => found(value, None, told),
        None => Step::Void(Void::Exhausted),
    }
}

pub(super) fn halving(
    goal: Extreme,
    (values, budgets): (&[Value], &[Value]),
    one_in: u64,
    at_most: u64,
    told: &[Told],
) -> Step {
    let mut left: Vec<Value> = values.to_vec();
    let mut budgets: Vec<&Value> = budgets.iter().collect();
    budgets.sort_by(|a, b| a.order(b));
    for budget in budgets {
        let rung: Vec<Vec<Value>> = left.iter().map(|value| vec![value.clone(), budget.clone()]).collect();
        if let Some(step) = ask(rung.clone(), at_most, told) {
            return step;
        }
        let keep = (left.len() as u64).div_ceil(one_in.max(2));
        left = ranked(goal, &rung, told)
            .into_iter()
            .filter_map(|point| point.into_iter().next())
            .take(usize::try_from(keep).unwrap_or(usize::MAX))
            .collect();
    }
    match left.first() {
        Some(value) => found(value, None, told),
        None => Step::Void(Void::Exhausted),
    }
}
