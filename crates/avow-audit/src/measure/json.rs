//! A tolerant reader for one JSON object of measurements.
//!
//! Programs write what their libraries write: Python's `json.dump` spells non-finite floats `NaN`, `Infinity`
//! and `-Infinity`, which is not JSON, and others write the same words as strings. Both are read as the floats
//! they mean. A key that appears twice is reported, never silently overwritten. Absent: any other leniency.

use std::fmt;

use avow_model::value::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value inside a measurement file.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// Any other number, non-finite ones included.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The number this value is; integers become floats, the words for non-finite floats what they mean.
    pub fn number(&self) -> Option<f64> {
        match self {
            Json::Int(i) => Some(*i as f64),
            Json::Float(x) => Some(*x),
            Json::Text(text) => non_finite(text),
            _ => None,
        }
    }

    /// The value of a record key: true or false, a finite number, or text.
    pub fn key(&self) -> Option<Value> {
        match self {
            Json::Bool(b) => Some(Value::Bool(*b)),
            Json::Int(i) => Some(Value::Int(*i)),
            Json::Float(x) => Value::float(*x),
            Json::Text(text) => Some(Value::Text(text.clone())),
            _ => None,
        }
    }

    /// What a JSON pointer (RFC 6901) leads to; nothing where a name stands twice.
    pub fn at(&self, pointer: &str) -> Option<&Json> {
        let Some(path) = pointer.strip_prefix('/') else { return pointer.is_empty().then_some(self) };
        path.split('/').try_fold(self, |here, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match here {
                Json::Object(pairs) => {
                    let mut found = pairs.iter().filter(|(name, _)| *name == step);
                    found.next().map(|(_, value)| value).filter(|_| found.next().is_none())
                }
                Json::List(items) => {
                    let plain = step == "0" || !step.starts_with(['0', '+']);
                    items.get(step.parse::<usize>().ok().filter(|_| plain)?)
                }
                _ => None,
            }
        })
    }

    /// What it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Int(_) | Json::Float(_) => "number",
            Json::Text(_) => "text",
            Json::List(_) => "list",
            Json::Object(_) => "object",
        }
    }
}

fn non_finite(text: &str) -> Option<f64> {
    match text {
        "NaN" | "nan" => Some(f64::NAN),
        "Infinity" | "inf" => Some(f64::INFINITY),
        "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Reads one JSON object; the error is what the reader said, with its line and column.
pub fn object(text: &str) -> Result<Vec<(String, Json)>, String> {
    match value(text)? {
        Json::Object(pairs) => Ok(pairs),
        other => Err(format!("expected an object, found a {}", other.kind())),
    }
}

/// A JSON text, or JSON Lines, with its keys sorted and its spaces evened out; `None` for other text.
pub(crate) fn by_value(text: &str) -> Option<String> {
    let quoted = quote_words(text.strip_prefix('\u{feff}').unwrap_or(text));
    let values = serde_json::Deserializer::from_str(&quoted).into_iter::<serde_json::Value>();
    let values = values.collect::<Result<Vec<_>, _>>().ok()?;
    // A bare number is JSON too, and says nothing about the format.
    let structured = values.iter().all(|value| value.is_object() || value.is_array());
    let sorted = |mut value: serde_json::Value| {
        value.sort_all_objects();
        format!("{value}\n")
    };
    (structured && !values.is_empty()).then(|| values.into_iter().map(sorted).collect())
}

/// Reads one JSON value of any kind.
pub fn value(text: &str) -> Result<Json, String> {
    let quoted = quote_words(text.strip_prefix('\u{feff}').unwrap_or(text));
    serde_json::from_str(&quoted).map_err(|e| e.to_string())
}

/// The same text with the bare words for non-finite numbers in quotes. Inside strings nothing is touched.
fn quote_words(text: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let (mut inside, mut at) = (false, 0);
    while let Some(next) = text[at..].chars().next() {
        let word = WORDS.iter().find(|word| !inside && text[at..].starts_with(**word));
        let length = match (word, next) {
            (Some(word), _) => {
                out.extend(["\"", word, "\""]);
                at += word.len();
                continue;
            }
            // An escaped character never ends the string.
            (None, '\\') if inside => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            (None, '"') => {
                inside = !inside;
                1
            }
            (None, other) => other.len_utf8(),
        };
        out.push_str(&text[at..at + length]);
        at += length;
    }
    out
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Float(value as f64), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry::<String, Json>()? {
            pairs.push(pair);
        }
        Ok(Json::Object(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> f64 {
        object(text).unwrap()[0].1.number().unwrap()
    }

    #[test]
    fn bare_and_quoted_words_are_the_floats_they_mean() {
        assert!(number(r#"{"loss": NaN}"#).is_nan());
        assert!(number(r#"{"loss": "NaN"}"#).is_nan());
        assert_eq!(number(r#"{"loss":-Infinity}"#), f64::NEG_INFINITY);
        assert_eq!(number(r#"{"loss": Infinity, "b": [NaN, 1]}"#), f64::INFINITY);
        assert_eq!(number(r#"{"loss": "inf"}"#), f64::INFINITY);
    }

    #[test]
    fn words_inside_strings_stay_text() {
        let read = object(r#"{"a \"NaN\" b": "to Infinity \\", "x": NaN}"#).unwrap();
        assert_eq!(read[0], ("a \"NaN\" b".to_owned(), Json::Text("to Infinity \\".to_owned())));
        assert!(read[1].1.number().unwrap().is_nan());
    }

    #[test]
    fn both_values_of_a_repeated_key_are_kept() {
        let read = object(r#"{"a": 1, "a": 2.5}"#).unwrap();
        assert_eq!(read, [("a".to_owned(), Json::Int(1)), ("a".to_owned(), Json::Float(2.5))]);
    }

    #[test]
    fn pointers_lead_through_objects_and_lists() {
        let read = value(r#"{"probe": [{"k/n": 1, "a~b": 2}, 5], "": 3, "x": 4, "x": 6}"#).unwrap();
        let number = |pointer: &str| read.at(pointer).and_then(Json::number);
        assert_eq!(number("/probe/0/k~1n"), Some(1.0));
        assert_eq!(number("/probe/0/a~0b"), Some(2.0));
        assert_eq!((number("/probe/1"), number("/")), (Some(5.0), Some(3.0)));
        for lost in ["/x", "/probe/2", "/probe/01", "/probe/+1", "/probe/-", "probe", "/probe/1/0"] {
            assert_eq!(read.at(lost), None, "{lost}");
        }
    }

    #[test]
    fn other_leniency_there_is_none() {
        for text in ["{'a': 1}", "{\"a\": 1,}", "[1]", "", "{\"a\": nan}", "{\"a\": NaNs}", "{\"a\": 1} x"] {
            assert!(object(text).is_err(), "{text}");
        }
    }
}
