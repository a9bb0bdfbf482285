//! Measurements as tidy JSON Lines: one number a line, with its name and its record keys.
//!
//! A number that is not finite is written as the text `"NaN"`, `"Infinity"` or `"-Infinity"`, since JSON has
//! no other way to say it and leaving the line out would turn an undefined value into a missing one.

use std::fmt::Write as _;
use std::path::Path;

use avow_model::value::Value;

use crate::error::OpError;

/// Collects lines in the order in which they are recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    text: String,
}

impl Records {
    /// Adds one measurement; keys are written in the order given, after name and value.
    pub(crate) fn add(&mut self, name: &str, value: f64, keys: &[(&str, Value)]) {
        let text = &mut self.text;
        let quoted = |t: &str| serde_json::to_string(t).expect("text always serializes");
        write!(text, "{{\"name\":{},\"value\":{}", quoted(name), number(value)).expect("writing to a string");
        for (key, value) in keys {
            let value = serde_json::to_string(value).expect("record keys are integers or text");
            write!(text, ",{}:{value}", quoted(key)).expect("writing to a string");
        }
        text.push_str("}\n");
    }

    /// Writes all lines.
    pub(crate) fn write(&self, file: &Path) -> Result<(), OpError> {
        std::fs::write(file, &self.text).map_err(|source| OpError::Io {
            action: "write",
            file: file.to_owned(),
            source,
        })
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "\"NaN\"".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }.to_owned()
    } else {
        // Negative zero is zero to a reader; the shortest decimal that round-trips keeps every other bit.
        serde_json::to_string(&if value == 0.0 { 0.0 } else { value }).expect("finite numbers serialize")
    }
}
