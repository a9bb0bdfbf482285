//! Summaries over replicates: what tables of papers print. The least and the greatest are measurements themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use avow_model::axis::Points;
use avow_model::plan::Plan;
use avow_model::value::Value;

use super::Stocked;
use crate::measure::Measurement;

/// A number that stands for several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statistic {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// Their standard deviation with n − 1.
    Deviation,
    /// Their standard deviation over the root of n.
    Error,
}

impl Statistic {
    /// The word that keys have for it.
    pub fn word(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Median => "median",
            Statistic::Deviation => "sd",
            Statistic::Error => "sem",
        }
    }
}

/// Measurements that are equal in everything but the replicate.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub experiment: usize,
    pub stage: String,
    pub name: String,
    /// Axes and record keys without the replicate.
    pub at: BTreeMap<String, Value>,
    /// The replicate.
    pub over: String,
    pub n: usize,
}

/// One summary of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    pub group: usize,
    pub statistic: Statistic,
    pub value: f64,
}

/// The dimensions over which numbers are summarised: those that claims name, seeds and repeats.
fn replicates(plan: &Plan) -> BTreeSet<String> {
    let parts = plan.claims.iter().flat_map(|claim| claim.test.parts());
    let mut names: BTreeSet<String> = parts.filter_map(|part| part.replicate.clone()).collect();
    for axis in &plan.axes {
        if matches!(axis.points, Points::Seeds { .. }) || matches!(axis.name.as_str(), "seed" | "repeat") {
            names.insert(axis.name.clone());
        }
    }
    names
}

/// What the measurements of a group have in common: stage, name, and the numbers of their axes and keys without the
/// replicate.
type Place<'m> = (u32, &'m str, usize, usize);

/// Numbers for coordinates without the replicate. Measurements share their maps, so each map is written out once.
struct Places<'m> {
    over: &'m str,
    known: HashMap<*const BTreeMap<String, Value>, usize>,
    written: HashMap<Vec<(String, String)>, usize>,
}

impl<'m> Places<'m> {
    fn new(over: &'m str) -> Places<'m> {
        Places { over, known: HashMap::new(), written: HashMap::new() }
    }

    /// The number of a map; equal ones have one number. The maps must live as long as this does.
    fn number(&mut self, of: &'m Arc<BTreeMap<String, Value>>) -> usize {
        let Places { over, known, written } = self;
        *known.entry(Arc::as_ptr(of)).or_insert_with(|| {
            let rest = of.iter().filter(|(name, _)| name.as_str() != *over);
            let text = rest.map(|(name, value)| (name.clone(), value.to_string())).collect();
            let next = written.len();
            *written.entry(text).or_insert(next)
        })
    }
}

impl Stocked {
    pub(super) fn add_summaries(&mut self, experiment: usize, plan: &Plan, measured: &[Measurement]) {
        for over in replicates(plan) {
            let mut places = Places::new(&over);
            let mut known: HashMap<Place<'_>, usize> = HashMap::new();
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for (index, m) in measured.iter().enumerate() {
                if !m.value.is_finite() || !(m.axes.contains_key(&over) || m.keys.contains_key(&over)) {
                    continue;
                }
                let place = (m.member.stage, m.name.as_str(), places.number(&m.axes), places.number(&m.keys));
                let group = *known.entry(place).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                groups[group].push(index);
            }
            for members in groups {
                if let ([first, ..], true) = (members.as_slice(), members.len() > 1) {
                    let values: Vec<f64> = members.iter().map(|index| measured[*index].value).collect();
                    self.summarise(experiment, plan, &measured[*first], &over, &values);
                }
            }
        }
    }

    fn summarise(&mut self, experiment: usize, plan: &Plan, first: &Measurement, over: &str, values: &[f64]) {
        let all = first.axes.iter().chain(first.keys.iter()).filter(|(name, _)| *name != over);
        let group = self.groups.len();
        self.groups.push(Group {
            experiment,
            stage: plan.stages[first.member.stage as usize].name.clone(),
            name: first.name.clone(),
            at: all.map(|(name, value)| (name.clone(), value.clone())).collect(),
            over: over.to_owned(),
            n: values.len(),
        });
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0)).sqrt();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        let summaries = [
            (Statistic::Mean, mean),
            (Statistic::Median, median),
            (Statistic::Deviation, deviation),
            (Statistic::Error, deviation / n.sqrt()),
        ];
        self.summaries.extend(summaries.map(|(statistic, value)| Summary { group, statistic, value }));
    }
}
