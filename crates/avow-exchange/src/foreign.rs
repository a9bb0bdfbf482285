//! Reading a Run Crate that may be anybody's.
//!
//! A crate is a folder and a document about it. The document decides which files are read, so every id is judged
//! before anything is opened: a plain relative path stays below the folder and is opened without following a link;
//! an address is never fetched; anything else is refused. What is stated of a file, its size and digests, is compared
//! with its bytes. Nothing is run or rendered. A crate in a zip archive is unpacked first, by
//! the same rules (`archive.rs`).

mod archive;
mod document;
mod error;
mod folder;
mod run_crate;

pub use archive::unpack;
pub use error::ForeignError;
pub use run_crate::{Limits, RunCrate, open};
