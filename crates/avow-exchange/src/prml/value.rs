//! A manifest as values: read from JSON or YAML so that every reader of the format sees the same.
//!
//! The implementations of PRML read YAML by different rules: some by YAML 1.1, where `1_000`, `012`, `1:30` and unquoted
//! dates are no text, others by the core schema of YAML 1.2. What the two read differently is refused with the remedy,
//! never guessed, since another reading is another digest. Also refused: a key that stands twice, keys that are no text,
//! anchors, tags, several documents.

use std::collections::BTreeMap;
use std::fmt;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Deeper nesting is refused.
const DEEPEST: usize = 64;

/// One value of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// A truth.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, sorted by key (by code point).
    Map(BTreeMap<String, Node>),
}

impl Node {
    /// The value under a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The text that it is.
    pub fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number that it is.
    pub fn number(&self) -> Option<f64> {
        match self {
            Node::Int(i) => Some(*i as f64),
            Node::Float(x) => Some(*x),
            _ => None,
        }
    }
}

/// Reads JSON.
///
/// # Errors
/// What is wrong, in words.
pub fn json(text: &str) -> Result<Node, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Json)
    }
}

struct Json;

impl<'de> Visitor<'de> for Json {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a manifest")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Int(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Int(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, Node>()? {
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("the key `{key}` stands twice")));
            }
        }
        Ok(Node::Map(map))
    }
}

/// Reads one YAML document.
///
/// # Errors
/// What is wrong, in words, with the line where it is known.
pub fn yaml(text: &str) -> Result<Node, String> {
    // The parser takes NUL for the end of the text.
    if text.contains('\0') {
        return Err("the file holds NUL, which is no text".to_owned());
    }
    let mut reader = Yaml { parser: Parser::new_from_str(text), documents: 0 };
    let mut found = None;
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => break,
            (Event::DocumentStart(_), line) => {
                reader.documents += 1;
                if reader.documents > 1 {
                    return Err(format!("line {line}: a manifest is one document"));
                }
            }
            (Event::StreamStart | Event::DocumentEnd | Event::Nothing, _) => {}
            (event, line) => found = Some(reader.node(event, line, 0)?),
        }
    }
    found.ok_or_else(|| "the file is empty".to_owned())
}

struct Yaml<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    documents: usize,
}

impl<'t> Yaml<'t> {
    fn next(&mut self) -> Result<(Event<'t>, usize), String> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => Err(error.to_string()),
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    fn node(&mut self, event: Event<'t>, line: usize, depth: usize) -> Result<Node, String> {
        let wrong = |what: &str| Err(format!("line {line}: {what}"));
        if depth > DEEPEST {
            return wrong("nested too deeply");
        }
        match event {
            Event::Alias(_) => wrong("a manifest has no aliases; write the value again"),
            Event::Scalar(_, _, anchor, tag) if anchor > 0 || tag.is_some() => {
                wrong("a manifest has neither anchors nor tags")
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag)
                if anchor > 0 || tag.is_some() =>
            {
                wrong("a manifest has neither anchors nor tags")
            }
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                plain(&text).map_err(|what| format!("line {line}: {what}"))
            }
            Event::Scalar(text, ..) => Ok(Node::Text(text.into_owned())),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Node::List(items)),
                        (event, line) => items.push(self.node(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.mapping(depth),
            _ => wrong("not a value"),
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, String> {
        let mut map = BTreeMap::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Node::Map(map));
            }
            let Node::Text(key) = self.node(event, line, depth + 1)? else {
                return Err(format!("line {line}: a key is text; put quotes around it"));
            };
            if key == "<<" {
                return Err(format!("line {line}: a manifest has no merge keys"));
            }
            let (event, at) = self.next()?;
            let value = self.node(event, at, depth + 1)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(format!("line {line}: the key `{key}` stands twice"));
            }
        }
    }
}

