//! Reading a bundle that may be anybody's.
//!
//! In this order: the structure of the archive, the manifest, names and sizes, and each entry's bytes with both
//! digests while they stream out. Nothing is ever extracted by name, and no entry is read beyond the size that
//! the manifest gives it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};

use super::error::{BundleError, Context};
use super::manifest::{Entry, Manifest};
use super::name::MANIFEST;
use super::structure::{self, Located};
use crate::digests::hex;

/// How much of a bundle this program is willing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
    pub entries: u64,
    /// Bytes of all entries, unpacked.
    pub total: u64,
    /// Bytes of the manifest.
    pub manifest: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { entries: 1_000_000, total: 64 << 30, manifest: 256 << 20 }
    }
}

/// An opened bundle: its structure and its manifest are sound and agree.
#[derive(Debug)]
pub struct Bundle {
    file: File,
    path: PathBuf,
    manifest: Manifest,
    located: Vec<Located>,
}

impl Bundle {
    /// Opens a bundle. Errors: what [`BundleError`] lists; the file's bytes decide, not its name.
    pub fn open(path: &Path, limits: Limits) -> Result<Bundle, BundleError> {
        let file = File::open(path).context("open", path)?;
        let about = file.metadata().context("look at", path)?;
        if !about.is_file() {
            return Err(BundleError::Structure("it is not a regular file".to_owned()));
        }
        let mut located = structure::entries(&file, about.len(), limits.entries)?.into_iter();
        let first = located.next().filter(|entry| entry.name == MANIFEST);
        let first =
            first.ok_or_else(|| BundleError::Structure(format!("its first entry is not `{MANIFEST}`")))?;
        if first.size > limits.manifest {
            let (found, limit) = (first.size, limits.manifest);
            return Err(BundleError::Limit { what: "bytes of manifest", found, limit });
        }
        let mut bytes = Vec::new();
        stream(&file, &first, first.size, &mut bytes).map_err(|error| unreadable(error, path, MANIFEST))?;
        let manifest = Manifest::from_bytes(&bytes)?;
        let bundle = Bundle { file, path: path.to_owned(), manifest, located: located.collect() };
        bundle.agree(limits)?;
        Ok(bundle)
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The archive has the entries that the manifest lists, in its order and of its sizes, and no other.
    fn agree(&self, limits: Limits) -> Result<(), BundleError> {
        let (listed, there) = (self.manifest.entries.len(), self.located.len());
        for (entry, located) in self.manifest.entries.iter().zip(&self.located) {
            let wrong = |reason: String| Err(BundleError::Entry { name: entry.name.clone(), reason });
            if entry.name != located.name {
                return wrong(format!("in its place lies `{}`", located.name));
            }
            if entry.size != located.size {
                return wrong(format!("{} bytes instead of {}", located.size, entry.size));
            }
        }
        if let Some(absent) = self.manifest.entries.get(there) {
            let (name, reason) = (absent.name.clone(), "it is not in the archive".to_owned());
            return Err(BundleError::Entry { name, reason });
        }
        if let Some(surplus) = self.located.get(listed) {
            let reason = format!("`{}` is in the archive, and the manifest does not list it", surplus.name);
            return Err(BundleError::Structure(reason));
        }
        if self.manifest.size() > limits.total {
            let (found, limit) = (self.manifest.size(), limits.total);
            return Err(BundleError::Limit { what: "bytes", found, limit });
        }
        Ok(())
    }

    /// Every entry with its unpacked bytes still to be read.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.manifest.entries.iter()
    }

