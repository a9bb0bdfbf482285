//! What happened when an action was executed once.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::{ActionDigest, Artifact, BlobDigest, ReadsDigest, RegistrationDigest};
use crate::plan::Terms;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Timestamp = i64;

/// The name of an attempt before its record exists: 32 hexadecimal digits, drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(pub String);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One execution of an action, successful or not, with its provenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its name in the journal.
    pub id: AttemptId,
    /// The action.
    pub action: ActionDigest,
    /// The run that made it.
    pub run: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it wrote, by output name; complete where it succeeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Produced>,
    /// Standard output, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<BlobDigest>,
    /// Standard error, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<BlobDigest>,
    /// What it was seen to read beyond its inputs, where it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadsDigest>,
    /// When it was started.
    pub started: Timestamp,
    /// When it ended.
    pub finished: Timestamp,
    /// What it used.
    pub usage: Usage,
    /// Where it ran.
    pub host: Host,
    /// What was really present there: the digest of a [`crate::present::Present`] record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BlobDigest>,
    /// The encoding that named its action.
    #[serde(default = "first_encoding", skip_serializing_if = "is_first_encoding")]
    pub encoding: u32,
    /// Under which terms.
    pub terms: Terms,
    /// The ledger's heads when it was started, sorted; empty without a registration. Of an attempt that went on
    /// from a checkpoint: when the first of those that it continues was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger_heads: Vec<RegistrationDigest>,
    /// Which attempt at its member within this run it was, from 1.
    pub number: u32,
    /// The attempts of the same action whose checkpoint it went on from, oldest first; empty where it began
    /// from nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<AttemptId>,
    /// Whether it was made only to be compared with an earlier success of the same action. It never stands for a
    /// member, and is no trying again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verification: bool,
}

fn first_encoding() -> u32 {
    1
}

fn is_first_encoding(encoding: &u32) -> bool {
    *encoding == 1
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All declared outputs exist and are stored.
    Succeeded,
    /// The program or the machine failed.
    Failed(Failure),
    /// It exceeded its declared time and was ended.
    TimedOut,
    /// It exceeded its memory, provably.
    OutOfMemory,
    /// It exited with 0 without these outputs.
    MissingOutput(Vec<String>),
    /// It was stopped on request.
    Cancelled,
    /// Nobody knows how it ended: its runner died.
    Lost,
}

/// A failure, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The program exited with this code.
    Exit(i32),
    /// The program was ended by this signal, not by us.
    Signal(i32),
    /// The program filled its declared disk space.
    Disk,
    /// The program wrote an output that cannot be stored (a folder where a file was declared, a link that
    /// escapes, a special file).
    BadOutput(String),
    /// The program could not be started.
    Start(String),
    /// The machine failed: disk full, too many open files, permission of our own folders.
    Machine(String),
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blame {
    /// The user's program.
    Program,
    /// The machine.
    Machine,
    /// The person who stopped it.
    Person,
}

impl Outcome {
    /// Whether it succeeded.
    pub fn succeeded(&self) -> bool {
        *self == Outcome::Succeeded
    }

    /// Whether the member's fate is decided: success, or a failure the program made.
    pub fn is_final(&self) -> bool {
        self.succeeded() || self.blame() == Some(Blame::Program)
    }

    /// Whose it is; `None` for a success.
    pub fn blame(&self) -> Option<Blame> {
        match self {
            Outcome::Succeeded => None,
            Outcome::Failed(Failure::Machine(_)) | Outcome::Lost => Some(Blame::Machine),
            Outcome::Cancelled => Some(Blame::Person),
            Outcome::Failed(_) | Outcome::TimedOut | Outcome::OutOfMemory | Outcome::MissingOutput(_) => {
                Some(Blame::Program)
            }
        }
    }

    /// One word of the glossary.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed(_) => "failed",
            Outcome::TimedOut => "timed out",
            Outcome::OutOfMemory => "out of memory",
            Outcome::MissingOutput(_) => "missing output",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "lost",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Failed(failure) => write!(f, "failed: {failure}"),
            Outcome::MissingOutput(names) => write!(f, "missing output: {}", names.join(", ")),
            other => f.write_str(other.word()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Exit(code) => write!(f, "exit code {code}"),
            Failure::Signal(signal) => write!(f, "ended by signal {signal}"),
            Failure::Disk => f.write_str("filled its declared disk space"),
            Failure::BadOutput(reason) => write!(f, "an output cannot be stored: {reason}"),
            Failure::Start(reason) => write!(f, "could not be started: {reason}"),
            Failure::Machine(reason) => write!(f, "the machine: {reason}"),
        }
    }
}

/// One artifact an attempt wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Produced {
    /// Its content.
    pub artifact: Artifact,
    /// Its size in bytes, files of a folder added up.
    pub size: u64,
}

/// What an attempt used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Wall time in microseconds.
    pub wall: u64,
    /// User and system time of its processes in microseconds.
    pub cpu: u64,
    /// Largest resident set of one of its processes in bytes.
    pub peak_memory: u64,
}

/// Where an attempt ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Operating system and kernel.
    pub system: String,
    /// Processor model.
    pub cpu: String,
    /// How the stage was confined: a level, then what else the kernel denied, e.g. `deny+offline`.
    pub confinement: String,
}
