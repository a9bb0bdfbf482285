//! The planned rows of a selection: one per member and record, each with the role of every dimension.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use avow_model::claim::{Compare, Part, Selected};
use avow_model::digest::Artifact;
use avow_model::expand::{self, Cell, Member};
use avow_model::plan::{Plan, Stage};
use avow_model::value::Value;

use super::{JoinError, PerValues, Slot};
use crate::evidence::{Evidence, Fate, MemberEvidence};
use crate::measure::{Measurement, Origin, Readings, same};

/// The keys of one record.
type Keys = BTreeMap<String, Value>;

/// One planned number.
pub(super) struct Row {
    pub member: Member,
    pub arm: usize,
    pub per: Vec<u32>,
    pub unit: u32,
    pub cluster: u32,
    pub point: u32,
    /// Levels of the reduced dimensions, in the claim's order.
    pub folded: Vec<u32>,
    /// Levels of the dimensions without a role.
    pub rest: Vec<u32>,
    pub slot: Slot,
    pub origin: Option<Origin>,
}

/// The values that a dimension takes, in planned order.
struct Dimension {
    name: String,
    levels: Vec<Option<Value>>,
    index: HashMap<String, u32>,
}

/// All planned rows of a selection.
pub(super) struct Frame<'a> {
    part: &'a Part,
    unit: Option<Dimension>,
    cluster: Option<Dimension>,
    along: Option<Dimension>,
    per: Vec<Dimension>,
    rest: Vec<Dimension>,
    rows: Vec<Row>,
}

/// What a row is made of, before roles are given.
struct Planned<'a> {
    cell: Cell<'a>,
    member: Member,
    keys: Keys,
    slot: Slot,
    origin: Option<Origin>,
}

impl<'a> Frame<'a> {
    pub fn new(
        evidence: &'a Evidence<'_>,
        readings: &Readings,
        part: &'a Part,
    ) -> Result<Frame<'a>, JoinError> {
        let selection = Selection::new(evidence, readings, part)?;
        let planned = selection.planned();
        let scope = Scope { plan: evidence.plan, stage: selection.stage, keys: selection.key_names() };
        scope.check(part, selection.records.is_empty())?;
        let of = |name: &str| Dimension::new(&scope, name, &planned);
        let roles: BTreeSet<&str> = roles(part).collect();
        let base = scope.stage.scope.iter().chain(&scope.keys);
        let mut frame = Frame {
            part,
            unit: part.replicate.as_deref().map(of),
            cluster: part.clusters.as_deref().or(part.strata.as_deref()).map(of),
            along: part.rule.along().map(of),
            per: part.per.iter().map(|name| of(name)).collect(),
            rest: base.filter(|name| !roles.contains(name.as_str())).map(|name| of(name)).collect(),
            rows: Vec::new(),
        };
        let folded: Vec<Dimension> = part.reduce.iter().map(|r| of(&r.dimension)).collect();
        let contrasts: Vec<&Compare> = part.compare.iter().chain(&part.crossed).collect();
        for contrast in &contrasts {
            of(&contrast.dimension).require(contrast)?;
        }
        frame.rows = planned
            .iter()
            .filter_map(|one| {
                let side =
                    |contrast: &&Compare| arm(contrast, scope.value(one, &contrast.dimension)?.as_ref());
                // The arm of the second contrast counts twos.
                let sides = contrasts.iter().map(side).collect::<Option<Vec<usize>>>()?;
                let arm = sides.iter().rev().fold(0, |arm, side| 2 * arm + side);
                Some(frame.row(&scope, one, arm, &folded))
            })
            .collect();
        Ok(frame)
    }

    fn row(&self, scope: &Scope<'_>, one: &Planned<'_>, arm: usize, folded: &[Dimension]) -> Row {
        let levels = |dimensions: &[Dimension]| dimensions.iter().map(|d| d.level(scope, one)).collect();
        let single = |dimension: &Option<Dimension>| dimension.as_ref().map_or(0, |d| d.level(scope, one));
        Row {
            member: one.member,
            arm,
            per: levels(&self.per),
            unit: single(&self.unit),
            cluster: single(&self.cluster),
            point: single(&self.along),
            folded: levels(folded),
            rest: levels(&self.rest),
            slot: one.slot,
            origin: one.origin.clone(),
        }
    }

    /// The rows by value of `per`, in planned order.
    pub fn groups(&self) -> Vec<(PerValues, Vec<&Row>)> {
        let mut groups: BTreeMap<&[u32], Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            groups.entry(&row.per).or_default().push(row);
        }
        let name = |levels: &[u32]| {
            let pairs = self.per.iter().zip(levels);
            pairs.filter_map(|(d, level)| Some((d.name.clone(), d.value(*level)?))).collect()
        };
        groups.into_iter().map(|(levels, rows)| (name(levels), rows)).collect()
    }

    pub fn unit_value(&self, level: u32) -> Option<Value> {
        self.unit.as_ref()?.value(level)
    }

    pub fn cluster_value(&self, level: u32) -> Option<Value> {
        self.cluster.as_ref()?.value(level)
    }

    pub fn along_value(&self, level: u32) -> Option<Value> {
        self.along.as_ref()?.value(level)
    }

    /// The name of the first dimension in which two places differ.
    pub fn differing(&self, a: &[u32], b: &[u32]) -> String {
        let differs = self.rest.iter().zip(a.iter().zip(b)).find(|(_, (x, y))| x != y);
        // Rows that share every role and every rest level are records with the same keys, which reading refuses.
        differs.map_or_else(|| self.part.select.stage.clone(), |(d, _)| d.name.clone())
    }
}

