//! The document of a crate: entities by id, as flattened JSON-LD has them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::ForeignError;

/// Nesting that no document of a crate has.
const DEPTH: usize = 64;

/// Entities by id.
#[derive(Debug)]
pub(super) struct Document(BTreeMap<String, Map<String, Value>>);

impl Document {
    /// Reads the bytes; an id that is described twice is refused.
    pub fn read(bytes: &[u8], most: u64) -> Result<Document, ForeignError> {
        let wrong = |reason: &str| ForeignError::Metadata(reason.to_owned());
        let whole: Value = serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()))?;
        if depth(&whole) > DEPTH {
            return Err(wrong("it is nested too deep"));
        }
        let Value::Object(mut whole) = whole else { return Err(wrong("it is no object")) };
        let Some(Value::Array(graph)) = whole.remove("@graph") else {
            return Err(wrong("it has no `@graph`"));
        };
        if graph.len() as u64 > most {
            return Err(ForeignError::Limit { what: "entities", found: graph.len() as u64, limit: most });
        }
        let mut entities = BTreeMap::new();
        for entity in graph {
            let Value::Object(entity) = entity else { return Err(wrong("an entity is no object")) };
            let Some(Value::String(id)) = entity.get("@id") else { return Err(wrong("an entity has no id")) };
            let id = id.clone();
            if entities.insert(id.clone(), entity).is_some() {
                let reason = "it is described twice".to_owned();
                return Err(ForeignError::Entity { id, reason });
            }
        }
        Ok(Document(entities))
    }

    /// An entity.
    pub fn get(&self, id: &str) -> Option<&Map<String, Value>> {
        self.0.get(id)
    }

    /// All entities of a type.
    pub fn of_type<'d>(&'d self, kind: &'d str) -> impl Iterator<Item = (&'d str, &'d Map<String, Value>)> {
        self.0.iter().filter(move |(_, entity)| is(entity, kind)).map(|(id, entity)| (id.as_str(), entity))
    }

    /// What an entity is called, for a person: its name, else its id.
    pub fn called(&self, id: &str) -> String {
        let name = self.get(id).and_then(|entity| text(entity, "name"));
        name.unwrap_or(id).to_owned()
    }
}

fn depth(value: &Value) -> usize {
    // The parser itself goes no deeper than 128, so neither does this.
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whether an entity has a type.
pub(super) fn is(entity: &Map<String, Value>, kind: &str) -> bool {
    match entity.get("@type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(all)) => all.iter().any(|one| one == kind),
        _ => false,
    }
}

/// A property that is a text.
pub(super) fn text<'e>(entity: &'e Map<String, Value>, key: &str) -> Option<&'e str> {
    entity.get(key).and_then(Value::as_str)
}

/// The ids that a property names.
pub(super) fn ids<'e>(entity: &'e Map<String, Value>, key: &str) -> Vec<&'e str> {
    let one = |value: &'e Value| value.get("@id").and_then(Value::as_str);
    match entity.get(key) {
        Some(Value::Array(items)) => items.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}
