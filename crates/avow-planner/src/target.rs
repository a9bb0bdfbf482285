//! What `--only` names: a stage, or some members of it.

use avow_model::expand::{self, Member};
use avow_model::plan::Plan;
use avow_model::value::Value;

/// A stage and axis values that narrow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    stage: usize,
    at: Vec<(String, u64)>,
}

/// A target that names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No such stage.
    #[error("no stage is called `{0}`")]
    Stage(String),
    /// No such axis in the stage's scope.
    #[error("the stage `{stage}` does not use an axis `{axis}`")]
    Axis {
        /// The stage.
        stage: String,
        /// The name.
        axis: String,
    },
    /// No such value.
    #[error("the axis `{axis}` has no value `{value}`")]
    Value {
        /// The axis.
        axis: String,
        /// The text.
        value: String,
    },
    /// Not of the form `stage` or `stage[axis=value,…]`.
    #[error("`{0}` is not of the form `stage` or `stage[axis=value,…]`")]
    Form(String),
}

impl Target {
    /// Reads `train` or `train[seed=3]`, as members are written everywhere.
    pub fn parse(plan: &Plan, text: &str) -> Result<Target, TargetError> {
        let (name, rest) = match text.split_once('[') {
            None => (text, None),
            Some((name, rest)) => {
                let inner = rest.strip_suffix(']').ok_or_else(|| TargetError::Form(text.to_owned()))?;
                (name, Some(inner))
            }
        };
        let stage = plan.stage_index(name).ok_or_else(|| TargetError::Stage(name.to_owned()))?;
        let mut at = Vec::new();
        for pair in rest.into_iter().flat_map(|inner| inner.split(',')).filter(|pair| !pair.trim().is_empty())
        {
            let (axis, value) = pair.split_once('=').ok_or_else(|| TargetError::Form(text.to_owned()))?;
            at.push(point(plan, stage, axis.trim(), value.trim())?);
        }
        Ok(Target { stage, at })
    }

    /// The stage it names.
    pub fn stage(&self) -> usize {
        self.stage
    }

    /// The members it names.
    pub fn members<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Member> + 'a {
        expand::members(plan, self.stage).filter(move |member| {
            let cell = expand::cell(plan, *member);
            self.at.iter().all(|(axis, index)| cell.index(axis) == Some(*index))
        })
    }
}

fn point(plan: &Plan, stage: usize, axis: &str, value: &str) -> Result<(String, u64), TargetError> {
    let known = plan.stages[stage].scope.iter().any(|name| name == axis);
    let found = plan
        .axis(axis)
        .filter(|_| known)
        .ok_or_else(|| TargetError::Axis { stage: plan.stages[stage].name.clone(), axis: axis.to_owned() })?;
    let number = value.parse::<f64>().ok().and_then(Value::float);
    let spelled = (0..found.len()).find(|i| found.value(*i).is_some_and(|v| v.to_string() == value));
    let index = spelled.or_else(|| found.index_of(&number?));
    index
        .map(|i| (axis.to_owned(), i))
        .ok_or_else(|| TargetError::Value { axis: axis.to_owned(), value: value.to_owned() })
}
