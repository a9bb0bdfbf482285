//! Which image lies on the disk: an OCI image layout (<https://github.com/opencontainers/image-spec>, `image-layout.md`), as
//! a folder or as an uncompressed tar archive.
//!
//! An image is the digest of its manifest, which names configuration and layers by theirs. The manifest is hashed
//! here; what it names is hashed by the runtime that takes the image in ([`super::container`]).

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The most bytes of an index or a manifest.
const LIMIT: u64 = 4 << 20;

/// Why a path holds no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("it is neither an OCI layout nor an archive of one: {0}")]
    Other(&'static str),
    /// Its index or manifest says nothing.
    #[error("its `{part}` cannot be read")]
    Form {
        /// The part.
        part: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It holds several images, or none.
    #[error("it holds {0} images, and a stage runs in one")]
    Several(usize),
    /// A digest that is none, or of another kind than SHA-256.
    #[error("it names its manifest by `{0}`, which is no SHA-256")]
    Digest(String),
    /// Its manifest is missing or another.
    #[error("its manifest is not the one that its index names")]
    Damaged,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

/// The digest of the manifest of the image at a path, `sha256:…`.
///
/// # Errors
/// Where there is no image, or more than one, or its manifest is damaged.
pub fn identity(path: &Path) -> Result<String, ImageError> {
    let place = Place::at(path)?;
    let index = place.part("index.json")?.ok_or(ImageError::Other("it has no `index.json`"))?;
    let form = |part: &str, source| ImageError::Form { part: part.to_owned(), source };
    let index: Index = serde_json::from_slice(&index).map_err(|source| form("index.json", source))?;
    let [Descriptor { digest }] = index.manifests.as_slice() else {
        return Err(ImageError::Several(index.manifests.len()));
    };
    let hex = digest.strip_prefix("sha256:").filter(|hex| is_sha256(hex));
    let hex = hex.ok_or_else(|| ImageError::Digest(digest.chars().take(100).collect()))?;
    let manifest = place.part(&format!("blobs/sha256/{hex}"))?.ok_or(ImageError::Damaged)?;
    if data_encoding::HEXLOWER.encode(&Sha256::digest(&manifest)) != hex {
        return Err(ImageError::Damaged);
    }
    serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&manifest)
        .map_err(|source| form("manifest", source))?;
    Ok(digest.clone())
}

fn is_sha256(hex: &str) -> bool {
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

enum Place {
    Folder(PathBuf),
    Archive(PathBuf),
}

impl Place {
    fn at(path: &Path) -> Result<Place, ImageError> {
        if fs::metadata(path).map_err(ImageError::Read)?.is_dir() {
            return Ok(Place::Folder(path.to_owned()));
        }
        let mut magic = Vec::new();
        File::open(path).and_then(|file| file.take(2).read_to_end(&mut magic)).map_err(ImageError::Read)?;
        match magic.as_slice() {
            [0x1f, 0x8b] => Err(ImageError::Other("it is compressed; `gunzip` it")),
            _ => Ok(Place::Archive(path.to_owned())),
        }
    }

    /// The bytes of a small file in it; `None` where there is none.
    fn part(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        match self {
            Place::Folder(folder) => match File::open(folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                file => small(file.map_err(ImageError::Read)?).map(Some),
            },
            Place::Archive(file) => {
                let mut archive = tar::Archive::new(File::open(file).map_err(ImageError::Read)?);
                let other = |_| ImageError::Other("it is no tar archive");
                for entry in archive.entries_with_seek().map_err(other)? {
                    let entry = entry.map_err(other)?;
                    let path = entry.path_bytes();
                    if path.strip_prefix(b"./").unwrap_or(&path) == name.as_bytes() {
                        return small(entry).map(Some);
                    }
                }
                Ok(None)
            }
        }
    }
}

fn small(file: impl Read) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(ImageError::Read)?;
    match bytes.len() as u64 > LIMIT {
        true => Err(ImageError::Other("its index or manifest is too large")),
        false => Ok(bytes),
    }
}
