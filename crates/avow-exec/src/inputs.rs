//! Laying out what an action declares: code, inputs, and the parent folders of its outputs.
//!
//! Code is copied, because interpreters resolve the links of a script and look for its modules beside the real
//! file. Inputs are symbolic links to blobs where the kernel denies writing through them, otherwise copies;
//! folders are real folders with linked files, so that a stage can add to them without touching anything.
//! `avow_store::materialise` does the writing.
//!
//! Landlock does not deny a change of mode, owner or times, so every linked blob is looked at again afterwards:
//! an unchanged file costs one `stat`; a changed one has its mode restored and is hashed anew.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use avow_model::action::Action;
use avow_model::digest::{Artifact, BlobDigest, TreeDigest};
use avow_model::tree::{Entry, Tree, check_path};
use avow_store::blob::{BlobStore, read_record};
use avow_store::materialise::flatten;
use avow_store::materialise::{How, materialise, place};

use crate::fault::{ExecError, Fault, at};

/// A blob that a stage could reach through a link.
#[derive(Debug)]
pub(crate) struct Linked {
    digest: BlobDigest,
    mount: String,
    blob: PathBuf,
    seal: Seal,
}

impl Linked {
    /// The file that the link leads to.
    pub(crate) fn target(&self) -> &Path {
        &self.blob
    }
}

/// What a file looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seal {
    fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.size(),
            mode: about.mode(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

/// Lays out everything in `run`; the blobs that are reachable through links.
pub(crate) fn lay(
    run: &Path,
    action: &Action,
    blobs: &dyn BlobStore,
    how: How,
) -> Result<Vec<Linked>, Fault> {
    if let Some(code) = action.code {
        materialise(blobs, &code_beside_inputs(code, action, blobs)?, run, How::Copy)?;
    }
    let mut linked = Vec::new();
    for (mount, artifact) in &action.inputs {
        let mount = plain(mount)?;
        place(blobs, *artifact, run, mount, how)?;
        if how == How::Link {
            seal(run, mount, *artifact, blobs, &mut linked)?;
        }
    }
    for slot in action.outputs.values() {
        if let Some((parent, _)) = plain(&slot.path)?.rsplit_once('/') {
            let parent = run.join(parent);
            fs::create_dir_all(&parent).map_err(at("create the folder", &parent))?;
        }
    }
    Ok(linked)
}

/// Whether the folder that specs lay inputs in is needed.
pub(crate) fn are_in_their_folder(action: &Action) -> bool {
    action.inputs.keys().any(|mount| mount.starts_with("inputs/"))
}

/// The path without the slash that marks a folder.
fn plain(path: &str) -> Result<&str, ExecError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    check_path(path).map_err(|error| ExecError::Action { reason: error.to_string() })?;
    Ok(path)
}

/// The code without what is an input too: what is declared by name wins.
fn code_beside_inputs(digest: TreeDigest, action: &Action, blobs: &dyn BlobStore) -> Result<Tree, Fault> {
    let mut tree: Tree = read_record(blobs, digest)?;
    let within = |path: &str, mount: &str| {
        path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mounts = || action.inputs.keys().map(|mount| mount.trim_end_matches('/'));
    tree.entries.retain(|path, _| !mounts().any(|mount| within(path, mount)));
    Ok(tree)
}

fn seal(
    run: &Path,
    mount: &str,
    artifact: Artifact,
    blobs: &dyn BlobStore,
    linked: &mut Vec<Linked>,
) -> Result<(), Fault> {
    let mut one = |mount: String, digest: BlobDigest| {
        let place = run.join(&mount);
        // What is no link was copied: an executable file, or a store without files.
        let Ok(blob) = fs::read_link(&place) else { return Ok(()) };
        let seal = Seal::of(&blob).map_err(at("look at", &blob))?;
        linked.push(Linked { digest, mount, blob, seal });
        Ok(())
    };
    match artifact {
        Artifact::Blob(digest) => one(mount.to_owned(), digest),
        Artifact::Tree(digest) => {
            let tree = flatten(blobs, &read_record::<Tree>(blobs, digest)?)?;
            let files = tree.entries.into_iter().filter_map(|(path, entry)| match entry {
                Entry::File { digest, .. } => Some((path, digest)),
                _ => None,
            });
            files.into_iter().try_for_each(|(path, digest)| one(format!("{mount}/{path}"), digest))
        }
    }
}

/// Makes sure that every linked blob still has its bytes, and its mode.
pub(crate) fn verify(linked: &[Linked]) -> Result<(), Fault> {
    for Linked { digest, mount, blob, seal } in linked {
        let damaged =
            || ExecError::InputChanged { digest: *digest, mount: mount.clone(), file: blob.clone() };
        let now = Seal::of(blob).map_err(|_| damaged())?;
        if now == *seal {
            continue;
        }
        if now.mode != seal.mode {
            tracing::warn!(%digest, mount, "a stage changed the mode of an input; it is put back");
            let mode = PermissionsExt::from_mode(seal.mode & 0o7777);
            fs::set_permissions(blob, mode).map_err(at("restore the mode of", blob))?;
        }
        let found = hash(blob).map_err(at("read", blob))?;
        if found != *digest {
            return Err(damaged().into());
        }
    }
    Ok(())
}

/// The digest of a file's bytes.
pub(crate) fn hash(path: &Path) -> io::Result<BlobDigest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_mmap(path)?;
    Ok(BlobDigest::from_bytes(*hasher.finalize().as_bytes()))
}
