//! Text with `${…}` references, as commands, environment values and parameters have it.
//!
//! A reference is a dotted name: `axes.width`, `axes.model.width` (an attribute), `axes.seed.init` (a role
//! stream of a seed axis), `params.n`, `inputs.data`, `outputs.model`; and `checkpoint`. `$${` is a literal `${`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::Value;

/// The one reference of a single segment: the stage's checkpoint folder.
pub const CHECKPOINT: &str = "checkpoint";

/// One piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A dotted name, split at the dots; at least two segments, or `checkpoint`.
    Reference(Vec<String>),
}

/// Text with references; parsed once. Printing gives the text back, but for spaces inside `${ … }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The pieces in order.
    pub pieces: Vec<Piece>,
}

/// What is wrong with a template, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TemplateError {
    /// Byte offset in the text.
    pub offset: usize,
    /// Byte length of the offending part.
    pub length: usize,
    /// What is wrong.
    pub reason: String,
}

impl Template {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if rest.starts_with("$${") {
                literal.push_str("${");
                at += 3;
            } else if let Some(inner) = rest.strip_prefix("${") {
                let end = inner.find('}').ok_or_else(|| TemplateError {
                    offset: at,
                    length: rest.len(),
                    reason: "`${` without a closing `}`".to_owned(),
                })?;
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Reference(reference(&inner[..end], at, end + 3)?));
                at += end + 3;
            } else {
                let ch = rest.chars().next().expect("not at the end");
                literal.push(ch);
                at += ch.len_utf8();
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Template { pieces })
    }

    /// A template that is this text and nothing else.
    pub fn literal(text: &str) -> Template {
        let piece = (!text.is_empty()).then(|| Piece::Text(text.to_owned()));
        Template { pieces: piece.into_iter().collect() }
    }

    /// The references, in order.
    pub fn references(&self) -> impl Iterator<Item = &[String]> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference(path) => Some(path.as_slice()),
            Piece::Text(_) => None,
        })
    }

    /// The one reference this template consists of, if it is nothing else.
    pub fn sole_reference(&self) -> Option<&[String]> {
        match self.pieces.as_slice() {
            [Piece::Reference(path)] => Some(path),
            _ => None,
        }
    }

    /// The text with every reference replaced by `lookup`.
    pub fn fill<E>(&self, mut lookup: impl FnMut(&[String]) -> Result<String, E>) -> Result<String, E> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Reference(path) => text.push_str(&lookup(path)?),
            }
        }
        Ok(text)
    }
}

fn reference(name: &str, offset: usize, length: usize) -> Result<Vec<String>, TemplateError> {
    let path: Vec<String> = name.trim().split('.').map(str::to_owned).collect();
    let plain = |segment: &String| {
        !segment.is_empty() && segment.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let known = path.len() > 1 || path == [CHECKPOINT];
    if !known || !path.iter().all(plain) {
        let reason = format!("`${{{name}}}` is not a name such as `${{axes.width}}` or `${{params.n}}`");
        return Err(TemplateError { offset, length, reason });
    }
    Ok(path)
}

/// Fills every template inside a value. A text that is one single reference takes the value referred to,
/// with its type; any other text is filled as text.
pub fn fill_value<E: From<TemplateError>>(
    value: &Value,
    lookup: &mut impl FnMut(&[String]) -> Result<Value, E>,
) -> Result<Value, E> {
    Ok(match value {
        Value::Text(text) => {
            let template = Template::parse(text)?;
            match template.sole_reference() {
                Some(path) => lookup(path)?,
                None => Value::Text(template.fill(|path| lookup(path).map(|v| v.to_string()))?),
            }
        }
        Value::List(items) => {
            Value::List(items.iter().map(|item| fill_value(item, lookup)).collect::<Result<_, E>>()?)
        }
        Value::Map(map) => Value::Map(
            map.iter()
                .map(|(key, item)| Ok((key.clone(), fill_value(item, lookup)?)))
                .collect::<Result<_, E>>()?,
        ),
        other => other.clone(),
    })
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(&text.replace("${", "$${"))?,
                Piece::Reference(path) => write!(f, "${{{}}}", path.join("."))?,
            }
        }
        Ok(())
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Template::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
