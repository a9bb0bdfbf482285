//! Merkle proofs over a ledger (RFC 6962, section 2.1): that a line is among the lines which a head covers, and
//! that a later head covers everything an earlier one did.
//!
//! A proof is JSON that stands alone: whoever holds a head statement (signed, stamped, printed in a paper) can check
//! it without the ledger. Where two sides of a fork were merged in between, the earlier head's lines are no prefix of
//! the later one's, and no short proof exists; the proof is then the list of leaves, with those of the earlier head
//! marked by their positions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Ledger, leaf, node, root};
use crate::digest::RegistrationDigest;

/// A proof as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Proof {
    /// A line is among those that a head covers.
    #[serde(rename = "avow-inclusion")]
    Inclusion {
        /// The line itself, without line feed.
        line: String,
        /// Its position in canonical order, from 0.
        index: u64,
        /// The head.
        head: Covered,
        /// The sibling of each node on the way from the leaf to the root.
        path: Vec<RegistrationDigest>,
        /// The version of this form.
        v: One,
    },
    /// A head covers all that an earlier one covered, in the same order.
    #[serde(rename = "avow-consistency")]
    Consistency {
        /// The earlier head.
        old: Covered,
        /// The later head.
        new: Covered,
        /// The nodes that both roots are computed from.
        path: Vec<RegistrationDigest>,
        /// The version of this form.
        v: One,
    },
    /// The same across a merge.
    #[serde(rename = "avow-ancestry")]
    Ancestry {
        /// The earlier head.
        old: Covered,
        /// The later head.
        new: Covered,
        /// The leaves that the later head covers, in canonical order.
        leaves: Vec<RegistrationDigest>,
        /// The positions among them of the leaves that the earlier head covers.
        earlier: Vec<u64>,
        /// The version of this form.
        v: One,
    },
}

/// A head and the tree over its ancestors and itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// The head's line.
    pub entry: RegistrationDigest,
    /// The root.
    pub root: RegistrationDigest,
    /// How many lines it covers.
    pub size: u64,
}

/// The version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct One;

impl TryFrom<u8> for One {
    type Error = &'static str;

    fn try_from(v: u8) -> Result<One, Self::Error> {
        if v == 1 { Ok(One) } else { Err("unknown version") }
    }
}

impl From<One> for u8 {
    fn from(_: One) -> u8 {
        1
    }
}

/// Why a proof proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// An index beyond the tree, or an old tree larger than the new.
    #[error("its sizes do not fit each other")]
    Sizes,
    /// Too many nodes, or too few.
    #[error("its path has {found} nodes where the sizes ask for {expected}")]
    Length {
        /// Nodes in the proof.
        found: usize,
        /// Nodes that there must be.
        expected: usize,
    },
    /// Another root comes out.
    #[error("its nodes give the root {found}, not {expected}")]
    Root {
        /// The root that the proof gives.
        found: RegistrationDigest,
        /// The root it claims.
        expected: RegistrationDigest,
    },
    /// Positions that are not in order, or lie outside.
    #[error("its positions are not those of an earlier head")]
    Positions,
}

impl Covered {
    /// Whether these are the head, root and size of a head statement's text.
    pub fn is_stated_by(&self, statement: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(statement).is_ok_and(|stated| {
            stated["kind"] == "avow-head"
                && stated["entry"] == self.entry.to_string()
                && stated["root"] == self.root.to_string()
                && stated["size"] == self.size
        })
    }
}

impl Proof {
    /// Checks the proof by itself.
    pub fn check(&self) -> Result<(), ProofError> {
        match self {
            Proof::Inclusion { line, index, head, path, .. } => {
                included(leaf(line.as_bytes()), *index, head, path)
            }
            Proof::Consistency { old, new, path, .. } => consistent(old, new, path),
            Proof::Ancestry { old, new, leaves, earlier, .. } => ancestors(old, new, leaves, earlier),
        }
    }

