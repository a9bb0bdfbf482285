//! Seeds that nobody picks by hand.
//!
//! The i-th value of a seed axis is a 31-bit number derived from the axis' name, its salt and i, so two
//! specs with the same axis share captures and renaming a stage re-keys nothing. Each seed has four
//! independent streams by role.

use crate::axis::Points;
use crate::canonical::bytes_of;
use crate::plan::Plan;

/// The independent streams of one seed: `${axes.seed.init}` and so on.
pub const ROLES: [&str; 4] = ["init", "order", "data", "eval"];

/// The attribute of derived seeds that counts them from 0: `seed.index`. Their values nobody can write down.
pub const INDEX: &str = "index";

const AXIS_DOMAIN: &str = "avow/seed/1";
const FRESH_DOMAIN: &str = "avow/seed-fresh/1";
const UNREGISTERED_DOMAIN: &str = "avow/seed-unregistered/1";
const ROLE_DOMAIN: &str = "avow/seed-role/1";

/// The value of a seed axis at an index: in 1 ..= 2^31 − 1. An empty salt is no salt.
pub fn axis_seed(axis: &str, salt: Option<&str>, index: u64) -> i64 {
    thirty_one_bits(&bytes_of(&(AXIS_DOMAIN, axis, salt.unwrap_or_default(), index)))
}

/// The value of a fresh seed axis at an index: derived from the first registration of the chain, so that nobody
/// has seen a cell of it before. Before any registration there is a domain apart, whose cells are others.
pub fn fresh_seed(axis: &str, salt: Option<&str>, root: Option<&str>, index: u64) -> i64 {
    let salt = salt.unwrap_or_default();
    thirty_one_bits(&match root {
        Some(root) => bytes_of(&(FRESH_DOMAIN, root, axis, salt, index)),
        None => bytes_of(&(UNREGISTERED_DOMAIN, axis, salt, index)),
    })
}

/// Tells the fresh seed axes of a plan the first registration they are derived from. It is no part of the plan.
pub fn freshen(plan: &mut Plan, first: Option<&str>) {
    for axis in &mut plan.axes {
        if let Points::Seeds { fresh: true, root, .. } = &mut axis.points {
            *root = first.map(str::to_owned);
        }
    }
}

/// Whether any seed axis of a plan is fresh.
pub fn is_fresh(plan: &Plan) -> bool {
    plan.axes.iter().any(|axis| matches!(axis.points, Points::Seeds { fresh: true, .. }))
}

/// The stream of a seed for a role: in 1 ..= 2^31 − 1. Works for hand-written seeds as well.
pub fn role_seed(seed: i64, role: &str) -> i64 {
    thirty_one_bits(&bytes_of(&(ROLE_DOMAIN, role, seed)))
}

/// Zero is left out: some generators treat it as "not seeded".
fn thirty_one_bits(key: &[u8]) -> i64 {
    let hash = blake3::hash(key);
    let mut word = [0; 8];
    word.copy_from_slice(&hash.as_bytes()[..8]);
    (u64::from_le_bytes(word) % 0x7fff_ffff) as i64 + 1
}
