//! The rows of a data file, each by a digest, so that two files can be asked which rows they share.
//!
//! A row is a record of a table (`.csv`, `.tsv`), a line of text (`.txt`), a value of a list or a line of JSON
//! (`.json`, `.jsonl`), or a slice of a tensor by its first axis (`.npy`, `.safetensors`). Fields and values are
//! compared, not their quoting, spacing or the order of JSON keys; numbers are compared as they are written. Tensors
//! of one axis hold single numbers, which are no rows. Absent: rows that are nearly the same.

use std::collections::HashMap;

use avow_model::digest::BlobDigest;
use serde_json::Value;

use super::npy;
use crate::measure::lines::Lines;

/// Half of a BLAKE3 digest: chance alone makes no two rows of 2^40 share it.
type Digest = [u8; 16];

/// The rows of one file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    rows: Vec<Row>,
    /// The tensors that rows belong to; empty where rows have lines.
    tensors: Vec<String>,
    /// Whether the first row may be a header.
    headed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    digest: Digest,
    /// The line, from 1, or the index in its tensor, from 0.
    at: u64,
    tensor: usize,
}

/// A row that two files share: where it is in each.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shared {
    /// Where it is in the holdout.
    pub holdout: String,
    /// Where it is first in the other file.
    pub training: String,
}

/// Which rows of one file another has too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// How many rows the holdout has.
    pub rows: u64,
    /// How many of them are in the other file.
    pub shared: u64,
    /// The first of those.
    pub first: Vec<Shared>,
}

/// Shared rows that are named.
const NAMED: usize = 3;

/// Why the rows of a file are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// A format without rows, or one that is not read.
    #[error("not a table, JSON, `.npy` or `.safetensors`")]
    Format,
    /// It does not parse.
    #[error("{0}")]
    Syntax(String),
}

impl Rows {
    /// Reads a file whose name ends as its format does.
    ///
    /// # Errors
    /// [`Unread`] where it has no rows that could be compared.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Rows, Unread> {
        let suffix =
            name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map_or("", |(_, suffix)| suffix);
        match suffix.to_ascii_lowercase().as_str() {
            "csv" => table(bytes, b','),
            "tsv" => table(bytes, b'\t'),
            "txt" => Ok(text(bytes)),
            "jsonl" | "ndjson" => json_lines(bytes),
            "json" => json_list(bytes),
            "npy" => npy_rows(bytes),
            "safetensors" => safetensors_rows(bytes),
            _ => Err(Unread::Format),
        }
    }

    /// Which of these rows another file has too. A first line that both tables begin with is their header.
    pub fn shared_with(&self, other: &Rows) -> Overlap {
        let headers = self.headed
            && other.headed
            && matches!((self.rows.first(), other.rows.first()), (Some(a), Some(b)) if a.digest == b.digest);
        let skipped = usize::from(headers);
        let mut known: HashMap<Digest, &Row> = HashMap::with_capacity(other.rows.len());
        for row in other.rows.iter().skip(skipped) {
            known.entry(row.digest).or_insert(row);
        }
        let mut out = Overlap { rows: self.rows.len().saturating_sub(skipped) as u64, ..Overlap::default() };
        for row in self.rows.iter().skip(skipped) {
            let Some(same) = known.get(&row.digest) else { continue };
            out.shared += 1;
            if out.first.len() < NAMED {
                out.first.push(Shared { holdout: self.place(row), training: other.place(same) });
            }
        }
        out
    }

    fn place(&self, row: &Row) -> String {
        match self.tensors.get(row.tensor) {
            Some(tensor) => format!("{tensor}[{}]", row.at),
            None => format!("line {}", row.at),
        }
    }

    fn line(&mut self, number: u64, content: &[u8]) {
        self.rows.push(Row { digest: digest(content), at: number, tensor: 0 });
    }

    /// The slices of a tensor; `element` tells apart numbers of another kind with the same bytes.
    fn tensor(&mut self, name: &str, element: &str, shape: &[usize], data: &[u8]) {
        let (Some(count), true) = (shape.first().copied(), shape.len() > 1) else { return };
        let size = data.len().checked_div(count).unwrap_or(0);
        if size == 0 {
            return;
        }
        let head = format!("tensor {element} {:?}\n", &shape[1..]);
        let tensor = self.tensors.len();
        self.tensors.push(name.to_owned());
        for (at, slice) in data.chunks_exact(size).enumerate() {
            let digest = digest(&[head.as_bytes(), slice].concat());
            self.rows.push(Row { digest, at: at as u64, tensor });
        }
    }
}

fn digest(content: &[u8]) -> Digest {
    let whole = BlobDigest::of(content);
    let mut half = Digest::default();
    half.copy_from_slice(&whole.as_bytes()[..16]);
    half
}

fn table(bytes: &[u8], delimiter: u8) -> Result<Rows, Unread> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(bytes);
    let mut rows = Rows { headed: true, ..Rows::default() };
    let mut record = csv::ByteRecord::new();
    let mut lines = Lines::of(bytes);
    while reader.read_byte_record(&mut record).map_err(|error| Unread::Syntax(error.to_string()))? {
        let mut content = b"record\n".to_vec();
        for field in &record {
            content.extend((field.len() as u64).to_le_bytes());
            content.extend(field);
        }
        rows.line(lines.at(record.position()) as u64, &content);
    }
    Ok(rows)
}

