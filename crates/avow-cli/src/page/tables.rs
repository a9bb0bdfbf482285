//! The tables of a page.

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::Report;
use avow_audit::measure::table::Table as Measured;
use avow_model::attempt::Attempt;
use avow_model::axis::{Axis, Points};
use avow_model::plan::{Determinism, Plan, Source};
use avow_model::present::Present;
use avow_report::document::{Pair, Row, Table};
use avow_store::RecordStore;
use avow_store::blob::read_record;

use super::{Page, anchor};
use crate::failure;
use crate::output::Failure;
use crate::words;

/// Rows of the table of measurements that a page holds.
pub(super) const ROWS: usize = 2000;
/// Values of an axis that are written out.
const VALUES: u64 = 12;

pub(super) fn registration(report: &Report) -> Vec<Pair> {
    let Some(registration) = &report.registration else { return Vec::new() };
    let pair = |name: &str, text: String| (name.to_owned(), text);
    let mut pairs = vec![
        pair("entry", format!("{} ({})", registration.leaf, registration.kind)),
        pair("plan registered", registration.plan.to_string()),
        pair("plan judged", report.plan.to_string()),
    ];
    for other in &registration.concurrent {
        pairs.push(pair("beside it, neither before nor after", other.to_string()));
    }
    pairs
}

pub(super) fn axes(plan: &Plan) -> Vec<Pair> {
    plan.axes.iter().map(|axis| (axis.name.clone(), values(axis))).collect()
}

fn values(axis: &Axis) -> String {
    if let Points::Derived(_) = axis.points {
        return "computed from the other axes".to_owned();
    }
    let count = axis.len();
    let shown = (0..count.min(VALUES)).filter_map(|index| axis.value(index)).map(|value| value.to_string());
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if count > VALUES {
        text.push_str(&format!(", … ({count} values)"));
    }
    text
}

pub(super) fn stages(page: &Page<'_>) -> Table {
    let header = ["stage", "kind", "members", "reads", "writes", "a second execution gives"];
    let mut rows = Vec::new();
    for (position, stage) in page.plan.stages.iter().enumerate() {
        let members = page.evidence.stages.get(position).map_or(0, Vec::len);
        let reads = stage.inputs.values().map(|input| match &input.from {
            Source::Path { path, .. } => path.clone(),
            Source::Url { url, .. } => url.clone(),
            Source::Output { stage, output, .. } => format!("{stage}.{output}"),
            Source::Probes { search } => format!("the probes of {search}"),
        });
        let kind = stage.kind.map_or(String::new(), |kind| format!("{kind:?}").to_lowercase());
        let cells = vec![
            stage.name.clone(),
            kind,
            members.to_string(),
            reads.collect::<Vec<_>>().join(", "),
            stage.outputs.keys().cloned().collect::<Vec<_>>().join(", "),
            promise(&stage.determinism).to_owned(),
        ];
        rows.push(Row { cells, anchor: None });
    }
    Table { header: header.map(str::to_owned).to_vec(), rows }
}

fn promise(determinism: &Determinism) -> &'static str {
    match determinism {
        Determinism::Bytes => "the same bytes",
        Determinism::Tolerance(_) => "the same numbers, within a tolerance",
        Determinism::Distribution => "the same distribution",
        Determinism::Unrepeatable => "nothing that could be compared",
    }
}

/// Every attempt counts.
pub(super) fn denominators(page: &Page<'_>) -> Vec<Pair> {
    let mut fates: BTreeMap<&str, usize> = BTreeMap::new();
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for member in page.evidence.members() {
        *fates.entry(member.fate.word()).or_default() += 1;
        for attempt in &member.attempts {
            *outcomes.entry(attempt.outcome.word()).or_default() += 1;
        }
    }
    let counts = |of: BTreeMap<&str, usize>| {
        of.into_iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    };
    let members: usize = fates.values().sum();
    let attempts: usize = outcomes.values().sum();
    vec![
        ("members".to_owned(), format!("{members}: {}", counts(fates))),
        ("attempts at them".to_owned(), format!("{attempts}: {}", counts(outcomes))),
    ]
}

pub(super) fn measurements(table: &Measured, chained: &BTreeSet<String>) -> Table {
    let row = |row: &avow_audit::measure::table::Row| {
        let attempt = row.origin.attempt.to_string();
        let anchor = chained.contains(&attempt).then(|| anchor(&attempt));
        Row { cells: table.cells(row), anchor }
    };
    Table { header: table.header(), rows: table.rows.iter().take(ROWS).map(row).collect() }
}

/// The attempts that stand, as recorded.
fn standing(page: &Page<'_>) -> Result<Vec<Attempt>, Failure> {
    let mut attempts = Vec::new();
    for member in page.evidence.members() {
        if let avow_audit::evidence::Fate::Stands(stands) = &member.fate {
            let recorded = page.reading.index.attempt(stands.attempt).map_err(failure::store)?;
            attempts.extend(recorded.map(|recorded| recorded.attempt));
        }
    }
    Ok(attempts)
}

pub(super) fn environment(page: &Page<'_>) -> Result<Table, Failure> {
    let mut seen: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for attempt in standing(page)? {
        let present =
            attempt.environment.and_then(|digest| read_record::<Present>(&page.reading.blobs, digest).ok());
        let interpreters = present.map(|present| interpreters(&present)).unwrap_or_default();
        let host = attempt.host;
        *seen.entry(vec![host.name, host.system, host.cpu, interpreters, host.confinement]).or_default() += 1;
    }
    let header = ["machine", "system", "processor", "interpreters", "confinement", "attempts"];
    let row = |(mut cells, count): (Vec<String>, usize)| {
        cells.push(count.to_string());
        Row { cells, anchor: None }
    };
    Ok(Table { header: header.map(str::to_owned).to_vec(), rows: seen.into_iter().map(row).collect() })
}

fn interpreters(present: &Present) -> String {
    let one = |(word, interpreter): (&String, &avow_model::present::Interpreter)| {
        let packages = interpreter.packages.len() as u64;
        format!("{word}: {}, {}", interpreter.version, words::count(packages, "package"))
    };
    present.interpreters.iter().map(one).collect::<Vec<_>>().join("; ")
}

pub(super) fn cost(page: &Page<'_>) -> Result<Vec<Pair>, Failure> {
    let (mut cpu, mut wall, mut memory) = (0, 0, 0);
    for attempt in standing(page)? {
        cpu += attempt.usage.cpu;
        wall += attempt.usage.wall;
        memory = memory.max(attempt.usage.peak_memory);
    }
    let time = |micro: u64| words::seconds(micro as f64 / 1e6);
    Ok(vec![
        ("processor time of what stands".to_owned(), time(cpu)),
        ("wall time, one after the other".to_owned(), time(wall)),
        ("largest memory of one process".to_owned(), words::bytes(memory)),
    ])
}
