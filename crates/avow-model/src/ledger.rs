//! The registration ledger: lines that anyone can check with `sha256sum`.
//!
//! Each line is one JSON object in canonical form (RFC 8785), restricted further: ASCII keys, no floats,
//! integers within ±(2^53 − 1). Its digest is the RFC 6962 leaf, SHA-256(0x00 ‖ line), over the bytes as
//! stored without the line feed. Lines name their parents by digest, so the chain is a graph that survives a
//! union merge in any file order, and each line states the Merkle root over its ancestors in canonical order:
//! by depth (longest path from the first line), then by digest. "Before" means "is an ancestor of".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::digest::{LineDigest, RegistrationDigest};

pub mod embargo;
pub mod force;
pub mod invalid;
pub mod proof;

/// The kinds of line that exist.
pub const KINDS: [&str; 13] = [
    "register",
    "commit",
    "open",
    "amend",
    "run-opened",
    "run-head",
    "run-closed",
    "invalidate",
    "retract",
    "exposure",
    "witness",
    "merge",
    "adopt",
];

/// The keys that the ledger itself fills in.
const OWN_KEYS: [&str; 4] = ["kind", "parents", "tree", "v"];

/// Why a line cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// A kind that does not exist.
    #[error("`{0}` is not a kind of ledger line")]
    Kind(String),
    /// A value outside the restricted form.
    #[error("`{0}` cannot stand in a ledger line")]
    Value(String),
    /// A field whose key the ledger fills in itself.
    #[error("the field `{0}` is the ledger's own")]
    OwnKey(String),
    /// A chain that would begin like any other.
    #[error("the first line of a ledger needs a `nonce` of 64 lower-case hexadecimal digits")]
    Nonce,
    /// The ledger is damaged, so nothing may be built on it.
    #[error("the ledger is damaged: {0}")]
    Damaged(String),
}

/// One verified line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its digest.
    pub leaf: RegistrationDigest,
    /// The lines it follows, sorted.
    pub parents: Vec<RegistrationDigest>,
    /// Its kind.
    pub kind: String,
    /// The whole object.
    pub fields: Map<String, Value>,
    /// Longest path from the first line.
    pub depth: usize,
    /// What it commits to, where it is a commitment; kind and fields are then those behind it, once it is opened.
    pub commitment: Option<String>,
    /// The object as it stands in the file, where kind and fields are those behind a commitment.
    shown: Option<Map<String, Value>>,
}

impl Entry {
    /// The object as it stands in the file.
    pub fn line(&self) -> &Map<String, Value> {
        self.shown.as_ref().unwrap_or(&self.fields)
    }
}

/// Something wrong in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Bytes after the last line feed: a write that was cut off; a writer cuts them.
    Torn {
        /// How many.
        bytes: usize,
    },
    /// A complete line, counted from 1, that does not verify; never cut.
    Line {
        /// The line.
        line: usize,
        /// `not canonical`, `unknown parent`, `tree mismatch`, …
        reason: String,
    },
}

/// A ledger as read.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<RegistrationDigest, Entry>,
    /// For each entry, the tree over its ancestors and itself.
    trees: BTreeMap<RegistrationDigest, Tree>,
    first: Option<RegistrationDigest>,
    findings: Vec<Finding>,
    intact: usize,
    /// Commitments that a line opens.
    opened: BTreeSet<RegistrationDigest>,
    /// What other ledgers declare wrong.
    elsewhere: Vec<invalid::Invalid>,
    /// Lines that verify and do not do what they say.
    faults: Vec<(RegistrationDigest, String)>,
}

/// An RFC 6962 tree that can only grow: its complete subtrees, largest first, with the logarithm of how many
/// leaves each has. Appending to a line's tree costs a few hashes, so that a chain of n lines is verified
/// with n of them and not n².
#[derive(Clone, Debug, Default)]
struct Tree {
    size: usize,
    peaks: Vec<(u32, RegistrationDigest)>,
}

impl Tree {
    fn of(leaves: impl IntoIterator<Item = RegistrationDigest>) -> Tree {
        let mut tree = Tree::default();
        leaves.into_iter().for_each(|leaf| tree.push(leaf));
        tree
    }

