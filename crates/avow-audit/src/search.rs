//! Where the searches of a plan stand: every step worked out anew from the measurements.
//!
//! The journal says what a run decided; nothing here believes it. Starting from the plan as declared, each search
//! is told what its probes gave and asked what comes next, until it is over or waits for a probe that has no final
//! outcome yet.

use std::collections::BTreeMap;

use avow_model::digest::{Artifact, AttemptDigest};
use avow_model::expand::{self, Member};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_model::search::{self, Decision, Search, State, Step, Told, Void};
use avow_model::seed;
use avow_model::value::Value;
use serde::Serialize;

use crate::evidence::{Evidence, Fate, MemberEvidence, Stands};
use crate::measure::{self, Readings};
use crate::registration::Registration;
use crate::source::{AuditError, Source};

/// The most bytes of one answer of a program.
const ANSWER_LIMIT: u64 = 1 << 20;

/// A plan with everything that its searches have asked for and found.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The plan; its digest is that of the declared one.
    pub plan: Plan,
    /// Every step so far, in order.
    pub decisions: Vec<Decision>,
}

/// One search of a plan, for a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// The axis of the search.
    pub name: String,
    /// How many probes it has asked for.
    pub probes: u64,
    /// How far it has come.
    #[serde(flatten)]
    pub state: State,
    /// Of one search per value: how each that is over ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Each>,
}

/// How one search of several ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Each {
    /// Axes and values.
    pub at: BTreeMap<String, Value>,
    /// How it ended.
    #[serde(flatten)]
    pub state: State,
}

/// How far the searches of a plan have come that [`follow`] gave.
pub fn standing(plan: &Plan) -> Vec<Searched> {
    let one = |(name, search): (&str, &Search)| Searched {
        name: name.to_owned(),
        probes: search.asked.len() as u64,
        state: search.state.clone(),
        each: search.ended.iter().map(|(at, state)| each(search, at, state)).collect(),
    };
    search::searches(plan).map(one).collect()
}

fn each(search: &Search, at: &[Value], state: &State) -> Each {
    Each { at: search.per.iter().cloned().zip(at.iter().cloned()).collect(), state: state.clone() }
}

/// Follows the searches of a plan as far as there is evidence, and tells fresh seeds the chain's first
/// registration. A plan with neither is given back as it is.
///
/// # Errors
/// Where the store cannot be read.
pub fn follow(plan: &Plan, source: Source<'_>, ledger: &Ledger) -> Result<Followed, AuditError> {
    let mut followed = Followed { plan: plan.clone(), decisions: Vec::new() };
    search::forget(&mut followed.plan);
    let first = Registration::latest(ledger).0.map(|registration| registration.first.to_string());
    seed::freshen(&mut followed.plan, first.as_deref());
    loop {
        let steps = steps(&followed.plan, source, ledger)?;
        if steps.is_empty() {
            return Ok(followed);
        }
        for decision in steps {
            decision.apply(&mut followed.plan);
            followed.decisions.push(decision);
        }
    }
}

/// One step of each search that can take one.
fn steps(plan: &Plan, source: Source<'_>, ledger: &Ledger) -> Result<Vec<Decision>, AuditError> {
    let open: Vec<(&str, &Search)> = search::searches(plan).filter(|(_, s)| !s.state.is_over()).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let evidence = Evidence::gather(plan, source, ledger)?;
    let mut decisions = Vec::new();
    for (name, search) in open {
        decisions.extend(step(plan, &evidence, source, (name, search))?);
    }
    Ok(decisions)
}

fn step(
    plan: &Plan,
    evidence: &Evidence<'_>,
    source: Source<'_>,
    (name, search): (&str, &Search),
) -> Result<Option<Decision>, AuditError> {
    let decided = |used: Vec<AttemptDigest>, answer| {
        Some(Decision { search: name.to_owned(), used, answer, at: Vec::new() })
    };
    let Some(stage) = plan.stage_index(&search.stage) else { return Ok(None) };
    for other in search::rests_on(plan, name, search) {
        match plan.axis(other).and_then(|axis| axis.search()).map(|search| &search.state) {
            Some(State::Open) => return Ok(None),
            Some(State::Void { .. }) => {
                return Ok(open_groups(plan, search).into_iter().next().map(|at| {
                    let answer = Step::Void(Void::RestsOn { search: other.to_owned() });
                    Decision { search: name.to_owned(), used: Vec::new(), answer, at }
                }));
            }
            Some(State::Found(_)) | None => {}
        }
    }
    let mut used = Vec::new();
    let mut failed: Vec<(Vec<Value>, String)> = Vec::new();
    for probe in &evidence.stages[stage] {
        let Some(point) = asked(plan, search, probe.member) else { continue };
        match &probe.fate {
            Fate::Stands(stands) => used.push(stands.attempt),
            fate if fate.is_final() => {
                failed.push((point[..search.per.len()].to_vec(), evidence.label(probe.member)));
            }
            _ => return Ok(None),
        }
    }
    let mut answers = Vec::new();
    for (round, probe) in rounds(plan, evidence, search) {
        match &probe.fate {
            Fate::Stands(stands) => {
                used.push(stands.attempt);
                match written(source, search, stands)? {
                    Some(Ok(text)) => answers.push(text),
                    // It is made again before anything is decided by it.
                    None => return Ok(None),
                    Some(Err(reason)) => {
                        return Ok(decided(used, Step::Void(Void::BadAnswer { round, reason })));
                    }
                }
            }
            fate if fate.is_final() => failed.push((Vec::new(), evidence.label(probe.member))),
            _ => return Ok(None),
        }
    }
    used.sort();
    let readings = measure::read_stage(evidence, source, stage)?;
    let answer = |group: &Vec<Value>| match failed.iter().find(|(at, _)| at == group) {
        Some((_, member)) => Step::Void(Void::Failed { member: member.clone() }),
        None => match told(plan, search, &readings, group) {
            Ok(told) => search.step(&told, &|axis| values(plan, axis), &answers),
            Err(point) => Step::Void(Void::NoNumber { at: point }),
        },
    };
    Ok(together(name, used, open_groups(plan, search).into_iter().map(|group| (answer(&group), group))))
}

