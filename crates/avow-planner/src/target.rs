//! What `--only` names: a stage, or some members of it.

use avow_model::axis::Axis;
use avow_model::expand::{self, Member};
use avow_model::label;
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
        let pairs = label::pairs(rest.unwrap_or_default()).map_err(|_| TargetError::Form(text.to_owned()))?;
        for (axis, value) in pairs {
            at.push(point(plan, stage, &axis, &value)?);
        }
        Ok(Target { stage, at })
    }

    /// The stage it names.
    pub fn stage(&self) -> usize {
        self.stage
    }

    /// The members it names. Counts through the axes that are left open, not through the whole stage.
    pub fn members<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Member> + 'a {
        let fixed = |axis: &str| self.at.iter().find(|(name, _)| name == axis).map(|(_, index)| *index);
        let scope = plan.stages[self.stage].scope.iter();
        let open: Vec<&Axis> =
            scope.filter(|name| fixed(name).is_none()).filter_map(|name| plan.axis(name)).collect();
        // An axis that is fixed to two values has no member.
        let possible = self.at.iter().all(|(axis, index)| fixed(axis) == Some(*index));
        let count = open.iter().map(|axis| axis.len()).fold(u64::from(possible), u64::saturating_mul);
        let one = move |combination: u64| {
            let mut rest = combination;
            let mut chosen = Vec::with_capacity(open.len());
            for axis in open.iter().rev() {
                chosen.push((axis.name.as_str(), rest % axis.len().max(1)));
                rest /= axis.len().max(1);
            }
            let picked = |name: &str| chosen.iter().find(|(axis, _)| *axis == name).map(|(_, i)| *i);
            expand::member_at(plan, self.stage, |name| picked(name).or_else(|| fixed(name)))
        };
        (0..count).filter_map(one).filter(|member| expand::exists(plan, *member))
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
