//! Merkle proofs, against the examples of RFC 9162 (2.1.5), another implementation, and a forger.

#![expect(clippy::unwrap_used, reason = "tests")]

use avow_model::digest::RegistrationDigest;
use avow_model::ledger::proof::{Covered, One, Proof, ProofError, consistency_path, inclusion_path};
use avow_model::ledger::{Ledger, leaf, root};
use serde_json::{Map, Value, json};

fn leaves(count: usize) -> Vec<RegistrationDigest> {
    (0..count).map(|i| leaf(format!("entry {i}").as_bytes())).collect()
}

fn covered(leaves: &[RegistrationDigest]) -> Covered {
    Covered { entry: *leaves.last().unwrap(), root: root(leaves), size: leaves.len() as u64 }
}

fn inclusion(leaves: &[RegistrationDigest], index: usize) -> Proof {
    let path = inclusion_path(leaves, index);
    Proof::Inclusion {
        line: format!("entry {index}"),
        index: index as u64,
        head: covered(leaves),
        path,
        v: One,
    }
}

fn consistency(leaves: &[RegistrationDigest], old: usize) -> Proof {
    let (before, path) = (covered(&leaves[..old]), consistency_path(leaves, old));
    Proof::Consistency { old: before, new: covered(leaves), path, v: One }
}

#[test]
fn paths_are_those_of_the_rfc() {
    let d = leaves(7);
    // The names of the RFC's figure.
    let (g, h, i) = (root(&d[..2]), root(&d[2..4]), root(&d[4..6]));
    let (j, k, l) = (d[6], root(&d[..4]), root(&d[4..7]));
    assert_eq!(inclusion_path(&d, 0), [d[1], h, l]);
    assert_eq!(inclusion_path(&d, 3), [d[2], g, l]);
    assert_eq!(inclusion_path(&d, 4), [d[5], j, k]);
    assert_eq!(inclusion_path(&d, 6), [i, k]);
    assert_eq!(consistency_path(&d, 3), [d[2], d[3], g, l]);
    assert_eq!(consistency_path(&d, 4), [l]);
    assert_eq!(consistency_path(&d, 6), [i, j, k]);
    // `InmemoryTree.prove_inclusion(3, 7)` of pymerkle 6.1.0, the leaf itself left out.
    let other = [
        "61ca1139f6815841d5baf2d0d2d9bd9dfee97c898dd6f7ba0c0aa941ee6c01eb",
        "5a47662fd8a317d96049a3f9f47c55dc67ca66051baa3683dbb19b2fe09a07b0",
        "94afb8a2ca051c05458ea39dcd19b1bd68e7e33529f10b439d2a615a51f636e2",
    ];
    assert_eq!(inclusion_path(&d, 2).iter().map(ToString::to_string).collect::<Vec<_>>(), other);
}

#[test]
fn every_proof_up_to_forty_lines_holds_and_every_forgery_fails() {
    let all = leaves(41);
    for size in 1..=40 {
        let d = &all[..size];
        for index in 0..size {
            let proof = inclusion(d, index);
            assert_eq!(proof.check(), Ok(()), "{index} of {size}");
            refused(&proof, "inclusion");
            // The same path for another position or line proves nothing.
            let Proof::Inclusion { path, head, .. } = &proof else { unreachable!() };
            for other in (0..size).filter(|other| *other != index) {
                let (line, head, path) = (format!("entry {index}"), head.clone(), path.clone());
                let moved = Proof::Inclusion { line, index: other as u64, head, path, v: One };
                assert!(moved.check().is_err(), "{index} as {other} of {size}");
            }
        }
        for old in 1..=size {
            let proof = consistency(d, old);
            assert_eq!(proof.check(), Ok(()), "{old} to {size}");
            refused(&proof, "consistency");
        }
    }
}