fn text(bytes: &[u8]) -> Rows {
    let mut rows = Rows::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if !line.is_empty() {
            rows.line(number, &[b"text\n", line].concat());
        }
    }
    rows
}

fn json_lines(bytes: &[u8]) -> Result<Rows, Unread> {
    let mut rows = Rows::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| Unread::Syntax(format!("line {number}: {error}")))?;
        rows.line(number, format!("json\n{}", sorted(value)).as_bytes());
    }
    Ok(rows)
}

fn json_list(bytes: &[u8]) -> Result<Rows, Unread> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| Unread::Syntax(error.to_string()))?;
    let Value::Array(items) = value else { return Err(Unread::Format) };
    let mut rows = Rows { tensors: vec!["item".to_owned()], ..Rows::default() };
    for (number, item) in (0..).zip(items) {
        rows.line(number, format!("json\n{}", sorted(item)).as_bytes());
    }
    Ok(rows)
}

/// A value with its keys sorted, so that their order says nothing. Readers of JSON bound the depth.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        other => other,
    }
}

fn npy_rows(bytes: &[u8]) -> Result<Rows, Unread> {
    let array = npy::read(bytes).map_err(Unread::Syntax)?;
    let mut rows = Rows::default();
    rows.tensor("row", &array.element, &array.shape, array.data);
    Ok(rows)
}

fn safetensors_rows(bytes: &[u8]) -> Result<Rows, Unread> {
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| Unread::Syntax(e.to_string()))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut rows = Rows::default();
    for (name, view) in &tensors {
        let written = format!("{:?}", view.dtype());
        rows.tensor(name, npy::element_of(&written).unwrap_or(&written), view.shape(), view.data());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(name: &str, holdout: &[u8], training: &[u8]) -> Overlap {
        Rows::read(name, holdout).unwrap().shared_with(&Rows::read(name, training).unwrap())
    }

    fn shared(holdout: &str, training: &str) -> Shared {
        Shared { holdout: holdout.to_owned(), training: training.to_owned() }
    }

    #[test]
    fn records_are_compared_by_their_fields_and_a_common_header_is_none() {
        let found = overlap("a/b.csv", b"x,y\n1,2\n3,4\n5,6\n", b"x,y\r\n\"3\",4\r\n1,2\r\n9,9\r\n");
        assert_eq!((found.rows, found.shared), (3, 2));
        assert_eq!(found.first, [shared("line 2", "line 3"), shared("line 3", "line 2")]);
        // Without a common first line nothing is a header.
        assert_eq!(overlap("a.csv", b"1,2\n3,4\n", b"3,4\n1,2\n").shared, 2);
        assert_eq!(overlap("a.csv", b"1,23\n", b"12,3\n").shared, 0, "fields do not run together");
        assert_eq!(overlap("a.csv", b"", b"").rows, 0);
    }

    #[test]
    fn json_is_compared_by_its_values() {
        let found = overlap("a.jsonl", b"{\"a\": 1, \"b\": 2}\n\n{\"a\": 3}\n", b"{\"b\":2,\"a\":1}\n");
        assert_eq!((found.rows, found.shared), (2, 1));
        assert_eq!(overlap("a.json", b"[[1, 2], [3, 4]]", b"[[3,4]]").first, [shared("item[1]", "item[0]")]);
        assert!(matches!(Rows::read("a.jsonl", b"{"), Err(Unread::Syntax(_))));
        assert!(matches!(Rows::read("a.json", b"{}"), Err(Unread::Format)));
        assert!(matches!(Rows::read("model.bin", b""), Err(Unread::Format)));
    }

    #[test]
    fn tensors_are_compared_by_their_first_axis() {
        let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let other: Vec<u8> = [9.0f32, 9.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors = |name: &str, shape: &[usize], data: &[u8]| {
            let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), data);
            safetensors::serialize([(name, view.unwrap())], None).unwrap()
        };
        let found = overlap("a.safetensors", &tensors("x", &[2, 2], &data), &tensors("y", &[2, 2], &other));
        assert_eq!((found.rows, found.shared), (2, 1));
        assert_eq!(found.first, [shared("x[1]", "y[1]")]);
        let single = tensors("x", &[4], &data);
        assert_eq!(overlap("a.safetensors", &single, &single).rows, 0, "single numbers are no rows");
        // The same rows in the two formats are the same.
        let held = Rows::read("a.npy", &npy::tests::file("<f4", &[2, 2], &data)).unwrap();
        let trained = Rows::read("b.safetensors", &tensors("x", &[2, 2], &other)).unwrap();
        assert_eq!(held.shared_with(&trained).first, [shared("row[1]", "x[1]")]);
        let whole = Rows::read("a.npy", &npy::tests::file("<i4", &[2, 2], &data)).unwrap();
        assert_eq!(whole.shared_with(&trained).shared, 0, "other numbers with the same bytes");
        assert!(matches!(Rows::read("a.safetensors", b"\xff"), Err(Unread::Syntax(_))));
    }
}
