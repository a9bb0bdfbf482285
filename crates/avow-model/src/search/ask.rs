//! Asking a program of the author's what to probe next.
//!
//! The program is an ordinary stage with one member a round. What it is given is [`Ask::probes`], a JSON text of
//! everything that was probed before; what it writes is read by [`Ask::read`]. Both are pure, so whoever has the
//! attempts can follow the search without running anything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::steps::{measured_at, ranked};
use super::{Extreme, Found, Step, Told, Void};
use crate::digest::BlobDigest;
use crate::value::Value;

/// How a program is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The stage that answers.
    pub program: String,
    /// Its output that holds the answer.
    pub output: String,
    /// The axis that numbers the rounds of asking, from 0.
    pub rounds: String,
    /// Which measured value is best.
    pub goal: Extreme,
    /// What it may choose, one axis after another.
    pub space: Vec<Dimension>,
}

/// One axis that the program chooses values of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// The axis.
    pub axis: String,
    /// The values it may have.
    pub choice: Choice,
}

/// Which values may be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Numbers of an interval, both ends included; integers where both ends are.
    Between {
        /// The lower end.
        from: Value,
        /// The upper end.
        to: Value,
        /// Whether the author thinks of it in ratios; told to the program.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        log: bool,
    },
    /// One of these.
    Among(Vec<Value>),
}

/// One round of asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consultation {
    /// Its number, from 0.
    pub round: u64,
    /// What the program is given.
    pub probes: BlobDigest,
    /// The same as text; it follows from the probes before.
    #[serde(skip)]
    pub text: String,
}

/// What a program answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Probe these points too.
    Probe(Vec<Vec<Value>>),
    /// It is enough.
    Stop,
}

#[derive(Serialize)]
struct Given<'a> {
    goal: Extreme,
    at_most: u64,
    space: BTreeMap<&'a str, Space<'a>>,
    probes: Vec<Probe<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Space<'a> {
    Between { from: &'a Value, to: &'a Value, scale: &'static str },
    Among { values: &'a [Value] },
}

#[derive(Serialize)]
struct Probe<'a> {
    at: BTreeMap<&'a str, &'a Value>,
    value: f64,
}

impl Ask {
    /// What the program is given: the goal, the budget, the space, and every probe in the order of asking.
    pub fn probes(&self, at_most: u64, told: &[Told]) -> String {
        let space = self.space.iter().map(|dimension| (dimension.axis.as_str(), dimension.choice.shown()));
        let probe = |told: &Told| -> Json {
            let names = self.space.iter().map(|dimension| dimension.axis.as_str());
            let probe = Probe { at: names.zip(&told.point).collect(), value: told.measured };
            serde_json::to_value(probe).unwrap_or(Json::Null)
        };
        // A line for each probe, so that people can read it and two texts can be compared.
        let head = Given { goal: self.goal, at_most, space: space.collect(), probes: Vec::new() };
        let head = serde_json::to_string(&head).unwrap_or_default();
        let head = head.strip_suffix("[]}").unwrap_or(&head);
        let lines: Vec<String> = told.iter().map(|told| format!("\n  {}", probe(told))).collect();
        format!("{head}[{}\n]}}\n", lines.join(","))
    }

    /// An answer from the text that the program wrote.
    ///
    /// # Errors
    /// With the reason in words, where it is none.
    pub fn read(&self, text: &str) -> Result<Answer, String> {
        let json: Json = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        let Json::Object(map) = &json else { return Err("it is no JSON object".to_owned()) };
        if let Some(unknown) = map.keys().find(|key| !matches!(key.as_str(), "probe" | "stop")) {
            return Err(format!("it has a field `{}`; the fields are `probe` and `stop`", short(unknown)));
        }
        match (map.get("probe"), map.get("stop")) {
            (None, Some(Json::Bool(true))) => Ok(Answer::Stop),
            (Some(points), None | Some(Json::Bool(false))) => {
                let points = match points {
                    Json::Array(points) => points.iter().collect(),
                    one => vec![one],
                };
                points.into_iter().map(|point| self.point(point)).collect::<Result<_, _>>().map(Answer::Probe)
            }
            _ => Err("it says neither `probe` with a point or several nor `stop: true`".to_owned()),
        }
    }

