//! `avow table`: the measurements, joined with their cells.

use avow_audit::measure::table::{Row, Table};
use avow_audit::measure::{self};
use avow_audit::{Audit, integrity};

use crate::args::{self, Form};
use crate::commands::verdict::damage_of;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Prints the table.
pub fn table(args: &args::Table, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
    let audit = Audit::gather(&planned.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    super::verdict::guard(&spec, &reading, &audit, args.peek, ("table", "every measurement"))?;
    let evidence = audit.evidence();
    let readings = measure::read_all(evidence, reading.source()).map_err(failure::audit)?;
    let mut table = Table::new(&planned.plan, &readings);
    if let Some(select) = &args.select {
        table.rows.retain(|row| selects(select, row));
        if table.rows.is_empty() {
            let names: Vec<&str> = readings.names().into_iter().collect();
            return Err(Failure::new(Exit::Usage, format!("no measurement is called `{select}`"))
                .hint(format!("there are {}", names.join(", "))));
        }
    }
    match if args.json { Form::Jsonl } else { args.format } {
        Form::Text => {
            let mut rows = vec![table.header()];
            rows.extend(table.rows.iter().map(|row| table.cells(row)));
            output.data(words::columns(&rows).trim_end())?;
        }
        Form::Csv => {
            let mut bytes = Vec::new();
            table
                .write_csv(&mut bytes)
                .map_err(|error| Failure::new(Exit::Internal, "the table has no CSV form").because(error))?;
            output.data(String::from_utf8_lossy(&bytes).trim_end())?;
        }
        Form::Jsonl => {
            for row in &table.rows {
                let line = serde_json::to_string(row)
                    .map_err(|error| Failure::new(Exit::Internal, "a row has no JSON form").because(error))?;
                output.data(line)?;
            }
        }
    }
    let mut findings = integrity::check(evidence, &reading.ledger, &reading.journals()?);
    findings.extend(evidence.findings.iter().cloned());
    findings.extend(readings.findings);
    findings.sort();
    findings.dedup();
    Ok(damage_of(&findings, &readings.problems, output))
}

fn selects(select: &str, row: &Row) -> bool {
    row.name == select || format!("{}.{}", row.stage, row.name) == select
}
