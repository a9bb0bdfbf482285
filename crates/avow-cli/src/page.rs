//! What a report page says about an experiment: gathered here, laid out by `avow-report`.

mod claims;
mod figures;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::evidence::MemberEvidence;
use avow_audit::lineage::{Address, lineage};
use avow_audit::measure::table::Table;
use avow_audit::{Evidence, Report, Source};
use avow_model::plan::Plan;
use avow_report::document::{Document, Figure, Source as Chain};
use avow_store::RecordStore;

use crate::commands::lineage::line;
use crate::context::Reading;
use crate::failure;
use crate::output::Failure;
use crate::words;

/// Members whose lineage is written out; of many alike the others differ in little, and get a line each.
const CHAINS: usize = 40;

/// Everything that a page is made from.
pub struct Page<'a> {
    /// The spec's title.
    pub title: Option<&'a str>,
    /// The plan.
    pub plan: &'a Plan,
    /// What exists for it.
    pub evidence: &'a Evidence<'a>,
    /// What it came to.
    pub report: &'a Report,
    /// Its measurements.
    pub table: &'a Table,
    /// The store.
    pub reading: &'a Reading,
}

impl Page<'_> {
    /// The document. Errors: the store cannot be read.
    pub fn document(&self) -> Result<Document, Failure> {
        let Page { plan, report, .. } = self;
        let standing = words::verdict::standing(report, false);
        let damage = report.findings.iter().filter(|finding| finding.is_damage());
        Ok(Document {
            experiment: plan.experiment.clone(),
            title: self.title.map(str::to_owned),
            standing: standing.lines().next().unwrap_or_default().to_owned(),
            confirmatory: standing.starts_with("Confirmatory"),
            damage: damage.map(words::finding::words).collect(),
            registration: tables::registration(report),
            axes: tables::axes(plan),
            stages: tables::stages(self),
            claims: claims::claims(self),
            plots: figures::unclaimed(plan, self.table).into_iter().map(|(_, figure)| figure).collect(),
            deviations: report.deviations.iter().map(words::deviation::words).collect(),
            denominators: tables::denominators(self),
            measurements: tables::measurements(self.table, &self.chained()),
            of: self.table.rows.len(),
            environment: tables::environment(self)?,
            cost: tables::cost(self)?,
            lineage: self.chains()?,
            foreign: report.foreign.iter().map(words::foreign::line).collect(),
            made_by: format!("avow {}", env!("CARGO_PKG_VERSION")),
        })
    }

    /// Every plot, or those of a claim or a measurement, each with what it is of; none where nothing is called so.
    pub fn plots(&self, of: Option<&str>) -> Vec<(String, Figure)> {
        let mut all = Vec::new();
        for claim in &self.plan.claims {
            if of.is_none_or(|of| of == claim.name) {
                let verdicts: Vec<_> =
                    self.report.verdicts.iter().filter(|v| v.claim == claim.name).collect();
                let plots = figures::of_claim(claim, &verdicts, self.table);
                all.extend(plots.into_iter().map(|figure| (claim.name.clone(), figure)));
            }
        }
        match of {
            None => all.extend(figures::unclaimed(self.plan, self.table)),
            Some(of) if all.is_empty() => all.extend(figures::measured(self.plan, self.table, of)),
            Some(_) => {}
        }
        all
    }

    /// The attempts that numbers in the page are linked to: those of every measurement that it shows.
    fn chained(&self) -> BTreeSet<String> {
        self.table.rows.iter().take(tables::ROWS).map(|row| row.origin.attempt.to_string()).collect()
    }

    fn chains(&self) -> Result<Vec<Chain>, Failure> {
        let (source, chained): (Source<'_>, _) = (self.reading.source(), self.chained());
        let members: BTreeMap<String, &MemberEvidence> = self
            .evidence
            .members()
            .flat_map(|member| member.attempts.iter().map(move |tried| (tried.attempt.to_string(), member)))
            .collect();
        // Written out are the first of each stage; whatever else is alike refers to one of them.
        let (mut chains, mut whole) = (Vec::new(), BTreeMap::<u32, usize>::new());
        for attempt in chained {
            let Some(member) = members.get(&attempt) else { continue };
            let written = whole.entry(member.member.stage).or_default();
            *written += 1;
            if *written > CHAINS {
                chains.push(self.brief(&attempt, member)?);
                continue;
            }
            let label = self.evidence.label(member.member);
            let address = Address::parse(self.plan, &label).map_err(|error| {
                Failure::new(crate::exit::Exit::Internal, format!("`{label}` is no address")).because(error)
            })?;
            let found = lineage(self.evidence, source, &address).map_err(failure::audit)?;
            let steps =
                found.steps().iter().map(|step| (step.depth, line(step).trim_start().to_owned())).collect();
            chains.push(Chain { anchor: anchor(&attempt), heading: label, steps });
        }
        Ok(chains)
    }

    /// The chain of an attempt of which many alike are written out: what is its own.
    fn brief(&self, attempt: &str, member: &MemberEvidence) -> Result<Chain, Failure> {
        let label = self.evidence.label(member.member);
        let mut steps = vec![(0, format!("{label} ({})", member.fate.word()))];
        let tried = member.attempts.iter().find(|tried| tried.attempt.to_string() == attempt);
        let recorded = match tried {
            Some(tried) => self.reading.index.attempt(tried.attempt).map_err(failure::store)?,
            None => None,
        };
        if let Some(recorded) = recorded {
            let made = &recorded.attempt;
            steps.push((
                1,
                format!(
                    "attempt {} {} at {} on {} in run {}, of action {}",
                    attempt.get(..8).unwrap_or(attempt),
                    made.outcome.word(),
                    words::moment(made.started),
                    made.host.name,
                    recorded.position.run,
                    made.action.short()
                ),
            ));
            let outputs = made.outputs.iter();
            steps.extend(
                outputs.map(|(name, output)| (2, format!("wrote `{name}`: {}", output.artifact.short()))),
            );
        }
        steps.push((1, format!("as the members of its stage above; `avow lineage '{label}'` writes it out")));
        Ok(Chain { anchor: anchor(attempt), heading: label, steps })
    }
}

/// The anchor of an attempt's chain.
fn anchor(attempt: &str) -> String {
    format!("made-{}", attempt.get(..12).unwrap_or(attempt))
}