    fn point(&self, json: &Json) -> Result<Vec<Value>, String> {
        let Json::Object(map) = json else {
            return Err("a point is an object with a value for each axis".to_owned());
        };
        let known = |name: &String| self.space.iter().any(|dimension| dimension.axis == *name);
        if let Some(unknown) = map.keys().find(|name| !known(name)) {
            return Err(format!("`{}` is no axis of the search", short(unknown)));
        }
        let value = |dimension: &Dimension| {
            let axis = &dimension.axis;
            let given = map.get(axis).ok_or_else(|| format!("a point has no value for `{axis}`"))?;
            let refused = || format!("{} cannot be the value of `{axis}`", short(&given.to_string()));
            dimension.choice.admits(given).ok_or_else(refused)
        };
        self.space.iter().map(value).collect()
    }

    /// The next step: `told` are all points that were asked for, `consulted` what the program was given in each
    /// round, `answers` what it wrote.
    pub(super) fn step(&self, at_most: u64, told: &[Told], consulted: &[String], answers: &[String]) -> Step {
        let Some(last) = answers.last() else { return self.consult(at_most, told, consulted) };
        let points = match self.read(last) {
            Ok(Answer::Probe(points)) => points,
            Ok(Answer::Stop) => return self.best(told),
            Err(reason) => {
                let round = answers.len() as u64 - 1;
                return Step::Void(Void::BadAnswer { round, reason });
            }
        };
        let left = usize::try_from(at_most).unwrap_or(usize::MAX).saturating_sub(told.len());
        let mut new: Vec<Vec<Value>> = Vec::new();
        for point in points {
            if measured_at(told, &point).is_none() && !new.contains(&point) && new.len() < left {
                new.push(point);
            }
        }
        match (new.is_empty(), left) {
            (false, _) => Step::Ask(new),
            (true, 0) => self.best(told),
            (true, _) => self.consult(at_most, told, consulted),
        }
    }

    fn consult(&self, at_most: u64, told: &[Told], consulted: &[String]) -> Step {
        let text = self.probes(at_most, told);
        // The same question has the same answer, which was nothing new.
        if consulted.last() == Some(&text) {
            return Step::Void(Void::NothingNew { round: consulted.len() as u64 - 1 });
        }
        let (round, probes) = (consulted.len() as u64, BlobDigest::of(text.as_bytes()));
        Step::Consult(Consultation { round, probes, text })
    }

    /// The best of what was probed; of equal ones the first.
    fn best(&self, told: &[Told]) -> Step {
        let points: Vec<Vec<Value>> = told.iter().map(|told| told.point.clone()).collect();
        let Some(best) = ranked(self.goal, &points, told).into_iter().next() else {
            return Step::Void(Void::Exhausted);
        };
        let number = points.iter().position(|point| *point == best).map_or(0, |at| at as i64 + 1);
        let value = match best.as_slice() {
            [one] => one.clone(),
            _ => Value::Int(number),
        };
        Step::Found(Found { value, within: None, probes: told.len() as u64, point: best })
    }
}

impl Choice {
    fn shown(&self) -> Space<'_> {
        match self {
            Choice::Between { from, to, log } => {
                Space::Between { from, to, scale: if *log { "log" } else { "linear" } }
            }
            Choice::Among(values) => Space::Among { values },
        }
    }

    /// The value that a program means.
    fn admits(&self, given: &Json) -> Option<Value> {
        let number = given.as_f64();
        match self {
            Choice::Between { from: Value::Int(low), to: Value::Int(high), .. } => {
                let whole = given
                    .as_i64()
                    .or_else(|| number.filter(|x| x.fract() == 0.0 && x.abs() < 9e15).map(|x| x as i64))?;
                (*low..=*high).contains(&whole).then_some(Value::Int(whole))
            }
            Choice::Between { from, to, .. } => {
                let inside = number.filter(|x| Some(*x) >= from.as_f64() && Some(*x) <= to.as_f64())?;
                Value::float(inside)
            }
            Choice::Among(values) => values
                .iter()
                .find(|value| match (value, given) {
                    (Value::Text(text), Json::String(given)) => text == given,
                    (Value::Bool(truth), Json::Bool(given)) => truth == given,
                    (value, Json::Number(_)) => value.as_f64().is_some() && value.as_f64() == number,
                    _ => false,
                })
                .cloned(),
        }
    }
}

/// A text that a program wrote, short enough for a message.
fn short(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    if plain.len() < text.len() { format!("{plain}…") } else { plain }
}
