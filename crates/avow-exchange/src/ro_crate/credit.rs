//! Who made a crate, and under which licence it may be used.

use serde_json::{Value, json};

use super::graph::{Graph, all, to};
use super::words::id;
use crate::citation::{Author, Citation};

/// Describes the authors; their ids in order.
pub(super) fn authors(graph: &mut Graph, citation: &Citation) -> Vec<String> {
    let one = |(position, author): (usize, &Author)| {
        let id = author.orcid.clone().unwrap_or_else(|| format!("#author-{}", position + 1));
        let affiliation = author.affiliation.as_ref().map(|name| {
            let body = self::id("body", name);
            graph.put(&body, "Organization", json!({"name": name}));
            to(&body)
        });
        let kind = if author.is_body() { "Organization" } else { "Person" };
        let properties = json!({
            "name": author.whole_name(), "givenName": author.given_names, "familyName": author.family_names,
            "affiliation": affiliation,
        });
        graph.put(&id, kind, properties);
        id
    };
    citation.authors.iter().enumerate().map(one).collect()
}

/// Describes the licences of the whole. Where nobody has said anything, that is said: a crate must have one.
pub(super) fn licences(graph: &mut Graph, citation: Option<&Citation>) -> Value {
    let named = citation.map(Citation::licences).unwrap_or_default();
    let mut ids: Vec<String> = named.into_iter().map(|named| licence(graph, named)).collect();
    if ids.is_empty() {
        let about = "Nobody has said under which licence this may be used: all rights are reserved.";
        graph.put("#no-licence", "CreativeWork", json!({"name": "No licence", "description": about}));
        ids.push("#no-licence".to_owned());
    }
    all(ids)
}

/// Describes a licence by its SPDX identifier, its address or its words; its id.
pub(super) fn licence(graph: &mut Graph, named: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let id = if named.contains("://") {
        named.to_owned()
    } else if named.chars().all(plain) {
        format!("https://spdx.org/licenses/{named}")
    } else {
        id("licence", named)
    };
    graph.put(&id, "CreativeWork", json!({"name": named}));
    id
}
