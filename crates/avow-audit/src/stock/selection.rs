//! Whether a value is the best of several that could have been shown in its place.

use std::collections::{BTreeMap, HashMap};

use avow_manuscript::Kind;
use avow_model::value::Value;
use serde::Serialize;

use super::Stocked;
use super::summaries::Statistic;

/// Which end of its companions a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Best {
    /// The greatest.
    Maximum,
    /// The least.
    Minimum,
}

impl Best {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Best::Maximum => "maximum",
            Best::Minimum => "minimum",
        }
    }
}

/// A value that is the best of several comparable cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Which end.
    pub best: Best,
    /// Of how many cells, itself included.
    pub of: usize,
    /// The axes and keys over which those cells differ.
    pub over: Vec<String>,
}

/// Fewer cells are no choice.
const CHOICE: usize = 3;

/// Along one axis cells are looked for only among so many: going through a million for every number takes too long,
/// and their least and greatest are known anyhow.
const SEARCHED: usize = 20_000;

/// Values that could have been shown in each other's place.
#[derive(Debug)]
pub(super) struct Family {
    ids: Vec<usize>,
    least: f64,
    greatest: f64,
}

/// What the values of a family have in common: experiment, stage, name, and what was made of them.
type Common<'s> = (usize, &'s str, &'s str, Option<(Statistic, &'s str)>);

#[derive(Debug, Default)]
pub(super) struct Families {
    all: Vec<Family>,
    /// The family of each summary and of each measurement, by position.
    summaries: Vec<usize>,
    measurements: Vec<usize>,
}

impl Families {
    fn of(&self, kind: Kind, id: usize) -> Option<&Family> {
        let index = match kind {
            Kind::Summary => self.summaries.get(id),
            Kind::Measurement => self.measurements.get(id),
            Kind::Claim | Kind::Design => None,
        };
        self.all.get(*index?)
    }
}

impl Stocked {
    /// Puts values into families, once everything is added.
    pub(super) fn families(&self) -> Families {
        let mut families = Families::default();
        let summaries = self.summaries.iter().map(|summary| {
            let group = &self.groups[summary.group];
            let made = Some((summary.statistic, group.over.as_str()));
            ((group.experiment, group.stage.as_str(), group.name.as_str(), made), summary.value)
        });
        families.summaries = gathered(&mut families.all, summaries);
        let measurements = self.measurements.iter().map(|(experiment, m)| {
            let stage = self.experiments[*experiment].stages[m.member.stage as usize].as_str();
            ((*experiment, stage, m.name.as_str(), None), m.value)
        });
        families.measurements = gathered(&mut families.all, measurements);
        families
    }

    /// The axes and keys over which a family differs, as far as its first values show it.
    fn differences(&self, kind: Kind, family: &Family) -> Vec<String> {
        let mut over: Vec<String> = Vec::new();
        let mut ids = family.ids.iter().take(SEARCHED).filter_map(|id| self.at(kind, *id));
        let Some(first) = ids.next() else { return over };
        for other in ids {
            for (name, value) in &first {
                if other.get(name) != Some(value) && !over.iter().any(|known| known == *name) {
                    over.push((*name).clone());
                }
            }
        }
        over.sort();
        over
    }

    /// Whether a value is the greatest or least of all cells that have the same measurement, or of those along one
    /// axis alone.
    pub fn selection(&self, kind: Kind, id: usize) -> Option<Selection> {
        let family = self.families.of(kind, id)?;
        let value = self.values[kind as usize][id];
        if family.least == family.greatest || family.ids.len() < CHOICE {
            return None;
        }
        let whole =
            |best| Some(Selection { best, of: family.ids.len(), over: self.differences(kind, family) });
        if value == family.greatest {
            return whole(Best::Maximum);
        }
        if value == family.least {
            return whole(Best::Minimum);
        }
        self.along_one(kind, id, family)
    }

    fn along_one(&self, kind: Kind, id: usize, family: &Family) -> Option<Selection> {
        if family.ids.len() > SEARCHED {
            return None;
        }
        let over = self.differences(kind, family);
        if over.len() < 2 {
            return None;
        }
        let at = self.at(kind, id)?;
        let value = self.values[kind as usize][id];
        over.iter().find_map(|axis| {
            let agrees = |other: &&usize| {
                let other = self.at(kind, **other);
                other.is_some_and(|other| {
                    at.iter().all(|(name, v)| *name == axis || other.get(*name) == Some(v))
                })
            };
            let others: Vec<f64> =
                family.ids.iter().filter(agrees).map(|id| self.values[kind as usize][*id]).collect();
            let best = match (others.iter().any(|v| *v > value), others.iter().any(|v| *v < value)) {
                (false, true) => Best::Maximum,
                (true, false) => Best::Minimum,
                _ => return None,
            };
            (others.len() >= CHOICE).then(|| Selection { best, of: others.len(), over: vec![axis.clone()] })
        })
    }

    fn at(&self, kind: Kind, id: usize) -> Option<BTreeMap<&String, &Value>> {
        match kind {
            Kind::Summary => Some(self.groups[self.summaries[id].group].at.iter().collect()),
            Kind::Measurement => {
                let m = &self.measurements[id].1;
                Some(m.axes.iter().chain(m.keys.iter()).collect())
            }
            Kind::Claim | Kind::Design => None,
        }
    }
}

/// Adds the families of some values; gives the family of each.
fn gathered<'s>(all: &mut Vec<Family>, values: impl Iterator<Item = (Common<'s>, f64)>) -> Vec<usize> {
    let mut known: HashMap<Common<'s>, usize> = HashMap::new();
    let mut of = Vec::new();
    for (id, (common, value)) in values.enumerate() {
        let index = *known.entry(common).or_insert_with(|| {
            all.push(Family { ids: Vec::new(), least: f64::INFINITY, greatest: f64::NEG_INFINITY });
            all.len() - 1
        });
        of.push(index);
        let family = &mut all[index];
        if value.is_finite() {
            (family.least, family.greatest) = (family.least.min(value), family.greatest.max(value));
            family.ids.push(id);
        }
    }
    of
}
