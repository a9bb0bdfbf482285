//! Reading a Run Crate that may be anybody's.
//!
//! A crate is a folder and a document about it. The document decides which files are read, so every id is judged
//! before anything is opened: a plain relative path stays below the folder and is opened without following a link;
//! an address is never fetched; anything else is refused. What is stated of a file, its size and digests, is compared
//! with its bytes. Nothing is run, rendered or unpacked.

mod document;
mod error;
mod folder;
mod run_crate;

pub use error::ForeignError;
pub use run_crate::{Limits, RunCrate, open};
