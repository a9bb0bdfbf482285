//! The readable copy of numbers and verdicts that `results = "DIR"` in `avow.toml` asks for.

use std::fs;

use avow_audit::Report;
use avow_audit::measure::table::Table;
use avow_audit::{Evidence, measure};
use avow_model::plan::Plan;

use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::Failure;
use crate::settings::Settings;

/// Whether the project asks for a copy.
pub fn wanted(spec: &Spec) -> Result<bool, Failure> {
    Ok(Settings::of(&spec.project)?.results.is_some())
}

/// Writes `DIR/EXPERIMENT.csv` and `DIR/EXPERIMENT.verdicts.json`, unless values are hidden.
pub fn keep(spec: &Spec, plan: &Plan, report: &Report) -> Result<(), Failure> {
    let Some(folder) = Settings::of(&spec.project)?.results else { return Ok(()) };
    if report.hidden {
        return Ok(());
    }
    let folder = spec.project.root().join(folder);
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let evidence = Evidence::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let readings = measure::read_all(&evidence, reading.source()).map_err(failure::audit)?;
    let mut csv = Vec::new();
    Table::new(plan, &readings)
        .write_csv(&mut csv)
        .map_err(|error| Failure::new(Exit::Internal, "the table has no CSV form").because(error))?;
    let json = serde_json::to_vec_pretty(report)
        .map_err(|error| Failure::new(Exit::Internal, "the report has no JSON form").because(error))?;
    let write = |name: String, bytes: &[u8]| {
        let path = folder.join(name);
        fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes)).map_err(|error| {
            Failure::new(Exit::Machine, format!("cannot write `{}`", path.display())).because(error)
        })
    };
    write(format!("{}.csv", plan.experiment), &csv)?;
    write(format!("{}.verdicts.json", plan.experiment), &json)
}