    fn push(&mut self, leaf: RegistrationDigest) {
        let mut peak = (0, leaf);
        while let Some((height, left)) = self.peaks.pop_if(|(height, _)| *height == peak.0) {
            peak = (height + 1, node(left, peak.1));
        }
        self.peaks.push(peak);
        self.size += 1;
    }

    fn root(&self) -> RegistrationDigest {
        let peaks = self.peaks.iter().map(|(_, digest)| *digest);
        peaks.rev().reduce(|right, left| node(left, right)).unwrap_or_else(|| root(&[]))
    }

    /// The field `tree` of a line.
    fn field(&self) -> Value {
        json!({"root": self.root().to_string(), "size": self.size})
    }
}

/// The leaf of a line: SHA-256(0x00 ‖ line).
pub fn leaf(line: &[u8]) -> RegistrationDigest {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(line);
    RegistrationDigest::from_bytes(hasher.finalize().into())
}

/// An inner node: SHA-256(0x01 ‖ left ‖ right).
fn node(left: RegistrationDigest, right: RegistrationDigest) -> RegistrationDigest {
    let mut hasher = Sha256::new();
    hasher.update([1]);
    hasher.update(left.as_bytes());
    hasher.update(right.as_bytes());
    RegistrationDigest::from_bytes(hasher.finalize().into())
}

/// The RFC 6962 root over leaves in the order given.
pub fn root(leaves: &[RegistrationDigest]) -> RegistrationDigest {
    match leaves {
        [] => RegistrationDigest::from_bytes(Sha256::digest(b"").into()),
        [one] => *one,
        many => {
            // The largest power of two that leaves something for the right side.
            let split = 1 << (many.len() - 1).ilog2();
            node(root(&many[..split]), root(&many[split..]))
        }
    }
}

/// The canonical text of a value in the restricted form.
pub fn canonical(value: &Value) -> Result<String, LedgerError> {
    let mut text = String::new();
    write(value, &mut text)?;
    Ok(text)
}

