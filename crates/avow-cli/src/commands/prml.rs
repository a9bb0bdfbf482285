//! `avow prml`: manifests of the PRML format. Its verbs end with that format's own exit codes, which its other tools share:
//! 0 where all is well, 2 for a file that is no manifest, 3 where the digest is another one than was recorded, 10 where the
//! observed value does not keep the threshold, 11 where something to check against is missing.

mod claim;
mod import;

use std::path::{Path, PathBuf};

use avow_exchange::prml::Manifest;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::args;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Carries one of its verbs out.
pub fn prml(args: &args::Prml, output: &Output) -> Result<Exit, Failure> {
    match args {
        args::Prml::Hash { manifest } => {
            output.data(read(manifest)?.digest())?;
            Ok(Exit::Done)
        }
        args::Prml::Lock { manifest } => lock(manifest, output),
        args::Prml::Verify(args) => verify(args, output),
        args::Prml::Export(args) => claim::export(args, output),
        args::Prml::Import { manifest } => import::import(&read(manifest)?, output),
    }
}

/// Reads a manifest, or says everything that is wrong with it.
fn read(path: &Path) -> Result<Manifest, Failure> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{shown}`")).because(error))?;
    Manifest::read(&shown, &text)
        .map_err(|error| Failure::new(Exit::Usage, format!("`{shown}` is no PRML manifest")).because(error))
}

/// Where the digest of a manifest is recorded: its name without the last suffix, and `.prml.sha256`.
fn sidecar(path: &Path) -> PathBuf {
    path.with_extension("prml.sha256")
}

fn record(path: &Path, manifest: &Manifest) -> Result<PathBuf, Failure> {
    let beside = sidecar(path);
    std::fs::write(&beside, format!("{}\n", manifest.digest())).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", beside.display())).because(error)
    })?;
    Ok(beside)
}

fn lock(path: &Path, output: &Output) -> Result<Exit, Failure> {
    let manifest = read(path)?;
    let beside = record(path, &manifest)?;
    output.data(format!("locked {}", path.display()))?;
    output.data(format!("  canonical {} bytes", manifest.canonical().len()))?;
    output.data(format!("  sha256    {}", manifest.digest()))?;
    output.data(format!("  recorded  {}", beside.display()))?;
    Ok(Exit::Done)
}

fn verify(args: &args::PrmlVerify, output: &Output) -> Result<Exit, Failure> {
    let manifest = read(&args.manifest)?;
    let recorded = match &args.expected_hash {
        Some(hash) => hash.clone(),
        None => {
            let beside = sidecar(&args.manifest);
            let text = std::fs::read_to_string(&beside).map_err(|error| {
                Failure::new(Exit::ManifestUnchecked, format!("there is no digest in `{}`", beside.display()))
                    .because(error)
                    .hint("record it first with `avow prml lock`, or give `--expected-hash`")
            })?;
            text.trim().to_owned()
        }
    };
    let found = manifest.digest();
    if found != recorded {
        output.data(format!("TAMPERED: recorded {recorded}, found {found}"))?;
        // What another number means here is said by the format's own list.
        return Ok(Exit::SpecInvalid);
    }
    if let Some(path) = &args.dataset
        && let Some(other) = other_data(path, &manifest)?
    {
        output.data(format!("DATASET MISMATCH: declared {}, found {other}", manifest.dataset_hash()))?;
        return Ok(Exit::ManifestUnchecked);
    }
    let Some(observed) = args.observed else {
        output.data(format!("OK: sha256 {found}; no observed value was given"))?;
        return Ok(Exit::Done);
    };
    let (metric, comparator, threshold) = (manifest.metric(), manifest.comparator(), manifest.threshold());
    let holds = manifest.holds(observed);
    let word = if holds { "PASS" } else { "FAIL" };
    output.data(format!("{word}: {metric} {observed}, wanted {comparator} {threshold}"))?;
    Ok(if holds { Exit::Done } else { Exit::ManifestFail })
}

/// The digest of a data file, where it is not the one that is declared.
fn other_data(path: &Path, manifest: &Manifest) -> Result<Option<String>, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new(Exit::ManifestUnchecked, format!("cannot read `{}`", path.display())).because(error)
    })?;
    Ok(Some(sha256(&bytes)).filter(|found| found != manifest.dataset_hash()))
}

/// SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints a manifest, or writes it with its digest beside it.
fn give(manifest: &Manifest, path: Option<&Path>, as_json: bool, output: &Output) -> Result<Exit, Failure> {
    let Some(path) = path else {
        if as_json {
            output.json(&json!({"manifest": manifest.canonical(), "sha256": manifest.digest()}))?;
        } else {
            output.data(manifest.canonical().trim_end())?;
        }
        return Ok(Exit::Done);
    };
    std::fs::write(path, manifest.canonical()).map_err(|error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", path.display())).because(error)
    })?;
    let beside = record(path, manifest)?;
    output.data(format!("wrote {} and {}", path.display(), beside.display()))?;
    output.data(format!("  sha256 {}", manifest.digest()))?;
    Ok(Exit::Done)
}
