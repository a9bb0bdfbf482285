//! The structural difference of two plans.
//!
//! Stages, axes, claims and parameters are matched by name, and within each the two values are compared leaf by
//! leaf, so that a difference is one path with an old and a new value. Absent: renames (a stage under another
//! name is one left out and one added) and any judgement of importance beyond a class.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::expand;
use avow_model::plan::Plan;
use serde::Serialize;
use serde_json::Value as Json;

use crate::deviation::Class;

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What kind of thing has changed.
    pub subject: Subject,
    /// Which one, where there are several.
    pub name: Option<String>,
    /// Where in it, outermost first; empty where the whole thing was added or left out.
    pub path: Vec<String>,
    /// The registered value; absent where it is new.
    pub old: Option<Json>,
    /// The present value; absent where it is gone.
    pub new: Option<Json>,
}

/// The parts of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The experiment's name.
    Experiment,
    /// A parameter.
    Param,
    /// An axis.
    Axis,
    /// The excluded cells.
    Exclude,
    /// The pilot cells.
    Pilot,
    /// What was looked at before.
    Seen,
    /// Answers to the questions of registration forms.
    Registration,
    /// A stage.
    Stage,
    /// A claim.
    Claim,
}

impl Subject {
    /// The code of the subject.
    pub fn word(self) -> &'static str {
        match self {
            Subject::Experiment => "experiment",
            Subject::Param => "param",
            Subject::Axis => "axis",
            Subject::Exclude => "exclude",
            Subject::Pilot => "pilot",
            Subject::Seen => "seen",
            Subject::Registration => "registration",
            Subject::Stage => "stage",
            Subject::Claim => "claim",
        }
    }
}

/// Every difference from `old` to `new`, in the order of [`Subject`], then by name and path.
pub fn changes(old: &Plan, new: &Plan) -> Vec<Change> {
    let mut out = Vec::new();
    let mut whole = |subject, old: Json, new: Json| {
        leaves(&mut out, (subject, None), &mut Vec::new(), Some(&old), Some(&new));
    };
    whole(Subject::Experiment, json(&old.experiment), json(&new.experiment));
    let param = |plan: &Plan| plan.params.iter().map(|(name, value)| (name.clone(), json(value))).collect();
    matched(&mut out, Subject::Param, &param(old), &param(new));
    let axis = |plan: &Plan| plan.axes.iter().map(|a| (a.name.clone(), json(&a.points))).collect();
    matched(&mut out, Subject::Axis, &axis(old), &axis(new));
    let (before, after) = (json(&old.exclude), json(&new.exclude));
    leaves(&mut out, (Subject::Exclude, None), &mut Vec::new(), Some(&before), Some(&after));
    for (subject, before, after) in [
        (Subject::Pilot, json(&old.pilot), json(&new.pilot)),
        (Subject::Seen, json(&old.seen), json(&new.seen)),
        (Subject::Registration, json(&old.registration), json(&new.registration)),
    ] {
        leaves(&mut out, (subject, None), &mut Vec::new(), Some(&before), Some(&after));
    }
    let stage = |plan: &Plan| plan.stages.iter().map(|s| (s.name.clone(), unnamed(json(s)))).collect();
    matched(&mut out, Subject::Stage, &stage(old), &stage(new));
    let claim = |plan: &Plan| plan.claims.iter().map(|c| (c.name.clone(), unnamed(json(c)))).collect();
    matched(&mut out, Subject::Claim, &claim(old), &claim(new));
    out
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).expect("plans hold only values that JSON has")
}

/// A named thing without its name, by which it was matched.
fn unnamed(value: Json) -> Json {
    match value {
        Json::Object(mut map) => {
            map.shift_remove("name");
            Json::Object(map)
        }
        other => other,
    }
}

fn matched(
    out: &mut Vec<Change>,
    subject: Subject,
    old: &BTreeMap<String, Json>,
    new: &BTreeMap<String, Json>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        leaves(out, (subject, Some(name)), &mut Vec::new(), old.get(name), new.get(name));
    }
}

/// Descends through objects; lists are leaves, because the position of an item says nothing.
fn leaves(
    out: &mut Vec<Change>,
    of: (Subject, Option<&String>),
    path: &mut Vec<String>,
    old: Option<&Json>,
    new: Option<&Json>,
) {
    if old == new {
        return;
    }
    if let (Some(Json::Object(a)), Some(Json::Object(b))) = (old, new) {
        let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            path.push(key.clone());
            leaves(out, of, path, a.get(key), b.get(key));
            path.pop();
        }
        return;
    }
    let (subject, name) = (of.0, of.1.cloned());
    out.push(Change { subject, name, path: path.clone(), old: old.cloned(), new: new.cloned() });
}

