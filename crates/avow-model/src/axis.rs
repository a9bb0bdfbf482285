//! The dimensions of a sweep, kept symbolic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::search::{Probed, Search};
use crate::seed;
use crate::value::Value;

/// One dimension of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values.
    pub points: Points,
}

/// The values of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Points {
    /// Listed values.
    List(Vec<Value>),
    /// Named values with attributes, in declared order.
    Named(Vec<NamedPoint>),
    /// `start, start + step, …`, below `stop` (above it where the step is negative).
    Range {
        /// The first value.
        start: Value,
        /// The bound, itself left out.
        stop: Value,
        /// The step; not zero.
        step: Value,
    },
    /// `count` values from `low` to `high`, both included, at equal ratios.
    Log {
        /// The first value; positive.
        low: f64,
        /// The last value; positive.
        high: f64,
        /// How many; at least two.
        count: u64,
    },
    /// Derived seeds.
    Seeds {
        /// How many.
        count: u64,
        /// Separates experiments that must not share seeds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        salt: Option<String>,
        /// Whether they are derived from the first registration of the chain.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fresh: bool,
        /// That registration, where there is one; told by [`seed::freshen`] and no part of a plan.
        #[serde(skip)]
        root: Option<String>,
    },
    /// A value computed from other axes and parameters; it adds no cells.
    Derived(Expression),
    /// Values that a search asks for, in the order of asking; none before it has asked.
    Probed(Probed),
    /// The one value that a search found; none before it is over, nor where it found none.
    Search(Box<Search>),
}

/// A named value of a mapping axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedPoint {
    /// The value itself.
    pub name: String,
    /// What `${axes.AXIS.ATTRIBUTE}` gives.
    pub attributes: BTreeMap<String, Value>,
}

impl Axis {
    /// How many values it has; one for a derived axis.
    pub fn len(&self) -> u64 {
        match &self.points {
            Points::List(values) => values.len() as u64,
            Points::Named(points) => points.len() as u64,
            Points::Range { start, stop, step } => range_len(start, stop, step),
            Points::Log { count, .. } | Points::Seeds { count, .. } => *count,
            Points::Derived(_) => 1,
            Points::Probed(probed) => probed.values.len() as u64,
            Points::Search(search) => search.values().len() as u64,
        }
    }

    /// Whether it has no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its value is computed from other axes.
    pub fn is_derived(&self) -> bool {
        matches!(self.points, Points::Derived(_))
    }

    /// The value at an index; `None` past the end, and for a derived axis.
    pub fn value(&self, index: u64) -> Option<Value> {
        if index >= self.len() {
            return None;
        }
        match &self.points {
            Points::List(values) => values.get(index as usize).cloned(),
            Points::Named(points) => points.get(index as usize).map(|p| Value::Text(p.name.clone())),
            Points::Range { start, step, .. } => range_value(start, step, index),
            Points::Log { low, high, count } => Value::float(log_value(*low, *high, *count, index)),
            Points::Seeds { salt, fresh: false, .. } => {
                Some(Value::Int(seed::axis_seed(&self.name, salt.as_deref(), index)))
            }
            Points::Seeds { salt, root, .. } => {
                Some(Value::Int(seed::fresh_seed(&self.name, salt.as_deref(), root.as_deref(), index)))
            }
            Points::Derived(_) => None,
            Points::Probed(probed) => probed.values.get(index as usize).cloned(),
            Points::Search(search) => search.values().get(index as usize).map(|value| (*value).clone()),
        }
    }

    /// The search, where the axis is one.
    pub fn search(&self) -> Option<&Search> {
        match &self.points {
            Points::Search(search) => Some(search),
            _ => None,
        }
    }

    /// An attribute of the value at an index: of a mapping axis, a coordinate of a point that a program found, a role
    /// stream of integer values, or the position of a derived seed.
    pub fn attribute(&self, index: u64, attribute: &str) -> Option<Value> {
        if let Points::Named(points) = &self.points {
            return points.get(index as usize)?.attributes.get(attribute).cloned();
        }
        if let Some(value) = self.search().and_then(|search| search.found(attribute)) {
            return Some(value.clone());
        }
        if matches!(self.points, Points::Seeds { .. }) && attribute == seed::INDEX {
            return i64::try_from(index).ok().filter(|_| index < self.len()).map(Value::Int);
        }
        let seed = self.value(index)?.as_i64()?;
        seed::ROLES.contains(&attribute).then(|| Value::Int(seed::role_seed(seed, attribute)))
    }

