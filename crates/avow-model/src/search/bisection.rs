//! Halving an interval until what a goal divides is within it.

use super::steps::{ask, found, measured_at};
use super::{Goal, Step, Told, Until, Void};
use crate::value::Value;

pub(super) fn step(
    (from, to, log): (&Value, &Value, bool),
    goal: &Goal,
    until: Until,
    at_most: u64,
    told: &[Told],
) -> Step {
    if let Some(step) = ask(vec![vec![from.clone()], vec![to.clone()]], at_most, told) {
        return step;
    }
    let met = |value: &Value| measured_at(told, std::slice::from_ref(value)).map(|x| goal.met(x));
    let (mut low, mut high) = (from.clone(), to.clone());
    let (Some(at_low), Some(at_high)) = (met(&low), met(&high)) else {
        return Step::Void(Void::NoCrossing);
    };
    if at_low == at_high {
        return Step::Void(Void::NoCrossing);
    }
    loop {
        let middle = middle(&low, &high, log);
        let Some(middle) = middle.filter(|_| !close(&low, &high, until)) else {
            let value = if at_low { &low } else { &high };
            return found(value, Some((low.clone(), high.clone())), told);
        };
        match met(&middle) {
            Some(is) if is == at_low => low = middle,
            Some(_) => high = middle,
            None => {
                let step = ask(vec![vec![middle]], at_most, told);
                return step.unwrap_or(Step::Void(Void::Exhausted));
            }
        }
    }
}

fn close(low: &Value, high: &Value, until: Until) -> bool {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let (low, high) = (number(low), number(high));
    match until {
        Until::Width(width) => high - low <= width,
        Until::Ratio(ratio) => high <= low * ratio,
    }
}

/// Strictly between the two; `None` where there is no such number of their kind.
fn middle(low: &Value, high: &Value, log: bool) -> Option<Value> {
    let (a, b) = (low.as_f64()?, high.as_f64()?);
    let exact = if log { libm::sqrt(a) * libm::sqrt(b) } else { f64::midpoint(a, b) };
    let middle = match (low, high) {
        (Value::Int(_), Value::Int(_)) => Value::Int(exact.floor() as i64),
        // As a person would write it, as long as that still lies between.
        _ => {
            let short = crate::axis::twelve_digits(exact);
            Value::float(if short > a && short < b { short } else { exact })?
        }
    };
    let x = middle.as_f64()?;
    (x > a && x < b).then_some(middle)
}
