//! Everything that a number, an artifact or a claim rests on.
//!
//! The walk goes from the number to the member that wrote it, to the attempt that stands for it, to its action,
//! and from there to inputs, code, programs, environment and operation; an input made by another stage leads to
//! that stage's member, and so on down to files. The result is a graph whose nodes have names, so that what is
//! shared appears once. Absent: layout, and any claim beyond what the records say.

mod address;
mod build;
mod difference;
mod elsewhere;
mod folded;
mod standing;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::attempt::Timestamp;
use avow_model::digest::{Artifact, AttemptDigest, BlobDigest, PlanDigest, RegistrationDigest};
use avow_model::journal::Event;
use avow_model::value::Value;
use serde::Serialize;

pub use address::{Address, AddressError};
pub use build::lineage;
pub use difference::{AxisChange, Circumstance, Difference, Side, WorkChange, difference};
pub use elsewhere::SameBytes;
pub use folded::{Folded, Rest};
pub use standing::{Reason, Why, why_not_registered};

use crate::deviation::{self, Deviation};
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::integrity::RunJournal;
use crate::measure::table;

/// The graph of what some things rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lineage {
    /// The nodes asked for, in planned order.
    pub roots: Vec<String>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// The deviations that concern any of it, with their numbers in the verdicts' list, from 1; nothing until
    /// [`Lineage::deviating`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Numbered>,
    /// Where evidence of others has the same bytes; nothing until [`Lineage::elsewhere`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<SameBytes>,
    /// Records that the walk needed and that are damaged or gone.
    pub findings: BTreeSet<Finding>,
}

/// A deviation and its number in the list to which verdicts refer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numbered {
    /// From 1.
    pub number: usize,
    /// What it says.
    #[serde(flatten)]
    pub deviation: Deviation,
}

/// A run in which an attempt made before stood for a member again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reuse {
    /// The run.
    pub run: String,
    /// Its experiment.
    pub experiment: String,
    /// The member that it stood for there.
    pub member: String,
    /// When, by the clock of that run.
    pub at: Timestamp,
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
    /// The code of the relation: `written-by`, `stands`, `attempted`, `input`, `code`, `program`, `environment`, `image`,
    /// `operation`, `made-by`, `from`, `file`, `selects`, `diverged`, `wrote`, `ran-on`, `under`, `older-than`, `in`.
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
        /// The member that wrote it, by label.
        member: String,
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
        /// The run that made it.
        run: String,
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
        /// The later runs in which it stood without being made again; nothing until [`Lineage::reused`].
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reused: Vec<Reuse>,
    },
    /// A machine as it was when an attempt ran there.
    Machine(Machine),
    /// The registration in force.
    Registration {
        /// Its ledger line.
        entry: RegistrationDigest,
        /// `register` or `amend`.
        kind: String,
        /// The plan that it froze.
        plan: PlanDigest,
        /// Whether that is the plan of this lineage.
        judged: bool,
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
    /// The image that a command runs in.
    Image {
        /// Where it is had from.
        name: String,
        /// The digest of its manifest; the name of one that nothing pins.
        identity: String,
    },
    /// A built-in operation.
    Operation {
        /// Its name.
        name: String,
        /// The digest of everything it is compiled from.
        identity: String,
    },
}

/// What is recorded of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Host name.
    pub name: String,
    /// Operating system and kernel.
    pub system: String,
    /// Processor model.
    pub cpu: String,
    /// Interpreters by the word that commands use: version, and how many packages were installed for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interpreters: BTreeMap<String, (String, usize)>,
    /// GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// Where the lock file and what was installed disagreed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<String>,
    /// The record of everything that was present, a blob.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<BlobDigest>,
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

    /// Notes in which later runs its attempts stood again. Lists of hits that journals cite must be resolved before
    /// ([`avow_model::journal::resolve`]).
    pub fn reused(&mut self, journals: &[RunJournal]) {
        let mut runs: Vec<&RunJournal> = journals.iter().collect();
        runs.sort_by_key(|run| run.journal.lines.first().map(|line| line.at));
        for journal in runs {
            let Some(Event::Opened(opened)) = journal.journal.lines.first().map(|line| &line.event) else {
                continue;
            };
            for line in &journal.journal.lines {
                let Event::Reused { hits, .. } = &line.event else { continue };
                for hit in hits {
                    let node = self.nodes.get_mut(&attempt_id(hit.attempt));
                    if let Some(Node { what: Thing::Attempt { reused, .. }, .. }) = node {
                        let (run, experiment) = (journal.run.clone(), opened.experiment.clone());
                        reused.push(Reuse { run, experiment, member: hit.member.clone(), at: line.at });
                    }
                }
            }
        }
    }

    /// Notes which deviations of a plan concern it: those of its claims, of the stages it rests on, and of the plan as
    /// a whole.
    pub fn deviating(&mut self, evidence: &Evidence<'_>, all: Vec<Deviation>) {
        let stages: BTreeSet<&str> = self.nodes.values().filter_map(|node| node.what.stage()).collect();
        let claims: Vec<_> = self
            .nodes
            .values()
            .filter_map(|node| match &node.what {
                Thing::Claim { name } => evidence.plan.claim(name),
                _ => None,
            })
            .collect();
        let concerns = |deviation: &Deviation| match claims.as_slice() {
            [] => deviation::touches(deviation, &stages),
            claims => claims.iter().any(|claim| deviation.concerns(evidence.plan, claim)),
        };
        let numbered = (1..).zip(all).map(|(number, deviation)| Numbered { number, deviation });
        self.deviations = numbered.filter(|one| concerns(&one.deviation)).collect();
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

fn attempt_id(attempt: AttemptDigest) -> String {
    format!("attempt:{attempt}")
}

impl Thing {
    /// The stage of a member.
    fn stage(&self) -> Option<&str> {
        match self {
            Thing::Member { label, .. } => label.split('[').next(),
            _ => None,
        }
    }
}
