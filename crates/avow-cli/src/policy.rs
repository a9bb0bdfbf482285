//! What `[store]` in a project's `avow.toml` may say.

use avow_spec::units;
use serde::{Deserialize, Deserializer, de};

/// What the store may take, and how long it keeps what nothing holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Bytes that the blobs may take before a run warns; without it only the disk limits them.
    #[serde(deserialize_with = "size")]
    pub quota: Option<u64>,
    /// Bytes free on the disk below which a run warns.
    #[serde(deserialize_with = "size")]
    pub free: Option<u64>,
    /// For how long `store collect` keeps attempts that nothing else holds, in milliseconds.
    #[serde(deserialize_with = "duration")]
    pub keep: u64,
}

/// Thirty days in milliseconds.
const KEEP: u64 = 30 * 24 * 60 * 60 * 1000;

/// A gibibyte: enough for the records of a long run beside whatever it makes.
const FREE: u64 = 1 << 30;

impl Default for Policy {
    fn default() -> Policy {
        Policy { quota: None, free: Some(FREE), keep: KEEP }
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let read =
        units::size(&text).ok_or_else(|| de::Error::custom(format!("`{text}` is no size like `50GiB`")));
    read.map(Some)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    age(&text).ok_or_else(|| de::Error::custom(format!("`{text}` is no time like `90d`")))
}

/// Milliseconds of a duration; `0` and `0d` are none.
pub fn age(text: &str) -> Option<u64> {
    if matches!(text.trim(), "0" | "0d") { Some(0) } else { units::duration(text) }
}
