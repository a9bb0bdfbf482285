//! What the executor hands to a built-in stage: values and file names, nothing else.
//!
//! A [`Call`] holds no stage name, no cell and no claim, so an operation cannot treat one arm of an
//! experiment differently from another. An [`Invocation`] is a call that was checked against the operation's
//! signature: every parameter is present, of its type and in its range, and every port is known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_model::op::{OpSignature, Parameter, ParameterType};
use avow_model::value::Value;

use crate::error::OpError;

/// One request to run an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The entries of `with:`; absent ones take their default.
    pub with: BTreeMap<String, Value>,
    /// Input files by port.
    pub inputs: BTreeMap<String, PathBuf>,
    /// Output files by port. Their folders must exist.
    pub outputs: BTreeMap<String, PathBuf>,
    /// Where the measurements go; [`avow_model::op::MEASUREMENTS_FILE`] in the working folder where it is
    /// absent.
    pub measurements: Option<PathBuf>,
}

/// A call that fits its operation's signature.
#[derive(Clone, Debug)]
pub struct Invocation<'a> {
    values: BTreeMap<&'static str, Value>,
    call: &'a Call,
}

impl<'a> Invocation<'a> {
    /// Checks a call against a signature and fills in the defaults.
    ///
    /// # Errors
    /// [`OpError::Parameter`] and [`OpError::Port`], the first that is found, in name order.
    pub fn check(signature: &OpSignature, call: &'a Call) -> Result<Invocation<'a>, OpError> {
        for name in call.with.keys() {
            if !signature.parameters.iter().any(|p| p.name == name) {
                let known: Vec<&str> = signature.parameters.iter().map(|p| p.name).collect();
                let problem =
                    format!("`{}` has no such parameter; it has {}", signature.name, known.join(", "));
                return Err(OpError::parameter(name, problem));
            }
        }
        let mut values = BTreeMap::new();
        for parameter in &signature.parameters {
            values.insert(parameter.name, checked_value(parameter, call.with.get(parameter.name))?);
        }
        let inputs: Vec<_> = signature.inputs.iter().map(|p| (p.name, p.optional)).collect();
        let outputs: Vec<_> = signature.outputs.iter().map(|p| (p.name, p.optional)).collect();
        check_ports("input", &inputs, &call.inputs)?;
        check_ports("output", &outputs, &call.outputs)?;
        Ok(Invocation { values, call })
    }

    /// The value of a declared parameter.
    pub(crate) fn value(&self, name: &str) -> &Value {
        self.values.get(name).expect("an operation only reads the parameters of its signature")
    }

    /// A declared non-negative integer parameter.
    pub(crate) fn count(&self, name: &str) -> usize {
        let value = self.value(name).as_i64().expect("checked as an integer");
        usize::try_from(value).expect("counts are declared with a lower bound of at least zero")
    }

    /// A declared number.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.value(name).as_f64().expect("checked as a number")
    }

    /// A declared 31-bit seed.
    pub(crate) fn seed(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).expect("checked as a 31-bit seed")
    }

    /// A declared choice.
    pub(crate) fn choice(&self, name: &str) -> &str {
        self.value(name).as_text().expect("checked as a choice")
    }

    /// A declared list of non-negative integers.
    pub(crate) fn counts(&self, name: &str) -> Vec<usize> {
        let Value::List(items) = self.value(name) else { unreachable!("checked as a list") };
        items
            .iter()
            .map(|item| {
                usize::try_from(item.as_i64().expect("checked as integers")).expect("declared non-negative")
            })
            .collect()
    }

    /// The file of a required input.
    pub(crate) fn input(&self, name: &str) -> &'a Path {
        self.call.inputs.get(name).expect("checked as present")
    }

    /// The file of a required output.
    pub(crate) fn output(&self, name: &str) -> &'a Path {
        self.call.outputs.get(name).expect("checked as present")
    }

    /// The file of an optional output, where it is wanted.
    pub(crate) fn wanted(&self, name: &str) -> Option<&'a Path> {
        self.call.outputs.get(name).map(PathBuf::as_path)
    }

    /// Where the measurements go.
    pub(crate) fn measurements(&self) -> PathBuf {
        self.call.measurements.clone().unwrap_or_else(|| PathBuf::from(avow_model::op::MEASUREMENTS_FILE))
    }
}

fn check_ports(
    side: &'static str,
    declared: &[(&'static str, bool)],
    given: &BTreeMap<String, PathBuf>,
) -> Result<(), OpError> {
    let error = |name: &str, problem: &str| OpError::Port {
        side,
        name: name.to_owned(),
        problem: problem.to_owned(),
    };
    for name in given.keys() {
        if !declared.iter().any(|(known, _)| known == name) {
            return Err(error(name, "this stage has none of that name"));
        }
    }
    for (name, optional) in declared {
        if !optional && !given.contains_key(*name) {
            return Err(error(name, "is required and was not given"));
        }
    }
    Ok(())
}

fn checked_value(parameter: &Parameter, given: Option<&Value>) -> Result<Value, OpError> {
    let Some(value) = given.or(parameter.default.as_ref()) else {
        return Err(OpError::parameter(parameter.name, "is required and was not given"));
    };
    match refusal(&parameter.accepts, value) {
        None => Ok(value.clone()),
        Some(wanted) => Err(OpError::parameter(parameter.name, format!("must be {wanted}, not `{value}`"))),
    }
}

/// What would have been right, where the value is not.
fn refusal(accepts: &ParameterType, value: &Value) -> Option<String> {
    let int_in =
        |value: &Value, low: i64, high: i64| value.as_i64().is_some_and(|i| (low..=high).contains(&i));
    match accepts {
        ParameterType::Int { low, high } => {
            (!int_in(value, *low, *high)).then(|| format!("an integer from {low} to {high}"))
        }
        ParameterType::Number { low, high } => {
            let fits = value.as_f64().is_some_and(|x| *low <= x && x <= *high);
            (!fits).then(|| format!("a number from {low} to {high}"))
        }
        ParameterType::Bool => (!matches!(value, Value::Bool(_))).then(|| "true or false".to_owned()),
        ParameterType::Choice(words) => {
            let fits = value.as_text().is_some_and(|t| words.contains(&t));
            (!fits).then(|| format!("one of {}", words.join(", ")))
        }
        ParameterType::Ints { low, high } => {
            let fits = matches!(value, Value::List(items)
                if !items.is_empty() && items.iter().all(|item| int_in(item, *low, *high)));
            (!fits).then(|| format!("a list of integers from {low} to {high}"))
        }
        ParameterType::Seed => {
            (!int_in(value, 0, i64::from(i32::MAX))).then(|| "a seed from 0 to 2147483647".to_owned())
        }
    }
}
