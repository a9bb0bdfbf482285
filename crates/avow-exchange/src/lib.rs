//! An experiment's evidence as one file, for somebody who has nothing else of it.
//!
//! [`bundle`] writes and reads bundles: zip archives whose entries are named by digests and listed in a manifest.
//! A bundle may be anybody's, so reading one believes nothing: the archive's structure is compared byte by byte
//! with the one form that is written here, every size and digest with the manifest, and users' paths, which live
//! in tree records only, are judged by the store when it writes a tree out. What comes out is a project like any
//! other, which the auditor then looks at.
//!
//! Absent: running anything, networks, clocks, any judgement of what the evidence means.

pub mod bundle;