/// The values of `per` for which a search is not over.
fn open_groups(plan: &Plan, search: &Search) -> Vec<Vec<Value>> {
    let mut groups = search::groups(plan, search);
    groups.retain(|group| !search.ended.iter().any(|(at, _)| at == group));
    groups
}

/// One decision of what several searches want: everything that they ask for, else the end of the first.
fn together(
    name: &str,
    used: Vec<AttemptDigest>,
    steps: impl Iterator<Item = (Step, Vec<Value>)>,
) -> Option<Decision> {
    let (mut asked, mut ends) = (Vec::new(), Vec::new());
    for (step, group) in steps {
        match step {
            Step::Ask(points) => {
                asked.extend(points.into_iter().map(|point| [group.clone(), point].concat()))
            }
            step => ends.push((step, group)),
        }
    }
    let (answer, at) = match asked.is_empty() {
        true => ends.into_iter().next()?,
        false => (Step::Ask(asked), Vec::new()),
    };
    Some(Decision { search: name.to_owned(), used, answer, at })
}

/// The members of the program that a search asks, one a round.
fn rounds<'e>(
    plan: &Plan,
    evidence: &'e Evidence<'_>,
    search: &Search,
) -> impl Iterator<Item = (u64, &'e MemberEvidence)> {
    let stage = search.asks().and_then(|ask| plan.stage_index(&ask.program));
    let members = stage.map(|stage| evidence.stages[stage].as_slice()).unwrap_or_default();
    (0..).zip(members)
}

/// What the program wrote, or why that is no answer; `None` where its bytes are lost.
fn written(
    source: Source<'_>,
    search: &Search,
    stands: &Stands,
) -> Result<Option<Result<String, String>>, AuditError> {
    let output = search.asks().map(|ask| ask.output.as_str()).unwrap_or_default();
    let Some(Artifact::Blob(digest)) = stands.outputs.get(output) else {
        return Ok(Some(Err(format!("it wrote no file `{output}`"))));
    };
    if source.size(*digest)?.is_some_and(|size| size > ANSWER_LIMIT) {
        return Ok(Some(Err(format!("it has more than {ANSWER_LIMIT} bytes"))));
    }
    let Ok(bytes) = source.read(*digest, "the answer of a program that a search asks")? else {
        return Ok(None);
    };
    Ok(Some(String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())))
}

/// All values of a declared axis.
fn values(plan: &Plan, axis: &str) -> Vec<Value> {
    let Some(axis) = plan.axis(axis) else { return Vec::new() };
    (0..axis.len()).filter_map(|index| axis.value(index)).collect()
}

/// The point of a member, as far as the search's axes are concerned.
fn point(plan: &Plan, search: &Search, member: Member) -> Option<Vec<Value>> {
    let here: BTreeMap<&str, Value> = expand::cell(plan, member).values().collect();
    search.axes().into_iter().map(|axis| here.get(axis).cloned()).collect()
}

/// The point of a member that a search asked for.
fn asked(plan: &Plan, search: &Search, member: Member) -> Option<Vec<Value>> {
    point(plan, search, member).filter(|point| search.asked.contains(point))
}

/// What each point asked for gave for some values of `per`; the first that gave no finite number is the error.
fn told(plan: &Plan, search: &Search, readings: &Readings, group: &[Value]) -> Result<Vec<Told>, String> {
    let of_group = search.asked.iter().filter(|point| point.starts_with(group));
    let mut all: Vec<(Vec<Value>, Vec<f64>)> = of_group.map(|p| (p.clone(), Vec::new())).collect();
    for reading in readings.values.iter().filter(|reading| reading.name == search.measure) {
        let point = point(plan, search, reading.member);
        if let Some((_, values)) = all.iter_mut().find(|(asked, _)| Some(asked) == point.as_ref()) {
            values.push(reading.value);
        }
    }
    let reduced = |(point, values): (Vec<Value>, Vec<f64>)| {
        let measured = search.reduce.apply(&values).filter(|value| value.is_finite());
        let own = point[group.len()..].to_vec();
        measured.map(|measured| Told { point: own, measured }).ok_or_else(|| spell(search, &point))
    };
    all.into_iter().map(reduced).collect()
}

fn spell(search: &Search, point: &[Value]) -> String {
    let pairs: Vec<String> =
        search.axes().iter().zip(point).map(|(axis, value)| format!("{axis}={value}")).collect();
    pairs.join(",")
}
