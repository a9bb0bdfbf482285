//! Entities by id, and the rule that each names only what is described.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Edition;
use crate::error::ExchangeError;

/// The entities of a crate, in the order in which they were described.
#[derive(Debug, Default)]
pub(super) struct Graph {
    entities: Map<String, Value>,
    /// What entities are examples of: the parameters that they were a value of.
    examples: BTreeMap<String, BTreeSet<String>>,
}

/// A reference to an entity.
pub(super) fn to(id: &str) -> Value {
    json!({"@id": id})
}

/// References to entities, each once, in this order; a single one stands by itself.
pub(super) fn all(ids: impl IntoIterator<Item = String>) -> Value {
    let mut seen = BTreeSet::new();
    let mut all: Vec<Value> =
        ids.into_iter().filter(|id| seen.insert(id.clone())).map(|id| to(&id)).collect();
    if all.len() == 1 { all.remove(0) } else { Value::Array(all) }
}

impl Graph {
    /// Describes an entity, unless it is described already.
    pub fn put(&mut self, id: &str, kind: impl Into<Value>, properties: Value) {
        if self.entities.contains_key(id) {
            return;
        }
        let mut entity = Map::from_iter([("@id".to_owned(), id.into()), ("@type".to_owned(), kind.into())]);
        if let Value::Object(properties) = properties {
            let said = |value: &Value| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                _ => true,
            };
            entity.extend(properties.into_iter().filter(|(_, value)| said(value)));
        }
        self.entities.insert(id.to_owned(), entity.into());
    }

    /// Says something more of an entity that is described.
    pub fn say(&mut self, id: &str, key: &str, value: Value) {
        if let Some(Value::Object(entity)) = self.entities.get_mut(id) {
            entity.insert(key.to_owned(), value);
        }
    }

    /// Says that an entity was a value of a parameter.
    pub fn example(&mut self, id: &str, parameter: &str) {
        self.examples.entry(id.to_owned()).or_default().insert(parameter.to_owned());
    }

    /// How many entities there are.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Everything that is described.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entities.keys().map(String::as_str)
    }

    /// Whether something is described.
    pub fn has(&self, id: &str) -> bool {
        self.entities.contains_key(id)
    }

    /// Every id that is named is described, or an address of its own.
    pub fn check(&mut self) -> Result<(), ExchangeError> {
        for (id, parameters) in std::mem::take(&mut self.examples) {
            self.say(&id, "exampleOfWork", all(parameters));
        }
        let mut named = Vec::new();
        for (id, entity) in &self.entities {
            let Value::Object(entity) = entity else { continue };
            entity.values().for_each(|value| references(value, id, &mut named));
        }
        let missing = named.into_iter().find(|(_, to)| !to.contains("://") && !self.has(to));
        match missing {
            Some((from, to)) => Err(ExchangeError::Dangling { from: from.to_owned(), to: to.to_owned() }),
            None => Ok(()),
        }
    }

    /// The document, with its contexts.
    pub fn document(&self, edition: Edition) -> String {
        let base = match edition {
            Edition::Half => "https://w3id.org/ro/crate/1.1/context",
            Edition::Six => "https://w3id.org/ro/crate/1.3/context",
        };
        let entities: Vec<&Value> = self.entities.values().collect();
        let document = json!({
            "@context": [base, "https://w3id.org/ro/terms/workflow-run/context"],
            "@graph": entities,
        });
        format!("{document:#}\n")
    }
}

fn references<'v>(value: &'v Value, from: &'v str, named: &mut Vec<(&'v str, &'v str)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, from, named)),
        Value::Object(map) => {
            if let Some(Value::String(id)) = map.get("@id") {
                named.push((from, id));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_and_not_described_is_found() {
        let mut graph = Graph::default();
        graph.put(
            "#a",
            "Thing",
            json!({"object": [to("#b"), to("https://example.org/")], "name": Value::Null}),
        );
        let found = graph.check();
        assert!(matches!(found, Err(ExchangeError::Dangling { from, to }) if from == "#a" && to == "#b"));
        graph.put("#b", "Thing", json!({}));
        graph.example("#b", "#c");
        assert!(graph.check().is_err());
        graph.put("#c", "Thing", json!({}));
        graph.check().expect("everything is described");
        assert!(!graph.document(Edition::Half).contains("null"));
    }
}