/// The values of `per` that the plan alone knows: those of axes and their attributes.
pub(super) fn planned_groups(evidence: &Evidence<'_>, part: &Part) -> Vec<PerValues> {
    let Some(stage) = evidence.plan.stage_index(&part.select.stage) else { return Vec::new() };
    let mut groups: Vec<PerValues> = Vec::new();
    for member in &evidence.stages[stage] {
        let cell = expand::cell(evidence.plan, member.member);
        let known = part.per.iter().filter_map(|name| Some((name.clone(), axis_value(&cell, name)?)));
        let group: PerValues = known.collect();
        if is_wanted(&cell, part) && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// `where` on axes and attributes; what is neither is a record key and is looked at there. No claim uses a pilot.
fn is_wanted(cell: &Cell<'_>, part: &Part) -> bool {
    if cell.plan().is_pilot(cell) {
        return false;
    }
    let fits = |(name, values): (&String, &Vec<Value>)| {
        axis_value(cell, name).is_none_or(|value| values.iter().any(|v| same(v, &value)))
    };
    part.select.filter.iter().all(fits)
}

/// The dimensions that a part gives a role; a `where` gives none, it only narrows.
fn roles(part: &Part) -> impl Iterator<Item = &str> {
    let compared = part.compare.iter().chain(&part.crossed).map(|c| c.dimension.as_str());
    let reduced = part.reduce.iter().map(|r| r.dimension.as_str());
    let per = part.per.iter().map(String::as_str);
    let units = part.replicate.iter().chain(&part.clusters).chain(&part.strata).map(String::as_str);
    compared.chain(reduced).chain(per).chain(units).chain(part.rule.along())
}

fn arm(compare: &Compare, value: Option<&Value>) -> Option<usize> {
    let value = value?;
    match (same(value, &compare.first), same(value, &compare.second)) {
        (true, _) => Some(0),
        (_, true) => Some(1),
        _ => None,
    }
}

/// What names mean for the selected stage.
struct Scope<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    /// Record keys that occur.
    keys: BTreeSet<String>,
}

impl Scope<'_> {
    /// The value of a dimension in a row: `None` where the dimension does not exist at all, `Some(None)` where
    /// the record lacks the key.
    fn value(&self, one: &Planned<'_>, name: &str) -> Option<Option<Value>> {
        if self.keys.contains(name) {
            return Some(one.keys.get(name).cloned());
        }
        axis_value(&one.cell, name).map(Some)
    }

    /// Whether anything is called like that.
    fn knows(&self, name: &str) -> bool {
        let axis = name.split('.').next().unwrap_or(name);
        let derived = self.plan.axis(name).is_some_and(|a| a.is_derived());
        self.keys.contains(name) || derived || self.stage.scope.iter().any(|a| a == axis)
    }

    /// Insists that every role names something; record keys are unknown while nothing was written.
    fn check(&self, part: &Part, nothing_written: bool) -> Result<(), JoinError> {
        match roles(part).find(|name| !self.knows(name)) {
            Some(name) if !(nothing_written && self.plan.axis(name).is_none()) => {
                Err(JoinError::UnknownDimension { dimension: name.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// An axis, an attribute of one (`model.lab`) or a derived axis at a cell.
fn axis_value(cell: &Cell<'_>, name: &str) -> Option<Value> {
    let path: Vec<String> = std::iter::once("axes").chain(name.splitn(2, '.')).map(str::to_owned).collect();
    cell.lookup(&path)
}

impl Dimension {
    fn new(scope: &Scope<'_>, name: &str, planned: &[Planned<'_>]) -> Dimension {
        let mut levels: Vec<Option<Value>> = Vec::new();
        let mut index = HashMap::new();
        let mut place: Vec<u64> = Vec::new();
        for one in planned {
            let value = scope.value(one, name).flatten();
            index.entry(spelled(value.as_ref())).or_insert_with(|| {
                levels.push(value);
                place.push(one.cell.index(name).unwrap_or(0));
                levels.len() as u32 - 1
            });
        }
        let mut order: Vec<usize> = (0..levels.len()).collect();
        if scope.keys.contains(name) {
            // Record keys have no declared order: by value, those without the key first.
            order.sort_by(|a, b| match (&levels[*a], &levels[*b]) {
                (Some(x), Some(y)) => x.order(y),
                (x, y) => x.is_some().cmp(&y.is_some()),
            });
        } else {
            order.sort_by_key(|i| place[*i]);
        }
        let levels: Vec<Option<Value>> = order.into_iter().map(|i| levels[i].clone()).collect();
        let index = levels.iter().enumerate().map(|(i, v)| (spelled(v.as_ref()), i as u32)).collect();
        Dimension { name: name.to_owned(), levels, index }
    }

    fn level(&self, scope: &Scope<'_>, one: &Planned<'_>) -> u32 {
        self.index[&spelled(scope.value(one, &self.name).flatten().as_ref())]
    }

    fn value(&self, level: u32) -> Option<Value> {
        self.levels.get(level as usize).cloned().flatten()
    }

    fn require(&self, compare: &Compare) -> Result<(), JoinError> {
        for wanted in [&compare.first, &compare.second] {
            if !self.levels.is_empty() && !self.levels.iter().flatten().any(|level| same(level, wanted)) {
                let (dimension, value) = (self.name.clone(), wanted.to_string());
                return Err(JoinError::UnknownValue { dimension, value });
            }
        }
        Ok(())
    }
}

/// A text that tells values apart: numbers of equal size are one level, text never equals a number.
fn spelled(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Int(i)) => format!("n{i}"),
        Some(number @ Value::Float(_)) => format!("n{number}"),
        Some(other) => format!("{other:?}"),
    }
}

/// The selected records of a stage, filtered.
struct Selection<'a> {
    evidence: &'a Evidence<'a>,
    part: &'a Part,
    stage: &'a Stage,
    members: Vec<&'a MemberEvidence>,
    records: HashMap<Member, Vec<(Keys, Slot, Origin)>>,
    unreadable: BTreeSet<Member>,
    damaged: BTreeMap<Member, Slot>,
}

impl<'a> Selection<'a> {
    fn new(
        evidence: &'a Evidence<'_>,
        readings: &Readings,
        part: &'a Part,
    ) -> Result<Selection<'a>, JoinError> {
        let name = &part.select.stage;
        let index = evidence.plan.stage_index(name).ok_or(JoinError::UnknownStage { stage: name.clone() })?;
        let mut selection = Selection {
            evidence,
            part,
            stage: &evidence.plan.stages[index],
            members: Vec::new(),
            records: HashMap::new(),
            unreadable: BTreeSet::new(),
            damaged: BTreeMap::new(),
        };
        selection.members =
            evidence.stages[index].iter().filter(|m| selection.wanted_cell(m.member)).collect();
        match &part.select.of {
            Selected::Measurement(name) => selection.take_measurements(readings, index as u32, name),
            Selected::Output(name) => selection.take_outputs(name),
        }
        Ok(selection)
    }

    fn take_measurements(&mut self, readings: &Readings, stage: u32, name: &str) {
        for m in readings.values.iter().filter(|m| m.member.stage == stage && m.name == name) {
            if self.wanted_cell(m.member) && self.wanted_keys(&m.keys) {
                self.records.entry(m.member).or_default().push((
                    (*m.keys).clone(),
                    slot(m),
                    m.origin.clone(),
                ));
            }
        }
        let concerns =
            |p: &&crate::measure::Problem| p.at.stage == stage && p.name.as_ref().is_none_or(|n| n == name);
        self.unreadable = readings.problems.iter().filter(concerns).map(|p| p.at).collect();
        let damaged = readings.damaged.iter().filter(|(member, _)| member.stage == stage);
        self.damaged = damaged.map(|(member, blob)| (*member, Slot::Damaged(*blob))).collect();
    }

    fn take_outputs(&mut self, name: &str) {
        for member in &self.members {
            let Fate::Stands(stands) = &member.fate else { continue };
            if let Some(artifact) = stands.outputs.get(name) {
                let origin = Origin {
                    attempt: stands.attempt,
                    output: name.to_owned(),
                    artifact: Artifact::blob(*artifact),
                    line: 1,
                };
                let record = (Keys::new(), Slot::Content(*artifact), origin);
                self.records.insert(member.member, vec![record]);
            }
        }
    }

    fn wanted_cell(&self, member: Member) -> bool {
        is_wanted(&expand::cell(self.evidence.plan, member), self.part)
    }

    fn wanted_keys(&self, keys: &Keys) -> bool {
        let is_axis = |name: &String| {
            let axis = name.split('.').next().unwrap_or(name);
            self.evidence
                .plan
                .axis(axis)
                .is_some_and(|a| a.is_derived() || self.stage.scope.contains(&a.name))
        };
        let fits = |(name, values): (&String, &Vec<Value>)| {
            is_axis(name) || keys.get(name).is_some_and(|value| values.iter().any(|v| same(v, value)))
        };
        self.part.select.filter.iter().all(fits)
    }

    fn key_names(&self) -> BTreeSet<String> {
        let names = self.records.values().flatten().flat_map(|(keys, ..)| keys.keys().cloned());
        names.filter(|name| !self.stage.scope.contains(name)).collect()
    }

    /// Every planned row: each member with each key tuple that its like wrote.
    fn planned(&self) -> Vec<Planned<'a>> {
        let tuples = self.tuples();
        let everywhere = merged(tuples.values().flatten());
        let mut planned = Vec::new();
        for member in &self.members {
            let like = tuples.get(&self.likeness(member.member)).unwrap_or(&everywhere);
            for keys in like {
                let (slot, origin) = self.found(member.member, keys);
                let cell = expand::cell(self.evidence.plan, member.member);
                planned.push(Planned { cell, member: member.member, keys: keys.clone(), slot, origin });
            }
        }
        planned
    }

    fn found(&self, member: Member, keys: &Keys) -> (Slot, Option<Origin>) {
        if let Some(damaged) = self.damaged.get(&member) {
            return (*damaged, None);
        }
        if self.unreadable.contains(&member) {
            return (Slot::Unreadable, None);
        }
        let record = self.records.get(&member).and_then(|all| all.iter().find(|(k, ..)| k == keys));
        record.map_or((Slot::Missing, None), |(_, slot, origin)| (*slot, Some(origin.clone())))
    }

    /// The key tuples written by members that differ only in replicate, arm or reduced axes.
    fn tuples(&self) -> BTreeMap<Vec<u64>, Vec<Keys>> {
        let mut by_likeness: BTreeMap<Vec<u64>, Vec<&Keys>> = BTreeMap::new();
        for (member, records) in &self.records {
            let like = by_likeness.entry(self.likeness(*member)).or_default();
            like.extend(records.iter().map(|(keys, ..)| keys));
        }
        by_likeness.into_iter().map(|(like, keys)| (like, merged(keys))).collect()
    }

    fn likeness(&self, member: Member) -> Vec<u64> {
        let part = self.part;
        let free = |axis: &str| {
            part.replicate.as_deref() == Some(axis)
                || part.compare.iter().chain(&part.crossed).any(|c| c.dimension == axis)
                || part.reduce.iter().any(|r| r.dimension == axis)
        };
        let cell = expand::cell(self.evidence.plan, member);
        self.stage.scope.iter().filter(|axis| !free(axis)).filter_map(|axis| cell.index(axis)).collect()
    }
}

/// Distinct key tuples, sorted; one empty tuple where there are none.
fn merged<'k>(keys: impl IntoIterator<Item = &'k Keys>) -> Vec<Keys> {
    let spell = |keys: &Keys| -> Vec<(String, String)> {
        keys.iter().map(|(k, v)| (k.clone(), format!("{v:?}"))).collect()
    };
    let distinct: BTreeMap<_, &Keys> = keys.into_iter().map(|k| (spell(k), k)).collect();
    let mut all: Vec<Keys> = distinct.into_values().cloned().collect();
    if all.is_empty() {
        all.push(Keys::new());
    }
    all
}

fn slot(measurement: &Measurement) -> Slot {
    let value = measurement.value;
    match (value.is_finite(), measurement.censored) {
        (true, false) => Slot::Number(value),
        (true, true) => Slot::Censored(value),
        (false, _) => Slot::NonFinite(value),
    }
}
