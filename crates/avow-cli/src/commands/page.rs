//! `avow report --html`: everything about an experiment on one page.

use std::path::{Path, PathBuf};

use avow_audit::Audit;
use avow_audit::measure::{self, table::Table};

use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::page::Page;

/// Writes the page of a spec.
pub fn page(
    spec: Option<&Path>,
    target: Option<&Path>,
    peek: bool,
    output: &Output,
) -> Result<Exit, Failure> {
    with(spec, peek, ("report", "the whole experiment"), output, |page| {
        let text = avow_report::page(&page.document()?)
            .map_err(|error| Failure::new(Exit::Internal, "the report cannot be laid out").because(error))?;
        let name = || PathBuf::from(format!("{}.html", page.plan.experiment));
        let target = target.map_or_else(name, Path::to_owned);
        write(&target, text.as_bytes())?;
        output.data(format!("wrote `{}`", target.display()))?;
        Ok(super::verdict::damage(page.report, output))
    })
}

/// Writes a file that a person asked for.
pub(super) fn write(target: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(target, bytes).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", target.display())).because(error)
    })
}

/// Gathers everything that a page is made from. `shown` is what is written down where values are seen early: the
/// command, and of what.
pub(super) fn with<R>(
    spec: Option<&Path>,
    peek: bool,
    shown: (&str, &str),
    output: &Output,
    then: impl FnOnce(&Page<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let spec = Spec::open(spec)?;
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    super::verdict::guard(&spec, &reading, &audit, peek, shown)?;
    let evidence = audit.evidence();
    let readings = measure::read_all(evidence, reading.source()).map_err(failure::audit)?;
    let report = audit.report_on(Some(&reading.journals()?), true, &readings);
    let mut report = report.map_err(failure::audit)?;
    report.foreign = super::verdict::foreign(&spec, plan)?;
    let table = Table::new(plan, &readings);
    then(&Page { title: spec.title(), plan, evidence, report: &report, table: &table, reading: &reading })
}