    /// The later head, which covers everything else in it.
    pub fn head(&self) -> &Covered {
        match self {
            Proof::Inclusion { head, .. } => head,
            Proof::Consistency { new, .. } | Proof::Ancestry { new, .. } => new,
        }
    }
}

/// The path from a leaf to the root over these leaves; the index lies among them.
pub fn inclusion_path(leaves: &[RegistrationDigest], index: usize) -> Vec<RegistrationDigest> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let (left, right) = halves(leaves);
    if index < left.len() {
        let mut path = inclusion_path(left, index);
        path.push(root(right));
        path
    } else {
        let mut path = inclusion_path(right, index - left.len());
        path.push(root(left));
        path
    }
}

/// The nodes that prove the tree over the first `old` leaves to be the beginning of the tree over all.
pub fn consistency_path(leaves: &[RegistrationDigest], old: usize) -> Vec<RegistrationDigest> {
    fn below(leaves: &[RegistrationDigest], old: usize, whole: bool) -> Vec<RegistrationDigest> {
        if old == leaves.len() {
            // The verifier knows the root of the old tree and needs no node for it.
            return if whole { Vec::new() } else { vec![root(leaves)] };
        }
        let (left, right) = halves(leaves);
        if old <= left.len() {
            let mut path = below(left, old, whole);
            path.push(root(right));
            path
        } else {
            let mut path = below(right, old - left.len(), false);
            path.push(root(left));
            path
        }
    }
    if old == 0 || old > leaves.len() { Vec::new() } else { below(leaves, old, true) }
}

/// The largest power of two that leaves something for the right side.
fn halves(leaves: &[RegistrationDigest]) -> (&[RegistrationDigest], &[RegistrationDigest]) {
    leaves.split_at(1 << (leaves.len() - 1).ilog2())
}

fn included(
    leaf: RegistrationDigest,
    index: u64,
    head: &Covered,
    path: &[RegistrationDigest],
) -> Result<(), ProofError> {
    let last = head.size.checked_sub(1).filter(|last| index <= *last).ok_or(ProofError::Sizes)?;
    let (mut at, mut end, mut hash) = (index, last, leaf);
    let mut siblings = path.iter();
    let wrong = ProofError::Length { found: path.len(), expected: path_length(index, head.size) };
    while end > 0 {
        // The last node of a level that has no sibling rises by itself.
        if at % 2 == 1 {
            hash = node(*siblings.next().ok_or(wrong.clone())?, hash);
        } else if at < end {
            hash = node(hash, *siblings.next().ok_or(wrong.clone())?);
        }
        at /= 2;
        end /= 2;
    }
    match siblings.next() {
        Some(_) => Err(wrong),
        None => same(hash, head.root),
    }
}

/// How many siblings the leaf at this index of a tree of this size has on its way up.
fn path_length(index: u64, size: u64) -> usize {
    let (mut at, mut end, mut length) = (index, size - 1, 0);
    while end > 0 {
        length += usize::from(at % 2 == 1 || at < end);
        at /= 2;
        end /= 2;
    }
    length
}

fn consistent(old: &Covered, new: &Covered, path: &[RegistrationDigest]) -> Result<(), ProofError> {
    if old.size == 0 || old.size > new.size {
        return Err(ProofError::Sizes);
    }
    if old.size == new.size {
        let expected = 0;
        return if path.is_empty() {
            same(old.root, new.root)
        } else {
            Err(ProofError::Length { found: path.len(), expected })
        };
    }
    let expected = consistency_length(old.size, new.size);
    if path.len() != expected {
        return Err(ProofError::Length { found: path.len(), expected });
    }
    let (mut at, mut end) = (old.size - 1, new.size - 1);
    while at % 2 == 1 {
        at /= 2;
        end /= 2;
    }
    let mut nodes = path.iter().copied();
    // Where the old tree is one whole subtree of the new, its root is the first node.
    let first = if old.size.is_power_of_two() { Some(old.root) } else { nodes.next() };
    let Some(first) = first else { return Err(ProofError::Sizes) };
    let (mut before, mut after) = (first, first);
    for sibling in nodes {
        if at % 2 == 1 || at == end {
            before = node(sibling, before);
            after = node(sibling, after);
            while at != 0 && at % 2 == 0 {
                at /= 2;
                end /= 2;
            }
        } else {
            after = node(after, sibling);
        }
        at /= 2;
        end /= 2;
    }
    same(before, old.root).and_then(|()| same(after, new.root))
}

