//! Where evidence of others has the same bytes as something in a lineage.
//!
//! The same bytes are a fact, computed from digests. What others say made them is their word, and is kept apart from
//! the graph: no edge of a lineage leads into foreign evidence.

use avow_model::digest::BlobDigest;
use avow_store::foreign::{Act, Foreign, Form};
use serde::Serialize;

use super::{Lineage, Thing};

/// Something in a lineage whose bytes somebody else has as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SameBytes {
    /// The node.
    pub node: String,
    /// What was imported.
    pub form: Form,
    /// Its name.
    pub import: String,
    /// What it calls itself.
    pub title: String,
    /// The file's path there.
    pub path: String,
    /// What made the file, by their account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_by: Vec<Act>,
}

impl Lineage {
    /// Notes everything whose bytes somebody else has as well.
    pub fn elsewhere(&mut self, all: &[Foreign]) {
        for (node, digest) in self.nodes.iter().filter_map(|(id, node)| Some((id, content(&node.what)?))) {
            for foreign in all {
                for path in foreign.with(&digest.to_string()) {
                    let wrote = foreign.acts.iter().filter(|act| act.wrote.iter().any(|wrote| wrote == path));
                    self.foreign.push(SameBytes {
                        node: node.clone(),
                        form: foreign.form,
                        import: foreign.name.clone(),
                        title: foreign.title.clone(),
                        path: path.to_owned(),
                        made_by: wrote.cloned().collect(),
                    });
                }
            }
        }
    }
}

fn content(thing: &Thing) -> Option<BlobDigest> {
    match thing {
        Thing::Artifact { artifact } | Thing::File { artifact, .. } => Some(artifact.blob()),
        Thing::Url { digest, .. } => Some(*digest),
        _ => None,
    }
}
