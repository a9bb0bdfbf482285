//! The messages between a run and a worker, version 1. `docs/worker.md` shows them from outside.
//!
//! Requests and events are deterministic CBOR, as records are. Whoever reads one writes it again and compares
//! ([`decode`]): a field that the reader does not know would be lost in that, so a newer program is refused
//! instead of being half obeyed. What people look at, the description of a worker and its refusals, is JSON.

use std::collections::BTreeMap;

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Host, Outcome, Produced, Timestamp, Usage};
use avow_model::canonical::bytes_of;
use avow_model::digest::{BlobDigest, ReadsDigest};
use avow_model::plan::Terms;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use super::demand::Demand;
use crate::Execution;

/// The version of everything in this module, of the paths and of the frames.
pub const PROTOCOL: u32 = 1;

/// The first segment of every path.
pub const ROOT: &str = "/v1";

/// The most bytes of a submission or another CBOR message.
pub const MESSAGE_LIMIT: usize = 16 << 20;
/// The most bytes of a list of digests: 65,536 of them.
pub const DIGESTS_LIMIT: usize = 65_536 * 32;
/// The most words whose identity is asked for at once.
pub const WORDS_LIMIT: usize = 1000;
/// The most bytes of one refusal.
pub const REFUSAL_LIMIT: usize = 4 << 20;
/// Blobs up to this size travel many to a request.
pub const SMALL: u64 = 64 << 10;
/// The most bytes of a pack of small blobs.
pub const PACK_LIMIT: usize = 8 << 20;
/// How many bytes of small outputs travel with the end of an attempt.
pub const INLINE_LIMIT: u64 = 128 << 10;

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of the program, for people.
    pub tool: String,
    /// Drawn at each start: what an earlier one ran is lost.
    pub instance: String,
    /// The machine, as it is recorded with every attempt.
    pub host: Host,
    /// CPU slots.
    pub cpus: u32,
    /// Bytes of memory that declared requests share.
    pub memory: u64,
    /// After so many milliseconds without a word from a client its attempts are ended.
    pub lease: u64,
    /// The largest blob that is taken in, in bytes.
    pub blob_limit: u64,
    /// The built-in operations by name, with the digest of everything they are compiled from.
    pub ops: BTreeMap<String, String>,
}

/// A request to carry an action out. The attempt's name is in the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The client's run, under a name that says nothing.
    pub session: String,
    /// The instance it was meant for.
    pub instance: String,
    /// What is to be done.
    pub action: Action,
    /// Under which terms.
    pub terms: Terms,
    /// Whether the worker took this attempt in before, so that it is only to be joined: where it is not known any
    /// more it is lost, and must not be started a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// How many bytes of standard output and standard error the client has.
    pub have: [u64; 2],
    /// Other attempts that the client has received whole and the worker may forget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// Stands for the client's project, and says nothing of it: attempts that share it may go on from one
    /// another's checkpoints.
    pub project: String,
    /// Values of the secrets that the terms name. Held in memory for the time of the attempt, never written.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub secrets: Values,
}

/// Values of secrets on their way. They do not show themselves.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(pub BTreeMap<String, String>);

impl Values {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A sign of life, with what the client has received whole and the worker may forget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// The instance it is meant for.
    pub instance: String,
    /// Attempts.
    pub done: Vec<String>,
}

/// A request to end an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// In good order, with the grace period.
    Politely,
    /// At once.
    AtOnce,
}

/// What happens to an attempt, in the stream of frames that answers a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A log was cut short by the program; what was sent of it is void. 0: standard output, 1: standard error.
    Reset(u8),
    /// It is over. The last event.
    Finished(Box<Ending>),
    /// The worker could not carry it out, through no fault of the program. The last event.
    Broken(Breakdown),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// What it wrote.
    pub outputs: BTreeMap<String, Produced>,
    /// Standard output.
    pub stdout: Option<BlobDigest>,
    /// Standard error.
    pub stderr: Option<BlobDigest>,
    /// What it was seen to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadsDigest>,
    /// What it used.
    pub usage: Usage,
    /// Where it ran.
    pub host: Host,
    /// When it was started, by the worker's clock.
    pub started: Timestamp,
    /// When it was over, by the worker's clock.
    pub finished: Timestamp,
    /// The attempts whose checkpoint it went on from, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<AttemptId>,
}

impl From<Execution> for Ending {
    fn from(execution: Execution) -> Ending {
        let Execution { outcome, outputs, stdout, stderr, reads, usage, host, started, finished, continues } =
            execution;
        Ending { outcome, outputs, stdout, stderr, reads, usage, host, started, finished, continues }
    }
}

impl From<Ending> for Execution {
    fn from(ending: Ending) -> Execution {
        let Ending { outcome, outputs, stdout, stderr, reads, usage, host, started, finished, continues } =
            ending;
        Execution { outcome, outputs, stdout, stderr, reads, usage, host, started, finished, continues }
    }
}