/// The number of nodes of a consistency proof, as the recursion of RFC 6962 gives it.
fn consistency_length(old: u64, new: u64) -> usize {
    let (mut old, mut size, mut whole, mut length) = (old, new, true, 0);
    while old < size {
        let left = 1u64 << (size - 1).ilog2();
        if old <= left {
            size = left;
        } else {
            old -= left;
            size -= left;
            whole = false;
        }
        length += 1;
    }
    length + usize::from(!whole)
}

fn ancestors(
    old: &Covered,
    new: &Covered,
    leaves: &[RegistrationDigest],
    earlier: &[u64],
) -> Result<(), ProofError> {
    if leaves.len() as u64 != new.size || earlier.len() as u64 != old.size {
        return Err(ProofError::Sizes);
    }
    let picked: Option<Vec<RegistrationDigest>> =
        earlier.iter().map(|i| leaves.get(usize::try_from(*i).ok()?).copied()).collect();
    let picked = picked.filter(|_| earlier.is_sorted_by(|a, b| a < b)).ok_or(ProofError::Positions)?;
    if picked.last() != Some(&old.entry) || leaves.last() != Some(&new.entry) {
        return Err(ProofError::Positions);
    }
    same(root(&picked), old.root).and_then(|()| same(root(leaves), new.root))
}

fn same(found: RegistrationDigest, expected: RegistrationDigest) -> Result<(), ProofError> {
    if found == expected { Ok(()) } else { Err(ProofError::Root { found, expected }) }
}

impl Ledger {
    /// The tree that a head covers.
    pub fn covered(&self, head: RegistrationDigest) -> Option<Covered> {
        let tree = self.trees.get(&head)?;
        Some(Covered { entry: head, root: tree.root(), size: tree.size as u64 })
    }

    /// The proof that a line is covered by a head; `None` where it is not.
    pub fn prove_inclusion(&self, line: RegistrationDigest, head: RegistrationDigest) -> Option<Proof> {
        let leaves = self.leaves(head);
        let index = leaves.iter().position(|leaf| *leaf == line)?;
        let text = super::canonical(&serde_json::Value::Object(self.entry(line)?.line().clone())).ok()?;
        Some(Proof::Inclusion {
            line: text,
            index: index as u64,
            head: self.covered(head)?,
            path: inclusion_path(&leaves, index),
            v: One,
        })
    }

    /// The proof that a head covers all that an earlier one did; `None` where it does not.
    pub fn prove_consistency(&self, old: RegistrationDigest, new: RegistrationDigest) -> Option<Proof> {
        if !self.precedes(old, new) {
            return None;
        }
        let (before, leaves) = (self.leaves(old), self.leaves(new));
        let (old, new) = (self.covered(old)?, self.covered(new)?);
        if leaves.starts_with(&before) {
            let path = consistency_path(&leaves, before.len());
            return Some(Proof::Consistency { old, new, path, v: One });
        }
        let before: BTreeSet<RegistrationDigest> = before.into_iter().collect();
        let positions = leaves.iter().enumerate().filter(|(_, leaf)| before.contains(*leaf));
        let earlier = positions.map(|(position, _)| position as u64).collect();
        Some(Proof::Ancestry { old, new, leaves, earlier, v: One })
    }

    /// The leaves that a head covers, itself last.
    fn leaves(&self, head: RegistrationDigest) -> Vec<RegistrationDigest> {
        self.ordered(&[head]).into_iter().map(|entry| entry.leaf).collect()
    }
}
