//! The numbers of verdicts and of the plan.

use avow_manuscript::class::Resolved;
use avow_model::axis::Points;
use avow_model::plan::Plan;
use avow_model::value::Value;

use super::{Named, Stocked, coordinates};
use crate::judge::{Interval, Piece, Qualifier, Verdict};
use crate::report::Report;

impl Stocked {
    pub(super) fn add_claims(&mut self, experiment: usize, report: &Report) {
        for verdict in &report.verdicts {
            let at = coordinates(verdict.member.iter().map(|(name, value)| (name, value)));
            let claim = format!("{}{at}", verdict.claim);
            self.add_verdict(experiment, &claim, verdict);
            for (index, piece) in verdict.parts.iter().enumerate() {
                self.add_piece(experiment, &verdict.claim, index, piece);
            }
        }
    }

    fn add_verdict(&mut self, experiment: usize, claim: &str, verdict: &Verdict) {
        let name = verdict.claim.as_str();
        let mut push =
            |part: &str, value: Option<f64>| self.push(experiment, name, &format!("{claim}.{part}"), value);
        push("estimate", verdict.estimate);
        push("p", verdict.q);
        push("p-corrected", verdict.q_corrected);
        push("n", Some(verdict.units.used as f64));
        push("planned", Some(verdict.units.planned as f64));
        push("alpha", verdict.alpha.parse().ok());
        self.interval(experiment, name, claim, ["interval", "low", "high"], verdict.interval);
        self.interval(
            experiment,
            name,
            claim,
            ["own-interval", "own-low", "own-high"],
            verdict.marginal_interval,
        );
        for qualifier in &verdict.qualifiers {
            if let Qualifier::Noise { sd, effect, below: true, .. } = qualifier {
                self.noisy.entry(format!("{claim}.estimate")).or_default().push((experiment, *effect, *sd));
            }
        }
        if let Some(word) = verdict.word {
            let resolved = Resolved::Words(word.word().to_owned());
            self.others.entry(format!("{claim}.verdict")).or_default().push((experiment, resolved));
        }
    }

    fn interval(
        &mut self,
        experiment: usize,
        name: &str,
        claim: &str,
        parts: [&str; 3],
        interval: Option<Interval>,
    ) {
        let Some(Interval { low, high, level }) = interval else { return };
        self.push(experiment, name, &format!("{claim}.{}", parts[1]), Some(low));
        self.push(experiment, name, &format!("{claim}.{}", parts[2]), Some(high));
        if parts[0] == "interval" {
            self.push(experiment, name, &format!("{claim}.level"), Some(level));
        }
        let both = Resolved::Values(vec![low, high]);
        self.others.entry(format!("{claim}.{}", parts[0])).or_default().push((experiment, both));
    }

    /// A point of a curve, or a part of a combination, which has a number where it has no coordinates.
    fn add_piece(&mut self, experiment: usize, claim: &str, index: usize, piece: &Piece) {
        let at = coordinates(piece.at.iter().map(|(name, value)| (name, value)));
        let key = if at.is_empty() { format!("{claim}#{}", index + 1) } else { format!("{claim}{at}") };
        self.push(experiment, claim, &format!("{key}.estimate"), piece.estimate);
        self.push(experiment, claim, &format!("{key}.expected"), piece.expected);
        self.push(experiment, claim, &format!("{key}.n"), Some(piece.units.used as f64));
        self.interval(experiment, claim, &key, ["interval", "low", "high"], piece.interval);
        for (inner, piece) in piece.parts.iter().enumerate() {
            self.add_piece(experiment, &key, inner, piece);
        }
    }

    fn push(&mut self, experiment: usize, name: &str, key: &str, value: Option<f64>) {
        let Some(value) = value else { return };
        self.claims.push(Named { key: key.to_owned(), name: name.to_owned(), value, experiment });
    }

    /// Parameters, values of axes and how many an axis has; derived seeds are no numbers that anybody prints.
    pub(super) fn add_design(&mut self, experiment: usize, plan: &Plan) {
        let mut push = |key: String, name: &str, value: Option<f64>| {
            if let Some(value) = value {
                self.design.push(Named { key, name: name.to_owned(), value, experiment });
            }
        };
        for (name, value) in &plan.params {
            push(format!("params.{name}"), name, value.as_f64());
        }
        for axis in plan.axes.iter().filter(|axis| !axis.is_derived()) {
            push(format!("count(axes.{})", axis.name), &axis.name, Some(axis.len() as f64));
            if matches!(axis.points, Points::Seeds { .. }) {
                continue;
            }
            /// So many values of an axis are numbers that a text may cite one by one.
            const CITED: u64 = 1000;
            for index in 0..axis.len().min(CITED) {
                let value = axis.value(index);
                let key = value.as_ref().map(Value::to_string).unwrap_or_default();
                push(
                    format!("axes.{}[{key}]", axis.name),
                    &axis.name,
                    value.as_ref().and_then(Value::as_f64),
                );
            }
        }
        for (index, stage) in plan.stages.iter().enumerate() {
            let members = avow_model::expand::count(plan, index);
            push(format!("count({})", stage.name), &stage.name, Some(members as f64));
        }
    }
}
