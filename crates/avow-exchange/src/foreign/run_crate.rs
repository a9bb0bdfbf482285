//! A Run Crate: what it says was done, and the files that it says it of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use avow_model::digest::BlobDigest;
use avow_model::tree::{Entry, Tree};
use avow_store::foreign::Act;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::document::{Document, ids, is, text};
use super::error::ForeignError;
use super::folder::{Folder, io};
use crate::digests::{Digests, Known};
use crate::ro_crate::METADATA;

/// The kinds of action that make something.
const ACTIONS: [&str; 3] = ["CreateAction", "ActivateAction", "UpdateAction"];
/// Longest paths and names that are read.
const PATH: usize = 1024;
const NAME: usize = 255;

/// How much of a crate this program is willing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entities, and with them files.
    pub entries: u64,
    /// Bytes of all files.
    pub total: u64,
    /// Bytes of the metadata.
    pub metadata: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        let usual = crate::bundle::Limits::default();
        Limits { entries: usual.entries, total: usual.total, metadata: usual.manifest }
    }
}

/// What a crate says, every file compared with what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCrate {
    /// SHA-256 of the metadata, in hexadecimal.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// Profiles that it says it conforms to.
    pub conforms: Vec<String>,
    /// What was done.
    pub acts: Vec<Act>,
    /// Its files.
    pub files: BTreeMap<String, BlobDigest>,
}

/// Reads a crate and copies what is read into a folder that is empty; without one it is only read. On an error the
/// copy must not be used.
pub fn open(path: &Path, limits: Limits, copy: Option<&Path>) -> Result<RunCrate, ForeignError> {
    let folder = Folder::open(path)?;
    let metadata = folder.small(METADATA, "bytes of metadata", limits.metadata)?;
    let metadata = metadata.ok_or(ForeignError::NoCrate)?;
    let document = Document::read(&metadata, limits.entries)?;
    let root = root(&document)?;
    let mut reader = Reader { folder, copy, left: limits.total, limit: limits.total, files: BTreeMap::new() };
    let paths = paths(&document)?;
    for (id, path) in &paths {
        reader.file(id, path, &document)?;
    }
    let acts = acts(&document, &paths);
    if acts.is_empty() {
        return Err(ForeignError::NoRun);
    }
    if let Some(copy) = copy {
        put(copy, METADATA)?.write_all(&metadata).map_err(|error| io("write", copy, error))?;
    }
    Ok(RunCrate {
        name: Known::of(&metadata).sha256,
        title: text(root, "name").unwrap_or("a crate without a name").to_owned(),
        conforms: ids(root, "conformsTo").into_iter().map(str::to_owned).collect(),
        acts,
        files: reader.files,
    })
}

/// The entity that the metadata are about.
fn root(document: &Document) -> Result<&Map<String, Value>, ForeignError> {
    let wrong = |reason: &str| ForeignError::Metadata(reason.to_owned());
    let about = document.get(METADATA).or_else(|| document.get(&format!("./{METADATA}")));
    let about = about.ok_or_else(|| wrong("they do not describe themselves"))?;
    let conforms = ids(about, "conformsTo");
    if !conforms.iter().any(|id| id.starts_with("https://w3id.org/ro/crate/1.")) {
        return Err(wrong("they conform to no RO-Crate 1.x"));
    }
    let root = ids(about, "about").first().and_then(|id| document.get(id));
    root.filter(|root| is(root, "Dataset")).ok_or_else(|| wrong("they are about no folder"))
}

/// Every file that lies in the crate: its id and its path. Paths are judged as a whole, not cleaned.
fn paths(document: &Document) -> Result<BTreeMap<String, String>, ForeignError> {
    let (mut paths, mut tree) = (BTreeMap::new(), Tree::default());
    for (id, _) in document.of_type("File") {
        // What lies elsewhere is not fetched, and what is only described has no bytes.
        if id.contains("://") || id.starts_with('#') {
            continue;
        }
        let refused = |reason: String| ForeignError::Entity { id: id.to_owned(), reason };
        let decoded = percent_decode_str(id).decode_utf8();
        let decoded = decoded.map_err(|_| refused("its id is not UTF-8".to_owned()))?;
        let path = decoded.strip_prefix("./").unwrap_or(&decoded);
        if path.len() > PATH || path.split('/').any(|name| name.len() > NAME) {
            return Err(refused("its path is too long".to_owned()));
        }
        let entry = Entry::File { digest: BlobDigest::of(b""), executable: false };
        if tree.entries.contains_key(path) || path == METADATA {
            return Err(refused("two entities want its place".to_owned()));
        }
        tree.insert(path, entry).map_err(|error| refused(error.to_string()))?;
        paths.insert(id.to_owned(), path.to_owned());
    }
    Ok(paths)
}

