//! Stages that promise a distribution: whether what was made again comes from the one that the record comes from.
//!
//! A stage that reads what such a stage wrote promises no more than a distribution either: its inputs are others. So the
//! measurements of both are compared, pair by pair of the same member and record (`avow_stats::exchange`), and corrected
//! by Holm over all of them. Absent: anything about files that hold no measurements.

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::Evidence;
use avow_audit::measure;
use avow_model::plan::{Determinism, Plan, Source};
use avow_stats::exchange::{Exchanged, exchanged};
use avow_stats::rng::{Draws, Key};
use avow_stats::{Correction, family};
use serde_json::{Value, json};

use super::Wanted;
use crate::context::Reading;
use crate::failure;
use crate::output::Failure;
use crate::words;

/// The error rate over all comparisons of one reproduction.
const LEVEL: f64 = 0.01;

/// One measurement in the record and as it was made again.
pub(super) struct Distribution {
    /// `stage.name`.
    name: String,
    of: Exchanged,
    corrected: f64,
}

/// The stages whose results are drawn: those that promise a distribution, and whatever reads what they wrote.
pub(super) fn drawn(plan: &Plan) -> BTreeSet<usize> {
    let mut drawn: BTreeSet<usize> = BTreeSet::new();
    loop {
        let more = plan.stages.iter().enumerate().filter(|(index, stage)| {
            let reads = stage.inputs.values().any(|input| match &input.from {
                Source::Output { stage, .. } => {
                    plan.stage_index(stage).is_some_and(|index| drawn.contains(&index))
                }
                _ => false,
            });
            !drawn.contains(index) && (stage.determinism == Determinism::Distribution || reads)
        });
        let more: Vec<usize> = more.map(|(index, _)| index).collect();
        if more.is_empty() {
            return drawn;
        }
        drawn.extend(more);
    }
}

/// Values by the measurement's name, then by member and record.
type Values = BTreeMap<String, BTreeMap<(String, String), f64>>;

/// Compares every measurement of the stages whose results are drawn.
pub(super) fn compare(
    wanted: &Wanted,
    before: (&Evidence<'_>, &Reading),
    now: (&Evidence<'_>, &Reading),
) -> Result<Vec<Distribution>, Failure> {
    let plan = before.0.plan;
    let mut found = Vec::new();
    for stage in drawn(plan) {
        let stage = &plan.stages[stage].name;
        let (old, new) = (values(wanted, before, stage)?, values(wanted, now, stage)?);
        for (name, old) in old {
            let Some(new) = new.get(&name) else { continue };
            let pairs: Vec<(f64, f64)> =
                old.iter().filter_map(|(key, value)| Some((*value, *new.get(key)?))).collect();
            let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let name = format!("{stage}.{name}");
            let key = Key(*blake3::hash(format!("avow-reproduce {name}").as_bytes()).as_bytes());
            let draws = Draws { key, count: Draws::REFITTED };
            // One pair, or numbers that are none, say nothing of a distribution.
            let Ok(of) = exchanged(&first, &second, draws) else { continue };
            found.push(Distribution { name, of, corrected: of.p });
        }
    }
    let all: Vec<f64> = found.iter().map(|one| one.of.p).collect();
    for (one, adjusted) in found.iter_mut().zip(family::adjust(&all, Correction::Holm)) {
        one.corrected = adjusted.q_tilde;
    }
    Ok(found)
}

fn values(
    wanted: &Wanted,
    (evidence, reading): (&Evidence<'_>, &Reading),
    stage: &str,
) -> Result<Values, Failure> {
    let Some(index) = evidence.plan.stage_index(stage) else { return Ok(Values::new()) };
    let read = measure::read_stage(evidence, reading.source(), index).map_err(failure::audit)?;
    let mut all = Values::new();
    for one in read.values.iter().filter(|one| one.value.is_finite()) {
        let label = evidence.label(one.member);
        if wanted.labels.contains(&label) {
            let of = all.entry(one.name.clone()).or_default();
            of.insert((label, format!("{:?}", one.keys)), one.value);
        }
    }
    Ok(all)
}

impl Distribution {
    /// Whether the two are not of one distribution.
    pub(super) fn differs(&self) -> bool {
        self.corrected <= LEVEL
    }

    /// It in words.
    pub(super) fn words(&self) -> String {
        let Distribution { name, of, corrected } = self;
        let pairs = words::count(of.pairs as u64, "pair");
        let said = if self.differs() {
            "not from the distribution of the record"
        } else if of.smallest > LEVEL {
            "too few to tell their distributions apart"
        } else {
            "as from the distribution of the record"
        };
        let (distance, p) = (words::number(of.distance), words::number(*corrected));
        format!("{name}: {said} ({pairs}, largest distance {distance}, corrected p {p})")
    }

    /// It as JSON.
    pub(super) fn json(&self) -> Value {
        let Distribution { name, of, corrected } = self;
        json!({
            "name": name, "pairs": of.pairs, "distance": of.distance, "p": of.p, "corrected": corrected,
            "smallest": of.smallest, "differs": self.differs(),
        })
    }
}
