//! The flat table of measurements: one row a number.
//!
//! Rows are sorted by stage, cell, name and keys; the columns are the axes and record keys that occur, each
//! sorted by name. Values keep the spelling that commands receive. Absent: layout for a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use avow_model::plan::Plan;
use avow_model::value::{Value, spell_float};
use serde::Serialize;

use super::{Measurement, Origin, Readings};

/// Measurements as rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Axes that occur, sorted.
    pub axes: Vec<String>,
    /// Record keys that occur, sorted.
    pub keys: Vec<String>,
    /// One row a number.
    pub rows: Vec<Row>,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The stage.
    pub stage: String,
    /// What it is called.
    pub name: String,
    /// The number; the words `NaN`, `Infinity`, `-Infinity` in JSON where it is not finite.
    #[serde(serialize_with = "number")]
    pub value: f64,
    /// Whether watching ended there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub censored: bool,
    /// The cell's axes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, Value>,
    /// The record's own keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, Value>,
    /// Where it was read.
    #[serde(flatten)]
    pub origin: Origin,
}

/// A float as JSON has it: a number, or the word for what JSON has not.
pub(crate) fn number<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else {
        serializer.serialize_str(&spell(*value))
    }
}

/// The spelling of a number in tables.
pub fn spell(value: f64) -> String {
    match value {
        v if v.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        v => spell_float(v),
    }
}

impl Table {
    /// The table of some readings.
    pub fn new(plan: &Plan, readings: &Readings) -> Table {
        let mut sorted: Vec<&Measurement> = readings.values.iter().collect();
        sorted.sort_by(|a, b| {
            (a.member, &a.name).cmp(&(b.member, &b.name)).then_with(|| order(&a.keys, &b.keys))
        });
        let names = |of: fn(&Measurement) -> &BTreeMap<String, Value>| {
            let all: BTreeSet<&String> = readings.values.iter().flat_map(|m| of(m).keys()).collect();
            all.into_iter().cloned().collect()
        };
        let row = |m: &Measurement| Row {
            stage: plan.stages[m.member.stage as usize].name.clone(),
            name: m.name.clone(),
            value: m.value,
            censored: m.censored,
            axes: (*m.axes).clone(),
            keys: (*m.keys).clone(),
            origin: m.origin.clone(),
        };
        Table {
            axes: names(|m| &m.axes),
            keys: names(|m| &m.keys),
            rows: sorted.into_iter().map(row).collect(),
        }
    }

    /// The header of the flat form: `stage`, axes, record keys (`key.NAME` where an axis has the name too),
    /// `name`, `value`.
    pub fn header(&self) -> Vec<String> {
        let key = |key: &String| if self.axes.contains(key) { format!("key.{key}") } else { key.clone() };
        let mut header = vec!["stage".to_owned()];
        header.extend(self.axes.iter().cloned());
        header.extend(self.keys.iter().map(key));
        header.extend(["name".to_owned(), "value".to_owned()]);
        header
    }

    /// One row in the order of the header; empty where a column does not apply.
    pub fn cells(&self, row: &Row) -> Vec<String> {
        let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
        let mut cells = vec![row.stage.clone()];
        cells.extend(self.axes.iter().map(|axis| text(row.axes.get(axis))));
        cells.extend(self.keys.iter().map(|key| text(row.keys.get(key))));
        cells.extend([row.name.clone(), spell(row.value)]);
        cells
    }

    /// Writes the table as CSV (RFC 4180, LF line ends).
    pub fn write_csv(&self, out: impl Write) -> csv::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(self.header())?;
        for row in &self.rows {
            writer.write_record(self.cells(row))?;
        }
        writer.flush()?;
        Ok(())
    }
}

/// Records in the order of their keys, compared key by key.
fn order(a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>) -> std::cmp::Ordering {
    let by_key = a.iter().zip(b).map(|((k, x), (l, y))| k.cmp(l).then_with(|| x.order(y)));
    by_key.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}
