//! From what lies in a working folder to what is published.
//!
//! Everything is looked at before anything is moved, so that a refused attempt publishes nothing. The processes
//! of the attempt are gone by then: nobody can change a file between the look and the move. A file is moved
//! into the store, except where moving would take it from someone else: a second name (hard link), another
//! declared output that contains it, or an output that is itself a link to it; then it is copied.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use avow_model::action::Slot;
use avow_model::attempt::{Failure, Outcome, Produced};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, Tree};
use avow_store::blob::{BlobStore, Intake};

use crate::fault::{Fault, at};
use crate::inputs::hash;

/// An output that exists and may be published.
struct Found<'a> {
    name: &'a str,
    slot: &'a Slot,
    /// Where its bytes are, links resolved.
    real: PathBuf,
    /// Whether it was declared under another path.
    linked: bool,
}

/// Checks all declared outputs, then puts them into the store. `run` is absolute and free of links.
pub(crate) fn publish(
    run: &Path,
    slots: &BTreeMap<String, Slot>,
    blobs: &dyn BlobStore,
) -> Result<BTreeMap<String, Produced>, Fault> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for (name, slot) in slots {
        match locate(run, name, slot)? {
            Some(output) => found.push(output),
            None if slot.optional => {}
            None => missing.push(name.clone()),
        }
    }
    if !missing.is_empty() {
        return Err(Fault::Outcome(Outcome::MissingOutput(missing)));
    }
    for output in found.iter().filter(|output| output.slot.folder) {
        Walk { name: output.name, blobs, how: How::Look }.tree(&output.real)?;
    }
    let real: Vec<PathBuf> = found.iter().map(|output| output.real.clone()).collect();
    let mut published = BTreeMap::new();
    // Shared ones are copied first: a move of what contains them would take them away.
    let (shared, alone): (Vec<_>, Vec<_>) =
        found.into_iter().enumerate().partition(|(i, output)| output.linked || overlaps(*i, &real));
    for (how, group) in [(How::Put(Intake::Copy), shared), (How::Put(Intake::Move), alone)] {
        for (_, output) in group {
            let how = if output.slot.keep.is_content() { how } else { How::Hash };
            published.insert(output.name.to_owned(), take(&output, blobs, how)?);
        }
    }
    Ok(published)
}

fn overlaps(index: usize, all: &[PathBuf]) -> bool {
    let others = all.iter().enumerate().filter(|(i, _)| *i != index);
    let own = &all[index];
    others.into_iter().any(|(_, other)| other.starts_with(own) || own.starts_with(other))
}

fn take(output: &Found<'_>, blobs: &dyn BlobStore, how: How) -> Result<Produced, Fault> {
    let walk = Walk { name: output.name, blobs, how };
    if !output.slot.folder {
        let (digest, size, _) = walk.file(&output.real)?;
        return Ok(Produced { artifact: Artifact::Blob(digest), size });
    }
    let (tree, size) = walk.tree(&output.real)?;
    let digest = tree.digest();
    if matches!(how, How::Put(_)) {
        blobs.put(&tree.to_bytes())?;
    }
    Ok(Produced { artifact: Artifact::Tree(digest), size })
}

fn bad(reason: String) -> Fault {
    Fault::Outcome(Outcome::Failed(Failure::BadOutput(reason)))
}

/// The output at a declared path, if something is there; a refusal where that cannot be an output.
fn locate<'a>(run: &Path, name: &'a str, slot: &'a Slot) -> Result<Option<Found<'a>>, Fault> {
    let path = run.join(slot.path.trim_end_matches('/'));
    let about = match fs::symlink_metadata(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(bad(format!("`{name}` at `{}` cannot be looked at: {error}", slot.path))),
        Ok(about) => about,
    };
    let place = &slot.path;
    let real = resolved(run, &path, about.is_symlink()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => bad(format!("`{name}` at `{place}` is a link to nothing")),
        _ => bad(format!("`{name}` at `{place}` cannot be followed: {error}")),
    })?;
    if !real.starts_with(run) || real == run {
        return Err(bad(format!(
            "`{name}` at `{place}` leads outside the working folder; write a copy instead of a link"
        )));
    }
    let kind = fs::metadata(&real).map_err(at("look at", &real))?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(bad(format!("`{name}` at `{place}` is neither a file nor a folder")));
    }
    if kind.is_dir() != slot.folder {
        let (is, declared) = if slot.folder { ("file", "folder") } else { ("folder", "file") };
        return Err(bad(format!("`{name}` at `{place}` is a {is}, and a {declared} was declared")));
    }
    Ok(Some(Found { name, slot, linked: about.is_symlink() || real != path, real }))
}

