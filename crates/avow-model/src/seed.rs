//! Seeds that nobody picks by hand.
//!
//! The i-th value of a seed axis is a 31-bit number derived from the axis' name, its salt and i, so two
//! specs with the same axis share captures and renaming a stage re-keys nothing. Each seed has four
//! independent streams by role.

use crate::canonical::bytes_of;

/// The independent streams of one seed: `${axes.seed.init}` and so on.
pub const ROLES: [&str; 4] = ["init", "order", "data", "eval"];

const AXIS_DOMAIN: &str = "avow/seed/1";
const ROLE_DOMAIN: &str = "avow/seed-role/1";

/// The value of a seed axis at an index: in 1 ..= 2^31 − 1. An empty salt is no salt.
pub fn axis_seed(axis: &str, salt: Option<&str>, index: u64) -> i64 {
    thirty_one_bits(&bytes_of(&(AXIS_DOMAIN, axis, salt.unwrap_or_default(), index)))
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
