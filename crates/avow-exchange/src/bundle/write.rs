//! Writing a bundle.
//!
//! Sorted names, one date, one mode, no extra fields, no comment: the same evidence gives the same archive.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;

use avow_model::digest::{BlobDigest, PlanDigest};
use avow_store::{BlobStore, FileBlobs};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::anonymous::Anonymous;
use super::contents::Contents;
use super::error::{BundleError, Context};
use super::manifest::{Entry, Manifest, Run};
use super::name::{self, MANIFEST};
use crate::digests::{Digests, Known};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The manifest.
    pub manifest: Manifest,
    /// The bundle's name.
    pub name: String,
    /// Bytes of the archive.
    pub bytes: u64,
}

/// Bytes below which an entry needs no 64-bit sizes, with room for what deflate may add.
const LARGE: u64 = 0xf000_0000;

/// Where the bytes of an entry come from.
enum Origin<'a> {
    Bytes(&'a [u8]),
    Blob(BlobDigest),
}

/// Writes a bundle to a path at which nothing is. Every blob is compared with its digest while it is read.
pub fn write(
    path: &Path,
    blobs: &FileBlobs,
    contents: &Contents,
    experiment: &str,
    plan: PlanDigest,
    anonymous: Option<Anonymous>,
) -> Result<Written, BundleError> {
    let origins = origins(contents)?;
    let manifest = manifest(blobs, contents, &origins, (experiment, plan), anonymous)?;
    let file = File::create_new(path).context("create", path)?;
    let written = archive(&file, path, blobs, &manifest, &origins);
    if written.is_err() {
        // Half a bundle is worth nothing; the first error is the one to tell.
        let _ = std::fs::remove_file(path);
    }
    written?;
    let bytes = file.metadata().context("look at", path)?.len();
    Ok(Written { name: manifest.name()?, manifest, bytes })
}

/// The manifest that a bundle of these contents has, without writing it.
pub fn manifest_of(
    blobs: &FileBlobs,
    contents: &Contents,
    experiment: &str,
    plan: PlanDigest,
    anonymous: Option<Anonymous>,
) -> Result<Manifest, BundleError> {
    manifest(blobs, contents, &origins(contents)?, (experiment, plan), anonymous)
}

/// Every entry by name, in the order of names.
fn origins(contents: &Contents) -> Result<Vec<(String, Origin<'_>)>, BundleError> {
    let mut all = Vec::new();
    for (experiment, bytes) in &contents.ledgers {
        all.push((format!("ledger/{experiment}.jsonl"), Origin::Bytes(bytes)));
    }
    for bytes in contents.journals.values() {
        all.push((format!("journal/{}", BlobDigest::of(bytes)), Origin::Bytes(bytes)));
    }
    all.extend(contents.files.iter().map(|(name, bytes)| (name.clone(), Origin::Bytes(bytes))));
    all.extend(contents.blobs.iter().map(|digest| (format!("blobs/{digest}"), Origin::Blob(*digest))));
    all.extend(contents.made.iter().map(|(digest, bytes)| (format!("blobs/{digest}"), Origin::Bytes(bytes))));
    all.extend(
        contents.beside.iter().map(|(one, bytes)| (format!("blobs/{}", one.blob), Origin::Bytes(bytes))),
    );
    if let Some((spec, text)) = &contents.spec {
        all.push((format!("blobs/{}", spec.blob), Origin::Bytes(text)));
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.dedup_by(|(a, _), (b, _)| a == b);
    match all.iter().find(|(name, _)| name::place(name).is_none()) {
        Some((name, _)) => Err(BundleError::Name(name.clone())),
        None => Ok(all),
    }
}

fn manifest(
    blobs: &FileBlobs,
    contents: &Contents,
    origins: &[(String, Origin<'_>)],
    (experiment, plan): (&str, PlanDigest),
    anonymous: Option<Anonymous>,
) -> Result<Manifest, BundleError> {
    let mut entries = Vec::with_capacity(origins.len());
    for (name, origin) in origins {
        let mut sink = Digests::default();
        read_into(blobs, origin, &mut sink)?;
        let Known { size, blake3, sha256 } = sink.known();
        entries.push(Entry { name: name.clone(), size, blake3, sha256 });
    }
    let Some((spec, _)) = &contents.spec else {
        return Err(BundleError::Manifest("there is no spec".to_owned()));
    };
    let run = |(run, bytes): (&String, &Vec<u8>)| Run { run: run.clone(), journal: BlobDigest::of(bytes) };
    Ok(Manifest {
        anonymous,
        kind: "avow-bundle".to_owned(),
        v: 1,
        experiment: experiment.to_owned(),
        plan,
        spec: spec.clone(),
        beside: contents.beside.iter().map(|(one, _)| one.clone()).collect(),
        runs: contents.journals.iter().map(run).collect(),
        heads: contents.heads.iter().copied().collect(),
        absent: contents.absent.iter().copied().collect(),
        entries,
    })
}

fn archive(
    file: &File,
    path: &Path,
    blobs: &FileBlobs,
    manifest: &Manifest,
    origins: &[(String, Origin<'_>)],
) -> Result<(), BundleError> {
    let mut zip = ZipWriter::new(BufWriter::new(file));
    let bytes = manifest.to_bytes()?;
    put(&mut zip, path, MANIFEST, bytes.len() as u64, |zip| zip.write_all(&bytes).context("write", path))?;
    for ((name, origin), entry) in origins.iter().zip(&manifest.entries) {
        put(&mut zip, path, name, entry.size, |zip| read_into(blobs, origin, zip))?;
    }
    let mut buffered = zip.finish().context("write", path)?;
    buffered.flush().context("write", path)?;
    file.sync_all().context("sync", path)
}

fn put<W: Write + Seek>(
    zip: &mut ZipWriter<W>,
    path: &Path,
    name: &str,
    size: u64,
    fill: impl FnOnce(&mut ZipWriter<W>) -> Result<(), BundleError>,
) -> Result<(), BundleError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
        .large_file(size >= LARGE);
    zip.start_file(name, options).context("write", path)?;
    fill(zip)
}

/// Passes on the bytes of an entry. A blob is verified when its file is opened; what is read then is hashed anew by
/// whoever reads the bundle.
fn read_into(blobs: &FileBlobs, origin: &Origin<'_>, into: &mut dyn Write) -> Result<(), BundleError> {
    match origin {
        Origin::Bytes(bytes) => into.write_all(bytes).context("write", Path::new("the bundle")),
        Origin::Blob(digest) => {
            let path = blobs.open_path(*digest)?.unwrap_or_else(|| blobs.path(*digest));
            let mut file = File::open(&path).context("open", &path)?;
            std::io::copy(&mut file, into).context("copy", &path)?;
            Ok(())
        }
    }
}