fn write(value: &Value, out: &mut String) -> Result<(), LedgerError> {
    const SAFE: i64 = (1 << 53) - 1;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Number(number) => match number.as_i64() {
            Some(i) if (-SAFE..=SAFE).contains(&i) => out.push_str(&i.to_string()),
            _ => return Err(LedgerError::Value(number.to_string())),
        },
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            // ASCII keys sort the same by byte and by UTF-16 unit, which is what RFC 8785 asks for.
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            for (i, (key, item)) in sorted.into_iter().enumerate() {
                if !key.is_ascii() {
                    return Err(LedgerError::Value(key.clone()));
                }
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(item, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

impl Ledger {
    /// Reads and verifies a ledger file.
    pub fn read(bytes: &[u8]) -> Ledger {
        let mut ledger = Ledger::default();
        let mut pending: Vec<(usize, Entry)> = Vec::new();
        let mut known = BTreeSet::new();
        let mut number = 0;
        while let Some(length) = bytes[ledger.intact..].iter().position(|b| *b == b'\n') {
            let raw = &bytes[ledger.intact..ledger.intact + length];
            ledger.intact += length + 1;
            number += 1;
            match parse(raw) {
                // A union merge may repeat a line; it counts once.
                Ok(entry) if !known.insert(entry.leaf) => {}
                Ok(entry) => pending.push((number, entry)),
                Err(reason) => ledger.findings.push(Finding::Line { line: number, reason }),
            }
        }
        ledger.link(pending);
        ledger.open();
        ledger.findings.sort_by_key(|finding| match finding {
            Finding::Line { line, .. } => *line,
            Finding::Torn { .. } => usize::MAX,
        });
        if bytes.len() > ledger.intact {
            ledger.findings.push(Finding::Torn { bytes: bytes.len() - ledger.intact });
        }
        ledger
    }

    /// Places entries below their parents, whatever order the file has them in.
    fn link(&mut self, pending: Vec<(usize, Entry)>) {
        let mut missing: Vec<usize> = Vec::with_capacity(pending.len());
        let mut children: BTreeMap<RegistrationDigest, Vec<usize>> = BTreeMap::new();
        for (position, (_, entry)) in pending.iter().enumerate() {
            missing.push(entry.parents.len());
            for parent in &entry.parents {
                children.entry(*parent).or_default().push(position);
            }
        }
        let mut pending: Vec<Option<(usize, Entry)>> = pending.into_iter().map(Some).collect();
        // Sides of a fork come out in no particular order; an entry's place depends on its ancestors only.
        let mut ready: Vec<usize> = (0..pending.len()).filter(|p| missing[*p] == 0).rev().collect();
        while let Some(position) = ready.pop() {
            let (line, entry) = pending[position].take().expect("an entry is ready once");
            let leaf = entry.leaf;
            match self.place(entry) {
                Err(reason) => self.findings.push(Finding::Line { line, reason: reason.to_owned() }),
                Ok(()) => {
                    for child in children.remove(&leaf).unwrap_or_default() {
                        missing[child] -= 1;
                        if missing[child] == 0 {
                            ready.push(child);
                        }
                    }
                }
            }
        }
        for (line, _) in pending.into_iter().flatten() {
            self.findings.push(Finding::Line { line, reason: "unknown parent".to_owned() });
        }
    }

    fn place(&mut self, mut entry: Entry) -> Result<(), &'static str> {
        if entry.parents.is_empty() {
            if self.first.is_some() {
                return Err("a second beginning");
            }
            if !has_nonce(&entry.fields) {
                return Err("a beginning without a nonce");
            }
        }
        let mut tree = self.tree(&entry.parents);
        if entry.fields.get("tree") != Some(&tree.field()) {
            return Err("tree mismatch");
        }
        entry.depth = entry.parents.iter().map(|p| self.entries[p].depth + 1).max().unwrap_or(0);
        tree.push(entry.leaf);
        if entry.parents.is_empty() {
            self.first = Some(entry.leaf);
        }
        self.trees.insert(entry.leaf, tree);
        self.entries.insert(entry.leaf, entry);
        Ok(())
    }

    /// The tree over everything at or before these entries, in canonical order.
    fn tree(&self, heads: &[RegistrationDigest]) -> Tree {
        match heads {
            // An entry is deeper than all its ancestors, so it comes last among them.
            [one] => self.trees.get(one).cloned().unwrap_or_default(),
            several => Tree::of(self.ordered(several).into_iter().map(|entry| entry.leaf)),
        }
    }

    fn ordered(&self, heads: &[RegistrationDigest]) -> Vec<&Entry> {
        let mut seen = BTreeSet::new();
        let mut stack: Vec<RegistrationDigest> = heads.to_vec();
        while let Some(leaf) = stack.pop() {
            if let Some(entry) = self.entries.get(&leaf)
                && seen.insert((entry.depth, leaf))
            {
                stack.extend(&entry.parents);
            }
        }
        seen.into_iter().map(|(_, leaf)| &self.entries[&leaf]).collect()
    }

    /// All verified entries in canonical order.
    pub fn entries(&self) -> Vec<&Entry> {
        self.ordered(&self.heads())
    }

    /// The lines of journals by which runs announced that they would carry something out.
    pub fn announced(&self) -> BTreeSet<LineDigest> {
        let opened = self.entries.values().filter(|entry| entry.kind == "run-opened");
        opened.filter_map(|entry| entry.fields.get("journal")?.as_str()?.parse().ok()).collect()
    }

    /// The entry with this digest.
    pub fn entry(&self, leaf: RegistrationDigest) -> Option<&Entry> {
        self.entries.get(&leaf)
    }

    /// Entries that no other entry follows, sorted.
    pub fn heads(&self) -> Vec<RegistrationDigest> {
        let followed: BTreeSet<_> = self.entries.values().flat_map(|e| &e.parents).collect();
        self.entries.keys().filter(|leaf| !followed.contains(leaf)).copied().collect()
    }

    /// The chain's name: the digest of its first line.
    pub fn chain(&self) -> Option<RegistrationDigest> {
        self.first
    }

    /// What is wrong with it.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Length in bytes of its complete lines: what a writer keeps.
    pub fn intact(&self) -> usize {
        self.intact
    }

    /// Whether `earlier` is `later` or one of its ancestors.
    pub fn precedes(&self, earlier: RegistrationDigest, later: RegistrationDigest) -> bool {
        let Some(goal) = self.entries.get(&earlier) else { return false };
        let mut seen = BTreeSet::new();
        let mut stack = vec![later];
        while let Some(leaf) = stack.pop() {
            if leaf == earlier {
                return true;
            }
            // Nothing at its depth or above it can follow it.
            if let Some(entry) = self.entries.get(&leaf)
                && entry.depth > goal.depth
                && seen.insert(leaf)
            {
                stack.extend(&entry.parents);
            }
        }
        false
    }

    /// Refuses a ledger with a complete line that does not verify: nothing may be built on it.
    pub fn sound(&self) -> Result<(), LedgerError> {
        let damaged = self.findings.iter().find_map(|finding| match finding {
            Finding::Line { line, reason } => Some(format!("line {line}: {reason}")),
            Finding::Torn { .. } => None,
        });
        damaged.map_or(Ok(()), |damage| Err(LedgerError::Damaged(damage)))
    }

    /// The line that would be appended now: the fields given, with kind, parents, tree and version added. A
    /// chain's first line also needs a random `nonce` among its fields: 64 lower-case hexadecimal digits.
    pub fn line(&self, kind: &str, fields: Map<String, Value>) -> Result<String, LedgerError> {
        if !KINDS.contains(&kind) {
            return Err(LedgerError::Kind(kind.to_owned()));
        }
        self.sound()?;
        if let Some(key) = fields.keys().find(|key| OWN_KEYS.contains(&key.as_str())) {
            return Err(LedgerError::OwnKey(key.clone()));
        }
        let heads = self.heads();
        if heads.is_empty() && !has_nonce(&fields) {
            return Err(LedgerError::Nonce);
        }
        let mut object = fields;
        object.insert("kind".to_owned(), json!(kind));
        object.insert("parents".to_owned(), json!(heads));
        object.insert("tree".to_owned(), self.tree(&heads).field());
        object.insert("v".to_owned(), json!(1));
        let line = canonical(&Value::Object(object))?;
        // What a reader would refuse (a field nested beyond what JSON readers follow) must not be written.
        parse(line.as_bytes()).map_err(LedgerError::Value)?;
        Ok(line)
    }

    /// The statement about a head that is signed and stamped (without a line feed).
    pub fn head_statement(&self, entry: RegistrationDigest) -> Option<String> {
        let tree = self.trees.get(&entry)?;
        let statement = json!({
            "chain": self.chain()?.to_string(), "entry": entry.to_string(), "kind": "avow-head",
            "root": tree.root().to_string(), "size": tree.size, "v": 1,
        });
        canonical(&statement).ok()
    }
}

fn has_nonce(fields: &Map<String, Value>) -> bool {
    let hex = |text: &str| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    fields.get("nonce").and_then(Value::as_str).is_some_and(hex)
}

fn parse(raw: &[u8]) -> Result<Entry, String> {
    let text = std::str::from_utf8(raw).map_err(|_| "not UTF-8".to_owned())?;
    let value: Value = serde_json::from_str(text).map_err(|_| "not JSON".to_owned())?;
    // Re-encoding also refuses duplicate keys: the copy would be shorter than the line.
    if canonical(&value).map_err(|e| e.to_string())? != text {
        return Err("not canonical".to_owned());
    }
    let Value::Object(fields) = value else { return Err("not an object".to_owned()) };
    let kind = fields.get("kind").and_then(Value::as_str).ok_or("no kind")?.to_owned();
    if !KINDS.contains(&kind.as_str()) {
        return Err(format!("unknown kind `{kind}`"));
    }
    if fields.get("v") != Some(&json!(1)) {
        return Err("unknown version".to_owned());
    }
    let parents = fields.get("parents").and_then(Value::as_array).ok_or("no parents")?;
    let parents = parents
        .iter()
        .map(|p| p.as_str().and_then(|hex| hex.parse().ok()).ok_or("a parent is not a digest"))
        .collect::<Result<Vec<RegistrationDigest>, _>>()?;
    if !parents.is_sorted_by(|a, b| a < b) {
        return Err("parents are not sorted".to_owned());
    }
    let committed = (kind == "commit").then(|| fields.get("commitment")).flatten();
    let commitment = committed.and_then(Value::as_str).map(str::to_owned);
    Ok(Entry { leaf: leaf(raw), parents, kind, fields, depth: 0, commitment, shown: None })
}
