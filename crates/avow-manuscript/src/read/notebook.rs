//! Jupyter notebooks: the Markdown cells, and what the code cells printed.
//!
//! A cell's text is JSON strings, so each cell becomes text of its own whose every character knows the bytes of the
//! notebook that it came from. Code is no prose and is left out.

use std::ops::Range;

use serde_json::Value;

use super::markdown;
use crate::text::{File, Flat, Problem, Span, Zone};

/// Reads the first file.
pub(super) fn read(flat: &mut Flat) {
    let text = flat.files[0].text.clone();
    let notebook: Value = match serde_json::from_str(&text) {
        Ok(notebook) => notebook,
        Err(error) => return problem(flat, format!("the notebook cannot be read: {error}")),
    };
    // Texts are found by their place in the order of the file, which the parser keeps.
    let mut strings = Strings { text: &text, at: 0 };
    let mut cells = Vec::new();
    if walk(&notebook, &mut strings, &mut Path::default(), &mut cells).is_none() {
        return problem(flat, "the notebook cannot be read: a name stands twice in one object".to_owned());
    }
    for cell in cells {
        if cell.prose {
            prose(flat, &cell.text)
        } else {
            output(flat, &cell.text)
        }
        let end = text.len();
        flat.instead(Span { file: 0, start: end, end }, "\n\n");
    }
}

fn problem(flat: &mut Flat, what: String) {
    flat.problems.push(Problem { what, span: None });
}

/// The text of a cell, or what it printed.
struct Cell {
    prose: bool,
    text: Decoded,
}

/// Where the walk is: the names on the way, and whether the cell holds Markdown.
#[derive(Default)]
struct Path {
    names: Vec<String>,
    markdown: bool,
}

impl Path {
    /// Whether this is a cell's own text, or something that it printed.
    fn kind(&self) -> Option<bool> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["cells", "source"] => self.markdown.then_some(true),
            ["cells", "outputs", "text"] | ["cells", "outputs", "data", "text/plain" | "text/markdown"] => {
                Some(false)
            }
            _ => None,
        }
    }
}

/// Goes through a value beside the strings of the file; `None` where the two do not agree.
fn walk(value: &Value, strings: &mut Strings<'_>, path: &mut Path, cells: &mut Vec<Cell>) -> Option<()> {
    if let Some(prose) = path.kind().filter(|_| matches!(value, Value::String(_) | Value::Array(_))) {
        let mut text = Decoded { text: String::new(), places: Vec::new() };
        let parts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for part in parts.iter().filter_map(Value::as_str) {
            strings.take(part, &mut text)?;
        }
        cells.push(Cell { prose, text });
        return Some(());
    }
    match value {
        Value::String(text) => strings.take(text, &mut Decoded { text: String::new(), places: Vec::new() }),
        Value::Array(values) => values.iter().try_for_each(|value| walk(value, strings, path, cells)),
        Value::Object(fields) => {
            let markdown = fields.get("cell_type").and_then(Value::as_str) == Some("markdown");
            if path.names.as_slice() == ["cells"] {
                path.markdown = markdown;
            }
            for (name, value) in fields {
                strings.take(name, &mut Decoded { text: String::new(), places: Vec::new() })?;
                path.names.push(name.clone());
                walk(value, strings, path, cells)?;
                path.names.pop();
            }
            Some(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
    }
}

/// The strings of a JSON text, one after the other.
struct Strings<'t> {
    text: &'t str,
    at: usize,
}

impl Strings<'_> {
    /// The next string, which must be this one.
    fn take(&mut self, expected: &str, out: &mut Decoded) -> Option<()> {
        let open = self.at + self.text.get(self.at..)?.find('"')?;
        let from = out.text.len();
        self.at = string(self.text, open + 1, out)?;
        (out.text.get(from..) == Some(expected)).then_some(())
    }
}

/// Reads a Markdown cell as if it were a file, and moves what came of it into the notebook.
fn prose(flat: &mut Flat, cell: &Decoded) {
    let mut inner = Flat::default();
    inner.files.push(File { path: flat.files[0].path.clone(), text: cell.text.clone() });
    let length = cell.text.len();
    markdown::part(&mut inner, 0, 0..length, &(), 0);
    flat.append(&inner, |span| {
        let start = cell.places.get(span.start).map_or(0, |place| place.start);
        let end =
            span.end.checked_sub(1).and_then(|last| cell.places.get(last)).map_or(start, |place| place.end);
        Span { file: 0, start, end: end.max(start) }
    });
}

/// What a cell printed, which stands in the notebook and is no prose.
fn output(flat: &mut Flat, cell: &Decoded) {
    let from = flat.len();
    for (at, c) in cell.text.char_indices() {
        let place = cell.places.get(at).cloned().unwrap_or(0..0);
        let mut buffer = [0u8; 4];
        flat.instead(Span { file: 0, start: place.start, end: place.end }, c.encode_utf8(&mut buffer));
    }
    flat.mark(Zone::Code, from);
}

/// A text out of JSON strings, with the place of every character.
struct Decoded {
    text: String,
    /// For each byte of the text the bytes of the notebook.
    places: Vec<Range<usize>>,
}

/// One JSON string from behind its quote; gives where reading goes on.
fn string(json: &str, mut at: usize, out: &mut Decoded) -> Option<usize> {
    loop {
        let c = json.get(at..)?.chars().next()?;
        let (decoded, length) = match c {
            '"' => return Some(at + 1),
            '\\' => escape(json, at)?,
            c => (c, c.len_utf8()),
        };
        out.text.push(decoded);
        out.places.extend(std::iter::repeat_n(at..at + length, decoded.len_utf8()));
        at += length;
    }
}

fn escape(json: &str, at: usize) -> Option<(char, usize)> {
    Some(match *json.as_bytes().get(at + 1)? {
        b'n' => ('\n', 2),
        b't' => ('\t', 2),
        b'r' => ('\r', 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'u' => {
            let unit = |at: usize| u32::from_str_radix(json.get(at + 2..at + 6)?, 16).ok();
            let first = unit(at)?;
            if (0xd800..0xdc00).contains(&first) {
                let second = unit(at + 6)?.checked_sub(0xdc00)?;
                (char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)?, 12)
            } else {
                (char::from_u32(first).unwrap_or('\u{fffd}'), 6)
            }
        }
        other => (char::from(other), 2),
    })
}
