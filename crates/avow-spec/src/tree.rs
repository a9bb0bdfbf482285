//! The located tree: a YAML document with the place of every key and value.
//!
//! The tree is what a spec *says*, before anyone asks what it means: scalars keep their text, mappings keep
//! their order, both places of a duplicate key are known. It is built from parser events in `build`, within
//! fixed bounds on file size, nesting and the expansion of aliases, so that walking it is always cheap and
//! never deep. An alias shares its anchor's node.

mod build;
mod place;

use std::ops::Range;
use std::sync::Arc;

use avow_model::value::Value;

use crate::scalar::{Meaning, meaning};

pub(crate) use build::build;

/// One node with its place in bytes of the text.
#[derive(Debug)]
pub struct Node {
    /// Where it stands (an alias: where its anchor stands).
    pub span: Range<usize>,
    /// What it is.
    pub what: What,
    /// Levels below and including this one.
    height: usize,
    /// Nodes below and including this one, with aliases counted out in full.
    weight: usize,
}

/// What a node is.
#[derive(Debug)]
pub enum What {
    /// One word, number or text.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Arc<Node>>),
    /// A mapping in written order, without duplicates.
    Map(Vec<Entry>),
}

/// A scalar as written.
#[derive(Debug)]
pub struct Scalar {
    /// Its text after YAML's own unquoting and folding.
    pub text: String,
    /// Whether it is plain, so that it may mean a number, a truth or nothing.
    pub plain: bool,
    /// Whether it is a literal block (`|`), whose lines stand in the source as they are.
    pub literal: bool,
}

/// A key with its value.
#[derive(Debug)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub at: Range<usize>,
    /// Whether the key is plain, so that it may mean `null` or `true`.
    pub plain: bool,
    /// The value.
    pub value: Arc<Node>,
}

impl Entry {
    /// Whether the key reads as a value of YAML's own (`null`, `true`) rather than as a name.
    pub fn is_value(&self) -> bool {
        self.plain && matches!(meaning(&self.key), Meaning::Null | Meaning::Bool(_))
    }
}

impl Node {
    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.what {
            What::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The entry under a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value under a key; a value that is nothing (`key:`) counts as absent.
    pub fn get(&self, key: &str) -> Option<&Arc<Node>> {
        self.entry(key).map(|entry| &entry.value).filter(|node| node.meaning() != Some(Meaning::Null))
    }

    /// The items of a sequence; `None` for anything else.
    pub fn items(&self) -> Option<&[Arc<Node>]> {
        match &self.what {
            What::List(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a sequence, or the node itself as the only one.
    pub fn one_or_more(self: &Arc<Self>) -> &[Arc<Node>] {
        self.items().unwrap_or(std::slice::from_ref(self))
    }

    /// Whether it is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.what, What::Map(_))
    }

    /// The scalar.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.what {
            What::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// What a scalar means; quoted ones mean their text.
    pub fn meaning(&self) -> Option<Meaning> {
        let scalar = self.scalar()?;
        Some(if scalar.plain { meaning(&scalar.text) } else { Meaning::Text })
    }

    /// The text of a scalar that means text.
    pub fn text(&self) -> Option<&str> {
        (self.meaning()? == Meaning::Text).then(|| self.scalar().map(|s| s.text.as_str())).flatten()
    }

    /// The number a scalar means.
    pub fn number(&self) -> Option<f64> {
        match self.meaning()? {
            Meaning::Int(i) => Some(i as f64),
            Meaning::Float(x) => Some(x),
            _ => None,
        }
    }

    /// The integer a scalar means.
    pub fn integer(&self) -> Option<i64> {
        match self.meaning()? {
            Meaning::Int(i) => Some(i),
            _ => None,
        }
    }

    /// The value it is, whatever its depth; `None` where a part of it is nothing or no finite number.
    pub fn value(&self) -> Option<Value> {
        match &self.what {
            What::Scalar(scalar) => match self.meaning()? {
                Meaning::Bool(truth) => Some(Value::Bool(truth)),
                Meaning::Int(i) => Some(Value::Int(i)),
                Meaning::Float(x) => Value::float(x),
                Meaning::Text => Some(Value::Text(scalar.text.clone())),
                Meaning::Null | Meaning::Huge | Meaning::NotFinite => None,
            },
            What::List(items) => {
                items.iter().map(|item| item.value()).collect::<Option<_>>().map(Value::List)
            }
            What::Map(entries) => {
                let pairs = entries.iter().map(|e| Some((e.key.clone(), e.value.value()?)));
                pairs.collect::<Option<_>>().map(Value::Map)
            }
        }
    }

    /// A word for what it is, for messages.
    pub fn kind(&self) -> &'static str {
        match (&self.what, self.meaning()) {
            (What::List(_), _) => "a list",
            (What::Map(_), _) => "a mapping",
            (_, Some(Meaning::Null)) => "nothing",
            (_, Some(Meaning::Bool(_))) => "true or false",
            (_, Some(Meaning::Int(_))) => "an integer",
            (_, Some(Meaning::Huge)) => "an integer of more than 64 bits",
            (_, Some(Meaning::Float(_))) => "a number",
            (_, Some(Meaning::NotFinite)) => "no finite number",
            _ => "text",
        }
    }

    /// The place in the source of `length` bytes at `offset` of a scalar's text: exact where the text stands
    /// in the source as it is, else the first occurrence, else the whole scalar.
    pub fn place(&self, source: &str, offset: usize, length: usize) -> Range<usize> {
        self.scalar().map_or(self.span.clone(), |scalar| {
            place::place(source, &self.span, scalar, offset..offset + length)
        })
    }
}
