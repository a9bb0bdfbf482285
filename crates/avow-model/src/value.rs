//! Parameter and axis values, and the one spelling each has.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A value as a spec may state it and an action may receive it.
///
/// Integers and floats are distinct: `1` and `1.0` are two values. Floats are finite and never `-0.0`
/// (see [`Value::float`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`, as in YAML 1.2.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// A finite 64-bit float.
    Float(f64),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Value>),
    /// A mapping, sorted by key.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// A float with negative zero folded into zero; `None` where it is not finite.
    pub fn float(x: f64) -> Option<Value> {
        x.is_finite().then_some(Value::Float(if x == 0.0 { 0.0 } else { x }))
    }

    /// The number this value is, whichever of the two kinds it has.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// The integer this value is.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The text this value is.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// A total order for sorting cells and records: by kind (numbers compare with numbers), then by value.
    pub fn order(&self, other: &Value) -> Ordering {
        fn rank(v: &Value) -> u8 {
            match v {
                Value::Bool(_) => 0,
                Value::Int(_) | Value::Float(_) => 1,
                Value::Text(_) => 2,
                Value::List(_) => 3,
                Value::Map(_) => 4,
            }
        }
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a
                .iter()
                .zip(b)
                .map(|(x, y)| x.order(y))
                .find(|o| o.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (Value::Map(a), Value::Map(b)) => a
                .iter()
                .zip(b)
                .map(|((k, x), (l, y))| k.cmp(l).then_with(|| x.order(y)))
                .find(|o| o.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            (a, b) => match (a.as_f64(), b.as_f64()) {
                // Mixed kinds: by size, and an integer before the float of the same size.
                (Some(x), Some(y)) => x
                    .total_cmp(&y)
                    .then_with(|| matches!(a, Value::Float(_)).cmp(&matches!(b, Value::Float(_)))),
                _ => rank(a).cmp(&rank(b)),
            },
        }
    }
}

/// The canonical spelling of a float: the shortest decimal that round-trips, plain as in Rust's `{}` between
/// 1e-5 and 1e16 and in scientific form outside.
pub fn spell_float(x: f64) -> String {
    if x == 0.0 {
        "0".to_owned()
    } else if (1e-5..1e16).contains(&x.abs()) {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

impl fmt::Display for Value {
    /// The spelling a command receives. Lists and maps are JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) => f.write_str(&spell_float(*x)),
            Value::Text(t) => f.write_str(t),
            Value::List(_) | Value::Map(_) => {
                f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
            }
        }
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Self {
        Value::Int(i)
    }
}

impl From<&str> for Value {
    fn from(t: &str) -> Self {
        Value::Text(t.to_owned())
    }
}
