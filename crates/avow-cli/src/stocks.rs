//! The stored values of several specs, as far as they may be seen.

use std::path::PathBuf;

use avow_audit::measure::{self, Problem};
use avow_audit::stock::Stocked;
use avow_audit::{Audit, Finding, Report};
use avow_engine::record_exposure;
use avow_manuscript::Values;

use crate::context::{Reading, Spec, find_specs};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// Values of some specs, ready to be compared with a manuscript.
pub struct Stocks {
    /// The values with their keys.
    pub stocked: Stocked,
    /// The same by size.
    pub values: Values,
    /// What is damaged.
    pub findings: Vec<Finding>,
    /// What is no number.
    pub problems: Vec<Problem>,
    /// What was judged, with the experiment's plan, in the order of the specs.
    pub reports: Vec<Report>,
}

/// Gathers the values of specs, or of all specs of this folder. With `peek` values are given although a registered
/// plan is incomplete, and it is recorded by whom they were seen; without, such a spec gives only its names.
pub fn gather(specs: &[PathBuf], peek: Option<&str>, output: &Output) -> Result<Stocks, Failure> {
    let found = if specs.is_empty() { find_specs()? } else { specs.to_vec() };
    if found.is_empty() {
        return Err(Failure::new(Exit::Usage, "there is no spec in this folder")
            .hint("name those whose values the manuscript prints, e.g. `--spec experiment.yaml`"));
    }
    let mut stocks = Stocks {
        stocked: Stocked::default(),
        values: Values::default(),
        findings: Vec::new(),
        problems: Vec::new(),
        reports: Vec::new(),
    };
    for path in found {
        stocks.add(&Spec::open(Some(&path))?, peek, output)?;
    }
    stocks.findings.sort();
    stocks.findings.dedup();
    stocks.values = stocks.stocked.index();
    Ok(stocks)
}

impl Stocks {
    fn add(&mut self, spec: &Spec, peek: Option<&str>, output: &Output) -> Result<(), Failure> {
        let planned = spec.plan_as_run(output)?;
        let plan = &planned.plan;
        let reading = Reading::open(&spec.project, &plan.experiment)?;
        let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
        let hiding = audit.hiding(&reading.others()?).map_err(failure::audit)?;
        if let Some(by) = peek {
            for hiding in &hiding {
                record_exposure(&spec.project, &hiding.experiment, by, "every value")
                    .map_err(failure::engine)?;
            }
        }
        let show = hiding.is_empty() || peek.is_some();
        let readings = if show {
            Some(measure::read_all(audit.evidence(), reading.source()).map_err(failure::audit)?)
        } else {
            None
        };
        let journals = reading.journals()?;
        // Nothing is read twice: a store may have a million measurements.
        let report = match &readings {
            Some(readings) => audit.report_on(Some(&journals), peek.is_some(), readings),
            None => audit.report(Some(&journals), false),
        };
        let report = report.map_err(failure::audit)?;
        self.findings.extend(report.findings.iter().cloned());
        match readings {
            Some(readings) => {
                self.findings.extend(readings.findings.iter().cloned());
                self.problems.extend(readings.problems.iter().cloned());
                self.stocked.add(plan, readings, &report);
            }
            None => self.stocked.add_hidden(plan),
        }
        self.reports.push(report);
        Ok(())
    }
}
