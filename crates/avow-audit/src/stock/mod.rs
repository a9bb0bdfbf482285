//! Every value that a manuscript may print, with the key that names it: numbers of verdicts, of the plan, summaries
//! over replicates, and measurements.
//!
//! Plans whose values are hidden give nothing but the names of what they hide. Absent: reading, and what a
//! manuscript says.

mod claims;
mod selection;
mod summaries;

use std::collections::{BTreeMap, HashMap};

use avow_manuscript::class::Resolved;
use avow_manuscript::{Kind, Stock, Values};
use avow_model::plan::Plan;
use avow_model::value::Value;

use crate::measure::{Measurement, Readings};
use crate::report::Report;
use selection::Families;
pub use selection::{Best, Selection};
use summaries::{Group, Summary};

/// A value with a key of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its key, without the experiment.
    pub key: String,
    /// The word a text would use for it.
    pub name: String,
    /// The value.
    pub value: f64,
    experiment: usize,
}

/// What one experiment gives.
#[derive(Debug)]
struct Experiment {
    name: String,
    /// The measurements' stages by position.
    stages: Vec<String>,
}

/// All values of some experiments.
#[derive(Debug, Default)]
pub struct Stocked {
    experiments: Vec<Experiment>,
    /// Keys that stand for words or for two numbers.
    others: BTreeMap<String, Vec<(usize, Resolved)>>,
    claims: Vec<Named>,
    /// Keys of estimates that are smaller than the noise of what they measure: with experiment, effect and noise.
    noisy: BTreeMap<String, Vec<(usize, f64, f64)>>,
    design: Vec<Named>,
    groups: Vec<Group>,
    summaries: Vec<Summary>,
    measurements: Vec<(usize, Measurement)>,
    /// The bare values of each kind, in the order of the lists above.
    values: [Vec<f64>; 4],
    /// What hidden plans call theirs, with the experiment.
    hidden: Vec<(String, String)>,
    keys: HashMap<String, Vec<(Kind, usize)>>,
    families: Families,
}

/// Coordinates as they stand in a key: `[seed=3,wd=0.1]`, or nothing.
fn coordinates<'v>(pairs: impl Iterator<Item = (&'v String, &'v Value)>) -> String {
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { String::new() } else { format!("[{}]", pairs.join(",")) }
}

impl Stocked {
    /// Adds what an experiment measured and what its claims came to.
    pub fn add(&mut self, plan: &Plan, readings: Readings, report: &Report) {
        let experiment = self.experiments.len();
        let stages = plan.stages.iter().map(|stage| stage.name.clone()).collect();
        self.experiments.push(Experiment { name: plan.experiment.clone(), stages });
        self.add_claims(experiment, report);
        self.add_design(experiment, plan);
        self.add_summaries(experiment, plan, &readings.values);
        self.measurements.extend(readings.values.into_iter().map(|m| (experiment, m)));
    }

    /// Adds the names of an experiment whose values are hidden.
    pub fn add_hidden(&mut self, plan: &Plan) {
        let claims = plan.claims.iter().map(|claim| claim.name.clone());
        let names = claims.chain(plan.stages.iter().map(|stage| stage.name.clone()));
        self.hidden.extend(names.map(|name| (name, plan.experiment.clone())));
        self.hidden.push((format!("{}/", plan.experiment), plan.experiment.clone()));
    }

    /// Makes it ready to be asked, once everything is added.
    pub fn index(&mut self) -> Values {
        self.values = [
            self.claims.iter().map(|named| named.value).collect(),
            self.design.iter().map(|named| named.value).collect(),
            self.summaries.iter().map(|summary| summary.value).collect(),
            self.measurements.iter().map(|(_, m)| m.value).collect(),
        ];
        // Keys of measurements are made when one is asked for: there may be a million.
        for kind in [Kind::Claim, Kind::Design, Kind::Summary] {
            for id in 0..self.values[kind as usize].len() {
                let key = self.bare(kind, id);
                self.keys.entry(key).or_default().push((kind, id));
            }
        }
        self.families = self.families();
        Values::new(|kind| &self.values[kind as usize])
    }