/// A fault of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Breakdown {
    /// The action is one that no correct plan produces.
    Action(String),
    /// The worker's machine or store failed.
    Machine(String),
    /// The worker was told to stop.
    Stopping,
}

/// Why a worker does not do what it was asked, as the JSON body of an answer of 400 and above.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refused", rename_all = "kebab-case")]
pub enum Refusal {
    /// No token, or a wrong one.
    Token,
    /// Not a request of this protocol.
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// More bytes than are taken in.
    TooLarge {
        /// The most, in bytes.
        limit: u64,
    },
    /// Nothing is known under this name.
    Unknown,
    /// The name of the attempt stands for another action.
    Conflict,
    /// The worker was started again.
    OtherInstance {
        /// The present one.
        instance: String,
    },
    /// The action needs blobs that are not here.
    Lacking {
        /// Those.
        blobs: Vec<BlobDigest>,
    },
    /// Operations, programs or what they load are here not those that the action demands.
    Mismatch {
        /// Each of them.
        differences: Vec<Difference>,
    },
    /// The machine cannot, now.
    Machine {
        /// What the system said.
        reason: String,
    },
    /// The worker is about to end.
    Stopping,
}

/// Something that differs between what an action demands and what a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What it is.
    pub what: Part,
    /// Its name.
    pub name: String,
    /// The identity that the action demands: a digest, or a version where that differs.
    pub wanted: String,
    /// The identity that is there; `None` where there is none.
    pub found: Option<String>,
}

/// What may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A built-in operation.
    Op,
    /// A program found on `PATH`.
    Program,
    /// A shared library.
    Library,
    /// An installed package.
    Package,
    /// A module that no installer knows.
    Module,
    /// Room for code and inputs, in bytes. Known to the client alone.
    Room,
}

impl Part {
    /// What a record of loads calls it.
    pub(crate) fn of(kind: &str) -> Part {
        match kind {
            "library" => Part::Library,
            "package" => Part::Package,
            "module" => Part::Module,
            _ => Part::Program,
        }
    }
}

/// A message that is not one of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

/// A message as bytes.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    bytes_of(message)
}

/// A message from bytes, which may be anybody's.
///
/// # Errors
/// Where they are not the one form of such a message, or hold something that this program does not know.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let message: T =
        ciborium::from_reader(bytes).map_err(|error| DecodeError(format!("not a message: {error}")))?;
    if bytes_of(&message) == bytes {
        Ok(message)
    } else {
        Err(DecodeError(
            "it holds something unknown here; use the same version of avow on both sides".to_owned(),
        ))
    }
}

/// Digests as they travel: 32 bytes each, nothing between them.
pub fn join(digests: &[BlobDigest]) -> Vec<u8> {
    digests.iter().flat_map(|digest| *digest.as_bytes()).collect()
}

/// Digests from bytes; `None` where the length is not one of whole digests.
pub fn split(bytes: &[u8]) -> Option<Vec<BlobDigest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| digests.iter().map(|digest| BlobDigest::from_bytes(*digest)).collect())
}

/// Whether a text can name an attempt: 32 lower-case hexadecimal digits.
pub fn is_attempt(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What an action demands of the machine that differs from what there is. `op` and `program` give the
/// identities of what is there.
pub fn differences(
    action: &Action,
    op: impl Fn(&str) -> Option<String>,
    program: impl Fn(&str) -> Option<BlobDigest>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    if let avow_model::action::Command::Op { name, identity, .. } = &action.command {
        let here = op(name);
        if here.as_ref() != Some(identity) {
            let (name, wanted) = (name.clone(), identity.clone());
            found.push(Difference { what: Part::Op, name, wanted, found: here });
        }
    }
    for (word, wanted) in &action.toolchain {
        let here = program(word);
        if here != Some(*wanted) {
            let found_here = here.map(|digest| digest.to_string());
            let (name, wanted) = (word.clone(), wanted.to_string());
            found.push(Difference { what: Part::Program, name, wanted, found: found_here });
        }
    }
    found
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.what == Part::Room {
            let (wanted, found) = (&self.wanted, self.found.as_deref().unwrap_or("0"));
            return write!(f, "its cache holds {found} bytes, and code and inputs have {wanted}");
        }
        // Digests are shown by their beginning, versions whole.
        let short = |text: &str| {
            let digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            text.chars().take(if digest { 8 } else { text.len() }).collect::<String>()
        };
        let what = match self.what {
            Part::Op => "operation",
            Part::Program => "program",
            Part::Library => "library",
            Part::Package => "package",
            Part::Module => "module",
            Part::Room => "room",
        };
        match &self.found {
            Some(found) => {
                let (found, wanted) = (short(found), short(&self.wanted));
                write!(f, "the {what} `{}` is {found} there, and {wanted} is demanded", self.name)
            }
            None => write!(f, "there is no {what} `{}` there", self.name),
        }
    }
}