/// Where a path really leads. Nobody writes here any more, so looking at each folder on the way is enough.
fn resolved(run: &Path, path: &Path, is_link: bool) -> io::Result<PathBuf> {
    let folders = path.ancestors().skip(1).take_while(|folder| *folder != run);
    let linked = |folder: &Path| fs::symlink_metadata(folder).map(|about| about.is_symlink());
    for folder in folders {
        if linked(folder)? {
            return path.canonicalize();
        }
    }
    if is_link { path.canonicalize() } else { Ok(path.to_owned()) }
}

/// What is done with each file.
#[derive(Clone, Copy, Debug)]
enum How {
    /// Only looked at.
    Look,
    /// Hashed.
    Hash,
    /// Put into the store.
    Put(Intake),
}

struct Walk<'a> {
    name: &'a str,
    blobs: &'a dyn BlobStore,
    how: How,
}

impl Walk<'_> {
    /// Digest, size and whether it is executable.
    fn file(&self, path: &Path) -> Result<(BlobDigest, u64, bool), Fault> {
        let about = fs::symlink_metadata(path).map_err(at("look at", path))?;
        let executable = about.mode() & 0o100 != 0;
        let (digest, size) = match self.how {
            How::Look => (BlobDigest::of(b""), about.len()),
            How::Hash => (hash(path).map_err(|error| self.unreadable(path, &error))?, about.len()),
            How::Put(intake) => {
                let intake = if about.nlink() > 1 { Intake::Copy } else { intake };
                self.blobs.put_file(path, intake)?
            }
        };
        Ok((digest, size, executable))
    }

    fn tree(&self, root: &Path) -> Result<(Tree, u64), Fault> {
        let mut tree = Tree::default();
        let size = self.gather(root, "", &mut tree)?;
        Ok((tree, size))
    }

    fn gather(&self, folder: &Path, prefix: &str, tree: &mut Tree) -> Result<u64, Fault> {
        let mut size = 0;
        let mut empty = true;
        for entry in fs::read_dir(folder).map_err(|error| self.unreadable(folder, &error))? {
            let entry = entry.map_err(at("read", folder))?;
            empty = false;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = entry.path().to_string_lossy().into_owned();
                return Err(bad(format!("`{}` holds a name that is not UTF-8: `{shown}`", self.name)));
            };
            let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            size += self.entry(&entry, &path, tree)?;
        }
        if empty && !prefix.is_empty() {
            self.insert(tree, prefix, Entry::Empty)?;
        }
        Ok(size)
    }

    fn entry(&self, entry: &fs::DirEntry, path: &str, tree: &mut Tree) -> Result<u64, Fault> {
        let place = entry.path();
        let kind = entry.file_type().map_err(at("look at", &place))?;
        if kind.is_dir() {
            return self.gather(&place, path, tree);
        }
        if kind.is_symlink() {
            let target = fs::read_link(&place).map_err(at("read", &place))?;
            let target = target.to_str().ok_or_else(|| {
                bad(format!("`{}` holds a link to a name that is not UTF-8: `{path}`", self.name))
            })?;
            self.insert(tree, path, Entry::Link { target: target.to_owned() })?;
            return Ok(0);
        }
        if !kind.is_file() {
            return Err(bad(format!(
                "`{}` holds `{path}`, which is neither file, folder nor link",
                self.name
            )));
        }
        let (digest, size, executable) = self.file(&place)?;
        self.insert(tree, path, Entry::File { digest, executable })?;
        Ok(size)
    }

    fn insert(&self, tree: &mut Tree, path: &str, entry: Entry) -> Result<(), Fault> {
        tree.insert(path, entry).map_err(|error| bad(format!("`{}`: {error}", self.name)))
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Fault {
        if error.kind() == io::ErrorKind::PermissionDenied {
            return bad(format!("`{}` at `{}` cannot be read: {error}", self.name, path.display()));
        }
        at("read", path)(io::Error::from(error.kind()))
    }
}