/// A scalar without quotes.
fn plain(text: &str) -> Result<Node, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Node::Null),
        "true" | "True" | "TRUE" => return Ok(Node::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Node::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Ok(Node::Float(f64::NAN)),
        "=" | "<<" => return Ok(Node::Text(text.to_owned())),
        _ => {}
    }
    let (sign, rest) = match text.as_bytes() {
        [b'-', ..] => (-1, &text[1..]),
        [b'+', ..] => (1, &text[1..]),
        _ => (1, text),
    };
    if matches!(rest, ".inf" | ".Inf" | ".INF") {
        return Ok(Node::Float(f64::from(sign) * f64::INFINITY));
    }
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if digits(rest) && (rest == "0" || !rest.starts_with('0')) {
        let number: i128 = rest.parse().map_err(|_| format!("`{text}` is too large"))?;
        return Ok(Node::Int(i128::from(sign) * number));
    }
    if is_common_float(rest) {
        return text.parse().map(Node::Float).map_err(|_| format!("`{text}` is no number"));
    }
    // The format's readers take these for text, whatever YAML 1.1 says.
    const TEXT: [&str; 4] = ["yes", "no", "on", "off"];
    if TEXT.contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(Node::Text(text.to_owned()));
    }
    if super::canonical::resolves(text) || is_core_number(rest) {
        let hint = "write it out in digits, or with quotes where it is text";
        return Err(format!("`{text}` is read in two ways by the readers of this format; {hint}"));
    }
    Ok(Node::Text(text.to_owned()))
}

/// A number with a decimal point that YAML 1.1 and 1.2 read alike: an exponent has its sign.
fn is_common_float(rest: &str) -> bool {
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let Some((whole, part)) = mantissa.split_once('.') else { return false };
    let signed = exponent
        .is_none_or(|e| e.strip_prefix(['-', '+']).is_some_and(|power| !power.is_empty() && digits(power)));
    !whole.is_empty() && digits(whole) && digits(part) && signed
}

/// What the core schema of YAML 1.2 reads as a number.
fn is_core_number(rest: &str) -> bool {
    let of = |prefix: &str, radix: u32| {
        rest.strip_prefix(prefix).is_some_and(|d| !d.is_empty() && d.chars().all(|c| c.is_digit(radix)))
    };
    let float = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') && rest.parse::<f64>().is_ok();
    of("0x", 16) || of("0o", 8) || float
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_readers_read_alike_is_read() {
        let value = |text: &str| yaml(&format!("x: {text}\n")).unwrap().get("x").cloned().unwrap();
        assert_eq!(value("42"), Node::Int(42));
        assert_eq!(value("-0.50"), Node::Float(-0.5));
        assert_eq!(value("1.5e-3"), Node::Float(0.0015));
        assert_eq!(value("\"2026-01-01\""), Node::Text("2026-01-01".to_owned()));
        assert_eq!(value("yes"), Node::Text("yes".to_owned()));
        assert_eq!(value(""), Node::Null);
        assert_eq!(
            value("[a, {b: 1}]"),
            Node::List(vec![Node::Text("a".into()), Node::Map([("b".into(), Node::Int(1))].into())])
        );
        assert_eq!(json("{\"a\": 1.0, \"b\": null}").unwrap().get("a"), Some(&Node::Float(1.0)));
    }

    #[test]
    fn what_they_read_differently_is_refused() {
        for text in [
            "2026-01-01T00:00:00Z",
            "2026-01-01",
            "1_000",
            "012",
            "0x1F",
            "0o17",
            "0b1",
            "1:30",
            "1e-3",
            "1.5e3",
            ".5",
        ] {
            let refused = yaml(&format!("x: {text}\n")).unwrap_err();
            assert!(refused.contains("two ways") && refused.contains("line 1"), "{text}: {refused}");
        }
        for text in [
            "a: 1\na: 2\n",
            "a: &x 1\nb: *x\n",
            "a: !t 1\n",
            "---\na: 1\n---\nb: 2\n",
            "1: 2\n",
            "<<: {a: 1}\n",
            "",
            "a: [",
            "? [a]\n: b\n",
        ] {
            assert!(yaml(text).is_err(), "{text}");
        }
        assert!(json("{\"a\": 1, \"a\": 2}").unwrap_err().contains("twice"));
        let deep = format!("a: {}{}\n", "[".repeat(100), "]".repeat(100));
        assert!(yaml(&deep).is_err());
    }
}