/// Every node changed, left out or added, and each root changed.
fn refused(proof: &Proof, what: &str) {
    let value = serde_json::to_value(proof).unwrap();
    let length = value["path"].as_array().unwrap().len();
    let fails = |changed: Value| {
        let forged: Proof = serde_json::from_value(changed.clone()).unwrap();
        assert!(forged.check().is_err(), "{what} {changed}");
    };
    let stranger = json!(leaf(b"stranger"));
    for at in 0..length {
        let mut changed = value.clone();
        changed["path"][at] = stranger.clone();
        fails(changed);
        let mut short = value.clone();
        short["path"].as_array_mut().unwrap().remove(at);
        fails(short);
    }
    let mut long = value.clone();
    long["path"].as_array_mut().unwrap().push(stranger.clone());
    fails(long);
    for head in ["head", "old", "new"] {
        if value.get(head).is_some() {
            let mut changed = value.clone();
            changed[head]["root"] = stranger.clone();
            fails(changed);
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let d = leaves(4);
    let beyond = Proof::Inclusion {
        line: "entry 0".into(),
        index: 4,
        head: covered(&d),
        path: inclusion_path(&d, 0),
        v: One,
    };
    assert_eq!(beyond.check(), Err(ProofError::Sizes));
    let (old, new) = (covered(&d), covered(&d[..2]));
    assert_eq!(Proof::Consistency { old, new, path: vec![], v: One }.check(), Err(ProofError::Sizes));
    let mut empty = covered(&d);
    empty.size = 0;
    let inclusion = Proof::Inclusion { line: String::new(), index: 0, head: empty, path: vec![], v: One };
    assert_eq!(inclusion.check(), Err(ProofError::Sizes));
    // The largest sizes that can be written: an answer, whatever it is, and no panic.
    let huge = Covered { size: u64::MAX, ..covered(&d) };
    let path = inclusion_path(&d, 1);
    for index in [0, 1, u64::MAX - 1, u64::MAX] {
        let (line, head, path) = (String::new(), huge.clone(), path.clone());
        assert!(Proof::Inclusion { line, index, head, path, v: One }.check().is_err());
    }
    assert!(Proof::Consistency { old: covered(&d), new: huge, path, v: One }.check().is_err());
}

fn appended(text: &str, kind: &str, fields: Value) -> String {
    let Value::Object(fields) = fields else { unreachable!() };
    let line = Ledger::read(text.as_bytes()).line(kind, fields).unwrap();
    format!("{text}{line}\n")
}

fn chain() -> String {
    let first = appended("", "register", json!({"nonce": "a".repeat(64)}));
    appended(&first, "exposure", json!({"n": 1}))
}

#[test]
fn a_ledger_proves_its_lines_and_its_growth_without_itself() {
    let old = chain();
    let new = (2..9).fold(old.clone(), |text, n| appended(&text, "exposure", json!({"n": n})));
    let ledger = Ledger::read(new.as_bytes());
    let head = ledger.heads()[0];
    for (index, entry) in ledger.entries().into_iter().enumerate() {
        let proof = ledger.prove_inclusion(entry.leaf, head).unwrap();
        assert_eq!(proof.check(), Ok(()));
        let Proof::Inclusion { line, .. } = &proof else { unreachable!() };
        assert_eq!(line, new.lines().nth(index).unwrap(), "the bytes as stored");
        assert!(proof.head().is_stated_by(&ledger.head_statement(head).unwrap()));
        assert!(
            !proof.head().is_stated_by(&ledger.head_statement(entry.leaf).unwrap()) || entry.leaf == head
        );
    }
    let before = Ledger::read(old.as_bytes()).heads()[0];
    let proof = ledger.prove_consistency(before, head).unwrap();
    assert!(matches!(proof, Proof::Consistency { .. }));
    assert_eq!(proof.check(), Ok(()));
    assert_eq!(ledger.prove_consistency(head, before), None, "a later head is not within an earlier one");
    assert_eq!(ledger.prove_inclusion(head, before), None);
}

#[test]
fn across_a_merge_the_leaves_are_the_proof() {
    let base = chain();
    let ours = (0..3).fold(base.clone(), |text, n| appended(&text, "exposure", json!({"ours": n})));
    let theirs = (0..3).fold(base.clone(), |text, n| appended(&text, "exposure", json!({"theirs": n})));
    let union = format!("{ours}{}", &theirs[base.len()..]);
    let merged = appended(&union, "merge", Value::Object(Map::new()));
    let ledger = Ledger::read(merged.as_bytes());
    assert_eq!(ledger.findings(), []);
    let head = ledger.heads()[0];
    for side in [&ours, &theirs] {
        let before = Ledger::read(side.as_bytes()).heads()[0];
        let proof = ledger.prove_consistency(before, head).unwrap();
        assert_eq!(proof.check(), Ok(()), "{proof:?}");
        let text = serde_json::to_string(&proof).unwrap();
        assert_eq!(serde_json::from_str::<Proof>(&text).unwrap(), proof, "what is written is read");
        let Proof::Ancestry { old, new, leaves, earlier, v } = proof else { panic!("{text}") };
        for at in 0..leaves.len() {
            let mut changed = leaves.clone();
            changed[at] = leaf(b"stranger");
            let forged = Proof::Ancestry {
                old: old.clone(),
                new: new.clone(),
                leaves: changed,
                earlier: earlier.clone(),
                v,
            };
            assert!(forged.check().is_err());
        }
        let mut outside = earlier.clone();
        *outside.last_mut().unwrap() = leaves.len() as u64;
        assert_eq!(
            Proof::Ancestry { old, new, leaves, earlier: outside, v }.check(),
            Err(ProofError::Positions)
        );
    }
    // The first two lines are a beginning all the same.
    let before = Ledger::read(base.as_bytes()).heads()[0];
    assert!(matches!(ledger.prove_consistency(before, head), Some(Proof::Consistency { .. })));
}

#[test]
fn what_is_no_proof_is_not_read_as_one() {
    let proof = serde_json::to_value(consistency(&leaves(5), 2)).unwrap();
    for (key, value) in
        [("v", json!(2)), ("kind", json!("avow-head")), ("extra", json!(1)), ("path", json!("x"))]
    {
        let mut changed = proof.clone();
        changed[key] = value;
        assert!(serde_json::from_value::<Proof>(changed).is_err(), "{key}");
    }
}
