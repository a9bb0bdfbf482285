//! Tables as measurement files: a column per measurement, or tidy with the columns `name` and `value`.
//!
//! An empty cell of a measurement, or `NA`, is NaN, because that is how data-frame libraries write it; an empty cell of a
//! record key is an empty text. Absent: guesses at separators, decimal commas, thousands, units.

use avow_model::plan::{MeasurementFile, MeasurementFormat};

use super::Reason;
use super::json::Json;
use super::lines::Lines;

/// One row.
pub(super) struct Cells {
    pub keys: Vec<(String, Json)>,
    pub values: Vec<(String, Json)>,
    /// What the column `censored` of a tidy table says.
    pub censored: Option<Json>,
}

type Row = Result<(usize, Cells), (usize, Reason)>;

/// The rows of a table with the line each begins on, or why there can be none.
pub(super) fn rows(text: &str, tabs: bool, declared: &MeasurementFile) -> Result<Vec<Row>, Reason> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let separator = if tabs { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).from_reader(text.as_bytes());
    let syntax = |error: &csv::Error| Reason::Syntax { detail: error.to_string() };
    let names: Vec<String> = match reader.headers() {
        Ok(header) => header.iter().map(|name| name.trim().to_owned()).collect(),
        Err(error) => return Err(syntax(&error)),
    };
    if let Some(twice) = (1..names.len()).find(|i| names[..*i].contains(&names[*i])) {
        return Err(Reason::Syntax { detail: format!("two columns are called `{}`", names[twice]) });
    }
    let plan = Columns::of(&names, declared)?;
    let (mut rows, mut lines) = (Vec::new(), Lines::of(text.as_bytes()));
    for record in reader.records() {
        rows.push(match record {
            Ok(record) => Ok((lines.at(record.position()), plan.cells(&record))),
            Err(error) => Err((lines.at(error.position()), syntax(&error))),
        });
    }
    Ok(rows)
}

/// Which columns are what.
struct Columns {
    keys: Vec<(usize, String)>,
    values: Vec<(usize, String)>,
    /// Of a tidy table: the columns of names and values.
    tidy: Option<(usize, usize)>,
    /// The names that a tidy table is read for; empty: all.
    wanted: Vec<String>,
    /// Of a tidy table: the column that says that watching ended at a value.
    censored: Option<usize>,
}

impl Columns {
    fn of(names: &[String], declared: &MeasurementFile) -> Result<Columns, Reason> {
        let place = |name: &String| {
            let found = names.iter().position(|n| n == name);
            found.map(|i| (i, name.clone())).ok_or_else(|| Reason::Without { field: name.clone() })
        };
        let all = |wanted: &[String]| wanted.iter().map(place).collect::<Result<Vec<_>, _>>();
        let keys = all(&declared.keys)?;
        let is_key = |name: &String| declared.keys.contains(name);
        if declared.format == MeasurementFormat::TidyTable {
            let (name, value) = (place(&"name".to_owned())?.0, place(&"value".to_owned())?.0);
            let others: Vec<String> = names
                .iter()
                .enumerate()
                .filter(|(i, n)| *i != name && *i != value && n.as_str() != super::CENSORED)
                .map(|(_, n)| n.clone())
                .collect();
            let censored = names.iter().position(|n| n == super::CENSORED).filter(|i| !is_key(&names[*i]));
            let keys = if declared.keys.is_empty() { all(&others)? } else { keys };
            let wanted = declared.values.clone();
            return Ok(Columns { keys, values: Vec::new(), tidy: Some((name, value)), wanted, censored });
        }
        let rest: Vec<String> = names.iter().filter(|name| !is_key(name)).cloned().collect();
        let values = all(if declared.values.is_empty() { &rest } else { &declared.values })?;
        Ok(Columns { keys, values, tidy: None, wanted: Vec::new(), censored: None })
    }

    fn cells(&self, record: &csv::StringRecord) -> Cells {
        let text = |i: usize| record.get(i).unwrap_or_default();
        let keys = self.keys.iter().map(|(i, name)| (name.clone(), key(text(*i)))).collect();
        let values = match self.tidy {
            Some((name, value)) => {
                let one = (text(name).to_owned(), number(text(value)));
                let wanted = self.wanted.is_empty() || self.wanted.contains(&one.0);
                if wanted { vec![one] } else { Vec::new() }
            }
            None => self.values.iter().map(|(i, name)| (name.clone(), number(text(*i)))).collect(),
        };
        let censored = self.censored.map(|i| key(text(i))).filter(|cell| *cell != Json::Text(String::new()));
        Cells { keys, values, censored }
    }
}

/// A measurement: a number, one of the words for what is not finite, or text, which is no number.
fn number(cell: &str) -> Json {
    let cell = cell.trim();
    if cell.is_empty() || cell == "NA" {
        return Json::Float(f64::NAN);
    }
    let begins = cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    match cell.parse::<f64>() {
        Ok(x) if begins && x.is_finite() => Json::Float(x),
        _ => Json::Text(cell.to_owned()),
    }
}

/// A record key: an integer, a finite number, a truth, or text.
fn key(cell: &str) -> Json {
    if let Ok(i) = cell.parse::<i64>()
        && i.to_string() == cell
    {
        return Json::Int(i);
    }
    match (number(cell), cell) {
        // `007` is a name, not a number.
        (Json::Float(x), _) if x.is_finite() && cell.contains('.') => Json::Float(x),
        (_, "true" | "True") => Json::Bool(true),
        (_, "false" | "False") => Json::Bool(false),
        _ => Json::Text(cell.to_owned()),
    }
}
