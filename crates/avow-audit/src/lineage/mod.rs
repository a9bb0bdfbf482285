//! Everything that a number, an artifact or a claim rests on.
//!
//! The walk goes from the number to the member that wrote it, to the attempt that stands for it, to its action,
//! and from there to inputs, code, programs, environment and operation; an input made by another stage leads to
//! that stage's member, and so on down to files. The result is a graph whose nodes have names, so that what is
//! shared appears once. Absent: layout, and any claim beyond what the records say.

mod address;
mod build;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::attempt::Timestamp;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::value::Value;
use serde::Serialize;

pub use address::{Address, AddressError};
pub use build::lineage;

use crate::finding::Finding;
use crate::measure::table;

/// The graph of what some things rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lineage {
    /// The nodes asked for, in planned order.
    pub roots: Vec<String>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// Records that the walk needed and that are damaged or gone.
    pub findings: BTreeSet<Finding>,
}

/// One thing, with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// What it is.
    #[serde(flatten)]
    pub what: Thing,
    /// What it rests on, in a fixed order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Edge>,
}

/// A relation to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The code of the relation: `written-by`, `stands`, `attempted`, `input`, `code`, `program`, `environment`,
    /// `operation`, `made-by`, `from`, `file`, `selects`, `diverged`, `wrote`.
    pub relation: &'static str,
    /// Which one, where a node has several of the relation: a mount path, a word, a path in a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The other node's name.
    pub to: String,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "node")]
pub enum Thing {
    /// A claim.
    Claim {
        /// Its name.
        name: String,
    },
    /// A measurement.
    Number {
        /// The stage and name.
        name: String,
        /// The number.
        #[serde(serialize_with = "table::number")]
        value: f64,
        /// Its record keys.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        keys: BTreeMap<String, Value>,
        /// Its line in the file.
        line: usize,
    },
    /// A member.
    Member {
        /// Its label.
        label: String,
        /// The code of its fate.
        fate: &'static str,
    },
    /// An attempt.
    Attempt {
        /// Its digest.
        digest: String,
        /// How it ended, in one word.
        outcome: &'static str,
        /// When it started.
        started: Timestamp,
        /// Host name.
        host: String,
        /// How it was confined.
        confinement: String,
        /// Wall time in microseconds.
        wall: u64,
        /// Whether it was started under the registration.
        under_registration: Option<bool>,
        /// Whether it was made only to be compared with the one that stands.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        verification: bool,
        /// The attempts whose checkpoint it went on from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        continues: Vec<String>,
    },
    /// An action.
    Action {
        /// Its digest.
        digest: String,
        /// The command in one line.
        command: String,
        /// Declared environment variables.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// A file or folder by its content.
    Artifact {
        /// Its digest.
        artifact: Artifact,
    },
    /// A file or folder of the project.
    File {
        /// Its path in the project.
        path: String,
        /// Its content.
        artifact: Artifact,
    },
    /// Something fetched from an address.
    Url {
        /// The address.
        url: String,
        /// Its content.
        digest: BlobDigest,
    },
    /// A code folder.
    Code {
        /// Its digest.
        tree: Artifact,
    },
    /// A program that is no project file.
    Program {
        /// The word in the command.
        word: String,
        /// Its identity.
        digest: BlobDigest,
    },
    /// A lock file.
    Environment {
        /// `uv`, `pip`, `conda`.
        manager: String,
        /// Its path.
        path: String,
        /// Its content.
        lock: BlobDigest,
    },
    /// A built-in operation.
    Operation {
        /// Its name.
        name: String,
        /// The digest of everything it is compiled from.
        identity: String,
    },
}

/// One line of the walk, for printing.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    /// How deep, from 0.
    pub depth: usize,
    /// The relation to the node above; none for a root.
    pub edge: Option<&'a Edge>,
    /// The node's name.
    pub id: &'a str,
    /// The node.
    pub node: &'a Node,
    /// Whether it was printed before, in which case nothing below it follows.
    pub repeated: bool,
}

impl Lineage {
    /// Drops nodes that nothing asked for: files that were looked at and are not what was meant.
    fn prune(&mut self) {
        let reached: BTreeSet<String> = self.steps().into_iter().map(|step| step.id.to_owned()).collect();
        self.nodes.retain(|id, _| reached.contains(id));
    }

    /// The graph as a tree, depth first; what is shared is written out where it comes first.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<(usize, Option<&Edge>, &str)> =
            self.roots.iter().rev().map(|id| (0, None, id.as_str())).collect();
        while let Some((depth, edge, id)) = open.pop() {
            let Some(node) = self.nodes.get(id) else { continue };
            let repeated = !seen.insert(id);
            steps.push(Step { depth, edge, id, node, repeated });
            if !repeated {
                open.extend(node.on.iter().rev().map(|edge| (depth + 1, Some(edge), edge.to.as_str())));
            }
        }
        steps
    }
}
