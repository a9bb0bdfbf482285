//! A JSON Schema (2020-12) of the language, for editors, from the key tables.
//!
//! It is a help, not the checker: names, units and references are beyond it. Keys that a later version brings
//! are left out, so that an editor underlines them.

use avow_model::op::{OpSignature, ParameterType};
use avow_model::value::Value;
use serde_json::{Map, Value as Json, json};

use crate::document::tables;
use crate::keys::{EXPERIMENT, Form, Key, Shape, Since, Table};

/// The schema; with signatures it knows the operations and their parameters as well.
pub fn schema(ops: &[OpSignature]) -> Json {
    let mut definitions = Map::new();
    for table in tables() {
        definitions.insert(anchor(table), object(table));
    }
    if !ops.is_empty()
        && let Some(stage) = definitions.get_mut("stage")
    {
        operations(stage, ops);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Avow experiment",
        "description": EXPERIMENT.about,
        "$ref": reference(&EXPERIMENT),
        "$defs": definitions,
    })
}

fn anchor(table: &Table) -> String {
    table.name.replace(": ", "-").replace(' ', "-")
}

fn reference(table: &Table) -> String {
    format!("#/$defs/{}", anchor(table))
}

fn object(table: &Table) -> Json {
    let now = || table.all().filter(|key| key.since == Since::Now);
    let properties: Map<String, Json> = now().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = now().filter(|key| key.required).map(|key| key.name).collect();
    let mut object = json!({
        "type": "object",
        "description": table.about,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn property(key: &Key) -> Json {
    let mut schema = shape(&key.shape);
    let default = if key.default.is_empty() { String::new() } else { format!(" Left out: {}.", key.default) };
    let text = format!("{}.{default}", key.help);
    match schema.get("$ref") {
        // A description beside a reference is allowed since 2019-09.
        Some(_) => schema["description"] = json!(text),
        None => schema["description"] = json!(text),
    }
    schema
}

fn shape(shape: &Shape) -> Json {
    let scalar = || json!({ "type": ["number", "boolean", "string"] });
    match shape {
        Shape::Text | Shape::Selector | Shape::Path | Shape::Formula => {
            json!({ "type": "string", "minLength": 1 })
        }
        Shape::Printable | Shape::Scalar => scalar(),
        Shape::Name => json!({ "type": "string", "pattern": crate::keys::Names::Thing.pattern() }),
        Shape::Dimension => json!({ "type": "string", "pattern": crate::keys::Names::Dimension.pattern() }),
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Int(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Quantity => json!({ "type": ["number", "string"] }),
        Shape::Share => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": "^[0-9.]+ ?%$" },
        ] }),
        Shape::Size => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9.]+ ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$" },
        ] }),
        Shape::Duration => json!({ "type": "string", "pattern": "^([0-9.]+ ?(ms|s|m|min|h|d) ?)+$" }),
        Shape::Digest => json!({ "type": "string", "pattern": "^((blake3|blob):)?[0-9a-f]{64}$" }),
        Shape::Exactly(i) => json!({ "const": i }),
        Shape::Value => json!({}),
        Shape::Word(known) => {
            let now = known.iter().filter(|w| w.since == Since::Now).map(|w| w.word);
            json!({ "enum": now.collect::<Vec<_>>() })
        }
        Shape::List(item) => json!({ "type": "array", "items": self::shape(item) }),
        Shape::Items(item, low, high) => {
            let mut list = json!({ "type": "array", "items": self::shape(item), "minItems": low });
            if *high < usize::MAX {
                list["maxItems"] = json!(high);
            }
            list
        }
        Shape::Map(table) => json!({ "$ref": reference(table) }),
        Shape::Again(table) => json!({ "$ref": reference(table()) }),
        Shape::Named(names, item) => json!({
            "type": "object",
            "propertyNames": { "pattern": names.pattern() },
            "additionalProperties": self::shape(item),
        }),
        Shape::Forms(forms, other) => {
            let mut any: Vec<Json> = references(forms);
            if matches!(other, Shape::Named(..)) {
                any.push(self::shape(other));
            }
            json!({ "anyOf": any })
        }
        Shape::Tagged(forms) => {
            let now = || forms.iter().filter(|form| form.since == Since::Now);
            let branches: Vec<Json> = now()
                .map(|form| {
                    json!({
                        "if": { "properties": { "kind": { "const": form.word } } },
                        "then": { "$ref": reference(form.table) },
                    })
                })
                .collect();
            let words: Vec<&str> = now().map(|form| form.word).collect();
            json!({
                "type": "object",
                "required": ["kind"],
                "properties": { "kind": { "enum": words } },
                "allOf": branches,
            })
        }
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(self::shape).collect::<Vec<_>>() }),
    }
}

fn references(forms: &[Form]) -> Vec<Json> {
    let now = forms.iter().filter(|form| form.since == Since::Now);
    now.map(|form| json!({ "$ref": reference(form.table) })).collect()
}

/// `uses` lists the operations, and each brings its parameters under `with`.
fn operations(stage: &mut Json, ops: &[OpSignature]) {
    let names: Vec<&str> = ops.iter().map(|op| op.name).collect();
    stage["properties"]["uses"]["enum"] = json!(names);
    let branches: Vec<Json> = ops
        .iter()
        .map(|op| {
            let properties: Map<String, Json> =
                op.parameters.iter().map(|p| (p.name.to_owned(), parameter(p))).collect();
            json!({
                "if": { "properties": { "uses": { "const": op.name } }, "required": ["uses"] },
                "then": { "properties": { "with": {
                    "type": "object",
                    "description": op.about,
                    "properties": properties,
                    "additionalProperties": false,
                } } },
            })
        })
        .collect();
    stage["allOf"] = json!(branches);
}

fn parameter(parameter: &avow_model::op::Parameter) -> Json {
    let direct = match &parameter.accepts {
        ParameterType::Int { low, high } => json!({ "type": "integer", "minimum": low, "maximum": high }),
        ParameterType::Number { low, high } => json!({ "type": "number", "minimum": low, "maximum": high }),
        ParameterType::Bool => json!({ "type": "boolean" }),
        ParameterType::Choice(words) => json!({ "enum": words }),
        ParameterType::Ints { low, high } => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": low, "maximum": high } })
        }
        ParameterType::Seed => json!({ "type": "integer", "minimum": 0, "maximum": 0x7fff_ffff }),
    };
    let mut schema = json!({
        "description": parameter.about,
        "anyOf": [direct, { "type": "string", "pattern": r"\$\{.*\}" }],
    });
    if let Some(default) = &parameter.default {
        schema["default"] = plain(default);
    }
    schema
}

fn plain(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or(Json::Null)
}