/// What a change is about, in the words of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// What a claim says or means.
    Words,
    /// Which claims there are.
    Claims,
    /// A rule, its bounds and method, its level, its family.
    Analysis,
    /// When to stop: a sequential rule, a search.
    Stopping,
    /// How many units, and which seeds.
    Seeds,
    /// The values of an axis, or of a parameter.
    Values,
    /// Which cells are left out.
    Exclusions,
    /// Which stages there are, what they run, how their outputs are read.
    Stages,
    /// The code.
    Code,
    /// Inputs from outside.
    Data,
    /// Lock files, programs, what they load, variables.
    Environment,
}

/// What a change is about.
pub fn topic(change: &Change) -> Topic {
    let first = change.path.first().map_or("", String::as_str);
    let within = |word: &str| change.path.iter().any(|part| part == word);
    match change.subject {
        Subject::Experiment | Subject::Seen | Subject::Registration => Topic::Words,
        Subject::Param => Topic::Values,
        Subject::Exclude | Subject::Pilot => Topic::Exclusions,
        Subject::Axis if first == "seeds" || change.name.as_deref() == Some("seed") => Topic::Seeds,
        Subject::Axis if matches!(first, "search" | "probed") => Topic::Stopping,
        Subject::Axis => Topic::Values,
        Subject::Claim if first.is_empty() => Topic::Claims,
        Subject::Claim if class(change) == Class::Clarification => Topic::Words,
        Subject::Claim if within("sequential") || within("stop") => Topic::Stopping,
        Subject::Claim => Topic::Analysis,
        Subject::Stage => match first {
            "code" => Topic::Code,
            "inputs" => Topic::Data,
            "environment" | "image" | "toolchain" | "loads" | "env" | "hardware" => Topic::Environment,
            _ => Topic::Stages,
        },
    }
}

impl Topic {
    /// The word of the topic.
    pub fn word(self) -> &'static str {
        match self {
            Topic::Words => "words",
            Topic::Claims => "claims",
            Topic::Analysis => "analysis",
            Topic::Stopping => "stopping",
            Topic::Seeds => "seeds",
            Topic::Values => "values",
            Topic::Exclusions => "exclusions",
            Topic::Stages => "stages",
            Topic::Code => "code",
            Topic::Data => "data",
            Topic::Environment => "environment",
        }
    }
}

/// The members that one plan has and the other has not, by label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cells {
    /// In the second alone.
    pub extra: Vec<String>,
    /// In the first alone.
    pub missing: Vec<String>,
}

/// Compares the members of two plans.
pub fn cells(old: &Plan, new: &Plan) -> Cells {
    let labels = |plan: &Plan| -> BTreeSet<String> {
        let members = (0..plan.stages.len()).flat_map(|stage| expand::members(plan, stage));
        members.map(|member| expand::label(plan, member)).collect()
    };
    let (before, after) = (labels(old), labels(new));
    Cells {
        extra: after.difference(&before).cloned().collect(),
        missing: before.difference(&after).cloned().collect(),
    }
}

/// The class of a change.
pub fn class(change: &Change) -> Class {
    let words = ["says", "means", "silent_on"];
    let in_words =
        change.subject == Subject::Claim && change.path.first().is_some_and(|p| words.contains(&p.as_str()));
    match (&change.old, &change.new) {
        _ if in_words || change.subject == Subject::Registration => Class::Clarification,
        (None, Some(_)) if change.path.is_empty() => Class::Addition,
        (Some(_), None) if change.path.is_empty() => Class::Exclusion,
        (Some(old), Some(new)) if change.subject == Subject::Axis => points(&change.path, old, new),
        _ => Class::Amendment,
    }
}

/// More values of an axis are an addition, fewer are an exclusion.
fn points(path: &[String], old: &Json, new: &Json) -> Class {
    if let (Json::Array(old), Json::Array(new)) = (old, new) {
        let within = |a: &[Json], b: &[Json]| a.iter().all(|value| b.contains(value));
        return match (within(old, new), within(new, old)) {
            (true, false) => Class::Addition,
            (false, true) => Class::Exclusion,
            _ => Class::Amendment,
        };
    }
    // The i-th seed does not depend on how many there are; another count of `log` moves every value.
    let seeds = path == ["seeds", "count"];
    match (old.as_u64(), new.as_u64()) {
        (Some(a), Some(b)) if seeds && a < b => Class::Addition,
        (Some(a), Some(b)) if seeds && a > b => Class::Exclusion,
        _ => Class::Amendment,
    }
}

/// Whether a change concerns a claim that rests on these stages.
pub(crate) fn concerns(change: &Change, claim: &str, stages: &BTreeSet<&str>) -> bool {
    let name = change.name.as_deref().unwrap_or_default();
    match change.subject {
        Subject::Experiment | Subject::Exclude | Subject::Axis | Subject::Param => true,
        Subject::Pilot | Subject::Seen | Subject::Registration => true,
        Subject::Stage => stages.contains(name),
        Subject::Claim => name == claim,
    }
}