struct Reader<'a> {
    folder: Folder,
    copy: Option<&'a Path>,
    left: u64,
    limit: u64,
    files: BTreeMap<String, BlobDigest>,
}

impl Reader<'_> {
    fn file(&mut self, id: &str, path: &str, document: &Document) -> Result<(), ForeignError> {
        let refused = |reason: String| ForeignError::Entity { id: id.to_owned(), reason };
        let Some((file, _)) = self.folder.file(path)? else {
            return Err(refused("the file is missing".to_owned()));
        };
        let known = self.pass(file, path)?;
        if let Some(reason) = document.get(id).and_then(|entity| disagrees(entity, &known, document)) {
            return Err(refused(reason));
        }
        self.files.insert(path.to_owned(), known.blake3);
        Ok(())
    }

    /// Hashes a file's bytes, and copies them, as far as the limit goes.
    fn pass(&mut self, file: File, path: &str) -> Result<Known, ForeignError> {
        let mut copied = self.copy.map(|copy| put(copy, path)).transpose()?;
        let (mut digests, mut buffer) = (Digests::default(), vec![0; 128 << 10]);
        let mut file = file.take(self.left + 1);
        loop {
            let count = file.read(&mut buffer).map_err(|error| io("read", Path::new(path), error))?;
            if count == 0 {
                return Ok(digests.known());
            }
            let over = || ForeignError::Limit { what: "bytes", found: self.limit + 1, limit: self.limit };
            self.left = self.left.checked_sub(count as u64).ok_or_else(over)?;
            digests.update(&buffer[..count]);
            if let Some(copied) = &mut copied {
                copied.write_all(&buffer[..count]).map_err(|error| io("write", Path::new(path), error))?;
            }
        }
    }
}

/// Creates a file of the copy, which only we write to.
pub(super) fn put(folder: &Path, path: &str) -> Result<File, ForeignError> {
    let target = folder.join(path);
    let parent = target.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(|error| io("create", parent, error))?;
    File::create_new(&target).map_err(|error| io("create", &target, error))
}

/// What is said of a file and is not so.
fn disagrees(entity: &Map<String, Value>, known: &Known, document: &Document) -> Option<String> {
    let size = match entity.get("contentSize") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    if size.is_some_and(|size| size != known.size) {
        return Some(format!("it has {} bytes, not {}", known.size, size.unwrap_or_default()));
    }
    if text(entity, "sha256").is_some_and(|sha256| !sha256.eq_ignore_ascii_case(&known.sha256)) {
        return Some("its SHA-256 digest is another".to_owned());
    }
    let identifiers = ids(entity, "identifier").into_iter().filter_map(|id| document.get(id));
    let mut blake3 = identifiers.filter(|identifier| text(identifier, "name") == Some("BLAKE3"));
    let other = blake3.any(|identifier| text(identifier, "value") != Some(&known.blake3.to_string()));
    other.then(|| "its BLAKE3 digest is another".to_owned())
}

/// What the crate says was done. The action of a whole workflow is one of them, where there is one.
fn acts(document: &Document, paths: &BTreeMap<String, String>) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut seen = BTreeSet::new();
    for kind in ACTIONS {
        for (id, action) in document.of_type(kind) {
            if seen.insert(id) {
                acts.push(act(document, paths, id, action));
            }
        }
    }
    acts
}

fn act(document: &Document, paths: &BTreeMap<String, String>, id: &str, action: &Map<String, Value>) -> Act {
    let named = |key: &str| -> Vec<String> {
        ids(action, key).into_iter().map(|id| thing(document, paths, id)).collect()
    };
    let tools: Vec<String> = ids(action, "instrument").into_iter().map(|id| document.called(id)).collect();
    let failed = text(action, "actionStatus").is_some_and(|status| status.ends_with("FailedActionStatus"));
    let why = text(action, "error").unwrap_or("it is said to have failed").to_owned();
    Act {
        name: document.called(id),
        tool: tools.join(", "),
        read: named("object"),
        wrote: named("result"),
        ended: text(action, "endTime").map(str::to_owned),
        failed: failed.then_some(why),
    }
}

/// A file by its path, a value by name and value, anything else by what it is called.
fn thing(document: &Document, paths: &BTreeMap<String, String>, id: &str) -> String {
    if let Some(path) = paths.get(id) {
        return path.clone();
    }
    let value = document.get(id).filter(|entity| is(entity, "PropertyValue"));
    match value.and_then(|entity| Some((text(entity, "name")?, entity.get("value")?))) {
        Some((name, Value::String(value))) => format!("{name}={value}"),
        Some((name, value)) => format!("{name}={value}"),
        None => document.called(id),
    }
}
