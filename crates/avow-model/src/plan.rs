//! The whole experiment as one symbolic value with a digest.
//!
//! A plan holds the declared stages, axes and claims, never their product: a million cells are three axes.
//! Its digest is over that symbolic form with every outside file already named by its digest, so the plan is
//! what a registration freezes. Stages, axes and claims are sorted by name: the order in which a spec lists
//! them, its comments and its descriptions change nothing.
//!
//! How long a stage may take and how much memory it gets is not part of it: see [`Terms`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::axis::Axis;
use crate::canonical::Record;
use crate::claim::Claim;
use crate::digest::{Artifact, BlobDigest, PlanDigest, TreeDigest};
use crate::expression::Expression;
use crate::op::Kind;
use crate::template::Template;
use crate::value::Value;

/// The symbolic plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment's name.
    pub experiment: String,
    /// Parameters by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Value>,
    /// Axes, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Predicates over a full cell; a cell for which one holds does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Expression>,
    /// Predicates over a full cell; a cell for which one holds is a pilot: it is run, and no claim uses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pilot: Vec<Expression>,
    /// What was looked at before, in the author's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
    /// What registration forms ask for beyond what the plan says, in the author's words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub registration: BTreeMap<String, String>,
    /// Stages, sorted by name.
    pub stages: Vec<Stage>,
    /// Claims, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// A stage as declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its kind; `None` is a plain step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// What it starts.
    pub program: Program,
    /// The axes it depends on, directly or through its inputs, sorted; derived axes are resolved into the
    /// axes they use. Includes `repeat` where the stage repeats or follows one that does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The code it runs, as a folder of project files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<TreeDigest>,
    /// The lock file its environment was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Programs it starts that are not project files, by the word used in the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolchain: BTreeMap<String, BlobDigest>,
    /// What its programs load besides project files: the digest of a [`crate::loads::Loads`] record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<BlobDigest>,
    /// Declared environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Template>,
    /// What it reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Input>,
    /// What it writes, measurement files included.
    pub outputs: BTreeMap<String, Output>,
    /// Which outputs hold measurements, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<MeasurementFile>,
    /// When an earlier attempt may stand for it.
    pub reuse: Reuse,
    /// Whether the axis `repeat` numbers its repetitions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// What a second execution is promised to give.
    pub determinism: Determinism,
    /// The hardware class the result depends on, where the spec says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// The image that its command runs in, where it does not run on the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// What a stage starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// A text for `sh -eu -c`; substituted values are shell-quoted.
    Shell(Template),
    /// A program and its arguments, started as they are.
    Arguments(Vec<Template>),
    /// A built-in operation.
    Op {
        /// Its name.
        name: String,
        /// The digest of everything it is compiled from.
        identity: String,
        /// Its parameters; text in them may hold references.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        with: BTreeMap<String, Value>,
    },
}

/// The environment of a stage by its lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// `uv`, `pip`, `conda`.
    pub manager: String,
    /// The lock file's path in the project.
    pub path: String,
    /// Its content, in the plain form that a lock has whatever comments and order it was written with.
    pub lock: BlobDigest,
    /// Its content as it is written, where that is another. Not part of the plan: see [`Plan::earlier`].
    #[serde(skip)]
    pub as_written: Option<BlobDigest>,
}

/// The image that a stage's command runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it is had from: `name@sha256:…`, `name:tag`, or the path of an OCI layout or archive in the project.
    pub name: String,
    /// What it is: the digest of its manifest, `sha256:…`; of a tag, which pins nothing, the name.
    pub identity: String,
}

/// One input of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Where it comes from.
    pub from: Source,
    /// Where it is found, relative to the working folder.
    pub mount: String,
    /// `for: scoring`: a train stage may read a holdout to score itself; the auditor shows it as asserted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scoring: bool,
    /// The licence of data from outside: an SPDX identifier, an address, or words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

/// Where an input comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A file or folder of the project.
    Path {
        /// Its path in the project.
        path: String,
        /// Its content.
        artifact: Artifact,
    },
    /// An address, with the digest it is expected to have.
    Url {
        /// The address.
        url: String,
        /// The expected content.
        digest: BlobDigest,
    },
    /// What a search has probed so far, for the program that it asks.
    Probes {
        /// The search.
        search: String,
    },
    /// An output of another stage.
    Output {
        /// The stage.
        stage: String,
        /// The output.
        output: String,
        /// Axes fixed to one value.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        at: BTreeMap<String, Value>,
        /// Axes gathered into a folder.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gather: Vec<String>,
    },
}

/// One output of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its path relative to the working folder, without a trailing slash.
    pub path: String,
    /// Whether it is a folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folder: bool,
    /// Whether the stage may leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether its bytes are kept.
    #[serde(default, skip_serializing_if = "Keep::is_content")]
    pub keep: Keep,
    /// Whether it is sealed from train and calibrate stages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holdout: bool,
}

/// What is kept of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Its bytes.
    #[default]
    Content,
    /// Its digest and size only.
    Digest,
}

impl Keep {
    /// Whether the bytes are kept.
    pub fn is_content(&self) -> bool {
        *self == Keep::Content
    }
}

/// How an output holds measurements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementFile {
    /// The output's name.
    pub output: String,
    /// The form of the file.
    pub format: MeasurementFormat,
    /// The names that are read; empty: all there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The record keys each value carries; empty for tidy lines: every other field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Of nested JSON: where each name is found, as a JSON pointer (RFC 6901).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pointers: BTreeMap<String, String>,
}

/// The form of a measurement file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasurementFormat {
    /// One JSON object, names to numbers.
    FlatJson,
    /// One JSON object a line: `{"name": …, "value": …, other keys}`.
    TidyJsonLines,
    /// One JSON value; numbers are found by pointers.
    NestedJson,
    /// A table with a column per measurement: comma-separated, or by tabs where the file ends in `.tsv`.
    WideTable,
    /// A table with the columns `name` and `value`; the others are record keys.
    TidyTable,
}

