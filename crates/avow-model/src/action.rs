//! A member with everything resolved: the reuse key.
//!
//! | value | in the digest | why |
//! |---|:-:|---|
//! | command line, declared environment variables, working layout | yes | they change the bytes |
//! | input artifacts by mount path | yes | content, not the producer's name: early cutoff |
//! | code tree, lock file, programs started, op identity | yes | no human-bumped version |
//! | parameters and seeds that the stage uses, through command, environment or `with` | yes | |
//! | declared hardware class | yes | where the spec says the result depends on it |
//! | repetition number of a repeated stage | yes | each repetition is its own action |
//! | names, paths and kinds of declared outputs | yes | |
//! | permission to use the network | yes | it may change what is captured |
//! | shared libraries and installed packages that the programs load, and the shell | yes | since encoding 2 |
//! | encoding version | yes | in the record's kind, and in the fields that are there |
//! | image that the command runs in, by the digest of its manifest | yes | wherever it is had from |
//! | comments, order and layout of a lock file | no | since encoding 3 |
//! | stage name, spec path, comments, key order, description | no | renaming must not invalidate |
//! | modification times, absolute paths, host, user, session, tool version | no | |
//! | resources, priority, retries, timeout, executor | no | how fast, not what; kept in the attempt |
//!
//! `tests/digest_table.rs` has a test per row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::canonical::Record;
use crate::digest::{ActionDigest, Artifact, BlobDigest, TreeDigest};
use crate::plan::Keep;
use crate::value::Value;

/// The encoding of the actions that this program makes. It has nothing to do with the version of the program:
/// it rises only where the same work gets another digest, and then [`Action::earlier`] says which it had.
pub const ENCODING: u32 = 3;

/// Everything that can change the bytes of a member's outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What is started.
    pub command: Command,
    /// Declared environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Inputs by mount path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Artifact>,
    /// Code, laid out at its project paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<TreeDigest>,
    /// The environment's lock file, in its plain form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<BlobDigest>,
    /// That file as it is written, where that is not its plain form. Not part of the action: only its earlier names
    /// are made of it.
    #[serde(skip)]
    pub lock_as_written: Option<BlobDigest>,
    /// Programs that are not project files, by the word in the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolchain: BTreeMap<String, BlobDigest>,
    /// What its programs load besides project files: the digest of a [`crate::loads::Loads`] record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<BlobDigest>,
    /// Declared outputs by name.
    pub outputs: BTreeMap<String, Slot>,
    /// Declared hardware class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// Which repetition this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u64>,
    /// Whether it may use the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// The image that it runs in: the digest of its manifest, `sha256:…`; the name of one that nothing pins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// What is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// `sh -eu -c TEXT`.
    Shell(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
    /// A built-in operation.
    Op {
        /// Its name.
        name: String,
        /// The digest of everything it is compiled from.
        identity: String,
        /// Its parameters.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        with: BTreeMap<String, Value>,
        /// Its inputs: name → mount path.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inputs: BTreeMap<String, String>,
    },
}

/// A place where an output is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Path relative to the working folder.
    pub path: String,
    /// Whether it is a folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folder: bool,
    /// Whether it may be absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether its bytes are kept.
    #[serde(default, skip_serializing_if = "Keep::is_content")]
    pub keep: Keep,
}

impl Action {
    /// The names of the same work under earlier encodings, with their numbers, latest first; nothing where all of them
    /// named it as now. Encoding 2 named a lock file by its bytes; encoding 1 did not know what programs load.
    pub fn earlier(&self) -> Vec<(u32, ActionDigest)> {
        let environment = self.lock_as_written.or(self.environment);
        let second = Action { environment, ..self.clone() };
        let mut names = Vec::new();
        if environment != self.environment {
            names.push((2, second.digest()));
        }
        if self.loads.is_some() {
            names.push((1, Action { loads: None, ..second }.digest()));
        }
        names
    }
}

