//! Short constructors for the parts of a signature, so that each operation's declaration reads as a table.

use avow_model::op::{MeasurementName, Parameter, ParameterType, Port};
use avow_model::value::Value;

/// A required input; `about` names its tensors with their shapes.
pub(crate) fn input(name: &'static str, about: &'static str) -> Port {
    Port { name, optional: false, file: "", about }
}

/// A required output written to `file` where the spec does not say otherwise.
pub(crate) fn output(name: &'static str, file: &'static str, about: &'static str) -> Port {
    Port { name, optional: false, file, about }
}

/// An output that is written only where the spec asks for it.
pub(crate) fn optional_output(name: &'static str, file: &'static str, about: &'static str) -> Port {
    Port { name, optional: true, file, about }
}

/// A parameter that must be given.
pub(crate) fn required(name: &'static str, accepts: ParameterType, about: &'static str) -> Parameter {
    Parameter { name, accepts, default: None, about }
}

/// A parameter that may be left out.
pub(crate) fn defaulted(
    name: &'static str,
    accepts: ParameterType,
    default: Value,
    about: &'static str,
) -> Parameter {
    Parameter { name, accepts, default: Some(default), about }
}

/// A list of integers as a default.
pub(crate) fn ints(values: &[i64]) -> Value {
    Value::List(values.iter().copied().map(Value::Int).collect())
}

/// An integer parameter from `low` to `high`.
pub(crate) fn int(low: i64, high: i64) -> ParameterType {
    ParameterType::Int { low, high }
}

/// A measurement with its record keys.
pub(crate) fn measurement(
    name: &'static str,
    keys: &'static [&'static str],
    range: Option<(f64, f64)>,
    about: &'static str,
) -> MeasurementName {
    MeasurementName { name, keys, range, about }
}