/// When an earlier attempt may stand for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Whenever the action is the same.
    Always,
    /// Only on the host that made it.
    SameHost,
    /// Never: a number that must be measured again.
    Never,
}

/// What a second execution is promised to give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Determinism {
    /// The same bytes.
    Bytes,
    /// The same numbers, nearly.
    Tolerance(crate::claim::Tolerance),
    /// The same distribution.
    Distribution,
    /// Nothing: a person, an online service, an instrument.
    Unrepeatable,
}

/// What a stage gets and how long it may take. Not part of any digest: how fast, not what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// CPU slots; 1 where nothing is said.
    pub cpus: u32,
    /// Memory limit in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Limit of what it may have on disk in its working folder, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// GPUs; reserved, not assigned.
    #[serde(default)]
    pub gpus: u32,
    /// Wall time limit in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// How often a failure is tried again within one run.
    #[serde(default)]
    pub retries: u32,
    /// A folder of the working folder that is kept from an attempt to the next one of the same action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Secrets that it gets as environment variables: names only, sorted. The values are the executor's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Where the image is had from that the action names: see [`Image::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// What makes a value of the right shape no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Names that are not sorted, or not distinct.
    #[error("the {0} are not sorted by distinct names")]
    Unsorted(&'static str),
    /// A stage whose scope names something that is no axis with values of its own.
    #[error("the stage `{stage}` depends on `{axis}`, which is no axis with cells")]
    Scope {
        /// The stage.
        stage: String,
        /// What its scope names.
        axis: String,
    },
}

impl Plan {
    /// Checks what every function on plans relies on, for a plan that came from elsewhere: stages, axes and
    /// claims are sorted by distinct names, and scopes are sorted names of axes that are not derived.
    pub fn check(&self) -> Result<(), PlanError> {
        fn rising<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
            let mut last = names.next();
            names.all(|name| last.replace(name).is_some_and(|before| before < name))
        }
        let sorted = |what, is: bool| if is { Ok(()) } else { Err(PlanError::Unsorted(what)) };
        sorted("axes", rising(self.axes.iter().map(|axis| &axis.name)))?;
        sorted("stages", rising(self.stages.iter().map(|stage| &stage.name)))?;
        sorted("claims", rising(self.claims.iter().map(|claim| &claim.name)))?;
        for stage in &self.stages {
            sorted("axes of a scope", rising(stage.scope.iter()))?;
            if let Some(axis) = stage.scope.iter().find(|name| self.axis(name).is_none_or(Axis::is_derived)) {
                return Err(PlanError::Scope { stage: stage.name.clone(), axis: axis.clone() });
            }
        }
        Ok(())
    }

    /// Whether a cell is a pilot. A predicate about axes that the cell does not have says nothing of it.
    pub fn is_pilot(&self, cell: &crate::expand::Cell<'_>) -> bool {
        self.pilot.iter().any(|predicate| predicate.truth(&|name| cell.lookup(name)) == Ok(true))
    }

    /// The names of this plan under earlier encodings, latest first; nothing where all of them named it as now.
    pub fn earlier(&self) -> Vec<PlanDigest> {
        let mut names = Vec::new();
        let mut plain = self.clone();
        let locks = plain.stages.iter_mut().filter_map(|stage| stage.environment.as_mut());
        let mut changed = false;
        for lock in locks {
            changed |= lock.as_written.is_some_and(|written| written != lock.lock);
            lock.lock = lock.as_written.unwrap_or(lock.lock);
        }
        if changed {
            names.push(plain.digest());
        }
        if plain.stages.iter().any(|stage| stage.loads.is_some()) {
            plain.stages.iter_mut().for_each(|stage| stage.loads = None);
            names.push(plain.digest());
        }
        names
    }

    /// The lock files as they are written, by stage, as far as they are not in their plain form.
    pub fn locks_as_written(&self) -> BTreeMap<String, BlobDigest> {
        let written = |stage: &Stage| Some((stage.name.clone(), stage.environment.as_ref()?.as_written?));
        self.stages.iter().filter_map(written).collect()
    }

    /// Gives a plan that was read from its record what [`Plan::locks_as_written`] told of it.
    pub fn set_locks_as_written(&mut self, written: &BTreeMap<String, BlobDigest>) {
        for stage in &mut self.stages {
            if let Some(environment) = &mut stage.environment {
                environment.as_written = written.get(&stage.name).copied();
            }
        }
    }

    /// Whether a digest that was written down names this plan, under this encoding or an earlier one. An earlier
    /// encoding froze less, and what it froze is the same.
    pub fn is_named(&self, digest: PlanDigest) -> bool {
        self.digest() == digest || self.earlier().contains(&digest)
    }

    /// The axis with this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.binary_search_by(|axis| axis.name.as_str().cmp(name)).ok().map(|i| &self.axes[i])
    }

    /// The stage with this name.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stage_index(name).map(|i| &self.stages[i])
    }

    /// The position of the stage with this name.
    pub fn stage_index(&self, name: &str) -> Option<usize> {
        self.stages.binary_search_by(|stage| stage.name.as_str().cmp(name)).ok()
    }

    /// The claim with this name.
    pub fn claim(&self, name: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.name == name)
    }
}

impl Stage {
    /// The stages it reads from, with the input's name.
    pub fn producers(&self) -> impl Iterator<Item = (&str, &Input, &str)> {
        self.inputs.iter().filter_map(|(name, input)| match &input.from {
            Source::Output { stage, .. } => Some((name.as_str(), input, stage.as_str())),
            _ => None,
        })
    }
}