/// One difference between two actions, as `explain` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What changed, e.g. `command`, `input`, `code`, `env`, `program`, `output`, `op`.
    pub part: &'static str,
    /// Which one, where there are several: a mount path, a variable, a name.
    pub name: Option<String>,
    /// The earlier value; `None` where it is new.
    pub old: Option<String>,
    /// The present value; `None` where it is gone.
    pub new: Option<String>,
}

/// Every difference from `old` to `new`, in the order of the table above.
pub fn changes(old: &Action, new: &Action) -> Vec<Change> {
    let mut out = Vec::new();
    command_changes(&old.command, &new.command, &mut out);
    maps("env", &old.env, &new.env, String::clone, &mut out);
    maps("input", &old.inputs, &new.inputs, |a| a.short(), &mut out);
    single("code", old.code.as_ref(), new.code.as_ref(), |d| d.short(), &mut out);
    single("environment lock", old.environment.as_ref(), new.environment.as_ref(), |d| d.short(), &mut out);
    single("image", old.image.as_ref(), new.image.as_ref(), String::clone, &mut out);
    maps("program", &old.toolchain, &new.toolchain, |d| d.short(), &mut out);
    single("what its programs load", old.loads.as_ref(), new.loads.as_ref(), |d| d.short(), &mut out);
    maps("output", &old.outputs, &new.outputs, |slot| format!("{slot:?}"), &mut out);
    single("hardware", old.hardware.as_ref(), new.hardware.as_ref(), String::clone, &mut out);
    single("repetition", old.repetition.as_ref(), new.repetition.as_ref(), u64::to_string, &mut out);
    let network = |allowed: &bool| if *allowed { "allowed" } else { "denied" }.to_owned();
    single("network", Some(&old.network), Some(&new.network), network, &mut out);
    out
}

fn command_changes(old: &Command, new: &Command, out: &mut Vec<Change>) {
    match (old, new) {
        (
            Command::Op { name: a, identity: i, with: v, inputs: p },
            Command::Op { name: b, identity: j, with: w, inputs: q },
        ) if a == b => {
            single("op", Some(i), Some(j), |hex| short(hex), out);
            maps("parameter", v, w, Value::to_string, out);
            maps("input name", p, q, String::clone, out);
        }
        _ => single("command", Some(old), Some(new), Command::to_string, out),
    }
}

fn short(hex: &str) -> String {
    hex.chars().take(8).collect()
}

fn single<V: PartialEq + std::fmt::Debug>(
    part: &'static str,
    old: Option<&V>,
    new: Option<&V>,
    show: impl Fn(&V) -> String,
    out: &mut Vec<Change>,
) {
    if old != new {
        let (old, new) = shown(old, new, show);
        out.push(Change { part, name: None, old, new });
    }
}

/// Both values as text; in full detail where people would read the same text twice (`1` and `1.0`, or two
/// digests that begin alike).
fn shown<V: std::fmt::Debug>(
    old: Option<&V>,
    new: Option<&V>,
    show: impl Fn(&V) -> String,
) -> (Option<String>, Option<String>) {
    let (a, b) = (old.map(&show), new.map(&show));
    if a == b { (old.map(|v| format!("{v:?}")), new.map(|v| format!("{v:?}"))) } else { (a, b) }
}

fn maps<V: PartialEq + std::fmt::Debug>(
    part: &'static str,
    old: &BTreeMap<String, V>,
    new: &BTreeMap<String, V>,
    show: impl Fn(&V) -> String,
    out: &mut Vec<Change>,
) {
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (a, b) = (old.get(name), new.get(name));
        if a != b {
            let (old, new) = shown(a, b, &show);
            out.push(Change { part, name: Some(name.clone()), old, new });
        }
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Command::Shell(text) => f.write_str(text.trim_end()),
            Command::Arguments(arguments) => {
                let quoted: Vec<String> = arguments.iter().map(|a| crate::bind::shell_quote(a)).collect();
                f.write_str(&quoted.join(" "))
            }
            Command::Op { name, .. } => write!(f, "avow op {name}"),
        }
    }
}