    /// The index of a value. An integer also finds the float of the same size and the other way round: a
    /// spec may say `at: {width: 1}` of an axis that holds `1.0`, and no axis holds both.
    pub fn index_of(&self, value: &Value) -> Option<u64> {
        let is = |index: &u64| self.value(*index).is_some_and(|here| same(&here, value));
        match &self.points {
            Points::Range { start: Value::Int(a), step: Value::Int(s), .. } if value.as_i64().is_some() => {
                let ahead = i128::from(value.as_i64()?) - i128::from(*a);
                u64::try_from(ahead.checked_div(i128::from(*s))?).ok().filter(is)
            }
            // Found by arithmetic, since such an axis may have more values than can be tried; the neighbours
            // are tried because the arithmetic is in floats.
            Points::Range { start, step, .. } => {
                let guess = (value.as_f64()? - start.as_f64()?) / step.as_f64()?;
                near(guess, self.len()).find(is)
            }
            Points::Log { low, high, count } => {
                let share =
                    (libm::log(value.as_f64()?) - libm::log(*low)) / (libm::log(*high) - libm::log(*low));
                near(share * count.saturating_sub(1) as f64, *count).find(is)
            }
            Points::List(_)
            | Points::Named(_)
            | Points::Seeds { .. }
            | Points::Probed(_)
            | Points::Search(_) => (0..self.len()).find(is),
            Points::Derived(_) => None,
        }
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(i), Value::Int(j)) => i == j,
        _ => a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64()),
    }
}

/// The indices below `len` around a guess; nearest to zero where the guess is no number.
fn near(guess: f64, len: u64) -> std::ops::Range<u64> {
    let middle = guess.round().max(0.0) as u64;
    middle.saturating_sub(2)..middle.saturating_add(3).min(len)
}

fn range_len(start: &Value, stop: &Value, step: &Value) -> u64 {
    if let (Value::Int(a), Value::Int(b), Value::Int(s)) = (start, stop, step) {
        let (a, b, s) = (i128::from(*a), i128::from(*b), i128::from(*s));
        let steps = if s == 0 { 0 } else { (b - a + s - s.signum()) / s };
        return u64::try_from(steps.max(0)).unwrap_or(u64::MAX);
    }
    let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
    let steps = (number(stop) - number(start)) / number(step);
    if !(steps.is_finite() && steps > 0.0) {
        return 0;
    }
    // A quotient within rounding of a whole number is that number, so that [0, 0.3, 0.1] has three values
    // however 0.3 / 0.1 rounds.
    let whole = steps.round();
    let near = whole >= 1.0 && (steps - whole).abs() <= 1e-12 * whole;
    if near { whole as u64 } else { steps.ceil() as u64 }
}

fn range_value(start: &Value, step: &Value, index: u64) -> Option<Value> {
    if let (Value::Int(a), Value::Int(s)) = (start, step) {
        let value = i128::from(*a) + i128::from(*s) * i128::from(index);
        return i64::try_from(value).ok().map(Value::Int);
    }
    let (a, s) = (start.as_f64()?, step.as_f64()?);
    // Decimal arithmetic on what was written: 0.1 + 2 · 0.1 is 0.3, and no value has more decimals than the
    // start and the step have.
    let decimals = decimals(a).max(decimals(s));
    Value::float(format!("{:.decimals$}", a + s * index as f64).parse().ok()?)
}

/// Decimals of the shortest plain spelling.
fn decimals(x: f64) -> usize {
    format!("{x}").split_once('.').map_or(0, |(_, digits)| digits.len())
}

fn log_value(low: f64, high: f64, count: u64, index: u64) -> f64 {
    if index == 0 {
        return low;
    }
    if index + 1 == count {
        return high;
    }
    let share = index as f64 / (count - 1) as f64;
    twelve_digits(libm::exp(libm::log(low) + (libm::log(high) - libm::log(low)) * share))
}

/// Rounded to twelve significant digits, so that a value reads as a person would write it.
pub(crate) fn twelve_digits(x: f64) -> f64 {
    format!("{x:.11e}").parse().expect("a printed float reads back")
}
