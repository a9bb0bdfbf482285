//! Bundles: a zip archive of evidence that anyone can open, and that nobody needs to trust.
//!
//! | entry | holds |
//! |---|---|
//! | `bundle.json`, first | the manifest: every other entry with size, BLAKE3 and SHA-256, and how they belong together |
//! | `ledger/EXPERIMENT.jsonl` | the registrations of an experiment |
//! | `proofs/…` | what lies beside a ledger: signed and stamped heads |
//! | `journal/DIGEST` | what one run did |
//! | `aliases/N.jsonl` | names that actions had under encoding N |
//! | `collected.jsonl` | which attempts were collected, and when |
//! | `blobs/DIGEST` | bytes |
//!
//! Names hold `a-z0-9./_-` only. The SHA-256 of the manifest is the bundle's name; that of the archive's own bytes
//! is not, because another version of the compressor writes others.

mod anonymous;
mod contents;
mod error;
mod manifest;
mod name;
mod read;
mod structure;
mod unpack;
mod write;

pub use anonymous::{Anonymous, Opening, Texts, Withheld, anonymise};
pub use contents::{Contents, Wanted, registrations};
pub use error::BundleError;
pub use manifest::{Beside, Entry, Manifest, Run, SpecFile, What};
pub(crate) use name::MANIFEST;
pub use read::{Bundle, Limits};
pub use unpack::{Unpacked, lay_out, unpack};
pub use write::{Written, manifest_of, write};