    /// How many values of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.values[kind as usize].len()
    }

    /// The names of experiments whose values are compared.
    pub fn experiments(&self) -> impl Iterator<Item = &str> {
        self.experiments.iter().map(|experiment| experiment.name.as_str())
    }

    /// The name of an experiment that hides its values, each once.
    pub fn hidden(&self) -> impl Iterator<Item = &str> {
        self.hidden.iter().filter(|(name, _)| name.ends_with('/')).map(|(_, experiment)| experiment.as_str())
    }

    fn experiment_of(&self, kind: Kind, id: usize) -> usize {
        match kind {
            Kind::Claim => self.claims[id].experiment,
            Kind::Design => self.design[id].experiment,
            Kind::Summary => self.groups[self.summaries[id].group].experiment,
            Kind::Measurement => self.measurements[id].0,
        }
    }

    /// The key of a value, without its experiment.
    fn bare(&self, kind: Kind, id: usize) -> String {
        match kind {
            Kind::Claim => self.claims[id].key.clone(),
            Kind::Design => self.design[id].key.clone(),
            Kind::Summary => {
                let summary = &self.summaries[id];
                let group = &self.groups[summary.group];
                format!(
                    "{}({}.{}{})",
                    summary.statistic.word(),
                    group.stage,
                    group.name,
                    coordinates(group.at.iter())
                )
            }
            Kind::Measurement => {
                let (experiment, m) = &self.measurements[id];
                let stage = &self.experiments[*experiment].stages[m.member.stage as usize];
                let mut all: Vec<_> = m.axes.iter().chain(m.keys.iter()).collect();
                all.sort_by(|a, b| a.0.cmp(b.0));
                format!("{stage}.{}{}", m.name, coordinates(all.into_iter()))
            }
        }
    }

    /// The key of a value; with its experiment where there are several.
    pub fn key(&self, kind: Kind, id: usize) -> String {
        let bare = self.bare(kind, id);
        match self.experiments.as_slice() {
            [_] => bare,
            several => format!("{}/{bare}", several[self.experiment_of(kind, id)].name),
        }
    }

    /// Over how many measurements a summary goes.
    pub fn over(&self, kind: Kind, id: usize) -> Option<(&str, usize)> {
        match kind {
            Kind::Summary => {
                let group = &self.groups[self.summaries[id].group];
                Some((group.over.as_str(), group.n))
            }
            _ => None,
        }
    }

    /// The effect and the noise of an estimate that is smaller than the noise of what it measures; `key` may name its
    /// experiment.
    pub fn below_noise(&self, key: &str) -> Option<(f64, f64)> {
        let of = |(experiment, bare): (Option<&str>, &str)| {
            let all = self.noisy.get(bare)?.iter();
            let mut here =
                all.filter(|one| experiment.is_none_or(|name| self.experiments[one.0].name == name));
            here.next().map(|(_, effect, noise)| (*effect, *noise))
        };
        let named = key.split_once('/').and_then(|(experiment, bare)| of((Some(experiment), bare)));
        named.or_else(|| of((None, key)))
    }

    /// The keys that a macro file has by itself: those of claims, the design, and summaries where there are few.
    pub fn listed(&self) -> Vec<String> {
        /// So many summaries are listed; of more a manuscript lists those that it uses.
        const FEW: usize = 4000;
        let mut kinds = vec![Kind::Claim, Kind::Design];
        if self.summaries.len() <= FEW {
            kinds.push(Kind::Summary);
        }
        let mut keys: Vec<String> = kinds
            .into_iter()
            .flat_map(|kind| (0..self.count(kind)).map(move |id| (kind, id)))
            .map(|(kind, id)| self.key(kind, id))
            .collect();
        for (key, of) in &self.others {
            keys.extend(of.iter().map(|(experiment, _)| match self.experiments.as_slice() {
                [_] => key.clone(),
                several => format!("{}/{key}", several[*experiment].name),
            }));
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// The one value that a key without experiment names among those of an experiment, or of all.
    fn find(&self, key: &str, experiment: Option<usize>) -> Resolved {
        let here = |of: usize| experiment.is_none_or(|wanted| wanted == of);
        let mut found: Vec<Resolved> = Vec::new();
        for (kind, id) in self.keys.get(key).into_iter().flatten() {
            if here(self.experiment_of(*kind, *id)) {
                found.push(Resolved::Values(vec![self.values[*kind as usize][*id]]));
            }
        }
        found.extend(
            self.others.get(key).into_iter().flatten().filter(|(of, _)| here(*of)).map(|(_, r)| r.clone()),
        );
        if found.is_empty() {
            found.extend(self.measurement(key, &here).map(|value| Resolved::Values(vec![value])));
        }
        // Two experiments that call different things the same name nothing.
        match found.as_slice() {
            [one] => one.clone(),
            [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
            _ => Resolved::Unknown,
        }
    }

    fn measurement(&self, key: &str, here: &dyn Fn(usize) -> bool) -> Option<f64> {
        let (path, _) = key.split_once('[').unwrap_or((key, ""));
        let matching = |(experiment, m): &&(usize, Measurement)| {
            let stage = &self.experiments[*experiment].stages[m.member.stage as usize];
            here(*experiment)
                && path.strip_prefix(stage.as_str()).and_then(|p| p.strip_prefix('.')) == Some(&m.name)
        };
        // Coordinates may be written in any order.
        let wanted = sorted(key);
        let mut found = self.measurements.iter().enumerate().filter(|(_, m)| matching(m));
        found.find(|(id, _)| sorted(&self.bare(Kind::Measurement, *id)) == wanted).map(|(_, (_, m))| m.value)
    }
}

/// A key with its coordinates in order.
fn sorted(key: &str) -> String {
    let Some((path, rest)) = key.split_once('[') else { return key.to_owned() };
    let Some((inner, end)) = rest.rsplit_once(']') else { return key.to_owned() };
    let mut pairs: Vec<&str> = inner.split(',').map(str::trim).collect();
    pairs.sort_unstable();
    format!("{path}[{}]{end}", pairs.join(","))
}

impl Stock for Stocked {
    fn name(&self, kind: Kind, id: usize) -> &str {
        match kind {
            Kind::Claim => &self.claims[id].name,
            Kind::Design => &self.design[id].name,
            Kind::Summary => &self.groups[self.summaries[id].group].name,
            Kind::Measurement => &self.measurements[id].1.name,
        }
    }

    fn resolve(&self, key: &str) -> Resolved {
        let (experiment, bare) = match key.split_once('/') {
            Some((name, bare)) => match self.experiments.iter().position(|e| e.name == name) {
                Some(experiment) => (Some(experiment), bare),
                None => (None, key),
            },
            None => (None, key),
        };
        let mut found = self.find(bare, experiment);
        if found == Resolved::Unknown {
            found = self.find(&sorted(bare), experiment);
        }
        if found != Resolved::Unknown {
            return found;
        }
        let inner = key.split_once('(').map_or(key, |(_, inner)| inner);
        let hides = |name: &String| {
            let rest = inner.strip_prefix(name.as_str());
            rest.is_some_and(|rest| name.ends_with('/') || rest.starts_with(['.', '[']))
        };
        match self.hidden.iter().find(|(name, _)| hides(name)) {
            Some((_, experiment)) => Resolved::Hidden { experiment: experiment.clone() },
            None => Resolved::Unknown,
        }
    }
}
