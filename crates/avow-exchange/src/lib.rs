//! An experiment's evidence for somebody who has nothing else of it.
//!
//! [`bundle`] writes and reads bundles: zip archives whose entries are named by digests and listed in a manifest.
//! A bundle may be anybody's, so reading one believes nothing: the archive's structure is compared byte by byte
//! with the one form that is written here, every size and digest with the manifest, and users' paths, which live
//! in tree records only, are judged by the store when it writes a tree out. What comes out is a project like any
//! other, which the auditor then looks at.
//!
//! The foreign forms are written from one [`Account`] of what was done: [`ro_crate`] for repositories and people who
//! look at files, [`prov`] for programs that reason about provenance, [`statement`] for those that check signatures.
//! [`prml`] reads and writes manifests of another format, by which other tools fix a claim beforehand.
//!
//! [`foreign`] reads crates of others, as strictly as bundles are read.
//!
//! Absent: running anything, networks, clocks, any judgement of what the evidence means.

pub mod account;
pub mod bundle;
pub mod citation;
mod digests;
mod error;
pub mod foreign;
mod moment;
pub mod prml;
mod project_files;
pub mod prov;
pub mod ro_crate;
pub mod statement;

pub use account::{Account, Executed, Paper, SpecText};
pub use citation::Citation;
pub use error::ExchangeError;

/// The names of terms and kinds that no public vocabulary has. Names, not addresses: nothing is to be found there.
pub const NAMES: &str = "urn:avow:";