    /// Writes the bytes of the entry at a position of the manifest and compares them with size and both digests.
    /// What was written before a difference was found must not be used.
    pub fn extract(&self, position: usize, into: &mut dyn Write) -> Result<(), BundleError> {
        let (Some(entry), Some(located)) = (self.manifest.entries.get(position), self.located.get(position))
        else {
            return Err(BundleError::Structure(format!("it has no entry {position}")));
        };
        let mut hashing = Hashing { into, blake3: blake3::Hasher::new(), sha256: Sha256::new() };
        stream(&self.file, located, entry.size, &mut hashing)
            .map_err(|error| unreadable(error, &self.path, &entry.name))?;
        let differ = |what: &str| {
            Err(BundleError::Entry { name: entry.name.clone(), reason: format!("its {what} is another") })
        };
        if BlobDigest::from_bytes(*hashing.blake3.finalize().as_bytes()) != entry.blake3 {
            return differ("BLAKE3 digest");
        }
        if hex(&hashing.sha256.finalize()) != entry.sha256 {
            return differ("SHA-256 digest");
        }
        Ok(())
    }
}

/// Why the bytes of an entry could not be streamed.
enum Streaming {
    /// They are not what the headers promise.
    Bytes(String),
    /// Where they go cannot be written.
    Write(io::Error),
}

fn unreadable(error: Streaming, path: &Path, name: &str) -> BundleError {
    match error {
        Streaming::Bytes(reason) => BundleError::Entry { name: name.to_owned(), reason },
        Streaming::Write(source) => BundleError::Io { action: "unpack", path: path.to_owned(), source },
    }
}

/// Streams an entry's bytes, no more than `size` of them and not one less, all of its packed bytes used up.
fn stream(file: &File, located: &Located, size: u64, into: &mut dyn Write) -> Result<(), Streaming> {
    let packed = Span { file, next: located.begin, left: located.packed };
    let into = &mut Summing { into, sum: Crc::new() };
    unpack(packed, located, size, into)?;
    if into.sum.sum() == located.checksum {
        Ok(())
    } else {
        Err(Streaming::Bytes("its checksum is another".to_owned()))
    }
}

fn unpack(packed: Span<'_>, located: &Located, size: u64, into: &mut dyn Write) -> Result<(), Streaming> {
    if !located.deflated {
        if located.packed != size {
            return Err(Streaming::Bytes(format!("{} bytes instead of {size}", located.packed)));
        }
        return copy(&mut { packed }, size, into);
    }
    let mut unpacking = DeflateDecoder::new(packed);
    copy(&mut unpacking, size, into)?;
    // The decoder stops where the stream says that it ends; what lies behind would be seen by nobody.
    let mut rest = [0; 1];
    match unpacking.read(&mut rest) {
        Ok(0) if unpacking.total_in() == located.packed => Ok(()),
        Ok(0) => Err(Streaming::Bytes("it is followed by bytes that belong to nothing".to_owned())),
        Ok(_) => Err(Streaming::Bytes(format!("it unpacks to more than {size} bytes"))),
        Err(error) => Err(Streaming::Bytes(error.to_string())),
    }
}

fn copy(from: &mut dyn Read, size: u64, into: &mut dyn Write) -> Result<(), Streaming> {
    let mut buffer = vec![0; 128 << 10];
    let mut left = size;
    while left > 0 {
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = match from.read(&mut buffer[..wanted]) {
            Ok(0) => return Err(Streaming::Bytes(format!("{left} of its {size} bytes are missing"))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Streaming::Bytes(error.to_string())),
        };
        into.write_all(&buffer[..read]).map_err(Streaming::Write)?;
        left -= read as u64;
    }
    Ok(())
}

/// A stretch of the archive.
struct Span<'a> {
    file: &'a File,
    next: u64,
    left: u64,
}

impl Read for Span<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..wanted], self.next)?;
        self.next += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Adds up the CRC-32 of what it passes on.
struct Summing<'a> {
    into: &'a mut dyn Write,
    sum: Crc,
}

impl Write for Summing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.into.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// Hashes what it passes on.
struct Hashing<'a> {
    into: &'a mut dyn Write,
    blake3: blake3::Hasher,
    sha256: Sha256,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.into.write(bytes)?;
        self.blake3.update(&bytes[..written]);
        self.sha256.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}
